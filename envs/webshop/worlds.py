"""Catalogue, index, goals and splits of a variant: loaded once per process, shared by all environments."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from seedbench.envs.webshop import data, mini
from seedbench.envs.webshop.catalogue import Product, index_documents
from seedbench.envs.webshop.goals import Goal, goals_sha256, human_goals, in_official_order, synthetic_goals
from seedbench.envs.webshop.lexicon import NOUNS
from seedbench.envs.webshop.nouns import Lexicon, Spacy, TitleNouns
from seedbench.envs.webshop.panels import official_ranges, overlap_lines, synthetic_splits
from seedbench.envs.webshop.shop import Rules, Shop

from seedbench.errors import DataCorrupt, DataMissing
from seedbench.search.bm25 import BM25, corpus_fingerprint

#: Prices and goals are drawn with this seed, so that they are the same everywhere.
PRICE_SEED = 0
GoalKind = Literal["synthetic", "human"]


@dataclass(frozen=True, slots=True)
class World:
    """What sessions share, read-only. ``splits`` holds goal indices, ``prefix`` begins every task id."""

    shop: Shop
    goals: Sequence[Goal]
    splits: Mapping[str, Sequence[int]]
    prefix: str
    groups: tuple[str, ...]
    details: Mapping[str, str]

    def overlap(self, evaluated: str) -> list[str]:
        """What ``panel show`` prints: products that the evaluated split shares with others."""
        return overlap_lines(self.goals, self.splits, evaluated)


@lru_cache(maxsize=16)
def mini_world(seed: int, size: int) -> World:
    """The generated shop: corrected rules, pages of five, hits clicked by their place on the page."""
    products = mini.catalogue(seed, size)
    rules = Rules(fixed=True, page_size=5, slots=True, sub_pages=("Description", "Features"))
    shop = Shop(products, Lexicon(NOUNS), rules)
    goals: list[Goal] = []
    splits: dict[str, Sequence[int]] = {}
    for split in mini.SPLITS:
        more = mini.goals(split, products, seed)
        splits[split] = range(len(goals), len(goals) + len(more))
        goals += more
    details = _details(shop, goals) | {"generator": mini.GENERATOR, "catalogue_seed": str(seed)}
    return World(shop, goals, splits, "mini", mini.GROUPS, details)


def real_world(fixed: bool, size: data.Size, kind: GoalKind, setting: str | None, index: str | None) -> World:
    """The official catalogue. ``index``: folder of a saved search index, made there when it is absent."""
    base = _real(str(data.folder(setting)), size, kind, index)
    shop = Shop(base.shop.products, base.shop.nouns, Rules(fixed=fixed), base.shop.index)
    return World(shop, base.goals, base.splits, base.prefix, base.groups, base.details)


@lru_cache(maxsize=4)
def _real(place: str, size: data.Size, kind: GoalKind, index: str | None) -> World:
    path = Path(place)
    rng = random.Random(PRICE_SEED)
    attributes = data.read_attributes(path, size)
    products = data.read_products(path, size, attributes, rng)
    if kind == "human":
        goals = in_official_order(human_goals(products, data.read_human(path, size), rng))
        splits: Mapping[str, Sequence[int]] = official_ranges(len(goals))
    else:
        goals = in_official_order(synthetic_goals(products, attributes, rng))
        splits = synthetic_splits(goals)
    if not goals:
        raise DataMissing(
            f"The files in {path} hold no {kind} goal for their products. Check the file versions."
        )
    nouns: TitleNouns = data.read_nouns(path) or Spacy()
    shop = Shop(products, nouns, Rules(fixed=False), _index(products, index))
    groups = tuple(sorted({g.category for g in goals}))
    details = _details(shop, goals) | {"goals": kind, "price_seed": str(PRICE_SEED)}
    return World(shop, goals, splits, kind, groups, details)


def _index(products: Sequence[Product], place: str | None) -> BM25:
    if place is None:
        return BM25.build(index_documents(products))
    path = Path(place).expanduser()
    if not (path / "index.json").is_file():
        BM25.build(index_documents(products)).save(path)
    index = BM25.load(path)
    if index.fingerprint != corpus_fingerprint(index_documents(products)):
        raise DataCorrupt(f"The search index in {path} was made from another catalogue. Delete or move it.")
    return index


def _details(shop: Shop, goals: Sequence[Goal]) -> dict[str, str]:
    return {
        "products": str(len(shop.products)),
        "goal_count": str(len(goals)),
        "goals_sha256": goals_sha256(goals),
        "index_sha256": shop.index.fingerprint,
        "nouns": shop.nouns.name,
    }
