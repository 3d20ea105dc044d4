"""A reference gateway whose capacity falls by a known law with the number of its flows: the degradation is found."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.machine import missing, nothing_compared

from gatemark.calibrate import truth
from gatemark.calibrate.base import campaign_of, gateway_of
from gatemark.calibrate.links import ADMITTED, ReferenceTestBed, open_links
from gatemark.calibrate.model import Check
from gatemark.dut.steering import plan_cores, stepping_back, usable_cpus
from gatemark.refdut.document import Flow
from gatemark.refdut.process import RefDut, find_refdut
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.toml_text import to_toml
from gatemark.series.run import measure_series
from gatemark.stats.series import degradation_percent
from gatemark.tester import Equipment

MISSING = missing(root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"the reference gateway needs {', '.join(MISSING)}"),
    pytest.mark.alone,
]

CAPACITY, QUEUE, FLOW_COST_NS, DURATION_NS, RESOLUTION = 20_000, 1000, 2_500, 300_000_000, 200
FLOWS = (1, 21)
UNKEPT_NS = 5_000_000
"""A trial in which Tester or reference gateway was later than this, by its own account, is invalid. What they admit in
the others is what a rate may be off by: while its queue fills, a gateway that is late forwards more than its capacity,
or less."""


def true_throughput(flows: int) -> Fraction:
    """Return what the law of the reference gateway allows, in frames/s: after n flows a frame takes 1/C + (n - 1) c."""
    capacity = CAPACITY * truth.SECOND_NS // (truth.SECOND_NS + (flows - 1) * FLOW_COST_NS * CAPACITY)
    return truth.throughput(capacity, QUEUE, DURATION_NS)


def test_the_degradation_of_a_known_law_is_found(tmp_path: Path) -> None:
    check = Check(
        procedure="throughput",
        name="degradation",
        truth="",
        technology="router44",
        forward=Flow(capacity=CAPACITY, queue=QUEUE, flow_cost_ns=FLOW_COST_NS),
        tables={
            "validity": {"retries": 8, "lateness_max": f"{UNKEPT_NS}ns"},
            "trial": {"duration": f"{DURATION_NS}ns"},
            "traffic": {"destination_ports": {"mode": "fixed", "range": "9"}},
            "throughput": {
                "minimum": CAPACITY // 2,
                "maximum": 3 * CAPACITY // 2,
                "resolution": RESOLUTION,
                "search_duration": f"{DURATION_NS}ns",
            },
        },
        compare=lambda _: (),
    )
    cores, late_ns = plan_cores(usable_cpus()), [0]

    def note(counts: dict[str, Any]) -> None:
        worst = max(int(counts["own"][name]) for name in ADMITTED)
        late_ns.extend([worst] if worst <= UNKEPT_NS else [])

    with open_links("memif", cores) as links:
        configuration = gateway_of(check, links.ports, str(links.folder / "control.sock"), cores.gateway[0])
        ask = f"{find_refdut()} ask {configuration.control}"
        document = campaign_of(check, links.ports, ask=ask, cores=(), configuration=configuration)
        document["vary"] = [
            {
                "traffic.source_ports": [{"mode": "increasing", "range": f"1000-{999 + flows}"} for flows in FLOWS],
                "titles": [f"{flows} flows" for flows in FLOWS],
            }
        ]
        file = tmp_path / "degradation.toml"
        file.write_text(to_toml(document), encoding="utf-8")
        with RefDut(configuration, links.folder, netns=links.gateway_namespace) as gateway:
            equipment = Equipment(
                open_testbed=lambda campaign: ReferenceTestBed(
                    campaign, links, gateway, poll_gap_max_ns=UNKEPT_NS, late_departure_max_ns=UNKEPT_NS, note=note
                )
            )
            with stepping_back():
                result = measure_series(file, output=tmp_path / "result", equipment=equipment, report=False)

    (metric,) = (metric for metric in result.document.metrics if metric.headline)
    degradations = [figure.degradation for figure in metric.figures]
    assert degradations[0] is None
    limits = [figure.limited_by for figure in metric.figures]
    if set(limits) & NOT_THE_GATEWAY:  # the machine is busy: then there is no degradation either
        assert all(none is None or (none.percent is None and none.reason) for none in degradations)
        nothing_compared("no figure is the gateway's")
        return
    assert limits == ["gateway"] * len(FLOWS)
    records = [record for journal in tmp_path.glob("result/*/trials.jsonl") for record in read_journal(journal)]
    ways = [way for record in records if record.is_decisive for way in record.report.directions]
    late_ns.append(max(way.lateness_max_ns for way in ways) + max(late_ns))
    true = {flows: true_throughput(flows) for flows in FLOWS}
    for flows, degradation in zip(FLOWS[1:], degradations[1:], strict=True):
        assert degradation is not None and degradation.flows == flows
        assert degradation.percent is not None and degradation.error_points is not None, degradation
        of_law = float(degradation_percent(true[1], true[flows], higher_is_better=True))
        unsteady = 100 * 2 * max(late_ns) / DURATION_NS  # of each of two rates
        assert abs(degradation.percent - of_law) <= degradation.error_points + unsteady, (flows, of_law)
