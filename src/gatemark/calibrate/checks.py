"""All checks, in the order in which they run. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gatemark.calibrate.checks_aftr import aftr_checks
from gatemark.calibrate.checks_conformity import conformity_checks
from gatemark.calibrate.checks_delays import delay_checks
from gatemark.calibrate.checks_events import event_checks
from gatemark.calibrate.checks_faults import fault_checks
from gatemark.calibrate.checks_map import map_checks
from gatemark.calibrate.checks_netem import netem_checks
from gatemark.calibrate.checks_rates import rate_checks
from gatemark.calibrate.checks_stateful import stateful_checks
from gatemark.calibrate.model import Check
from gatemark.errors import ConfigError


def all_checks(*, quick: bool = False) -> list[Check]:
    """Return every check; with `quick` one truth of each kind, in shorter trials."""
    return [
        *delay_checks(quick=quick),
        *rate_checks(quick=quick),
        *event_checks(quick=quick),
        *stateful_checks(quick=quick),
        *map_checks(quick=quick),
        *aftr_checks(quick=quick),
        *conformity_checks(),
        *fault_checks(quick=quick),
        *netem_checks(quick=quick),
    ]


def chosen_checks(names: Sequence[str], *, quick: bool = False) -> list[Check]:
    """Return the checks of these procedures or names, and the Tester's own delays where those need them.

    Raises ConfigError for a name that is neither.
    """
    checks = all_checks(quick=quick)
    if not names:
        return checks
    known = {check.procedure for check in checks} | {check.name for check in checks}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(
            what=f"there is no check {', '.join(unknown)}",
            where="--only",
            fix=f"name one of {', '.join(dict.fromkeys(check.procedure for check in checks))}, or one of --list",
        )
    chosen = [check for check in checks if {check.procedure, check.name} & set(names)]
    if any(check.procedure == "delay" for check in chosen):
        chosen = [check for check in checks if check.gives_self_error and check not in chosen] + chosen
    return chosen
