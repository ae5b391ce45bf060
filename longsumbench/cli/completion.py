"""`longsumbench completion`."""

from argparse import Namespace

from longsumbench.cli.parser import Argument, Command
from longsumbench.errors import EnvironmentProblem
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
Print the code by which a shell completes the command line: the names of commands and flags.

  {_INSTALL["bash"]}
  {_INSTALL["zsh"]}
  {_INSTALL["fish"]}

Then start a new shell. TAB after lea offers leaderboard, after run --config- offers --config-dir.
"""


_ARGUMENTS = (Argument("shell", ", ".join(_INSTALL), "SHELL", choices=tuple(_INSTALL)),)


def _execute(options: Namespace) -> None:
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        problem = "completion needs the package argcomplete: pip install argcomplete"
        raise EnvironmentProblem(problem) from error
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
    _ARGUMENTS,
    _execute,
    "nothing was changed",
)
