"""Rings with any number of queues and workers: nothing is lost, repeated or changed, in any role and direction."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest
from tests.system.machine import cpu_each, missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.steering import usable_cpus
from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine
from gatemark.facts import Variation
from gatemark.trial.connection_request import establish_request, use_request, validation_request
from gatemark.trial.form import Tags, TrialForm
from gatemark.trial.messages import TrialRequest
from gatemark.trial.report import TrialReport, read_report
from gatemark.trial.request import layout_request, open_request, trial_request

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"needs {', '.join(missing())}")

CONNECTIONS = 2000
FRAMES_PER_SECOND = 50_000
DURATION_NS = 100_000_000
NO_GIVING_UP_NS = 60_000_000_000
FORM = TrialForm(tags=Tags(first_ns=DURATION_NS // 2, count=1000), variation=True, histogram=True)
QUEUES = [1, 2, 3]
WORKERS = [1, 2, 4]


def campaign(queues: int | None, **tables: Any) -> Campaign:
    sides = {side: {} if queues is None else {"queues": queues} for side in ("left", "right")}
    return complete_campaign(
        campaign_from_dict(
            {
                "seed": 42,
                "testbed": {"kind": "loopback", "huge_pages": "never"},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": 84}, "mix": "9/10"},
                "trial": {"duration": "100ms", "settle": "0s", "learn": "0s", "drain": "200ms", "rest": "0s"},
                "frame_loss": {"rates": ["50k"]},
                **sides,
                **tables,
            }
        )
    )


def stateful(queues: int, inside: str, order: str) -> Campaign:
    orders = {"send_order": order, "read_order": order}
    connections = {"count": CONNECTIONS, "rate": "50k", "gap": "0s", "timeout": "200ms", **orders}
    return campaign(queues, gateway={"technology": "nat44", "inside": inside}, connections=connections)


def assert_whole(report: TrialReport, classes: int) -> None:
    counted = [counts for _, _, counts in report.counts() if counts.intended]
    assert len(counted) == classes
    for counts in counted:
        assert counts.received == counts.offered == counts.intended, counts
        assert (counts.faulty, counts.duplicate, counts.reordered, counts.late) == (0, 0, 0, 0), counts


def assert_queues_add_up(report: TrialReport, queues: int) -> None:
    """Each port says how many of the right frames each of its queues had."""
    by_queue = [port.received_by_queue for port in report.ports.values()]
    assert {len(received) for received in by_queue} == {queues}
    assert sum(map(sum, by_queue)) == sum(counts.received for _, _, counts in report.counts())


def report_of(engine: EngineClient, body: TrialRequest) -> tuple[TrialReport, dict[str, Any]]:
    answer = engine.trial({**body, "give_up_lateness_ns": NO_GIVING_UP_NS})
    return read_report(answer), answer


def cells_by_direction(campaign: Campaign) -> dict[str, Any]:
    return {cell.direction: cell for cell in cells_of(campaign)}


def assert_every_delay(answer: dict[str, Any]) -> None:
    for direction in answer["directions"]:
        classes = [direction[kind] for kind in ("foreground", "background")]
        assert sum(counts["delay"]["tags"]["received"] for counts in classes) == 1000
        for counts in classes:
            delay = counts["delay"]
            assert delay["samples"] == counts["received"] == sum(frames for _, frames in delay["histogram"])
            assert delay["negative"] == 0
            assert delay["variation"]["pairs"] == counts["received"] - 1
            assert delay["variation"]["skipped"] == 0


def roles_of(queues: int, workers: int, *, all_of_them: bool) -> list[tuple[str, str]]:
    """Return sides of the Initiator and orders: all of them, or two, so that all layouts together have each."""
    roles = list(itertools.product(("left", "right"), get_args(Variation)))
    number = QUEUES.index(queues) * len(WORKERS) + WORKERS.index(workers)
    return roles if all_of_them else [roles[number % len(roles)], roles[(number + len(roles) // 2) % len(roles)]]


@pytest.mark.endure
@pytest.mark.parametrize("workers", [1, *(pytest.param(n, marks=cpu_each(n)) for n in WORKERS[1:])])
@pytest.mark.parametrize("queues", QUEUES)
def test_every_layout_is_exact(queues: int, workers: int, endures: bool) -> None:
    """Routing in all directions with every recorder; connections with the Initiator on either side, in every order."""
    numbers = itertools.count(1)
    routed = campaign(
        queues,
        gateway={"technology": "router44"},
        traffic={
            "frame_sizes": {"family": "ipv4", "octets": 84},
            "mix": "9/10",
            "direction": ["bidirectional", "forward", "reverse"],
        },
    )
    cores = usable_cpus()[-workers:]
    with start_engine() as engine:
        ports: dict[Any, str] = {"left": "ring", "right": "ring"}
        planned = engine.layout(layout_request(routed, cores, ports))
        opened = engine.open(open_request(routed, cores, ports))
        assert {key: opened[key] for key in ("queues", "workers", "why")} == {
            key: planned[key] for key in ("queues", "workers", "why")
        }
        assert opened["queues"] == {"left": queues, "right": queues}
        assert [worker["cpu"] for worker in opened["workers"]] == cores[: 4 * queues]
        for direction, cell in cells_by_direction(routed).items():
            body = trial_request(
                routed,
                cell,
                frames_per_second=FRAMES_PER_SECOND,
                duration_ns=DURATION_NS,
                trial_number=next(numbers),
                form=FORM,
            )
            report, answer = report_of(engine, body)
            assert_whole(report, 4 if direction == "bidirectional" else 2)
            assert_queues_add_up(report, queues)
            assert_every_delay(answer)
        for inside, order in roles_of(queues, workers, all_of_them=endures):
            through = stateful(queues, inside, order)
            (cell,) = cells_of(through)
            number = next(numbers) * 16
            common: dict[str, Any] = {"connections": CONNECTIONS}
            report, _ = report_of(
                engine,
                establish_request(through, cell, connections_per_second=50_000, trial_number=number, **common),
            )
            assert_whole(report, 2)
            assert report.connections is not None
            assert report.connections.established == CONNECTIONS
            use = use_request(
                through,
                cell,
                frames_per_second=FRAMES_PER_SECOND,
                duration_ns=DURATION_NS // 5,
                trial_number=number + 1,
                **common,
            )
            assert_whole(report_of(engine, use)[0], 4)
            validation = validation_request(
                through, cell, connections_per_second=50_000, trial_number=number + 2, **common
            )
            assert_whole(report_of(engine, validation)[0], 2)


@cpu_each(2)
def test_a_campaign_that_names_no_queues_gets_one_for_each_worker() -> None:
    cores = usable_cpus()
    routed = campaign(None, gateway={"technology": "router44"})
    for port in ("ring", "null"):
        with start_engine() as engine:
            opened = engine.open(open_request(routed, cores[:4], {"left": port, "right": port}))
            assert opened["queues"] == {"left": len(cores[:4]), "right": len(cores[:4])}


@pytest.mark.endure
def test_the_memory_that_is_taken_for_ports_holds_all_their_pools(endures: bool) -> None:
    """Without huge pages it is taken at once, before ports are opened: of small rings most of it is not buffers."""
    rings = (32, 64, 128, 256, 512, 1024, 4096, 16384) if endures else (32, 1024)
    for frames, queues, mtu in itertools.product(rings, (1, 3), (1500, 9216)):
        side = {"ring_frames": frames, "queues": queues, "mtu": mtu}
        wanted = campaign(queues, gateway={"technology": "router44"}, left=side, right=side)
        with start_engine() as engine:
            engine.open(open_request(wanted, usable_cpus()[:1], {"left": "ring", "right": "ring"}))
