"""Does a valid trial meet the goal? The only place that decides between pass and fail."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gatemark.packets import Packet, Read, read_frame
from gatemark.trial.facts import Facts
from gatemark.trial.report import ZERO_CHECKSUM_ONE_OF, Counts, TrialReport, arriving_at
from gatemark.units import format_ratio


class Verdict(Facts):
    """Whether one valid trial met the goal."""

    passed: bool
    """Whether it did."""
    reasons: tuple[str, ...] = ()
    """Why it did not, as sentences with numbers; empty if passed."""


def judge(report: TrialReport, loss_tolerance: Fraction, *, establishes_all: bool = True) -> Verdict:
    """Judge a valid trial against a loss tolerance in [0, 1].

    RFC 2544 section 26.1 wants as many frames back as were sent, which is a tolerance of 0. It holds for every
    direction and for foreground and background each, so that one dead direction cannot hide behind a good one. Faulty
    frames count as lost, and so do those that came back after the frame timeout. Duplicates count separately against
    the same tolerance, so that they never replace lost frames. No tolerance applies to connections that were not
    established (RFC 9693 section 4.2); without `establishes_all` some are meant to have no frame.
    """
    if report.cancelled:
        raise ValueError("a cancelled trial has no verdict")
    reasons: list[str] = []
    if not report.directions:
        reasons.append("nothing was offered")
    for direction in report.directions:
        if not direction.offered:
            reasons.append(f"{direction.direction}: nothing was offered")
            continue
        remarks = {
            "udp_checksum": _checksum_remark(report, direction.direction),
            "hop_limit": _hop_limit_remark(report, direction.direction),
        }
        for class_name, counts in direction.classes:
            reasons += _problems(f"{direction.direction} {class_name}", counts, loss_tolerance, remarks)
    if establishes_all and report.connections is not None and report.connections.missing:
        reasons.append(f"{report.connections.missing} of {report.connections.count} connections were not established")
    return Verdict(passed=not reasons, reasons=tuple(reasons))


def _checksum_remark(report: TrialReport, direction: str) -> str:
    """Say that wrong UDP checksums are what software leaves to a card that adds the rest; empty if they are not."""
    kept = kept_frames(report, direction, "udp_checksum")
    if not kept or not all(isinstance(packet, Packet) and packet.checksum_left_to_hardware for packet in kept):
        return ""
    return f": the first {len(kept)} have the sum of the pseudo-header, so it was left to hardware"


def _hop_limit_remark(report: TrialReport, direction: str) -> str:
    """Say which hop limits the first frames with a wrong one have; empty if none was kept."""
    limits = kept_hop_limits(report, direction)
    return f": the first have {limits}" if limits else ""


def kept_hop_limits(report: TrialReport, direction: str) -> str:
    """Return the wrong hop limits of the frames that were kept, such as "62" or "61 and 62"; empty if none was."""
    kept = kept_frames(report, direction, "hop_limit")
    return " and ".join(map(str, sorted({packet.hop_limit for packet in kept if isinstance(packet, Packet)})))


def kept_frames(report: TrialReport, direction: str, reason: str) -> list[Read]:
    """Return the frames of a direction that were kept for a reason, as they are read."""
    return [
        read_frame(bytes.fromhex(frame.octets))
        for frame in report.kept_frames
        if frame.reason == reason and arriving_at(frame.side) == direction
    ]


def _problems(name: str, counts: Counts, loss_tolerance: Fraction, remarks: Mapping[str, str]) -> list[str]:
    if not counts.offered:
        return [f"{name}: nothing was offered"]
    reasons = []
    allowed = loss_tolerance * counts.offered
    beyond = f", more than {format_ratio(loss_tolerance)}" if loss_tolerance else ""
    arrived = counts.received + counts.faulty + counts.late
    if arrived > counts.offered:
        reasons.append(f"{name}: {arrived} distinct frames came back of {counts.offered} offered")
    if counts.undelivered > allowed:
        zeros = counts.excess_zero_checksums
        lost = counts.undelivered - counts.faulty - counts.late - zeros
        if lost > 0:
            reasons.append(f"{name}: {lost} of {counts.offered} frames were lost{beyond}")
        if counts.late:
            reasons.append(
                f"{name}: {counts.late} of {counts.offered} frames came back after the frame timeout{beyond}"
            )
        if counts.faulty:
            reasons.append(
                f"{name}: {counts.faulty} of {counts.offered} frames were faulty{_by_reason(counts, remarks)}{beyond}"
            )
        if zeros:
            share = round(counts.received / counts.zero_checksum)
            reasons.append(
                f"{name}: {counts.zero_checksum} of {counts.received} frames have UDP checksum 0, 1 of {share:,}, where"
                f" 0xffff is due in 1 of {ZERO_CHECKSUM_ONE_OF:,} (udp_checksum){beyond}"
            )
    elif counts.faulty > allowed:  # only where more came back than was offered
        reasons.append(
            f"{name}: {counts.faulty} of {counts.offered} frames were faulty{_by_reason(counts, remarks)}{beyond}"
        )
    if counts.duplicate > allowed:
        reasons.append(f"{name}: {counts.duplicate} frames arrived more than once{beyond}")
    return reasons


def _by_reason(counts: Counts, remarks: Mapping[str, str]) -> str:
    faults = sorted(counts.faults.items())
    named = ", ".join(f"{reason} {count}{remarks.get(reason, '')}" for reason, count in faults if count)
    return f" ({named})" if named else ""
