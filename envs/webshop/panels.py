"""Which goals are measured on: official ranges, the papers' split, and a split without shared products."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from seedbench.envs.webshop.goals import Goal

TEST, DEV = 500, 1500
PAPER_DRAW, PAPER_SEED = 128, 1000


def official_ranges(n: int) -> dict[str, range]:
    """Human goals: test 0-499, dev 500-1499, train from 1500 (BR-099). Empty ranges are left out."""
    ranges = {
        "test": range(min(n, TEST)),
        "dev": range(TEST, min(n, DEV)),
        "train": range(DEV, n),
    }
    return {name: r for name, r in ranges.items() if len(r)}


def synthetic_splits(goals: Sequence[Goal]) -> dict[str, Sequence[int]]:
    """The papers' 0-499 / 500+ split, and the same test goals against products that they do not share.

    ``paper128`` is the draw of 128 test goals that the published code makes for seed 0. ``strict-dev`` holds
    a tenth of the remaining products, by a hash of their asin.
    """
    test = range(min(len(goals), TEST))
    rest = range(TEST, len(goals))
    tested = {goals[i].asin for i in test}
    apart = [i for i in rest if goals[i].asin not in tested]
    splits: dict[str, Sequence[int]] = {
        "test": test,
        "paper128": _paper_draw(len(test)),
        "train": rest,
        "strict-dev": [i for i in apart if _is_dev(goals[i].asin)],
        "strict-train": [i for i in apart if not _is_dev(goals[i].asin)],
    }
    return {name: indices for name, indices in splits.items() if len(indices)}


def shared_products(goals: Sequence[Goal], a: Sequence[int], b: Sequence[int]) -> tuple[int, int]:
    """``(shared, all)``: products of split ``a`` that ``b`` wants too, and all products of ``a``."""
    first, second = {goals[i].asin for i in a}, {goals[i].asin for i in b}
    return len(first & second), len(first)


def overlap_lines(goals: Sequence[Goal], splits: Mapping[str, Sequence[int]], evaluated: str) -> list[str]:
    """One sentence per other split: how many products of the evaluated split it shares."""
    out = []
    for name, indices in splits.items():
        if name != evaluated and not set(indices) <= set(splits[evaluated]):
            shared, total = shared_products(goals, splits[evaluated], indices)
            out.append(f"{shared} of {total} products of '{evaluated}' are also wanted in '{name}'")
    return out


def _paper_draw(n: int) -> list[int]:
    size = min(PAPER_DRAW, n)
    return (
        sorted(int(i) for i in np.random.RandomState(PAPER_SEED).choice(range(n), size, replace=False))
        if n
        else []
    )


def _is_dev(asin: str) -> bool:
    return hashlib.sha256(asin.encode()).digest()[0] < 26
