"""Trials with lost frames, and what the engine would tell of them: frame by frame, by other means than its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, groupby
from random import Random
from typing import Any

import numpy as np
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
Counts = dict[Any, tuple[int, int]]
"""Of each value, how many frames were lost and how many arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What frames differ by."""

    index: int
    source_port: int = 1024
    destination_port: int = 7
    source_host: int = 2
    destination_host: int = 2
    traffic_class: int = 0


@lru_cache(maxsize=8)
def frames(
    count: int,
    *,
    seed: int = 1,
    source_ports: range = range(1024, 65536),
    destination_ports: range = range(1, 49152),
    source_hosts: range = range(2, 3),
    destination_hosts: range = range(2, 3),
) -> Sequence[Frame]:
    """Return frames whose fields are drawn (RFC 4814 section 3.2); many tests want the same."""
    drawn = Random(seed)
    return [
        Frame(
            index=index,
            source_port=drawn.choice(source_ports),
            destination_port=drawn.choice(destination_ports),
            source_host=drawn.choice(source_hosts),
            destination_host=drawn.choice(destination_hosts),
        )
        for index in range(count)
    ]


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
    examined = [is_lost or looks_at(frame) for frame, is_lost in zip(sent, lost, strict=True)]
    whole = report()
    forward = whole.directions[0]
    counts = changed(
        forward.foreground,
        intended=len(sent),
        offered=len(sent),
        received=len(sent) - number,
        lost=number,
        loss=_loss(lost),
        loss_table=_table(list(compress(sent, examined)), list(compress(lost, examined))) if number else None,
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


def _table(sent: Sequence[Frame], lost: Sequence[bool]) -> LossTable:
    fields = [_field(name, [getattr(frame, name) for frame in sent], lost) for name in NUMBERS]
    pairs = [(frame.source_host, frame.destination_host) for frame in sent]
    ports = [(frame.source_port, frame.destination_port) for frame in sent]
    fields.append(_field("host_pair", pairs, lost))
    fields.append(_field("flow", list(zip(pairs, ports, strict=True)), lost))
    indexes, is_gone = np.array([frame.index for frame in sent]), np.array(lost)
    of_lost, of_others = indexes[is_gone], indexes[np.logical_not(is_gone)]
    for modulus in range(2, MODULUS_MAX + 1):
        gone, arrived = (np.bincount(which % modulus, minlength=modulus) for which in (of_lost, of_others))
        if not gone.all() and gone[arrived == 0].sum() >= 0.95 * gone.sum():
            residues = _field("index_residue", [frame.index % modulus for frame in sent], lost)
            fields.append(changed(residues, modulus=modulus, firsts=None))
            break
    return LossTable(
        lost=sum(lost), arrived=len(sent) - sum(lost), fields=tuple(field for field in fields if field.values > 1)
    )


def _field(name: Any, values: Sequence[Hashable], lost: Sequence[bool]) -> LossField:
    of_lost, of_all = Counter(compress(values, lost)), Counter(values)
    counts = {value: (gone := of_lost.get(value, 0), number - gone) for value, number in of_all.items()}
    dead = [value for value, (gone, arrived) in counts.items() if gone and not arrived]
    heaviest = sorted((value for value in counts if counts[value][0]), key=lambda value: (-counts[value][0], value))
    is_number = name in NUMBERS
    return LossField(
        field=name,
        modulus=None,
        lost=sum(gone for gone, _ in counts.values()),
        arrived=sum(arrived for _, arrived in counts.values()),
        values=len(counts),
        losing=len(heaviest),
        dead=len(dead),
        lost_in_dead=sum(counts[value][0] for value in dead),
        firsts=None if is_number else _firsts(values, lost),
        heaviest=tuple(
            LossOfValue(name=str(value), lost=counts[value][0], arrived=counts[value][1]) for value in heaviest[:KEPT]
        ),
        ranges=_ranges(counts) if is_number else (),
        bits=tuple(LossCount(lost=int(gone), arrived=int(arrived)) for gone, arrived in _with_bits(counts))
        if is_number
        else (),
    )


def _firsts(values: Sequence[Hashable], lost: Sequence[bool]) -> int:
    """Return of how many values the first frame was lost."""
    first_is_lost = dict(zip(reversed(values), reversed(lost), strict=True))  # what comes last is kept
    return sum(first_is_lost.values())


def _with_bits(counts: Counts) -> list[Any]:
    """Return how many frames of the values with each bit were lost and arrived."""
    values, of_value = np.array(list(counts)), np.array(list(counts.values()))
    return [of_value[values >> bit & 1 == 1].sum(axis=0) for bit in range(16)]


def _ranges(counts: Counts) -> tuple[DeadRange, ...]:
    ranges = []
    for is_dead, group in groupby(sorted(counts), key=lambda value: not counts[value][1]):
        if is_dead:
            values = list(group)
            gone = sum(counts[value][0] for value in values)
            ranges.append(DeadRange(first=str(values[0]), last=str(values[-1]), values=len(values), lost=gone))
    kept = sorted(ranges, key=lambda run: -run.lost)[:KEPT]
    return tuple(sorted(kept, key=lambda run: int(run.first)))
