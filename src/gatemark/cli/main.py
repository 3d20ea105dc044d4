"""`gatemark`: the commands, and how all of them handle an error."""

from __future__ import annotations

import errno
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType

from cyclopts import App, CycloptsError, Parameter

from gatemark.cli.output import finish_output, tell_error
from gatemark.consoles import visible_output
from gatemark.errors import EXIT_STATUSES, RESUME, ConfigError, GatemarkError, Interrupted

COMMANDS = {
    "demo": "measure gateways on this machine, in network namespaces",
    "init": "ask five questions and write a campaign file",
    "run": "measure a campaign or resume an interrupted one",
    "plan": "show the settings, runs and duration of a campaign",
    "trial": "make one trial at one rate",
    "frame": "show the frames of a campaign, decoded",
    "submit": "submit campaigns as jobs to Slurm, or run them here one by one",
    "selftest": "measure the limits of the Tester alone, with its ports joined",
    "calibrate": "measure a gateway whose true values are known",
    "doctor": "check machine, ports and the path through the gateway",
    "kernel": "build or list kernels that run as a process, for gateways",
    "cleanup": "remove what a killed gatemark left behind on this machine",
    "report": "rebuild the report of a result folder",
    "archive": "pack a result folder into one file that others can verify and repeat",
    "compare": "compare results side by side and judge their differences",
    "pair": "measure two gateways in pairs of short trials and judge their ratio",
    "import": "convert the configuration file of another tester to a campaign file",
    "export": "print the MAP rules, softwires, B4s or 6rd prefix of a campaign in the syntax of a gateway",
    "completion": "print a shell completion script for commands and options",
    "schema": "print the JSON Schema of the campaign file",
}
"""Each command is a function of its own module, both of them named by `function_of`; it is imported when called."""

HELP = f"""Measure IP gateways (routers, translators, NATs, ends of tunnels) and verify every frame.

It follows RFC 2544, RFC 5180, RFC 8219, RFC 9004 and RFC 9693.

Exit status: {", ".join(f"{status} {words}" for status, words in EXIT_STATUSES.items())}.

Example: gatemark demo
"""


MORE_MEMORY = (
    "free memory, or raise the limits of this process (ulimit -v, control group); trials that were measured are kept:"
    f" continue with {RESUME}"
)


def function_of(command: str) -> str:
    """Return the name of a command in Python, where a keyword has an underscore at its end."""
    return f"{command}_" if iskeyword(command) else command


def make_app(chosen: str | None = None) -> App:
    """Return the command line application; only the module of the `chosen` command is imported."""
    from importlib.metadata import PackageNotFoundError, version

    from gatemark.cli.help_text import HelpFormatter

    try:
        number = version("gatemark")
    except PackageNotFoundError:
        number = "unknown (not installed)"
    app = App(
        name="gatemark",
        help=HELP,
        version=number,
        help_format="plaintext",
        help_formatter=HelpFormatter(),
        default_parameter=Parameter(negative=""),  # options have no opposites: --no-x, --empty-x
    )
    for name, words in COMMANDS.items():
        function = function_of(name)
        if name == chosen:
            app.command(getattr(_imported(f"gatemark.cli.{function}"), function), name=name)
        else:
            app.command(f"gatemark.cli.{function}:{function}", name=name, help=words)
    return app


def _imported(name: str) -> ModuleType:
    """Import a module and keep all that comes with it: a search for garbage meanwhile would take a tenth longer."""
    if name in sys.modules:
        return sys.modules[name]  # what is garbage by now is not kept
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()
        gc.freeze()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    with visible_output():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in tokens
    try:
        status = make_app(next(iter(tokens), None))(
            tokens, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except GatemarkError as error:
        tell_error(error, as_json=as_json)
        return error.exit_status
    except CycloptsError as error:
        words = " ".join(str(error).split())
        tell_error(ConfigError(what=words, where="command line", fix="see gatemark --help"), as_json=as_json)
        return ConfigError.exit_status
    except KeyboardInterrupt:
        tell_error(Interrupted(what="stopped", where="gatemark", fix=""), as_json=as_json)
        return Interrupted.exit_status
    except BrokenPipeError:  # the reader of the output has closed it
        finish_output()
        return 0
    except (MemoryError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            raise
        tell_error(GatemarkError(what="no memory is left", where="this machine", fix=MORE_MEMORY), as_json=as_json)
        return GatemarkError.exit_status


if __name__ == "__main__":
    sys.exit(main())
