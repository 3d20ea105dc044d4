"""What a gateway of known settings does to known traffic: formulas, each with its reason. Pure.

Rates are per second, times nanoseconds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from fractions import Fraction

SECOND_NS = 10**9


def throughput(capacity: int, queue: int, duration_ns: int) -> Fraction:
    """Return the highest constant load without loss of a trial of this length, frames/s.

    A load r above the capacity C leaves (r - C) T frames in the gateway after T seconds. The last frame must not find
    more than `queue` of them, of which one is in service: r = C + queue / T.
    """
    return capacity + Fraction(queue * SECOND_NS, duration_ns)


def frames_lost(load: int, capacity: int, queue: int, duration_ns: int) -> Fraction:
    """Return how many frames of a trial are lost at a load above the capacity.

    Of r T frames C T are served and `queue` wait at the end, which the gateway forwards later.
    """
    return Fraction((load - capacity) * duration_ns, SECOND_NS) - queue


def longest_burst(line: int, capacity: int, queue: int) -> Fraction:
    """Return the longest burst at line rate L without loss, frames.

    While n - 1 frames arrive, (n - 1) C / L are served. The last one must not find more than `queue` in the gateway:
    (n - 1) (1 - C / L) = queue.
    """
    return 1 + Fraction(queue * line, line - capacity)


def smallest_gap(line: int, capacity: int, queue: int, burst: int, duration_ns: int) -> Fraction:
    """Return the smallest gap between bursts of n frames at line rate L without loss in a trial of this length, ns.

    A burst leaves n (1 - C / L) frames in the gateway, so at a load r in the long run, after T seconds, the last frame
    must not find more than `queue`: (r - C) T + n (1 - C / L) = queue. The gap is n / r - n / L.
    """
    left = queue - burst * (1 - Fraction(capacity, line))
    load = throughput(capacity, 0, duration_ns) + left * SECOND_NS / duration_ns
    return burst * SECOND_NS * (1 / load - Fraction(1, line))


def establishment_rate(tokens_per_second: int, burst: int, connections: int) -> Fraction:
    """Return the highest rate at which all N connections are established, connections/s.

    A token is taken for each connection; E come a second and b are there at the start. The last connection is asked for
    (N - 1) / R after the first: b + E (N - 1) / R >= N.
    """
    return Fraction(tokens_per_second * (connections - 1), connections - burst)


def drawn_connections(count: int, frames: int) -> tuple[float, float]:
    """Return how many of K connections F frames have that each draw one: mean and standard deviation.

    A connection has none with probability p = (1 - 1/K)^F, two given ones both have none with q = (1 - 2/K)^F: the
    number of those without has mean K p and variance K p + K (K - 1) q - (K p)^2.
    """
    none, none_of_two = (1 - 1 / count) ** frames, (1 - 2 / count) ** frames
    variance = count * none + count * (count - 1) * none_of_two - (count * none) ** 2
    return count * (1 - none), math.sqrt(variance)


def validated_rate(capacity: int, queue: int, connections: int, alpha: Fraction) -> Fraction:
    """Return the highest validated rate R where the way back carries C frames/s, connections/s.

    The validation is a burst of N frames at alpha R: (N - 1) (1 - C / (alpha R)) = queue.
    """
    return Fraction(capacity * (connections - 1), connections - 1 - queue) / alpha


def percentile(values: Sequence[int], per_100000: int) -> int:
    """Return the smallest value that `per_100000` hundred-thousandths of all do not exceed (RFC 2330 section 11.3)."""
    rank = max(1, -(-per_100000 * len(values) // 100_000))
    return sorted(values)[rank - 1]


def median(values: Sequence[int]) -> Fraction:
    """Return the median; of an even number the mean of the middle two."""
    return statistics.median(map(Fraction, values))


def variations(values: Sequence[int]) -> list[int]:
    """Return the differences of successive delays of frames that take these values in turn, without end."""
    return [value - before for before, value in zip((values[-1], *values[:-1]), values, strict=True)]
