"""What the reference gateway does with packets that it must drop or deliver: it knows UDP and echo messages. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gatemark.calibrate.base import MAP
from gatemark.calibrate.model import Check, Comparison, Evidence
from gatemark.procedures.conformity.result import CaseResult, ConformityResult, Judgement

JUDGEMENTS: Mapping[str, Judgement] = {
    "foreign_source_port": "conforms",
    "foreign_source_address": "conforms",
    "nobodys_port": "reported",
    "nobodys_address": "reported",
    "echo_from_outside": "conforms",
    "echo_from_inside": "conforms",
    "hairpin": "reported",
    "fragments": "differs",
}
"""It translates UDP and echo messages, also between customer edges, answers a foreign port, and drops all else."""
DELIVERED_PACKETS = 9
"""Three of each case that is to be delivered: echo from outside and inside, hairpin."""


def conformity_checks() -> list[Check]:
    """Return the check of conformity."""
    return [
        Check(
            procedure="conformity",
            name="conformity-map_t_br",
            truth="UDP and echo translated, also between customer edges; a foreign port answered; all else dropped",
            technology="map_t_br",
            tables={"map": {"domains": [{**MAP["domains"][0], "psid_offset": 6}]}, "conformity": {}},
            compare=_compare,
        )
    ]


def _compare(evidence: Evidence) -> tuple[Comparison, ...]:
    cases: dict[str, CaseResult] = {
        case.case: case for run in evidence.results if isinstance(run, ConformityResult) for case in run.cases
    }
    judgements = (
        Comparison(
            quantity=f"judgement, {name.replace('_', ' ')}",
            unit="",
            true=judgement,
            measured=cases[name].judgement if name in cases else None,
        )
        for name, judgement in JUDGEMENTS.items()
    )
    return (
        *judgements,
        Comparison(
            quantity="packets that arrived",
            unit="packets",
            true=DELIVERED_PACKETS,
            measured=sum(case.arrived for case in cases.values()) if cases else None,
        ),
        Comparison(
            quantity="control frames that came through",
            unit="packets",
            true=sum(case.controls_sent for case in cases.values()) or 1,
            measured=sum(case.controls_correct for case in cases.values()),
        ),
    )
