"""What the trials say about a stateful gateway apart from its rates: sentences with numbers. Pure.

How it maps is read from the Tester's state table and needs no extra frames. The gateway's own count of its connections
is compared with the Tester's. Nothing here is a result.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.report.table import Column, Section, table_of
from gatemark.report.words import DASH, direction_label, format_count, format_range
from gatemark.results.connections import Behaviour, PhaseOne
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.technology import TECHNOLOGIES


def observations(document: ResultDocument) -> tuple[str, ...]:
    """Return everything that was observed, as sentences; empty for a stateless gateway without anything to note."""
    return (
        *_behaviour_sentences(document),
        *_count_sentences(document),
        *_zero_checksum_sentences(document),
        *_header_sentences(document),
        *_removed_sentences(document),
        *_moved_sentences(document),
    )


def _removed_sentences(document: ResultDocument) -> Iterator[str]:
    removed = document.validity.removed
    if removed:
        trials, they = ("trial was", "it was") if removed == 1 else ("trials were", "they were")
        yield f"{removed} {trials} removed from the journal by hand between two sessions; {they} made again."


def _moved_sentences(document: ResultDocument) -> Iterator[str]:
    if document.interrupts_moved:
        yield (
            "While it was measured, interrupts of the gateway's host moved to other CPUs, as irqbalance moves them;"
            f" part of the difference between repetitions may come from that: {'; '.join(document.interrupts_moved)}."
        )


def phase_one_failures(document: ResultDocument) -> tuple[str, ...]:
    """Return the attempts at test phase 1 that failed before what was measured, a sentence for each such run."""
    return tuple(
        _phase_one_sentence(run, run.connections.phase_one)
        for run in document.runs
        if run.connections is not None and run.connections.phase_one is not None and run.connections.phase_one.failed
    )


def suspect_words(document: ResultDocument) -> str:
    """How many trials of which runs were suspect."""
    assert document.host is not None, "only where the gateway's host was read"
    by_run = ", ".join(f"run {run.number}: {run.suspect_trials}" for run in document.runs if run.suspect_trials)
    return (
        f"in {document.host.suspect} of {document.host.trials} trials frames were lost while the gateway's host was not"
        f" quiet ({by_run or 'in a run that is not finished'}); they do not count and were repeated"
    )


def behaviour_section(document: ResultDocument) -> Section:
    """What the state table shows in one trial of each run; no table if nothing was examined."""
    rows = (
        (run, behaviour)
        for run in document.runs
        if run.connections is not None and (behaviour := run.connections.behaviour) is not None
    )
    title = "The Tester's state table, one trial of each run"
    return Section(title="", tables=(table_of(title, BEHAVIOUR, rows),))


BEHAVIOUR: tuple[Column[tuple[RunResult, Behaviour]], ...] = (
    Column("run", lambda row: str(row[0].number)),
    Column("established", lambda row: format_count(row[1].established)),
    Column("examined", lambda row: format_count(row[1].examined)),
    Column("port\nkept", lambda row: format_count(row[1].port_preserved)),
    Column("parity\nkept", lambda row: format_count(row[1].parity_preserved)),
    Column("side of 1024\nkept", lambda row: format_count(row[1].port_class_preserved)),
    Column("public\naddresses", lambda row: format_count(row[1].public_addresses)),
    Column("public\nports", lambda row: format_count(row[1].public_ports)),
    Column("endpoints\ncompared", lambda row: format_count(row[1].sources_compared)),
    Column("with one public\nendpoint", lambda row: format_count(row[1].sources_endpoint_independent)),
    Column("ports", lambda row: f"{row[1].public_port_minimum} {DASH} {row[1].public_port_maximum}"),
)


def mapping_sentence(behaviour: Behaviour) -> str:
    """Whether a source endpoint has one public endpoint for all destinations (RFC 4787 section 4.1)."""
    compared, same = behaviour.sources_compared, behaviour.sources_endpoint_independent
    if not compared:
        return (
            "The trials do not show whether mapping depends on the destination: no endpoint of the Initiator had"
            " connections to several destinations."
        )
    those = f"of {format_count(compared)} endpoints of the Initiator with connections to several destinations"
    if same == compared and behaviour.port_preserved == behaviour.examined:
        return (
            f"Whether mapping depends on the destination cannot be determined: all {those} had one public endpoint, but"
            " every port was preserved, so that an endpoint-dependent gateway looks the same (RFC 4787 section 4.1)."
        )
    if same == compared:
        return f"Mapping is endpoint-independent: all {those} had one public endpoint (RFC 4787 section 4.1)."
    if not same:
        return f"Mapping is endpoint-dependent: none {those} had one public endpoint for all (RFC 4787 section 4.1)."
    return (
        f"Mapping is endpoint-dependent: {format_count(same)} {those} had one public endpoint for all, the others had"
        " several (RFC 4787 section 4.1)."
    )


def port_sentence(behaviour: Behaviour) -> str:
    """Port preservation, parity and class, and the public addresses and ports in use."""
    examined = behaviour.examined
    kept = (
        f"source port kept by {_share(behaviour.port_preserved, examined)}, its parity by"
        f" {_share(behaviour.parity_preserved, examined)}, its side of 1024 by"
        f" {_share(behaviour.port_class_preserved, examined)}"
    )
    several = "es" if behaviour.public_addresses != 1 else ""
    addresses = (
        "65,536 or more public addresses"
        if behaviour.public_addresses >= 65536
        else f"{format_count(behaviour.public_addresses)} public address{several}"
    )
    ports = f"{format_count(behaviour.public_ports)} public ports"
    return (
        f"Of {format_count(examined)} connections examined: {kept} (RFC 4787 section 4.2). In use: {addresses}, {ports}"
        f" from {behaviour.public_port_minimum} to {behaviour.public_port_maximum}."
    )


def _share(count: int, examined: int) -> str:
    if count == examined:
        return "all"
    return "none" if not count else f"{format_count(count)} ({100 * count / examined:.3g} %)"


def _behaviour_sentences(document: ResultDocument) -> Iterator[str]:
    """The run with the most connections, the earliest of several, stands for all: they use the same gateway."""
    behaviours = [
        run.connections.behaviour
        for run in document.runs
        if run.connections is not None and run.connections.behaviour is not None and run.connections.behaviour.examined
    ]
    if behaviours:
        behaviour = max(behaviours, key=lambda candidate: candidate.established)
        yield mapping_sentence(behaviour)
        yield port_sentence(behaviour)


def _count_sentences(document: ResultDocument) -> Iterator[str]:
    if not document.gateway.is_stateful:
        return
    counts = [(run, run.connections.gateway_counts) for run in document.runs if run.connections is not None]
    known = [(run, count) for run, count in counts if count is not None]
    if counts and not known:
        yield "The gateway does not count its connections, so its number and the Tester's could not be compared."
        return
    trials, equal = sum(count.phase_one for _, count in known), sum(count.phase_one_equal for _, count in known)
    if trials:
        yield (
            f"Gateway and Tester counted the same number of connections after test phase 1 in {format_count(equal)} of"
            f" {format_count(trials)} trials in which the Tester saw all of them established."
        )
    for run, count in known:
        if count.phase_one_equal < count.phase_one and run.connection_count is not None:
            yield (
                f"Run {run.number}, {format_count(run.connection_count)} connections: the gateway counted"
                f" {format_count(count.phase_one_minimum)} {DASH} {format_count(count.phase_one_maximum)}."
            )
    later, changed = sum(count.phase_two for _, count in known), sum(count.phase_two_changed for _, count in known)
    if later:
        yield (
            f"The gateway's number of connections changed during test phase 2 in {format_count(changed)} of"
            f" {format_count(later)} trials."
        )


def _zero_checksum_sentences(document: ResultDocument) -> Iterator[str]:
    if document.gateway.zero_udp_checksum:
        frames = sum(run.zero_checksum or 0 for run in document.runs)
        where = "In the Initiator's direction it is"
        if document.gateway.edge:
            where = "In the Responder's direction it is"  # a customer edge's NAT is before its translator
        elif TECHNOLOGIES[document.gateway.technology].families == ("ipv4", "ipv6"):
            where = "In either direction it may be"  # the NAT of a NAT46 is before its translator or behind it
        between = f" {where} due in a packet inside the gateway: there the Tester knows only how many are due."
        yield (
            f"{_frames(frames)} came with UDP checksum 0x0000 where 0xffff is due (RFC 768,"
            " RFC 8200 section 8.1). The gateway is known to do this, so they count as correct."
            + (between if document.gateway.is_stateful else "")
        )


def _header_sentences(document: ResultDocument) -> Iterator[str]:
    """Say what the gateway wrote into headers, for each run in which it did."""
    for run in document.runs:
        changes = run.header_changes
        if changes is None:
            continue
        of = _frames(changes.identifications)
        for words, count in changes.told():
            said = words.format(count=format_count(count), frames=_frames(count), identifications=of)
            yield f"Run {run.number}: {said}."


def _frames(count: int) -> str:
    return f"{format_count(count)} frame{'s' if count != 1 else ''}"


def _phase_one_sentence(run: RunResult, first: PhaseOne) -> str:
    reasons = "; ".join(f"{reason.reason} ({reason.trials})" for reason in first.reasons)
    way = f", {direction_label(run)}"
    rates = format_range(first.connections_per_second_minimum, first.connections_per_second_maximum, "to")
    return (
        f"Run {run.number}, {run.procedure_words}{way}, {format_count(run.connection_count)} connections:"
        f" {format_count(first.failed)} of {format_count(first.attempts)} attempts at test phase 1 failed, all made at"
        f" {rates} connections/s: {reasons}."
    )
