"""The engine answers every line once, in order and in its schema, whatever the line says; it takes nothing unknown."""

from __future__ import annotations

import contextlib
import json
import random
import selectors
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.property.json_values import Values, texts_of

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.process import find_engine
from gatemark.errors import EngineError
from gatemark.trial.request import open_request

PROTOCOL = Path(__file__).parents[2] / "protocol"
REQUEST_SCHEMA = json.loads((PROTOCOL / "request.schema.json").read_text())
TAKES = jsonschema.Draft202012Validator(REQUEST_SCHEMA).is_valid
ANSWERS = jsonschema.Draft202012Validator(json.loads((PROTOCOL / "answer.schema.json").read_text()))
EXAMPLES = [json.loads(file.read_text()) for file in sorted(PROTOCOL.glob("examples/*_request.json"))]
TEXTS = texts_of(EXAMPLES)
ANSWER_SECONDS_MAX = 60.0

NOT_REQUESTS = (
    b" ", b"null", b"[]", b"{}", b"7", b'"hello"', b"\xff\xfe", b'{"id":1}', b'{"request":"hello"}',
    b'{"id":1.5,"request":"hello"}', b'{"id":1,"request":"hello"} {}', b'{"id":1,"request":["hello"]}',
    b"{" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"id":1,"request":"' + b"x" * 1_000_000 + b'"}',
    b'{"id":NaN,"request":"hello"}', b'{"id":1,"request":"\xed\xa0\x80"}',
)  # fmt: skip
"""Lines that are no request, or one that nobody knows."""

LIMITS = {
    "duration_ns": 2_000_000, "settle_ns": 500_000, "learn_ns": 500_000, "drain_ns": 500_000, "rest_ns": 500_000,
    "frames_per_second": 20_000, "count": 300, "timeout_ns": 2_000_000, "after_ns": 2_000_000, "wait_ns": 2_000_000,
    "interval_ns": 2_000,
}  # fmt: skip
"""Larger values are well, and take longer than a test may."""

seeds = st.integers(min_value=0, max_value=2**64 - 1)


class Engine:
    """The engine's process, line by line."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [str(find_engine())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._input, self._output = self._child.stdin, self._child.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._rest = b""

    def ask(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """Send lines at once; return all answers up to that of one more request, without that one."""
        fence = random.getrandbits(62) | 1 << 62
        last = json.dumps({"request": "hello", "id": fence}).encode()
        writer = threading.Thread(target=self._write, args=(b"".join(line + b"\n" for line in (*lines, last)),))
        writer.start()
        answers = []
        while (answer := self.next())["id"] != fence:
            answers.append(answer)
        writer.join()
        return answers

    def request(self, line: bytes) -> dict[str, Any]:
        """Send one line; return its answer. Nothing else may come, with or after it."""
        self._write(line + b"\n")
        answer = self.next()
        assert self.ask([]) == []
        return answer

    def close(self) -> None:
        self._selector.close()
        self._input.close()
        self._output.close()
        self._child.kill()
        self._child.wait()

    def _write(self, octets: bytes) -> None:
        with contextlib.suppress(OSError):
            self._input.write(octets)
            self._input.flush()

    def next(self) -> dict[str, Any]:
        """Return the next answer that is none of progress."""
        until = time.monotonic() + ANSWER_SECONDS_MAX
        while (answer := self._message(until))["answer"] == "progress":
            pass
        return answer

    def _message(self, until: float) -> dict[str, Any]:
        while b"\n" not in self._rest:
            assert self._selector.select(until - time.monotonic()), "the engine does not answer"
            octets = self._output.read1()  # type: ignore[attr-defined]
            assert octets, f"the engine ended with status {self._child.wait(60)}"
            self._rest += octets
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        ANSWERS.validate(answer)
        return answer


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine without ports."""
    try:
        find_engine()
    except EngineError:
        pytest.skip("needs gatemark-engine")
    with contextlib.closing(Engine()) as started:
        yield started


@pytest.fixture(scope="module")
def opened(engine: Engine) -> Iterator[Engine]:
    """An engine whose two ports are a pair of rings."""
    campaign = complete_campaign(
        campaign_from_dict({"gateway": {"technology": "router44"}, "testbed": {"kind": "loopback"}})
    )
    request = {"request": "open", "id": 1, **open_request(campaign, [])}
    with contextlib.closing(Engine()) as started:
        (answer,) = started.ask([json.dumps(request).encode()])
        assert answer["answer"] == "ok", answer
        yield started


def message_of(chance: random.Random, identifier: int) -> Any:
    """Return a request by the schema or near an example, one that opens no port and does not end the engine."""
    values = Values(REQUEST_SCHEMA, chance.getrandbits(64), wrong=chance.choice((0.0, 0.02)), texts=TEXTS)
    message = values.root() if chance.random() < 0.4 else values.changed(chance.choice(EXAMPLES))
    if not isinstance(message, dict):
        return message
    if message.get("request") == "close":
        message["request"] = "hello"
    if message.get("request") == "open":
        for side, port in (("left", chance.choice(("ring", "nothing:at-all"))), ("right", "null")):
            if isinstance(message.get(side), dict):
                message[side]["port"] = port
    if chance.random() < 0.95:
        message["id"] = identifier
    return message


def identifier_of(line: bytes) -> int | None:
    """Return the number that an answer to a line must repeat."""
    try:
        message = json.loads(line.decode(), parse_constant=lambda _word: 1 / 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return None
    identifier = message.get("id") if isinstance(message, dict) else None
    kind = message.get("request") if isinstance(message, dict) else None
    whole = isinstance(identifier, int) and not isinstance(identifier, bool) and -(2**63) <= identifier < 2**64
    return identifier if whole and isinstance(kind, str) else None


def is_cancel(line: bytes) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        return isinstance(message, dict) and message.get("request") == "cancel" and identifier_of(line) is not None
    return False


@examples(100, many=400)
@given(seed=seeds)
def test_every_line_is_answered_once(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    lines = [
        chance.choice(NOT_REQUESTS) if chance.random() < 0.2 else json.dumps(message_of(chance, number)).encode()
        for number in range(chance.randint(1, 8))
    ]
    answers = engine.ask(lines)
    answered = [line for line in lines if not is_cancel(line)]
    assert [answer["id"] for answer in answers] == [identifier_of(line) for line in answered]
    for line, answer in zip(answered, answers, strict=True):
        if answer["answer"] == "ok":
            assert TAKES(json.loads(line)), f"taken against the schema: {line[:2000]!r}"


def limited(value: Any, key: str = "") -> Any:
    """Return a value without numbers that would make a trial long or large."""
    if isinstance(value, dict):
        return {inner: limited(item, inner) for inner, item in value.items()}
    if isinstance(value, list):
        return [limited(item, key) for item in value]
    number = isinstance(value, int) and not isinstance(value, bool)
    return min(value, LIMITS[key]) if number and key in LIMITS else value


@examples(37, many=150)
@given(seed=seeds)
def test_every_request_is_answered_once_with_open_ports(opened: Engine, seed: int) -> None:
    chance = random.Random(seed)
    line = json.dumps(limited(message_of(chance, 1))).encode()
    if is_cancel(line):
        assert opened.ask([line]) == []
        return
    answer = opened.request(line)
    assert answer["id"] == identifier_of(line)
    if answer["answer"] == "ok":
        assert TAKES(json.loads(line)), f"taken against the schema: {line[:2000]!r}"
