"""The public names are pinned: a change here is a change for users."""

from __future__ import annotations

import gatemark


def test_the_public_names_are_these() -> None:
    assert sorted(gatemark.__all__) == [
        "CampaignResult",
        "GatemarkError",
        "SeriesResult",
        "load_campaign",
        "make_plan",
        "measure",
        "measure_series",
        "open_result",
        "open_series",
    ]


def test_every_public_name_has_a_docstring() -> None:
    assert all(getattr(gatemark, name).__doc__ for name in gatemark.__all__)
