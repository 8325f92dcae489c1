"""Other engines, numerically: verl's per-token loss against this project's SEED, and vLLM's record contract."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from chat_models import ToyEnv, write_model
from seedbench.baselines.seed import Seed

from seedbench.engines.verl import NAME, overrides, register, seed_opd, teacher_column
from seedbench.errors import ConfigError, ExtraMissing
from seedbench.policies.hf import load_hf
from seedbench.policies.vllm import VllmSampler
from seedbench.rollout import Job, play
from seedbench.runner import resolve
from seedbench.train.losses import LossBatch, PolicyObjective, Totals

NAN = float("nan")


def test_seed_term_on_verl_equals_ours() -> None:
    """Values and gradients in float64, every row taught: verl's token mean of our terms is SEED's L_opd."""
    generator = torch.Generator().manual_seed(3)
    logp = -torch.rand(3, 5, generator=generator, dtype=torch.float64)
    teacher = logp + 0.5 * torch.randn(3, 5, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
    there, ours = logp.clone().requires_grad_(), logp.clone().requires_grad_()
    per_token = seed_opd(there, teacher.masked_fill(~mask, NAN), mask, 5.0, "sigmoid")
    (per_token.sum() / mask.sum()).backward()
    zero = torch.zeros_like(logp)
    batch = LossBatch(
        ours, zero, mask, logp, zero, Totals(9, 3, 9), logp_teacher=teacher, taught=torch.ones(3).bool()
    )
    free = PolicyObjective(pg=0.0, kl=0.0, entropy=0.0)
    loss = Seed(objective=free, coefficient=1.0, warm_up=None).loss(batch)
    loss.value.backward()
    assert float(per_token.detach().sum() / 9) == pytest.approx(float(loss.value.detach()), abs=1e-12)
    assert torch.allclose(there.grad, ours.grad, atol=1e-12)
    k = float(teacher[0, 0] - logp[0, 0])
    assert float(there.grad[0, 0]) == pytest.approx(-1 / (1 + math.exp(-5 * k)) / 9, abs=1e-12)


def test_rows_without_a_skill_teach_nothing() -> None:
    """No number comes from NaN or from padding (BR-015)."""
    logp = torch.zeros(2, 3, requires_grad=True)
    teacher = torch.tensor([[0.1, 0.2, float("inf")], [NAN, NAN, NAN]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    out = seed_opd(logp, teacher, mask, 5.0, "half")
    out.sum().backward()
    assert out.tolist() == [[pytest.approx(0.05), pytest.approx(0.1), 0.0], [0.0, 0.0, 0.0]]
    assert logp.grad.tolist() == [[-0.5, -0.5, 0.0], [0.0, 0.0, 0.0]]


def test_teacher_column_stands_one_place_before_its_token() -> None:
    column = teacher_column(3, [-0.5, -0.25], 2)[:, 0]
    assert column.shape == (5,) and column[2:4].tolist() == [-0.5, -0.25]
    assert torch.isnan(column[[0, 1, 4]]).all()
    assert torch.isnan(teacher_column(3, None, 2)).all()
    with pytest.raises(ConfigError, match="scored 1 tokens of a response of 2"):
        teacher_column(3, [-0.5], 2)


def test_registration_without_verl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(ExtraMissing, match="verl==0"):
        register()


def test_registered_loss_reads_verls_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for verl's two functions, of the shapes its source (0.9.1) hands over."""
    registered = {}

    class Settings(SimpleNamespace):
        pass

    def register_distillation_loss(settings: Settings):
        return lambda function: registered.update({n: function for n in settings.names}) or function

    losses, padding = ModuleType("losses"), ModuleType("padding")
    losses.DistillationLossSettings, losses.register_distillation_loss = Settings, register_distillation_loss
    padding.no_padding_2_padding = lambda tensor, data: tensor
    for name in ("verl", "verl.trainer", "verl.trainer.distillation", "verl.workers", "verl.workers.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "verl.trainer.distillation.losses", losses)
    monkeypatch.setitem(sys.modules, "verl.workers.utils.padding", padding)
    register(5.0, "ones")
    data = {"teacher_logprobs": torch.tensor([[[0.5], [NAN]]]), "response_mask": torch.ones(1, 2)}
    values, metrics = registered[NAME](None, None, {"log_probs": torch.zeros(1, 2)}, data)
    assert values.tolist() == [[0.5, 0.0]] and metrics == {}


def test_overrides_mean_what_the_run_says() -> None:
    lines = dict(o.split("=", 1) for o in overrides(resolve("alfworld", "seed", "qwen2.5-3b")))
    assert lines["data.train_batch_size"] == "16" and lines["actor_rollout_ref.rollout.n"] == "8"
    assert float(lines["actor_rollout_ref.actor.optim.lr"]) == 1e-6
    assert lines["distillation.distillation_loss.loss_mode"] == NAME
    assert lines["distillation.enabled"] == "true"
    plain = dict(o.split("=", 1) for o in overrides(resolve("alfworld", "grpo", "qwen2.5-3b")))
    assert not any(k.startswith("distillation") for k in plain)
    with pytest.raises(ConfigError, match="no verl recipe for method 'rlsd'"):
        overrides(resolve("alfworld", "rlsd", "qwen2.5-3b"))


class StandIn:
    """The calls of vLLM's ``LLM`` that the adapter makes, answered from a script."""

    def __init__(self, end: int, broken: bool = False) -> None:
        self.end, self.broken, self.loaded, self.resets = end, broken, [], 0

    def apply_model(self, function):
        model = SimpleNamespace(load_weights=lambda pairs: self.loaded.append([n for n, _ in pairs]))
        return [function(model)]

    def reset_prefix_cache(self) -> None:
        self.resets += 1

    def generate(self, prompts, settings, use_tqdm):
        self.seen = list(zip(prompts, settings, strict=True))
        out = []
        for _ in self.seen:
            ids = [65, 66, self.end]
            table = [{i: SimpleNamespace(logprob=-0.1 * k)} for k, i in enumerate(ids, 1)]
            out.append(
                SimpleNamespace(token_ids=ids, logprobs=None if self.broken else table, finish_reason="stop")
            )
        return [SimpleNamespace(outputs=[o]) for o in out]


def test_vllm_sampler_keeps_the_record_contract(tmp_path) -> None:
    """Ids and log-probabilities as the engine gave them, weights handed over before acting, private seeds."""
    env = ToyEnv()
    backbone = load_hf("hf:toy", str(write_model(tmp_path)), {"max_new_tokens": 7})
    engine = StandIn(backbone.text.end)
    sampler = VllmSampler(backbone, engine, SimpleNamespace)
    actor = sampler.actor(0.7)
    assert not actor.forkable and engine.resets == 1 and "model.embed_tokens.weight" in engine.loaded[0]
    episodes = play(env, actor, [Job(t, i) for i, t in enumerate(env.tasks(2))])
    trace = episodes[0].turns[0].trace
    assert trace.response == (65, 66, backbone.text.end) and trace.logprobs == (
        -0.1,
        -0.2,
        pytest.approx(-0.3),
    )
    assert trace.temperature == 0.7
    prompt, settings = engine.seen[0]
    assert prompt["prompt_token_ids"] == list(episodes[0].turns[-1].trace.prompt)
    assert (settings.temperature, settings.max_tokens, settings.logprobs) == (0.7, 7, 0)
    assert settings.stop_token_ids == sorted(backbone.text.stop)
    assert len({s.seed for _, s in engine.seen}) == 2
    assert backbone.samples(episodes, env)[0].old == trace.logprobs


def test_vllm_without_logprobs_is_an_error(tmp_path) -> None:
    """BR-031: found where it arises; the episode is not blamed on the agent."""
    env = ToyEnv()
    backbone = load_hf("hf:toy", str(write_model(tmp_path)), {"max_new_tokens": 7})
    sampler = VllmSampler(backbone, StandIn(backbone.text.end, broken=True), SimpleNamespace)
    episode = play(env, sampler.actor(1.0), [Job(env.tasks(1)[0], 0)])[0]
    assert episode.status == "model_error" and "log-probability" in episode.error
