"""Samples of the gateway's host, taken by a program that runs there and needs no connection while frames are sent.

One command starts it. It appends a sample to a file of its own each second, for as long as it was told, and ends when
the file is removed or its time is over, whatever becomes of the Tester. The file is read after each trial: by one
command, or without any where it lies on this machine. What was in it is gone then.

A sample is text between two lines, so that one which is not whole is noticed. It has the kernel's uptime before and
after the times of the CPUs: nobody sets that clock. A host without `/proc` says its time of day in seconds.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatemark.dut.base import HostSample, InterruptSample, ProcessSample, TelemetryReading
from gatemark.dut.gateway_host import IDLE_COLUMNS
from gatemark.dut.shell import Run
from gatemark.errors import TestBedError
from gatemark.facts import SamplingFacts
from gatemark.harmless import whole_number

if TYPE_CHECKING:
    from gatemark.config.tables import TelemetryModel

WHERE = "gateway.telemetry"
SECOND_NS = 1_000_000_000
MARGIN_SECONDS = 60.0
"""How much longer than the trial the sampler lasts."""
LIFE_SECONDS_MIN = 600.0
"""It serves many short trials."""
OWN_SECONDS_MAX = 5
"""A command of the user that takes longer is ended, where the host has timeout(1)."""
COST_SAMPLES = 50
COST_SAMPLES_OWN = 10
"""How many samples are taken to learn what one costs; fewer where commands of the user may be slow."""
FILE_OCTETS_MAX = 4 << 20
"""A file on this machine is emptied when it is longer: what was read of it is not needed."""
SLOW_NS = SECOND_NS // 10
"""A sample during which more time than this went by has no one time."""
STALE_INTERVALS, STALE_NS = 5, 10 * SECOND_NS
DRIFT_PPM = 1000
"""How far the clocks of two machines may run apart."""
CARDS = "/sys/class/net/*/device"
UPTIME_STEP_NS = SECOND_NS // 100
DATE_STEP_NS = SECOND_NS

FUNCTIONS = r"""
LC_ALL=C; export LC_ALL
processes=
find_processes() {
  processes=
  [ -n "$names" ] || return 0
  for folder in /proc/[0-9]*; do
    { read -r name < "$folder/comm"; } 2> /dev/null || continue
    case $name in '' | *[!A-Za-z0-9_.:/+-]*) continue ;; esac
    case " $names " in *" $name "*) processes="$processes $folder/stat $folder/status" ;; esac
  done
}
find_interrupts() {
  interrupts=
  for device in $devices; do
    for entry in "$device"/msi_irqs/* "$device"/../virtio*/../msi_irqs/*; do
      case ${entry##*/} in '' | *[!0-9]*) continue ;; esac
      interrupts="$interrupts${interrupts:+|}${entry##*/}"
    done
  done
}
find_all() { find_processes; find_interrupts; }
own() {
  value=$($limited sh -euc "$2" 2> /dev/null < /dev/null) || value=
  number=$1
  set -f
  set -- $value
  set +f
  [ $# = 1 ] && [ ${#1} -lt 40 ] || set -- '?'
  printf 'own %s %s\n' "$number" "$1"
}
sample() {
  echo sample
  if [ -r /proc/uptime ]; then
    sed -E -n "
      /^ +CPU[0-9]/ { s/[^CPU0-9 ].*//; s/^ +/interrupts /; p; d; }
      /^ *[0-9]+:/ {
        /^ *($interrupts):/!d
        s/[^0-9: ].*//; s/ +/  /g; s/ 0 /./g; s/^ */interrupt /; p; d
      }
      /^cpu[0-9]/p; /^[0-9]/p; /^MemTotal/p; /^MemAvailable/p; /^VmRSS/p" \
      /proc/uptime /proc/stat ${interrupts:+/proc/interrupts} /proc/uptime \
      /proc/meminfo /proc/sys/net/netfilter/nf_conntrack_count $processes 2> /dev/null || :
  else
    echo "date $(date +%s)"
  fi
  commands
  echo end
}
if timeout -k 1 9 true 2> /dev/null; then limited='timeout -k 1 SECONDS'; else limited=; fi
"""
"""Defines `sample`, which prints one sample. `names` has the names of processes, `devices` is a pattern of the network
cards whose interrupts count, `commands` runs those of the user. Interrupts are printed without names, and a dot stands
for each CPU that never took one: with many queues and CPUs that is nearly all of them.
"""

LOOP = r"""
file=$1; interval=$2; left=$3; at=0
exec 3>> "$file" || exit 1
trap 'rm -f "$file"' EXIT
trap 'exit 0' HUP INT TERM
while [ "$left" -gt 0 ] && [ -e "$file" ]; do
  [ $((at % 10)) -ne 0 ] || find_all
  sample >&3
  sleep "$interval" || exit 1
  left=$((left - 1)); at=$((at + 1))
done
"""

START = r"""
umask 077
file=$(mktemp FOLDER/gatemark-telemetry.XXXXXX)
detached=
for word in setsid nohup; do
  if [ -z "$detached" ] && command -v $word > /dev/null 2>&1; then detached=$word; fi
done
ticks=$(getconf CLK_TCK 2> /dev/null) || ticks=
$detached sh -c SAMPLER sampler "$file" INTERVAL COUNT < /dev/null > /dev/null 2>&1 &
if [ -r /proc/uptime ]; then read -r up < /proc/uptime; else up="date $(date +%s)"; fi
printf '%s\n%s\n%s\n' "$file" "${ticks:-100}" "$up"
"""

READ = r"""
file=FILE
if [ -f "$file" ]; then
  find_all
  cat "$file"; : > "$file"
  last=$(sample)
  printf '%s\n' "$last"
  printf '%s\n' "$last" >> "$file"
else
  echo gone
fi
"""
"""The sample that it takes itself ends what is read, and begins what is read the next time."""

COST = r"""
find_all
left=COUNT
times
while [ "$left" -gt 0 ]; do sample > /dev/null; sleep 0; left=$((left - 1)); done
times
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anchor:
    """The difference of the host's clock and ours lies between these, as it was seen at a moment of our clock."""

    at_ns: int
    low_ns: int
    high_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A sampler that was started."""

    file: str
    ticks: int
    until_ns: int
    """When it ends by itself."""
    anchor: _Anchor


class HostSampler:
    """Samples one host. `run` brings commands there; `folder` is where its file is made, as a word of the shell.

    `cpus`: those that do the gateway's work; None for all of the host.
    `file_is_local`: the host is this machine, and its file is read as it is, without a command.
    `counts_interrupts`: the network cards of the host are the gateway's.
    """

    def __init__(
        self,
        run: Run,
        asked: TelemetryModel,
        *,
        cpus: Collection[int] | None,
        folder: str = '"${TMPDIR:-/tmp}"',
        file_is_local: bool = False,
        counts_interrupts: bool = False,
    ) -> None:
        self._run = run
        self._asked = asked
        self._cpus = None if cpus is None else frozenset(cpus)
        self._folder = folder
        self._local = file_is_local
        self._devices = CARDS if counts_interrupts else ""
        self._running: _Running | None = None
        self._left: list[str] = []
        """Files of samplers that were lost; one that is removed ends its sampler, if there still is one."""
        self._why: str | None = None
        self._offset = 0

    def start(self, seconds: float) -> None:
        """See that a sampler runs that lasts for a trial of `seconds`. What fails is told by `read`."""
        needed_ns = time.monotonic_ns() + int((seconds + MARGIN_SECONDS) * SECOND_NS)
        if self._running is not None and self._running.until_ns >= needed_ns:
            return
        self.stop()
        life_s = max(seconds + 2 * MARGIN_SECONDS, LIFE_SECONDS_MIN)
        try:
            self._running, self._why = self._started(life_s), None
        except TestBedError as error:
            self._why = error.problems[0].what

    def _started(self, life_s: float) -> _Running:
        interval_s = self._asked.interval_ns / SECOND_NS
        words = {
            "FOLDER": self._folder,
            "SAMPLER": shlex.quote(self._functions() + LOOP),
            "INTERVAL": f"{interval_s:g}",
            "COUNT": str(math.ceil(life_s / interval_s)),
        }
        began_ns = time.monotonic_ns()
        output = self._run(_filled(START, words), where=WHERE)
        ended_ns = time.monotonic_ns()
        lines = output.strip().splitlines()
        ticks = whole_number(lines[1]) if len(lines) == 3 else None
        if ticks is None or ticks < 0 or not lines[0].startswith("/") or _clock(lines[2]) is None:
            raise TestBedError(what=f"the sampler did not start: {output.strip()[-200:]!r}", where=WHERE, fix="")
        at_ns, step_ns = _clock(lines[2]) or (0, 0)
        self._offset = 0
        return _Running(
            file=lines[0],
            ticks=ticks or 100,
            until_ns=began_ns + int(life_s * SECOND_NS),
            anchor=_anchor(at_ns, step_ns, began_ns, ended_ns),
        )

    def read(self) -> TelemetryReading:
        """Return the samples since the last call; without any it says why."""
        running = self._running
        if running is None:
            return TelemetryReading(reason=self._why or "the sampler was not started")
        began_ns = time.monotonic_ns()
        try:
            text = self._read_file(running) if self._local else self._read_by_command(running)
        except (TestBedError, OSError) as error:
            self.forget()
            what = error.problems[0].what if isinstance(error, TestBedError) else str(error.strerror)
            return TelemetryReading(reason=f"the samples were not read: {what}")
        ended_ns = time.monotonic_ns()
        if text is None:
            self.forget()
            return TelemetryReading(reason="the sampler is gone: something ended it, or the host booted")
        samples, damaged = self._parsed(running, text)
        at_reading, _ = ([], 0) if self._local else self._parsed(running, text[text.rfind("sample\n") :])
        if began_ns - running.anchor.at_ns > self._stale_ns and len(samples) == len(at_reading):
            self.stop()
            return TelemetryReading(reason="the sampler has ended", damaged=damaged)
        if not samples or not (at_reading or self._local):
            return TelemetryReading(reason="there was no whole sample", damaged=damaged)
        now = (
            _anchor(at_reading[-1].ended_ns, at_reading[-1].step_ns, began_ns, ended_ns)
            if at_reading
            else _local_anchor()
        )
        return self._placed(running, samples, damaged, now)

    @property
    def _stale_ns(self) -> int:
        """A sampler that lives has written within this time, however busy its host is."""
        return STALE_INTERVALS * self._asked.interval_ns + STALE_NS

    def _parsed(self, running: _Running, text: str) -> tuple[list[ParsedSample], int]:
        return parse_samples(text, ticks=running.ticks, names=tuple(self._asked.commands))

    def _placed(
        self, running: _Running, samples: Sequence[ParsedSample], damaged: int, now: _Anchor
    ) -> TelemetryReading:
        """Return samples with times of our clock; none if both clocks do not agree with what was seen before."""
        drift_ns = (now.at_ns - running.anchor.at_ns) * DRIFT_PPM // 10**6
        low = max(now.low_ns, running.anchor.low_ns - drift_ns)
        high = min(now.high_ns, running.anchor.high_ns + drift_ns)
        if low > high:
            self.stop()
            return TelemetryReading(reason="the host's clock was set, or one of the machines was suspended")
        self._running = replace(running, anchor=_Anchor(at_ns=now.at_ns, low_ns=low, high_ns=high))
        placed = tuple(self._of_gateway(sample) for sample in _in_order(samples, (low + high) // 2))
        return TelemetryReading(
            samples=placed,
            processes=self._asked.processes,
            damaged=damaged + len(samples) - len(placed),
            uncertainty_ns=(high - low) // 2 + samples[-1].step_ns,
        )

    def _of_gateway(self, sample: HostSample) -> HostSample:
        """Return a sample with the CPUs of the gateway alone."""
        if self._cpus is None:
            return sample
        return replace(sample, cpus={cpu: idle for cpu, idle in sample.cpus.items() if cpu in self._cpus})

    def stop(self) -> None:
        """Have the sampler end within its interval; a second call does nothing."""
        self.forget()
        if self._left:
            with contextlib.suppress(TestBedError):  # then it ends by itself
                self._run(f"rm -f {shlex.join(self._left)}", where=WHERE)
            self._left.clear()

    def forget(self) -> None:
        """Take note that the sampler may be gone: the host has booted, for example. The next trial gets a new one."""
        if self._running is not None:
            self._left.append(self._running.file)
        self._running = None

    def cost(self) -> SamplingFacts:
        """Take some samples at once and return what one costs the host: CPU time of the sampler and all it starts."""
        count = COST_SAMPLES_OWN if self._asked.commands else COST_SAMPLES
        script = self._functions() + COST.replace("COUNT", str(count))
        cpu_ns = None
        with contextlib.suppress(TestBedError):
            cpu_ns = parse_cost(self._run(script, where=WHERE), count)
        return SamplingFacts(interval_ns=self._asked.interval_ns, samples=count, cpu_ns=cpu_ns)

    def _functions(self) -> str:
        calls = [f"own {number} {shlex.quote(text)}" for number, text in enumerate(self._asked.commands.values())]
        names = shlex.quote(" ".join(self._asked.processes))
        commands = "commands() {\n  :\n" + "".join(f"  {line}\n" for line in calls) + "}\n"
        return f"names={names}\ndevices={shlex.quote(self._devices)}\n{commands}" + FUNCTIONS.replace(
            "SECONDS", str(OWN_SECONDS_MAX)
        )

    def _read_by_command(self, running: _Running) -> str | None:
        script = self._functions() + _filled(READ, {"FILE": shlex.quote(running.file)})
        text = self._run(script, where=WHERE)
        return None if text.strip() == "gone" else text

    def _read_file(self, running: _Running) -> str | None:
        path = Path(running.file)
        if not path.exists():
            return None
        with path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        whole = content.rfind(b"\nend\n") + len(b"\nend\n")
        content = content[: whole if whole >= len(b"\nend\n") else 0]
        self._offset += len(content)
        if self._offset > FILE_OCTETS_MAX:
            os.truncate(path, 0)
            self._offset = 0
        return content.decode(errors="replace")


def _filled(script: str, words: Mapping[str, str]) -> str:
    """Return a script with words in place of their names, none of which is looked for in another."""
    return re.sub("|".join(words), lambda match: words[match[0]], script)


def _anchor(host_ns: int, step_ns: int, began_ns: int, ended_ns: int) -> _Anchor:
    """The host's clock, which steps, was read between two moments of ours."""
    return _Anchor(at_ns=ended_ns, low_ns=host_ns - ended_ns, high_ns=host_ns + step_ns - began_ns)


def _local_anchor() -> _Anchor:
    now_ns = time.monotonic_ns()
    offset_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - now_ns
    return _Anchor(at_ns=now_ns, low_ns=offset_ns - 10**6, high_ns=offset_ns + 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSample:
    """A whole sample, with times of the host's clock."""

    began_ns: int
    ended_ns: int
    step_ns: int
    content: Mapping[str, Any]
    """What else a `HostSample` has."""

    def placed(self, offset_ns: int) -> HostSample:
        """Return the sample with a time of our clock, of which the host's is ahead."""
        return HostSample(
            at_ns=(self.began_ns + self.ended_ns) // 2 - offset_ns,
            error_ns=(self.ended_ns - self.began_ns) // 2 + self.step_ns,
            **self.content,
        )


def _in_order(samples: Sequence[ParsedSample], offset_ns: int) -> Iterator[HostSample]:
    """Yield the samples but those whose times go backwards, or that took too long to have one time."""
    latest_ns = -1
    for sample in samples:
        if sample.began_ns >= latest_ns and sample.ended_ns - sample.began_ns <= SLOW_NS:
            latest_ns = sample.ended_ns
            yield sample.placed(offset_ns)


def parse_samples(text: str, *, ticks: int, names: Sequence[str] = ()) -> tuple[list[ParsedSample], int]:
    """Read samples; return those that are whole, and how many of the others there are.

    A torn one at the begin or at the end was being written when the file was read; it is not counted. `ticks`: steps of
    a CPU's times a second; `names`: those of the user's commands.
    """
    samples, damaged = [], 0
    blocks = re.split(r"(?m)^sample$", text)
    for number, block in enumerate(blocks[1:], start=1):
        body, ended, rest = block.strip("\n").rpartition("end")
        is_last = number == len(blocks) - 1
        sample = _sample(body.splitlines(), ticks, names) if ended and not rest and body.endswith("\n") else None
        if sample is not None:
            samples.append(sample)
        elif not is_last or (ended and not rest):
            damaged += 1
    return samples, damaged


NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
LINES = {
    "uptime": re.compile(r"(?P<seconds>\d{1,12})\.(?P<hundredths>\d\d) \d+\.\d\d"),
    "date": re.compile(r"date (?P<seconds>\d{1,12})"),
    "cpu": re.compile(r"cpu(?P<cpu>\d{1,6})(?P<columns>(?: \d{1,20}){7,})"),
    "memory": re.compile(r"(?P<key>MemTotal|MemAvailable): *(?P<kilobytes>\d{1,20}) kB"),
    "connections": re.compile(r"(?P<count>\d{1,20})"),
    "process": re.compile(r"(?P<pid>\d{1,10}) \((?P<name>.*)\) (?P<columns>\S(?: -?\d{1,20}){20,})"),
    "resident": re.compile(r"VmRSS:\s*(?P<kilobytes>\d{1,20}) kB"),
    "own": re.compile(rf"own (?P<number>\d{{1,6}}) (?P<value>\?|{NUMBER})"),
    "interrupt": re.compile(r"interrupts?\b.*"),
}
"""What a line of a sample may be. Any other makes the sample worthless: it is not known what is missing. No number
has more digits than a kernel counts with."""
PRINTED_MAX = 1e20
"""A command that prints more printed no number: its square must still be one."""
INTERRUPT_CPUS = re.compile(r"interrupts(?P<names>(?: +CPU\d{1,6})+) *")
INTERRUPT_COUNTS = re.compile(r"interrupt +(?P<number>\d{1,10}):(?P<counts>(?: *(?:\.|\d{1,20}(?!\d)))*) *")
USER_COLUMN, SYSTEM_COLUMN = 11, 12
"""Of `/proc/PID/stat` after the name, from the state on: CPU time in the process's own code and in the kernel's."""


def _sample(lines: Sequence[str], ticks: int, names: Sequence[str]) -> ParsedSample | None:
    """Read the lines of one sample; None if one of them is none."""
    times: list[tuple[int, int]] = []
    cpus: dict[int, int] = {}
    memory: dict[str, int] = {}
    connections: int | None = None
    processes: dict[int, ProcessSample] = {}
    printed: dict[str, float | None] = {}
    interrupts: list[str] = []
    pid = None
    tick_ns = SECOND_NS // ticks
    for line in lines:
        kind, match = next(((k, m) for k, p in LINES.items() if (m := p.fullmatch(line)) is not None), ("", None))
        if match is None:
            return None
        if kind in ("uptime", "date"):
            times.append(_clock_of(kind, match))
        elif kind == "cpu":
            columns = [int(column) for column in match["columns"].split()]
            cpus[int(match["cpu"])] = sum(columns[column] for column in IDLE_COLUMNS) * tick_ns
        elif kind == "memory":
            memory[match["key"]] = int(match["kilobytes"])
        elif kind == "connections":
            connections = int(match["count"])
        elif kind == "process":
            fields, pid = match["columns"].split(), int(match["pid"])
            ran_ns = (int(fields[USER_COLUMN]) + int(fields[SYSTEM_COLUMN])) * tick_ns
            processes[pid] = ProcessSample(name=match["name"], ran_ns=ran_ns)
        elif kind == "resident":
            if pid is None:
                return None
            processes[pid] = replace(processes[pid], resident_kilobytes=int(match["kilobytes"]))
        elif kind == "interrupt":
            interrupts.append(line)
        elif int(match["number"]) < len(names):
            value = math.inf if match["value"] == "?" else float(match["value"])
            printed[names[int(match["number"])]] = value if abs(value) < PRINTED_MAX else None
        else:
            return None
    if not times or len(times) > 2 or any(name not in printed for name in names):
        return None
    content = {
        "cpus": cpus,
        "memory_kilobytes": memory.get("MemTotal"),
        "available_kilobytes": memory.get("MemAvailable"),
        "connections": connections,
        "processes": processes,
        "printed": printed,
        "interrupts": _interrupts(interrupts),
    }
    (began_ns, step_ns), (ended_ns, _) = times[0], times[-1]
    return ParsedSample(began_ns=began_ns, ended_ns=ended_ns, step_ns=step_ns, content=content)


def _interrupts(lines: Sequence[str]) -> InterruptSample | None:
    """Read the lines of a sample about interrupts; None if there are none, or if one of them cannot be."""
    head = INTERRUPT_CPUS.fullmatch(lines[0]) if len(lines) > 1 else None
    cpus = [] if head is None else [int(name.removeprefix("CPU")) for name in head["names"].split()]
    taken: dict[int, dict[int, int]] = {}
    for line in lines[1:]:
        match = INTERRUPT_COUNTS.fullmatch(line)
        counts = [] if match is None else re.findall(r"\.|\d+", match["counts"])[: len(cpus)]
        if match is None or int(match["number"]) in taken or len(counts) < len(cpus):
            return None
        by_cpu = ((cpu, 0 if count == "." else int(count)) for cpu, count in zip(cpus, counts, strict=True))
        taken[int(match["number"])] = {cpu: count for cpu, count in by_cpu if count}
    return InterruptSample(cpus=tuple(cpus), taken=taken) if cpus and len(set(cpus)) == len(cpus) else None


def _clock_of(kind: str, match: re.Match[str]) -> tuple[int, int]:
    """Return a time of the host's clock and its step, nanoseconds."""
    seconds = int(match["seconds"]) * SECOND_NS
    if kind == "date":
        return seconds, DATE_STEP_NS
    return seconds + int(match["hundredths"]) * UPTIME_STEP_NS, UPTIME_STEP_NS


def _clock(line: str) -> tuple[int, int] | None:
    """Read the line with the host's clock that the start of the sampler prints; None if it is none."""
    for kind in ("uptime", "date"):
        if (match := LINES[kind].fullmatch(line)) is not None:
            return _clock_of(kind, match)
    return None


def parse_cost(output: str, samples: int) -> int | None:
    """Return the CPU time of one sample, nanoseconds, from what `times` of the shell printed before and after them."""
    times = re.findall(r"\b([0-9]{1,9})m([0-9]{1,9}(?:[.,][0-9]{1,9})?)s", output)
    if len(times) != 8:
        return None
    seconds = [int(minutes) * 60 + float(rest.replace(",", ".")) for minutes, rest in times]
    return max(0, round((sum(seconds[4:]) - sum(seconds[:4])) / samples * SECOND_NS))
