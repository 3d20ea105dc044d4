"""Makes the text of a first campaign file that fits into its time, and writes it where there is none."""

from __future__ import annotations

from pathlib import Path

from gatemark.campaign.estimate import estimate
from gatemark.campaign.file import campaign_from_text, schema_text
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.results.new_file import new_file
from gatemark.starter.text import SCHEMA, Answers, blocks, campaign_text
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns


def first_campaign(answers: Answers, most_ns: int | None, file: Path) -> str:
    """Return the text of a campaign file to be written to `file`, with the most trials that fit into a time.

    Raises ConfigError if it cannot be measured, or not in that time.
    """
    least_ns = 0
    for level in blocks()["levels"]:
        text = campaign_text(answers, level, file=file.name, name=file.stem)
        written = campaign_from_text(text, file)
        needed_ns = estimate(complete_campaign(written)).seconds_max * NANOSECONDS_PER_SECOND
        if most_ns is None or needed_ns <= most_ns:
            return campaign_text(answers, level, file=file.name, name=file.stem, time=format_duration_ns(needed_ns))
        least_ns = needed_ns
    what = f"is too short: the shortest campaign of these takes up to {format_duration_ns(least_ns)}"
    raise ConfigError(what=what, where="time", fix="allow more, or measure less")


def write_first(text: str, file: Path) -> None:
    """Write the campaign file, and the JSON Schema that it names for editors if there is none.

    Raises ConfigError if the file exists.
    """
    with new_file(file, where=str(file)) as target:
        target.write(text.encode())
    schema = file.with_name(SCHEMA)
    if not schema.exists():
        with new_file(schema, where=str(schema)) as target:
            target.write(schema_text().encode())
