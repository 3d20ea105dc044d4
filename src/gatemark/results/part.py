"""What every part of `result.json` is built on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema, model_validator

from gatemark.facts import OneWay, TrafficClass
from gatemark.stats.summary import Number, Summary, number

LimitedBy = Literal["gateway", "tester", "host", "maximum"]
"""What limited a result. ``tester`` in any repetition: only a lower bound of the gateway is known. ``host``: the same,
and the Tester was not at fault, but other work held up the gateway's host in every trial at some load. ``maximum``: the
highest load allowed passed in a repetition, so the gateway may do more."""

NOT_THE_GATEWAY: frozenset[LimitedBy] = frozenset(("tester", "host"))
"""Limits that leave only a lower bound of the gateway."""

_RATIO = re.compile(r"[0-9]{1,40}(/[0-9]{0,39}[1-9][0-9]{0,39})?")


def _ratio(value: object) -> Fraction:
    if isinstance(value, Fraction | int):
        return Fraction(value)
    if not isinstance(value, str) or _RATIO.fullmatch(value) is None:
        raise ValueError('is not a ratio such as "4/5"')
    return Fraction(value)


Ratio = Annotated[
    Fraction,
    BeforeValidator(_ratio),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+(/[0-9]+)?$"}, mode="serialization"),
]
"""An exact ratio, published as a fraction: "4/5"."""


class Part(BaseModel):
    """A frozen part of the document; an unknown key is an error.

    Properties decorated with `computed_field` are published for readers and computed again when a document is read, so
    a figure never contradicts the counts from which it follows.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        alias_generator=lambda name: name.rstrip("_"),
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_what_is_computed(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if key not in cls.model_computed_fields}


class Document(Part):
    """A whole file."""

    def to_text(self) -> str:
        """Return the file's text: keys in a fixed order, so that two equal results are equal files."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"


class Figure(Part):
    """One figure over the repetitions."""

    values: tuple[Number | None, ...]
    """One value for each valid repetition; null where it could not be measured."""
    summary: Summary | None
    """Summary of the values. Null if any repetition lacks a value: the figure is then not measurable."""

    @classmethod
    def of(cls, values: Sequence[Fraction | int | float | None]) -> Self:
        """Return the figure as it is published, with these values: they are exact, and rounded once."""
        exact = [None if value is None else Fraction(value) for value in values]
        known = [value for value in exact if value is not None]
        return cls(
            values=tuple(None if value is None else number(value) for value in exact),
            summary=Summary.of(known) if known and len(known) == len(exact) else None,
        )

    @property
    def missing(self) -> int:
        return sum(value is None for value in self.values)


class PerRepetition(Part):
    """A part whose lists and figures have one value for each valid repetition: a document in which they do not is
    damaged."""

    of_one_repetition: ClassVar[tuple[str, ...]] = ()
    """Its lists that have not."""

    @model_validator(mode="after")
    def _has_one_value_for_each(self) -> Self:
        fields = [(name, value) for name, value in self if name not in self.of_one_repetition]
        lengths = dict.fromkeys((name, length) for name, value in fields for length in _lengths(value))
        if len({length for _, length in lengths}) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths)
            raise ValueError(f"values for different numbers of repetitions: {shown}")
        return self


class PerClass(PerRepetition):
    """A part about the frames of one direction and class."""

    direction: OneWay
    """Direction of the frames."""
    class_: TrafficClass
    """Class of the frames."""

    def at(self, load: int | None) -> dict[str, str | int | None]:
        """Return the coordinates of its figures at a load, frames/s."""
        return {"direction": self.direction, "class": self.class_, "load_frames_per_second": load}


def _lengths(value: object) -> Iterator[int]:
    if isinstance(value, Figure):
        yield len(value.values)
    elif isinstance(value, tuple):
        yield len(value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _lengths(part)


class ReasonPart(Part):
    """How many trials were invalid, or attempts failed, for this reason."""

    reason: str
    """The reason, with its figures left out, so that equal reasons fall together."""
    trials: int
    """Number of trials, or attempts, that had it."""


class ReasonCounter:
    """Counts in how many trials each reason occurs."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()

    def add(self, reasons: Sequence[str]) -> None:
        """Count the reasons of one trial, each once."""
        self._counted.update(dict.fromkeys((_general(reason) for reason in reasons), 1))

    def counted(self) -> tuple[ReasonPart, ...]:
        """Return the reasons with their trials, most frequent first."""
        return tuple(ReasonPart(reason=reason, trials=trials) for reason, trials in self._counted.most_common())


def _general(reason: str) -> str:
    """A reason without its figures: "forward: a burst was sent … late, … is allowed"."""
    return re.sub(r"\S+", lambda match: _without_figure(match[0]), reason)


def _without_figure(word: str) -> str:
    """Return a word with an ellipsis for its figure, but with what stands around that: "(12.5ms," is "(…,"."""
    figure = word.lstrip("(")
    if not figure[:1].isdecimal():
        return word
    before, after = len(word) - len(figure), len(figure.rstrip("),;:."))
    return f"{word[:before]}…{figure[after:]}"
