"""Counters that are not in the table of counters: where else the report shows them, or why it does not."""

from __future__ import annotations

from collections.abc import Mapping

from tests.enumerators import described

from gatemark.report.counters import COUNTERS

SHOWN_ELSEWHERE: Mapping[str, str] = {
    "counts.intended": "table of trials",
    "counts.offered": "table of trials",
    "counts.received": "table of trials",
    "counts.faulty": "table of trials",
    "counts.lost": "table of trials",
    "counts.faults": "table of faults by reason",
    "loss.by_slice": "plots of loss over time",
    "counts.loss_table": "why frames were lost",
    "counts.identifications": "observations, if they repeat",
    "counts.distinct_identifications": "observations, if they repeat",
    "direction.longest_loss_runs": "why frames were lost",
    "direction.late_bursts": "why a failure is suspect",
    "direction.direction": "table of trials",
    "direction.frames_per_second": "table of trials",
    "direction.lateness_max_ns": "table of trials",
    "direction.lateness_histogram": "plot of lateness",
    "port.link_up": "reasons of invalid trials",
    "port.link_losses": "reasons of invalid trials",
    "delay.samples": "tables of delays",
    "delay.percentiles": "tables of delays",
    "delay.minimum_ns": "tables of delays",
    "delay.maximum_ns": "tables of delays",
    "delay.histogram": "plots of delays",
    "delay.tags": "table of latency",
    "delay.variation": "table of inter packet delay variation",
}
"""Counters that other tables and plots show, and which."""

JOURNAL_ONLY: Mapping[str, str] = {
    "loss.first_index": "recovery and reset are computed from it",
    "loss.last_index": "recovery and reset are computed from it",
    "loss.first_runs": "for a closer look at one trial",
    "direction.intended_duration_ns": "follows from the campaign",
    "counts.frame_octets": "follows from the campaign",
    "direction.sending_ns": "judged for validity",
    "port.received_by_queue": "for a closer look at one trial",
    "delay.negative_maximum_ns": "judged for validity",
    "port.clock_error_ns": "judged for validity",
    "clocks.cycle_counter_ns": "judged for validity",
    "clocks.monotonic_raw_ns": "judged for validity",
}
"""Counters that stay in the journal, and why."""

SHOWN: Mapping[str, str] = {
    **dict.fromkeys(COUNTERS, "table of counters"),
    **SHOWN_ELSEWHERE,
    **{place: f"no: {why}" for place, why in JOURNAL_ONLY.items()},
}
"""Where the report shows each counter, in words."""

OWN_DROPS = described("io/kernel_drops.hpp", "OwnDrop") | described("loop/neighbor_mailbox.hpp", "NeighborDrop")
"""Kinds of frames that were lost on the Tester's side of the wire, and what became of them."""
