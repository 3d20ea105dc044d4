"""Which facts two sessions of one campaign must have in common."""

from __future__ import annotations

from typing import Any

import pytest

from gatemark.facts import GatewayHostFacts
from gatemark.results.provenance import (
    EngineFacts,
    MachineFacts,
    PortFact,
    Session,
    SoftwareFacts,
    changes,
)

MACHINE = MachineFacts(
    host_name="a", identity="1", cpu_model="x", cpus=4, governor="performance", kernel="Linux 6", hypervisor=None,
    memory_kilobytes=1, huge_pages_total=0, huge_page_kilobytes=2048, cpus_isolated=None, numa_nodes=1,
)  # fmt: skip
ENGINE = EngineFacts(
    version="1", protocol=3, dpdk="22", build="Release", program_sha256="ab", tsc_hz=10**9, tsc_invariant=True,
    huge_pages=False, workers=("CPU 1: all",), queues={"left": 1, "right": 1},
)  # fmt: skip


HOST = GatewayHostFacts(
    host_name="gw", kernel="Linux 6", command_line="maxcpus=4", boot_id="1", cpu_model="x", cpus_online=4,
    cpu_list="0-3", governor="performance", mhz_min=2000, mhz_max=2600, memory_kilobytes=10**6,
    available_kilobytes=10**5, numa_nodes=1,
    interfaces=(),
)  # fmt: skip


def port(name: str, **given: Any) -> PortFact:
    facts = {"driver": "d", "mac": "02:00", "numa_node": 0, "link_up": True, "link_mbps": 10_000, "mtu": 1500, **given}
    return PortFact(port=name, timestamps="software", **facts)


def session(*, left: PortFact | None = None, machine: dict[str, Any] | None = None, **engine: Any) -> Session:
    return Session(
        started_at="now",
        finished_at=None,
        resumed=False,
        machine=MACHINE.model_copy(update=machine or {}),
        software=SoftwareFacts(gatemark="1", python="3", packages={}),
        engine=ENGINE.model_copy(update=engine),
        left=left or port("pci:1"),
        right=port("pci:2"),
    )


@pytest.mark.parametrize("name", MachineFacts.model_fields)
def test_every_fact_of_the_machine_but_its_memory_counts(name: str) -> None:
    told = changes(session(), session(machine={name: "other"}), makes_ports=False)
    expected = [] if name in ("memory_kilobytes", "huge_pages_total", "huge_page_kilobytes") else [name]
    assert [words.split()[0] for words in told] == [f"machine.{field}" for field in expected]


@pytest.mark.parametrize("name", EngineFacts.model_fields)
def test_every_fact_of_the_engine_but_what_it_measures_counts(name: str) -> None:
    other: dict[str, Any] = {name: "other"}
    told = changes(session(), session(**other), makes_ports=False)
    expected = [] if name in ("tsc_hz", "clock", "layout") else [name]
    assert [words.split()[0] for words in told] == [f"engine.{field}" for field in expected]


@pytest.mark.parametrize("name", PortFact.model_fields)
def test_every_fact_of_a_port_but_the_state_of_its_link_counts(name: str) -> None:
    other = port("pci:1").model_copy(update={name: "other"})
    told = changes(session(), session(left=other), makes_ports=False)
    assert told == ([] if name == "link_up" else [f"left.{name} was {getattr(port('pci:1'), name)}, is other"])


def test_a_port_that_is_made_anew_has_another_name_and_address() -> None:
    before, now = port("af_packet:gm1-left"), port("af_packet:gm2-left", mac="02:01", numa_node=1)
    assert changes(session(left=before), session(left=now), makes_ports=True) == []
    slower = port("af_packet:gm2-left", driver="AF_XDP")
    assert changes(session(left=before), session(left=slower), makes_ports=True) == ["left.driver was d, is AF_XDP"]


@pytest.mark.parametrize(
    ("name", "counts"), [("memif:/a", False), ("tap:0", False), ("pci:1", True), ("af_xdp:a", True)]
)
def test_an_address_that_is_drawn_anew_does_not_count(name: str, counts: bool) -> None:
    before, now = session(left=port(name)), session(left=port(name, mac="02:99"))
    assert changes(before, now, makes_ports=False) == (["left.mac was 02:00, is 02:99"] if counts else [])


@pytest.mark.parametrize("name", GatewayHostFacts.model_fields)
def test_what_a_figure_may_depend_on_of_the_gateways_host_counts(name: str) -> None:
    def with_host(host: GatewayHostFacts | None) -> Session:
        return session().model_copy(update={"gateway_host": host})

    other = HOST.model_copy(update={name: "other"})
    told = changes(with_host(HOST), with_host(other), makes_ports=False)
    free = ("boot_id", "cpu_list", "mhz_min", "mhz_max", "memory_kilobytes", "available_kilobytes", "interfaces")
    assert told == ([] if name in free else [f"gateway_host.{name} was {getattr(HOST, name)}, is other"])
    assert changes(with_host(None), with_host(HOST), makes_ports=False) == []
