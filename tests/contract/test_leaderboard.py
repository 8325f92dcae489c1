"""The leaderboard believes nothing it can recompute, and refuses with a reason."""

from __future__ import annotations

import json
import lzma
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pydantic
import pytest
from fake_runs import panel, write_run

from seedbench.contracts import EnvironmentKind
from seedbench.errors import ConfigError, DataMissing, RunConflict
from seedbench.jsonl import read_json, write_json
from seedbench.leaderboard import add, build, entries, leaderboard_table, verify
from seedbench.packing import pack
from seedbench.panel import Panel
from seedbench.registry import ENVIRONMENTS
from seedbench.store import Run


class Options(pydantic.BaseModel):
    pass


def _make(_: Options) -> SimpleNamespace:
    ids = panel(12)["ids"]
    spec = SimpleNamespace(name="toy", fingerprint="f")
    return SimpleNamespace(spec=spec, panel=lambda name: Panel.of(name, ids))


KIND = EnvironmentKind("toy", Options, _make, {})


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "leaderboard_toy", SimpleNamespace(KIND=KIND))  # type: ignore[arg-type]
    monkeypatch.setitem(ENVIRONMENTS._added, "toy", "leaderboard_toy:KIND")


def run(folder: Path, method: str = "grpo", seed: int = 0, solved: int = 6, **more: object) -> Path:
    costs = [(0, "rollout", 1.0, 500, 1e9), (4, "evaluation", 1.0, 500, 1e9)]
    return write_run(
        folder / f"{method}{seed}", lambda i: i < solved, method=method, seed=seed, costs=costs, **more
    )


def edit(path: Path, **fields: object) -> None:
    write_json(path, {**read_json(path), **fields})


def test_an_honest_run_passes_and_is_recomputed(tmp_path: Path) -> None:
    check = verify(run(tmp_path))
    assert check.refused == () and check.open == () and check.rates == {"eval-final": 0.5}


def test_reasons_to_refuse(tmp_path: Path) -> None:
    def reasons(path: Path) -> str:
        return "; ".join(verify(path).refused)

    gap = write_run(tmp_path / "gap", lambda i: "missing" if i == 0 else True)
    assert "covers 11/12" in reasons(gap)
    early = write_run(tmp_path / "early", lambda i: True, streams=["eval-u0002"])
    assert "no final evaluation" in reasons(early)
    stopped = run(tmp_path / "stopped")
    edit(stopped / "STATUS.json", state="running")
    assert "'running', not finished" in reasons(stopped)
    settings = run(tmp_path / "settings")
    edit(settings / "config.json", seed=7)
    assert "not the configuration" in reasons(settings)
    other = run(tmp_path / "data", env_fields={"fingerprint": "edited"})
    assert "differ from the ones installed" in reasons(other)
    easy = run(tmp_path / "panel", panels={"eval": panel(6, "easy")})
    assert "not the official one" in reasons(easy)
    leak = run(tmp_path / "leak", panels={"eval": panel(12), "train": panel(12)})
    assert "12 evaluated tasks are training tasks" in reasons(leak)
    hashes = run(tmp_path / "hash")
    manifest = read_json(hashes / "manifest.json")
    manifest["panels"]["eval"]["ids"][0] = "another"
    write_json(hashes / "manifest.json", manifest)
    assert "sha256" in reasons(hashes)


def test_further_proofs_can_refuse(tmp_path: Path) -> None:
    path = run(tmp_path)
    assert verify(path, [lambda r: ["a skill was in the prompt"]]).refused == ("a skill was in the prompt",)

    def broken(_: Run) -> list[str]:
        raise DataMissing("no games here")

    check = verify(path, [broken])
    assert check.refused == () and "no games here" in check.open[0]


def test_an_environment_that_is_not_here_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(ENVIRONMENTS._added, "toy")
    check = verify(run(tmp_path))
    assert check.refused == () and "could not be rebuilt" in check.open[0]


def test_refused_runs_leave_no_trace(tmp_path: Path) -> None:
    bad = write_run(tmp_path / "gap", lambda i: "missing" if i == 0 else True)
    with pytest.raises(ConfigError, match="covers 11/12"):
        add(tmp_path / "board", bad)
    with pytest.raises(DataMissing, match="no leaderboard"):
        build(tmp_path / "board")


def test_entries_are_packed_verified_and_added_once(tmp_path: Path) -> None:
    board, path = tmp_path / "board", run(tmp_path)
    add(board, path)
    with pytest.raises(ConfigError, match="already holds"):
        add(board, path)
    (entry,) = entries(board)
    assert verify(entry).refused == ()
    assert not list(entry.glob("checkpoints")) and (entry / "episodes/eval-final.jsonl.xz").is_file()


def test_an_entry_edited_later_is_found(tmp_path: Path) -> None:
    board = tmp_path / "board"
    add(board, run(tmp_path))
    (entry,) = entries(board)
    episodes = entry / "episodes/eval-final.jsonl.xz"
    text = lzma.decompress(episodes.read_bytes()).replace(b'"success":false', b'"success":true', 1)
    episodes.write_bytes(lzma.compress(text))
    refused = " ".join(verify(entry).refused)
    assert "was changed after submission" in refused and "not what its episodes give" in refused


def test_the_page_has_ranks_ties_costs_and_filters(tmp_path: Path) -> None:
    board = tmp_path / "board"
    for method, solved in (("seed", 12), ("grpo", 12), ("vanilla", 0)):
        for seed in (0, 1):
            add(board, run(tmp_path, method, seed, solved))
    add(board, run(tmp_path, "lucky", 0, 12))
    table = build(board)
    ranks = {r.labels[0]: r.cells["rank"].value for r in table.blocks[0].rows}
    assert ranks == {"seed": 1, "grpo": 1, "vanilla": 3, "lucky": None}
    page = (board / "index.html").read_text("utf-8")
    HTMLParser().feed(page)
    assert 'id="provenance"' in page and "protocol p1" in page and "http" not in page
    assert "| seed | tiny | 2 | measured | 1 |" in (board / "README.md").read_text("utf-8")
    before = page
    build(board)
    assert (board / "index.html").read_text("utf-8") == before


def test_hostile_names_are_text(tmp_path: Path) -> None:
    path = run(tmp_path, "grpo", config={"label": "<img src=x onerror=alert(1)>"})
    board = tmp_path / "board"
    add(board, path)
    build(board)
    assert "<img" not in (board / "index.html").read_text("utf-8")


def test_br_103_seen_and_unseen_are_separate_lists(tmp_path: Path) -> None:
    one = run(tmp_path / "a", panels={"eval": panel(12, "seen")})
    two = run(tmp_path / "b", panels={"eval": panel(12, "unseen")})
    assert len(leaderboard_table([one, two]).blocks) == 2


def test_reported_numbers_have_no_rank(tmp_path: Path) -> None:
    board = tmp_path / "board"
    add(board, run(tmp_path))
    table = build(board, with_reported=True)
    assert all("rank" not in r.cells and not r.ranked for b in table.blocks[1:] for r in b.rows)


def test_packing_is_byte_stable_and_refuses_a_full_folder(tmp_path: Path) -> None:
    path = run(tmp_path)
    one, two = pack(path, tmp_path / "one"), pack(path, tmp_path / "two")
    for a in sorted(p for p in one.rglob("*") if p.is_file()):
        assert a.read_bytes() == (two / a.relative_to(one)).read_bytes()
    assert Run(one).records("eval-final") == Run(path).records("eval-final")
    assert Run(one).costs() == Run(path).costs()
    with pytest.raises(RunConflict, match="not empty"):
        pack(path, one)
    with pytest.raises(DataMissing, match="no episodes"):
        pack(path, tmp_path / "three", ["train"])


def test_a_half_written_entry_is_no_entry(tmp_path: Path) -> None:
    board = tmp_path / "board"
    add(board, run(tmp_path))
    (entry,) = entries(board)
    shutil.copytree(entry, entry.with_name(".abc.part"))
    assert entries(board) == [entry]
    assert json.loads((entry / "entry.json").read_text())["rates"] == {"eval-final": 0.5}
