"""Goals: what a shopper is asked to buy, generated in the order and with the draws of the original program.

Rules: webshop specification 1.2. Prices in a goal are drawn from the generator that drew the product prices,
so both come from one seed; the order of goals is fixed by a shuffle with seed 233. Hence goal 17 is goal 17
everywhere. The original left the first seed open, and 71 % of its goal texts differed between two processes.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbench.envs.webshop.catalogue import Product

from seedbench.errors import DataCorrupt
from seedbench.panel import sha256_lines

NO_LIMIT = 1_000_000
ORDER_SEED = 233
_GRID = tuple(10.0 * i for i in range(1, 100))


@dataclass(frozen=True, slots=True)
class Goal:
    """``options``: pairs ``(name, value)`` for synthetic goals, ``("", value)`` for human ones.

    ``price_upper`` in dollars, :data:`NO_LIMIT` for none. ``weight`` is the original's sampling weight.
    """

    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    price_upper: float
    title: str
    query: str
    path: str
    category: str
    weight: float = 1.0


def synthetic_goals(
    products: Sequence[Product], attributes: Mapping[str, Any], rng: random.Random
) -> list[Goal]:
    """One goal per combination of options of every product that has an instruction; not yet shuffled."""
    goals = []
    for product in products:
        record = attributes.get(product.asin) or {}
        if not record.get("instruction"):
            continue
        wanted = tuple(record.get("instruction_attributes") or ())
        if not wanted:
            continue
        upper, limit = _limit(product.price, rng)
        names = sorted(product.options)
        for values in itertools.product(*(product.options[n] for n in names)):
            options = tuple(zip(names, values, strict=True))
            told = ", and ".join(f"{n}: {v}" for n, v in options)
            text = record["instruction"] + (f" with {told}" if told else "") + limit
            goals.append(_goal(product, text, wanted, options, upper))
    frequency = Counter(a for g in goals for a in g.attributes)
    return [_weighted(g, sum(1 / frequency[a] for a in g.attributes) / len(g.attributes)) for g in goals]


def human_goals(products: Sequence[Product], human: Mapping[str, Any], rng: random.Random) -> list[Goal]:
    """One goal per written instruction that has attributes; not yet shuffled.

    Raises :class:`DataCorrupt` naming the product when an instruction lacks a field.
    """
    goals = []
    for product in products:
        for record in human.get(product.asin) or ():
            try:
                wanted, values = record["instruction_attributes"], record["instruction_options"]
                text = record["instruction"].strip(".")
            except (KeyError, TypeError, AttributeError) as e:
                raise DataCorrupt(
                    f"A human instruction of product {product.asin} lacks {e}. "
                    "Fetch items_human_ins.json again."
                ) from e
            if not wanted:
                continue
            upper, limit = _limit(product.price, rng)
            options = tuple(("", v) for v in values)
            goals.append(_goal(product, text + limit, tuple(wanted), options, upper))
    return goals


def in_official_order(goals: Iterable[Goal]) -> list[Goal]:
    out = list(goals)
    random.Random(ORDER_SEED).shuffle(out)
    return out


def goals_sha256(goals: Iterable[Goal]) -> str:
    """Hash over asin, text, attributes, options and price of every goal, in order (BR-100)."""
    return sha256_lines(repr((g.asin, g.instruction, g.attributes, g.options, g.price_upper)) for g in goals)


def _limit(price: float, rng: random.Random) -> tuple[float, str]:
    """Upper price and its text: the larger of two of the next four grid prices above ``price``."""
    above = [p for p in _GRID if p > price][:4]
    if len(above) < 2:
        return NO_LIMIT, ""
    upper = max(rng.sample(above, 2))
    return upper, f", and price lower than {upper:.2f} dollars"


def _goal(product: Product, text: str, wanted: tuple[str, ...], options: Any, upper: float) -> Goal:
    return Goal(
        asin=product.asin,
        instruction=text,
        attributes=wanted,
        options=options,
        price_upper=upper,
        title=product.title,
        query=product.query,
        path=product.path,
        category=product.category,
    )


def _weighted(goal: Goal, weight: float) -> Goal:
    return Goal(
        goal.asin, goal.instruction, goal.attributes, goal.options, goal.price_upper,
        goal.title, goal.query, goal.path, goal.category, weight,
    )  # fmt: skip
