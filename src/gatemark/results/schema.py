"""The published form of `result.json`, format number 1.

Counts and rates are exact integers; a median of an even number of repetitions may end in .5. All rates are frames per
second in one direction unless the key says `sum`. Frame sizes are octets with FCS, without the VLAN tag. Every key is
described in `docs/reference/result-keys.md`; the JSON Schema is `docs/reference/result.schema.json`.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

RESULT_SCHEMA = 1
"""Format number: changes whenever a key of `result.json` changes its name, type or meaning."""

Number = int | float
LimitedBy = Literal["gateway", "tester", "maximum"]


class Part(BaseModel):
    """A frozen part of the document; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=lambda name: name.rstrip("_")
    )


class FrameSizesPart(Part):
    """Frame size by family: octets with FCS. A family that is not on the path is null."""

    ipv4: int | None
    ipv6: int | None


class MixPart(Part):
    """Frame i is foreground if and only if i mod n < m (RFC 8219 section 5.3)."""

    m: int
    n: int


class WaitsPart(Part):
    """Waits of a trial (RFC 2544 section 23), nanoseconds."""

    settle_ns: int
    learn_ns: int
    drain_ns: int
    rest_ns: int


class GoalPart(Part):
    """What a trial had to meet, and how the load was chosen."""

    loss_tolerance: str
    """Exact ratio in [0, 1] as a fraction, for example "1/10000"; "0" is RFC 2544 throughput."""
    duration_ns: int
    search_duration_ns: int | None
    waits: WaitsPart
    search: str | None
    maximum: int | None
    minimum: int | None
    resolution: int | None


class TheoreticalMaximumPart(Part):
    """Highest frame rate of the medium in one direction (RFC 5180 appendix A.1): floor(bit/s / (8 * (octets + 20)))."""

    line_bits_per_second: int
    frame_octets_largest: int
    frames_per_second: int


class RepetitionPart(Part):
    """Outcome of one search: highest load that passed and lowest that failed."""

    number: int
    kind: Literal["found", "maximum_passed", "nothing_passes", "tester_limited"]
    lower_bound: int | None
    upper_bound: int | None
    resolution: int
    tester_limited_at: int | None


class SummaryPart(Part):
    """Median with 1st and 99th percentile (RFC 8219 section 12) and dispersion = (p99 - p1) / median, percent."""

    median: Number
    p1: Number
    p99: Number
    dispersion_percent: float | None
    count: int


class LossPart(Part):
    """Frame loss of one direction and class at one load, over all valid repetitions (RFC 2544 section 26.3)."""

    direction: Literal["forward", "reverse"]
    class_: Literal["foreground", "background"]
    offered: int
    """Frames offered, sum of the repetitions."""
    forwarded: int
    """Frames that came back correct, sum of the repetitions."""
    faulty: int
    """Frames that came back wrong, sum of the repetitions; they count as lost."""
    loss_percent: SummaryPart


class LossPointPart(Part):
    """One load of the frame loss test. `directions` is empty where the Tester could not offer the load."""

    frames_per_second: int
    repetitions: int
    """Valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load."""
    directions: tuple[LossPart, ...]


class RunPart(Part):
    """One cell of the campaign's matrix."""

    number: int
    procedure: Literal["throughput", "frame_loss"]
    direction: Literal["forward", "reverse", "bidirectional"]
    frame_sizes: FrameSizesPart
    mix: MixPart
    goal: GoalPart
    theoretical_maximum: TheoreticalMaximumPart | None
    limited_by: LimitedBy
    repetitions: tuple[RepetitionPart, ...]
    rate_per_direction: SummaryPart | None
    """Only where every repetition has a measured lower bound: never for a Tester-limited run."""
    rate_sum_of_directions: SummaryPart | None
    """Only bidirectional: twice `rate_per_direction`."""
    lower_bound: int | None
    """Smallest load that passed over the repetitions."""
    upper_bound: int | None
    """Largest load that failed over the repetitions."""
    tester_limited_at: int | None
    points: tuple[LossPointPart, ...]
    trials: int
    invalid_trials: int


class ReasonPart(Part):
    """How many trials were invalid for this reason."""

    reason: str
    trials: int


class ValidityPart(Part):
    """How often the Tester could be believed."""

    trials: int
    valid: int
    invalid: int
    reasons: tuple[ReasonPart, ...]


class GatewayPart(Part):
    """What was measured."""

    name: str
    version: str
    mode: str
    hop_limit_decrement: int
    prefix: str | None
    configuration: str
    commands: str


class ClaimPart(Part):
    """Claim of RFC 2544 section 5, with what stands against a stronger one."""

    level: Literal["none", "conditional"]
    sentence: str
    unmet: tuple[str, ...]


class ResultDocument(Part):
    """All of `result.json`."""

    schema_: Literal[1]
    name: str
    gatemark: str
    status: Literal["complete", "incomplete"]
    gateway: GatewayPart
    testbed: str
    seed: int
    repetitions_asked: int
    runs_planned: int
    runs: tuple[RunPart, ...]
    validity: ValidityPart
    deviations: tuple[str, ...]
    claim: ClaimPart

    def to_text(self) -> str:
        """The file's text: keys in a fixed order, so that two equal results are equal files."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema that is published as `docs/reference/result.schema.json`."""
    return ResultDocument.model_json_schema(by_alias=True)
