"""Every loss term and its gradient against closed forms in plain Python, and the identities of the methods
page 2.7. Nothing here calls the code under test to make an expected value."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from seedbench.registry import METHODS
from seedbench.train.losses import (
    LossBatch,
    PolicyObjective,
    Totals,
    aggregate,
    clipped_policy_loss,
    gate,
    gated_imitation,
    kl_k3,
    reweighted_advantage,
    teacher_k3,
)

MASK = [[True, True, True, False], [True, False, False, False], [True, True, True, True]]
COUNT = 8
Rows = list[list[float]]


def tensor(rows: Sequence[Sequence[float]], grad: bool = False) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64, requires_grad=grad)


MASKED = torch.tensor(MASK)


def draw(seed: int, low: float, high: float) -> Rows:
    rng = random.Random(f"losses/{seed}/{low}/{high}")
    return [[rng.uniform(low, high) for _ in row] for row in MASK]


def value_and_gradient(term: Callable[[Tensor], Tensor], logp: Rows) -> tuple[Rows, Rows]:
    """Per-token values, and the gradient of their sum over real tokens."""
    x = tensor(logp, grad=True)
    values = term(x)
    values[MASKED].sum().backward()
    return values.tolist(), x.grad.tolist()


def expect(got: Rows, formula: Callable[[int, int], float]) -> None:
    for i, row in enumerate(MASK):
        for j, real in enumerate(row):
            if real:
                assert got[i][j] == pytest.approx(formula(i, j), rel=1e-12, abs=1e-14), (i, j)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# -- the policy term -----------------------------------------------------------------------------------------
def ppo(logp: float, old: float, a: float, clip: float = 0.2, dual: float = 3.0) -> tuple[float, float]:
    """Value and derivative of one token, written as the four cases of the formula."""
    r = math.exp(logp - old)
    if a >= 0:
        return (-a * r, -a * r) if r < 1 + clip else (-a * (1 + clip), 0.0)
    if r < 1 - clip:
        return -a * (1 - clip), 0.0
    return (-a * r, -a * r) if r < dual else (-a * dual, 0.0)


@pytest.mark.parametrize("spread", [0.1, 0.6, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_clipped_policy_loss(seed: int, spread: float) -> None:
    logp, a = draw(seed, -4, -0.1), draw(seed, -2, 2)
    shift = draw(seed, -spread, spread)
    old = [[x + d for x, d in zip(*rows, strict=True)] for rows in zip(logp, shift, strict=True)]
    values, grads = value_and_gradient(lambda x: clipped_policy_loss(x, tensor(old), tensor(a), MASKED), logp)
    expect(values, lambda i, j: ppo(logp[i][j], old[i][j], a[i][j])[0])
    expect(grads, lambda i, j: ppo(logp[i][j], old[i][j], a[i][j])[1])


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.1, 1.0, -1.1, -1.1),  # inside the clip range
        (1.5, 1.0, -1.2, 0.0),  # a good action made likelier than the clip allows: no push
        (0.5, 1.0, -0.5, -0.5),  # a good action made unlikelier: full push
        (0.5, -1.0, 0.8, 0.0),  # a bad action already unlikelier
        (2.0, -1.0, 2.0, 2.0),  # a bad action made likelier
        (9.0, -1.0, 3.0, 0.0),  # ... beyond the dual clip
        (1.0, 0.0, 0.0, 0.0),
    ],
)
def test_the_corners_of_the_clip(ratio: float, advantage: float, loss: float, slope: float) -> None:
    x = tensor([[math.log(ratio)]], grad=True)
    value = clipped_policy_loss(x, tensor([[0.0]]), tensor([[advantage]]), torch.ones(1, 1, dtype=torch.bool))
    value.sum().backward()
    assert value.item() == pytest.approx(loss)
    assert x.grad.item() == pytest.approx(slope)


# -- KL ------------------------------------------------------------------------------------------------------
def test_k3_has_the_published_values_and_is_never_negative() -> None:
    """BR-009: reference - current of +0.5, -0.5, 0."""
    ones = torch.ones(1, 3, dtype=torch.bool)
    got = kl_k3(tensor([[0.0, 0.0, 0.0]]), tensor([[0.5, -0.5, 0.0]]), ones)[0].tolist()
    assert got == pytest.approx([0.14872, 0.10653, 0.0], abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_k3_and_its_gradient(seed: int) -> None:
    logp, ref = draw(seed, -3, 0), draw(seed + 10, -3, 0)
    values, grads = value_and_gradient(lambda x: kl_k3(x, tensor(ref), MASKED), logp)
    expect(values, lambda i, j: math.exp(ref[i][j] - logp[i][j]) - (ref[i][j] - logp[i][j]) - 1)
    expect(grads, lambda i, j: 1 - math.exp(ref[i][j] - logp[i][j]))
    assert min(min(r) for r in values) >= 0


def test_k3_is_clamped_at_ten() -> None:
    one = torch.ones(1, 1, dtype=torch.bool)
    x = tensor([[-9.0]], grad=True)
    value = kl_k3(x, tensor([[0.0]]), one)
    value.sum().backward()
    assert (value.item(), x.grad.item()) == (10.0, 0.0)


@pytest.mark.parametrize("gap", [90.0, 800.0, -90.0, -800.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_log_ratios_give_finite_losses_and_gradients(gap: float, dtype: torch.dtype) -> None:
    """BR-015: exp overflows long before a clamp that follows it can help the gradient."""
    one = torch.ones(1, 1, dtype=torch.bool)
    other = torch.tensor([[gap]], dtype=dtype)
    for term in (
        lambda x: kl_k3(x, other, one),
        lambda x: clipped_policy_loss(x, -other.abs(), torch.ones_like(x), one),
        lambda x: clipped_policy_loss(x, -other.abs(), -torch.ones_like(x), one),
        lambda x: teacher_k3(x, other, other, one),
        lambda x: gated_imitation(x, other, gate(x, other, one, 5.0), one),
        lambda x: clipped_policy_loss(
            x, torch.zeros_like(x), reweighted_advantage(torch.ones_like(x), other, x, one, 0.5), one
        ),
    ):
        x = torch.zeros((1, 1), dtype=dtype, requires_grad=True)
        value = term(x).sum()
        value.backward()
        assert torch.isfinite(value), term
        assert torch.isfinite(x.grad).all(), term


# -- distillation --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_skill_sd_term(seed: int) -> None:
    logp, old, teacher = draw(seed, -3, 0), draw(seed + 5, -3, 0), draw(seed + 10, -3, 0)

    def parts(i: int, j: int) -> tuple[float, float, float]:
        ell = logp[i][j] - teacher[i][j]
        return math.exp(logp[i][j] - old[i][j]), math.exp(-ell) - 1 + ell, 1 - math.exp(-ell)

    values, grads = value_and_gradient(lambda x: teacher_k3(x, tensor(old), tensor(teacher), MASKED), logp)
    expect(values, lambda i, j: parts(i, j)[0] * parts(i, j)[1])
    # d(rho k3) = rho k3 + rho (1 - exp(-ell)): the ratio carries a gradient
    expect(grads, lambda i, j: parts(i, j)[0] * (parts(i, j)[1] + parts(i, j)[2]))


def test_skill_sd_is_zero_where_student_and_teacher_agree() -> None:
    logp = draw(1, -3, 0)
    values, grads = value_and_gradient(lambda x: teacher_k3(x, tensor(logp), tensor(logp), MASKED), logp)
    expect(values, lambda i, j: 0.0)
    expect(grads, lambda i, j: 0.0)


def test_the_gate_has_the_published_values() -> None:
    """BR-016: gap +-0.2 gives 0.7311 and 0.2689 at beta 5, and 0.5 at beta 0."""
    ones = torch.ones(1, 2, dtype=torch.bool)
    student, teacher = tensor([[-1.0, -1.0]]), tensor([[-0.8, -1.2]])
    assert gate(student, teacher, ones, 5.0)[0].tolist() == pytest.approx([0.7311, 0.2689], abs=1e-4)
    assert gate(student, teacher, ones, 0.0)[0].tolist() == [0.5, 0.5]
    assert gate(student, teacher, ones, 5.0, "half")[0].tolist() == [0.5, 0.5]
    assert gate(student, teacher, ones, 5.0, "ones")[0].tolist() == [1.0, 1.0]
    # the distillation baseline proper has a weight that changes sign with the gap
    assert gate(student, teacher, ones, 5.0, "gap")[0].tolist() == pytest.approx([0.2, -0.2])


def test_gate_and_teacher_carry_no_gradient() -> None:
    """BR-016."""
    logp, teacher = tensor(draw(2, -3, 0), grad=True), tensor(draw(3, -3, 0), grad=True)
    weight = gate(logp, teacher, MASKED, 5.0)
    assert not weight.requires_grad
    gated_imitation(logp, teacher, weight, MASKED).sum().backward()
    assert teacher.grad is None or not teacher.grad.any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beta", [0.0, 5.0])
def test_gated_imitation_pushes_by_minus_the_gate(seed: int, beta: float) -> None:
    logp, teacher = draw(seed, -3, 0), draw(seed + 10, -3, 0)

    def g(i: int, j: int) -> float:
        return sigmoid(beta * (teacher[i][j] - logp[i][j]))

    values, grads = value_and_gradient(
        lambda x: gated_imitation(x, tensor(teacher), gate(x, tensor(teacher), MASKED, beta), MASKED), logp
    )
    expect(values, lambda i, j: g(i, j) * (teacher[i][j] - logp[i][j]))
    expect(grads, lambda i, j: -g(i, j))


# -- RLSD ----------------------------------------------------------------------------------------------------
def test_rlsd_weights_have_the_published_values() -> None:
    """BR-017: gap +-0.3 and A = +-1; unclipped exp(sign(A) gap), then clipped to [0.8, 1.2]."""
    ones = torch.ones(1, 4, dtype=torch.bool)
    a, gap = tensor([[1.0, 1.0, -1.0, -1.0]]), tensor([[0.3, -0.3, 0.3, -0.3]])
    zero = torch.zeros_like(a)
    wide = reweighted_advantage(a, gap, zero, ones, 1.0, clip=0.9)[0].tolist()
    assert wide == pytest.approx([1.3499, 0.7408, -0.7408, -1.3499], abs=1e-4)
    clipped = reweighted_advantage(a, gap, zero, ones, 1.0)[0].tolist()
    assert clipped == pytest.approx([1.2, 0.8, -0.8, -1.2])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strength", [0.0, 0.3, 0.5, 1.0])
def test_rlsd_never_flips_a_sign(seed: int, strength: float) -> None:
    """BR-017; and |A'/A| stays within 1 +- 0.2 strength."""
    a, teacher, old = draw(seed, -2, 2), draw(seed + 1, -9, 0), draw(seed + 2, -9, 0)
    got = reweighted_advantage(tensor(a), tensor(teacher), tensor(old), MASKED, strength).tolist()

    def expected(i: int, j: int) -> float:
        sign = math.copysign(1.0, a[i][j])
        w = min(max(math.exp(sign * (teacher[i][j] - old[i][j])), 0.8), 1.2)
        return a[i][j] * ((1 - strength) + strength * w)

    expect(got, expected)
    for i, row in enumerate(MASK):
        for j, real in enumerate(row):
            if real:
                assert got[i][j] * a[i][j] > 0
                assert abs(got[i][j] / a[i][j] - 1) <= 0.2 * strength + 1e-12


def test_rlsd_strength_zero_is_the_plain_advantage_bit_for_bit() -> None:
    """BR-017."""
    a = tensor(draw(5, -2, 2))
    got = reweighted_advantage(a, tensor(draw(6, -9, 0)), tensor(draw(7, -9, 0)), MASKED, 0.0)
    assert torch.equal(got[MASKED], a[MASKED])


# -- means ---------------------------------------------------------------------------------------------------
TWO = tensor([[2.0] * 5, [10.0, 7.0, 7.0, 7.0, 7.0]])
TWO_MASK = torch.tensor([[True] * 5, [True, False, False, False, False]])


def test_token_mean_and_sequence_mean() -> None:
    """BR-007: five tokens of loss 2 and one of 10."""
    totals = Totals(tokens=6, rows=2)
    assert aggregate(TWO, TWO_MASK, totals, "token-mean").item() == pytest.approx(20 / 6)
    assert aggregate(TWO, TWO_MASK, totals, "seq-mean-token-mean").item() == pytest.approx(6.0)


@pytest.mark.parametrize("how", ["token-mean", "seq-mean-token-mean"])
def test_a_mean_does_not_depend_on_the_split_into_micro_batches(how: str) -> None:
    """BR-008: accumulated over one or two micro-batches; the naive average would be 6.0 for token means."""
    totals = Totals(tokens=6, rows=2)
    whole = aggregate(TWO, TWO_MASK, totals, how)
    parts = sum(aggregate(TWO[i : i + 1], TWO_MASK[i : i + 1], totals, how) for i in range(2))
    assert parts.item() == pytest.approx(whole.item(), rel=1e-12)


@pytest.mark.parametrize("how", ["token-mean", "seq-mean-token-mean"])
def test_an_empty_mask_gives_zero_and_no_nan(how: str) -> None:
    """BR-015: no token to train on."""
    x = torch.full((2, 3), math.nan, dtype=torch.float64, requires_grad=True)
    value = aggregate(x, torch.zeros(2, 3, dtype=torch.bool), Totals(0, 0), how)
    value.backward()
    assert value.item() == 0.0
    assert not x.grad.any()


# -- the whole objective -------------------------------------------------------------------------------------
def batch(seed: int = 0, taught: Sequence[bool] = (True, False, True), **over: object) -> LossBatch:
    logp = draw(seed, -3, -0.2)
    old = [[x + d for x, d in zip(*r, strict=True)] for r in zip(logp, draw(seed, -0.3, 0.3), strict=True)]
    tokens = [sum(row) for row in MASK]
    parts = dict(
        logp=tensor(logp, grad=True),
        entropy=tensor(draw(seed + 1, 0.1, 1.5), grad=True),
        mask=MASKED,
        logp_old=tensor(old),
        advantage=tensor(draw(seed + 2, -2, 2)),
        totals=Totals(COUNT, 3, sum(n for n, t in zip(tokens, taught, strict=True) if t)),
        logp_ref=tensor(draw(seed + 3, -3, -0.2)),
        logp_teacher=tensor(draw(seed + 4, -3, -0.2)),
        taught=torch.tensor(taught),
    )
    return LossBatch(**{**parts, **over})  # type: ignore[arg-type]


def backward(loss: object) -> None:
    loss.value.backward()  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["token-mean", "seq-mean-token-mean"])
@pytest.mark.parametrize("seed", range(3))
def test_the_shared_objective(seed: int, how: str) -> None:
    """L = pg * clipped - entropy * H + kl * k3, each a mean; gradients of both inputs."""
    b = batch(seed)
    objective = PolicyObjective(pg=0.7, kl=0.3, entropy=0.05, aggregation=how)  # type: ignore[arg-type]
    loss = objective(b)
    backward(loss)
    logp, old, a, ref, h = (x.tolist() for x in (b.logp, b.logp_old, b.advantage, b.logp_ref, b.entropy))
    lengths = [sum(row) for row in MASK]
    value, grad = 0.0, [[0.0] * 4 for _ in MASK]
    for i, row in enumerate(MASK):
        share = 1 / COUNT if how == "token-mean" else 1 / (3 * lengths[i])
        for j, real in enumerate(row):
            if real:
                pg, slope = ppo(logp[i][j], old[i][j], a[i][j])
                d = ref[i][j] - logp[i][j]
                value += share * (0.7 * pg + 0.3 * (math.exp(d) - d - 1) - 0.05 * h[i][j])
                grad[i][j] = share * (0.7 * slope + 0.3 * (1 - math.exp(d)))
    assert loss.value.item() == pytest.approx(value, rel=1e-12)
    assert torch.allclose(b.logp.grad, tensor(grad), rtol=1e-12, atol=1e-15)
    assert not b.logp.grad[~MASKED].any()
    expect(
        b.entropy.grad.tolist(),
        lambda i, j: -0.05 / (COUNT if how == "token-mean" else 3 * lengths[i]),
    )


def test_kl_enters_the_loss_exactly_once() -> None:
    """BR-010: beta 0.1 and k3 0.2 add 0.02. There is no second place: rewards never hold a KL."""
    one = torch.ones(1, 1, dtype=torch.bool)
    d = 0.5836  # exp(d) - d - 1 is close to 0.2
    k3 = math.exp(d) - d - 1
    b = LossBatch(
        tensor([[-1.0]], True), tensor([[0.0]]), one, tensor([[-1.0]]), tensor([[0.0]]), Totals(1, 1),
        logp_ref=tensor([[-1.0 + d]]),
    )  # fmt: skip
    loss = PolicyObjective(kl=0.1, entropy=0.0)(b)
    assert loss.value.item() == pytest.approx(0.1 * k3)
    assert loss.terms["kl"] == pytest.approx(0.2, abs=0.01)


def test_the_kl_term_moves_the_policy_and_only_the_policy() -> None:
    """BR-011: two logits, all advantages 0; a step lowers the KL; beta 0 leaves no gradient at all."""
    reference = torch.log_softmax(tensor([[1.0, -1.0]]), -1)
    logits = tensor([[0.0, 0.0]], grad=True)
    one = torch.ones(1, 1, dtype=torch.bool)

    def loss(beta: float, ref: Tensor) -> Tensor:
        logp = torch.log_softmax(logits, -1)[:, :1]
        b = LossBatch(
            logp, torch.zeros_like(logp), one, logp.detach(), torch.zeros_like(logp), Totals(1, 1),
            logp_ref=ref,
        )  # fmt: skip
        return PolicyObjective(kl=beta, entropy=0.0)(b).value

    frozen = reference[:, :1].clone().requires_grad_()
    before = loss(1.0, frozen.detach())
    before.backward()
    assert logits.grad.norm() > 0
    with torch.no_grad():
        logits -= 0.1 * logits.grad
    assert loss(1.0, frozen.detach()) < before
    logits.grad = None
    loss(0.0, frozen.detach()).backward()
    assert not logits.grad.any()


def test_equal_rewards_leave_only_the_kl_gradient() -> None:
    """BR-012: beta 0 -> gradient 0; beta 0.1 -> the KL gradient alone."""
    flat = torch.zeros(3, 4, dtype=torch.float64)
    b = batch(1, advantage=flat)
    backward(PolicyObjective(kl=0.0, entropy=0.0)(b))
    assert not b.logp.grad.any()
    b = batch(1, advantage=flat)
    backward(PolicyObjective(kl=0.1, entropy=0.0)(b))
    gap = (b.logp_ref - b.logp).tolist()
    expect(b.logp.grad.tolist(), lambda i, j: 0.1 * (1 - math.exp(gap[i][j])) / COUNT)


# -- SEED and its relatives (identities of 2.7) --------------------------------------------------------------
BARE = PolicyObjective(pg=0.0, kl=0.0, entropy=0.0)


def method(name: str, **options: object) -> object:
    return METHODS.get(name)(**options)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("taught", [(True, True, True), (True, False, True), (False, True, False)])
def test_the_gradient_of_seed_is_minus_lambda_g_over_the_taught_tokens(
    seed: int, taught: tuple[bool, ...]
) -> None:
    """2.7, elementwise, and nothing outside M."""
    b = batch(seed, taught)
    loss = method("seed", objective=BARE, coefficient=0.37, beta=5.0).loss(b)  # type: ignore[attr-defined]
    backward(loss)
    size = sum(sum(row) for row, t in zip(MASK, taught, strict=True) if t)
    logp, teacher = b.logp.tolist(), b.logp_teacher.tolist()
    value = 0.0
    for i, row in enumerate(MASK):
        for j, real in enumerate(row):
            gap = teacher[i][j] - logp[i][j]
            inside = real and taught[i]
            expected = -0.37 * sigmoid(5 * gap) / size if inside else 0.0
            value += sigmoid(5 * gap) * gap / size if inside else 0.0
            assert b.logp.grad[i, j].item() == pytest.approx(expected, rel=1e-12, abs=1e-16)
    assert loss.value.item() == pytest.approx(0.37 * value, rel=1e-12)
    assert loss.terms["opd"] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_seed_with_a_full_mask_is_sdar(seed: int) -> None:
    everything = (True, True, True)
    one, other = batch(seed, everything), batch(seed, everything)
    a = method("seed", coefficient=0.01).loss(one)  # type: ignore[attr-defined]
    b = method("sdar", coefficient=0.01).loss(other)  # type: ignore[attr-defined]
    backward(a)
    backward(b)
    assert torch.equal(a.value, b.value)
    assert torch.equal(one.logp.grad, other.logp.grad)
    plain = batch(seed, everything)
    base = PolicyObjective()(plain)
    backward(base)
    logp, teacher = plain.logp.tolist(), plain.logp_teacher.tolist()
    term = sum(
        sigmoid(5 * (teacher[i][j] - logp[i][j])) * (teacher[i][j] - logp[i][j]) / COUNT
        for i, row in enumerate(MASK)
        for j, real in enumerate(row)
        if real
    )
    assert a.value.item() == pytest.approx(base.value.item() + 0.01 * term, rel=1e-12)


@pytest.mark.parametrize("name", ["seed", "sdar", "grpo_opsd"])
def test_beta_zero_is_half_weighted_likelihood(name: str) -> None:
    b = batch(3, (True, True, True))
    options = {} if name == "grpo_opsd" else {"beta": 0.0}
    backward(method(name, objective=BARE, coefficient=1.0, **options).loss(b))  # type: ignore[attr-defined]
    expect(b.logp.grad.tolist(), lambda i, j: -0.5 / COUNT)


@pytest.mark.parametrize("name", ["opsd", "grpo_opsd"])
def test_distillation_proper_weighs_by_the_signed_gap(name: str) -> None:
    """BR-016: a separate, named setting; its push changes direction with the gap."""
    b = batch(4, (True, True, True))
    backward(method(name, objective=BARE, coefficient=1.0, gate="gap").loss(b))  # type: ignore[attr-defined]
    gap = (b.logp_teacher - b.logp).tolist()
    expect(b.logp.grad.tolist(), lambda i, j: -gap[i][j] / COUNT)
    signs = {math.copysign(1, gap[i][j]) for i, row in enumerate(MASK) for j, real in enumerate(row) if real}
    assert signs == {1.0, -1.0}


def test_opsd_has_no_reward_term() -> None:
    small, large = batch(5), batch(5, advantage=100 * batch(5).advantage)
    a, b = (method("opsd").loss(x) for x in (small, large))  # type: ignore[attr-defined]
    backward(a)
    backward(b)
    assert torch.equal(a.value, b.value)
    assert torch.equal(small.logp.grad, large.logp.grad)


@pytest.mark.parametrize("name", ["seed", "sdar", "skill_sd"])
def test_equal_rewards_leave_the_auxiliary_gradient(name: str) -> None:
    flat = torch.zeros(3, 4, dtype=torch.float64)
    b = batch(6, advantage=flat)
    objective = PolicyObjective(kl=0.0, entropy=0.0)
    backward(method(name, objective=objective, coefficient=0.01).loss(b))  # type: ignore[attr-defined]
    assert b.logp.grad.abs().sum() > 0


@pytest.mark.parametrize("seed", range(3))
def test_skill_sd_adds_its_mean_to_grpo(seed: int) -> None:
    b, plain = batch(seed), batch(seed)
    loss = method("skill_sd", coefficient=0.25).loss(b)  # type: ignore[attr-defined]
    base = PolicyObjective()(plain)
    logp, old, teacher = (x.tolist() for x in (b.logp, b.logp_old, b.logp_teacher))
    term = 0.0
    for i, row in enumerate(MASK):
        for j, real in enumerate(row):
            if real:
                ell = logp[i][j] - teacher[i][j]
                term += math.exp(logp[i][j] - old[i][j]) * (math.exp(-ell) - 1 + ell) / COUNT
    assert loss.value.item() == pytest.approx(base.value.item() + 0.25 * term, rel=1e-12)


@pytest.mark.parametrize("update", [0, 25, 99, 100, 1000])
def test_the_strength_of_rlsd_falls_to_grpo(update: int) -> None:
    """2.4: 0.5 (1 - step/100) for step < 100, else 0; from then on GRPO bit for bit."""
    strength = 0.5 * (1 - update / 100) if update < 100 else 0.0
    b, plain = batch(8, update=update), batch(8)
    loss, base = method("rlsd").loss(b), PolicyObjective()(plain)  # type: ignore[attr-defined]
    backward(loss)
    backward(base)
    assert method("rlsd").strength_at(update) == pytest.approx(strength)  # type: ignore[attr-defined]
    if strength == 0:
        assert torch.equal(loss.value, base.value)
        assert torch.equal(b.logp.grad, plain.logp.grad)
        return
    a, teacher, old = b.advantage.tolist(), b.logp_teacher.tolist(), b.logp_old.tolist()
    weighted = [
        [
            x * (1 - strength + strength * min(max(math.exp(math.copysign(1, x) * (t - o)), 0.8), 1.2))
            for x, t, o in zip(*rows, strict=True)
        ]
        for rows in zip(a, teacher, old, strict=True)
    ]
    again = batch(8, advantage=tensor(weighted))
    assert loss.value.item() == pytest.approx(PolicyObjective()(again).value.item(), rel=1e-12)


def test_a_ratio_of_one_gives_minus_the_mean_advantage() -> None:
    """2.7, rho = 1: on the first step the policy term is -A, and its gradient -A / tokens."""
    b = batch(9)
    b = dataclasses.replace(b, logp_old=b.logp.detach().clone())
    loss = PolicyObjective(kl=0.0, entropy=0.0)(b)
    backward(loss)
    a = b.advantage.tolist()
    total = sum(a[i][j] for i, row in enumerate(MASK) for j, real in enumerate(row) if real)
    assert loss.value.item() == pytest.approx(-total / COUNT, rel=1e-12)
    expect(b.logp.grad.tolist(), lambda i, j: -a[i][j] / COUNT)


def test_no_divergence_term_is_clipped_before_its_sum() -> None:
    """BR-018: the k3 terms are functions of one sampled token each, >= 0 wherever student and teacher stand."""
    ones = torch.ones(1, 2, dtype=torch.bool)
    teacher = torch.log(tensor([[0.9, 0.1]]))
    student = torch.log(tensor([[0.1, 0.9]]))
    assert (kl_k3(student, teacher, ones) >= 0).all()
    assert (teacher_k3(student, student, teacher, ones) >= 0).all()
    exact = sum(p * math.log(p / q) for p, q in ((0.9, 0.1), (0.1, 0.9)))
    assert exact == pytest.approx(1.7578, abs=1e-4)
    # the expectation of k3 over the student's own samples is KL(student || teacher)
    expected = (torch.exp(student) * kl_k3(student, teacher, ones)).sum().item()
    assert expected == pytest.approx(exact, rel=1e-9)
