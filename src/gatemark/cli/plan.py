"""`gatemark plan FILE`: what a campaign sets, what it will run, how long that takes. Sends nothing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gatemark.campaign.estimate import PlanEstimate, estimate
from gatemark.campaign.plan import Plan, deviations, make_plan
from gatemark.campaign.stateful_estimate import ASSUMED_CONNECTIONS_PER_SECOND
from gatemark.cli.common import AsJson, cell_json, cell_text, complete_campaign, print_json
from gatemark.config.model import Campaign
from gatemark.results.toml_text import to_toml
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, format_rate


def plan(file: Path, /, *, as_json: AsJson = False) -> int:
    """Show all settings of a campaign with their defaults, its runs, their duration, and where it leaves the RFCs.

    Nothing is sent and nothing is made.

    Example: gatemark plan campaign.toml

    Parameters
    ----------
    file
        Campaign file (TOML).
    as_json
        Print JSON in place of text.
    """
    campaign = complete_campaign(file)
    runs, needed, unmet = make_plan(campaign), estimate(campaign), deviations(campaign)
    if as_json:
        print_json(
            {
                "campaign": campaign.to_document(),
                "runs": [
                    {"number": run.number, "procedure": run.procedure, **cell_json(run.cell)} for run in runs.runs
                ],
                "estimate": asdict(needed),
                "deviations": list(unmet),
            }
        )
        return 0
    print("# Settings\n")
    print(to_toml(campaign.to_document()).rstrip())
    print("\n# Runs\n")
    print(_runs_text(campaign, runs))
    print("\n# Deviations\n")
    print("\n".join(f"- {sentence}" for sentence in unmet) or "none")
    print("\n# Duration\n")
    print(_estimate_text(campaign, needed))
    return 0


def _runs_text(campaign: Campaign, runs: Plan) -> str:
    names = [run.procedure.replace("_", " ") for run in runs.runs]
    width = max(11, *map(len, names))
    lines = [
        f"{run.number:>4}  {name:<{width}} {cell_text(campaign, run.cell)}"
        for run, name in zip(runs.runs, names, strict=True)
    ]
    bursts = "" if campaign.back_to_back is None else f" (back to back {campaign.back_to_back.bursts} times)"
    lines.append(f"each repeated {campaign.repetitions} times{bursts}; sizes are IPv4 / IPv6 frames with FCS")
    return "\n".join(lines)


def _estimate_text(campaign: Campaign, needed: PlanEstimate) -> str:
    shortest, longest = (
        format_duration_ns(seconds * NANOSECONDS_PER_SECOND) for seconds in (needed.seconds_min, needed.seconds_max)
    )
    trials = (
        str(needed.trials_min)
        if needed.trials_min == needed.trials_max
        else f"{needed.trials_min} to {needed.trials_max}"
    )
    time = shortest if shortest == longest else f"{shortest} to {longest}"
    text = f"{trials} trials, {time}, without repetitions of invalid trials (at most {campaign.validity.retries} each)"
    if needed.line_assumed:
        text += "\nloads in % are estimated for a line of 10 Gbit/s, because line.rate is not set"
    if needed.establishment_assumed:
        rate = format_rate(ASSUMED_CONNECTIONS_PER_SECOND)
        text += f"\nat most, if the gateway establishes {rate} connections/s; a slower one takes longer"
    return text
