"""Whatever frames are lost, of whatever traffic: causes are judged, and never explain more than was lost."""

from __future__ import annotations

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st
from tests.loss_tables import Frame, frames, lossy
from tests.property.examples import examples
from tests.trial_facts import changed

from gatemark.causes.registry import causes_of
from gatemark.trial.form import PLAIN
from gatemark.trial.loss import LossTable
from gatemark.trial.verdict import Verdict

FAILED = Verdict(passed=False, reasons=("frames were lost",))
WAYS = ("drawn", "turns", "rows", "from", "until", "ports", "hosts", "all")


def loses(way: str, amount: float, sent: int, drawn: Random, frame: Frame) -> bool:
    """Whether a frame is lost: one of the ways, in an amount from 0 to 1."""
    position = frame.index / sent
    return {
        "drawn": drawn.random() < amount,
        "turns": frame.index % max(1, round(1 / amount)) == 0,
        "rows": int(position * 16) % 2 == 0 and position % 0.125 < amount / 8,
        "from": position >= 1 - amount,
        "until": position <= amount,
        "ports": frame.destination_port <= amount * 9,
        "hosts": frame.destination_host <= amount * 9 and drawn.random() < 0.7,
        "all": True,
    }[way]


@examples(100, many=20_000)
@given(
    sent=st.integers(1, 400),
    ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=2),
    amount=st.floats(0.002, 1),
    ports=st.integers(1, 9),
    hosts=st.integers(1, 9),
    table=st.sampled_from(["whole", "without fields", "without slices", "of lost frames"]),
    rate=st.sampled_from([10, 1_000, 100_000]),
)
@example(sent=400, ways=["drawn"], amount=0.5, ports=1, hosts=1, table="without fields", rate=1_000)
def test_every_trial_with_losses_is_judged(
    sent: int, ways: list[str], amount: float, ports: int, hosts: int, table: str, rate: int
) -> None:
    of_trial = frames(sent, destination_ports=range(1, 1 + ports), destination_hosts=range(1, 1 + hosts))
    drawn = Random(sent)
    report = lossy(
        of_trial,
        lambda frame: any(loses(way, amount, sent, drawn, frame) for way in ways),
        frames_per_second=rate,
        looks_at=lambda frame: table != "of lost frames",
    )
    direction = report.directions[0]
    counts = direction.foreground
    if not counts.lost:
        return
    assert counts.loss_table is not None
    if table == "without fields":
        counts = changed(counts, loss_table=LossTable(lost=counts.lost, arrived=counts.received, fields=()))
    if table == "without slices":
        counts = changed(counts, loss=changed(counts.loss, by_slice=()))
    report = changed(report, directions=(changed(direction, foreground=counts),))
    for cause in causes_of(report, FAILED, PLAIN, None):
        assert 0 < cause.lost <= counts.lost, cause
        assert cause.sentence and cause.what
