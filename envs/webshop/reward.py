"""The score of a purchase, in [0, 1]: as the original program counts, and with its faults corrected.

``score = type * (attributes + options + price) / (n_attributes + n_options + 1)`` (specification 1.5).
Fuzzy matches are token-set ratios above 85 on text with everything but letters and digits blanked, rounded to
whole numbers (thefuzz 0.22 over rapidfuzz).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz, utils
from seedbench.envs.webshop.catalogue import Product
from seedbench.envs.webshop.colours import first_colour
from seedbench.envs.webshop.goals import Goal

_THRESHOLD = 85
_DROPPED = dict.fromkeys(range(128, 256))


@dataclass(frozen=True, slots=True)
class Score:
    """``value`` in [0, 1] and what it is made of; hits are counts, ``price`` is 0 or 1."""

    value: float
    type_factor: float
    attribute_hits: int
    option_hits: int
    price: int

    @property
    def perfect(self) -> bool:
        return self.value == 1.0


@lru_cache(maxsize=1 << 16)
def _plain(text: str) -> str:
    return utils.default_process(text.translate(_DROPPED))


@lru_cache(maxsize=1 << 17)
def similar(a: str, b: str) -> bool:
    """Token-set ratio above 85, after rounding to a whole number."""
    return round(fuzz.token_set_ratio(_plain(a), _plain(b))) > _THRESHOLD


def type_factor(bought: Product, goal: Goal, bought_nouns: Sequence[str], goal_nouns: Sequence[str]) -> float:
    """How much the bought thing is the wanted kind of thing: 1, 0.5, 0.1 or 0."""
    overlap = len(set(bought_nouns) & set(goal_nouns)) / len(goal_nouns) if goal_nouns else 0.2
    shared = {p.strip() for p in bought.path.split("›")} & {p.strip() for p in goal.path.split("›")}
    if overlap == 0:
        return 0.0
    if overlap < 0.1:
        return 0.1
    return 1.0 if bought.query == goal.query or len(shared) >= 2 or overlap > 0.2 else 0.5


def attribute_hits(bought: Product, wanted: Sequence[str]) -> int:
    """Wanted attributes that the product lists (fuzzily) or mentions anywhere in its texts."""
    texts = (bought.title.lower(), " ".join(bought.bullets).lower(), bought.description.lower())
    return sum(
        any(similar(has, want) for has in bought.attributes) or any(want in text for text in texts)
        for want in wanted
    )


def faithful_option_hits(chosen: Mapping[str, str], goal: Goal) -> int:
    """As the original: values only, reduced to colour words, compared fuzzily.

    A synthetic goal's option is compared as the text of a Python pair, ``('color', 'dark blue')``, unless one
    of the two is a colour word. That makes 458 of the 6,910 goals unreachable.
    """
    bought = [str(first_colour(v)) for v in chosen.values()]
    wanted = [str(first_colour(pair if pair[0] else pair[1])) for pair in goal.options]
    return sum(any(similar(b, w) for b in bought) for w in wanted)


def fixed_option_hits(chosen: Mapping[str, str], goal: Goal) -> int:
    """The wanted value itself, in the wanted group; human goals name no group, so any group will do."""
    values = set(chosen.values())
    return sum(chosen.get(name) == value if name else value in values for name, value in goal.options)


def score(
    bought: Product,
    chosen: Mapping[str, str],
    goal: Goal,
    bought_nouns: Sequence[str],
    goal_nouns: Sequence[str],
    fixed: bool,
) -> Score:
    """Score of buying ``bought`` with options ``chosen`` (name -> value)."""
    factor = type_factor(bought, goal, bought_nouns, goal_nouns)
    attributes = attribute_hits(bought, goal.attributes)
    options = (fixed_option_hits if fixed else faithful_option_hits)(chosen, goal)
    # a price drawn from a range has many decimals; the corrected shop charges what it prints
    charged = round(bought.price, 2) if fixed else bought.price
    price = int(charged <= goal.price_upper)
    total = len(goal.attributes) + len(goal.options) + 1
    return Score(factor * ((attributes + options + price) / total), factor, attributes, options, price)
