"""The client of the engine protocol, on transports made of lists and on real child processes."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatemark.engine.answers import Port, Progress
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine, start_engine
from gatemark.errors import EngineError, Interrupted

EXCHANGE = {"request": "exchange", "left": ["45"], "right": [], "interval_ns": 10**7, "wait_ns": 10**8}
PORT: Port = {
    "port": "null", "driver": "none", "mac": "02:00:00:00:00:01", "numa_node": -1, "link_up": True, "link_mbps": 0,
    "mtu": 1500, "timestamps": "software",
}  # fmt: skip
TRIAL = {"request": "trial", "duration_ns": 0, "waits": {}}
Reply = Callable[[dict[str, Any]], list[dict[str, Any] | str | BaseException | None]]


class Scripted:
    """A transport that answers each request from a function; None is the end of file, an exception is raised."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.sent: list[dict[str, Any]] = []
        self.queue: list[dict[str, Any] | str | BaseException | None] = []
        self.killed = self.closed = False

    def send(self, line: str) -> None:
        assert "\n" not in line
        self.sent.append(json.loads(line))
        self.queue += self.reply(self.sent[-1])

    def receive(self, timeout_s: float) -> str | None:
        if not self.queue:
            raise TimeoutError
        item = self.queue.pop(0)
        if isinstance(item, BaseException):
            raise item
        return json.dumps(item) if isinstance(item, dict) else item

    def kill(self) -> None:
        self.killed = True

    def close(self) -> None:
        self.closed = True

    def describe_end(self) -> str:
        return "exit status 3; end of its log:\n  out of memory"


def ok(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"answer": "ok", "id": message["id"], **more}


def test_a_request_and_its_answer() -> None:
    transport = Scripted(lambda message: [ok(message, left=PORT)])
    assert EngineClient(transport).link()["left"] == PORT
    assert transport.sent == [{"request": "link", "id": 1}]


def test_connections_are_asked_for() -> None:
    transport = Scripted(lambda message: [ok(message, established=7)])
    assert EngineClient(transport).connections()["established"] == 7
    assert transport.sent == [{"request": "connections", "id": 1}]


def test_progress_reaches_the_callback_before_the_answer() -> None:
    def reply(message: dict[str, Any]) -> list[Any]:
        return [{"answer": "progress", "id": message["id"], "elapsed_ns": n} for n in (1, 2)] + [ok(message, x=3)]

    lines: list[int] = []
    answer = EngineClient(Scripted(reply)).trial(TRIAL, lambda progress: lines.append(progress["elapsed_ns"]))
    assert (lines, answer["x"]) == ([1, 2], 3)


def test_all_problems_of_an_error_are_kept_and_the_engine_stays_usable() -> None:
    errors = [{"what": "no such port", "where": "left.port", "fix": "look at `ip link`"}, {"what": "b", "where": "c"}]
    answers: Iterator[dict[str, Any]] = iter([{"answer": "error", "errors": errors}, {"answer": "ok", "left": PORT}])
    client = EngineClient(Scripted(lambda message: [{**next(answers), "id": message["id"]}]))
    with pytest.raises(EngineError) as raised:
        client.open({"request": "open"})
    assert [(p.what, p.where, p.fix) for p in raised.value.problems] == [
        ("no such port", "left.port", "look at `ip link`"),
        ("b", "c", ""),
    ]
    assert client.link()["left"] == PORT


def test_another_protocol_is_refused() -> None:
    client = EngineClient(Scripted(lambda message: [ok(message, protocol=99, version="9")]))
    with pytest.raises(EngineError, match="protocol 99"):
        client.hello()


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([None], "died during the request 'link'"),
        ([], "did not answer the request 'link'"),
        (["no json"], "not a JSON object"),
        (["[1]"], "not a JSON object"),
        ([{"answer": "perhaps", "id": 1}], "'perhaps'"),
        ([OSError(5, "Input/output error")], "Input/output error"),
    ],
)
def test_an_engine_that_fails_is_killed_and_its_log_is_shown(reply: list[Any], words: str) -> None:
    transport = Scripted(lambda _: list(reply))
    client = EngineClient(transport)
    with pytest.raises(EngineError, match=words) as raised:
        client.link()
    assert "out of memory" in str(raised.value)
    assert transport.killed
    with pytest.raises(EngineError, match="has ended"):
        client.link()


def test_answers_to_a_request_that_was_given_up_are_skipped() -> None:
    client = EngineClient(Scripted(lambda message: [{"answer": "ok", "id": 77}, ok(message, right=PORT)]))
    assert client.link()["right"] == PORT


@pytest.mark.parametrize("kind", ["trial", "exchange"])
def test_an_interrupt_cancels_what_sends_and_leaves_the_engine_ready(kind: str) -> None:
    def reply(message: dict[str, Any]) -> list[Any]:
        match message["request"]:
            case "trial" | "exchange":
                return [KeyboardInterrupt()]
            case "cancel":
                return [{"answer": "progress", "id": 1}, {"answer": "ok", "id": 1, "cancelled": True}]
        return [ok(message)]

    transport = Scripted(reply)
    client = EngineClient(transport)
    with pytest.raises(Interrupted, match="stopped by the user"):
        client.trial(TRIAL) if kind == "trial" else client.exchange(EXCHANGE)
    assert transport.sent[-1] == {"request": "cancel", "id": 1}
    client.close()
    assert transport.closed
    assert not transport.killed


@pytest.mark.parametrize("error", [RuntimeError("in a callback"), SystemExit(3), EngineError(what="of a callback")])
def test_what_a_callback_raises_cancels_the_trial(error: BaseException) -> None:
    """A trial that nobody waits for would keep on sending, and its answer would come in the middle of the next."""

    def reply(message: dict[str, Any]) -> list[Any]:
        match message["request"]:
            case "trial":
                return [{"answer": "progress", "id": message["id"]}]
            case "cancel":
                return [{"answer": "progress", "id": 1}, {"answer": "ok", "id": 1, "cancelled": True}]
        return [ok(message, left=PORT)]

    def fail(_progress: Progress) -> None:
        raise error

    transport = Scripted(reply)
    client = EngineClient(transport)
    with pytest.raises(type(error)) as raised:
        client.trial(TRIAL, fail)
    assert raised.value is error
    assert transport.sent[-1] == {"request": "cancel", "id": 1}
    assert client.link()["left"] == PORT
    client.close()
    assert not transport.killed


def test_a_refused_trial_is_not_cancelled() -> None:
    transport = Scripted(lambda message: [{"answer": "error", "id": message["id"], "errors": []}])
    with pytest.raises(EngineError, match="refused"):
        EngineClient(transport).trial(TRIAL)
    assert [message["request"] for message in transport.sent] == ["trial"]


def test_a_second_interrupt_kills() -> None:
    transport = Scripted(lambda _: [KeyboardInterrupt()])
    with pytest.raises(Interrupted):
        EngineClient(transport).trial(TRIAL)
    assert transport.killed


def test_the_context_ends_the_engine_once() -> None:
    transport = Scripted(lambda message: [ok(message)])
    with EngineClient(transport) as client:
        client.close()
    assert [message["request"] for message in transport.sent] == ["close"]
    assert transport.closed


ENGINE = """
import json, os, sys
print("hello log", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["request"] == "link":
        print("cannot go on", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 11)
    print(json.dumps({"answer": "ok", "id": message["id"], "protocol": 22, "version": "ä"}), flush=True)
    if message["request"] == "close":
        break
"""


def executable(folder: Path, program: str) -> Path:
    path = folder / "engine"
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)
    return path


def test_a_process_is_started_spoken_to_and_ended(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with start_engine(executable=executable(tmp_path, ENGINE), log=log) as client:
        assert client.hello()["version"] == "ä"
    assert log.read_text() == "hello log\n"


@pytest.mark.parametrize("with_log", [True, False])
def test_a_process_that_crashes_is_told_with_signal_and_log(tmp_path: Path, with_log: bool) -> None:
    log = tmp_path / "engine.log" if with_log else None
    client = start_engine(executable=executable(tmp_path, ENGINE), log=log)
    with pytest.raises(EngineError, match="SIGSEGV") as raised:
        client.link()
    assert "cannot go on" in str(raised.value)


def test_a_process_that_does_not_answer_times_out_and_is_killed(tmp_path: Path) -> None:
    process = EngineProcess([str(executable(tmp_path, "import time\ntime.sleep(1000)"))], log=None)
    with pytest.raises(TimeoutError):
        process.receive(0.01)
    process.kill()
    assert "SIGKILL" in process.describe_end()


def test_lines_may_arrive_in_pieces(tmp_path: Path) -> None:
    program = 'import os\nos.write(1, b"one")\nos.write(1, b"\\ntwo\\nthr")\nos.write(1, b"ee\\n")'
    process = EngineProcess([str(executable(tmp_path, program))], log=None)
    assert [process.receive(60) for _ in range(4)] == ["one", "two", "three", None]
    process.close()


def test_a_missing_executable_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="absent"):
        find_engine(tmp_path / "absent")


def test_a_file_that_is_no_program_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "engine"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    with pytest.raises(EngineError, match="cannot be started"):
        start_engine(executable=path)
