"""``seedbench study``: plans, status and reports as printed, and what bad files get to hear."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import toys

from seedbench.cli.main import main
from seedbench.registry import ENVIRONMENTS, METHODS
from seedbench.study.folder import StudyFolder
from seedbench.study.model import load, plan, shipped

TOY = """
title = "Toy"
environments = ["boxes"]
methods = ["grpo"]
seeds = [0, 1]
[[arm]]
label = "grpo (mean only)"
method = "grpo"
options = { advantage = { scale = "none" } }
[scale.cpu]
seeds = [0, 1, 2]
"""


@pytest.fixture
def seedbench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):  # type: ignore[no-untyped-def]
    """The command line in this process, in an empty folder: ``(code, stdout, stderr)``."""
    toys.register()
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["seedbench", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        done = capsys.readouterr()
        return code, done.out, done.err

    return call


def toy(tmp_path: Path, text: str = TOY) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return path


# -- shipped studies -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", ["quick", "cpu", "paper"])
@pytest.mark.parametrize("name", shipped())
def test_shipped_studies_plan_at_every_scale(name: str, scale: str) -> None:
    runs = plan(load(name, scale))
    assert len({r.name for r in runs}) == len(runs)
    assert len({r.config.seed for r in runs}) >= 3
    assert {r.config.scale for r in runs} == {scale}
    if scale == "paper":
        assert {r.config.train.updates for r in runs} == {150}
        shipped_envs = [r for r in runs if r.config.env.name != "boxes"]  # another test's toy world
        assert all(r.config.env.options["variant"] in ("official", "faithful", "real") for r in shipped_envs)


def test_the_four_studies_are_shipped() -> None:
    assert shipped() == ["table1", "table2", "table6", "table7"]
    assert load("table1").methods == load("table1").environments == "all"


def test_table6_varies_the_share_of_the_data_alone() -> None:
    runs = [r for r in plan(load("table6")) if r.config.seed == 0 and r.config.method.name == "seed"]
    assert [r.config.train.data_fraction for r in runs] == [0.2, 0.4, 0.6, 0.8, 1.0]
    bare = {r.config.train.model_copy(update={"data_fraction": 1.0}) for r in runs}
    assert len(bare) == len({r.config.method.model_dump_json() for r in runs}) == 1


def test_table2_holds_every_ablation_of_the_method() -> None:
    from seedbench.config import make_method

    runs = {r.config.label: make_method(r.config.method) for r in plan(load("table2", smoke=True))}
    full = runs["seed"]
    assert full.warm_up is not None and runs["seed (no SFT)"].warm_up is None
    fields = ("skill_source", "outcomes", "gate", "content", "coefficient", "beta")
    changed = {
        label: {f for f in fields if getattr(m, f, None) != getattr(full, f)} for label, m in runs.items()
    }
    for name in fields:
        assert any(c == {name} for c in changed.values()), name
    assert {m.gate for m in runs.values() if hasattr(m, "gate")} == {"sigmoid", "half", "ones"}
    assert {m.content for m in runs.values() if hasattr(m, "content")} == {"own", "shuffled", "random"}


def test_a_smoke_test_is_one_small_update() -> None:
    runs = plan(load("table1", smoke=True))
    assert len(runs) % len(METHODS.names()) == 0
    assert {(r.config.train.updates, r.config.train.tasks, r.config.seed) for r in runs} == {(1, 2, 0)}


# -- plan and status -----------------------------------------------------------------------------------------
def test_plan_lists_the_runs_and_labels_its_estimates(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = seedbench("study", "plan", toy(tmp_path), "--jobs", 2)
    assert code == 0
    rows = [line for line in out.splitlines() if "stated" in line and "boxes mini" in line]
    assert len(rows) == 4
    assert "4 of 4 runs owed" in out and "(4 stated)" in out and "M tokens" in out
    assert not (tmp_path / "studies").exists()
    assert "6 of 6 runs owed" in seedbench("study", "plan", toy(tmp_path), "--scale", "cpu")[1]


def test_a_study_from_the_command_line(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """run, status, plan with measured costs, report; the folder is a study by itself."""
    model = toys.save_backbone(tmp_path / "model", seed=4)
    small = ["-o", f'backbone.options.path="{model}"', "-o", "train.block=4", "-o", "train.group=3"]
    code, out, err = seedbench("study", "run", toy(tmp_path), "--smoke", "--jobs", 1, *small)
    assert code == 0, out + err
    assert out.count("finished in") == out.count("started") == 2
    folder = tmp_path / "studies" / "toy-smoke"
    code, out, _ = seedbench("study", "status", folder, "--watch")
    assert code == 0 and "2 runs: 2 finished" in out and "1/1" in out
    code, out, _ = seedbench("study", "plan", toy(tmp_path), "--smoke", "--seeds", 2, *small)
    assert "measured (1)" in out and "2 of 4 runs owed" in out and "(2 measured)" in out
    assert (
        "scaled (2)"
        in seedbench("study", "plan", toy(tmp_path), "--smoke", *small, "-o", "train.updates=9")[1]
    )
    code, out, _ = seedbench("study", "report", folder)
    assert code == 0 and "grpo (mean only)" in out and "2 runs: 2 finished" in out
    assert "Smoke test" in (folder / "report" / "README.md").read_text()
    assert seedbench("study", "run", folder)[1].count("started") == 0
    code, out, err = seedbench("study", "pack", folder, tmp_path / "shared", "--training", "grpo")
    assert code == 0 and "packed 2 runs" in out, out + err
    assert "2 finished" in seedbench("study", "status", tmp_path / "shared")[1]
    code, _, err = seedbench("study", "run", folder, "--seeds", 3)
    assert code == 2 and "fixed" in err


def test_status_of_a_study_that_never_ran(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = seedbench("study", "status", toy(tmp_path))
    assert code == 0 and "4 runs: 4 owed" in out


def test_failures_are_told_once_with_their_number(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = seedbench(
        "study", "run", toy(tmp_path), "--smoke", "-o", 'backbone.options.path="nowhere"'
    )
    assert code == 1
    assert "2 failed: There is no tiny model" in out
    code, out, _ = seedbench("study", "status", tmp_path / "studies" / "toy-smoke")
    assert "2 runs: 2 failed" in out


def test_files_that_an_interrupted_writer_left_are_no_end(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """An active.json of a process that is gone, and a run folder without its beginning."""
    folder = StudyFolder(load(str(toy(tmp_path))), tmp_path / "studies" / "toy-quick")
    folder.begin()
    gone = {"pid": 4194304, "runs": [folder.runs[0].name]}
    (folder.path / "active.json").write_text(json.dumps(gone))
    folder.run_path(folder.runs[1]).mkdir()
    assert "4 runs: 4 owed" in seedbench("study", "status", toy(tmp_path), "--watch")[1]
    (folder.path / "active.json").write_text("{")
    assert "4 runs: 4 owed" in seedbench("study", "status", toy(tmp_path))[1]
    shutil.rmtree(folder.path)


# -- bad files -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('methods = ["grpo"]', 'methods = ["gpro"]', ["gpro", "Did you mean 'grpo'"]),
        ('environments = ["boxes"]', 'environments = ["boxs"]', ["boxs", "boxes"]),
        ("seeds = [0, 1]\n[[arm]]", "sedes = [0, 1]\n[[arm]]", ["sedes", "Did you mean 'seeds'"]),
        ("[scale.cpu]\nseeds", "[scale.cpu]\nseedz", ["scale.cpu", "seedz"]),
        ('label = "grpo (mean only)"', 'label = "grpo"', ["'grpo'", "Rename"]),
        ('options = { advantage = { scale = "none" } }', "", ["same settings", "grpo (mean only)"]),
        ("advantage = {", "advantege = {", ["grpo (mean only)", "advantege", "Did you mean 'advantage'"]),
        ('scale = "none"', 'scale = "nune"', ["grpo (mean only)", "advantage"]),
        ("seeds = [0, 1]\n", "seeds = [0, 0]\n", ["seeds", "twice"]),
        ("seeds = [0, 1]\n", "seeds = []\n", ["seeds"]),
        ("seeds = [0, 1]\n", "seeds = [-1]\n", ["seeds"]),
        ("seeds = [0, 1]\n", "seeds = [0]\nfractions = [1.5]\n", ["data_fraction"]),
        ("seeds = [0, 1]\n", "seeds = [0]\n[settings.train]\nupdtaes = 1\n", ["updtaes", "Did you mean 'updates'"]),
        ("seeds = [0, 1]\n", 'seeds = [0]\ntable = "9"\n', ["table"]),
        ("seeds = [0, 1]\n", 'seeds = [0]\nname = "../x"\n', ["name"]),
        ('methods = ["grpo"]', "methods = [", ["toy.toml", "cannot be read"]),
        ("[scale.cpu]", "scale = 3\n[x]", ["scale"]),
    ],
)  # fmt: skip
def test_a_wrong_study_file_is_refused_before_anything_is_written(
    old: str, new: str, words: list[str], seedbench, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    assert old in TOY
    code, _, err = seedbench("study", "run", toy(tmp_path, TOY.replace(old, new, 1)))
    assert code == 2
    assert all(word in err for word in words), err
    assert "Traceback" not in err
    assert not (tmp_path / "studies").exists()


def test_a_folder_means_the_same_wherever_it_is_read(tmp_path: Path) -> None:
    """All names are spelled out on disk: an environment or a method installed later adds no run to a finished study."""
    folder = StudyFolder(load("table1", smoke=True), tmp_path / "t")
    folder.begin()
    kept = load(str(folder.path))
    assert kept.environments == tuple(ENVIRONMENTS.names()) and kept.methods == tuple(METHODS.names())
    assert [r.name for r in plan(kept)] == [r.name for r in folder.runs]


def test_the_reference_is_one_of_the_arms(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = seedbench("study", "plan", toy(tmp_path, 'reference = "grqo"\n' + TOY))
    assert code == 2 and "reference 'grqo' is none of its arms: grpo, grpo (mean only)" in err
    assert seedbench("study", "plan", toy(tmp_path, 'reference = "grpo"\n' + TOY))[0] == 0


def test_two_arms_of_one_label_are_refused(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    arm = TOY[TOY.index("[[arm]]") : TOY.index("[scale")]
    code, _, err = seedbench("study", "plan", toy(tmp_path, TOY.replace(arm, arm + arm)))
    assert code == 2 and "arm labels" in err and "twice" in err


def test_an_unknown_study_or_scale_is_named(seedbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, _, err = seedbench("study", "plan", "tabel1")
    assert code == 2 and "Did you mean 'table1'" in err
    code, _, err = seedbench("study", "plan", toy(tmp_path), "--scale", "huge")
    assert code == 2 and "huge" in err and "quick" in err
