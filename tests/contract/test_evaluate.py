"""Evaluating finished runs and scripted policies: streams, panels, retention, refusals."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seedbench.audit.runs import audit_run
from seedbench.config import EnvSection
from seedbench.errors import CheckpointCorrupt, DataMissing, RunConflict, UnknownName
from seedbench.evaluate import evaluate_policy, evaluate_run, final_checkpoint, open_final, policies_of
from seedbench.registry import ENVIRONMENTS
from seedbench.reports.collect import arms, collect
from seedbench.retention import retention_table
from seedbench.store import Run
from tests.fake_runs import write_run as fake_run
from tests.red_team import OPTIONS, backbone, edit_json, write_run

#: ALFWorld is the cheapest environment with named panels.
SECTION = EnvSection(name="alfworld", panel="mini-unseen")


def test_every_environment_has_random_and_oracle_and_its_own() -> None:
    for name in ENVIRONMENTS.names():
        assert {"random", "oracle"} <= set(policies_of(name))
    assert "closed-book" in policies_of("search_qa")


def test_an_unknown_policy_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="oracle, random"):
        evaluate_policy(SECTION, "clairvoyant", tmp_path)


def test_the_oracle_gets_a_run_folder_and_no_rank(tmp_path: Path) -> None:
    folder = evaluate_policy(SECTION, "oracle", tmp_path)
    found, notes = collect([folder])
    assert notes == [] and found[0].result.micro == 1.0
    assert found[0].result.not_ranked == ("the policy reads hidden state",)
    assert found[0].setting.panel == "mini-unseen"
    before = (folder / "episodes" / "eval-final.jsonl").read_bytes()
    assert evaluate_policy(SECTION, "oracle", tmp_path) == folder, "the same settings, the same folder"
    assert (folder / "episodes" / "eval-final.jsonl").read_bytes() == before, "nothing is played twice"


def test_the_final_checkpoint_is_opened_with_its_own_weights(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r")
    assert final_checkpoint(Run(path))[0] == 1
    assert open_final(Run(path)).sha256() == backbone().sha256()
    assert OPTIONS == Run(path).config["env"]["options"]


def test_an_unfinished_or_damaged_run_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r")
    edit_json(path, "config.json", lambda c: c["train"].update(updates=5))
    with pytest.raises(CheckpointCorrupt, match="1 of 5 updates"):
        final_checkpoint(Run(path))
    edit_json(path, "config.json", lambda c: c["train"].update(updates=1))
    (path / "checkpoints" / "u00001" / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(CheckpointCorrupt, match="damaged"):
        final_checkpoint(Run(path))
    shutil.rmtree(path / "checkpoints")
    with pytest.raises(DataMissing, match="no checkpoint"):
        open_final(Run(path))


def test_a_panel_evaluated_later_does_not_make_another_run(tmp_path: Path) -> None:
    from seedbench.store import RunStore

    path = fake_run(tmp_path / "r", lambda i: True)
    run = Run(path)
    first = dict(run.manifest["panels"])
    edit_json(path, "manifest.json", lambda m: m["panels"].update(later=first["eval"]))
    manifest = {**run.manifest, "panels": first}
    RunStore.create(path, run.config, manifest, resume=True).close()
    changed = {**first, "eval": {**first["eval"], "sha256": "0"}}
    with pytest.raises(RunConflict, match="panels"):
        RunStore.create(path, run.config, {**manifest, "panels": changed}, resume=True)


def test_the_skill_bank_of_a_run_is_hashed_and_no_other_is_used(tmp_path: Path) -> None:
    """BR-098: a changed bank ends a starred evaluation, fails the audit, and is a row of its own."""
    path = write_run(tmp_path / "r")
    bank = Run(path).manifest["bank_sha256"]
    assert len(bank) == 64
    twin = shutil.copytree(path, tmp_path / "twin")
    edit_json(twin, "manifest.json", lambda m: m.update(bank_sha256="0" * 64))
    edit_json(twin, "config.json", lambda c: c.update(seed=1))
    with pytest.raises(RunConflict, match="another skill bank"):
        evaluate_run(twin, True)
    faults = next(c for c in audit_run(twin).checks if c.key == "setting").evidence
    assert any("skill bank differs" in f for f in faults)
    labels = {a.label for a in arms(collect([path, twin])[0])}
    assert labels == {f"seed (bank={bank[:8]})", "seed (bank=00000000)"}


def test_retention_pairs_a_method_with_its_starred_row(tmp_path: Path) -> None:
    both = ("eval-final", "eval-final+skills")
    paths = [
        fake_run(tmp_path / f"a{s}", lambda i, s=s: i % (2 + s) == 0, seed=s, streams=both) for s in (0, 1)
    ]
    paths.append(fake_run(tmp_path / "b", lambda i: True, method="rlsd"))
    table = retention_table(paths)
    (block,) = table.blocks
    (row,) = block.rows
    assert row.labels == ("grpo", "tiny", "2") and not row.ranked
    assert row.cells["difference"].value == 0.0 and row.cells["p"].value == 1.0
    assert any("rlsd" in note for note in table.notes)


def test_retention_of_a_policy_that_leans_on_skills(tmp_path: Path) -> None:
    """10 of 12 tasks solved only with the skill: the exact McNemar p is 2 * 0.5 ** 10."""
    path = fake_run(tmp_path / "r", lambda i: i < 1, streams=("eval-final",))
    other = fake_run(tmp_path / "s", lambda i: i < 11, streams=("eval-final+skills",))
    shutil.copy(other / "episodes" / "eval-final+skills.jsonl", path / "episodes")
    ((row,),) = [b.rows for b in retention_table([path]).blocks]
    assert row.cells["difference"].value == pytest.approx(-10 / 12)
    assert row.cells["p"].value == pytest.approx(2 * 0.5**10) and row.cells["p"].note == "one seed: no claim"
