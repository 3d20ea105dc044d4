"""Published tables as runs: repetitions with the printed median, minimum and maximum, built into documents."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from tests.unit.conftest import EAM, SIDES

from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.result_document import build_document
from gatemark.config.model import Campaign
from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.dut.base import GatewayDescription
from gatemark.facts import Direction, OneWay
from gatemark.procedures.connection_tracking_table_capacity.result import CapacitySearch, CapacityStep
from gatemark.procedures.delay.result import DelayPoint, DelaySeries, DelayVariation, Latency
from gatemark.procedures.registry import PROCEDURES, CampaignFile, PublishedDocument
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.run import RunResult
from gatemark.results.search import SearchGoal
from gatemark.search.goal import SearchResult
from gatemark.stats.percentiles import DELAY_FIGURES
from gatemark.technology import TECHNOLOGIES, TechnologyName
from gatemark.trial.cell import Cell, Run
from gatemark.units import parse_duration

PAPERS = Path(__file__).parents[2] / "examples" / "papers"
PUBLISHED_FILES = sorted(PAPERS.glob("*/*.published.toml"))


def _published() -> dict[str, list[dict[str, Any]]]:
    """Return the tables of all files, by kind."""
    result: dict[str, list[dict[str, Any]]] = {}
    for file in PUBLISHED_FILES:
        for kind, tables in tomllib.loads(file.read_text(encoding="utf-8")).items():
            result.setdefault(kind, []).extend(tables)
    return result


PUBLISHED = _published()
SECOND = 10**9


def values_with(minimum: int, median: Fraction, maximum: int, count: int) -> tuple[int, ...]:
    """Return `count` whole numbers, at least three, with this minimum, median and maximum."""
    low = median.__floor__()
    high = int(2 * median) - low  # low and high are the middle two where the number is even
    inner = count - 2
    middle = (low,) * (inner // 2) + (high,) * (inner - inner // 2) if count % 2 == 0 else (low,) * inner
    result = (minimum, *middle, maximum)
    assert list(result) == sorted(result), "the median does not lie between minimum and maximum"
    return result


def campaign_of(technology: TechnologyName, *, name: str = "published", **tables: Any) -> Campaign:
    """Return a campaign with a gateway of this technology; nobody runs it, so it is not checked."""
    row = TECHNOLOGIES[technology]
    left, right = row.families
    gateway: dict[str, Any] = {"technology": technology, **tables.pop("gateway", {})}
    if row.is_stateful:
        gateway |= {"pool": [SIDES["right"][right]["gateway"]]}
        tables = {"connections": {"count": 4_000_000, "source_ports": "1-40000"}, **tables}
    if row.has_edges:
        rule = {"ipv6": "2001:db8:ce::/51", "ipv4": "192.0.2.0/24", "ea_bits": 13, "dmr": "2001:2:0:6400::/96"}
        tables = {"map": {"domains": [rule]}, **tables}
    elif row.is_translation:
        gateway |= {"prefix": "2001:2:0:6400::/96", "eam": [] if row.is_stateful else EAM}
    return CampaignFile.complete_model.model_validate(
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
    procedure: str,
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


def result_of(campaign: Campaign, run: Run, **fields: Any) -> RunResult:
    """Return the result of a run that the gateway limited."""
    facts = run_facts(campaign, run, TrialTally())
    return PROCEDURES[run.procedure].result(**{**facts, "limited_by": "gateway", **fields})


def document_of(campaign: Campaign, results: Sequence[RunResult], cores: int | None = None) -> ResultDocument:
    """Return what `result.json` would hold."""
    description = GatewayDescription(name=campaign.technology.name, version="", configuration="as published")
    written = build_document(campaign, description, results, (), runs_planned=len(results))
    read = PublishedDocument.model_validate_json(written.to_text())
    return read.model_copy(update={"gateway": read.gateway.model_copy(update={"cores": cores})})


def rate_documents(table: dict[str, Any]) -> list[ResultDocument]:
    """Return the documents of a table of rates: one for each column, or one with all of its columns as runs."""
    shared = table["over"] in ("connections", "direction", "procedure", "octets")
    results, documents = [], []
    for place, column in enumerate(table["columns"]):
        campaign = _rate_campaign(table, place, name=str(column))
        results.append(_rate_result(campaign, table, place, number=place + 1 if shared else 1))
        if not shared:
            cores = column if table["over"] == "cores" else None
            documents.append(document_of(campaign, [results[-1]], cores))
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
    connections = column if over == "connections" else 4_000_000 if campaign.technology.is_stateful else None
    both = 2 if table["unit"] == "sum" and direction == "bidirectional" else 1
    times = table.get("repetitions", [10] * len(table["columns"]))[place]
    rates = values_with(
        _whole(table["minimum"][place], both),
        Fraction(table["median"][place], both),
        _whole(table["maximum"][place], both),
        times,
    )
    timed = procedure == "throughput"
    goal = SearchGoal(
        search="binary", maximum=20_000_000, minimum=1, duration_ns=60 * SECOND if timed else None,
        search_duration_ns=60 * SECOND if timed else None,
        loss_tolerance=Fraction(table.get("loss_tolerance", "0%").rstrip("%")) / 100,
        frame_timeout_ns=parse_duration(table["frame_timeout"]) if "frame_timeout" in table else None,
    )  # fmt: skip
    octets = column if over == "octets" else 84
    run = run_of(campaign, procedure, number=number, connections=connections, octets=octets, direction=direction)
    searches = tuple(
        SearchResult(kind="found", lower_bound=r, upper_bound=r + 100, resolution=100, highest_load=r + 100)
        for r in rates
    )
    fields: dict[str, Any] = {"goal": goal, "repetitions": searches}
    if "drawn_frames" in table:
        low, median, high = table["established"][place]
        established = Figure.of(values_with(low, Fraction(median), high, times))
        fields |= {"drawn_frames": table["drawn_frames"][place], "established": established, "counted": established}
    if procedure.startswith("validated"):
        fields["alpha"] = Fraction(table["alpha"][place]) if "alpha" in table else Fraction(1)
    return result_of(campaign, run, **fields)


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
        results.append(result_of(campaign, run, full_ns=Figure.of(full), empty_ns=Figure.of(empty)))
    return document_of(campaign, results)


def capacity_document(table: dict[str, Any]) -> ResultDocument:
    """Return one document with all searches for the capacity."""
    times = table["repetitions"]
    columns = [
        values_with(low, Fraction(middle), high, times) for low, middle, high in (table["r0"], table["rs"], table["c"])
    ]
    searches = []
    for r0, rs, capacity in zip(*columns, strict=True):
        tried: tuple[tuple[Literal["start", "exponential", "binary"], int, int | None], ...] = (
            ("start", table["c0"], r0),
            ("exponential", 2 * table["c0"], r0),
            ("exponential", table["cs"], rs),
            ("exponential", table["ct"], None),
            ("binary", capacity, rs),
            ("binary", capacity + 1, None),
        )
        steps = tuple(
            CapacityStep(search=stage, connections=size, rate=rate, stop_rate=1) for stage, size, rate in tried
        )
        searches.append(CapacitySearch(kind="found", c0=table["c0"], start=None, steps=steps, overflow="refused"))
    campaign = campaign_of("nat44", connection_tracking_table_capacity={"start": table["c0"], "maximum": 10**7})
    run = run_of(campaign, "connection_tracking_table_capacity")
    goal = {"alpha": 1, "beta": "1/5", "gamma": "2/5", "resolution": 1, "rate_resolution": None, "maximum": 10**7}
    return document_of(campaign, [result_of(campaign, run, **goal, repetitions=tuple(searches))])


def delay_document(table: dict[str, Any]) -> ResultDocument:
    """Return one document with one load."""
    campaign = campaign_of(table["technology"], delay={"load": table["load"]})
    series = tuple(_series(table, direction) for direction in ("forward", "reverse"))
    point = DelayPoint(
        frames_per_second=table["load"], share=None, throughput=None, throughput_limited_by=None,
        repetitions=table["repetitions"], tester_limited=0, series=series,
    )  # fmt: skip
    run = run_of(campaign, "delay", connections=4_000_000 if campaign.technology.is_stateful else None)
    return document_of(campaign, [result_of(campaign, run, duration_ns=60 * SECOND, points=(point,))])


def _series(table: dict[str, Any], direction: OneWay) -> DelaySeries:
    times, printed = table["repetitions"], table[direction]
    figures = {
        name: Figure.of(values_with(low, Fraction(middle), high, times))
        for name, (low, middle, high) in printed.items()
    }
    whole = Figure.of((20_000,) * times)
    latency = pdv = None
    if "typical_ns" in figures:
        tags = {"first_tag_ns": 60 * SECOND, "tags": (50_000,) * times, "tags_lost": (0,) * times}
        latency = Latency(**tags, **figures)
    if "pdv_ns" in figures:
        pdv = DelayVariation(**figures, p999_offered_ns=whole)
    nothing = dict.fromkeys(("undelivered", "negative", "lateness_max_ns"), (0,) * times)
    return DelaySeries(
        direction=direction,
        class_="foreground",
        offered=(10**6,) * times,
        samples=(10**6,) * times,
        **nothing,
        delay_ns=dict.fromkeys(DELAY_FIGURES, whole),
        latency=latency,
        pdv=pdv,
        ipdv=None,
        hdr="",
    )
