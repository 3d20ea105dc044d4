"""Measure IP gateways: routers, translators, NATs and ends of tunnels (RFC 2544, RFC 5180, RFC 8219, RFC 9693).

::

    import gatemark

    result = gatemark.measure("campaign.toml", output="results/mine")
    for run in result.runs:
        print(run.frame_sizes, run.rate_per_direction, run.limited_by)

The public names are those of `__all__`; everything else may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatemark.campaign.file import load_campaign
    from gatemark.errors import GatemarkError
    from gatemark.series.run import SeriesResult, measure_series, open_series
    from gatemark.session import make_plan, measure
    from gatemark.stored import CampaignResult, open_result

__all__ = [
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

_MODULES = {
    "gatemark.campaign.file": ("load_campaign",),
    "gatemark.errors": ("GatemarkError",),
    "gatemark.series.run": ("SeriesResult", "measure_series", "open_series"),
    "gatemark.session": ("make_plan", "measure"),
    "gatemark.stored": ("CampaignResult", "open_result"),
}
"""Where the public names are from. They are imported when first asked for: a command needs only what it uses."""


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
