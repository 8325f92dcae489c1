"""SEED on verl: its auxiliary term as a registered distillation loss, and a run's settings as verl overrides.

verl (checked against the source of 0.9.1) owns rollouts, sharding and optimiser; a distillation loss is given
the student's and the teacher's log-probabilities of the sampled tokens and returns one number per token. What
verl lacks is the teacher: an agent loop has to write the skill, score the sampled tokens under the skilled
prompt, and hand the result over as ``extra_fields["teacher_logprobs"]`` (:func:`teacher_column`). See
``docs/engines.md`` for what was and was not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from seedbench.config import RunConfig, make_method
from seedbench.errors import ConfigError, ExtraMissing
from seedbench.train.losses import Gate, clean, gate, gated_imitation

NAME = "seedbench_seed"


def seed_opd(log_prob: Tensor, teacher: Tensor, response_mask: Tensor, beta: float, kind: Gate) -> Tensor:
    """(B, T) per-token SEED term (methods page 2.6): g * (teacher - student), 0 where there is no teacher.

    NaN in ``teacher`` marks a token without one. Aggregated by verl over *all* response tokens, while SEED
    divides by the taught ones: the term is smaller by the share of taught tokens.
    """
    mask = response_mask.bool() & ~torch.isnan(teacher)
    student = clean(log_prob, mask)
    weight = gate(student, clean(teacher, mask), mask, beta, kind)
    return clean(gated_imitation(student, clean(teacher, mask), weight, mask), mask)


def teacher_column(prompt_tokens: int, logprobs: Sequence[float] | None, response_tokens: int) -> Tensor:
    """(prompt + response, 1) as verl carries teacher scores: the score of a token stands at the place before it.

    None: the trajectory has no valid skill, so nothing is imitated there.
    """
    if logprobs is not None and len(logprobs) != response_tokens:
        raise ConfigError(
            f"The teacher scored {len(logprobs)} tokens of a response of {response_tokens}: these are not the "
            "sampled tokens."
        )
    column = torch.full((prompt_tokens + response_tokens, 1), float("nan"))
    if logprobs is not None and response_tokens:
        start = prompt_tokens - 1
        column[start : start + response_tokens, 0] = torch.tensor(list(logprobs))
    return column


def register(beta: float = 5.0, kind: Gate = "sigmoid") -> None:
    """Make verl know the loss ``seedbench_seed``. Raises :class:`ExtraMissing` without verl."""
    try:
        from verl.trainer.distillation.losses import (  # type: ignore[import-not-found]
            DistillationLossSettings,
            register_distillation_loss,
        )
        from verl.workers.utils.padding import no_padding_2_padding  # type: ignore[import-not-found]
    except ImportError as error:
        raise ExtraMissing(
            "The verl engine needs verl in an environment of its own: pip install 'verl==0.9.1' (docs/engines.md)."
        ) from error

    def loss(
        config: Any, distillation_config: Any, model_output: Any, data: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        student = no_padding_2_padding(model_output["log_probs"], data)
        teacher = no_padding_2_padding(data["teacher_logprobs"], data).squeeze(-1)
        mask = data["response_mask"]
        mask = mask.to_padded_tensor(False) if mask.is_nested else mask
        return seed_opd(student, teacher, mask, beta, kind), {}

    register_distillation_loss(DistillationLossSettings(names=[NAME], use_estimator=True))(loss)


def overrides(config: RunConfig) -> list[str]:
    """Command-line overrides of verl's PPO trainer that mean what ``config`` means, for GRPO and SEED.

    Raises :class:`ConfigError` where verl has no such setting. Data, paths, GPUs and the agent loop are yours.
    """
    train, method = config.train, make_method(config.method)
    options = config.backbone.options
    if config.method.name not in ("grpo", "seed"):
        raise ConfigError(
            f"There is no verl recipe for method '{config.method.name}', only for grpo and seed."
        )
    if method.advantage.scale == "batch":
        raise ConfigError("verl's GRPO advantage has no scale over the batch; use 'group' or 'none'.")
    objective = method.objective
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    lines = {
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": method.advantage.scale == "group",
        "data.train_batch_size": train.tasks,
        "data.max_prompt_length": options.get("max_prompt_tokens", 4096),
        "data.max_response_length": options.get("max_new_tokens", 512),
        f"{rollout}.n": train.group,
        f"{rollout}.temperature": train.temperature,
        f"{rollout}.val_kwargs.temperature": config.eval.temperature,
        f"{rollout}.val_kwargs.do_sample": config.eval.temperature > 0,
        f"{actor}.ppo_mini_batch_size": max(1, train.tasks // train.minibatches),
        f"{actor}.optim.lr": train.learning_rate,
        f"{actor}.optim.weight_decay": train.weight_decay,
        f"{actor}.clip_ratio": objective.clip,
        f"{actor}.clip_ratio_low": objective.clip,
        f"{actor}.clip_ratio_high": objective.clip,
        f"{actor}.clip_ratio_c": objective.dual,
        f"{actor}.entropy_coeff": objective.entropy,
        f"{actor}.use_kl_loss": objective.kl > 0,
        f"{actor}.kl_loss_coef": objective.kl,
        f"{actor}.kl_loss_type": "low_var_kl",
        f"{actor}.loss_agg_mode": objective.aggregation,
        "trainer.total_training_steps": train.updates,
        "trainer.test_freq": config.eval.every or -1,
        "trainer.save_freq": train.checkpoint_every,
    }
    if config.method.name == "seed" and method.coefficient:
        distillation = "distillation.distillation_loss"
        lines |= {
            "distillation.enabled": True,
            f"{distillation}.loss_mode": NAME,
            f"{distillation}.distillation_loss_coef": method.coefficient,
            f"{distillation}.use_task_rewards": True,
            f"{distillation}.use_policy_gradient": False,
        }
    return [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in lines.items()
    ]
