"""The figures as a table that fits a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.cases import GROUPS, Group

UNITS = {"ratio": "x", "cycles": "cycles"}
RATES = ("p50", "p99", "p99.9", "p99.99", "max")


def table(result: dict[str, Any]) -> str:
    """Return the whole text of a result."""
    lines = [*_head(result)]
    if result["cases"]:
        lines += ["", f"{'case':<46}{'cycles/frame':>13}{'spread':>17}{'Mframes/s':>11}{'ratio':>7}{'spread':>15}  bar"]
    for group in GROUPS:
        rows = [row for row in result["cases"] if row["group"] == group.name]
        if rows:
            lines += ["", f"{group.name}: {group.about}", *_partners(result, group), *map(_row, rows)]
    if result["pacing"]:
        lines += list(_pacing(**result["pacing"]))
    return "\n".join(lines) + "\n"


def _head(result: dict[str, Any]) -> Iterator[str]:
    machine, noise = result["machine"], result["noise"]
    place = " of a hypervisor" if machine["hypervisor"] else ""
    yield f"gatemark {machine['commit']}, {result['date']}, {machine['compiler']}, Linux {machine['kernel']}"
    yield f"on {machine['cpu']}, {len(machine['cpus'])} CPUs{place}"
    yield (
        f"A cycle is one of the constant-rate counter at {machine['ticks_per_second'] / 1e9:.3f} GHz. Median of "
        f"{result['runs']} runs; spread from lowest to highest."
    )
    if machine["testpmd"]:
        yield f"Ratio: to testpmd of DPDK {machine['testpmd']}, the first line above the cases, just before and after."
        yield "A bar is undecided if the middle half of the rounds lies on both sides of it."
    yield (
        f"The machine was {'quiet' if noise['quiet'] else 'NOISY'}: {noise['steal_share']:.2%} stolen, up to "
        f"{noise['lost_share_max']:.2%} lost in gaps, the longest {noise['longest_gap_ns'] / 1e6:.3f} ms."
        + ("" if noise["quiet"] else " Trust ratios and lowest figures.")
    )


def _partners(result: dict[str, Any], group: Group) -> Iterator[str]:
    for other in group.partners:
        if other in result["partners"]:
            partner = result["partners"][other]
            yield f"  {'testpmd ' + other:<44}{_cycles(partner)}{partner['mframes_per_second']:>11.1f}"


def _cycles(row: dict[str, Any]) -> str:
    cycles = row["cycles"]
    return f"{cycles['median']:>13.1f}{_spread(cycles, 1):>17}"


def _spread(figures: dict[str, float], places: int) -> str:
    return f"{figures['min']:.{places}f} - {figures['max']:.{places}f}"


def _row(row: dict[str, Any]) -> str:
    ratio = f"{row['ratio']['median']:>7.2f}{_spread(row['ratio'], 2):>15}" if row["ratio"] else " " * 22
    figures = f"{_cycles(row)}{row['mframes_per_second']:>11.1f}{ratio}"
    return f"  {row['name']:<44}{figures}  {_bar(row['bar'] or {})}".rstrip()


def _bar(bar: dict[str, Any]) -> str:
    return ", ".join(f"{value['limit']:.4g} {UNITS[form]}: {value['verdict']}" for form, value in bar.items())


def _pacing(cpu: dict[str, Any], rates: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "pacing on null: between two frames, actual less intended time, either sign; and lateness of each frame"
    yield (
        f"  A program that only looks at the clock there lost {cpu['share_lost']:.2%} in {cpu['gaps']:,} "
        f"gaps above {_time(cpu['gaps_over_ns'] + 1)}, the longest {_time(cpu['longest_gap_ns'])}."
    )
    yield (
        f"  {'frames/s':>10}  {'':<12}"
        + "".join(f"{name:>11}" for name in RATES)
        + "   sent within 1 us   alone in a burst"
    )
    for row in rates:
        alone = row["bursts"].get("1", 0) / row["frames"]
        for label, key in (("gap error", "gap_error_ns"), ("lateness", "lateness_ns")):
            rest = f"{row['share_within_1us']:>18.3%}{alone:>19.2%}" if key == "lateness_ns" else ""
            rate = f"{row['frames_per_second']:>10,}" if key == "gap_error_ns" else " " * 10
            yield f"  {rate}  {label:<12}" + "".join(f"{_time(row[key][name]):>11}" for name in RATES) + rest


def _time(ns: int) -> str:
    return f"{ns} ns" if ns < 10_000 else f"{ns / 1000:.1f} us" if ns < 10_000_000 else f"{ns / 1e6:.1f} ms"
