"""Result documents of stateful gateways (RFC 9693), built by hand, and what the report makes of them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from typing import Any

from rich.console import Console

from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult, CapacitySearch, CapacityStep
from gatemark.procedures.registry import PROCEDURES
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.page import render
from gatemark.report.series import series_tables
from gatemark.report.summary import print_result
from gatemark.results.connections import (
    Behaviour,
    Connections,
    GatewayCounts,
    GatewayTable,
    PhaseOne,
    PortRange,
)
from gatemark.results.document import Claim, Gateway, ResultDocument, TrialForm, Validity, Waits
from gatemark.results.part import Figure, LimitedBy, ReasonPart
from gatemark.results.run import FrameSizes, Mix, RunResult
from gatemark.results.search import RateResult, SearchGoal
from gatemark.search.goal import Kind, SearchResult
from gatemark.stored import report_of, sections_of

MILLION = 1_000_000
SECOND = 10**9
WAITS = Waits(settle_ns=2 * SECOND, learn_ns=2 * SECOND, drain_ns=2 * SECOND, rest_ns=5 * SECOND)
PORTS = PortRange(minimum=1, maximum=40_000)
COUNTED = GatewayCounts(
    phase_one=12, phase_one_equal=12, phase_one_minimum=1, phase_one_maximum=1, phase_two=8, phase_two_changed=0
)
PRESERVED = Behaviour(
    established=4_000_000, examined=4_000_000, port_preserved=4_000_000, parity_preserved=4_000_000,
    port_class_preserved=4_000_000, public_addresses=1, public_ports=40_000, public_port_minimum=1,
    public_port_maximum=40_000, sources_compared=4096, sources_endpoint_independent=4096,
)  # fmt: skip


def connections(count: int | None, **changes: Any) -> Connections:
    ports = 1 if count is None else max(1, -(-count // 40_000))
    facts = {
        "initiator": "left", "count": count, "source_hosts": 1, "destination_hosts": 1, "source_ports": PORTS,
        "destination_ports": PortRange(minimum=1, maximum=ports), "order": "pseudorandom",
        "send_order": "pseudorandom", "read_order": "pseudorandom", "timeout_ns": 500_000_000, "gap_ns": 500_000_000,
        "phase_one": None, "gateway_counts": COUNTED, "behaviour": PRESERVED,
    }  # fmt: skip
    return Connections(**{**facts, **changes})


def search(
    lower_bound: int | None, kind: Kind = "found", *, resolution: int = 1000, tester_limited_at: int | None = None
) -> SearchResult:
    """A search that ended one resolution above its lower bound, unless nothing failed."""
    upper = (lower_bound or 0) + resolution if kind in ("found", "nothing_passes") else None
    return SearchResult(
        kind=kind,
        lower_bound=lower_bound,
        upper_bound=upper,
        resolution=resolution,
        highest_load=upper or lower_bound or 0,
        tester_limited_at=tester_limited_at,
    )


def run(
    procedure: str,
    rates: Iterable[int] = (),
    *,
    number: int = 1,
    count: int | None = 4_000_000,
    direction: str = "forward",
    changes: dict[str, Any] | None = None,
    **of_connections: Any,
) -> RunResult:
    """A run of any procedure; of a search one whose repetitions found these rates."""
    model = PROCEDURES[procedure].result
    facts: dict[str, Any] = {
        "number": number, "procedure": procedure, "direction": direction, "frame_sizes": FrameSizes(ipv4=64, ipv6=84),
        "mix": Mix(m=1, n=1), "theoretical_maximum": None, "limited_by": "gateway",
        "connections": connections(count, **of_connections), "zero_checksum": None, "trials": 20, "invalid_trials": 0,
    }  # fmt: skip
    if issubclass(model, RateResult):
        timed = model is ThroughputResult
        facts["goal"] = SearchGoal(
            search="binary", maximum=12_000_000, minimum=1, loss_tolerance="0", search_duration_ns=None,
            duration_ns=60 * SECOND if timed else None,
        )  # fmt: skip
        facts["repetitions"] = tuple(search(rate) for rate in rates)
    if procedure.startswith("validated"):
        facts["alpha"] = "1"
    return model(**{**facts, **(changes or {})})


def rate_run(procedure: str, rates: Iterable[int], **facts: Any) -> RateResult:
    """A run that searched for a rate."""
    result = run(procedure, rates, **facts)
    assert isinstance(result, RateResult)
    return result


def document(runs: Sequence[RunResult], **of_gateway: Any) -> ResultDocument:
    gateway = {
        "name": "gateway under test", "version": "1.0", "technology": "nat64", "hop_limit_decrement": 1,
        "prefix": "64:ff9b::/96", "inside": "left", "pool": ("198.19.0.1/32",),
        "pool_ports": PortRange(minimum=1, maximum=65535), "mapping": "endpoint_independent",
        "table": GatewayTable(size=None, hash_size=None, udp_timeout_ns=None), "zero_udp_checksum": False,
        "cores": None, "configuration": "pool4 add 198.19.0.1", "commands": "",
    }  # fmt: skip
    return ResultDocument(
        schema_=1, name="stateful", gatemark="0", status="complete", gateway=Gateway(**{**gateway, **of_gateway}),
        testbed="two ports", seed=1, repetitions_asked=10, trial=TrialForm(duration_ns=60 * SECOND, waits=WAITS),
        runs_planned=len(runs), runs=tuple(runs),
        validity=Validity(trials=20, valid=20, invalid=0, lateness_max_ns=10**6, reasons=()), deviations=(),
        claim=Claim(level="none", sentence="No claim.", informational="RFC 9693 is informational.", unmet=()),
    )  # fmt: skip


def series_of(rates: Sequence[int], counts: Sequence[int]) -> ResultDocument:
    return document(
        [
            run("connection_establishment_rate", (rate - 7, rate, rate + 9), count=count, number=number)
            for number, (rate, count) in enumerate(zip(rates, counts, strict=True), start=1)
        ]
    )


def cells(whole: ResultDocument, label: str) -> tuple[str, ...]:
    """The first row with this label in the tables over the numbers of connections."""
    return next(row[1:] for table in series_tables(whole) for row in table.rows if row[0] == label)


class Words(HTMLParser):
    """The words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.found))

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def part_of(whole: ResultDocument, trials: Sequence[TrialRow] = ()) -> ReportPart:
    return ReportPart(document=whole, provenance=None, trials=tuple(trials), campaign_text="name = 1")


def sentence(whole: ResultDocument, number: int = 1) -> str:
    """What the report says about one run."""
    return report_of(part_of(whole)).sentences[number - 1]


def page_of(*documents: ResultDocument, trials: Sequence[TrialRow] = ()) -> str:
    return render([report_of(part_of(whole, trials)) for whole in documents], title="report")


def terminal_of(*documents: ResultDocument, width: int = 150) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    print_result([(whole, sections_of(whole)) for whole in documents], report=None, console=console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def tear_down(count: int, full_ns: Sequence[int], empty_ns: Sequence[int], number: int = 1) -> TearDownResult:
    """A run with these times, one of each a repetition."""
    times = {"full_ns": Figure.of(full_ns), "empty_ns": Figure.of(empty_ns)}
    result = run("connection_tear_down_rate", count=count, number=number, changes=times)
    assert isinstance(result, TearDownResult)
    return result


def tear_down_run(count: int, full_ms: Sequence[int], empty_ms: Sequence[int], number: int = 1) -> TearDownResult:
    full_ns, empty_ns = (tuple(ms * 10**6 for ms in times) for times in (full_ms, empty_ms))
    return tear_down(count, full_ns, empty_ns, number)


def repeated_run(frames: int, rates: Sequence[int], sequence: Sequence[int | None], number: int = 1) -> RunResult:
    """Frames of connections drawn from 4,000,000; the gateway counted as many connections as the Tester saw."""
    changes = {"drawn_frames": frames, "established": Figure.of(sequence), "counted": Figure.of(sequence)}
    return run("repeated_four_tuples", rates, number=number, changes=changes)


def capacity_search(
    held: int, *, r0: int, rs: int, kind: Kind = "found", overflow: str | None = None, lost: str | None = None
) -> CapacitySearch:
    """A search whose sizes were C0, 4 C0 and, unless nothing failed, 8 C0; C is between the last two."""
    c0 = MILLION if held >= 4 * MILLION else held // 4
    tried: list[tuple[str, int, int | None]] = [("start", c0, r0), ("exponential", 4 * c0, rs)]
    if kind == "maximum_passed":
        tried.append(("exponential", held, rs))
    elif kind == "found":
        tried += [("exponential", 8 * c0, None), ("binary", held, rs), ("binary", held + 1, None)]
    return CapacitySearch(
        kind=kind,
        c0=c0,
        start=search(r0, resolution=100_000),
        steps=tuple(
            CapacityStep.model_validate({"search": stage, "connections": size, "rate": rate, "stop_rate": 1})
            for stage, size, rate in tried
        ),
        overflow=overflow,
        lost_connections=lost,
    )


def capacity_run(
    capacities: Sequence[int],
    overflow: str | None = "refused",
    *,
    limited_by: LimitedBy = "gateway",
    lost: str | None = None,
) -> CapacityResult:
    kinds: dict[LimitedBy, Kind] = {"gateway": "found", "maximum": "maximum_passed", "tester": "tester_limited"}
    rates = (2_437_500, 2_562_500, 2_687_500)[: len(capacities)]
    changes = {
        "alpha": "1", "beta": "1/5", "gamma": "2/5", "resolution": 1, "rate_resolution": 100_000,
        "maximum": 16 * MILLION, "limited_by": limited_by,
        "repetitions": tuple(
            capacity_search(held, r0=rate, rs=2_250_945, kind=kinds[limited_by], overflow=overflow, lost=lost)
            for held, rate in zip(capacities, rates, strict=True)
        ),
    }  # fmt: skip
    result = run("connection_tracking_table_capacity", count=None, changes=changes)
    assert isinstance(result, CapacityResult)
    return result


def all_kinds() -> ResultDocument:
    """Two numbers of connections, every stateful procedure."""
    runs: list[RunResult] = []
    for place, count in enumerate((400_000, 4 * MILLION)):
        first = PhaseOne(
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
    numbered = [result.model_copy(update={"number": number}) for number, result in enumerate(runs, start=1)]
    table = GatewayTable(size=1 << 23, hash_size=1 << 23, udp_timeout_ns=200 * SECOND)
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
