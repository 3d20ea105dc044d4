"""Traffic classes of outer headers: where the stated policy is not that of the RFC, the campaign says so."""

from __future__ import annotations

from typing import Any

import pytest

from gatemark.campaign.deviations import deviations
from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.recipe import complete_campaign

SOFTWIRES = {"ipv6": "2001:2:0:4000::/64", "ipv4": "198.18.0.0/28", "psid_bits": 6, "exclude": "system_ports"}
DOMAIN = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.0.0/28", "ea_bits": 8}


def told(recipe: str, **tables: Any) -> list[str]:
    document = {"testbed": {"kind": "netns", "recipe": recipe}, "throughput": {}, **tables}
    sentences = (deviation.sentence for deviation in deviations(complete_campaign(campaign_from_dict(document))))
    return [sentence for sentence in sentences if "outer headers" in sentence]


@pytest.mark.parametrize(
    ("recipe", "section", "tables"),
    [
        ("linux-aftr", "RFC 6333 section 7.1", {"connections": {"count": 10, "rate": "1k"}}),
        ("linux-lwaftr", "RFC 7596 section 6.2", {"map": {"softwires": [SOFTWIRES]}}),
    ],
)
def test_a_traffic_class_that_is_not_copied_is_a_deviation(recipe: str, section: str, tables: dict[str, Any]) -> None:
    assert told(recipe, **tables) == [
        f"The gateway writes traffic class 0 into the outer headers of tunnels; {section} wants that of the packet"
        " inside copied. The Tester expects what this gateway does."
    ]


@pytest.mark.parametrize(
    ("recipe", "tables"),
    [
        ("linux-b4", {}),
        ("linux-mape-br", {"map": {"domains": [DOMAIN]}}),
        ("linux-sixrd-br", {}),
        ("linux-router4", {}),
    ],
)
def test_one_that_is_copied_or_that_an_rfc_leaves_open_is_none(recipe: str, tables: dict[str, Any]) -> None:
    """RFC 2473 section 6.4, of MAP-E, and RFC 5969 section 9, of 6rd, let it be configured."""
    assert told(recipe, **tables) == []
