"""Measure IP gateways: routers and translators (RFC 2544, RFC 5180, RFC 8219).

::

    import gatemark

    result = gatemark.measure("campaign.toml", output="results/mine")
    for run in result.runs:
        print(run.frame_sizes, run.rate_per_direction, run.limited_by)

The public names are those of `__all__`; everything else may change.
"""

from __future__ import annotations

from gatemark.campaign.file import load_campaign
from gatemark.errors import GatemarkError
from gatemark.series.run import SeriesResult, measure_series, open_series
from gatemark.session import CampaignResult, make_plan, measure, open_result

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
