"""Shared fixtures: where real data lies, and nothing that hides a failure."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
VARIABLES = {"alfworld": "ALFWORLD_DATA", "webshop": "WEBSHOP_DATA", "search_qa": "SEARCH_QA_DATA"}


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """``shared_data("alfworld")``: the user's folder, else the one beside the checkout, else skip."""

    def find(name: str) -> Path:
        variable = VARIABLES[name]
        beside = ROOT.parent / "shared" / "data" / name
        for place in (os.environ.get(variable), beside):
            if place and Path(place).is_dir():
                return Path(place)
        pytest.skip(f"real {name} data absent: set {variable}")

    return find
