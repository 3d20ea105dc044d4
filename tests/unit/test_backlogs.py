"""Losses of a simulated gateway on a machine that is short of CPU time: whose they are."""

from fractions import Fraction

import pytest
from tests.simulated.stalls import drawn_stalls, simulated_trial

from gatemark.trial.suspicion import Suspicion, SuspicionPolicy, suspect
from gatemark.trial.verdict import judge

POLICY = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=False)
FRAME_S = (4.5e-6, 22e-6)
"""A fifth of the gateway's CPU at the load, and nearly nine tenths."""


@pytest.mark.parametrize("frame_s", FRAME_S)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_lost_because_both_are_kept_from_their_work_is_never_the_gateways(seed: int, frame_s: float) -> None:
    stalls = drawn_stalls(seed, lasts_s=0.5, every_s=(0.06, 0.14))
    trial, host = simulated_trial(stalls, frame_s=frame_s, seed=seed)
    assert not judge(trial, Fraction(0)).passed
    suspicion = suspect(trial, host, Fraction(0), POLICY)
    assert suspicion is not None, [way.longest_loss_runs for way in trial.directions]


def test_it_takes_both_to_explain_some_of_it() -> None:
    def suspicion_of(seed: int) -> Suspicion | None:
        stalls = drawn_stalls(seed, lasts_s=0.5, every_s=(0.06, 0.14))
        return suspect(*simulated_trial(stalls, frame_s=FRAME_S[0], seed=seed), Fraction(0), POLICY)

    reasons = [suspicion.reason for seed in range(8) if (suspicion := suspicion_of(seed))]
    assert any("others had" in reason and "the Tester sent" in reason for reason in reasons), reasons


@pytest.mark.parametrize("seed", range(8))
def test_a_gateway_that_stands_still_by_itself_is_blamed(seed: int) -> None:
    """For 30 ms, twice a second, on a machine that is short of CPU time three times a second."""
    by_itself = ((0.31, 0.34), (0.83, 0.86))
    stalls = drawn_stalls(seed, lasts_s=1, every_s=(0.2, 0.4), by_itself=by_itself)
    trial, host = simulated_trial(stalls, frame_s=FRAME_S[0], seed=seed)
    assert suspect(trial, host, Fraction(0), POLICY) is None
