"""Trials with lost frames, and what the engine would tell of them: frame by frame, by other means than its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.trial_facts import changed
from tests.unit.test_judgement import report

from gatemark.trial.loss import (
    DeadRange,
    LossCount,
    LossFacts,
    LossField,
    LossOfValue,
    LossRun,
    LossTable,
)
from gatemark.trial.report import TrialReport

SLICES, KEPT, MODULUS_MAX = 100, 8, 64
NUMBERS = ("source_port", "destination_port", "source_host", "destination_host", "traffic_class")
Numbers = NDArray[np.uint64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What frames differ by."""

    index: int
    source_port: int = 1024
    destination_port: int = 7
    source_host: int = 2
    destination_host: int = 2
    traffic_class: int = 0


class Sent(tuple[Frame, ...]):
    """Frames of a trial."""

    @cached_property
    def columns(self) -> dict[str, Numbers]:
        """Each of their fields as an array."""
        names = ("index", *NUMBERS)
        return {name: np.array([getattr(frame, name) for frame in self], dtype=np.uint64) for name in names}


@lru_cache(maxsize=8)
def frames(
    count: int,
    *,
    seed: int = 1,
    source_ports: range = range(1024, 65536),
    destination_ports: range = range(1, 49152),
    source_hosts: range = range(2, 3),
    destination_hosts: range = range(2, 3),
) -> Sent:
    """Return frames whose fields are drawn (RFC 4814 section 3.2); many tests want the same."""
    drawn = Random(seed)
    return Sent(
        Frame(
            index=index,
            source_port=drawn.choice(source_ports),
            destination_port=drawn.choice(destination_ports),
            source_host=drawn.choice(source_hosts),
            destination_host=drawn.choice(destination_hosts),
        )
        for index in range(count)
    )


def lossy(
    sent: Sequence[Frame],
    loses: Callable[[Frame], bool],
    *,
    frames_per_second: int = 100_000,
    looks_at: Callable[[Frame], bool] = lambda _: True,
) -> TrialReport:
    """Return the report of a trial in the forward direction; its table is of lost frames and of those `looks_at`."""
    lost = [bool(loses(frame)) for frame in sent]
    number = sum(lost)
    examined = np.array([is_lost or looks_at(frame) for frame, is_lost in zip(sent, lost, strict=True)])
    columns = (sent if isinstance(sent, Sent) else Sent(sent)).columns
    whole = report()
    forward = whole.directions[0]
    counts = changed(
        forward.foreground,
        intended=len(sent),
        offered=len(sent),
        received=len(sent) - number,
        lost=number,
        loss=_loss(lost),
        loss_table=_table({name: values[examined] for name, values in columns.items()}, np.array(lost)[examined])
        if number
        else None,
    )
    runs = sorted(_runs(lost), key=lambda run: -run.length)[:64]
    direction = changed(
        forward,
        frames_per_second=frames_per_second,
        foreground=counts,
        longest_loss_runs=tuple(sorted(runs, key=lambda run: run.index)),
    )
    return changed(whole, directions=(direction,))


def _runs(lost: Iterable[bool]) -> list[LossRun]:
    runs, index = [], 0
    for is_lost, group in groupby(lost):
        length = len(list(group))
        if is_lost:
            runs.append(LossRun(index=index, length=length))
        index += length
    return runs


def _loss(lost: Sequence[bool]) -> LossFacts:
    runs, indexes = _runs(lost), [index for index, is_lost in enumerate(lost) if is_lost]
    by_slice = [0] * SLICES
    for index in indexes:
        by_slice[index * SLICES // len(lost)] += 1
    return LossFacts(
        runs=len(runs),
        longest_run=max((run.length for run in runs), default=0),
        first_index=min(indexes, default=0),
        last_index=max(indexes, default=0),
        first_runs=tuple(runs[:16]),
        by_slice=tuple(by_slice),
    )


def _table(columns: dict[str, Numbers], lost: Marks) -> LossTable:
    fields = [_field(name, [columns[name]], lost) for name in NUMBERS]
    hosts, ports = ([columns[f"{end}_{what}"] for end in ("source", "destination")] for what in ("host", "port"))
    fields.append(_field("host_pair", hosts, lost))
    fields.append(_field("flow", [*hosts, *ports], lost))
    indexes = columns["index"].astype(np.int64)
    for modulus in range(2, MODULUS_MAX + 1):
        gone, arrived = (np.bincount(indexes[which] % modulus, minlength=modulus) for which in (lost, ~lost))
        if not gone.all() and gone[arrived == 0].sum() >= 0.95 * gone.sum():
            residues = _field("index_residue", [columns["index"] % np.uint64(modulus)], lost)
            fields.append(changed(residues, modulus=modulus, firsts=None))
            break
    number = int(lost.sum())
    return LossTable(
        lost=number, arrived=len(lost) - number, fields=tuple(field for field in fields if field.values > 1)
    )


def _field(name: Any, parts: Sequence[Numbers], lost: Marks) -> LossField:
    """Return the losses by values that have so many parts of 16 bits."""
    keys = sum((part << np.uint64(16 * place) for place, part in enumerate(reversed(parts))), np.uint64(0))
    values, first, places = np.unique(keys, return_index=True, return_inverse=True)
    gone, number = (np.bincount(which, minlength=len(values)) for which in (places[lost], places))
    arrived = number - gone
    dead = (gone > 0) & (arrived == 0)
    heaviest = np.lexsort((values, -gone))[: np.count_nonzero(gone)]
    is_number = name in NUMBERS
    return LossField(
        field=name,
        modulus=None,
        lost=int(gone.sum()),
        arrived=int(arrived.sum()),
        values=len(values),
        losing=len(heaviest),
        dead=int(dead.sum()),
        lost_in_dead=int(gone[dead].sum()),
        firsts=None if is_number else int(lost[first].sum()),
        heaviest=tuple(
            LossOfValue(
                name=" ".join(str(part[first[place]]) for part in parts),
                lost=int(gone[place]),
                arrived=int(arrived[place]),
            )
            for place in heaviest[:KEPT]
        ),
        ranges=_ranges(values, gone, arrived) if is_number else (),
        bits=tuple(_with_bits(values, gone, arrived)) if is_number else (),
    )


def _with_bits(values: Numbers, gone: NDArray[Any], arrived: NDArray[Any]) -> Iterable[LossCount]:
    """Yield how many frames of the values with each bit were lost and arrived."""
    for bit in range(16):
        has_it = values >> np.uint64(bit) & np.uint64(1) == 1
        yield LossCount(lost=int(gone[has_it].sum()), arrived=int(arrived[has_it].sum()))


def _ranges(values: Numbers, gone: NDArray[Any], arrived: NDArray[Any]) -> tuple[DeadRange, ...]:
    ranges = []
    for is_dead, group in groupby(range(len(values)), key=lambda place: not arrived[place]):
        if is_dead:
            places = list(group)
            ranges.append(
                DeadRange(
                    first=str(values[places[0]]),
                    last=str(values[places[-1]]),
                    values=len(places),
                    lost=int(gone[places].sum()),
                )
            )
    kept = sorted(ranges, key=lambda run: -run.lost)[:KEPT]
    return tuple(sorted(kept, key=lambda run: int(run.first)))
