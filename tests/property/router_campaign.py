"""A short campaign on a simulated router, as the document of its file."""

from __future__ import annotations

from typing import Any

BARE: dict[str, Any] = {
    "gateway": {"technology": "router44"},
    "testbed": {"kind": "loopback"},
    "left": {"ipv4": {"address": "198.18.0.2"}},
    "right": {"ipv4": {"address": "198.19.0.2"}},
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    "trial": {"duration": "1s"},
}
"""It measures nothing yet."""
ROUTER: dict[str, Any] = {
    **BARE,
    "validity": {"retries": 1},
    "throughput": {"maximum": "100k", "minimum": 100, "resolution": "10k"},
    "repetitions": 2,
}
