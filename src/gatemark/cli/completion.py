"""`gatemark completion SHELL`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

from typing import Literal

from gatemark.cli.output import AsJson, print_json

ShellName = Literal["bash", "zsh", "fish"]


def completion(shell: ShellName, /, *, as_json: AsJson = False) -> int:
    """Print a shell completion script for commands, options and their values.

    Example: gatemark completion bash > ~/.local/share/bash-completion/completions/gatemark

    Parameters
    ----------
    shell
        Shell that the script is for.
    as_json
        Print the script as JSON instead of text.
    """
    from gatemark.cli.main import make_app  # which imports every command when it is asked for all of them

    script = make_app().generate_completion(shell=shell)
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        print(script, end="")
    return 0
