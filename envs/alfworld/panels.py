"""Frozen panels: which official games each split holds, and the papers' draw of 128.

Source of the counts: ALFWorld's filter (six families, no movable receptacle, no sliced object, solvable) over
``json_2.1.1``, as its paper states them. The hashes are of the sorted ids ``<task>/<trial>``, one per line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seedbench.panel import Panel


@dataclass(frozen=True, slots=True)
class OfficialSplit:
    """``families``: games per family in the order of :data:`.game.FAMILIES`."""

    families: tuple[int, int, int, int, int, int]
    sha256: str

    @property
    def games(self) -> int:
        return sum(self.families)


OFFICIAL: Mapping[str, OfficialSplit] = {
    "train": OfficialSplit(
        (790, 308, 650, 459, 533, 813), "199a2f369a51c69e3babb97c234d00d91adecee274bbb2e5aa615cde716fd155"
    ),
    "valid_seen": OfficialSplit(
        (35, 13, 27, 16, 25, 24), "ef35bea9156a6c9bc173a60a3753b93df39adfd1b6bbe322e4f085a710ac2358"
    ),
    "valid_unseen": OfficialSplit(
        (24, 18, 31, 23, 21, 17), "03d28ddc60c987d291e6d2e10566b0bcf8bea1eb8186e65df385c74ec2d44e0f"
    ),
}

PAPER_DRAWS = 128
PAPER_SEED = 1000  # the published code evaluates with its seed (0) plus 1000


def paper128(split_ids: Sequence[str]) -> Panel:
    """The papers' evaluation protocol on a split: 128 draws with replacement, as one fixed list.

    The published code starts 128 environments, each of which shuffles all games by its own seed and plays the
    first one. Its list depends on the order in which a file system names folders, so it cannot be had again;
    here draw ``i`` is the SHA-256 of ``"paper128/<1000 + i>"`` modulo the number of sorted ids.
    """
    ids = sorted(split_ids)
    draws = []
    for i in range(PAPER_DRAWS):
        digest = hashlib.sha256(f"paper128/{PAPER_SEED + i}".encode()).digest()
        draws.append(ids[int.from_bytes(digest, "big") % len(ids)])
    return Panel.of("paper128", draws)
