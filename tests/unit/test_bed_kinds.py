"""The table of kinds of test beds."""

from __future__ import annotations

from typing import get_args

import pytest

from gatemark.bed_kinds import BED_KINDS, BedKind, BedKindName, bed_kinds_where


def test_every_name_has_one_row_under_its_name() -> None:
    assert tuple(BED_KINDS) == get_args(BedKindName)
    assert [row.name for row in BED_KINDS.values()] == list(BED_KINDS)


@pytest.mark.parametrize("row", BED_KINDS.values(), ids=BED_KINDS)
def test_a_row_does_not_contradict_itself(row: BedKind) -> None:
    assert not (row.has_recipe and row.takes_control)  # who controls a gateway is one or the other
    assert row.has_gateway or not (row.has_recipe or row.takes_control or row.gateway_is_local)
    assert row.gateway_is_local or not row.shares_kernel
    assert row.has_gateway or not row.sees_host
    if row.makes_ports:
        assert row.default_port in row.made_ports


def test_a_list_for_a_message_is_taken_from_the_table() -> None:
    assert bed_kinds_where(lambda row: row.has_recipe) == "netns"
    assert bed_kinds_where(lambda row: not row.makes_ports) == "ports or loopback"
