"""Prompts of chat models are rebuilt from the record too: template, token limit, and a declared skill."""

from __future__ import annotations

from pathlib import Path

import pytest

from seedbench.audit.prompts import prompt_faults
from seedbench.audit.rebuild import REBUILDERS, rebuilder_for
from seedbench.audit.weights import weights_sha256
from seedbench.policies.backbones import NAMED
from seedbench.policies.hf.load import load_hf
from seedbench.rollout import evaluation_job, play
from seedbench.types import Observation, Skill
from tests.chat_models import write_model
from tests.red_team import environment

OPTIONS = {"max_new_tokens": 6, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "m")


def test_every_named_backbone_has_a_rebuilder() -> None:
    assert {"tiny", *NAMED} <= set(REBUILDERS)


@pytest.mark.parametrize(
    "options", [{}, {"max_prompt_tokens": 300, "truncation": "middle"}], ids=["whole", "cut"]
)
def test_prompts_of_a_chat_model_are_rebuilt(folder: Path, options: dict) -> None:  # type: ignore[type-arg]
    env, settings = environment(), {**OPTIONS, **options}
    backbone = load_hf(f"hf:{folder}", str(folder), settings)
    rebuilder = rebuilder_for({"name": f"hf:{folder}", "options": settings}, [folder])
    assert rebuilder is not None and not rebuilder.transcript
    tasks = env.tasks("mini-test")[:2]
    jobs = [
        evaluation_job(tasks[0], 0, 0),
        evaluation_job(tasks[1], 0, 0, Skill("s", "search first", "bank")),
    ]
    episodes = play(env, backbone.actor(1.0), jobs)
    assert [f for e in episodes for f in prompt_faults(env, rebuilder, e)] == []
    ordinary, told = episodes
    told.acting_skill = None
    assert list(prompt_faults(env, rebuilder, told)), "a skill that is not declared"
    seen = ordinary.turns[1].observation
    ordinary.turns[1].observation = Observation(f"{seen.text}.", seen.legal)
    ordinary.instruction += "?"
    assert len(list(prompt_faults(env, rebuilder, ordinary))) == len(ordinary.turns)


@pytest.mark.parametrize("tied", [True, False])
def test_weights_of_a_chat_model_are_hashed_without_torch(tmp_path: Path, tied: bool) -> None:
    folder = write_model(tmp_path / "m", tied=tied)
    backbone = load_hf(f"hf:{folder}", str(folder), OPTIONS)
    backbone.save(tmp_path / "saved")
    assert backbone.sha256() in weights_sha256(tmp_path / "saved")
    other = load_hf(f"hf:{folder}", str(write_model(tmp_path / "other", seed=3, tied=tied)), OPTIONS)
    assert other.sha256() not in weights_sha256(tmp_path / "saved")


def test_without_a_tokenizer_there_is_no_rebuilder(tmp_path: Path) -> None:
    assert rebuilder_for({"name": "hf:elsewhere", "options": {}}, [tmp_path]) is None
    assert rebuilder_for({"name": "another program", "options": {}}, [tmp_path]) is None
