"""`gatemark demo [NAME]`: measure real gateways of this machine in network namespaces."""

from __future__ import annotations

from pathlib import Path

from gatemark.campaign.progress import progress_display
from gatemark.cli.common import print_campaigns
from gatemark.cli.output import AsJson, tell_error
from gatemark.cli.run import run
from gatemark.demo import DEMOS, IPV4AAS, demo_file
from gatemark.errors import ConfigError, GatemarkError, Interrupted, ResultError
from gatemark.results.store import default_folder
from gatemark.session import CampaignResult, measure, rebuild_report


def demo(
    name: str | None = None,
    /,
    *,
    output: Path | None = None,
    as_json: AsJson = False,
) -> int:
    """Measure gateways on this machine in short trials: stateful NAT64 and NAT44, routers, SIIT, MAP-T.

    Stateful gateways are also measured for their connection establishment rate, at two table sizes (RFC 9693). demo
    makes the gateways in network namespaces and needs root. `ipv4aas` compares 464XLAT, DS-Lite, lightweight 4over6,
    MAP-E and MAP-T in five minutes; before it, build a kernel with `gatemark kernel build`.

    Parameters
    ----------
    name
        Measure only this: tayga-nat64, nft-nat44, linux-router4, linux-router6, tayga-siit64, tayga-mapt-br or ipv4aas.
    output
        Folder for the results; by default a new folder in results/.
    as_json
        Print the results as JSON instead of tables.
    """
    known = (*DEMOS, IPV4AAS)
    if name is not None and name not in known:
        fix = f"name one of {', '.join(known)}"
        raise ConfigError(what=f"there is no demo named {name}", where="gatemark demo", fix=fix)
    if name == IPV4AAS:
        with demo_file(name) as file:
            return run(file, output=output, as_json=as_json)
    chosen = (name,) if name is not None else DEMOS
    folder = output or default_folder("demo" if name is None else f"demo-{name}")
    results, failures = _measure_all(chosen, folder)
    if not results:
        if as_json:
            tell_error(failures[0], as_json=True)
        return failures[0].exit_status
    _, page = rebuild_report(folder)
    print_campaigns(results, page, as_json=as_json, listed=True)
    limited = all(result.tester_limited_everywhere for result in results)
    return failures[0].exit_status if failures else int(limited)


def _measure_all(names: tuple[str, ...], folder: Path) -> tuple[list[CampaignResult], list[GatemarkError]]:
    """Measure one gateway after the other; if one fails, the next is measured all the same."""
    results: list[CampaignResult] = []
    failures: list[GatemarkError] = []
    for name in names:
        try:
            with demo_file(name) as file, progress_display() as watcher:
                result = measure(
                    file, output=folder / name, on_event=watcher.on_event, on_plan=watcher.on_plan, report=False
                )
            results.append(result)
        except (Interrupted, ResultError):
            raise
        except GatemarkError as error:
            tell_error(error, as_json=False)
            failures.append(error)
    return results, failures
