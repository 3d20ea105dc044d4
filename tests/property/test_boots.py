"""A gateway that stops working in any trials changes none that counts; the campaign resumes to the same journal."""

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.journals import read_journal
from tests.property.examples import examples
from tests.unit.collapsing_gateways import Killing, campaign, loads, run

from gatemark.errors import TestBedError

STATELESS, STATEFUL = campaign(), campaign(stateful=True)


def outcome(path: Path, *, deadly: Collection[int], stateful: bool) -> object:
    """How the campaign ends: its results, or that the gateway stopped working too often."""
    engine = Killing(deadly, per_trial=16 if stateful else 1)
    try:
        return run(path, STATEFUL if stateful else STATELESS, engine)
    except TestBedError as error:
        return error.what


def timeless(path: Path) -> list[dict[str, Any]]:
    """The journal without its times, and without what a resumed campaign asks once more."""
    left_out: dict[str, Any] = {"started_at": True, "seconds": True, "connections": {"behaviour"}}
    records = [record.model_dump(exclude=left_out) for record in read_journal(path)]
    return [{**record, "boot": record["boot"] and record["boot"]["why"]} for record in records]


@examples(6, many=25)
@given(
    deadly=st.one_of(st.sets(st.integers(1, 20)), st.sets(st.integers(4, 8), min_size=3)),
    cut=st.fractions(0, 1),
    stateful=st.booleans(),
)
def test_collapses_change_nothing_that_counts(deadly: set[int], cut: Any, stateful: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        calm, whole, part = (Path(folder) / name for name in ("calm", "whole", "part"))
        outcome(calm, deadly=(), stateful=stateful)
        ended = outcome(whole, deadly=deadly, stateful=stateful)
        counted, expected = loads(read_journal(whole)), loads(read_journal(calm))
        assert counted == expected[: len(counted)]
        in_a_row = any({number, number + 1, number + 2, number + 3} <= deadly for number in range(1, 20))
        assert (ended == "it is gone") <= in_a_row
        assert len(counted) == len(expected) or ended == "it is gone"
        octets = whole.read_bytes()
        part.write_bytes(octets[: int(cut * len(octets))])
        assert outcome(part, deadly=deadly, stateful=stateful) == ended
        assert timeless(part) == timeless(whole)
