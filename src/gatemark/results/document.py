"""The envelope of `result.json`, format number 1: what was measured, on which gateway, and what may be claimed.

The results themselves are in `runs`, distinguished by `procedure`; each procedure has its own model. Counts and rates
are exact integers; a median of an even number of repetitions may end in .5. All rates are frames per second in one
direction unless the key says `sum` or connections are what is measured. Frame sizes are octets with FCS, without the
VLAN tag. Every key is described in `docs/reference/result-keys.md`; the JSON Schema is
`docs/reference/result.schema.json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import SerializeAsAny

from gatemark.bed_kinds import BOOT_WORDS, BootOccasion, CoresSetBy
from gatemark.facts import SettingFact
from gatemark.results.connections import GatewayTable, PortRange
from gatemark.results.part import Document, Part, ReasonPart
from gatemark.results.quantity import Quantity, Row
from gatemark.results.run import RunResult
from gatemark.results.telemetry import TelemetryPart
from gatemark.results.tester_parts import ClockPart, SelfTestPart
from gatemark.technology import TechnologyName

RESULT_SCHEMA = 1
"""Format number: changes whenever a key of `result.json` changes its name, type or meaning."""


class Waits(Part):
    """Waits of a trial (RFC 2544 section 23), nanoseconds."""

    settle_ns: int
    learn_ns: int
    drain_ns: int
    rest_ns: int


class TrialForm(Part):
    """What all trials of the campaign have in common."""

    duration_ns: int
    """Sending time, where the procedure has none of its own."""
    waits: Waits


class Validity(Part):
    """How often the Tester could be believed."""

    trials: int
    valid: int
    invalid: int
    lateness_max_ns: int
    """A trial with a burst that the Tester sent later than this is invalid."""
    reasons: tuple[ReasonPart, ...]


class HostPart(Part):
    """How quiet the gateway's host was: failures while others held it up are suspect and do not count."""

    trials: int
    """In which the host was read: 0 if Tester and gateway share a CPU, or its kernel does not tell."""
    suspect: int
    held_up_max_ns: int | None
    """A failure is suspect only if others held up the gateway for longer than this, or its loss looks like that; null:
    than the time in which the gateway's queue fills at the load of the trial."""
    queue_frames: int | None
    """What the smallest queue of the gateway holds; null if the host was not read."""
    waited_ns_max: int
    """Longest time in a trial for which others kept a thread of the gateway waiting."""
    stolen_ns_max: int
    """Longest time in a trial for which the hypervisor may have given a CPU of the gateway to others."""
    reasons: tuple[ReasonPart, ...]
    """Why failures are suspect."""


class MapRulePart(Part):
    """A rule of MAP (RFC 7597 section 5)."""

    ipv6: str
    """Rule IPv6 prefix."""
    ipv4: str
    """Rule IPv4 prefix."""
    ea_bits: int
    psid_offset: int
    psid_bits: int
    """Length of the PSID; 0 where no address is shared."""
    dmr: str
    """Default mapping rule: prefix of all IPv4 addresses outside (RFC 7599 section 5.1)."""


class MapDomainPart(MapRulePart):
    """One MAP domain: its rule, and how many customer edges of it were emulated (RFC 7597 section 5)."""

    edges: int


class MapPart(Part):
    """The customer edges of a MAP-T gateway."""

    edges: int
    """In all domains."""
    order: Literal["increasing", "decreasing", "pseudorandom"]
    choice: Literal["cycle", "pseudorandom"]
    onlink: bool
    """Whether they were neighbours of the gateway."""
    domains: tuple[MapDomainPart, ...]


class EdgePart(MapRulePart):
    """The customer edge that a MAP-T gateway is, and its rule (RFC 7597 sections 5 and 6)."""

    end_user_prefix: str
    address: str
    """Its MAP address."""
    ipv4_address: str
    """The IPv4 address that it has, or shares."""
    psid: int
    ports: int
    """How many ports its connections may have."""


class Gateway(Part):
    """What was measured."""

    name: str
    version: str
    technology: TechnologyName
    """As the campaign file calls it."""
    hop_limit_decrement: int
    prefix: str | None
    map: MapPart | None = None
    """Null where it has no customer edges."""
    edge: EdgePart | None = None
    """Null where it is no customer edge."""
    inside: Literal["left", "right"] | None
    """Side of the Initiator (RFC 9693 section 4.1). Null for a stateless gateway, like all to `table` except `pool`."""
    pool: tuple[str, ...]
    """Prefixes of the public addresses that connections are translated to."""
    pool_ports: PortRange | None
    mapping: Literal["endpoint_independent", "endpoint_dependent"] | None
    """How it maps, according to the recipe or the campaign file (RFC 4787 section 4.1); null if not stated."""
    table: GatewayTable | None
    zero_udp_checksum: bool
    """Whether it is known to write UDP checksum 0x0000 where 0xffff is required (RFC 768)."""
    cores: int | None
    """Number of its cores; null if the campaign file does not say."""
    cores_set_by: CoresSetBy | None = None
    """How it was given that number of cores; null if the campaign file does not say."""
    settings: tuple[SettingFact, ...] = ()
    """Settings that the user named, as they were at the begin of the last session."""
    boots_before: BootOccasion = "never"
    """Before what its host is booted."""
    configuration: str
    commands: str

    @property
    def boot_words(self) -> str:
        return BOOT_WORDS[self.boots_before]

    @property
    def is_stateful(self) -> bool:
        return self.inside is not None


class Deviation(Part):
    """Where the campaign leaves the RFCs."""

    sentence: str
    """With the section of the RFC."""
    rules_out_claim: bool = False
    """Whether a MUST is not met, so that no compliance can be claimed (RFC 2544 section 5). Trials and waits that are
    shorter than the RFC's count as not met, although the RFC gives no capitals for them."""


class Claim(Part):
    """Claim of RFC 2544 section 5, with what stands against a stronger one."""

    level: Literal["none", "conditional"]
    sentence: str
    informational: str | None
    """Stateful gateways: the statement about RFC 9693, with which nothing can comply."""
    unmet: tuple[str, ...]
    """What stands against a claim, apart from the deviations."""


class ResultDocument(Document):
    """All of `result.json`."""

    schema_: Literal[1]
    name: str
    gatemark: str
    status: Literal["complete", "incomplete"]
    gateway: Gateway
    testbed: str
    seed: int
    repetitions_asked: int
    trial: TrialForm
    runs_planned: int
    runs: tuple[SerializeAsAny[RunResult], ...]
    validity: Validity
    host: HostPart | None = None
    """Null where the test bed never reads the gateway's host."""
    telemetry: TelemetryPart | None = None
    """Null where the gateway's host was not to be sampled."""
    deviations: tuple[Deviation, ...]
    claim: Claim
    clock: ClockPart | None = None
    self_test: SelfTestPart | None = None
    """What the Tester reaches without a gateway; null if it was not measured before the campaign."""

    def rows(self) -> tuple[Row, ...]:
        """Return all figures of the campaign as rows of the tidy table, then what the gateway's host did."""
        return (*self.figures(), *(self.row(quantity) for run in self.runs for quantity in run.host_quantities()))

    def figures(self) -> tuple[Row, ...]:
        """Return what the procedures measured as rows of the tidy table."""
        return tuple(self.row(quantity) for run in self.runs for quantity in run.quantities())

    def row(self, quantity: Quantity) -> Row:
        """Return a figure of the campaign as a row of the tidy table."""
        cores = {} if self.gateway.cores is None else {"cores": self.gateway.cores}
        return Row(campaign=self.name, gateway=self.gateway.name, quantity=quantity, coordinates=cores)


def rows_of(documents: Iterable[ResultDocument]) -> tuple[Row, ...]:
    """Return all figures of several campaigns."""
    return tuple(row for document in documents for row in document.rows())
