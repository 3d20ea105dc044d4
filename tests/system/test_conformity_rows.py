"""Conformity of real gateways in a row: what is seen of both from outside, and what is planted in one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import KeptBed, netns_campaign
from tests.system.test_conformity import CONFORMITY, seen_of
from tests.system.test_conformity_translators import judged
from tests.system.test_row import IN_A_GUEST, MAP_T, MISSING

from gatemark.config.model import Campaign

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"two gateways in a row need {', '.join(MISSING)}"),
]

UNANSWERED = dict.fromkeys(("expired_from_outside", "expired_from_inside"), ("does_not_conform", 0))
"""The second gateway answers to a public address, or about one that the sender does not know."""
OF_PORTS = {
    "unused_port": ("reported", 0),
    "port_of_the_set": ("conforms", 3),
    "foreign_source_address": ("conforms", 3),
    "foreign_destination_port": ("conforms", 0),
    "foreign_identifier": ("conforms", 0),
}
RELAYED = OF_PORTS | UNANSWERED | {
    "echo_from_inside": ("does_not_conform", 0),  # of shared addresses the relay carries TCP and UDP only
    "hairpin": ("differs", 0),
    "fragments": ("differs", 0),
    "small_fragments": ("differs", 0),
    "error_from_outside": ("does_not_conform", 0),
}  # fmt: skip
OF_ROWS: dict[str, dict[str, tuple[str, int]]] = {
    MAP_T: RELAYED | {
        "echo_from_inside": ("conforms", 3),
        "fragments": ("differs", 3),  # the first of each
        "small_fragments": ("differs", 3),
        "error_from_outside": ("differs", 0),
    },
    "linux-mape": RELAYED,
    "linux-lw4o6": RELAYED | {
        "echo_from_inside": ("differs", 0),
        "hairpin": ("does_not_conform", 0),
        "fragments": ("does_not_conform", 0),
        "small_fragments": ("does_not_conform", 0),
    },
    "linux-dslite": UNANSWERED | {
        "echo_from_inside": ("conforms", 3),
        "hairpin": ("does_not_conform", 0),
        "foreign_source_address": ("conforms", 0),
        "fragments": ("conforms", 3),
        "small_fragments": ("conforms", 3),
        "error_from_outside": ("does_not_conform", 3),  # about a private address of the AFTR
    },
    "tayga-jool-464xlat": {
        "expired_from_outside": ("conforms", 0),
        "expired_from_inside": ("does_not_conform", 0),
        "echo_from_inside": ("does_not_conform", 0),  # the recipe's pool of Jool has UDP only
        "hairpin": ("conforms", 3),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> Iterator[KeptBed]:
    def campaign_of(recipe: str) -> Campaign:
        return netns_campaign(recipe, conformity=CONFORMITY, frame_loss=None)

    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


@pytest.mark.parametrize("recipe", [MAP_T, *(pytest.param(name, marks=marks) for name, marks in IN_A_GUEST.items())])
def test_two_gateways_of_recipes(recipe: str, rows: KeptBed, tmp_path: Path) -> None:
    assert seen_of(judged(rows.get(recipe), tmp_path)) == OF_ROWS[recipe]


def test_what_is_planted_in_the_gateway_of_the_customer_is_seen_from_outside(rows: KeptBed, tmp_path: Path) -> None:
    """It drops echo requests, and packets of a foreign source, which is no less conforming than to translate them."""
    row = rows.get(MAP_T)
    row.bed.gateway.keeper.clear_state()
    with row.table(
        "table ip planted {\n  chain planted {\n    type filter hook prerouting priority -300;\n"
        "    icmp type echo-request drop\n    ip saddr 70.18.0.2 drop\n  }\n}\n"
    ):
        outcomes = seen_of(judged(row, tmp_path, "echo_from_inside", "echo_from_outside", "foreign_source_address"))
    assert outcomes == {name: OF_ROWS[MAP_T][name] for name in outcomes} | {
        "echo_from_inside": ("does_not_conform", 0),
        "foreign_source_address": ("conforms", 0),
    }
