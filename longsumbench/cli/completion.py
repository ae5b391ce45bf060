"""`longsumbench completion`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.formatting import print_text

_INSTALL = {
    "bash": "longsumbench completion bash >> ~/.bashrc",
    "zsh": "longsumbench completion zsh >> ~/.zshrc",
    "fish": "longsumbench completion fish > ~/.config/fish/completions/longsumbench.fish",
}
_COMPINIT = (
    "(( $+functions[compdef] )) || { autoload -U compinit && compinit }"  # defines zsh's compdef
)
_HELP = f"""\
Print the code by which a shell completes the command line: commands, flags, names, settings and ids of runs.

  {_INSTALL["bash"]}
  {_INSTALL["zsh"]}
  {_INSTALL["fish"]}

Then start a new shell. TAB after model=se offers seal, after model=seal model. its settings, and after inspect the runs
in the results folder.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument(
        "shell", metavar="SHELL", choices=tuple(_INSTALL), help=", ".join(_INSTALL)
    )


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from argcomplete.shell_integration import shellcode

    code = shellcode(["longsumbench"], shell=options.shell)
    first = [_COMPINIT] if options.shell == "zsh" else []
    print_text(
        f"# Completion for longsumbench; to install it: {_INSTALL[options.shell]}",
        *first,
        code.strip(),
    )


completion_command = Command(
    "completion",
    "let a shell complete command lines",
    _HELP,
    _add_arguments,
    _execute,
    "nothing was changed",
)
