"""Frozen task panels: which tasks a number was measured on, in which order, under which hash."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seedbench.contracts import Environment
from seedbench.errors import ConfigError, LeakFound
from seedbench.types import Task


def sha256_lines(lines: Iterable[str]) -> str:
    """Hash of a list of strings, one per line; equal on every machine."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Panel:
    """``ids`` in evaluation order. A draw with replacement repeats an id; ``repeat`` tells them apart."""

    name: str
    ids: tuple[str, ...]
    sha256: str

    @classmethod
    def of(cls, name: str, ids: Sequence[str]) -> Panel:
        return cls(name, tuple(ids), sha256_lines(ids))

    def entries(self) -> list[tuple[str, int]]:
        """``(task id, repeat)`` for each place of the panel."""
        seen: Counter[str] = Counter()
        out = []
        for i in self.ids:
            out.append((i, seen[i]))
            seen[i] += 1
        return out


def find_panel(env: Environment, name: str) -> Panel:
    """The panel ``name`` of ``env``. ``mini-seen.12`` names at most 12 tasks of ``mini-seen``: a short panel with a
    name and a hash of its own, so that its numbers never stand beside those of the whole one.
    """
    whole, count = _parts(name)
    if count is None:
        return env.panel(name)
    group = {t.id: t.public.group for s in env.splits() for t in env.tasks(s)}
    return shortened(env.panel(whole), group, count)


def short_name(name: str, count: int) -> str:
    """Name of the short panel with at most ``count`` tasks of the panel ``name``, which may be short itself."""
    return f"{_parts(name)[0]}.{count}"


def _parts(name: str) -> tuple[str, int | None]:
    """``("mini-seen", 12)`` for ``mini-seen.12``; no number for the name of a whole panel."""
    whole, dot, count = name.rpartition(".")
    return (whole, int(count)) if dot and count.isdecimal() else (name, None)


def shortened(panel: Panel, group: Mapping[str, str], count: int) -> Panel:
    """At most ``count`` distinct tasks in the panel's order; each reporting group in turn gives its next one."""
    if count < 1:
        raise ConfigError(f"'{panel.name}.{count}' is a panel without a task. Ask for 1 or more.")
    ids = list(dict.fromkeys(panel.ids))
    seen: Counter[str] = Counter()
    turn = {}
    for i in ids:
        turn[i] = seen[group[i]]
        seen[group[i]] += 1
    chosen = set(sorted(ids, key=turn.__getitem__)[:count])
    return Panel.of(short_name(panel.name, count), [i for i in ids if i in chosen])


def assert_disjoint(train: Iterable[str], evaluation: Iterable[str]) -> None:
    """Raise :class:`LeakFound` when a training task is also evaluated. Checked at the start of every run."""
    both = sorted(set(train) & set(evaluation))
    if both:
        raise LeakFound(
            f"{len(both)} tasks are in the training split and in the evaluation panel, e.g. '{both[0]}'. "
            "Choose another split or panel."
        )


def group_counts(tasks: Iterable[Task]) -> dict[str, int]:
    """Number of tasks per reporting group."""
    return dict(Counter(t.public.group for t in tasks))
