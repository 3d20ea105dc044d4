"""Testers opened on gateways in namespaces, and trials whose counts can be believed however busy the machine is."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tests.system.machine import gatemark, nothing_compared

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.campaign.runner import run_single_trial
from gatemark.config.model import Campaign
from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.recipe import complete_campaign
from gatemark.results.toml_text import to_toml
from gatemark.tester import Equipment, Tester, open_tester, prepare
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import NANOSECONDS_PER_SECOND

ATTEMPTS = 20
"""How often a trial is made until the Tester offered and took everything: a busy machine spoils half of them."""
LOAD, SENDING_NS = 10_000, 200_000_000
FRAMES = LOAD * SENDING_NS // NANOSECONDS_PER_SECOND
"""Of `OpenBed.trial`: frames/s, its length, and frames in each direction."""
LASTING_NS = 500_000_000
"""Of trials whose losses are explained: long enough for several gaps, and for an overload in several moments."""
QUICK = {"duration": f"{SENDING_NS}ns", "settle": "0s", "learn": "50ms", "drain": "100ms", "rest": "0s"}
PATIENT = {"retries": 20, "lateness_max": "5s"}
"""Whatever the other programs of this machine do to the sender's timing, counts stay comparable.

Where they take a CPU for half of the time, about every second trial ends late and is invalid.
"""


def netns_document(recipe: str | Path, **tables: Any) -> dict[str, Any]:
    """Return a campaign of a recipe with short waits; tables replace those of the default.

    Links of 1500 octets in place of the jumbo frames of the recipes: ports open in half of the time.
    """
    sides = {side: {"mtu": 1500, **tables.pop(side, {})} for side in ("left", "right")}
    testbed = {"kind": "netns", "recipe": str(recipe)}
    return {"testbed": testbed, **sides, "trial": QUICK, "validity": PATIENT, **tables}


def netns_campaign(recipe: str | Path, **tables: Any) -> Campaign:
    """Return such a campaign, of a single frame loss."""
    return complete_campaign(campaign_from_dict({"frame_loss": {"rates": ["10k"]}, **netns_document(recipe, **tables)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBed:
    """A Tester on a gateway made by a recipe."""

    tester: Tester
    bed: NetnsTestBed

    def in_gateway(self, *command: str) -> str:
        """Run a command where the gateway is."""
        done = subprocess.run(
            self.bed.kernel.places[0].command(*command), capture_output=True, text=True, timeout=30, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def interface(self, side: str) -> str:
        """Return the gateway's interface of a side."""
        return self.bed.gateway.interfaces[side]

    @contextlib.contextmanager
    def rules(self, *rules: str, hook: str = "postrouting", gateway: int = 0) -> Iterator[None]:
        """Load nftables rules into a chain of a gateway, the last of postrouting or the first of another hook.

        They are removed at the end.
        """
        lines = "\n".join(f"    {rule}" for rule in rules)
        priority = 300 if hook == "postrouting" else -300  # Jool takes packets out of prerouting
        chain = f"  chain planted {{\n    type filter hook {hook} priority {priority}; policy accept;\n{lines}\n  }}"
        with self.table(f"table inet planted {{\n{chain}\n}}\n", gateway=gateway):
            yield

    @contextlib.contextmanager
    def table(self, text: str, *, gateway: int = 0) -> Iterator[None]:
        """Load nftables tables into a gateway, counted from the left; they are removed at the end, a recipe's stay."""
        inside = self.bed.gateway.gateways[gateway].place.command("nft")
        done = subprocess.run([*inside, "-f", "-"], input=text, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{text}: {done.stderr}"
        try:
            yield
        finally:
            for family, name in re.findall(r"(?m)^table (\w+) (\w+)", text):
                subprocess.run(
                    [*inside, "delete", "table", family, name], stdin=subprocess.DEVNULL, check=True, timeout=30
                )

    def trial(self, *, frames_per_second: int = LOAD, duration_ns: int = SENDING_NS) -> TrialRecord:
        """Make one trial of the campaign's first cell."""
        return run_single_trial(
            self.tester.campaign,
            cells_of(self.tester.campaign)[0],
            self.tester.engine,
            frames_per_second=frames_per_second,
            duration_ns=duration_ns,
            can=self.bed.can,
        )


@contextlib.contextmanager
def open_bed(campaign: Campaign, log: Path | None = None) -> Iterator[OpenBed]:
    """Make the test bed of a campaign and open a Tester on it."""
    equipment = Equipment()
    bed, complete = prepare(campaign, equipment)
    assert isinstance(bed, NetnsTestBed)
    with open_tester(complete, bed, equipment, log=log) as tester:
        yield OpenBed(tester=tester, bed=bed)


class KeptBed:
    """A bed that stays open until a test wants another one, or none: beds work on the same CPUs."""

    def __init__(self, campaign_of: Callable[[str], Campaign]) -> None:
        """`campaign_of` returns the campaign of a bed by its name."""
        self._campaign_of = campaign_of
        self._open = contextlib.ExitStack()
        self._name, self._bed = "", cast(OpenBed, None)

    def get(self, name: str) -> OpenBed:
        """Return the bed of a name; it is opened if it is not the one that is."""
        if name != self._name:
            self.close()
            self._bed = self._open.enter_context(open_bed(self._campaign_of(name)))
            self._name = name
        return self._bed

    def close(self) -> None:
        """Close what is open."""
        self._name = ""
        self._open.close()


def check_series(document: Mapping[str, Any], vary: str, folder: Path) -> None:
    """Run a series of two columns: a campaign, and what varies as TOML; both must be measured."""
    file, output = folder / "series.toml", folder / "series"
    file.write_text(f"{to_toml(document)}\n[[vary]]\n{vary}\n")
    ended = gatemark("run", file, "--output", output)
    assert ended.status in (0, 1), ended
    series = json.loads((output / "series.json").read_text())
    assert [column["outcome"] for column in series["columns"]] == ["measured"] * 2


def faults(counts: Counts) -> dict[str, int]:
    """Return the reasons that were counted."""
    return {reason: count for reason, count in counts.faults.items() if count}


def valid_of(records: list[TrialRecord]) -> list[TrialRecord]:
    """Return the trials that say something about the gateway; where there is none, each says why."""
    valid = [record for record in records if record.verdict is not None]
    if not valid:
        assert records and all(record.validity.reasons for record in records)
        nothing_compared("no valid trial")
    return valid


BURST_FRAMES_MAX = 800
"""What is sent at once to make up for lateness fits into a gateway's queue of 1000 frames."""


def lost_nothing_itself(record: TrialRecord) -> bool:
    """Whether counts are the gateway's: all was offered in time, nothing dropped here, nobody held it up.

    They may still be those of test phase 1, if the trial is invalid.
    """
    report: TrialReport = record.report
    return (
        record.suspicion is None
        and sum(d.lateness_max_ns * d.frames_per_second for d in report.directions) < BURST_FRAMES_MAX * 10**9
        and not any(record.testbed_drops.values())
        and not any(count for port in report.ports.values() for count in port.own_drops.values())
        and all(counts.offered == counts.intended for _, _, counts in report.counts())
        and not any(direction.gave_up for direction in report.directions)
    )


def report_of(
    bed: OpenBed,
    plant: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    *,
    is_wanted: Callable[[TrialReport], bool] = lambda _: True,
    **asked: int,
) -> TrialReport:
    """Make a trial as `asked` until its counts are the gateway's and wanted; plant a fault again each time."""
    for _ in range(ATTEMPTS):
        with plant():
            record = bed.trial(**asked)
        if record.validity.valid and lost_nothing_itself(record) and is_wanted(record.report):
            return record.report
    raise AssertionError(f"no trial of {ATTEMPTS} counts: {record.verdict} {record.validity.reasons}")


RELAYED_LOAD, RELAYED_FRAMES = 2_000, 500
"""Frames/s and frames in each direction of `relayed`."""


def relayed(
    bed: OpenBed, plant: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
) -> TrialReport:
    """Make a trial in which a relay that is a process had the CPU for every frame; plant a fault again each time."""

    def lost_none(report: TrialReport) -> bool:
        return not any(counts.lost for _, _, counts in report.counts())

    duration_ns = RELAYED_FRAMES * NANOSECONDS_PER_SECOND // RELAYED_LOAD
    return report_of(bed, plant, is_wanted=lost_none, frames_per_second=RELAYED_LOAD, duration_ns=duration_ns)


def relayed_with(bed: OpenBed, which: str, change: str) -> tuple[Counts, int]:
    """Make such a trial in one direction while nftables does `change` to frames; return how many it changed, too."""
    changed = 0

    @contextlib.contextmanager
    def planted() -> Iterator[None]:
        nonlocal changed
        with bed.rules(f"{which} counter {change}"):
            yield
            listed = bed.in_gateway("nft", "list", "chain", "inet", "planted", "planted")
            (count,) = re.findall(r"counter packets (\d+)", listed)
            changed = int(count)

    ((_, _, counts),) = relayed(bed, planted).counts()
    assert changed
    return counts, changed


def check_relayed_whole(campaign: Campaign) -> None:
    """Check that every frame of a mix of halves comes out right, both ways."""
    with open_bed(campaign) as bed:
        report = relayed(bed)
    counted = {(way, group): (counts.received, faults(counts)) for way, group, counts in report.counts()}
    assert counted == {
        (way, group): (RELAYED_FRAMES // 2, {})
        for way in ("forward", "reverse")
        for group in ("foreground", "background")
    }
