"""Faults that the reference gateway plants: both sides must count the same frames under the same name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatemark.calibrate.model import ONLY_COUNTS, Check, Comparison, Evidence, NothingProven, equal_frames
from gatemark.refdut.document import Flow, Selector, Table
from gatemark.technology import TECHNOLOGIES, Family, Technology, TechnologyName
from gatemark.trial.record import TrialRecord

LOAD = 5_000
MS = 1_000_000
FIRST_NS, EACH_NS, PAUSE_NS = 300 * MS, 20 * MS, 10 * MS
"""Start of the first damage, how long each field is damaged, and the pause between two: no frame has two faults."""

COMMON = (
    "destination_mac", "source_mac", "encapsulated", "headers", "family", "fragment", "length", "source_port",
    "destination_port", "hop_limit", "traffic_class", "udp_length", "udp_checksum", "payload", "index", "mark",
    "wrong_port", "trailer",
)  # fmt: skip
IPV4 = ("ipv4_header", "ipv4_header_checksum", "dont_fragment")
IPV6 = ("flow_label", "extension_headers")
ADDRESSES = ("source_address", "destination_address")
EDGES = ("other_edge_port", "other_edge_address")
EDGES_IPV6 = ("interface_identifier", "outside_rule")
"""Damages of what follows from the rules of customer edges; an IPv4 address of theirs has no interface identifier."""
EDGE = ("outside_port_set", "other_edge_address", "interface_identifier", "outside_rule")
"""Damages of the source that a gateway has which is a customer edge itself."""
TUNNEL = (
    "tunnel_missing", "tunnel_source", "tunnel_destination", "other_subscriber", "tunnel_traffic_class",
    "tunnel_option", "tunnel_header",
)  # fmt: skip
"""Damages of what leaves in a tunnel."""
NOT_IN_TUNNELS = ("family",)
"""Damages that no packet in a tunnel can have."""
NOT_OF_TUNNELLED_EDGES = ("interface_identifier", "other_subscriber")
"""Damages that no customer edge can do whose public address is IPv4, and whose tunnel leads to one relay."""
NOT_IN_IPV4 = ("tunnel_option",)
"""Damages that no outer IPv4 header can have."""
OUTWARD = ("untranslated_source", "mapping_changed")
INWARD = ("wrong_owner", "unknown_connection")
"""What only a stateful gateway can do wrong."""
UNLIKE_A_TEST_FRAME = ("encapsulated", "headers", "mark")
"""After these damages a frame looks like one from elsewhere, of which many make a trial invalid."""
OCTETS = 128
"""Long enough for data beyond what the Tester writes into every frame."""
FEW = 200
"""Connections of a customer edge; so ports are left to change mappings to."""
SUBSCRIBERS = 100
"""B4s of an AFTR, and customer edges of 6rd."""


def fault_checks(*, quick: bool) -> list[Check]:
    """Return the checks of planted faults."""
    quick_names: tuple[TechnologyName, ...] = ("router44", "nat44")
    names: tuple[TechnologyName, ...] = (
        quick_names
        if quick
        else (
            "router44",
            "router66",
            "siit64",
            "map_t_br",
            "map_e_br",
            "lwaftr",
            "nat44",
            "map_t_ce",
            "aftr",
            "sixrd_br",
            "b4",
            "map_e_ce",
            "lwb4",
        )
    )
    return [_impairments(), _blame(), *(_corruption(TECHNOLOGIES[name]) for name in names)]


def fields_of(technology: Technology) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields to be damaged in each direction, forward and reverse."""
    if technology.has_b4s:
        return (*OUTWARD, "tunnel_left"), (*INWARD, *TUNNEL)
    if technology.is_edge and technology.has_tunnels:
        outward = (field for field in (*OUTWARD, *EDGE, *TUNNEL) if field not in NOT_OF_TUNNELLED_EDGES)
        return tuple(outward), (*INWARD, "tunnel_left")
    if technology.is_stateful:
        return (*OUTWARD, *(EDGE if technology.is_edge else ())), INWARD
    left, right = technology.families
    identification = ("identification",) if technology.keeps_identification else ()
    edges = EDGES if technology.has_edges else ()
    forward = (*_fields_of_family(right), *identification, *edges)
    if technology.inside_tunnels is not None:
        return _fields_of_tunnels(technology, identification, edges)
    reverse = (*_fields_of_family(left), *edges, *(EDGES_IPV6 if edges else ())) if technology.is_translation else ()
    return forward, reverse


def _fields_of_tunnels(
    technology: Technology, identification: tuple[str, ...], edges: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of what leaves tunnels and of what enters them, or of a subscriber the other way round."""
    assert technology.inside_tunnels is not None
    usual = (*_fields_of_family(technology.inside_tunnels), *identification)
    lacks = {
        *(NOT_IN_IPV4 if technology.outer_family == "ipv4" else ()),
        *(("other_subscriber",) if technology.is_subscriber else ()),
    }
    left = (*usual, *edges, "tunnel_left")
    entered = (
        *(field for field in (*usual, *edges) if field not in NOT_IN_TUNNELS),
        *(field for field in TUNNEL if field not in lacks),
    )
    return (entered, left) if technology.is_subscriber else (left, entered)


def _fields_of_family(family: Family) -> tuple[str, ...]:
    return (*COMMON, *(IPV4 if family == "ipv4" else IPV6), *ADDRESSES)


def _impairments() -> Check:
    frames = 2 * LOAD

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        if not evidence.trials:
            return (Comparison(quantity="frames", unit="frames", true=frames, measured=None),)
        last = evidence.trials[-1]
        counts, gateway_counts = last.record.report.directions[0].foreground, last.counts["forward"]
        return (
            equal_frames("frames seen by the gateway", counts.offered, gateway_counts["test_frames"]),
            equal_frames("frames lost", gateway_counts["lost"], counts.lost),
            equal_frames("frames duplicated", gateway_counts["duplicated"], counts.duplicate),
            equal_frames("frames reordered", gateway_counts["reordered"], counts.reordered),
        )

    return Check(
        procedure="faults",
        name="faults-loss-duplication-reordering",
        truth=f"of {frames} frames every 97th lost, 101st twice, 103rd behind 3 others",
        technology="router44",
        forward=Flow(
            loss=(Selector(every=97),),
            duplicate=(Selector(every=101),),
            reorder=((Selector(every=103), 3),),
        ),
        tables={"trial": {"duration": "2s"}, "frame_loss": {"rates": [LOAD]}},
        compare=compare,
        **ONLY_COUNTS,
    )


def _blame() -> Check:
    """Damage more frames than a trial may get from elsewhere, so that it is invalid if any kind passes for those."""
    frames = 2 * LOAD

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        if not evidence.trials:
            return (Comparison(quantity="frames", unit="frames", true=frames, measured=None),)
        last = evidence.trials[-1]
        planted, counts = _planted(last.counts, "forward"), last.record.report.directions[0].foreground
        return (
            Comparison(quantity="trial", unit="", true="valid", measured=_valid_word(last.record)),
            *(equal_frames(name, planted.get(name, 0), counts.faults.get(name, 0)) for name in UNLIKE_A_TEST_FRAME),
            equal_frames("frames lost", planted.get("mark", 0), counts.lost),
            equal_frames("frames from elsewhere", 0, last.record.report.ports["right"].foreign.foreign),
        )

    return Check(
        procedure="faults",
        name="faults-unlike-test-frames",
        truth=f"of {frames} frames every 3rd encapsulated, every 4th not UDP in IP, every 3rd without a mark",
        technology="router44",
        forward=Flow(
            corrupt=(
                ("encapsulated", Selector(every=3)),
                ("headers", Selector(every=4)),
                ("mark", Selector(every=3)),
            )
        ),
        tables={
            "trial": {"duration": "2s"},
            "traffic": {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": OCTETS}},
            "frame_loss": {"rates": [LOAD]},
        },
        compare=compare,
        **ONLY_COUNTS,
    )


def _valid_word(record: TrialRecord) -> str:
    return "valid" if record.validity.valid else f"invalid: {'; '.join(record.validity.reasons)}"


def _corruption(technology: Technology) -> Check:
    fields = fields_of(technology)
    stateful = technology.is_stateful

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        if not evidence.trials:
            return (Comparison(quantity="frames", unit="frames", true="a trial", measured=None),)
        last = evidence.trials[-1]
        ways: dict[str, Mapping[str, int]] = {
            way.direction: {**way.foreground.faults, "trailer": way.foreground.with_trailer or 0}
            for way in last.record.report.directions
        }
        comparisons = []
        for way, damaged in zip(("forward", "reverse"), fields, strict=True):
            planted_counts = _planted(last.counts, way)
            for reason in dict.fromkeys((*damaged, *planted_counts, *ways.get(way, {}))):
                planted, measured = planted_counts.get(reason, 0), ways.get(way, {}).get(reason, 0)
                if reason in damaged and not planted:  # each has its time, in which a Tester held up sends nothing
                    what = f"no frame came while {reason} was damaged ({way})"
                    raise NothingProven(what=what, where="calibrate", fix="close other programs")
                if planted or measured:
                    comparisons.append(equal_frames(f"{reason}, {way}", planted, measured))
        return tuple(comparisons)

    longest = max(len(damaged) for damaged in fields)
    duration_ns = FIRST_NS + longest * (EACH_NS + PAUSE_NS) + 100 * MS
    tables: dict[str, Any] = {"trial": {"duration": f"{duration_ns}ns"}, "frame_loss": {"rates": [LOAD]}}
    if stateful:
        tables["connections"] = {"count": FEW if technology.is_edge else 1000, "rate": 10_000}
    if technology.has_b4s:  # every port of every B4 has a connection: a reply to another port is another connection's
        tables["connections"]["source_ports"] = f"10000-{10_000 + 1000 // SUBSCRIBERS - 1}"
    tables["traffic"] = {
        "direction": "bidirectional" if fields[1] else "forward",
        "frame_sizes": {"family": technology.packet_families[0], "octets": OCTETS},
        # A router may label those without.
        **({"flow_label": 1} if set(technology.packet_families) == {"ipv6"} else {}),
    }
    return Check(
        procedure="faults",
        name=f"faults-{technology.name}",
        truth=f"{len(fields[0]) + len(fields[1])} kinds of damage, one after the other",
        technology=technology.name,
        subscribers=SUBSCRIBERS if technology.has_b4s or technology.delegates_prefixes else 1,
        forward=_damage(fields[0]),
        reverse=_damage(fields[1]),
        table=Table(size=10_000, udp_timeout_ns=300_000 * MS) if stateful else None,
        tables=tables,
        compare=compare,
        **ONLY_COUNTS,
        counts_phase_two=stateful,
    )


def _damage(fields: tuple[str, ...]) -> Flow:
    starts = (FIRST_NS + number * (EACH_NS + PAUSE_NS) for number in range(len(fields)))
    return Flow(
        corrupt=tuple(
            (name, Selector(window_ns=(start, start + EACH_NS))) for name, start in zip(fields, starts, strict=True)
        )
    )


def _planted(counts: Mapping[str, Any], way: str) -> dict[str, int]:
    return {name: int(count) for name, count in counts[way]["reasons"].items() if count}
