"""The Python side of the engine protocol (`protocol/README.md`): requests out, answers in, errors as EngineError."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, Self

from gatemark.engine.answers import Behaviour, Frames, Hello, Layout, Link, Opened, Progress, Refusal, Resolved
from gatemark.errors import RESUME, EngineError, Interrupted, Problem

PROTOCOL_VERSION = 22
"""Both sides must agree exactly."""

PATIENCE_S = 30.0
"""How long an answer may take beyond the time that the request itself needs."""

OPEN_S = 60.0
"""Opening ports may wait for memory and for the link to come up."""

CANCEL_S = 15.0
"""How long a cancelled trial may take to end."""

CANCELLABLE = ("trial", "exchange")
"""Requests that send for a while, and that `cancel` ends."""

JsonObject = dict[str, Any]
"""A JSON object of which nothing is known yet."""
ProgressCallback = Callable[[Progress], None]


class Transport(Protocol):
    """Carries lines to the engine and back. `EngineProcess` is the real one; a test passes its own."""

    def send(self, line: str) -> None:
        """Send one line, without its line end; raise OSError if the engine is gone."""

    def receive(self, timeout_s: float) -> str | None:
        """Return the next line, None at the end of file; raise TimeoutError if there is none in time."""

    def kill(self) -> None:
        """End the engine at once."""

    def close(self) -> None:
        """Ask the engine to end, and end it at once if it does not."""

    def describe_end(self) -> str:
        """Say how the engine ended and what it wrote last, for an error message."""


class Engine(Protocol):
    """What a campaign needs of an engine; `EngineClient` has it.

    A request's body holds `request` and everything but `id`. `read_report` and `read_exchange` read the answers of
    `trial` and `exchange`.
    """

    def hello(self) -> Hello:
        """Return version and machine of the engine."""

    def open(self, body: Mapping[str, Any]) -> Opened:
        """Open both ports."""

    def resolve(self, body: Mapping[str, Any]) -> Resolved:
        """Find the link-layer address of the gateway on one side."""

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        """Make one trial."""

    def exchange(self, body: Mapping[str, Any]) -> JsonObject:
        """Send packets as they are, and return what arrives."""

    def frames(self, body: Mapping[str, Any]) -> Frames:
        """Return frames as a trial would send them; raise EngineError if there can be no such trial."""
        ...

    def connections(self) -> Behaviour:
        """Return what the state table says about the gateway."""

    def link(self) -> Link:
        """Return the state of both ports."""


class EngineClient:
    """Talks to one engine, one request at a time. A context manager: the engine ends with it.

    ::

        with start_engine(log=folder / "engine.log") as engine:
            engine.open(open_request(campaign, cores=[]))
            report = read_report(engine.trial(body))
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._next_id = 1
        self._ended = False
        self._answered = 0
        """The last request that was answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(EngineError):
            self.close()

    def hello(self) -> Hello:
        """Return version and machine of the engine; raise EngineError if it speaks another protocol."""
        answer: Hello = self._request({"request": "hello"}, PATIENCE_S)
        if answer.get("protocol") != PROTOCOL_VERSION:
            raise EngineError(
                what=f"it speaks protocol {answer.get('protocol')}, this package speaks {PROTOCOL_VERSION}",
                where=f"gatemark-engine {answer.get('version', '')}".strip(),
                fix="engine and Python package must come from the same build; run `make` again",
            )
        return answer

    def open(self, body: Mapping[str, Any]) -> Opened:
        """Open both ports; once in the life of an engine."""
        answer: Opened = self._request(body, OPEN_S + PATIENCE_S)
        return answer

    def resolve(self, body: Mapping[str, Any]) -> Resolved:
        """Find the link-layer address of the gateway on one side."""
        answer: Resolved = self._request(body, body.get("timeout_ns", 0) / 1e9 + PATIENCE_S)
        return answer

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        """Make one trial; `on_progress` is called with each progress record.

        Ctrl-C, and whatever `on_progress` raises, cancels the trial and waits for its end; the engine stays usable.
        Ctrl-C is raised as Interrupted.
        """
        waits = sum(body.get("waits", {}).values())
        answer: JsonObject = self._request(body, (body["duration_ns"] + waits) / 1e9 + PATIENCE_S, on_progress)
        return answer

    def exchange(self, body: Mapping[str, Any]) -> JsonObject:
        """Send packets as they are, and return every frame that arrives meanwhile. Ctrl-C ends it, as a trial."""
        packets = max(len(body["left"]), len(body["right"]))
        answer: JsonObject = self._request(body, (packets * body["interval_ns"] + body["wait_ns"]) / 1e9 + PATIENCE_S)
        return answer

    def frames(self, body: Mapping[str, Any]) -> Frames:
        """Return frames as a trial would send them; needs no open port."""
        answer: Frames = self._request(body, PATIENCE_S)
        return answer

    def layout(self, body: Mapping[str, Any]) -> Layout:
        """Return queues and workers as `open` would choose them; needs no open port."""
        answer: Layout = self._request(body, PATIENCE_S)
        return answer

    def connections(self) -> Behaviour:
        """Return what the state table says about the gateway, after a trial that established connections."""
        answer: Behaviour = self._request({"request": "connections"}, PATIENCE_S)
        return answer

    def link(self) -> Link:
        """Return the state of both ports."""
        answer: Link = self._request({"request": "link"}, PATIENCE_S)
        return answer

    def close(self) -> None:
        """End the engine. Harmless if it has ended."""
        if self._ended:
            return
        try:
            self._request({"request": "close"}, PATIENCE_S)
        finally:
            self._ended = True
            self._transport.close()

    def _request(self, body: Mapping[str, Any], timeout_s: float, on_progress: ProgressCallback | None = None) -> Any:
        if self._ended:
            raise EngineError(
                what=f"it has ended and cannot take the request {body['request']!r}",
                where="gatemark-engine",
                fix="start a new engine",
            )
        identifier = self._next_id
        self._next_id += 1
        try:
            self._send({**body, "id": identifier})
            return self._answer(identifier, str(body["request"]), timeout_s, on_progress)
        except KeyboardInterrupt:
            self._end_sending(identifier, str(body["request"]))
            raise Interrupted(
                what="stopped by the user",
                where=f"request {body['request']!r}",
                fix=f"all measurements so far are kept; continue with {RESUME}",
            ) from None
        except BaseException:  # of a callback, or of a signal; the engine itself was ended or has answered
            self._end_sending(identifier, str(body["request"]))
            raise

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._transport.send(json.dumps(message, ensure_ascii=False, separators=(",", ":")))
        except OSError as error:
            raise self._dead(f"it died before the request {message['request']!r}") from error

    def _answer(
        self, identifier: int, request: str, timeout_s: float, on_progress: ProgressCallback | None = None
    ) -> Any:
        deadline = time.monotonic() + timeout_s
        while True:
            message = self._receive(deadline, request, timeout_s)
            if message.get("id") != identifier:
                continue  # the rest of a request that was given up
            match message.get("answer"):
                case "ok":
                    self._answered = identifier
                    return message
                case "error":
                    self._answered = identifier
                    raise _refusal(message, request)
                case "progress":
                    if on_progress is not None:
                        on_progress(message)
                case other:
                    raise self._dead(
                        f"it answered {other!r} to the request {request!r}, which the protocol does not know"
                    )

    def _receive(self, deadline: float, request: str, timeout_s: float) -> Any:
        try:
            line = self._transport.receive(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise self._dead(
                f"it did not answer the request {request!r} within {timeout_s:.0f} s and was ended"
            ) from None
        except OSError as error:
            raise self._dead(f"its answers cannot be read ({error.strerror or error})") from error
        if line is None:
            raise self._dead(f"it died during the request {request!r}")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._dead(f"its answer is not a JSON object: {line[:200]!r}")
        return message

    def _end_sending(self, identifier: int, request: str) -> None:
        """Cancel what sends and take its answer, so that the engine is ready for `close`.

        Another Ctrl-C kills the engine. Nothing to do if it has answered or was ended.
        """
        if request not in CANCELLABLE or self._ended or self._answered == identifier:
            return
        try:
            self._send({"request": "cancel", "id": identifier})
            self._answer(identifier, "cancel", CANCEL_S)
        except EngineError:
            pass  # it was ended; why we stop is what counts
        except BaseException:
            self._kill()

    def _dead(self, what: str) -> EngineError:
        """Kill an engine that cannot be talked to any more and return the error to raise."""
        self._kill()
        end = self._transport.describe_end()
        return EngineError(
            what=f"{what}\n{end}" if end else what,
            where="gatemark-engine",
            fix="all measurements so far are kept; look at the end of the engine's log, then continue with --resume",
        )

    def _kill(self) -> None:
        if not self._ended:
            self._ended = True
            self._transport.kill()


def _refusal(message: Refusal, request: str) -> EngineError:
    """Turn an error answer into an exception with every problem that the engine named."""
    problems = tuple(
        Problem(
            what=str(error.get("what", "no reason was given")),
            where=str(error.get("where") or f"gatemark-engine, request {request!r}"),
            fix=str(error.get("fix", "")),
        )
        for error in message.get("errors", ())
    )
    if problems:
        return EngineError(problems=problems)
    return EngineError(
        what="the request was refused without a reason", where=f"gatemark-engine, request {request!r}", fix=""
    )
