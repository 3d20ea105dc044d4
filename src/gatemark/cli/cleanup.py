"""`gatemark cleanup`: remove what a killed gatemark left on this machine."""

from __future__ import annotations

from gatemark.cli.output import AsJson, print_json, tell_error
from gatemark.dut.cleanup import find_leftovers, remove_leftovers
from gatemark.errors import TestBedError


def cleanup(*, dry_run: bool = False, as_json: AsJson = False) -> int:
    """Remove the namespaces, processes and folders that a killed gatemark left, and restore kernel settings.

    A running gatemark's resources are left alone. The exit status is 1 if anything could not be removed.

    Parameters
    ----------
    dry_run
        List the leftovers without removing them.
    as_json
        Print what was left and what stays as JSON instead of text.
    """
    left = find_leftovers()
    stays = left if dry_run else remove_leftovers() if left else left
    if as_json:
        print_json({"left": left.to_json(), "stays": stays.to_json()})
    else:
        print(left or "nothing was left behind")
        if left and not dry_run and not stays:
            print("everything was removed, and the settings were restored")
    if dry_run or not stays:
        return 0
    if not as_json:
        what = f"could not be removed:\n{stays}"
        tell_error(TestBedError(what=what, where="gatemark cleanup", fix="run it as root"), as_json=False)
    return TestBedError.exit_status
