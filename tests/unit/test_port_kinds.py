"""The table of kinds of ports."""

from __future__ import annotations

import pytest

from gatemark.port_kinds import KERNEL_PORTS, PORT_KINDS, PortKind, parse_port


@pytest.mark.parametrize("row", PORT_KINDS.values(), ids=PORT_KINDS)
def test_a_row_does_not_contradict_itself(row: PortKind) -> None:
    assert sum((row.is_of_kernel, row.is_card, row.is_virtual_device, row.makes_interface, not row.takes_name)) <= 1
    assert not (row.is_joined and row.takes_name)  # nothing to name, so both ports have the same name


def test_an_interface_of_the_kernel_is_named_by_two_kinds() -> None:
    assert KERNEL_PORTS == ("af_packet", "af_xdp")
    assert parse_port("af_xdp:eth1").interface == "eth1"
    assert parse_port("pci:0000:01:00.0").interface is None


def test_an_unknown_kind_is_kept_and_says_nothing() -> None:
    port = parse_port("eth1")
    assert (port.kind.name, port.target) == ("eth1", "")
    assert not (port.kind.needs_root or port.kind.can_be_joined)
