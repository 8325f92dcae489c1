"""Missing, partial and damaged game data: always a message with what, where and what to do."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest
from seedbench.envs.alfworld import KIND, mini
from seedbench.envs.alfworld import data as alfworld_data
from seedbench.envs.alfworld.data import PACKED, FolderStore, PackedStore, find_store
from seedbench.envs.alfworld.env import AlfWorld
from seedbench.envs.alfworld.game import Description, Goal, compile_game, parse_problem
from seedbench.envs.alfworld.pddl import problem_text

from seedbench.errors import ConfigError, DataCorrupt, DataMissing

GRAMMAR = 'grammar :: """{ "task": [{"rhs": "Your task is to: put a cup in drawer."}] }"""'
FAMILY = "pick_and_place_simple"


def official(folder: Path) -> AlfWorld:
    return KIND.make(KIND.options(variant="official", data=str(folder)))


def game(**change: object) -> dict[str, object]:
    problem = problem_text(mini.generate("mini-train", "small", 0))
    return {"pddl_domain": "(d)", "grammar": GRAMMAR, "pddl_problem": problem, "solvable": True, **change}


def write(root: Path, task: str, content: str, split: str = "valid_unseen", trial: str = "trial_1") -> Path:
    folder = root / "json_2.1.1" / split / task / trial
    folder.mkdir(parents=True)
    (folder / "game.tw-pddl").write_text(content)
    return folder / "game.tw-pddl"


@pytest.fixture
def small_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the official unseen split has two games, of known ids."""
    from seedbench.envs.alfworld.panels import OfficialSplit

    from seedbench.panel import sha256_lines

    ids = [f"{FAMILY}-Cup-None-Drawer-1/trial_1", f"{FAMILY}-Cup-None-Drawer-2/trial_1"]
    split = OfficialSplit((2, 0, 0, 0, 0, 0), sha256_lines(ids))
    monkeypatch.setitem(alfworld_data.OFFICIAL, "valid_unseen", split)  # type: ignore[arg-type]


def test_no_folder_no_silent_zero_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-065: nothing there, an empty folder, an empty split: an error with the command, never 0 games."""
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    cure = r"alfworld-download.*export ALFWORLD_DATA="
    with pytest.raises(DataMissing, match=r"\.cache/alfworld' does not exist.*" + cure):
        KIND.make(KIND.options(variant="official")).tasks("valid_seen")
    with pytest.raises(DataMissing, match=f"No official ALFWorld games in '{tmp_path}'.*{cure}"):
        official(tmp_path).tasks("valid_seen")
    (tmp_path / "json_2.1.1" / "valid_seen").mkdir(parents=True)
    with pytest.raises(DataMissing, match=r"no game of split 'valid_seen'.*" + cure):
        official(tmp_path).tasks("valid_seen")
    with pytest.raises(DataMissing, match=r"split 'train'.*" + cure):
        official(tmp_path).tasks("train")


def test_making_the_environment_needs_no_files(tmp_path: Path) -> None:
    env = official(tmp_path / "absent")
    assert env.splits() == {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
    with pytest.raises(ConfigError, match="no split 'test'"):
        env.tasks("test")


def test_the_variable_may_name_parent_or_json_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_panel: None
) -> None:
    for n in (1, 2):
        write(tmp_path, f"{FAMILY}-Cup-None-Drawer-{n}", json.dumps(game()))
    found = []
    for place in (tmp_path, tmp_path / "json_2.1.1"):
        monkeypatch.setenv("ALFWORLD_DATA", str(place))
        env = KIND.make(KIND.options(variant="official"))
        found.append([t.id for t in env.tasks("valid_unseen")])
        start = env.session().reset(env.tasks("valid_unseen")[1], 0)
        assert start.instruction == "put a cup in drawer."
    assert found[0] == found[1] == [f"{FAMILY}-Cup-None-Drawer-{n}/trial_1" for n in (1, 2)]


def test_the_order_of_a_file_system_changes_no_panel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_panel: None
) -> None:
    """BR-107: two machines that list their folders in other orders evaluate the same tasks under one hash."""
    for n in (1, 2):
        write(tmp_path, f"{FAMILY}-Cup-None-Drawer-{n}", json.dumps(game()))
    listed, panels = os.listdir, []
    for backwards in (False, True):
        monkeypatch.setattr(os, "listdir", lambda path, b=backwards: sorted(listed(path), reverse=b))
        panels.append(official(tmp_path).panel("valid_unseen"))
    assert panels[0] == panels[1] and len(panels[0].ids) == 2


def test_the_filter_of_alfworld(tmp_path: Path) -> None:
    for name in ("-Cup-None-Drawer-1", "-AppleSliced-None-Fridge-1"):
        write(tmp_path, FAMILY + name, json.dumps(game()))
    write(tmp_path, "pick_and_place_with_movable_recep-Cup-Pot-Drawer-1", json.dumps(game()))
    write(tmp_path, "some_other_family-Cup-None-Drawer-1", json.dumps(game()))
    write(tmp_path, f"{FAMILY}-Cup-None-Drawer-3", json.dumps(game(solvable=False)))
    (tmp_path / "json_2.1.1" / "valid_unseen" / "README.txt").write_text("a stray file")
    (tmp_path / "json_2.1.1" / "valid_unseen" / f"{FAMILY}-Cup-None-Drawer-4" / "trial_1").mkdir(parents=True)
    assert FolderStore(tmp_path / "json_2.1.1").ids("valid_unseen") == [f"{FAMILY}-Cup-None-Drawer-1/trial_1"]


def test_a_part_of_a_split_is_refused(tmp_path: Path, small_panel: None) -> None:
    """alfworld#98: 132 instead of 134 games because a key was missing, unnoticed."""
    write(tmp_path, f"{FAMILY}-Cup-None-Drawer-1", json.dumps(game()))
    lacking = game()
    del lacking["solvable"]
    bad = write(tmp_path, f"{FAMILY}-Cup-None-Drawer-2", json.dumps(lacking))
    with pytest.raises(DataMissing, match=rf"holds 1 of the 2 games.*'{bad}' lacks the key \"solvable\""):
        official(tmp_path).tasks("valid_unseen")


def test_other_games_under_the_same_number_are_refused(tmp_path: Path, small_panel: None) -> None:
    for n in (1, 7):
        write(tmp_path, f"{FAMILY}-Cup-None-Drawer-{n}", json.dumps(game()))
    with pytest.raises(DataCorrupt, match="2 games of split 'valid_unseen', but not the official ones"):
        official(tmp_path).tasks("valid_unseen")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"pddl_domain": "x", "gram', "is not valid JSON"),
        ("[1, 2]", "holds no game"),
        (json.dumps({"solvable": True, "grammar": GRAMMAR}), "lacks pddl_domain, pddl_problem"),
        (json.dumps(game(pddl_problem="(define)")), "no \\(:init"),
        (
            json.dumps(game(pddl_problem="(:init (atlocation agent1 loc_bar_1)) (:goal (x))")),
            "six known shapes",
        ),
        (json.dumps(game(grammar="grammar")), "no task sentence"),
    ],
)
def test_a_damaged_game_names_its_file(tmp_path: Path, content: str, said: str) -> None:
    path = write(tmp_path, f"{FAMILY}-Cup-None-Drawer-1", content)
    store = FolderStore(tmp_path / "json_2.1.1")
    with pytest.raises(DataCorrupt, match=said) as caught:
        store.ids("valid_unseen")
        store.description("valid_unseen", f"{FAMILY}-Cup-None-Drawer-1/trial_1")
    assert str(path) in str(caught.value)


def test_facts_without_start_are_refused() -> None:
    with pytest.raises(DataCorrupt, match="here: no start location"):
        compile_game(Description((), Goal("place", "cup", "drawer"), "put a cup in drawer."), "here")


def packed(path: Path, lines: list[str]) -> Path:
    with lzma.open(path, "wt") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return path


def row(game_id: str) -> str:
    return json.dumps({"id": game_id, "task": "put a cup in drawer.", "pddl_problem": game()["pddl_problem"]})


HEADER = json.dumps({"pddl_domain": "(d)", "grammar": "Your task is to: @@TASK@@"})


def test_packed_games_are_found_and_equal_the_folder_form(tmp_path: Path) -> None:
    packed(tmp_path / PACKED, [HEADER, row("valid_seen/b/t"), row("valid_seen/a/t"), row("train/c/t")])
    for place in (tmp_path, tmp_path / PACKED):
        store = find_store(str(place))
        assert isinstance(store, PackedStore) and store.ids("valid_seen") == ["a/t", "b/t"]
    problem = str(game()["pddl_problem"])
    assert store.description("valid_seen", "a/t") == parse_problem(problem, "put a cup in drawer.")
    assert store.files("train", "c/t")["grammar"] == "Your task is to: put a cup in drawer."


def test_damaged_packed_files_are_named(tmp_path: Path) -> None:
    whole = packed(tmp_path / "whole.xz", [HEADER, row("valid_seen/a/t")]).read_bytes()
    for name, content in (
        ("cut.xz", whole[: len(whole) // 2]),
        ("text.xz", b"no archive"),
        ("empty.xz", b""),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataCorrupt, match=f"{name}' cannot be read"):
            PackedStore(tmp_path / name).ids("valid_seen")
    packed(tmp_path / "json.xz", [HEADER, '{"id": "valid_seen/a/t"}'])
    with pytest.raises(DataCorrupt, match="KeyError"):
        PackedStore(tmp_path / "json.xz").ids("valid_seen")


def test_the_reference_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from seedbench.errors import ExtraMissing

    monkeypatch.setitem(sys.modules, "textworld", None)
    monkeypatch.setitem(sys.modules, "alfworld", None)
    env = KIND.make(KIND.options(engine="textworld"))
    with pytest.raises(ExtraMissing, match=r"pip install 'seedbench\[alfworld\]'"):
        env.session()
