"""The program that samples a host: what it prints, how it is read, that it ends; and what damaged samples say."""

from __future__ import annotations

import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.config.tables import TelemetryModel
from gatemark.dut.base import InterruptSample, TelemetryReading
from gatemark.dut.shell import Shell
from gatemark.dut.telemetry import HostSampler, parse_cost, parse_samples
from gatemark.errors import HostConnectionError

SECOND = 10**9
TICK_NS = SECOND // 100
SAMPLE = """sample
1000.25 1900.00
cpu0 10 20 30 4000 500 6 7 8 0 0
cpu12 1 2 3 400 50 6 7 8 0 0
interrupts CPU0       CPU12      
interrupt 24: . 17  
interrupt 131:  250 . 
1000.27 1900.00
MemTotal:       24684092 kB
MemAvailable:   23347704 kB
1234
77 (a (b) c) S 1 77 77 0 -1 4194304 76 0 0 0 250 50 0 0 39 19 1 0 395 31 40 18 93 93 14
VmRSS:\t    1728 kB
own 0 12.5
own 1 ?
end
"""
NAMES = ("first", "second")


def later(seconds: int) -> str:
    return SAMPLE.replace("1000.2", f"{1000 + seconds}.2")


def asked(**keys: object) -> TelemetryModel:
    return TelemetryModel.model_validate({"interval": "100ms", **keys})


def alive(folder: Path) -> list[int]:
    """Processes of the sampler whose file is in a folder."""
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if f"{folder}/gatemark-telemetry.".encode() in words and b"\0sampler\0" in words:
            result.append(int(process.name))
    return result


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_sample_is_read() -> None:
    (sample,), damaged = parse_samples(SAMPLE, ticks=100, names=NAMES)
    assert damaged == 0
    placed = sample.placed(1000 * SECOND)
    assert (placed.at_ns, placed.error_ns) == (260_000_000, 20_000_000)
    assert placed.cpus == {0: 45 * SECOND, 12: 4_500_000_000}
    assert (placed.memory_kilobytes, placed.available_kilobytes, placed.connections) == (24684092, 23347704, 1234)
    (process,) = placed.processes.values()
    assert (process.name, process.ran_ns, process.resident_kilobytes) == ("a (b) c", 3 * SECOND, 1728)
    assert placed.printed == {"first": 12.5, "second": None}
    assert placed.interrupts == InterruptSample(cpus=(0, 12), taken={24: {12: 17}, 131: {0: 250}})


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1e308", "9" * 400])
def test_a_number_that_no_figure_can_be_made_of_is_none(value: str) -> None:
    (sample,), _ = parse_samples(SAMPLE.replace("own 0 12.5", f"own 0 {value}"), ticks=100, names=NAMES)
    assert sample.placed(0).printed == {"first": None, "second": None}


def test_a_host_without_proc_has_its_clock_and_commands() -> None:
    (sample,), damaged = parse_samples("sample\ndate 1700000000\nown 0 3\nend\n", ticks=100, names=("first",))
    assert damaged == 0 and sample.step_ns == SECOND
    assert sample.placed(0).printed == {"first": 3.0} and not sample.placed(0).cpus


@given(cut=st.tuples(st.integers(0, 3 * len(SAMPLE)), st.integers(0, 3 * len(SAMPLE))))
def test_of_a_torn_file_only_whole_samples_count(cut: tuple[int, int]) -> None:
    text = SAMPLE + later(1) + later(2)
    whole, _ = parse_samples(text, ticks=100, names=NAMES)
    result, damaged = parse_samples(text[min(cut) : max(cut)], ticks=100, names=NAMES)
    assert damaged == 0
    assert all(sample in whole for sample in result)


@pytest.mark.parametrize(
    "wrong",
    [
        "garbage",
        "cpu1 1 2",
        "cpuX 1 2 3 4 5 6 7 8",
        "cpu1 1 2 3 -4 5 6 7 8",
        "VmRSS: x kB",
        "MemAvailable: 12",
        "own 0 1 2",
        "own 7 1",
        "\ufffd\ufffd",
        "1000.28 1900.00",
        "own 0 nan",
        *(
            line.format("9" * 5000)
            for line in (
                "{}.25 1.00",
                "cpu1 1 2 3 4 {} 6 7 8",
                "cpu{} 1 2 3 4 5 6 7 8",
                "MemTotal: {} kB",
                "{}",
                "VmRSS: {} kB",
                "own {} 1",
                "{} (a) S 1 77 77 0 -1 4194304 76 0 0 0 250 50 0 0 39 19 1 0 395 31 40 18 93 93 14",
                "78 (a) S 1 77 77 0 -1 4194304 76 0 0 0 {} 50 0 0 39 19 1 0 395 31 40 18 93 93 14",
            )
        ),
    ],
    ids=lambda line: line[:12],
)
def test_a_sample_with_a_line_that_is_none_is_left_out_and_counted(wrong: str) -> None:
    damaged_sample = SAMPLE.replace("end\n", f"{wrong}\nend\n")
    result, damaged = parse_samples(SAMPLE + damaged_sample + later(2), ticks=100, names=NAMES)
    assert (len(result), damaged) == (2, 1)


@pytest.mark.parametrize(
    "line",
    [
        "interrupt 24: . 18",
        "interrupt 25: .",
        "interrupt 25: 1 -2",
        "interrupt 25: x",
        "interrupt x: . .",
        f"interrupt 25: . {10**20}",
        f"interrupt 25: . {'9' * 5000}",
        "interrupts CPU0 CPU12",
        "interrupt ",
    ],
)
def test_interrupts_that_cannot_be_cost_no_more_than_themselves(line: str) -> None:
    """A number twice, a CPU too few, what is no count: then none is known."""
    (sample,), damaged = parse_samples(SAMPLE.replace("end\n", f"{line}\nend\n"), ticks=100, names=NAMES)
    placed = sample.placed(0)
    assert (damaged, placed.interrupts, placed.connections) == (0, None, 1234)


@pytest.mark.parametrize("head", ["", "interrupts\n", "interrupts CPU0 CPU0\n", "interrupts CPU0 core12\n"])
def test_interrupts_without_the_cpus_that_took_them_are_not_known(head: str) -> None:
    text = SAMPLE.replace("interrupts CPU0       CPU12      \n", head)
    (sample,), damaged = parse_samples(text, ticks=100, names=NAMES)
    assert (damaged, sample.placed(0).interrupts) == (0, None)


def test_a_sample_without_a_commands_line_is_left_out() -> None:
    text = SAMPLE.replace("own 1 ?\n", "")
    assert parse_samples(text + later(1), ticks=100, names=NAMES)[1] == 1


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    parse_samples(text, ticks=100)
    parse_samples(f"sample\n{text}\nend\n", ticks=100)


def test_cost_is_all_cpu_time_of_shell_and_children() -> None:
    before, after = "0m0.01s 0m0.02s\n0m0.10s 0m0.20s\n", "0m0.02s 0m0.03s\n0m0.40s 1m0.40s\n"
    assert parse_cost(before + after, 50) == round((60.85 - 0.33) / 50 * SECOND)
    assert parse_cost("nothing", 50) is None
    assert parse_cost((before + after).replace("0m", "9" * 5000 + "m"), 50) is None


class Answers:
    """A host whose answers are given. NOW is its clock when it answers, NOW-3 what it was three seconds before."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, script: str, *, where: str, fix: str = "", seconds_max: float = 30) -> str:
        self.asked.append(script)
        if script.startswith("rm -f"):
            return ""
        answer = self.answers.pop(0)
        if answer == "lost":
            raise HostConnectionError(what="the connection was lost", where=where, fix="", began=True)
        now = math.floor(100 * (time.monotonic() + 500))
        return re.sub(r"NOW(-[0-9.]+)?", lambda match: f"{now / 100 + float(match[1] or 0):.2f} 1.00", answer)


def started(*answers: str) -> tuple[HostSampler, Answers]:
    host = Answers("/tmp/file\n100\nNOW\n", *answers)
    sampler = HostSampler(host, asked(), cpus=[1])
    sampler.start(1.0)
    return sampler, host


TAKEN = "sample\nNOW\ncpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3 40 5 6 7 8\nNOW\nend\n"


def test_samples_get_times_of_our_clock_and_only_the_gateways_cpus_count() -> None:
    began_ns = time.monotonic_ns()
    sampler, _ = started(TAKEN)
    reading = sampler.read()
    ended_ns = time.monotonic_ns()
    assert reading.reason is None
    (sample,) = reading.samples
    assert began_ns - reading.uncertainty_ns <= sample.at_ns <= ended_ns + reading.uncertainty_ns
    assert sample.cpus == {1: 450_000_000}
    assert 10_000_000 <= reading.uncertainty_ns <= 15_000_000 + ended_ns - began_ns


def test_one_sampler_serves_many_trials() -> None:
    sampler, host = started(TAKEN, TAKEN)
    sampler.read()
    sampler.start(1.0)
    sampler.read()
    assert sum("mktemp" in script for script in host.asked) == 1


def test_a_longer_trial_gets_a_sampler_that_lasts_for_it() -> None:
    sampler, host = started("/tmp/other\n100\nNOW\n", TAKEN)
    sampler.start(7200.0)
    assert "rm -f /tmp/file" in host.asked
    assert f"{int((7200 + 120) / 0.1)} < /dev/null" in host.asked[-1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("gone\n", "the sampler is gone"),
        ("lost", "the connection was lost"),
        ("", "no whole sample"),
        (TAKEN.replace("NOW", "7.00 1.00"), "clock was set"),
        ("sample\ndate 1700000000\nend\n", "clock was set"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_next_trial_has_a_new_sampler(answer: str, reason: str) -> None:
    sampler, host = started(answer, "/tmp/new\n100\nNOW\n", TAKEN)
    reading = sampler.read()
    assert reading.samples == () and reading.reason is not None and reason in reading.reason
    if reason != "no whole sample":
        sampler.start(1.0)
        assert sampler.read().samples
        assert sum("mktemp" in script for script in host.asked) == 2


def test_a_sampler_that_was_killed_is_noticed_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatemark.dut.telemetry.STALE_NS", -SECOND)
    sampler, host = started(TAKEN, "/tmp/new\n100\nNOW\n", TAKEN + TAKEN)
    assert sampler.read().reason == "the sampler has ended"
    sampler.start(1.0)
    assert "rm -f /tmp/file" in host.asked
    assert sampler.read().samples


def test_a_clock_is_never_taken_from_a_sample_that_the_reading_did_not_take() -> None:
    torn = TAKEN.replace("end\n", "garbage\nend\n")
    sampler, _ = started(TAKEN.replace("NOW", "NOW-0.1") + torn)
    assert sampler.read().reason == "there was no whole sample"


def test_a_sampler_that_does_not_start_is_told() -> None:
    host = Answers("mktemp: no such file")
    sampler = HostSampler(host, asked(), cpus=None)
    sampler.start(1.0)
    reason = sampler.read().reason
    assert reason is not None and "did not start" in reason


def test_samples_that_go_backwards_or_took_too_long_are_left_out() -> None:
    slow = "sample\n{0}\ncpu1 1 2 3 40 5 6 7 8\n{1}\nend\n"
    times = [("NOW-3", "NOW-3"), ("NOW-9", "NOW-9"), ("NOW-2", "NOW-1"), ("NOW", "NOW")]
    sampler, _ = started("".join(slow.format(*pair) for pair in times))
    reading = sampler.read()
    assert reading.reason is None
    assert (len(reading.samples), reading.damaged) == (2, 2)


@pytest.fixture(params=["dash", "busybox", "no setsid, no timeout"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """A shell on this machine that finds only the programs of one kind of host."""
    tools = tmp_path / "bin"
    tools.mkdir()
    names = ["sh", "sed", "sleep", "mktemp", "date", "cat", "rm", "echo", "true", "tr"]
    if request.param == "busybox":
        busybox = shutil.which("busybox")
        if busybox is None:
            pytest.skip("busybox is not installed")
        for name in [*names, "setsid", "timeout", "nohup"]:
            (tools / name).symlink_to(busybox)
    else:
        for name in [*names, *(("setsid", "timeout", "getconf") if request.param == "dash" else ())]:
            (tools / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is missing"))
    yield Shell(lambda: ["env", f"PATH={tools}", f"TMPDIR={tmp_path}", str(tools / "sh"), "-s"])
    for pid in alive(tmp_path):
        os.kill(pid, signal.SIGKILL)


def written(folder: Path) -> str:
    (file,) = folder.glob("gatemark-telemetry.*")
    return file.read_text(errors="replace")


def read_until(sampler: HostSampler, folder: Path, count: int) -> TelemetryReading:
    """Read as soon as so many samples are written; again, if a busy machine let nearly all of them take too long."""
    until = time.monotonic() + 60
    while True:
        wait_for(lambda: written(folder).count("\nend\n") >= count)
        reading = sampler.read()
        assert reading.reason is None, reading
        if len(reading.samples) >= 2:
            return reading
        assert time.monotonic() < until, reading


def test_a_host_is_sampled_without_a_connection(shell: Shell, tmp_path: Path) -> None:
    commands = {"seven": "echo 7", "two": "echo 1 2", "fails": "echo 3; exit 1", "quoted": "echo \"8\" '' | tr -d ' '"}
    sampler = HostSampler(shell, asked(processes=["sleep"], commands=commands), cpus=None)
    before = time.monotonic_ns()
    sampler.start(1.0)
    (file,) = tmp_path.glob("gatemark-telemetry.*")
    assert file.stat().st_mode & 0o777 == 0o600
    wait_for(lambda: written(tmp_path).count("\nend\n") >= 5)
    whole, damaged = parse_samples(written(tmp_path), ticks=100, names=tuple(commands))
    assert len(whole) >= 5 and damaged == 0
    reading = read_until(sampler, tmp_path, 6)
    after = time.monotonic_ns()
    before_last, last = reading.samples[-2:]
    assert (
        last.cpus and last.available_kilobytes and last.printed == {"seven": 7, "two": None, "fails": None, "quoted": 8}
    )
    assert before - reading.uncertainty_ns <= reading.samples[0].at_ns < last.at_ns <= after + reading.uncertainty_ns
    assert reading.uncertainty_ns <= SECOND + after - before
    again = sampler.read()  # what was read is gone; the sampler may have written while the last one was being taken
    error_ns = reading.uncertainty_ns + again.uncertainty_ns + 2 * before_last.error_ns
    assert all(sample.at_ns >= before_last.at_ns - error_ns for sample in again.samples)
    sampler.stop()
    assert not list(tmp_path.glob("gatemark-telemetry.*"))
    wait_for(lambda: not alive(tmp_path))


INTERRUPTS = """            CPU0       CPU2       CPU3
  9:          0          4          0   IO-APIC   9-fasteoi   acpi
 24:          0         17  123456789  IR-PCI-MSIX-0000:01:00.0    1-edge      eth1-TxRx-1
 25:          5          0          0  0-0020    2-edge      eth1-TxRx-2
124:          1          1          1  IR-PCI-MSIX-0000:02:00.0    1-edge      nvme0q1
240:          0          0          0  PCI-MSIX-0000:00:03.0   0-edge      virtio2-config
NMI:          7          7          7   Non-maskable interrupts
ERR:          0
"""


def test_interrupts_of_the_network_cards_are_sampled_and_no_others(shell: Shell, tmp_path: Path) -> None:
    """A card on PCI, whose bridge has one of its own, and a virtio card, whose PCI device has them."""
    net, bus = tmp_path / "net", tmp_path / "bus"
    devices = {"eth1": bus / "bridge" / "0000:01:00.0", "eth2": bus / "0000:00:03.0" / "virtio2"}
    folders = {
        devices["eth1"]: (24, 25), bus / "bridge": (124,), devices["eth2"].parent: (240, 241), bus / "disk": (9,),
    }  # fmt: skip
    for folder, numbers in folders.items():
        (folder / "msi_irqs").mkdir(parents=True)
        for number in numbers:
            (folder / "msi_irqs" / str(number)).write_text("msix")
    for name, device in devices.items():
        device.mkdir(exist_ok=True)
        (net / name).mkdir(parents=True)
        (net / name / "device").symlink_to(device)
    (net / "lo").mkdir()
    (tmp_path / "interrupts").write_text(INTERRUPTS)

    def there(script: str, **more: Any) -> str:
        return shell(script.replace("/sys/class/net", str(net)).replace("/proc/inter", f"{tmp_path}/inter"), **more)

    sampler = HostSampler(there, asked(), cpus=[0], counts_interrupts=True)
    sampler.start(1.0)
    reading = read_until(sampler, tmp_path, 3)
    (tmp_path / "interrupts").unlink()
    removed_ns = time.monotonic_ns()
    while True:
        late = read_until(sampler, tmp_path, 3)
        without = [sample for sample in late.samples if sample.at_ns - late.uncertainty_ns > removed_ns]
        if without:
            break
    sampler.stop()
    cards = InterruptSample(cpus=(0, 2, 3), taken={24: {2: 17, 3: 123456789}, 25: {0: 5}, 240: {}})
    assert [sample.interrupts for sample in reading.samples] == [cards] * len(reading.samples)
    assert without[-1].interrupts is None and without[-1].available_kilobytes

    others = HostSampler(there, asked(), cpus=None)
    (tmp_path / "interrupts").write_text(INTERRUPTS)
    others.start(1.0)
    assert all(sample.interrupts is None and sample.cpus for sample in read_until(others, tmp_path, 3).samples)
    others.stop()


def test_it_ends_by_itself_and_removes_its_file(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatemark.dut.telemetry.LIFE_SECONDS_MIN", 0.5)
    monkeypatch.setattr("gatemark.dut.telemetry.MARGIN_SECONDS", 0.2)
    answers: list[str] = []

    def there(script: str, **more: Any) -> str:
        answers.append(shell(script, **more))
        return answers[-1]

    HostSampler(there, asked(), cpus=None).start(0.1)
    file = Path(answers[-1].splitlines()[0])
    assert file.parent == tmp_path
    wait_for(lambda: not file.exists())  # START makes it; nobody else removes it
    wait_for(lambda: not alive(tmp_path))
    assert not list(tmp_path.glob("gatemark-telemetry.*"))


def test_the_cost_of_a_sample_is_learnt(shell: Shell) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = HostSampler(shell, asked(), cpus=None).cost()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran_ns = SECOND * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    steps_ns = 8 * 10_000_000  # of the eight times that the shell prints
    assert cost.cpu_ns is not None and 0 <= cost.cpu_ns * cost.samples <= ran_ns + steps_ns


def test_a_process_that_burns_half_of_its_time_is_seen_as_such(tmp_path: Path) -> None:
    """Against what the kernel says to the process itself, as often as it has burnt some."""
    name = f"gmburn{os.getpid()}"[:15]
    program = tmp_path / name
    program.symlink_to(sys.executable)
    burn = (
        "import sys, time\n"
        "open('/proc/self/comm', 'w').write(sys.argv[1])\n"
        "log = open(sys.argv[2], 'w', buffering=1)\n"
        "while True:\n"
        "    print(time.monotonic_ns(), time.process_time_ns(), file=log)\n"
        "    end = time.process_time() + 0.02\n"
        "    while time.process_time() < end: pass\n"
        "    time.sleep(0.02)\n"
    )
    shell = Shell(lambda: ["env", f"TMPDIR={tmp_path}", "sh", "-s"])
    log = tmp_path / "log"

    def told() -> list[tuple[int, int]]:
        """Monotonic time and CPU time, nanoseconds."""
        lines = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []
        return [(int(at), int(ran)) for at, ran in (line.split() for line in lines)]

    with subprocess.Popen([str(program), "-c", burn, name, str(log)]) as burner:
        try:
            wait_for(lambda: len(told()) > 0)
            sampler = HostSampler(shell, asked(processes=[name]), cpus=None)
            sampler.start(1.0)
            enough_ns = told()[-1][1] + SECOND // 2
            wait_for(lambda: told()[-1][1] > enough_ns)
            reading = read_until(sampler, tmp_path, 2)
            read_ns = time.monotonic_ns()
            sampler.stop()
            wait_for(lambda: told()[-1][0] > read_ns + reading.uncertainty_ns)
        finally:
            burner.kill()
    samples = [sample for sample in reading.samples if sample.processes]
    assert samples[-1].processes[burner.pid].ran_ns > samples[0].processes[burner.pid].ran_ns
    # A sample has the time of a process after its own, and before the next one.
    for sample, following_ns in zip(samples, [*(sample.at_ns for sample in samples[1:]), read_ns], strict=True):
        before_ns = sample.at_ns - sample.error_ns - reading.uncertainty_ns
        least = max((ran_ns for at_ns, ran_ns in told() if at_ns <= before_ns), default=0)
        most = next(ran_ns for at_ns, ran_ns in told() if at_ns >= following_ns + reading.uncertainty_ns)
        assert least - 2 * TICK_NS <= sample.processes[burner.pid].ran_ns <= most + 2 * TICK_NS
