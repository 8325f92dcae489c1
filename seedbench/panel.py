"""Frozen task panels: which tasks a number was measured on, in which order, under which hash."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seedbench.errors import LeakFound
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
