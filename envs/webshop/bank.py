"""The static skill of the shop, written by this project for the methods that need a bank.

The papers choose by keywords of the product category; what they say differs little between categories, and
here every category gets the same workflow.
"""

from __future__ import annotations

from collections.abc import Sequence

from seedbench.errors import ConfigError
from seedbench.types import Skill

_TEXT = (
    "search the words of the wish then open the first item within the price then check what it offers "
    "then choose every option of the wish then buy"
)


def bank(group: str, groups: Sequence[str]) -> Skill:
    """The skill of a product category. Raises :class:`ConfigError` for an unknown one."""
    if group not in groups:
        raise ConfigError(f"The WebShop skill bank knows no product category '{group}'.")
    return Skill("how to buy what a wish describes", _TEXT, "bank")
