"""Group advantages and their way onto decided tokens, against numbers worked out by hand or with statistics."""

from __future__ import annotations

import math
import random
import statistics

import pytest
import torch

from seedbench.errors import ConfigError
from seedbench.registry import METHODS
from seedbench.train.advantages import GroupAdvantage, step_scores
from seedbench.train.backbone import Sample
from seedbench.train.batch import (
    cap_importance,
    loss_batch,
    make_rows,
    micro_batches,
    minibatches,
    minibatches_of,
    totals,
    trainable,
)
from seedbench.train.losses import LossBatch, PolicyObjective, Totals, clipped_policy_loss
from seedbench.types import Episode, Observation, PublicTask, Skill, Turn

SINGLE = GroupAdvantage()


def one_step(rewards: list[float | None], groups: list[str], **settings: str) -> list[float | None]:
    """Advantages of one-step trajectories."""
    scores = [None if r is None else [r] for r in rewards]
    found = GroupAdvantage(**settings)(scores, groups).values  # type: ignore[arg-type]
    return [v[0] if v else None for v in found]


def test_a_tiny_spread_has_one_floor_in_every_path() -> None:
    """BR-002: [1.0, 1.00001] with eps 1e-6 gives +-0.6195 over steps and over trajectories."""
    for over in ("steps", "trajectories"):
        got = one_step([1.0, 1.00001], ["a", "a"], over=over)
        assert got == pytest.approx([-0.6195, 0.6195], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_random_groups_against_the_statistics_module(seed: int) -> None:
    """BR-002, 1.3 code formula: unbiased std over all step samples of the group."""
    rng = random.Random(f"groups/{seed}")
    groups = [rng.choice("abc") for _ in range(14)] + ["a", "b", "c"]
    scores = [[rng.uniform(-1, 10) for _ in range(rng.randint(1, 5))] for _ in groups]
    got = GroupAdvantage()(scores, groups).values
    for score, group, values in zip(scores, groups, got, strict=True):
        pool = [s for ss, g in zip(scores, groups, strict=True) if g == group for s in ss]
        mean, std = (statistics.fmean(pool), statistics.stdev(pool)) if len(pool) > 1 else (0.0, 1.0)
        assert values == pytest.approx([(s - mean) / (std + 1e-6) for s in score], rel=1e-9)


def test_paper_formula_counts_every_trajectory_once() -> None:
    """1.3: a long episode weighs more over steps, and no more over trajectories."""
    scores, groups = [[0.0] * 6, [1.0], [1.0]], ["a"] * 3
    steps = GroupAdvantage(over="steps")(scores, groups).values
    paper = GroupAdvantage(over="trajectories")(scores, groups).values
    mean, std = 2 / 8, statistics.stdev([0.0] * 6 + [1.0] * 2)
    assert steps[1] == pytest.approx([(1 - mean) / (std + 1e-6)])
    mean, std = 2 / 3, statistics.stdev([0.0, 1.0, 1.0])
    assert paper[0] == pytest.approx([(0 - mean) / (std + 1e-6)] * 6)
    assert paper[1] == pytest.approx([(1 - mean) / (std + 1e-6)])


def test_the_group_is_the_task() -> None:
    """BR-006: four plays of one task, [1, 0, 1, 0]."""
    got = one_step([1, 0, 1, 0], ["t"] * 4)
    assert got == pytest.approx([0.866, -0.866, 0.866, -0.866], abs=1e-3)


def test_group_batch_and_no_scaling() -> None:
    """BR-014: two groups [0, 1] and [0, 10]."""
    rewards, groups = [0.0, 1.0, 0.0, 10.0], ["a", "a", "b", "b"]
    assert one_step(rewards, groups, scale="group") == pytest.approx(
        [-0.7071, 0.7071, -0.7071, 0.7071], abs=1e-4
    )
    assert one_step(rewards, groups, scale="batch") == pytest.approx(
        [-0.103, 0.103, -1.0296, 1.0296], abs=1e-3
    )
    assert one_step(rewards, groups, scale="none") == [-0.5, 0.5, -5.0, 5.0]


@pytest.mark.parametrize("reward", [1.0, 0.1, 1 / 3, 10.0])
@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_equal_rewards_give_exactly_zero(reward: float, size: int, scale: str) -> None:
    """BR-012: never NaN, never rounding noise blown up by 1e6; counted."""
    result = GroupAdvantage(scale=scale)([[reward]] * size, ["a"] * size)  # type: ignore[arg-type]
    assert result.values == [[0.0]] * size
    assert result.zero_std_fraction == 1.0


def test_an_unscored_rollout_costs_only_itself() -> None:
    """BR-013: [1, None, 0, 1]."""
    result = SINGLE([[1.0], None, [0.0], [1.0]], ["a"] * 4)
    mean, std = 2 / 3, statistics.stdev([1, 0, 1])
    assert result.values[1] == []
    assert [result.values[i][0] for i in (0, 2, 3)] == pytest.approx(
        [(x - mean) / (std + 1e-6) for x in (1, 0, 1)]
    )
    assert result.unscored == 1
    assert all(math.isfinite(v) for vs in result.values for v in vs)


def test_a_single_sample_has_mean_zero_and_std_one() -> None:
    """1.3, as the released code; counted as a singleton."""
    result = SINGLE([[3.0]], ["a"])
    assert result.values[0] == pytest.approx([3.0], rel=1e-5)
    assert result.singletons == 1


def test_the_penalty_for_an_invalid_action() -> None:
    """1.2: s = R - c * (1 - valid), on every step of the episode."""
    assert step_scores(10.0, [True, False, True], 0.1) == [10.0, 9.9, 10.0]


# -- onto tokens ---------------------------------------------------------------------------------------------
def episode(task: str, reward: float, steps: int, success: bool | None = True, valid: bool = True) -> Episode:
    turns = [Turn(Observation("o"), "c", "a", valid) for _ in range(steps)]
    if turns:
        turns[-1].reward = reward
    return Episode(PublicTask(task, "train", "g"), 0, turns=turns, status="completed", success=success)


def sample(i: int, turns: tuple[int, ...]) -> Sample:
    return Sample(i, turns, (-0.5,) * len(turns), 1.0, 10 + len(turns))


GRPO = METHODS.get("grpo")()


def test_an_episode_without_a_decided_token_is_out_of_everything() -> None:
    """BR-003: reward 10 on an empty response; the other one gets what it would get alone."""
    episodes = [episode("t", 10.0, 1), episode("t", 0.0, 3)]
    rows = make_rows([sample(1, (0, 1, 2))], episodes, None, GRPO, 0.1)
    assert rows.advantage == [[0.0, 0.0, 0.0]]
    # with the empty one dropped, other plays of the task are compared with each other alone
    episodes = [episode("t", 10.0, 1), episode("t", 0.0, 1), episode("t", 4.0, 1)]
    rows = make_rows([sample(1, (0,)), sample(2, (0, 0))], episodes, None, GRPO, 0.1)
    assert rows.advantage[0] == pytest.approx([-0.70711], abs=1e-4)
    assert rows.advantage[1] == pytest.approx([0.70711] * 2, abs=1e-4)


def test_every_decided_token_of_a_step_carries_the_advantage_of_its_step() -> None:
    """1.3: the scalar is copied to every token; invalid steps of one episode differ from valid ones."""
    a, b = episode("t", 10.0, 2), episode("t", 0.0, 1)
    a.turns[0].valid = False
    rows = make_rows([sample(0, (0, 0, 1)), sample(1, (0,))], [a, b], None, GRPO, 0.1)
    pool = [9.9, 10.0, 0.0]
    mean, std = statistics.fmean(pool), statistics.stdev(pool) + 1e-6
    assert rows.advantage[0] == pytest.approx([(9.9 - mean) / std] * 2 + [(10 - mean) / std])
    assert rows.advantage[1] == pytest.approx([-mean / std])


def test_an_episode_lost_to_infrastructure_does_not_train() -> None:
    """BR-013, BR-051: success None -> no row, no share in the statistics, counted."""
    episodes = [episode("t", 1, 1), episode("t", 7, 1, success=None), episode("t", 0, 1), episode("t", 1, 1)]
    rows = make_rows([sample(i, (0,)) for i in range(4)], episodes, None, GRPO, 0.1)
    assert [s.episode for s in rows.samples] == [0, 2, 3]
    mean, std = 2 / 3, statistics.stdev([1, 0, 1]) + 1e-6
    assert [a[0] for a in rows.advantage] == pytest.approx([(x - mean) / std for x in (1, 0, 1)])
    assert rows.result is not None
    assert rows.result.unscored == 1


def test_a_batch_of_singletons_is_refused() -> None:
    """BR-006: distinct keys everywhere would turn raw rewards into advantages."""
    episodes = [episode(f"t{i}", float(i), 1) for i in range(3)]
    with pytest.raises(ConfigError, match="group"):
        make_rows([sample(i, (0,)) for i in range(3)], episodes, None, GRPO, 0.1)


def test_taught_rows_are_those_with_a_skill() -> None:
    skills = [None, Skill("s", "open box 2", "self")]
    episodes = [episode("t", 1, 1), episode("t", 0, 1)]
    rows = make_rows([sample(0, (0,)), sample(1, (0, 0))], episodes, skills, GRPO, 0.1)
    assert rows.taught == [False, True]
    assert totals(rows, [0, 1]) == Totals(tokens=3, rows=2, taught_tokens=2)


def test_rows_without_any_signal_are_skipped_only_when_nothing_else_moves_them() -> None:
    episodes = [episode("t", 1, 1), episode("t", 1, 1), episode("u", 1, 1), episode("u", 0, 1)]
    method = METHODS.get("grpo")(objective=PolicyObjective(kl=0.0, entropy=0.0))
    rows = make_rows([sample(i, (0,)) for i in range(4)], episodes, None, method, 0.1)
    assert trainable(rows, method) == [2, 3]
    assert trainable(rows, GRPO) == [0, 1, 2, 3]


def test_a_completion_cut_at_its_limit_trains_nothing_and_still_counts_in_its_group() -> None:
    """BR-025: one of two plays was cut after 6 tokens."""
    episodes = [episode("t", 1.0, 1), episode("t", 0.0, 1)]
    episodes[1].turns[0].truncated = True
    samples = [sample(0, (0,) * 4), sample(1, (0,) * 6)]
    rows = make_rows(samples, episodes, None, GRPO, 0.1, mask_truncated=True)
    assert [s.episode for s in rows.samples] == [0]
    assert totals(rows, [0]) == Totals(tokens=4, rows=1)
    assert [len(x) for x in (rows.advantage, rows.old, rows.taught)] == [1, 1, 1]
    assert rows.advantage[0] == pytest.approx([0.70711] * 4, abs=1e-4)  # against the mean with the cut one
    assert len(make_rows(samples, episodes, None, GRPO, 0.1)) == 2


def test_the_importance_of_a_token_is_capped_and_one_where_nothing_differs() -> None:
    """BR-031: weights min(2, p_now / p_sampled) = 1, 0.5, 2; without log-probabilities a named error."""
    episodes = [episode("t", 1.0, 1), episode("t", 0.0, 1)]
    for e in episodes:
        e.turns[0].logprob = -1.5
    rows = make_rows([sample(0, (0, 0, 0)), sample(1, (0,))], episodes, None, GRPO, 0.1)
    before, sampled = [list(a) for a in rows.advantage], rows.old
    assert cap_importance(rows, sampled, episodes, 2.0) == 1.0
    assert rows.advantage == before
    rows.old = [[-0.5, -0.5 - math.log(2), -0.5 + math.log(7)], [-0.5]]
    assert cap_importance(rows, sampled, episodes, 2.0) == pytest.approx((1 + 0.5 + 2 + 1) / 4)
    a, b = before[0][0], before[1][0]
    assert rows.advantage == [pytest.approx([a, 0.5 * a, 2 * a]), [b]]
    episodes[1].turns[0].logprob = None
    with pytest.raises(ConfigError, match=r"turn 0 of task 't' has no 'logprob'"):
        cap_importance(rows, sampled, episodes, 2.0)


@pytest.mark.parametrize("advantage", [-1.7, 0.6])
@pytest.mark.parametrize("ratio", [0.5, 1.1, 4.0])
def test_a_weighted_advantage_is_a_weighted_loss(advantage: float, ratio: float) -> None:
    """What makes :func:`cap_importance` exact, on both sides of both clips."""
    new, old = torch.tensor([[math.log(ratio)]], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    mask, a = torch.ones(1, 1, dtype=torch.bool), torch.full_like(old, advantage)
    plain, weighted = (clipped_policy_loss(new, old, w * a, mask) for w in (1.0, 0.3))
    assert float(weighted) == pytest.approx(0.3 * float(plain), rel=1e-12)


# -- batches -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(5))
def test_micro_batches_hold_every_row_once_within_the_budget(seed: int) -> None:
    rng = random.Random(seed)
    lengths = [rng.randint(1, 60) for _ in range(40)]
    index = rng.sample(range(40), 25)
    parts = list(micro_batches(lengths, index, 100))
    assert sorted(i for p in parts for i in p) == sorted(index)
    for p in parts:
        assert len(p) == 1 or len(p) * max(lengths[i] for i in p) <= 100


def test_minibatches_share_out_every_row_once() -> None:
    episodes = [episode("t", float(i % 2), 1) for i in range(11)]
    rows = make_rows([sample(i, (0,)) for i in range(11)], episodes, None, GRPO, 0.1)
    parts = minibatches(rows, range(11), 4, "s")
    assert sorted(i for p in parts for i in p) == list(range(11))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == minibatches(rows, range(11), 4, "s") != minibatches(rows, range(11), 4, "other")
    assert sorted(i for p in minibatches_of(11, 4, "s") for i in p) == list(range(11))


class FixedScores:
    """Stands where a backbone would: returns given log-probabilities, right-padded."""

    def __init__(self, values: list[list[float]]) -> None:
        self.values = values

    def score(self, samples: list[Sample], skills: object = None) -> object:
        from seedbench.train.backbone import Scores

        rows = [self.values[s.episode] for s in samples]
        width = max(map(len, rows))
        mask = torch.tensor([[j < len(r) for j in range(width)] for r in rows])
        logp = torch.tensor([r + [0.0] * (width - len(r)) for r in rows], dtype=torch.float64)
        return Scores(logp, torch.zeros_like(logp), mask)


def test_masks_come_from_lengths_and_never_from_token_values() -> None:
    """BR-026, BR-021, BR-028: three sampled tokens, whatever their ids, are three ones; padding is zero."""
    episodes = [episode("t", 1, 1), episode("t", 0, 1)]
    rows = make_rows([sample(0, (0, 0, 0)), sample(1, (0,))], episodes, None, GRPO, 0.1)
    rows.old = [[-0.1, -0.2, -0.3], [-0.4]]
    b: LossBatch = loss_batch(FixedScores(rows.old), rows, [0, 1], totals(rows, [0, 1]), 0)  # type: ignore[arg-type]
    assert b.mask.tolist() == [[True] * 3, [True, False, False]]
    assert b.logp_old.tolist() == [[-0.1, -0.2, -0.3], [-0.4, 0.0, 0.0]]
    assert b.advantage.shape == b.mask.shape == b.logp_old.shape
    assert b.totals == Totals(4, 2, 0)
