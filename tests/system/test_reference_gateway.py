"""The Tester and the reference gateway count the same frames, whatever mixture of faults the gateway makes.

Two programs that share no line about packets look at each other. Random mixtures of losses, copies, changes of order
and damages of every field; each side counts by itself, and both must agree to the frame.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.system.beds import ATTEMPTS, QUICK, lost_nothing_itself
from tests.system.machine import missing, nightly_but, nothing_compared
from tests.system.reloading import reload

from gatemark import tester as assembly
from gatemark.calibrate.base import campaign_of, gateway_of
from gatemark.calibrate.links import Links, ReferenceTestBed, open_links
from gatemark.calibrate.model import Check
from gatemark.calibrate.run import OWN_DROPS
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.campaign.runner import run_single_trial
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.refdut.document import Flow, Selector, Table
from gatemark.refdut.process import RefDut, find_refdut
from gatemark.technology import TECHNOLOGIES, TechnologyName
from gatemark.tester import Equipment, open_tester, prepare
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts

MISSING = missing(root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"the reference gateway needs {', '.join(MISSING)}"),
]

LOAD = 5_000
DURATION_NS = 300_000_000
CONNECTIONS = 500
FEW_CONNECTIONS = 200
"""For a port set of 252."""
GAP_MAX_NS = 100_000_000
FIELDS = (
    "family", "fragment", "length", "vlan", "ipv4_header", "ipv4_header_checksum", "identification", "source_address",
    "destination_address", "source_port", "destination_port", "hop_limit", "traffic_class", "dont_fragment",
    "flow_label", "udp_length", "udp_checksum", "payload", "index", "wrong_port", "untranslated_source",
    "mapping_changed", "wrong_owner", "unknown_connection", "other_edge_port", "other_edge_address",
    "interface_identifier", "outside_rule", "trailer",
)  # fmt: skip
"""Every reason under which the Tester counts a faulty frame, and octets behind the packet, which are no fault."""

SELECTORS = st.one_of(
    st.integers(2, 60).map(lambda every: Selector(every=every)),
    st.integers(1, 300).map(lambda thousandths: Selector(probability=thousandths / 1000)),
    st.integers(1, 400).map(lambda first: Selector(first=first)),
    st.tuples(st.integers(0, 150), st.integers(151, 300)).map(
        lambda ms: Selector(window_ns=(ms[0] * 10**6, ms[1] * 10**6))
    ),
)


def flows(technology: TechnologyName) -> st.SearchStrategy[Flow]:
    """Return faults of one direction. An edge has few ports: a mapping that it changes is another connection's."""
    is_edge = TECHNOLOGIES[technology].is_edge
    fields = [name for name in FIELDS if not is_edge or name != "mapping_changed"]
    return st.builds(
        Flow,
        loss=st.lists(SELECTORS, max_size=2).map(tuple),
        duplicate=st.lists(SELECTORS, max_size=1).map(tuple),
        reorder=st.lists(
            st.tuples(st.integers(11, 60).map(lambda every: Selector(every=every)), st.integers(1, 9)), max_size=1
        ).map(tuple),
        corrupt=st.lists(st.tuples(st.sampled_from(fields), SELECTORS), max_size=4).map(tuple),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A Tester on a running reference gateway."""

    tester: assembly.Tester
    gateway: RefDut
    testbed: ReferenceTestBed

    def trial(self, forward: Flow, reverse: Flow) -> tuple[TrialRecord, Mapping[str, Any]] | None:
        """Give the gateway its faults, make one trial, and return what each side counted.

        The gateway begins to count where phase 2 of a stateful trial begins, so phase 1 is made without faults. None:
        in each attempt one side said that it did not keep up, so both cannot have counted the same.
        """
        configuration = self.gateway.configuration
        faulty = replace(configuration, forward=forward, reverse=reverse)
        cell = cells_of(self.tester.campaign)[0]

        def watch(event: object) -> None:
            if getattr(event, "phase", None) == "phase 2":
                reload(self.gateway, faulty)
                self.gateway.reset_counts()

        for _ in range(ATTEMPTS):
            reload(self.gateway, replace(configuration, forward=Flow(), reverse=Flow()) if cell.connections else faulty)
            self.gateway.reset_counts()
            record = run_single_trial(
                self.tester.campaign,
                cell,
                self.tester.engine,
                frames_per_second=LOAD,
                duration_ns=DURATION_NS,
                connections_per_second=None if cell.connections is None else 2 * LOAD,
                can=self.testbed.can,
                on_event=watch,
            )
            counts = self.gateway.counts()
            if record.validity.valid and lost_nothing_itself(record) and kept_up(counts):
                return record, counts
        nothing_compared("Tester or gateway was held up in every attempt")
        return None


def kept_up(counts: Mapping[str, Any]) -> bool:
    """Whether the gateway was given the CPU, so that all of its frames left before the trial was over."""
    reference = counts["own"]
    return (
        reference["poll_gap_max_ns"] < GAP_MAX_NS
        and not any(reference[name] for name in OWN_DROPS)
        and not any(counts[way]["held"] for way in ("forward", "reverse"))
    )


@contextlib.contextmanager
def opened(
    technology: TechnologyName,
    kind: Any = "memif",
    *,
    procedure: dict[str, Any] | None = None,
    subscribers: int = 1,
    **traffic: Any,
) -> Iterator[Opened]:
    """Open Tester and reference gateway of one technology, by default with a frame loss to measure."""
    cores = plan_cores(usable_cpus())
    stateful = TECHNOLOGIES[technology].is_stateful
    tables: dict[str, Any] = {
        "trial": {**QUICK, "learn": "100ms", "drain": "200ms"},  # both poll, on one CPU, each for a while
        **(procedure or {"frame_loss": {"rates": [LOAD]}}),
        "traffic": {
            "direction": "bidirectional",
            "frame_sizes": {"family": TECHNOLOGIES[technology].packet_families[0], "octets": 128},
            **traffic,
        },
    }
    if stateful:
        count = FEW_CONNECTIONS if TECHNOLOGIES[technology].is_edge else CONNECTIONS
        tables["connections"] = {"count": count, "rate": 2 * LOAD}
    check = Check(
        procedure="faults",
        name=f"mixtures-{technology}",
        truth="",
        technology=technology,
        table=Table(size=10_000, udp_timeout_ns=300 * 10**9) if stateful else None,
        tables=tables,
        compare=lambda _: (),
        lateness_max="5s",
        subscribers=subscribers,
    )
    with open_links(kind, cores) as links, _running(check, links, cores.gateway[0]) as (gateway, document):
        equipment = Equipment(open_testbed=lambda campaign_: ReferenceTestBed(campaign_, links, gateway))
        bed, complete = prepare(campaign_from_dict(document), equipment)
        assert isinstance(bed, ReferenceTestBed)
        with open_tester(complete, bed, equipment) as tester:
            yield Opened(tester=tester, gateway=gateway, testbed=bed)


@contextlib.contextmanager
def _running(check: Check, links: Links, cpu: int) -> Iterator[tuple[RefDut, dict[str, Any]]]:
    configuration = gateway_of(check, links.ports, str(links.folder / "control.sock"), cpu)
    ask = f"{find_refdut()} ask {configuration.control}"
    document = campaign_of(check, links.ports, ask=ask, cores=(), configuration=configuration)
    with RefDut(configuration, links.folder, netns=links.gateway_namespace) as gateway:
        yield gateway, document


def assert_same(counts: Counts, told: Mapping[str, Any], way: str) -> None:
    """Both sides counted the same frames of one direction."""
    dropped = sum(told["dropped"].values())
    sent_back = told["reasons"].get("wrong_port", 0)
    reasons = {**counts.faults, "trailer": counts.with_trailer or 0}
    counted = {
        "offered": counts.offered,
        "lost": counts.lost,
        "duplicate": counts.duplicate,
        "faults": {name: count for name, count in reasons.items() if count},
    }
    planted = {
        "offered": told["test_frames"],
        "lost": told["lost"] + dropped + sent_back,
        "duplicate": told["duplicated"],
        "faults": {name: count for name, count in told["reasons"].items() if count},
    }
    # A frame whose index or mark is damaged cannot be told from one that never came.
    planted["lost"] += planted["faults"].get("index", 0)
    assert counted == planted, f"{way}: {dict(told)}"


MIXED: list[TechnologyName] = [row.name for row in TECHNOLOGIES.values() if row.reference_mode]
EACH_TIME: tuple[TechnologyName, ...] = ("router44", "siit64", "nat44", "map_t_br", "map_e_ce")
"""Those of every run: each kind of translation, with and without connections and edges."""


@pytest.mark.parametrize(
    "technology",
    nightly_but(
        {MIXED.index(name) for name in EACH_TIME}, "real gateways of each kind have planted faults in every run", MIXED
    ),
)
def test_both_sides_count_the_same_frames(technology: TechnologyName) -> None:
    with opened(technology) as bed:

        @settings(
            max_examples=3,
            phases=(Phase.explicit, Phase.generate),  # to shrink a failure takes minutes
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        )
        @given(forward=flows(technology), reverse=flows(technology))
        def holds(forward: Flow, reverse: Flow) -> None:
            counted = bed.trial(forward, reverse)
            if counted is None:
                return
            record, told = counted
            for direction in record.report.directions:
                assert_same(direction.foreground, told[direction.direction], direction.direction)

        holds()


HANDED_ON: list[tuple[TechnologyName, int, bool]] = [
    ("router44", 64, True), ("router66", 84, True), ("siit64", 84, False)
]  # fmt: skip
"""Technology, octets of a frame without trailer, and whether a gateway keeps those behind the packet."""
TRAILERS = (1, 46, 64)
COMBINED = "the same count; every run has each technology and each trailer"


@pytest.mark.parametrize(
    ("technology", "octets", "keeps", "trailer"),
    nightly_but((0, 4, 8), COMBINED, ((*way, trailer) for way in HANDED_ON for trailer in TRAILERS)),
)
def test_octets_behind_the_packet_are_counted_where_they_come_back(
    technology: TechnologyName, octets: int, keeps: bool, trailer: int
) -> None:
    """The reference gateway hands on what it routes and makes new frames of what it translates."""
    sizes = {"family": TECHNOLOGIES[technology].families[0], "octets": octets + trailer}
    with opened(technology, frame_sizes=sizes, trailer_octets=trailer) as bed:
        counted = bed.trial(Flow(), Flow())
    if counted is None:
        return
    record, told = counted
    for direction in record.report.directions:
        counts = direction.foreground
        assert_same(counts.model_copy(update={"with_trailer": 0}), told[direction.direction], direction.direction)
        assert counts.with_trailer == (counts.received if keeps else 0)
        assert counts.received == counts.offered > 0
