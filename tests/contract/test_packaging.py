"""The wheel, built from the tree and looked into: one top-level package, every part of it, nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without isolation by the declared build back end."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    code = f"import hatchling.build as b; print(b.build_wheel({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def sources(folder: str) -> set[str]:
    """Tracked or new files of a folder, without caches."""
    return {
        str(p.relative_to(ROOT))
        for p in (ROOT / folder).rglob("*")
        if p.is_file() and "__pycache__" not in p.parts and p.suffix != ".pyc"
    }


def test_nothing_generic_lands_in_site_packages(names: list[str]) -> None:
    tops = {n.split("/")[0] for n in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"seedbench"}


def test_every_module_and_asset_is_there(names: list[str]) -> None:
    assert sources("seedbench") <= set(names)
    for folder in ("envs", "baselines"):
        assert {f"seedbench/{name}" for name in sources(folder)} <= set(names)


def test_no_caches_tests_or_measured_results_are_there(names: list[str]) -> None:
    assert not [n for n in names if "__pycache__" in n or n.endswith(".pyc")]
    assert not [n for n in names if n.startswith(("tests/", "seedbench/tests", "results/"))]
    assert len(names) == len(set(names))


def test_the_metadata_names_the_command_and_the_python_versions(wheel: Path, names: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = [n for n in names if n.endswith(".dist-info/entry_points.txt")]
        assert "seedbench = seedbench.cli.main:main" in archive.read(entry).decode()
        (meta,) = [n for n in names if n.endswith(".dist-info/METADATA")]
        text = archive.read(meta).decode()
    assert "Requires-Python: <3.14,>=3.10" in text
    core = [line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    for heavy in ("datasets", "spacy", "faiss", "pyserini", "alfworld", "textworld"):
        assert not [line for line in core if heavy in line]


def test_the_wheel_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """BR-109: unpacked elsewhere, no extra, no compiler: environments and methods are found there."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import seedbench, seedbench.baselines.grpo as g\n"
        "from seedbench.registry import ENVIRONMENTS, METHODS\n"
        "print(seedbench.__file__); print(g.__file__)\n"
        "print(*ENVIRONMENTS.names()); print(*METHODS.names())\n"
        "kind = ENVIRONMENTS.get('alfworld'); print(kind.make(kind.options()).spec.name)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n" + code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    core, method, environments, methods, made = done.stdout.splitlines()
    assert core.startswith(str(tmp_path))
    assert method.startswith(str(tmp_path))
    assert {"alfworld", "search_qa", "webshop"} <= set(environments.split())
    assert {"grpo", "seed", "sdar"} <= set(methods.split())
    assert made == "alfworld"


def test_no_file_of_the_product_names_this_machine() -> None:
    """Paths and hosts of a workplace have no business in a package."""
    bad = [
        (name, word)
        for folder in ("seedbench", "envs", "baselines", "tests")
        for name in sources(folder)
        if name.endswith((".py", ".toml", ".md", ".json"))
        for word in ("/wo" + "rk/", "/ro" + "ot/", "/tm" + "p/")
        if word in (ROOT / name).read_text(encoding="utf-8")
    ]
    assert not bad
