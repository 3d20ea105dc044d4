"""What `gatemark run` and `gatemark demo` print at the end. Pure except for the printing: documents in, tables out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from gatemark.consoles import stdout_console
from gatemark.report.comparison import comparison_section
from gatemark.report.damages import damages_sentences
from gatemark.report.figure_tables import rate_tables
from gatemark.report.headline import not_made
from gatemark.report.losses import losses_sentences
from gatemark.report.observed import observations, phase_one_failures, suspect_words
from gatemark.report.self_error import ceiling_notes, no_self_test
from gatemark.report.series import series_section
from gatemark.report.table import Section
from gatemark.report.terminal import section_text
from gatemark.results.document import ResultDocument
from gatemark.results.search import RateResult


def print_result(
    reports: Sequence[tuple[ResultDocument, Sequence[Section]]],
    *,
    report: str | None,
    console: Console | None = None,
) -> None:
    """Print the tables of a campaign, what stands against a claim, and where the report is.

    For several campaigns only what compares them is printed: the rest is in the report.
    """
    console = console or stdout_console()
    documents = [document for document, _ in reports]
    for section, name in shown_sections(reports):
        for printed in section_text(section, name=name, width=console.width):
            console.print(printed)
    _print_notes(console, documents)
    if report is not None:
        console.print(Text(f"report: {report}"), soft_wrap=True)


def shown_sections(
    reports: Sequence[tuple[ResultDocument, Sequence[Section]]],
) -> Iterator[tuple[Section, str]]:
    """Yield the tables of a campaign, each with the name of the gateway; of several campaigns what compares them.

    Rates come first, in the layout of RFC 9693 section 6 if there are connections, then everything else.
    """
    comparison = comparison_section([document for document, _ in reports])
    if comparison is not None:
        yield comparison, ""
        return
    for document, sections in reports:
        series = series_section(document)
        rates = tuple(rate_tables([document])) if series is None else series.tables
        refused = not_made(run for run in document.runs if isinstance(run, RateResult))
        yield Section(title="", tables=rates, notes=refused), document.gateway.name
        yield from ((section, document.gateway.name) for section in sections if not section.in_rate_tables)


def _print_notes(console: Console, documents: Sequence[ResultDocument]) -> None:
    for document in documents:
        for sentence in (
            *losses_sentences(document),
            *damages_sentences(document),
            *observations(document),
            *phase_one_failures(document),
            *ceiling_notes(document),
        ):
            console.print(Text(f"{document.name}: {sentence}"))
        if document.validity.invalid:
            console.print(
                Text(f"{document.name}: {document.validity.invalid} of {document.validity.trials} trials invalid")
            )
        if document.host is not None and document.host.suspect:
            console.print(Text(f"{document.name}: {suspect_words(document)}"))
        if document.status != "complete":
            console.print(Text(f"{document.name}: incomplete, {len(document.runs)} of {document.runs_planned} runs"))
    for note in dict.fromkeys(note for document in documents for note in no_self_test(document)):
        console.print(Text(note))
    claims = (document.claim for document in documents)
    for sentence in dict.fromkeys(said for claim in claims for said in (claim.sentence, claim.informational) if said):
        console.print(Text(sentence))
