"""The base of what is read from the engine and from the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import ValidationError, WithJsonSchema

from gatemark import facts
from gatemark.errors import EngineError

Natural = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]
"""A count or a time of the engine. Its schema says that it is never negative; reading it takes no time to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """At a field: a row of the report's table of everything that was counted."""

    words: str
    whose: Literal["gateway", "Tester", "test network", "test bed"]
    """Whose fault it is, if it is one."""
    total: Callable[[Iterable[int]], int] = sum
    """Over all trials."""


class Facts(facts.Facts):
    """Facts of a trial, as the engine tells them."""

    @classmethod
    def read(cls, values: Mapping[str, Any], what: str) -> Self:
        """Read what the engine says of `what`; raise EngineError if something is missing or not known."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise EngineError(
                what=f"the report of {what} cannot be read ({'.'.join(map(str, first['loc']))}: {first['msg']})",
                where="engine",
                fix="engine and Python package must come from the same build; run `make` again",
            ) from error
