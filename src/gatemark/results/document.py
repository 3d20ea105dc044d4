"""The envelope of `result.json`, format number 1: what was measured, on which gateway, and what may be claimed.

The results themselves are in `runs`, distinguished by `procedure`; each procedure has its own model. Counts and rates
are exact integers; a median of an even number of repetitions may end in .5. All rates are frames per second in one
direction unless the key says `sum` or connections are what is measured. Frame sizes are octets with FCS, without the
VLAN tag. Every key is described in `docs/reference/result-keys.md`; the JSON Schema is
`docs/reference/result.schema.json`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SerializeAsAny

from gatemark.bed_kinds import BOOT_WORDS, BootOccasion, CoresSetBy
from gatemark.facts import EdgeChoice, Order, RuleFacts, SettingFact
from gatemark.results.connections import GatewayTable, PortRange
from gatemark.results.part import Document, Part, ReasonPart
from gatemark.results.quantity import Quantity, Row
from gatemark.results.run import RunResult
from gatemark.results.telemetry import TelemetryPart
from gatemark.results.tester_parts import ClockPart, SelfTestPart
from gatemark.technology import EcnMode, MappingKind, SideName, TechnologyName

RESULT_SCHEMA = 1
"""Format number: changes whenever a key of `result.json` changes its name, type or meaning."""


class Waits(Part):
    """Waits of a trial (RFC 2544 section 23), nanoseconds."""

    settle_ns: int
    """Wait after a routing update."""
    learn_ns: int
    """Wait after the learning frames."""
    drain_ns: int
    """Wait for residual frames."""
    rest_ns: int
    """Wait before the next trial."""


class TrialForm(Part):
    """What all trials of the campaign have in common."""

    duration_ns: int
    """Sending time, where the procedure has none of its own."""
    waits: Waits
    """Waits of a trial (RFC 2544 section 23)."""


class Validity(Part):
    """How often the Tester could be believed."""

    trials: int
    """Number of trials in the campaign."""
    valid: int
    """Trials in which the Tester did its part."""
    invalid: int
    """Trials that say nothing about the gateway."""
    lateness_max_ns: int
    """A trial with a burst that the Tester sent later than this is invalid."""
    reasons: tuple[ReasonPart, ...]
    """Why trials were invalid; a trial may have several reasons."""
    removed: int = 0
    """Trials that somebody removed from the journal between two sessions, so that they were made again."""


class HostPart(Part):
    """How quiet the gateway's host was: failures while others held it up are suspect and do not count."""

    trials: int
    """Number of trials in which the gateway's host was read; 0 if Tester and gateway share a CPU, or if the kernel does
    not report it."""
    suspect: int
    """Trials that failed, but may have failed for the host: they do not count."""
    held_up_max_ns: int | None
    """A failure is suspect only if other work held up the gateway for longer than this, or if its loss looks like that.
    Null where that is the time in which the gateway's queue fills at the load of the trial."""
    queue_frames: int | None
    """Frames that the smallest queue of the gateway holds. Null if the host was not read."""
    waited_ns_max: int
    """Longest time in a trial for which other programs kept threads of the gateway waiting for a CPU."""
    stolen_ns_max: int
    """Longest time in a trial for which the hypervisor may have given a CPU of the gateway to others."""
    reasons: tuple[ReasonPart, ...]
    """Why failures are suspect."""


class TunnelPart(Part):
    """The tunnels of a gateway (RFC 2473)."""

    address: str
    """The gateway's end of all tunnels."""
    relay: str | None = Field(default=None, exclude_if=lambda relay: relay is None)
    """The Tester's end, to which the one tunnel of a B4 or a customer edge leads. Left out of others."""
    hop_limit: int | None
    """Hop limit that an outer header must have when it arrives at the Tester. Null: it is not compared."""
    traffic_class: int | None
    """Traffic class of every outer header. Null: that of the packet inside."""
    ecn: EcnMode | None = Field(default=None, exclude_if=lambda mode: mode is None)
    """What its last two bits are (RFC 6040 section 4.1, RFC 3168 section 9.1.1). Left out where the traffic class says
    it."""
    prefix: str | None = Field(default=None, exclude_if=lambda prefix: prefix is None)
    """Prefix that those of all 6rd customer edges begin with (RFC 5969). Left out where it has none."""
    ipv4_mask_length: int | None = Field(default=None, exclude_if=lambda length: length is None)
    """Bits at the start of their IPv4 addresses that are not in their prefixes. Left out without a prefix."""


class MapRulePart(RuleFacts):
    """A rule of MAP (RFC 7597 section 5), or softwires (RFC 7596 section 5.1)."""

    in_identifier: bool = Field(default=False, exclude_if=lambda in_identifier: not in_identifier)
    """Whether they are lwB4s: the prefix is that of all of them, and the EA bits, the number of a softwire, are in the
    interface identifier only (RFC 7596 section 5.1)."""


class MapDomainPart(MapRulePart):
    """One MAP domain: its rule, and how many customer edges of it were emulated (RFC 7597 section 5)."""

    edges: int
    """Customer edges that were emulated in this domain."""


class MapPart(Part):
    """The customer edges of a MAP gateway, or the lwB4s of an lwAFTR."""

    edges: int
    """Customer edges in all domains."""
    order: Order
    """Order of the EA values in a domain."""
    choice: EdgeChoice
    """Customer edge of each foreground frame: in turn, or drawn each time."""
    onlink: bool
    """Whether the customer edges were neighbours of the gateway."""
    domains: tuple[MapDomainPart, ...]
    """The rules."""


class EdgePart(MapRulePart):
    """The customer edge that a gateway is, and its rule (RFC 7597 sections 5 and 6)."""

    end_user_prefix: str
    """Its IPv6 prefix: rule IPv6 prefix and EA bits; of an lwB4 its whole address."""
    address: str
    """Its MAP address (RFC 7597 section 6)."""
    ipv4_address: str
    """The IPv4 address that it has, or shares."""
    psid: int
    """Its PSID."""
    ports: int
    """Ports that its connections may have: those of its set, but never port 0."""
    peers_psid: int | None = Field(default=None, exclude_if=lambda psid: psid is None)
    """PSID of the hosts outside, which are other customer edges of the rule, reached by a forwarding mapping rule (RFC
    7597 section 5). Default: the hosts outside are behind the border relay."""


class B4Part(Part):
    """The B4s of an AFTR that the Tester was (RFC 6333)."""

    count: int
    """B4s, each with a tunnel of its own."""
    hosts: int
    """Hosts behind each B4."""
    addresses: str
    """Addresses of these hosts, the same behind each B4."""


class Gateway(Part):
    """What was measured."""

    name: str
    """What was measured."""
    version: str
    """Its version; empty if not stated."""
    technology: TechnologyName
    """What it does, as the campaign file calls it."""
    hop_limit_decrement: int
    """By how much TTL or hop limit comes out lower."""
    prefix: str | None
    """Translation prefix (RFC 6052). Null where it has none."""
    tunnel: TunnelPart | None = Field(default=None, exclude_if=lambda tunnel: tunnel is None)
    """Its tunnels (RFC 2473). Left out where it has none."""
    b4s: B4Part | None = Field(default=None, exclude_if=lambda b4s: b4s is None)
    """The B4s that shared it (RFC 6333). Left out where it has none."""
    map: MapPart | None = None
    """The customer edges of a MAP gateway (RFC 7597). Null where it has none."""
    edge: EdgePart | None = None
    """The MAP-T customer edge that the gateway is, and its rule (RFC 7597). Null where it is none."""
    inside: SideName | None
    """Side of the Initiator (RFC 9693 section 4.1). Null for a stateless gateway."""
    pool: tuple[str, ...]
    """Prefixes of the public addresses that connections are translated to; empty for a stateless gateway."""
    pool_ports: PortRange | None
    """Ports of each public address that the gateway uses. Null for a stateless gateway."""
    mapping: MappingKind | None
    """How it maps, as the recipe or the campaign file says (RFC 4787 section 4.1). Null for a stateless gateway, and if
    neither says it."""
    table: GatewayTable | None
    """Its connection tracking table as it is configured (RFC 9693 section 4.4). Null for a stateless gateway."""
    zero_udp_checksum: bool
    """Whether it is known to write UDP checksum 0x0000 where 0xffff is due (RFC 768)."""
    cores: int | None
    """Number of its cores. Null if neither `testbed.gateway_cores` nor `gateway.cores` says it."""
    cores_set_by: CoresSetBy | None = None
    """How it was given that number of cores. Null if not stated."""
    settings: tuple[SettingFact, ...] = ()
    """Settings that the campaign names, and those of the table that were read, as they were in the last session."""
    boots_before: BootOccasion = "never"
    """When its host is booted; `column` is before the first trial of a session."""
    configuration: str
    """Its configuration as text (RFC 2544 section 7), as it was in the first session."""
    commands: str
    """The commands that set it up, one a line."""

    @property
    def boot_words(self) -> str:
        return BOOT_WORDS[self.boots_before]

    @property
    def is_stateful(self) -> bool:
        return self.inside is not None


class Deviation(Part):
    """Where the campaign leaves the RFCs."""

    sentence: str
    """How the measurement differs, with the section of the RFC."""
    rules_out_claim: bool = False
    """Whether a MUST is not met, so that no compliance can be claimed (RFC 2544 section 5). Trials and waits that are
    shorter than the RFC's count as not met, although the RFC gives no capitals for them."""


class Claim(Part):
    """Claim of RFC 2544 section 5, with what stands against a stronger one."""

    level: Literal["none", "all_but_routing_updates"]
    """`all_but_routing_updates`: every MUST of the procedures is met except that of RFC 2544 section 13, a routing
    update before each trial. `none`: others are not met either."""
    sentence: str
    """The claim in words."""
    informational: str | None
    """The statement about RFC 9693; it is informational, so nothing can comply with it. Null for a stateless
    gateway."""
    unmet: tuple[str, ...]
    """Obstacles to a claim other than `deviations`, one sentence each."""


class ResultDocument(Document):
    """All of `result.json`."""

    schema_: Literal[1]
    """Format number. It changes when a key changes its name, type or meaning."""
    name: str
    """Name of the campaign."""
    gatemark: str
    """Version that wrote the file."""
    status: Literal["complete", "incomplete"]
    """`incomplete` if runs are missing because the campaign was stopped."""
    gateway: Gateway
    """What was measured."""
    testbed: str
    """The test bed in words."""
    seed: int
    """Seed of all traffic."""
    repetitions_asked: int
    """Repetitions of each run that the campaign asks for."""
    traffic_classes: tuple[int, ...] = (0,)
    """IPv4 TOS and IPv6 traffic class octets of the frames that were sent."""
    trial: TrialForm
    """What all trials have in common."""
    runs_planned: int
    """Number of runs in the plan."""
    runs: tuple[SerializeAsAny[RunResult], ...]
    """One entry for each finished run."""
    validity: Validity
    """How often the Tester could be believed."""
    host: HostPart | None = None
    """How quiet the gateway's host was. Null where the test bed never reads it."""
    telemetry: TelemetryPart | None = None
    """In how many trials the gateway's host was sampled. Null where it was not to be sampled."""
    interrupts_moved: tuple[str, ...] = Field(default=(), exclude_if=lambda moved: not moved)
    """Interrupts of the gateway's host that moved to other CPUs during a session, a sentence each. Left out if there
    are none, or the host does not report them."""
    deviations: tuple[Deviation, ...]
    """Where the campaign leaves the RFCs."""
    claim: Claim
    """What may be claimed."""
    clock: ClockPart | None = None
    """The Tester's clock. Null if the engine did not report it."""
    self_test: SelfTestPart | None = None
    """What the Tester reaches without a gateway. Null if it was not measured before the campaign."""

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
