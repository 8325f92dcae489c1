"""Static skills, one per task family, written by this project for the methods that need a bank.

They say what holds for every task of a family and name no particular thing of any game.
"""

from __future__ import annotations

from types import MappingProxyType

from seedbench.envs.alfworld.game import FAMILIES

from seedbench.errors import ConfigError
from seedbench.types import Skill

_TEXTS = MappingProxyType(
    {
        "place": "find it in places not yet seen , open closed places , take it , put it in the place of the task",
        "look": "find it , take it , find the lamp , hold it and use the lamp",
        "clean": "find it , take it , clean it with sinkbasin 1 before you put it in the place of the task",
        "heat": "find it , take it , heat it with microwave 1 before you put it in the place of the task",
        "cool": "find it , take it , cool it with fridge 1 before you put it in the place of the task",
        "two": "find both , put the first in the place of the task , then find another and put it in the same place",
    }
)
_KIND = dict(zip(FAMILIES, ("place", "look", "clean", "heat", "cool", "two"), strict=True))


def bank(group: str) -> Skill:
    """The skill of a family. Raises :class:`ConfigError` for an unknown one: a prompt never says "None"."""
    if group not in _KIND:
        raise ConfigError(f"The ALFWorld skill bank has no skill for '{group}'. Families: {', '.join(_KIND)}.")
    return Skill(f"how to do tasks of the family {group}", _TEXTS[_KIND[group]], "bank")
