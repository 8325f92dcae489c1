"""Names to things, lazily: a module is imported when it is asked for, not before.

Built-in environments and methods are found by their file name in ``seedbench.envs`` and
``seedbench.baselines``; other packages add theirs through entry points. Adding one touches nothing else.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from seedbench.errors import ConfigError, UnknownName


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` with the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{near[0]}'?" if near else ""


class Registry:
    """A table of one kind of thing: ``name -> "package.module:attribute"``."""

    def __init__(self, kind: str, package: str, attribute: str, group: str) -> None:
        self.kind, self.package, self.attribute, self.group = kind, package, attribute, group
        self._added: dict[str, str] = {}

    def add(self, name: str, target: str) -> None:
        """Register ``target``. A second, different target for the same name is an error."""
        self._insert(self._added, name, target)

    def names(self) -> list[str]:
        return sorted(self._table())

    def get(self, name: str) -> Any:
        """The thing itself. Raises :class:`UnknownName` with the nearest known name."""
        table = self._table()
        if name not in table:
            hint = did_you_mean(name, table)
            raise UnknownName(f"Unknown {self.kind} '{name}'.{hint} Known: {', '.join(sorted(table))}.")
        module, _, attribute = table[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def _insert(self, table: dict[str, str], name: str, target: str) -> None:
        if table.get(name, target) != target:
            raise ConfigError(f"{self.kind} '{name}' is registered twice: {table[name]} and {target}.")
        table[name] = target

    def _table(self) -> dict[str, str]:
        folder = importlib.import_module(self.package).__path__
        table = {
            m.name: f"{self.package}.{m.name}:{self.attribute}"
            for m in pkgutil.iter_modules(folder)
            if not m.name.startswith("_")
        }
        for name, target in self._added.items():
            self._insert(table, name, target)
        for entry in entry_points(group=self.group):
            self._insert(table, entry.name, entry.value)
        return table


#: Values are :class:`seedbench.contracts.EnvironmentKind` objects (``options`` model and ``make``).
ENVIRONMENTS = Registry("environment", "seedbench.envs", "KIND", "seedbench.envs")
#: Values are dataclasses that satisfy :class:`seedbench.train.method.Method`; their fields are the config.
METHODS = Registry("method", "seedbench.baselines", "METHOD", "seedbench.methods")
