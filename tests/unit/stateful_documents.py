"""Result documents of stateful gateways (RFC 9693), built by hand, and what the report makes of them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from rich.console import Console

from gatemark.procedures.result import TearDown
from gatemark.report import stateful
from gatemark.report.html import render
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.text import print_result
from gatemark.results.parts import SummaryPart
from gatemark.results.schema import (
    BehaviourPart,
    CapacityPart,
    CapacityRepetitionPart,
    ClaimPart,
    ConnectionsPart,
    FrameSizesPart,
    GatewayCountsPart,
    GatewayPart,
    GatewayTablePart,
    GoalPart,
    MixPart,
    PhaseOnePart,
    PortRangePart,
    ReasonPart,
    RepetitionPart,
    ResultDocument,
    RunPart,
    ValidityPart,
    WaitsPart,
)
from gatemark.results.stateful import tear_down_part
from gatemark.stats.summary import summarise

MILLION = 1_000_000
WAITS = WaitsPart(settle_ns=2 * 10**9, learn_ns=2 * 10**9, drain_ns=2 * 10**9, rest_ns=5 * 10**9)
PORTS = PortRangePart(minimum=1, maximum=40_000)
COUNTED = GatewayCountsPart(
    phase_one=12, phase_one_equal=12, phase_one_minimum=1, phase_one_maximum=1, phase_two=8, phase_two_changed=0
)
PRESERVED = BehaviourPart(
    established=4_000_000, examined=4_000_000, port_preserved=4_000_000, parity_preserved=4_000_000,
    port_class_preserved=4_000_000, public_addresses=1, public_ports=40_000, public_port_minimum=1,
    public_port_maximum=40_000, sources_compared=4096, sources_endpoint_independent=4096,
)  # fmt: skip


def connections(count: int | None, **changes: Any) -> ConnectionsPart:
    ports = 1 if count is None else max(1, -(-count // 40_000))
    made = {
        "initiator": "left", "count": count, "source_hosts": 1, "destination_hosts": 1, "source_ports": PORTS,
        "destination_ports": PortRangePart(minimum=1, maximum=ports), "order": "pseudorandom",
        "read_order": "pseudorandom", "timeout_ns": 500_000_000, "gap_ns": 500_000_000, "phase_one": None,
        "gateway_counts": COUNTED, "behaviour": PRESERVED,
    }  # fmt: skip
    return ConnectionsPart(**(made | changes))


def run(
    procedure: str,
    rates: Sequence[int] = (),
    *,
    number: int = 1,
    count: int | None = 4_000_000,
    direction: str = "forward",
    changes: dict[str, Any] | None = None,
    **of_connections: Any,
) -> RunPart:
    """A run whose repetitions found these rates."""
    timed = procedure in ("throughput", "frame_loss")
    found = SummaryPart.of(summarise(rates)) if rates else None
    goal = GoalPart(
        loss_tolerance="0", duration_ns=60 * 10**9 if timed else None, search_duration_ns=None, waits=WAITS,
        search="binary", maximum=12_000_000, minimum=1, resolution=1_000,
    )  # fmt: skip
    searches = tuple(
        RepetitionPart(
            number=place,
            kind="found",
            lower_bound=rate,
            upper_bound=rate + 1000,
            resolution=1000,
            tester_limited_at=None,
        )
        for place, rate in enumerate(rates, start=1)
    )
    parts: dict[str, Any] = {
        "number": number, "procedure": procedure, "direction": direction, "goal": goal,
        "frame_sizes": FrameSizesPart(ipv4=64, ipv6=84), "mix": MixPart(m=1, n=1), "theoretical_maximum": None,
        "limited_by": "gateway", "repetitions": searches, "rate_per_direction": found if timed else None,
        "rate_sum_of_directions": None, "connections_per_second": None if timed else found,
        "lower_bound": min(rates, default=None), "upper_bound": max(rates, default=0) + 1000,
        "tester_limited_at": None, "points": (), "connections": connections(count, **of_connections),
        "alpha": "1" if procedure.startswith("validated") else None, "alphas_tried": (), "tear_down": None,
        "capacity": None, "zero_checksum": None, "trials": 20, "invalid_trials": 0,
    }  # fmt: skip
    return RunPart(**(parts | (changes or {})))


def document(runs: Sequence[RunPart], **of_gateway: Any) -> ResultDocument:
    gateway = {
        "name": "gateway under test", "version": "1.0", "technology": "nat64", "hop_limit_decrement": 1,
        "prefix": "64:ff9b::/96", "inside": "left", "pool": ("198.19.0.1/32",),
        "pool_ports": PortRangePart(minimum=1, maximum=65535), "mapping": "endpoint_independent",
        "table": GatewayTablePart(size=None, hash_size=None, udp_timeout_ns=None), "zero_udp_checksum": False,
        "processors": None, "configuration": "pool4 add 198.19.0.1", "commands": "",
    }  # fmt: skip
    return ResultDocument(
        schema_=1, name="stateful", gatemark="0", status="complete", gateway=GatewayPart(**(gateway | of_gateway)),
        testbed="two ports", seed=1, repetitions_asked=10, runs_planned=len(runs), runs=tuple(runs),
        validity=ValidityPart(trials=20, valid=20, invalid=0, lateness_max_ns=10**6, reasons=()), deviations=(),
        claim=ClaimPart(level="none", sentence="No claim.", informational="RFC 9693 is informational.", unmet=()),
    )  # fmt: skip


def series_of(rates: Sequence[int], counts: Sequence[int]) -> ResultDocument:
    return document(
        [
            run("connection_establishment_rate", (rate - 7, rate, rate + 9), count=count, number=number)
            for number, (rate, count) in enumerate(zip(rates, counts, strict=True), start=1)
        ]
    )


def cells(found: ResultDocument, label: str) -> tuple[str, ...]:
    rows = [row for table in stateful.series_tables(found) for block in table.blocks for row in block.rows]
    return next(row.cells for row in rows if row.label == label)


class Words(HTMLParser):
    """The words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.found))

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def page_of(*documents: ResultDocument, trials: Sequence[TrialRow] = ()) -> str:
    parts = [
        ReportPart(document=one, provenance=None, trials=tuple(trials), campaign_text="name = 1") for one in documents
    ]
    return render(parts, title="report")


def terminal_of(*documents: ResultDocument, width: int = 150) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_result(documents, report=None, console=console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


SECOND = 10**9


def tear_down_run(count: int, full_ms: Sequence[int], empty_ms: Sequence[int], number: int = 1) -> RunPart:
    full_ns, empty_ns = (tuple(ms * 10**6 for ms in times) for times in (full_ms, empty_ms))
    times = TearDown(connections=count, full_ns=full_ns, empty_ns=empty_ns)
    return run("connection_tear_down_rate", count=count, number=number, changes={"tear_down": tear_down_part(times)})


def capacity_run(
    capacities: Sequence[int], overflow: str | None = "refused", *, limited_by: str = "gateway", lost: str | None = None
) -> RunPart:
    rates = (2_437_500, 2_562_500, 2_687_500)[: len(capacities)]
    searches = tuple(
        CapacityRepetitionPart(
            number=number, kind="found" if overflow else "maximum_passed", c0=MILLION, r0=rate, cs=4 * MILLION,
            rs=2_250_945, ct=8 * MILLION if overflow else None, rt=None, lower_bound=held,
            upper_bound=held + 1 if overflow else None, overflow=overflow, lost_connections=lost, steps=(),
        )
        for number, (held, rate) in enumerate(zip(capacities, rates, strict=True), start=1)
    )  # fmt: skip
    part = CapacityPart(
        beta="1/5", gamma="2/5", resolution=1, rate_resolution=100_000, repetitions=searches,
        r0=SummaryPart.of(summarise(rates)), rs=SummaryPart.of(summarise([one.rs or 0 for one in searches])),
        capacity=None if limited_by == "tester" else SummaryPart.of(summarise(capacities)),
    )  # fmt: skip
    changes = {"capacity": part, "alpha": "1", "limited_by": limited_by, "lower_bound": min(capacities)}
    return run("connection_tracking_table_capacity", count=None, changes=changes)


def all_kinds() -> ResultDocument:
    """Two numbers of connections, every procedure."""
    runs = []
    for place, count in enumerate((400_000, 4 * MILLION)):
        first = PhaseOnePart(
            connections_per_second_minimum=60_000, connections_per_second_maximum=120_000, attempts=9, failed=place,
            reasons=(ReasonPart(reason="the gateway holds … of … connections", trials=place),) if place else (),
        )  # fmt: skip
        runs += [
            run("connection_establishment_rate", (483_153, 490_001), count=count),
            run("validated_connection_establishment_rate", (484_863, 484_870), count=count),
            run("throughput", (497_654, 497_660), count=count, direction="bidirectional", phase_one=first),
            run("throughput", (490_820, 490_821), count=count, direction="forward", phase_one=first),
            tear_down_run(count, (1350, 1365, 1390), (290, 300, 310)),
        ]
    runs.append(capacity_run((4_194_300, 4_194_301)))
    numbered = [one.model_copy(update={"number": number}) for number, one in enumerate(runs, start=1)]
    table = GatewayTablePart(size=1 << 23, hash_size=1 << 23, udp_timeout_ns=200 * SECOND)
    return document(numbered, table=table)


class Columns(HTMLParser):
    """How many columns the rows of each table have."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[int]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(0)
        elif tag in ("td", "th"):
            self.tables[-1][-1] += int(dict(attrs).get("colspan") or 1)
