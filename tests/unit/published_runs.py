"""Published tables as runs: repetitions with the printed median, minimum and maximum, built into documents."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from conftest import EAM, SIDES

from gatemark.config.model import Campaign, Direction
from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.dut.base import GatewayDescription
from gatemark.procedures.delay_result import DELAYS, DelayPoint, DelaySeries
from gatemark.procedures.result import Capacity, CapacityStep, RunResult, TearDown
from gatemark.results.document import build_document
from gatemark.results.schema import ResultDocument
from gatemark.search.goal import Goal, SearchResult
from gatemark.technology import TECHNOLOGIES, TechnologyName
from gatemark.trial.cell import Cell, Procedure, Run

PUBLISHED: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "data" / "published.toml").read_text(encoding="utf-8")
)
SECOND = 10**9


def values_with(minimum: int, median: Fraction, maximum: int, count: int) -> tuple[int, ...]:
    """Return `count` whole numbers, at least three, with this minimum, median and maximum."""
    low = median.__floor__()
    high = int(2 * median) - low  # low and high are the middle two where the number is even
    inner = count - 2
    middle = (low,) * (inner // 2) + (high,) * (inner - inner // 2) if count % 2 == 0 else (low,) * inner
    found = (minimum, *middle, maximum)
    assert list(found) == sorted(found), "the median does not lie between minimum and maximum"
    return found


def campaign_of(technology: TechnologyName, *, name: str = "published", **tables: Any) -> Campaign:
    """Return a campaign with a gateway of this technology; nobody runs it, so it is not checked."""
    row = TECHNOLOGIES[technology]
    left, right = row.families
    gateway: dict[str, Any] = {"technology": technology, **tables.pop("gateway", {})}
    if row.is_stateful:
        gateway |= {"pool": [SIDES["right"][right]["gateway"]]}
        tables = {"connections": {"count": 4_000_000, "source_ports": "1-40000"}, **tables}
    if row.is_translation:
        gateway |= {"prefix": "2001:2:0:6400::/96", "eam": [] if row.is_stateful else EAM}
    return Campaign.model_validate(
        {
            "name": name,
            "gateway": gateway,
            "testbed": {"kind": "ports"},
            "left": {"port": "af_packet:a", left: SIDES["left"][left]},
            "right": {"port": "af_packet:b", right: SIDES["right"][right]},
            **tables,
        }
    )


def run_of(
    campaign: Campaign,
    procedure: Procedure,
    *,
    number: int = 1,
    connections: int | None = None,
    octets: int = 84,
    direction: Direction = "bidirectional",
) -> Run:
    """Return a run of the campaign; `octets` is the IPv6 frame size, the IPv4 one is 20 octets less."""
    families = set(campaign.technology.families)
    sizes = FrameSizes(ipv4=octets - 20 if "ipv4" in families else None, ipv6=octets if "ipv6" in families else None)
    cell = Cell(direction=direction, frame_sizes=sizes, mix=Mix(m=1, n=1), connections=connections)
    return Run(number=number, procedure=procedure, cell=cell)


def document_of(campaign: Campaign, results: Sequence[RunResult], processors: int | None = None) -> ResultDocument:
    """Return what `result.json` would hold."""
    description = GatewayDescription(name=campaign.technology.name, version="", configuration="as published")
    found = build_document(campaign, description, results, (), runs_planned=len(results))
    read = ResultDocument.model_validate_json(found.to_text())
    return read.model_copy(update={"gateway": read.gateway.model_copy(update={"processors": processors})})


def rate_documents(table: dict[str, Any]) -> list[ResultDocument]:
    """Return the documents of a table of rates: one for each column, or one with all of its columns as runs."""
    shared = table["over"] in ("connections", "direction", "procedure", "octets")
    results, documents = [], []
    for place, column in enumerate(table["columns"]):
        campaign = _rate_campaign(table, place, name=str(column))
        results.append(_rate_result(campaign, table, place, number=place + 1 if shared else 1))
        if not shared:
            processors = column if table["over"] == "processors" else None
            documents.append(document_of(campaign, [results[-1]], processors))
    return [document_of(_rate_campaign(table, None), results)] if shared else documents


def column_document(table: dict[str, Any], place: int) -> ResultDocument:
    """Return the document of one column alone."""
    campaign = _rate_campaign(table, place)
    return document_of(campaign, [_rate_result(campaign, table, place, number=1)])


def _rate_campaign(table: dict[str, Any], place: int | None, name: str = "published") -> Campaign:
    gateway: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    if place is not None and "hash_size" in table:
        gateway["table"] = {"hash_size": table["hash_size"][place]}
    if place is not None and "destination_ports" in table:
        count, destinations = table["columns"][place], table["destination_ports"][place]
        ports = {"source_ports": f"1-{count // destinations}", "destination_ports": f"1-{destinations}"}
        tables["connections"] = {"count": count, **ports}
    if "frame_timeout" in table:
        tables["throughput"] = {"frame_timeout": table["frame_timeout"]}
    return campaign_of(table["technology"], name=name, gateway=gateway, **tables)


def _rate_result(campaign: Campaign, table: dict[str, Any], place: int, *, number: int) -> RunResult:
    column, over = table["columns"][place], table["over"]
    procedure = column if over == "procedure" else table["procedure"]
    direction = column if over == "direction" else table.get("direction", "bidirectional")
    connections = column if over == "connections" else 4_000_000 if campaign.is_stateful else None
    both = 2 if table["unit"] == "sum" and direction == "bidirectional" else 1
    times = table.get("repetitions", [10] * len(table["columns"]))[place]
    rates = values_with(
        _whole(table["minimum"][place], both),
        Fraction(table["median"][place], both),
        _whole(table["maximum"][place], both),
        times,
    )
    timed = procedure == "throughput"
    goal = Goal(
        maximum=20_000_000, minimum=1, resolution=100, search_duration_ns=60 * SECOND if timed else None,
        trial_duration_ns=60 * SECOND if timed else None, connections=None if timed else connections,
        loss_tolerance=Fraction(table.get("loss_tolerance", "0%").rstrip("%")) / 100,
    )  # fmt: skip
    octets = column if over == "octets" else 84
    run = run_of(campaign, procedure, number=number, connections=connections, octets=octets, direction=direction)
    searches = tuple(
        SearchResult(kind="found", lower_bound=r, upper_bound=r + 100, resolution=100, highest_load=r + 100)
        for r in rates
    )
    alpha = Fraction(table["alpha"][place]) if "alpha" in table else Fraction(1)
    validated = alpha if procedure.startswith("validated") else None
    return RunResult(run=run, limited_by="gateway", goal=goal, repetitions=searches, alpha=validated)


def _whole(value: int, divisor: int) -> int:
    assert value % divisor == 0, "a sum of two equal directions is even"
    return value // divisor


def tear_down_document(table: dict[str, Any]) -> ResultDocument:
    """Return one document with a run for each number of connections."""
    campaign = campaign_of("nat64")
    results = []
    for number, count in enumerate(table["columns"], start=1):
        full, empty = (
            values_with(minimum * 10**6, Fraction(median * 10**6), maximum * 10**6, 10)
            for minimum, median, maximum in (table["full_ms"][number - 1], table["empty_ms"][number - 1])
        )
        run = run_of(campaign, "connection_tear_down_rate", number=number, connections=count)
        times = TearDown(connections=count, full_ns=full, empty_ns=empty)
        results.append(RunResult(run=run, limited_by="gateway", tear_down=times))
    return document_of(campaign, results)


def capacity_document(table: dict[str, Any]) -> ResultDocument:
    """Return one document with all searches for the capacity."""
    times = table["repetitions"]
    columns = [
        values_with(low, Fraction(middle), high, times) for low, middle, high in (table["r0"], table["rs"], table["c"])
    ]
    searches = []
    for r0, rs, capacity in zip(*columns, strict=True):
        sizes = (
            (table["c0"], r0, True),
            (2 * table["c0"], r0, True),
            (table["cs"], rs, True),
            (table["ct"], None, False),
        )
        steps = tuple(
            CapacityStep(
                search="exponential" if place else "start", connections=size, rate=rate, stop_rate=1, stored=stored
            )
            for place, (size, rate, stored) in enumerate(sizes)
        )
        searches.append(
            Capacity(kind="found", capacity=capacity, upper_bound=capacity + 1, steps=steps, overflow="refused")
        )
    campaign = campaign_of("nat44", connection_tracking_table_capacity={"start": table["c0"], "maximum": 10**7})
    run = run_of(campaign, "connection_tracking_table_capacity")
    return document_of(campaign, [RunResult(run=run, limited_by="gateway", capacities=tuple(searches))])


def delay_document(table: dict[str, Any]) -> ResultDocument:
    """Return one document with one load."""
    campaign = campaign_of(table["technology"], delay={"load": table["load"]})
    series = tuple(_series(table, direction) for direction in ("forward", "reverse"))
    point = DelayPoint(
        frames_per_second=table["load"], share=None, measured=table["repetitions"], tester_limited=0, series=series
    )
    connections = 4_000_000 if campaign.is_stateful else None
    result = RunResult(run=run_of(campaign, "delay", connections=connections), limited_by="gateway", delays=(point,))
    return document_of(campaign, [result])


def _series(table: dict[str, Any], direction: str) -> DelaySeries:
    times, printed = table["repetitions"], table[direction]
    found: dict[str, Any] = {
        name: values_with(low, Fraction(middle), high, times) for name, (low, middle, high) in printed.items()
    }
    names = {"typical_ns": "typical_latency_ns", "worst_case_ns": "worst_case_latency_ns", "pdv_ns": "pdv_ns"}
    measured = {names[name]: values for name, values in found.items()}
    if "typical_ns" in found:
        measured |= {"tags": (50_000,) * times, "tags_lost": (0,) * times}
    counts = dict.fromkeys(("lost", "negative", "impossible", "lateness_max_ns"), (0,) * times)
    counts |= {
        "offered": (10**6,) * times,
        "samples": (10**6,) * times,
    }
    delays = dict.fromkeys(DELAYS, (20_000,) * times)
    return DelaySeries(direction=direction, kind="foreground", **counts, **delays, **measured)
