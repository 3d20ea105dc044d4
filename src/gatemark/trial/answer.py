"""Is a report the answer to the request? One of another trial, load or length is a fault of the engine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from gatemark.trial.loss import LossCount, LossTable
from gatemark.trial.messages import Echo, TrialRequest
from gatemark.trial.report import Counts, PhaseName, TrialReport, arriving_at


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
                yield f"{way.direction} {name}: the counts of the properties of lost frames do not add up"
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


def unless_empty(report: TrialReport, number: int) -> Iterator[str]:
    """Yield that a report is not that of nothing."""
    if report != TrialReport.none(number):
        yield "nothing was counted in such a trial"
