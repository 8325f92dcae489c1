"""The native engine against transcripts recorded from the real TextWorld 1.7.0: zero differences."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from seedbench.envs.alfworld.data import PackedStore
from seedbench.envs.alfworld.engine import DIALECTS, World
from seedbench.envs.alfworld.game import compile_game

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(shared_data: Callable[[str], Path]) -> Path:
    folder = shared_data("alfworld")
    if not (folder / "golden_textworld.jsonl.xz").is_file():
        pytest.skip("recorded transcripts (golden_textworld.jsonl.xz) absent")
    return folder


def test_every_recorded_step_is_identical(folder: Path) -> None:
    store = PackedStore(folder / "alfworld_2.1.1_official.jsonl.xz")
    verbs: set[str] = set()
    versions: set[str] = set()
    steps = wins = 0
    with lzma.open(folder / "golden_textworld.jsonl.xz", "rt") as lines:
        for record in map(json.loads, lines):
            _, split, game_id = record["game"].removesuffix("/game.tw-pddl").split("/", 2)
            game = compile_game(store.description(split, game_id))
            world = World(game, DIALECTS[record["text_version"]])
            versions.add(record["text_version"])
            assert world.reset() == record["intro"]
            assert list(world.commands) == record["admissible0"]
            for step in record["steps"]:
                legal = step["action"].strip() in world.commands
                seen = (world.step(step["action"]), list(world.commands), world.won)
                assert seen == (step["observation"], step["admissible"], step["won"]), step["action"]
                verbs |= {step["action"].split()[0]} if legal else set()
                steps, wins = steps + 1, wins + world.won
    assert steps == 36 * 45 and wins > 0 and versions == {"2.1.1", "2.1.2"}
    # every verb but the two names of putting down occurs in both versions' transcripts
    assert verbs >= {
        "go",
        "open",
        "close",
        "take",
        "examine",
        "use",
        "heat",
        "clean",
        "cool",
        "look",
        "inventory",
    }
    assert verbs & {"put", "move"} == {"put", "move"}
