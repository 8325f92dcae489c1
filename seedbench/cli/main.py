"""Entry point. A command's module is imported when the command runs, so ``--help`` stays instant."""

from __future__ import annotations

import copy
import difflib
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import seedbench
from seedbench.errors import SeedbenchError

#: command -> (module:attribute, one line of help). The attribute is a function or a typer.Typer group.
COMMANDS = {
    "run": ("seedbench.cli.run:run", "Train and evaluate: one row of Table 1, or one environment of it."),
    "eval": ("seedbench.cli.evaluate:evaluate", "Evaluate a policy or a trained run on a panel."),
    "table": ("seedbench.cli.report:table", "Print table 1, 2, 6 or 7 from run folders."),
    "show": ("seedbench.cli.report:show", "Print one episode of a run, with its skill."),
    "verdict": ("seedbench.cli.report:verdict", "Does run A improve on run B, and at what cost?"),
    "figures": ("seedbench.cli.report:figures", "Draw learning curves and cost figures as SVG."),
    "study": ("seedbench.cli.study:study", "Plan, run, watch and report many runs from one file."),
    "leaderboard": ("seedbench.cli.report:leaderboard", "Build, extend or verify a leaderboard."),
    "audit": ("seedbench.cli.audit:audit", "Prove that a run acted on ordinary history only."),
    "diagnose": ("seedbench.cli.audit:diagnose", "Do the skills of a SEED run deserve belief?"),
    "play": ("seedbench.cli.play:play", "Play an environment by hand."),
    "pretrain": ("seedbench.cli.pretrain:pretrain", "Make the tiny model of an environment."),
    "export": ("seedbench.cli.pretrain:export", "Write a trained tiny model as a Hugging Face folder."),
    "info": ("seedbench.cli.info:info", "List environments, methods, backbones and their options."),
    "data": ("seedbench.cli.info:data", "Where real data is looked for, and what is there."),
    "panel": ("seedbench.cli.info:panel", "Show a task panel: counts, hash, overlap with training."),
    "serve": ("seedbench.cli.retrieval:serve", "Serve retrieval over HTTP."),
    "index": ("seedbench.cli.retrieval:index", "Build, describe and verify search indexes."),
}


def main() -> None:
    """Run the command line: ``seedbench COMMAND ...``."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
    elif arguments[0] == "--version":
        print(f"seedbench {seedbench.__version__}")
    elif arguments[0] not in COMMANDS:
        near = difflib.get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        print(f"Error: no command '{arguments[0]}'.{hint} See 'seedbench --help'.", file=sys.stderr)
        sys.exit(2)
    else:
        _command(arguments[0])(args=arguments[1:], prog_name=f"seedbench {arguments[0]}")


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: seedbench COMMAND [OPTIONS]",
            "",
            "Benchmark and evaluation harness for agentic RL with self-distillation.",
            "",
            "Commands:",
            *lines,
            "",
            "'seedbench COMMAND --help' tells a command's options.",
        ]
    )


def _command(name: str) -> Any:
    """The typer application of one command, with this project's way of failing."""
    import typer

    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        app = copy.copy(target)  # the group itself stays as its module made it
        app.registered_commands = [copy.copy(c) for c in target.registered_commands]
        app.registered_callback = copy.copy(target.registered_callback)
    else:
        app = typer.Typer(add_completion=False)
        app.command(name)(target)
    app.rich_markup_mode = None
    app.pretty_exceptions_enable = False
    for registered in [*app.registered_commands, app.registered_callback]:
        if registered is not None:
            registered.callback = _spoken(registered.callback)
    return app


def _spoken(function: Callable[..., Any]) -> Callable[..., Any]:
    """Known failures print one message and no traceback; Ctrl-C exits with 130, a closed pipe with 141."""

    @functools.wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except KeyboardInterrupt:
            print(
                "\nStopped. What was finished is kept; give the same command again to resume.",
                file=sys.stderr,
            )
            sys.exit(130)
        except SeedbenchError as error:
            print(f"Error: {error}", file=sys.stderr)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(141)

    return wrapped
