"""The published form of `result.json`, format number 1.

Counts and rates are exact integers; a median of an even number of repetitions may end in .5. All rates are frames per
second in one direction unless the key says `sum` or connections are what is measured. Frame sizes are octets with FCS,
without the VLAN tag. Every key is described in `docs/reference/result-keys.md`; the JSON Schema is
`docs/reference/result.schema.json`.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from gatemark.results.delay_parts import (
    DelayPointPart,
    DelaySeriesPart,
    DelayVariationPart,
    LatencyPart,
    PacketPairsPart,
    PercentilesPart,
)
from gatemark.results.event_parts import (
    BackToBackPart,
    BurstPart,
    RecoveryPart,
    RecoverySeriesPart,
    ResetPart,
    ResetSeriesPart,
)
from gatemark.results.parts import FigurePart, Part, ReasonPart, SummaryPart
from gatemark.results.stateful_parts import (
    AlphaTriedPart,
    BehaviourPart,
    CapacityPart,
    CapacityRepetitionPart,
    CapacityStepPart,
    ConnectionsPart,
    GatewayCountsPart,
    GatewayTablePart,
    PhaseOnePart,
    PortRangePart,
    TearDownPart,
)
from gatemark.results.tester_parts import CeilingPart, ClockPart, SelfLatencyPart, SelfTestPart
from gatemark.technology import TechnologyName

__all__ = [
    "RESULT_SCHEMA",
    "AlphaTriedPart",
    "BackToBackPart",
    "BehaviourPart",
    "BurstPart",
    "CapacityPart",
    "CapacityRepetitionPart",
    "CapacityStepPart",
    "CeilingPart",
    "ClaimPart",
    "ClockPart",
    "ConnectionsPart",
    "DelayPointPart",
    "DelaySeriesPart",
    "DelayVariationPart",
    "FigurePart",
    "FrameSizesPart",
    "GatewayCountsPart",
    "GatewayPart",
    "GatewayTablePart",
    "GoalPart",
    "LatencyPart",
    "LossPart",
    "LossPointPart",
    "MixPart",
    "PacketPairsPart",
    "PercentilesPart",
    "PhaseOnePart",
    "PortRangePart",
    "ReasonPart",
    "RecoveryPart",
    "RecoverySeriesPart",
    "RepetitionPart",
    "ResetPart",
    "ResetSeriesPart",
    "ResultDocument",
    "RunPart",
    "SelfLatencyPart",
    "SelfTestPart",
    "SummaryPart",
    "TearDownPart",
    "TheoreticalMaximumPart",
    "ValidityPart",
    "WaitsPart",
    "json_schema",
]

RESULT_SCHEMA = 1
"""Format number: changes whenever a key of `result.json` changes its name, type or meaning."""

LimitedBy = Literal["gateway", "tester", "maximum"]


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
    duration_ns: int | None
    """Null where the length of a trial follows from its rate and the number of connections."""
    search_duration_ns: int | None
    waits: WaitsPart
    search: str | None
    maximum: int | None
    minimum: int | None
    resolution: int | None
    frame_timeout_ns: int | None = None
    """A correct frame that arrived later than this after it was sent did not count as delivered; null: no limit."""


class TheoreticalMaximumPart(Part):
    """Highest frame rate of the medium in one direction (RFC 5180 appendix A.1): floor(bit/s / (8 * (octets + 20)))."""

    line_bits_per_second: int
    frame_octets_largest: int
    frames_per_second: int


class RepetitionPart(Part):
    """Outcome of one search: highest load that passed and lowest that failed; connections/s for establishment rates."""

    number: int
    kind: Literal["found", "maximum_passed", "nothing_passes", "tester_limited"]
    lower_bound: int | None
    upper_bound: int | None
    resolution: int
    tester_limited_at: int | None


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
    procedure: Literal[
        "throughput",
        "frame_loss",
        "delay",
        "back_to_back",
        "system_recovery",
        "reset",
        "connection_establishment_rate",
        "validated_connection_establishment_rate",
        "connection_tear_down_rate",
        "connection_tracking_table_capacity",
    ]
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
    connections_per_second: SummaryPart | None
    """Establishment rates (RFC 9693 sections 4.5 and 4.6), never called throughput; null as `rate_per_direction` is."""
    lower_bound: int | None
    """Smallest load that passed over the repetitions; connections for the capacity."""
    upper_bound: int | None
    """Largest load that failed over the repetitions; connections for the capacity."""
    tester_limited_at: int | None
    points: tuple[LossPointPart, ...]
    connections: ConnectionsPart | None
    """Stateful gateways only."""
    alpha: str | None
    """Validation: its rate as a share of the rate under test, exact ratio (RFC 9693 section 4.6)."""
    alphas_tried: tuple[AlphaTriedPart, ...]
    """Where alpha was searched for, largest first."""
    tear_down: TearDownPart | None
    capacity: CapacityPart | None
    zero_checksum: int | None
    """Frames accepted with UDP checksum 0x0000 where 0xffff is due (RFC 768); null if none would be accepted."""
    trials: int
    invalid_trials: int
    delays: tuple[DelayPointPart, ...] = ()
    """Loads of a delay run, in the order of the campaign file."""
    back_to_back: BackToBackPart | None = None
    recovery: RecoveryPart | None = None
    reset: ResetPart | None = None
    refused: str | None = None
    """Why the procedure could not be made here; null if it was."""


class ValidityPart(Part):
    """How often the Tester could be believed."""

    trials: int
    valid: int
    invalid: int
    lateness_max_ns: int
    """A trial with a burst that the Tester sent later than this is invalid."""
    reasons: tuple[ReasonPart, ...]


class GatewayPart(Part):
    """What was measured."""

    name: str
    version: str
    technology: TechnologyName
    hop_limit_decrement: int
    prefix: str | None
    inside: Literal["left", "right"] | None
    """Side of the Initiator (RFC 9693 section 4.1). Null for a stateless gateway, as all up to `table` but `pool`."""
    pool: tuple[str, ...]
    """Prefixes of the public addresses that connections are translated to."""
    pool_ports: PortRangePart | None
    mapping: Literal["endpoint_independent", "endpoint_dependent"] | None
    """How it maps according to recipe or campaign file (RFC 4787 section 4.1); null if not stated."""
    table: GatewayTablePart | None
    zero_udp_checksum: bool
    """Whether it is known to write UDP checksum 0x0000 where 0xffff is due (RFC 768)."""
    processors: int | None
    """Number of its processors; null if the campaign file names none."""
    configuration: str
    commands: str


class ClaimPart(Part):
    """Claim of RFC 2544 section 5, with what stands against a stronger one."""

    level: Literal["none", "conditional"]
    sentence: str
    informational: str | None
    """Stateful gateways: what is said of RFC 9693, with which nothing can comply."""
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
    clock: ClockPart | None = None
    self_test: SelfTestPart | None = None
    """What the Tester reaches without a gateway; null if it was not measured before the campaign."""

    def to_text(self) -> str:
        """The file's text: keys in a fixed order, so that two equal results are equal files."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema that is published as `docs/reference/result.schema.json`."""
    return ResultDocument.model_json_schema(by_alias=True)
