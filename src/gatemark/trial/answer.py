"""Is a report the answer to the request? One of another trial, load or length is a fault of the engine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from gatemark.config.model import Campaign
from gatemark.trial.connection_request import establish_request, use_request, validation_request
from gatemark.trial.echo_request import echo_request
from gatemark.trial.loss import LossCount, LossTable
from gatemark.trial.messages import Echo, TrialRequest
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import ConnectionFacts, TrialRecord
from gatemark.trial.report import Counts, PhaseName, TrialReport, arriving_at
from gatemark.trial.request import trial_request

STEPS_MAX = 16
"""Every trial of the engine has a number of its own, so that stragglers of one phase are foreign to the next."""
LAST_STEPS = (STEPS_MAX - 2, STEPS_MAX - 1)
"""Of the short trial that may follow a trial: more phases than are made before it, unless many attempts fail."""


def step_number(order: TrialOrder, step: int) -> int:
    """Return the engine's number of a phase of a stateful trial, counted from 0."""
    return order.trial_number * STEPS_MAX + step % STEPS_MAX


def _count_of(order: TrialOrder) -> int:
    assert order.connections is not None, "a stateful trial has a number of connections"
    return order.connections


def one_phase_request(campaign: Campaign, order: TrialOrder) -> TrialRequest:
    """Return the request for a trial of one phase: frames, or echo requests."""
    request = trial_request if order.form.echo is None else echo_request
    return request(
        campaign,
        order.run.cell,
        frames_per_second=order.step.frames_per_second,
        duration_ns=order.step.duration_ns,
        trial_number=order.trial_number,
        form=order.form,
    )


def phase_one_request(campaign: Campaign, order: TrialOrder, rate: int, step: int) -> TrialRequest:
    """Return the request for an attempt at test phase 1, `rate` in connections/s."""
    return establish_request(
        campaign,
        order.run.cell,
        connections=_count_of(order),
        connections_per_second=rate,
        trial_number=step_number(order, step),
        drawn_frames=order.step.drawn_frames,
    )


def phase_two_request(campaign: Campaign, order: TrialOrder, step: int) -> TrialRequest:
    """Return the request for test phase 2."""
    return use_request(
        campaign,
        order.run.cell,
        connections=_count_of(order),
        frames_per_second=order.step.frames_per_second,
        duration_ns=order.step.duration_ns,
        trial_number=step_number(order, step),
        form=order.form,
    )


def validation_rate(order: TrialOrder) -> int | None:
    """Return the rate of the validation, connections/s; None where nothing is validated."""
    alpha = order.step.alpha
    return None if alpha is None else max(1, int(alpha * order.step.frames_per_second))


def validate_request(campaign: Campaign, order: TrialOrder, step: int) -> TrialRequest:
    """Return the request for the validation."""
    rate = validation_rate(order)
    assert rate is not None, "connections are validated"
    return validation_request(
        campaign,
        order.run.cell,
        connections=_count_of(order),
        connections_per_second=rate,
        trial_number=step_number(order, step),
    )


def mismatches(request: TrialRequest, report: TrialReport) -> Iterator[str]:
    """Yield where a report is not the answer to its request, and where its own sums differ."""
    if report.trial_number != request["trial_number"]:
        yield f"it is of trial {report.trial_number} of the engine, not of {request['trial_number']}"
    loads = {way["direction"]: way["frames_per_second"] or 0 for way in request["directions"]}
    if request.get("echo") is not None:
        loads["reverse"] = 0
    sizes = _sizes_of(request)
    if [way.direction for way in report.directions] != list(loads):
        said = ", ".join(way.direction for way in report.directions) or "no direction"
        yield f"it is of {said}, not of {', '.join(loads)}"
        return
    for way in report.directions:
        if way.frames_per_second != loads[way.direction]:
            yield f"{way.direction}: it is of {way.frames_per_second} frames/s, not of {loads[way.direction]}"
        if way.intended_duration_ns != request["duration_ns"]:
            yield f"{way.direction}: it is of {way.intended_duration_ns} ns, not of {request['duration_ns']}"
    for way in report.directions:
        for name, counts in way.classes:
            octets = sizes.get((way.direction, name))
            if counts.frame_octets != octets:
                yield f"{way.direction} {name}: its frames are of {counts.frame_octets} octets, not of {octets}"
    phases = [phase.phase for phase in report.phases]
    if phases != list(get_args(PhaseName)):
        yield f"it has the phases {', '.join(phases) or 'none'}, not {', '.join(get_args(PhaseName))}"
    asked, told = request.get("connections"), report.connections
    count = None if asked is None else asked["count"]
    if (None if told is None else told.count) != count:
        yield f"it is of {0 if told is None else told.count} connections, not of {count or 0}"
    elif asked is not None and told is not None and told.phase != asked["phase"]:
        yield f"it is of connections to {told.phase}, not to {asked['phase']}"
    elif told is not None and told.established > told.count:
        yield f"{told.established} of {told.count} connections are established"
    yield from _differing_sums(report)
    yield from _echo_mismatches(request.get("echo"), report)


def _sizes_of(request: TrialRequest) -> dict[tuple[str, str], int]:
    """Return the frame sizes of a request by direction and class; those of echo requests are not told."""
    if request.get("echo") is not None:
        return {}
    sizes: dict[tuple[str, str], int] = {}
    for way in request["directions"]:
        for name, stream in (("foreground", way.get("foreground")), ("background", way.get("background"))):
            if stream is not None:
                sizes[way["direction"], name] = stream["frame_octets"]
    return sizes


def _echo_mismatches(asked: Echo | None, report: TrialReport) -> Iterator[str]:
    """Yield where the clients of a report are not those of the request, and where their sums differ."""
    facts = report.echo
    told, wanted = (None if facts is None else len(facts.clients)), (None if asked is None else asked["clients"])
    if told != wanted:
        yield f"it is of {told or 0} clients, not of {wanted or 0}"
        return
    if facts is None:
        return
    requests, replies = (way.foreground for way in report.directions)
    for name, by_clients, by_frames in (
        ("requests", facts.total("requests"), requests.offered),
        ("replies", facts.total("replies"), replies.received),
        ("requests of round trips", facts.all.requests, facts.total("requests")),
        ("round trips", facts.all.samples, sum(client.rtt.samples for client in facts.clients)),
    ):
        if by_clients != by_frames:
            yield f"{by_clients} {name} by clients, and {by_frames} by frames"
    for client in facts.clients:
        unanswered = max(0, client.requests - client.replies - client.late - client.faulty)
        if client.lost != unanswered:
            yield f"client {client.client + 1}: {client.lost} requests were lost, and {unanswered} had no reply"
        if client.rtt.requests != client.requests or client.rtt.samples > client.replies:
            yield f"client {client.client + 1}: its round trips are not those of its requests"


def _differing_sums(report: TrialReport) -> Iterator[str]:
    received = {way.direction: way.received for way in report.directions}
    for side, port in report.ports.items():
        by_queues, direction = sum(port.received_by_queue), arriving_at(side)
        if port.received_by_queue and by_queues != received.get(direction, 0):
            yield f"{direction}: {received.get(direction, 0)} frames were received, and {by_queues} by queues"
    for way in report.directions:
        for name, counts in way.classes:
            if counts.accounted != counts.offered:
                yield f"{way.direction} {name}: of {counts.offered} frames {counts.accounted} are accounted for"
            if sum(counts.loss.by_slice) not in (0, counts.lost):
                yield f"{way.direction} {name}: {counts.lost} frames were lost, and {sum(counts.loss.by_slice)} by time"
            if counts.loss_table is not None and not _adds_up(counts.loss_table, counts):
                yield f"{way.direction} {name}: what lost frames differ by does not add up"
        in_runs, lost = sum(run.length for run in way.longest_loss_runs), sum(counts.lost for _, counts in way.classes)
        if in_runs > lost:
            yield f"{way.direction}: {lost} frames were lost, and {in_runs} in runs"
        if any(burst.index + burst.frames > way.intended for burst in way.late_bursts):
            yield f"{way.direction}: {way.intended} frames were intended, and later ones left late"


def _adds_up(table: LossTable, counts: Counts) -> bool:
    """Whether no part of a table of losses has more frames than the whole."""
    wholes: list[tuple[LossCount, Iterable[LossCount]]] = [(table, table.fields)]
    wholes += [(field, (*field.heaviest, *field.bits)) for field in table.fields]
    if table.ages is not None:
        wholes.append((table.ages, (table.ages.older,)))
    return (
        table.lost <= counts.lost
        and table.arrived <= counts.offered - counts.lost
        and all(part.lost <= whole.lost and part.arrived <= whole.arrived for whole, parts in wholes for part in parts)
        and all(
            field.dead <= field.losing <= field.values
            and field.lost_in_dead <= field.lost
            and sum(run.lost for run in field.ranges) <= field.lost_in_dead
            and sum(value.lost for value in field.heaviest) <= field.lost
            and (field.firsts is None or field.firsts <= min(field.lost, field.values))
            for field in table.fields
        )
    )


def record_mismatches(campaign: Campaign, record: TrialRecord) -> Iterator[str]:
    """Yield where the reports of a record are not the answers to what its order asks for."""
    order = record.order
    is_empty = order.form.exchange is not None or record.boot is not None or record.collapse is not None
    facts = record.connections
    if facts is not None:
        yield from _stateful_mismatches(campaign, record, facts)
    elif is_empty:
        yield from _unless_empty(record.report, order.trial_number)
    else:
        yield from mismatches(one_phase_request(campaign, order), record.report)


def _stateful_mismatches(campaign: Campaign, record: TrialRecord, facts: ConnectionFacts) -> Iterator[str]:
    order, attempts = record.order, facts.phase_one
    for step, attempt in enumerate(attempts):
        request = phase_one_request(campaign, order, attempt.connections_per_second, step)
        yield from (f"phase 1: {mismatch}" for mismatch in mismatches(request, attempt.report))
    if attempts and record.report == attempts[-1].report:
        return
    if facts.collapse is not None or order.step.tears_down:
        yield from _unless_empty(record.report, step_number(order, 0))
    elif order.step.connections is None:
        yield from mismatches(phase_two_request(campaign, order, len(attempts)), record.report)
    elif attempts:
        yield from mismatches(validate_request(campaign, order, len(attempts)), record.report)
    else:
        request = phase_one_request(campaign, order, order.step.frames_per_second, 0)
        yield from mismatches(request, record.report)


def _unless_empty(report: TrialReport, number: int) -> Iterator[str]:
    if report != TrialReport.none(number):
        yield "nothing was counted in such a trial"
