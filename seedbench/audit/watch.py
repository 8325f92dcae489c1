"""What a policy does beside thinking: files opened, sockets, programs started. Python's own audit events."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from seedbench.contracts import Policy, Session
from seedbench.types import Generation, View

_CODE = (".py", ".pyc", ".so", ".pyd")
#: (thread, list to fill), innermost last. The hook sleeps while this is empty.
_watching: list[tuple[int, list[str]]] = []
_installed = False


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _watching or _watching[-1][0] != threading.get_ident():
        return
    seen = _watching[-1][1]
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        name = os.path.abspath(os.fsdecode(arguments[0]))
        if not name.endswith(_CODE):  # a late import is no leak
            seen.append(f"opens {name}")
    elif event == "socket.connect":
        seen.append(f"connects to {arguments[1]}")
    elif event in ("subprocess.Popen", "os.system", "os.exec"):
        seen.append(f"starts {arguments[0]!r}")


@contextmanager
def watched() -> Iterator[list[str]]:
    """While inside, what this thread opens, connects to or starts is written into the list."""
    global _installed
    if not _installed:
        sys.addaudithook(_hook)  # cannot be removed: it stays, and sleeps outside
        _installed = True
    seen: list[str] = []
    _watching.append((threading.get_ident(), seen))
    try:
        yield seen
    finally:
        _watching.pop()


class Watched:
    """A policy under observation: ``touched`` lists what it did beside answering, ``views`` what it was shown,
    ``answers`` what it said, by slot."""

    def __init__(self, inner: Policy) -> None:
        self._inner = inner
        self.name, self.privileged, self.constrained = inner.name, inner.privileged, inner.constrained
        self.touched: list[str] = []
        self.views: dict[int, list[View]] = {}
        self.answers: dict[int, list[str]] = {}

    def attach(self, sessions: Mapping[int, Session]) -> None:
        self._inner.attach(sessions)  # type: ignore[attr-defined]

    def act(self, views: Sequence[View]) -> Sequence[Generation]:
        with watched() as seen:
            answers = self._inner.act(views)
        self.touched += seen
        for view, answer in zip(views, answers, strict=True):
            self.views.setdefault(view.slot, []).append(view)
            self.answers.setdefault(view.slot, []).append(answer.text)
        return answers

    def forget(self, slots: Sequence[int]) -> None:
        self._inner.forget(slots)
