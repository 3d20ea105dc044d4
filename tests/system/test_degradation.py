"""A reference gateway whose capacity falls by a known law with the number of its flows: the degradation is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.machine import missing

from gatemark.calibrate import truth
from gatemark.calibrate.base import campaign_of, gateway_of
from gatemark.calibrate.links import ReferenceTestBed, open_links
from gatemark.calibrate.model import Check
from gatemark.dut.steering import plan_cores, usable_cpus
from gatemark.refdut.document import Flow
from gatemark.refdut.process import RefDut, find_refdut
from gatemark.results.toml_text import to_toml
from gatemark.series.run import measure_series
from gatemark.stats.series import degradation_percent
from gatemark.tester import Equipment

MISSING = missing(root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the reference gateway needs {', '.join(MISSING)}")

CAPACITY, QUEUE, FLOW_COST_NS, DURATION_NS, RESOLUTION = 20_000, 1000, 2_500, 300_000_000, 200
FLOWS = (1, 21)
UNSTEADY_NS = 2_000_000
"""For so long may the reference gateway not look at its ports while its queue fills: it then forwards more than its
capacity, or less."""


def test_the_degradation_of_a_known_law_is_found(tmp_path: Path) -> None:
    check = Check(
        procedure="throughput",
        name="degradation",
        truth="",
        technology="router44",
        forward=Flow(capacity=CAPACITY, queue=QUEUE, flow_cost_ns=FLOW_COST_NS),
        tables={
            "trial": {"duration": f"{DURATION_NS}ns"},
            "traffic": {"destination_ports": {"mode": "fixed", "range": "9"}},
            "throughput": {
                "maximum": 2 * CAPACITY,
                "resolution": RESOLUTION,
                "search_duration": f"{DURATION_NS}ns",
            },
        },
        compare=lambda _: (),
        lateness_max="5ms",
    )
    cores = plan_cores(usable_cpus())
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
            equipment = Equipment(open_testbed=lambda campaign: ReferenceTestBed(campaign, links, gateway))
            result = measure_series(file, output=tmp_path / "result", equipment=equipment, report=False)

    (metric,) = (metric for metric in result.document.metrics if metric.headline)
    degradations = [figure.degradation for figure in metric.figures]
    assert degradations[0] is None
    true = {
        flows: truth.throughput(
            truth.capacity_of_flows(CAPACITY, FLOW_COST_NS, flows), QUEUE, DURATION_NS
        )
        for flows in FLOWS
    }  # fmt: skip
    for flows, degradation in zip(FLOWS[1:], degradations[1:], strict=True):
        assert degradation is not None and degradation.flows == flows
        assert degradation.percent is not None and degradation.error_points is not None, degradation
        of_law = float(degradation_percent(true[1], true[flows], higher_is_better=True))
        unsteady = 100 * UNSTEADY_NS / DURATION_NS
        assert abs(degradation.percent - of_law) <= degradation.error_points + unsteady, (flows, of_law)
