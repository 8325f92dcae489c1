"""What a person types: help at once, wrong names answered with the right ones, no traceback, exit codes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import toys

import seedbench
from seedbench.cli.main import COMMANDS, main
from seedbench.config import merge, overrides
from seedbench.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toys.register()
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


class Answer:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """``call("run", "--env", ...)``: exit code, standard output, standard error."""

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["seedbench", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    return run


def plan(model: Path, out: Path) -> list[str]:
    settings = ["train.updates=1", "train.tasks=3", "train.group=3", "train.block=8", "eval.every=0"]
    settings += [f'backbone.options.path="{model}"']
    return ["--env", "boxes", "--out", str(out), "--workers", "1", *[x for s in settings for x in ("-o", s)]]


# -- help ----------------------------------------------------------------------------------------------------
def test_help_version_and_imports_need_no_torch() -> None:
    code = (
        "import sys\nfrom seedbench.cli.main import main\nimport seedbench\n"
        "for words in ([], ['--help'], ['--version'], ['run', '--help'], ['table', '--help']):\n"
        "    sys.argv = ['seedbench', *words]\n"
        "    try: main()\n"
        "    except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = {'torch', 'transformers', 'numpy', 'scipy', 'flask', 'faiss'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)
    assert seedbench.__version__ in done.stdout


def test_the_module_runs_from_any_directory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seedbench", "info", "method"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "grpo" in done.stdout
    assert "seed" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_exists_and_has_help(name: str, call) -> None:  # type: ignore[no-untyped-def]
    module, _, attribute = COMMANDS[name][0].partition(":")
    assert hasattr(importlib.import_module(module), attribute)
    answer = call(name, "--help")
    assert answer.code == 0
    assert "Usage" in answer.out


# -- wrong names ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["rnu"], "run"),
        (["run", "--env", "boxxes"], "boxes"),
        (["run", "--env", "boxes", "--method", "sede"], "seed"),
        (["run", "--env", "boxes", "--backbone", "qwen2.5-3"], "qwen2.5-3b"),
        (["run", "--env", "boxes", "--scale", "quik"], "quick"),
        (["run", "--methd", "seed"], "--method"),
        (["run", "--env", "boxes", "-o", "train.updats=3"], "updates"),
        (["run", "--env", "boxes", "-o", "trian.updates=3"], "train"),
        (["run", "--env", "boxes", "-o", "method.options.coeficient=3"], "coefficient"),
        (["run", "--env", "boxes", "-o", "method.options.warm_up.tsks=3"], "tasks"),
        (["run", "--env", "boxes", "-o", "env.options.wrds=3"], "words"),
        (["run", "--env", "boxes", "-o", "backbone.options.paht=3"], "path"),
        (["info", "method", "sdra"], "sdar"),
        (["info", "env", "alfwrld"], "alfworld"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(
    words: list[str], suggestion: str, model: Path, call, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    if words[0] == "run":
        words = [*words, "--out", str(tmp_path)]
    answer = call(*words)
    assert answer.code == 2
    assert suggestion in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())  # nothing was begun


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("train.updates", "section.name=value"),
        ("=3", "section.name=value"),
        ("train.updates=many", "train.updates"),
        ("train.updates=-1", "train.updates"),
        ("eval.episodes=0", "eval.episodes"),
        ("method.options.beta=steep", "beta"),
        ("method.options.gate=round", "gate"),
        ("train=3", "train"),
        ("env.split=nowhere", "nowhere"),
        ("env.panel=nowhere", "nowhere"),
    ],
)
def test_a_wrong_value_is_named(option: str, said: str, model: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """BR-056 among them."""
    answer = call("run", *plan(model, tmp_path), "-o", option)
    assert answer.code == 2, answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_missing_model_says_what_to_do(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    answer = call("run", "--env", "boxes", "--out", str(tmp_path))
    assert answer.code == 2
    assert "seedbench pretrain tiny" in answer.err


@pytest.mark.parametrize("content", ["[train\n", "\xff\xfe", "seed = 'x'\n", "[train]\nupdats = 3\n"])
def test_a_bad_configuration_file_is_named(content: str, model: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "run.toml"
    path.write_bytes(content.encode("latin-1"))
    answer = call("run", *plan(model, tmp_path / "out"), "--config", str(path))
    assert answer.code == 2
    assert "Traceback" not in answer.err
    assert any(word in answer.err for word in ("run.toml", "updates", "seed:"))


# -- a whole command -----------------------------------------------------------------------------------------
def test_run_trains_evaluates_and_prints_a_table(model: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    answer = call("run", "--method", "grpo", *plan(model, tmp_path))
    assert answer.code == 0, answer.err
    (folder,) = tmp_path.iterdir()
    assert str(folder) in answer.out
    assert "grpo" in answer.out.lower()
    again = call("run", "--method", "grpo", *plan(model, tmp_path))
    assert again.code == 0
    assert [p.name for p in tmp_path.iterdir()] == [folder.name]


def test_a_configuration_file_and_options_together(model: Path, call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The command line wins over the file, the file over the scale."""
    import json

    path = tmp_path / "run.toml"
    path.write_text("[train]\nupdates = 7\nclip_norm = 0.25\n")
    answer = call("run", "--method", "vanilla", *plan(model, tmp_path / "out"), "--config", str(path))
    assert answer.code == 0, answer.err
    (folder,) = (tmp_path / "out").iterdir()
    train = json.loads((folder / "config.json").read_text())["train"]
    assert (train["updates"], train["clip_norm"], train["lr_warmup"]) == (1, 0.25, 5)


# -- settings ------------------------------------------------------------------------------------------------
def test_settings_are_read_as_toml_and_words_as_text() -> None:
    got = overrides(["a.b=1", "a.c=0.5", "a.d=true", "a.e=[1, 2]", "a.f=word", 'a.g="1"', "a.h=x=y"])
    assert got == {"a": {"b": 1, "c": 0.5, "d": True, "e": [1, 2], "f": "word", "g": "1", "h": "x=y"}}


@pytest.mark.parametrize("pairs", [["a=1", "a.b=2"], ["a.b=1", "a.b.c=2"]])
def test_settings_that_contradict_each_other_are_named(pairs: list[str]) -> None:
    with pytest.raises(ConfigError, match="a"):
        overrides(pairs)


def test_merging_goes_down_into_tables_and_replaces_the_rest() -> None:
    assert merge({"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"c": [2]}, "d": {"e": 3}}) == {
        "a": {"b": 1, "c": [2]},
        "d": {"e": 3},
    }
