"""Same seed, same bytes: across processes, string hashing, worker counts and folders."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
import toys

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


def digest(folder: Path) -> str:
    """Hash over everything a run must reproduce."""
    found = toys.fingerprint(folder)
    found["weights"] = {k: hashlib.sha256(v).hexdigest() for k, v in found["weights"].items()}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@lru_cache(None)
def here(model: Path, method: str, workers: int) -> str:
    return digest(toys.run(model, model.parent / f"{method}-{workers}", method, workers=workers))


def elsewhere(model: Path, folder: Path, hash_seed: str, workers: int) -> str:
    """The digest of the run made by a fresh process with another string hashing, from another directory."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "import test_determinism as t, toys\n"
        "from pathlib import Path\n"
        "print(t.digest(toys.run(Path(sys.argv[3]), Path(sys.argv[4]), 'seed', workers=int(sys.argv[5]))))"
    )
    places = [str(Path(__file__).parent), str(Path(toys.__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", code, *places, str(model), str(folder), str(workers)],
        cwd=folder.parent,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


@pytest.mark.parametrize(("hash_seed", "workers"), [("0", 1), ("1", 2)])
def test_another_process_gives_the_same_bytes(
    hash_seed: str, workers: int, model: Path, tmp_path: Path
) -> None:
    """BR-068, BR-071, BR-096: workers 1 against 2, PYTHONHASHSEED 0 against 1."""
    assert elsewhere(model, tmp_path / "run", hash_seed, workers) == here(model, "seed", 1)


def test_another_seed_gives_other_bytes(model: Path, tmp_path: Path) -> None:
    from seedbench.runner import resolve, train

    toys.register()
    config = resolve("boxes", "seed", seed=1, own=toys.settings(model, "seed"))
    assert digest(train(config, tmp_path / "run", 1, lambda m: None)) != here(model, "seed", 1)


def test_the_global_random_state_plays_no_part(model: Path, tmp_path: Path) -> None:
    import random

    import numpy
    import torch

    random.seed(99)
    numpy.random.seed(99)
    torch.manual_seed(99)
    state = random.getstate()
    assert digest(toys.run(model, tmp_path / "run", "seed")) == here(model, "seed", 1)
    assert random.getstate() == state
