"""The section of the report about conformity. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from gatemark.procedures.conformity.result import CaseResult, ConformityResult, Judgement
from gatemark.report.headline import not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, table_of
from gatemark.report.words import technology_words
from gatemark.results.document import ResultDocument

TITLE = "Conformity"
MEANING = (
    "A few packets of each case, decoded as they come back by a library that shares nothing with the engine. Control"
    " frames, which every gateway has to deliver, accompany them: otherwise a gateway that forwards nothing would seem"
    " to drop the packets that it has to drop. A case never fails where the RFC says SHOULD, not MUST."
)
JUDGEMENTS = MappingProxyType(
    {
        "conforms": "conforms",
        "does_not_conform": "does not conform",
        "differs": "differs from a SHOULD",
        "reported": "left open by the RFC",
        "no_result": "no result",
    }
)


def section(document: ResultDocument, runs: Sequence[ConformityResult]) -> Section:
    """Return the table of all cases, with a row for each domain."""
    several = len({case.domain for run in runs for case in run.cases}) > 1
    columns: tuple[Column[CaseResult], ...] = (
        Column("case", lambda case: f"{case.words}\n{case.what}", names=True, numeric=False),
        Column("domain", lambda case: str(case.domain + 1) if several else "", names=True, optional=True),
        Column("due", lambda case: f"{_due(case)}\n{case.section}", numeric=False),
        Column("seen", _seen, numeric=False),
        Column("judgement", lambda case: JUDGEMENTS[case.judgement], numeric=False, strong=True),
    )
    cases = table_of(TITLE, columns, (case for run in runs for case in run.cases))
    has_domains = several or document.gateway.map is not None
    return Section(title=TITLE, lead=(MEANING,), tables=(cases,), notes=(*_notes(runs, has_domains), *not_made(runs)))


def _due(case: CaseResult) -> str:
    if case.due == "reported":
        return "left open"
    if case.due == "not_decapsulated":
        return f"{case.level} not be decapsulated"
    if case.due == "translated":
        return f"{case.level} be dropped or translated"
    answer = f", {case.answer_level} answer {_icmp_words(case.answer)}" if case.answer is not None else ""
    how = " silently" if case.silently else " at least once" if case.some_suffice else ""
    return f"{case.level} be {case.due}{how}{answer}"


def _seen(case: CaseResult) -> str:
    """Say what became of the packets, and below it what is wrong with them."""
    if case.tester_limited:
        return "no valid exchange of the Tester"
    if case.judgement == "no_result":
        return f"only {case.controls_correct} of {case.controls_sent} control frames came through"
    if case.kept_in_tunnel and not case.arrived:
        what = f"{case.kept_in_tunnel} of {case.sent} forwarded in their tunnel"
    elif not case.arrived:
        what = f"{case.sent} of {case.sent} dropped"
    elif case.correct == case.arrived:
        what = f"{case.correct} of {case.sent} delivered"
    else:
        sides = (("left", case.arrived_left), ("right", case.arrived_right))
        where = " and ".join(f"{count} arrived on the {side}" for side, count in sides if count)
        what = f"of {case.sent} sent, {where}, {case.correct} of them correct"
    if case.hop_limits and case.hop_limits_due is not None and case.hop_limits_due[0] < case.hop_limits_due[1]:
        limits = " and ".join(map(str, case.hop_limits))
        what = f"{what}, with hop limit {limits} ({case.hop_limits_due[0]} to {case.hop_limits_due[1]} is due)"
    if case.classes and len(case.classes_due) > 1:
        whose = {case.classes_due[0]: "their own", case.classes_due[1]: "that of the outer header"}
        known = (f"{octet}, {whose[octet]}" if octet in whose else str(octet) for octet in case.classes)
        what = f"{what}, with traffic class {' and '.join(known)}"
    answers = ", ".join(f"{count} x {_icmp_words(name)}" for name, count in case.icmp.items())
    limited = "not answered, as those of another domain were" if case.may_be_limited else ""
    parts = (what, answers and f"answered: {answers}", limited, "; ".join(case.differences))
    return "\n".join(part for part in parts if part)


def _icmp_words(name: str) -> str:
    return name.replace("icmpv", "ICMPv")


def _notes(runs: Sequence[ConformityResult], has_domains: bool) -> Iterator[str]:
    for run in runs:
        wrong = [case for case in run.cases if case.judgement in ("does_not_conform", "differs")]
        for case in wrong:
            where = f"{case.words}, domain {case.domain + 1}" if has_domains else case.words
            due = "" if case.due_packet is None else f"; due is {case.due_packet}"
            yield f"{where}: each packet was {case.packet}{due}."
        if any(case.answer is not None for case in run.cases):
            yield "Whether the gateway counts what it drops cannot be seen from outside."


def sentence(part: ReportPart, run: ConformityResult) -> str:
    """Return how many cases conform, and which do not."""
    gateway = technology_words(part.document.gateway)
    named = [_named(case) for case in run.cases if _is_named(case.judgement)]
    conform = sum(case.judgement == "conforms" for case in run.judged)
    begin = f"Conformity of the gateway ({gateway}): {conform} of {len(run.judged)} cases conform"
    return f"{begin}; {'; '.join(named)}." if named else f"{begin}."


def _named(case: CaseResult) -> str:
    """Return how a case was judged; of packets that are due somewhere also where the RFC says so, and what arrived."""
    judged = f"{case.words} {JUDGEMENTS[case.judgement]}"
    if case.due_packet is None or case.judgement == "no_result":
        return judged
    return f"{judged} ({case.section}): {', '.join(_seen(case).splitlines())}"


def _is_named(judgement: Judgement) -> bool:
    return judgement in ("does_not_conform", "differs", "no_result")


def plots(part: ReportPart, runs: Sequence[ConformityResult]) -> Iterator[Plot]:
    """Yield nothing: there is no axis."""
    del part, runs
    yield from ()
