"""The table of technologies."""

from __future__ import annotations

from typing import get_args

import pytest

from gatemark.technology import TECHNOLOGIES, ReferenceMode, SideName, Technology, TechnologyName, technologies_where


def test_every_name_has_one_row_under_its_name() -> None:
    assert tuple(TECHNOLOGIES) == get_args(TechnologyName)
    assert [row.name for row in TECHNOLOGIES.values()] == list(TECHNOLOGIES)


def test_every_mode_of_the_reference_gateway_is_used() -> None:
    assert {row.reference_mode for row in TECHNOLOGIES.values() if not row.in_a_row} == set(get_args(ReferenceMode))


@pytest.mark.parametrize(
    "row",
    [row for row in TECHNOLOGIES.values() if not (row.has_rules or row.has_tunnels or row.in_a_row)],
    ids=lambda row: row.name,
)
def test_a_name_ends_with_the_families(row: Technology) -> None:
    """The names are for people: "siit64" is IPv6, then IPv4."""
    assert row.name[-2:] == "".join(family.removeprefix("ipv") for family in row.families)


def test_only_routers_are_plain_forwarding_and_change_no_family() -> None:
    plain = [row for row in TECHNOLOGIES.values() if row.is_plain_forwarding]
    assert [row.name for row in plain] == ["router44", "router66"]
    assert not any(row.is_translation or row.is_stateful for row in plain)


def test_the_identification_is_compared_where_a_router_keeps_it() -> None:
    assert [row.name for row in TECHNOLOGIES.values() if row.keeps_identification] == ["router44", "b4"]


def test_only_a_nat66_would_translate_native_ipv6_as_well() -> None:
    assert [row.name for row in TECHNOLOGIES.values() if row.translates_background] == ["nat66"]


@pytest.mark.parametrize("row", [row for row in TECHNOLOGIES.values() if row.in_a_row], ids=lambda row: row.name)
def test_two_gateways_in_a_row_are_one_that_follows_from_both(row: Technology) -> None:
    assert row.in_a_row is not None
    first, second = (TECHNOLOGIES[name] for name in row.in_a_row)
    assert (first.packet_families[0], second.packet_families[1]) == row.families
    assert first.families[1] == second.families[0] == "ipv6"
    assert (row.is_stateful, row.is_edge) == (first.is_stateful or second.is_stateful, first.is_edge)
    assert (row.has_bindings, row.has_default_rules) == (first.has_bindings, first.has_default_rules)
    assert row.tunnel_within == (first.outer_family if first.has_tunnels else None)
    assert row.translates_within == (first.is_translation and second.is_translation)


@pytest.mark.parametrize(
    ("name", "inside", "words"),
    [
        ("router44", None, "IPv4 router"),
        ("siit46", None, "stateless translation, IPv4 left and IPv6 right"),
        ("map_t_br", None, "MAP-T border relay, IPv6 left and IPv4 right"),
        ("map_e_ce", "left", "MAP-E customer edge, IPv4 inside (left), IPv4 in IPv6 outside (right)"),
        ("b4", None, "DS-Lite B4, IPv4 left and IPv4 in IPv6 right"),
        ("map_e_br", None, "MAP-E border relay, IPv4 in IPv6 left and IPv4 right"),
        ("lwaftr", None, "lightweight 4over6 AFTR, IPv4 in IPv6 left and IPv4 right"),
        ("nat64", "left", "stateful NAT64, IPv6 inside (left), IPv4 outside (right)"),
        ("map_t_ce", "left", "MAP-T customer edge, IPv4 inside (left), IPv6 outside (right)"),
        ("aftr", "left", "DS-Lite AFTR, IPv4 in IPv6 inside (left), IPv4 outside (right)"),
        ("ds_lite", "left", "DS-Lite (B4 and AFTR), IPv4 inside (left), IPv4 outside (right)"),
        ("nat46", "right", "stateful NAT46, IPv4 inside (right), IPv6 outside (left)"),
    ],
)
def test_a_row_says_what_it_is(name: TechnologyName, inside: SideName | None, words: str) -> None:
    assert TECHNOLOGIES[name].describe(inside) == words


def test_a_list_for_a_message_is_taken_from_the_table() -> None:
    assert (
        technologies_where(lambda row: row.is_stateful)
        == "nat44, nat64, nat66, nat46, map_t_ce, aftr, map_e_ce, lwb4, 464xlat, ds_lite, lw4o6, map_e or map_t"
    )
    assert technologies_where(lambda row: row.name == "nat44") == "nat44"
