"""WebShop-mini: a generated catalogue of any size and goals with held-out products. No files needed.

A catalogue is a pure function of (seed, size), a list of goals of (seed, size, split). Products of the three
splits are disjoint. The same shop, search engine and scorer as the real catalogue, with the corrected rules.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from seedbench.envs.webshop.catalogue import Product
from seedbench.envs.webshop.goals import Goal
from seedbench.envs.webshop.lexicon import COLOURS, DEPARTMENTS

#: Change this when the same seed would give other products or goals: it is part of every fingerprint.
GENERATOR = "mini-1"
SPLITS: Mapping[str, int] = {"mini-train": 2000, "mini-dev": 200, "mini-test": 200}
GROUPS = tuple(sorted(d.name for d in DEPARTMENTS))
#: Fewer products could leave a department without products in a held-out split.
SMALLEST = 200
_SHARE = {"mini-train": (0.0, 0.7), "mini-dev": (0.7, 0.85), "mini-test": (0.85, 1.0)}


def catalogue(seed: int, size: int) -> tuple[Product, ...]:
    """``size`` products; departments take turns, so that each has its equal share."""
    rng = random.Random(f"{GENERATOR}/{seed}/{size}")
    return tuple(_product(rng, number) for number in range(size))


def products_of(split: str, products: Sequence[Product], seed: int) -> list[Product]:
    """The products that goals of ``split`` may want, the same share of every department."""
    out = []
    for d in DEPARTMENTS:
        mine = [p for p in products if p.category == d.name]
        random.Random(f"{GENERATOR}/{seed}/{len(products)}/{d.name}").shuffle(mine)
        low, high = (round(share * len(mine)) for share in _SHARE[split])
        out += mine[low:high]
    return out


def goals(split: str, products: Sequence[Product], seed: int) -> tuple[Goal, ...]:
    """The goals of a split, all different, departments taking turns."""
    rng = random.Random(f"{GENERATOR}/{seed}/{len(products)}/{split}/goals")
    pool = products_of(split, products, seed)
    by_department = [[p for p in pool if p.category == d.name] for d in DEPARTMENTS]
    out: dict[str, Goal] = {}
    turn = 0
    while len(out) < SPLITS[split]:
        goal = _goal(rng, rng.choice(by_department[turn % len(by_department)]))
        if goal.instruction not in out:
            out[goal.instruction] = goal
            turn += 1
    return tuple(out.values())


def _product(rng: random.Random, number: int) -> Product:
    department = DEPARTMENTS[number % len(DEPARTMENTS)]
    noun = rng.choice(department.nouns)
    attributes = tuple(rng.sample(department.attributes, 3))
    name, values = department.choice
    price = float(rng.randint(5, 94))
    return Product(
        asin=f"M{number:07d}",
        title=f"{attributes[0]} {attributes[1]} {noun}",
        description=f"a {noun} : {' , '.join(attributes)}",
        bullets=(f"this {noun} comes from the {department.name} department", *attributes),
        category=department.name,
        query=noun,
        path=f"{department.name} › {noun}",
        options={"color": _some(rng, COLOURS), name: _some(rng, values)},
        attributes=attributes,
        prices=(price,),
        price=price,
    )


def _some(rng: random.Random, values: Sequence[str]) -> tuple[str, ...]:
    """Three of ``values``, in their own order."""
    chosen = set(rng.sample(range(len(values)), 3))
    return tuple(v for i, v in enumerate(values) if i in chosen)


def _goal(rng: random.Random, product: Product) -> Goal:
    left_out = rng.randrange(3)
    wanted = tuple(a for i, a in enumerate(product.attributes) if i != left_out)
    options = tuple((name, rng.choice(values)) for name, values in product.options.items())
    above = [p for p in range(10, 140, 10) if p > product.price][:4]
    upper = float(max(rng.sample(above, 2)))
    told = " , ".join(f"{name} {value}" for name, value in options)
    return Goal(
        asin=product.asin,
        instruction=f"i want a {' '.join(wanted)} {product.query} , {told} , under $ {upper:.0f}",
        attributes=wanted,
        options=options,
        price_upper=upper,
        title=product.title,
        query=product.query,
        path=product.path,
        category=product.category,
    )
