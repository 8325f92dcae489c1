"""What a retriever is: texts in, ranked hits out. Back ends differ, the interface does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Document:
    """``contents`` follows the wiki-18 convention: quoted title, newline, text."""

    id: str
    contents: str


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    contents: str
    score: float


class Retriever(Protocol):
    """``fingerprint`` hashes corpus order, corpus text and settings: two equal ones rank alike."""

    fingerprint: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits per query, best first; ties broken by id, ascending."""
        ...
