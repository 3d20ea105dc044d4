"""An engine that is killed leaves nothing on a kernel's interface."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from machine import missing, run

from gatemark.config.load import campaign_from_dict
from gatemark.engine.client import EngineClient
from gatemark.engine.process import EngineProcess, find_engine
from gatemark.errors import EngineError
from gatemark.trial.request import open_request

MISSING = missing("ip", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace with both ends of a veth, gml and gmr."""
    name = f"gm-killed-{os.getpid()}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "add", "gml", "type", "veth", "peer", "name", "gmr")
        for end in ("gml", "gmr"):
            run("ip", "-n", name, "link", "set", end, "up")
        yield name
    finally:
        run("ip", "netns", "del", name)


def test_no_xdp_program_stays_on_an_interface(namespace: str) -> None:
    """A program left there would take all frames away from the gateway's kernel, and from the next engine."""
    ports = {"left": "af_xdp:gml", "right": "af_xdp:gmr"}
    campaign = campaign_from_dict(
        {
            "gateway": {"mode": "router44"},
            "testbed": {"kind": "loopback"},
            **{side: {"port": port, "mtu": 1500} for side, port in ports.items()},
        }
    )

    def programs() -> int:
        return run("ip", "-n", namespace, "link", "show").count("prog/xdp")

    process = EngineProcess(["ip", "netns", "exec", namespace, str(find_engine())], log=None)
    engine = EngineClient(process)
    engine.open(open_request(campaign, []))
    assert programs() == 2
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineError):
        engine.hello()
    deadline = time.monotonic() + 10
    while programs() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert programs() == 0
