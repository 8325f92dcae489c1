"""A small world and a small random model for tests of the core: three boxes, one of them holds the thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from seedbench.contracts import EnvironmentKind, EnvSpec
from seedbench.errors import ConfigError, EpisodeOver
from seedbench.panel import Panel
from seedbench.parsing import parse_tagged
from seedbench.registry import ENVIRONMENTS
from seedbench.types import (
    Action,
    Episode,
    HiddenTask,
    History,
    Message,
    Observation,
    Outcome,
    PublicTask,
    Skill,
    Start,
    StepResult,
    Task,
)

THINGS = ("key", "coin", "ring", "map", "pen", "cup")
SPLITS = {"train": 6, "test": 4, "other": 5}


class Options(BaseModel):
    """``steps``: step limit; ``broken``: id of a task whose session raises when a box is opened."""

    model_config = ConfigDict(extra="forbid")

    variant: Literal["mini"] = "mini"
    steps: int = 3
    broken: str = ""
    words: str = "find"


class Boxes:
    """Environment ``boxes``: each thing lies in one box; opening it wins."""

    groups = ("small", "flat")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.spec = EnvSpec(
            "boxes", "mini", "plain", options.steps, 2, 0.1, f"boxes {options.steps} {options.words}"
        )

    def splits(self) -> Mapping[str, int]:
        return SPLITS

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in SPLITS:
            raise ConfigError(f"Boxes has no split '{split}'.")
        made = []
        for i in range(SPLITS[split]):
            payload = (THINGS[i % len(THINGS)], 1 + i % 3)
            made.append(Task(PublicTask(f"{split}-{i:02d}", split, self.groups[i % 2]), HiddenTask(payload)))
        return made

    def panel(self, name: str) -> Panel:
        return Panel.of(name, [t.id for t in self.tasks(name)])

    def session(self) -> BoxSession:
        return BoxSession(self.options)

    def parse(self, completion: str) -> Action:
        return parse_tagged(completion, fallback_chars=20, require_think=False)

    def wrap(self, action: str) -> str:
        return f"<action>{action}</action>"

    def render(self, history: History) -> tuple[Message, ...]:
        past = "".join(f"{t.observation.text} > {t.action}\n" for t in history.past[-2:])
        return (Message("user", f"{history.instruction}\n{past}{history.observation.text}"),)

    def choices(self, history: History) -> tuple[str, ...]:
        return tuple(sorted(history.observation.legal))

    def annotate(self, episode: Episode) -> Skill:
        last = episode.turns[-1].action
        text = f"{last} to {episode.instruction}" if episode.success else f"{last} is not right"
        return Skill("found it" if episode.success else "did not find it", text, "rules")

    def bank(self, group: str) -> Skill:
        return Skill("general", f"open box 2 when {group}", "bank")


class BoxSession:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.over = True
        self.won = False

    def reset(self, task: Task, seed: int) -> Start:
        self.id = task.id
        self.thing, self.right = task.hidden.payload
        self.closed, self.steps, self.over, self.won = [1, 2, 3], 0, False, False
        return Start(f"{self.options.words} the {self.thing}", self._seen("you see three boxes ."))

    def step(self, action: Action) -> StepResult:
        if self.over:
            raise EpisodeOver("over")
        if self.id == self.options.broken:
            raise RuntimeError("the box fell apart")
        self.steps += 1
        effect = action.text in self._legal()
        text = "nothing happens ."
        if effect and action.text.startswith("open"):
            box = int(action.text.split()[-1])
            self.closed.remove(box)
            self.won = box == self.right
            text = f"box {box} holds the {self.thing} ." if self.won else f"box {box} is empty ."
        truncated = not self.won and self.steps >= self.options.steps
        self.over = self.won or truncated
        return StepResult(self._seen(text), 10.0 if self.won else 0.0, self.won, truncated, effect)

    def outcome(self) -> Outcome:
        return Outcome(self.won, float(self.won))

    def oracle(self) -> str:
        return f"open box {self.right}"

    def close(self) -> None:
        self.over = True

    def _legal(self) -> tuple[str, ...]:
        return ("look around", "wait here", *(f"open box {i}" for i in self.closed))

    def _seen(self, text: str) -> Observation:
        return Observation(text, self._legal())


KIND = EnvironmentKind("boxes", Options, Boxes, {"mini": ("train", "test")})


def register() -> None:
    """Make ``boxes`` known to this process, as an entry point of another package would."""
    ENVIRONMENTS.add("boxes", "toys:KIND")


@lru_cache(None)
def tokenizer() -> Any:
    """Words of the boxes, with ``box 2`` as one token."""
    from seedbench.policies.tiny.tokenizer import TinyTokenizer, build

    words = "you see three boxes look around wait here open holds is empty nothing happens find right not to"
    words += " when small flat found it did general . ,"
    boxes = [f"box {i}" for i in (1, 2, 3)]
    return TinyTokenizer(build([*words.split(), *THINGS, *boxes], {"box": 3}))


def random_backbone(seed: int = 0, context: int = 256, std: float = 0.3) -> Any:
    """Two layers of width 32. ``std`` widens the weights, so that choices are far from uniform."""
    import torch

    from seedbench.policies.tiny.backbone import TinyBackbone
    from seedbench.policies.tiny.model import TinyConfig, TinyLM

    torch.set_num_threads(1)  # as the runner does: the cores are shared
    tok = tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TinyLM(TinyConfig(tok.size, 32, 2, 4, 2, 48, context))
        with torch.no_grad():
            for name, p in model.named_parameters():
                if p.dim() > 1 or name.endswith("bias"):
                    p.normal_(std=std)
    return TinyBackbone(model, tok)


def save_backbone(folder: Path, **options: Any) -> Path:
    random_backbone(**options).save(folder)
    return folder


def settings(model: Path, method: str = "grpo", updates: int = 2, **train: Any) -> dict[str, Any]:
    """Settings of a run on the boxes that takes about a second."""
    options: dict[str, Any] = {}
    if method == "seed":
        options = {"warm_up": {"tasks": 4, "repeats": 2, "epochs": 1, "batch": 4, "learning_rate": 1e-3}}
    return {
        "backbone": {"options": {"path": str(model)}},
        "method": {"options": options},
        "train": {
            "updates": updates,
            "tasks": 3,
            "group": 3,
            "minibatches": 2,
            "checkpoint_every": 1,
            "block": 4,
            "learning_rate": 1e-2,
            "lr_warmup": 0,
            **train,
        },
        "eval": {"every": 1, "temperature": 0.7, "episodes": 2},
    }


def run(
    model: Path, folder: Path, method: str = "grpo", workers: int = 1, report: Any = None, **more: Any
) -> Path:
    """Train on the boxes in this process. ``more`` goes to :func:`settings`."""
    from seedbench.runner import resolve, train

    register()
    config = resolve("boxes", method, own=settings(model, method, **more))
    return train(config, folder, workers, report or (lambda metrics: None))


def fingerprint(folder: Path) -> dict[str, Any]:
    """Everything a run folder must reproduce: records without timing, and the hash of the last weights."""
    from seedbench.jsonl import without_timing
    from seedbench.store import Run, canonical_lines

    out: dict[str, Any] = {p.name: canonical_lines(p) for p in sorted((folder / "episodes").iterdir())}
    out["metrics"] = [without_timing(m) for m in Run(folder).metrics()]
    out["weights"] = {
        p.parent.name: p.read_bytes() for p in sorted((folder / "checkpoints").glob("*/model.safetensors"))
    }
    return out
