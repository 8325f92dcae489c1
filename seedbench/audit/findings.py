"""What an audit of reported tables finds, and what is known about the tasks behind them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from seedbench.reports.reported import Fact

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Finding:
    """``kind`` names the check, ``text`` says what is wrong, ``cells`` cite the printed numbers."""

    kind: str
    text: str
    cells: tuple[str, ...]


@cache
def known_tasks() -> Mapping[str, Any]:
    """``published_facts.toml``: columns, sizes and draws by environment."""
    return tomllib.loads(files("seedbench.audit").joinpath("published_facts.toml").read_text("utf-8"))["env"]


def who(fact: Fact) -> str:
    return f"{fact.method} {fact.backbone}"
