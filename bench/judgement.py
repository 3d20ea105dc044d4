"""How often `gatemark compare` is right: as root, `.venv/bin/python -m bench.judgement`.

A router with chains of so many nftables rules is compared with the same router with the first number of rules, and with
itself, in turn: each value of each side is a short campaign of its own, made in a round with those of all other sides.
It tells how often each was shown to be worse. `--json FILE` writes all figures.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from bench.output import columns, command_line, progress, time_left, write_json
from gatemark.compare.run import compare_folders

AGAIN = "the same"
CONDITION = "throughput worse than 5%"
CAMPAIGN = """repetitions = 1

[testbed]
kind = "netns"
recipe = "{recipe}"

[traffic]
direction = ["forward"]
frame_sizes = {{family = "ipv4", octets = [64]}}

[trial]
duration = "100ms"
settle = "0s"
learn = "20ms"
drain = "50ms"
rest = "0s"

[validity]
retries = 20

[throughput]
resolution = "2%"
search_duration = "100ms"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison of a side with the first one."""

    side: str
    first: tuple[float | None, ...]
    """Throughputs of the first side, frames/s."""
    values: tuple[float | None, ...]
    ratio: float | None
    low: float | None
    high: float | None
    judgement: str
    is_condition_met: bool
    reason: str | None
    """Why it could not be judged."""


def write_campaign(place: Path, rules: int) -> Path:
    """Write a campaign of a router with a chain of rules that no frame matches, and its recipe."""
    built_in = (resources.files("gatemark.dut") / "recipes" / "linux-router4.toml").read_text(encoding="utf-8")
    lines = [f"ip saddr 203.0.{number // 256}.{number % 256} drop" for number in range(rules)]
    chain = ["table ip bench {", "chain forward {", "type filter hook forward priority 0;", *lines, "}", "}"]
    head, commands, rest = built_in.partition("[commands]\n")
    assert commands, "the recipe has commands"
    more = [
        "[files]",
        '"rules.nft" = """',
        *chain,
        '"""',
        "",
        "[programs]",
        'nft = "nftables"',
        "",
        "[commands]",
        'setup = ["nft -f rules.nft"]',
    ]
    folder = place / f"{rules}-rules"
    folder.mkdir()
    recipe = folder / "recipe.toml"
    recipe.write_text(head.replace('"linux-router4"', '"router-with-rules"') + "\n".join(more) + "\n" + rest, "utf-8")
    campaign = folder / "router.toml"  # its name is the same on all sides
    campaign.write_text(CAMPAIGN.format(recipe=recipe), "utf-8")
    return campaign


def measure(campaign: Path, output: Path) -> None:
    """Measure a campaign; a figure that is not the gateway's is told by its comparison."""
    command = (Path(sys.executable).with_name("gatemark"), "run", campaign, "--output", output)
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        sys.exit(f"{campaign.parent.name}: {ended.stderr.strip() or ended.stdout.strip()}")


def compare(first: Path, second: Path, name: str) -> Compared:
    """Compare both as `gatemark compare FIRST SIDE --fail-if CONDITION` does."""
    document = compare_folders([first, second], conditions=[CONDITION])
    (row,) = [row for row in document.quantities if row.headline]
    (comparison,) = row.comparisons
    first_side, second_side = row.figures
    return Compared(
        side=name,
        first=first_side.values,
        values=second_side.values,
        ratio=comparison.ratio,
        low=comparison.low,
        high=comparison.high,
        judgement=comparison.judgement,
        is_condition_met=document.conditions[0].outcome == "met",
        reason=comparison.reason or first_side.reason or second_side.reason,
    )


def comparisons(rules: Sequence[int], count: int, campaigns: int) -> Iterator[Compared]:
    """Yield all comparisons; tells on standard error how far it is."""
    began, done, total = time.monotonic(), 0, count * campaigns * (len(rules) + 1)
    with tempfile.TemporaryDirectory(prefix="judgement-") as folder:
        place = Path(folder)
        files = {f"{number} rules": write_campaign(place, number) for number in rules}
        first = next(iter(files))
        sides = {first: files[first], AGAIN: files[first]} | files
        for number in range(count):
            for turn in range(campaigns):
                for name, campaign in sides.items():
                    progress(f"campaign {done + 1} of {total}{time_left(began, done, total)}")
                    measure(campaign, place / f"comparison-{number}" / name / str(turn))
                    done += 1
            all_of = place / f"comparison-{number}"
            yield from (compare(all_of / first, all_of / name, name) for name in sides if name != first)


def table(results: Sequence[Compared], first: str) -> str:
    """Write for each side how often it was shown to be worse, better, or could not be judged."""
    heads = (f"against {first}", "ratio, median", "of all", "worse", "better", "not judged", "--fail-if met", "of")
    return columns(
        heads, [_row(side, [row for row in results if row.side == side]) for side in _sides(results)], numbers_from=1
    )


def _sides(results: Sequence[Compared]) -> list[str]:
    return list(dict.fromkeys(row.side for row in results))


def _row(side: str, rows: Sequence[Compared]) -> tuple[str, ...]:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    judged = [row.judgement for row in rows]
    return (
        side,
        f"{statistics.median(ratios):.2f}" if ratios else "-",
        f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "-",
        *(str(judged.count(judgement)) for judgement in ("worse", "better", "not_judged")),
        str(sum(row.is_condition_met for row in rows)),
        str(len(rows)),
    )


def main() -> None:
    """Print the table; write JSON if asked for."""
    parser = command_line(__doc__, whole=True)
    parser.add_argument("--rules", type=int, nargs="+", default=[1, 100, 1000], metavar="N", help="lengths of chains")
    parser.add_argument("--comparisons", type=int, default=10, metavar="N", help="of each (default 10)")
    parser.add_argument("--campaigns", type=int, default=5, metavar="N", help="values of a side (default 5)")
    wanted = parser.parse_args()
    results: list[Compared] = []
    for compared in comparisons(wanted.rules, wanted.comparisons, wanted.campaigns):
        results.append(compared)
        write_json(wanted.json, [asdict(row) for row in results])
    progress("")
    print(table(results, f"{wanted.rules[0]} rules"))


if __name__ == "__main__":
    main()
