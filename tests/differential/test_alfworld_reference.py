"""Native engine and real TextWorld side by side through the same session contract: equal in every field.

Slow by nature (TextWorld needs seconds to start a game): a few games here, many steps in the recorded
transcripts of ``tests/golden/test_alfworld_textworld.py``.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from seedbench.envs.alfworld import KIND

from seedbench.types import Action

pytestmark = [pytest.mark.reference, pytest.mark.slow]


@pytest.fixture(autouse=True)
def packages() -> None:
    for name in ("alfworld", "textworld"):
        # Looked for, not imported: importing alfworld sets $ALFWORLD_DATA for the whole process.
        if importlib.util.find_spec(name) is None:
            pytest.skip("needs pip install 'seedbench[alfworld]'")


def compare(options: dict[str, str], split: str, numbers: list[int], steps: int) -> set[str]:
    """Plays the same actions in both engines. Returns the verbs that had an effect."""
    native = KIND.make(KIND.options(**options))
    reference = KIND.make(KIND.options(engine="textworld", **options))
    assert native.spec.fingerprint != reference.spec.fingerprint
    one, other = native.session(), reference.session()
    verbs: set[str] = set()
    for number in numbers:
        task = native.tasks(split)[number]
        rng = random.Random(f"reference/{task.id}")
        start = one.reset(task, 0)
        assert start == other.reset(task, 0)
        legal = start.observation.legal
        for _ in range(steps):
            text = rng.choice((one.oracle(), one.oracle(), rng.choice(legal), rng.choice(("fly", " look "))))
            assert other.oracle() in legal
            result = one.step(Action(text))
            assert result == other.step(Action(text)), (task.id, text)
            verbs |= {text.split()[0]} if result.effect else set()
            legal = result.observation.legal
            if result.terminated or result.truncated:
                break
        assert one.outcome() == other.outcome()
    return verbs


@pytest.mark.parametrize("text", ["2.1.1", "2.1.2"])
def test_generated_games_play_alike(text: str) -> None:
    """Also proves that generated games are genuine: TextWorld reads and plays them."""
    arguments, variable = list(sys.argv), os.environ.get("ALFWORLD_DATA")
    verbs = compare({"text": text}, "mini-train", list(range(6)), steps=12)
    assert verbs >= {"go", "take", "open", "put" if text == "2.1.1" else "move"}
    assert sys.argv == arguments, "fast-downward overwrites sys.argv; the engine must restore it"
    assert os.environ.get("ALFWORLD_DATA") == variable, "importing alfworld sets it"


@pytest.mark.real
@pytest.mark.parametrize("text", ["2.1.1", "2.1.2"])
def test_official_games_play_alike(text: str, shared_data: Callable[[str], Path]) -> None:
    options = {"text": text, "variant": "official", "data": str(shared_data("alfworld"))}
    compare(options, "valid_unseen", [5, 60, 110], steps=12)
