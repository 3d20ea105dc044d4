"""`gatemark demo [NAME]`: measure real gateways of this machine in network namespaces."""

from __future__ import annotations

from pathlib import Path

from gatemark.cli.output import AsJson
from gatemark.cli.run import run
from gatemark.demo import DEMOS, DemoName, demo_file
from gatemark.results.store import default_folder


def demo(
    name: DemoName | None = None,
    /,
    *,
    output: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Measure gateways on this machine in short trials: stateful NAT64 and NAT44, routers, SIIT, MAP-T.

    Stateful gateways are also measured for their connection establishment rate, at two table sizes (RFC 9693). demo
    makes the gateways in network namespaces and needs root. `ipv4aas` compares 464XLAT, DS-Lite, lightweight 4over6,
    MAP-E and MAP-T in five minutes; before it, build a kernel with `gatemark kernel build`.

    It is `gatemark run` with campaign files of gatemark's own.

    Parameters
    ----------
    name
        Measure only this, or ipv4aas, which runs only if it is named.
    output
        Folder for the results; by default a new folder in results/.
    as_json
        Print the results as JSON instead of tables.
    """
    if name is not None:
        return run(demo_file(name), output=output, as_json=as_json)
    return run(*map(demo_file, DEMOS), output=output or default_folder("demo"), as_json=as_json)
