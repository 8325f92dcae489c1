"""The reference engine: the real alfworld and textworld packages behind the same session.

Needs the extra ``seedbench[alfworld]``. Nothing in the packages is changed. It is slow (seconds to start
a game, a few steps per CPU-second): for comparisons, not for training.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seedbench.envs.alfworld.data import VARIABLE
from seedbench.envs.alfworld.engine import Dialect
from seedbench.envs.alfworld.sources import GameSource

from seedbench.errors import ExtraMissing
from seedbench.types import Task

# 2.1.1 wording and its replacement in 2.1.2, as ALFWorld's patch_tw-pddl.py lists them.
_EDITS = (
    ("You arrive at {lend.name}.", "You arrive at {r.name}."),
    ("You put the {o.name} in/on the {r.name}.", "You move the {o.name} to the {r.name}."),
    ("put {o} in/on {r}", "move {o} to {r}"),
)
_HELP_GRAMMAR = re.compile(r"\naction help \{.*?\n\}", re.DOTALL)
_HELP_ACTION = re.compile(r"\n\(:action help\b.*?\n\)", re.DOTALL)


class Packages:
    """The imported packages. Raises :class:`ExtraMissing` with the install line."""

    def __init__(self) -> None:
        try:
            with _process_kept():
                import alfworld.info
                import textworld
                from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        except ImportError as error:
            raise ExtraMissing(
                f"The reference engine needs the packages alfworld and textworld ({error}). "
                "Install them with: pip install 'seedbench[alfworld]'"
            ) from error
        self.textworld: Any = textworld
        self.demangler: Any = AlfredDemangler
        self.domain = Path(alfworld.info.ALFRED_PDDL_PATH).read_text()
        self.grammar = Path(alfworld.info.ALFRED_TWL2_PATH).read_text()


class ReferencePlayer:
    """One game in TextWorld, with the attributes of :class:`.engine.World`."""

    def __init__(self, env: Any, file: Path) -> None:
        self._env, self._file = env, file
        self._state: Any = None

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(sorted(self._state["admissible_commands"]))

    def reset(self) -> str:
        with _process_kept():
            self._env.load(str(self._file))
            self._state = self._env.reset()
        return self._state["feedback"]

    def step(self, command: str) -> str:
        self._state, _, _ = self._env.step(command)
        return self._state["feedback"]


def opener(source: GameSource, dialect: Dialect) -> Callable[[Task], ReferencePlayer]:
    """A function that opens tasks in one TextWorld environment (every further one would leak 2 MB)."""
    packages = Packages()
    infos = packages.textworld.EnvInfos(won=True, admissible_commands=True)
    env = packages.demangler(packages.textworld.envs.PddlEnv(infos), shuffle=False)
    folder = tempfile.TemporaryDirectory(prefix="seedbench-alfworld-")

    def open_task(task: Task) -> ReferencePlayer:
        files = source.files(task)
        domain = files.get("pddl_domain", packages.domain)
        grammar = files.get("grammar", packages.grammar)
        domain, grammar = _in_version(domain, grammar, dialect, packages)
        game = {
            "pddl_domain": domain,
            "grammar": grammar.replace("UNKNOWN GOAL.", files["task"]),
            "pddl_problem": files["pddl_problem"],
            "solvable": True,
        }
        path = Path(folder.name) / "game.tw-pddl"
        path.write_text(json.dumps(game))
        return ReferencePlayer(env, path)

    return open_task


def _in_version(domain: str, grammar: str, dialect: Dialect, packages: Packages) -> tuple[str, str]:
    """Domain and grammar in the wanted text version, by ALFWorld's own string edits or their reverse."""
    is_new = _EDITS[2][1] in grammar
    if is_new == dialect.has_help:
        return domain, grammar
    for old, new in _EDITS:
        grammar = grammar.replace(old, new) if dialect.has_help else grammar.replace(new, old)
    if not dialect.has_help:
        return _HELP_ACTION.sub("", domain), _HELP_GRAMMAR.sub("", grammar)
    help_grammar, help_action = _HELP_GRAMMAR.search(packages.grammar), _HELP_ACTION.search(packages.domain)
    assert help_grammar is not None and help_action is not None
    end = domain.rindex(")")
    return f"{domain[:end]}{help_action.group()}\n)", grammar + help_grammar.group() + "\n"


@contextmanager
def _process_kept() -> Iterator[None]:
    """fast-downward's translator overwrites ``sys.argv``; importing alfworld sets ``$ALFWORLD_DATA``."""
    arguments, folder = sys.argv, os.environ.get(VARIABLE)
    try:
        yield
    finally:
        sys.argv = arguments
        if folder is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = folder
