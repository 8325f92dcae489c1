"""Planting marks in hidden halves, and exchanging hidden halves between tasks.

Where the hidden half of a task is a dataclass, its fields are used as they are; a field whose text is the
instruction itself is visible by design and stays. An environment whose hidden half only points to something
(a game file, a row of goals) may bring a module ``audit`` in its package with two functions::

    plant(environment, task, mark) -> (environment, task)         # the mark in every hidden text
    exchange(environment, task, other) -> (environment, task)     # hidden half of ``other``, same visible start
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from seedbench.contracts import Environment, Session
from seedbench.types import HiddenTask, Skill, Task

Pair = tuple[Environment, Task]


def plant(env: Environment, task: Task, mark: str) -> Pair | None:
    """A twin whose hidden texts all hold ``mark``; None where there is nothing to plant it in."""
    own = _own(env)
    if own is not None:
        return own.plant(env, task, mark)
    visible = _instruction(env, task)
    changed = {n: _marked(v, mark) for n, v in _fields(task.hidden.payload, visible).items()}
    changed = {n: v for n, v in changed.items() if v is not None}
    return (env, _with(task, changed)) if changed else None


def exchange(env: Environment, task: Task, other: Task) -> Pair | None:
    """A twin of ``task`` that keeps what is visible and has everything else from ``other``."""
    own = _own(env)
    if own is not None:
        return own.exchange(env, task, other)
    visible = _instruction(env, task)
    names = _fields(task.hidden.payload, visible)
    return (env, _with(task, {n: getattr(other.hidden.payload, n) for n in names})) if names else None


def _own(env: Environment) -> Any:
    name = f"{type(env).__module__.rpartition('.')[0]}.audit"
    package = name.rpartition(".")[0]
    if not package or package == "seedbench" or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def _instruction(env: Environment, task: Task) -> str:
    session = env.session()
    try:
        return session.reset(task, 0).instruction
    finally:
        session.close()


def _fields(payload: Any, visible: str) -> dict[str, Any]:
    """Hidden fields of a dataclass payload."""
    if not dataclasses.is_dataclass(payload) or isinstance(payload, type):
        return {}
    values = {f.name: getattr(payload, f.name) for f in dataclasses.fields(payload)}
    return {n: v for n, v in values.items() if not (isinstance(v, str) and v.strip() == visible.strip())}


def _marked(value: Any, mark: str) -> Any:
    if isinstance(value, str):
        return f"{value} {mark}".strip()
    if isinstance(value, tuple) and all(isinstance(v, str) for v in value):
        return (*(f"{v} {mark}" for v in value), mark)
    return None


def _with(task: Task, changed: dict[str, Any]) -> Task:
    return Task(task.public, HiddenTask(dataclasses.replace(task.hidden.payload, **changed)))


def with_marked_helpers(env: Environment, mark: str) -> Environment:
    """A twin whose oracle, skill bank and annotator all say ``mark``, also when it asks them itself."""
    twin = copy.copy(env)
    make: Callable[[], Session] = twin.session
    skill = Skill(mark, f"{mark} do as told here", mark)

    def session() -> Session:
        made = make()
        made.oracle = lambda: mark  # type: ignore[method-assign]
        return made

    twin.session = session  # type: ignore[method-assign]
    twin.bank = lambda group: skill  # type: ignore[method-assign]
    twin.annotate = lambda episode: skill  # type: ignore[method-assign]
    return twin
