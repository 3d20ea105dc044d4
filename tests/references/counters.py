"""The objects of a line of the journal, and where the report shows each counter."""

from __future__ import annotations

from collections.abc import Mapping

from tests.counter_places import OWN_DROPS, SHOWN
from tests.references.objects import Page
from tests.references.page import table

from gatemark.report.counters import PLACES
from gatemark.trial.delay import DelayFacts
from gatemark.trial.echo import EchoFacts
from gatemark.trial.host import HostFacts
from gatemark.trial.host_counters import HOST_COUNTERS
from gatemark.trial.loss import LossFacts
from gatemark.trial.named_counts import FAULTS
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import ConnectionFacts, TrialRecord
from gatemark.trial.report import Counts, DirectionResult, Foreign, PortFacts, SendingClocks, TrialReport
from gatemark.trial.telemetry import TelemetryFacts


def _shown(kind: type, key: str) -> str:
    part = next((name for name, model in PLACES.items() if model is kind), "")
    return SHOWN.get(f"{part}.{key}", "")


PAGE = Page(
    roots={
        "the-line": TrialRecord,
        "host": HostFacts,
        "telemetry": TelemetryFacts,
        "order": TrialOrder,
        "connections-of-the-line": ConnectionFacts,
        "report": TrialReport,
        "echo": EchoFacts,
        "clocks": SendingClocks,
        "a-direction": DirectionResult,
        "a-class": Counts,
        "loss": LossFacts,
        "delay": DelayFacts,
        "ports": PortFacts,
        "foreign": Foreign,
    },
    are_anchors=True,
    shown=_shown,
)


NAMES: Mapping[str, tuple[tuple[str, str], Mapping[str, str]]] = {
    "the-reasons": (("reason", "the frame that arrived"), FAULTS),
    "the-kinds-of-drops": (("kind of `own_drops`", "what became of the frame"), OWN_DROPS),
    "the-hosts-counters": (
        ("name in `counters`", "what was counted"),
        {row.pattern: f"{row.speaks_of}: {row.words}" for row in HOST_COUNTERS},
    ),
}
"""Maps of counts whose names have a meaning each."""


def block(name: str) -> str:
    """Return a block of the page."""
    if name not in NAMES:
        return PAGE.block(name)
    headings, names = NAMES[name]
    return table(headings, ((f"`{key}`", words) for key, words in names.items()))
