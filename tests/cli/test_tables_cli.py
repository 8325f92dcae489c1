"""Report commands: what they print, and what they say when the input is wrong."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_runs import write_run

from seedbench.cli.main import main
from seedbench.records import to_record
from seedbench.store import RunStore
from seedbench.types import Episode, Observation, PublicTask, Skill, Turn


def call(*arguments: object) -> SimpleNamespace:
    """The command line in this process; returns what a shell would see."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["seedbench", *map(str, arguments)])
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=code)


def shell(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, "-m", "seedbench", *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=root, env=env, encoding="utf-8", errors="replace",
    )  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    streams, costs = ["eval-u0000", "eval-u0002", "eval-final"], [(0, "update", 1.0, 900, 1e9)]
    for method, solved in (("grpo", 3), ("seed", 9)):
        for seed in (0, 1):
            path = folder / method / f"s{seed}"
            write_run(path, lambda i, k=solved: i < k, method=method, seed=seed, streams=streams, costs=costs)
    return folder


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "latex", "csv", "json"])
def test_table_prints_every_format(study: Path, form: str) -> None:
    done = call("table", "1", study, "--format", form)
    assert done.returncode == 0, done.stderr
    assert "grpo" in done.stdout and "seed" in done.stdout


@pytest.mark.parametrize("which", ["2", "6", "7", "tests", "costs"])
def test_other_tables(study: Path, which: str) -> None:
    done = call("table", which, study)
    assert done.returncode == 0, done.stderr
    assert "grpo" in done.stdout


def test_paired_tests_against_one_row(study: Path) -> None:
    done = call("table", "tests", study, "--reference", "grpo", "-f", "csv")
    assert done.returncode == 0, done.stderr
    assert all(line.split(",")[0] != "grpo" for line in done.stdout.splitlines()[1:])


def test_table_writes_a_file(study: Path, tmp_path: Path) -> None:
    done = call("table", "1", study, "-f", "csv", "-o", tmp_path / "t.csv", "--with-reported")
    assert done.returncode == 0 and "wrote" in done.stdout
    assert "reported" in (tmp_path / "t.csv").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "9", "{study}"), "no table '9'"),
        (("table", "1", "{study}", "-f", "docx"), "Unknown table format"),
        (("table", "1", "{study}", "--reference", "seed"), "belongs to 'seedbench table tests'"),
        (("table", "tests", "{study}", "--reference", "sead"), "no arm 'sead'"),
        (("table", "1", "{study}/nothing"), "holds no run"),
        (("show", "{study}", "x"), "no run folder"),
        (("show", "{study}/grpo/s0", "nowhere"), "no task fits 'nowhere'"),
        (("show", "{study}/grpo/s0", "toy-test"), "12 tasks fit"),
        (("show", "{study}/grpo/s0", "#99"), "#1 to #12"),
        (("show", "{study}/grpo/s0", "#1", "--stream", "../x"), "no episode stream"),
        (("leaderboard", "build", "{study}"), "no leaderboard"),
    ],
)
def test_wrong_input_is_one_clear_line(study: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call(*(a.format(study=study) for a in arguments))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert message in done.stderr


def test_show_prints_turns_and_skills_and_disarms_control_characters(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r", lambda i: True, streams=[])
    turns = [
        Turn(
            Observation("a room\nwith a door"),
            "<think>\x1b[2J \ud835</think>open door",
            "open door",
            False,
            "no_tags",
            False,
        )
    ]
    episode = Episode(PublicTask("t-1", "s", "red"), 5, instruction="leave", turns=turns, status="step_limit",
                      success=False, score=0.25, last_observation=Observation("still here"),
                      hindsight=Skill("try the key", "First take the key.", "self"))  # fmt: skip
    with RunStore(path) as store:
        store.append_episode("train", to_record(episode, "train", 3))
    done = call("show", path, "t-1", "--stream", "train")
    assert done.returncode == 0, done.stderr
    assert "not solved, score 0.25, step_limit, 1 steps" in done.stdout
    assert "> open door   [invalid: no_tags, no effect]" in done.stdout
    assert "Hindsight skill (by self): try the key" in done.stdout and "First take the key." in done.stdout
    assert "\x1b" not in done.stdout and "\\x1b[2J \\ud835" in done.stdout


def test_output_survives_a_c_locale(study: Path) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}
    done = shell("table", "1", study, env=env)
    assert done.returncode == 0, done.stderr


def test_verdict_prints_a_paragraph_and_a_table(study: Path) -> None:
    done = call("verdict", study / "seed", study / "grpo")
    assert done.returncode == 0, done.stderr
    assert "+50.0 points" in done.stdout and "Verdict:" in done.stdout and "s/episode" in done.stdout


def test_verify_exits_with_an_error_when_a_run_does_not_hold(study: Path, tmp_path: Path) -> None:
    bad = write_run(tmp_path / "bad", lambda i: "missing" if i else True)
    done = call("leaderboard", "verify", bad, study / "grpo" / "s0")
    assert done.returncode == 3
    assert "refused" in done.stdout and "covers 1/12" in done.stdout and "\nok " in "\n" + done.stdout


def test_figures_are_byte_stable_svg(study: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        done = call("figures", study, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "one").iterdir())
    assert [re.sub(r"-.*", "", f.name) for f in files] == ["cost", "curve"]
    for file in files:
        data = file.read_bytes()
        assert (
            data == (tmp_path / "two" / file.name).read_bytes()
            and b"</svg>" in data
            and b"seed, tiny" in data
        )


def test_reports_never_import_torch(study: Path) -> None:
    code = (
        "import sys; from seedbench.cli import report; from seedbench.reports.builders import table1;"
        "from seedbench import leaderboard, figures; from seedbench.audit import published;"
        "from seedbench.reports import verdict, compare, costs;"
        f"table1([{str(study / 'grpo' / 's0')!r}]); assert 'torch' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
