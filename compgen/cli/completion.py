"""`cgen completion`: scripts for shells."""

from importlib import import_module
from typing import Any, Literal

from compgen.cli.options import argument, with_options


@with_options
def completion(
    shell: Literal["bash", "zsh", "fish"] = argument("SHELL", "bash, zsh or fish."),
) -> None:
    """Print a script that lets your shell complete commands and options on TAB.

    Add one of these lines to the file that your shell reads at start-up.

    \b
        ~/.bashrc                     eval "$(cgen completion bash)"
        ~/.zshrc, after compinit      eval "$(cgen completion zsh)"
        ~/.config/fish/config.fish    cgen completion fish | source

    Example: cgen completion bash
    """
    from compgen.cli.main import COMPLETE, NAME

    scripts: Any = import_module("typer.completion")
    print(scripts.get_completion_script(prog_name=NAME, complete_var=COMPLETE, shell=shell))
