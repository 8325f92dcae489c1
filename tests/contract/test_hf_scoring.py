"""The chat-model backbone in numbers: sampled tokens, their log-probabilities, padding, batches, teachers."""

from __future__ import annotations

import random

import pytest
import torch
from chat_models import ToyEnv, write_model
from transformers import AutoModelForCausalLM

from seedbench.errors import ConfigError
from seedbench.policies.hf import HfBackbone, load_hf
from seedbench.policies.hf.model import Stream
from seedbench.policies.hf.sampling import pick, sample_free
from seedbench.rollout import Job, play
from seedbench.train.batch import Rows, score_rows
from seedbench.types import Episode, Skill

ENV = ToyEnv()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return write_model(tmp_path_factory.mktemp("model"), sharp=1.5)


@pytest.fixture(scope="module")
def free(folder) -> HfBackbone:
    return load_hf("hf:toy", str(folder), {"max_new_tokens": 6})


@pytest.fixture(scope="module")
def choosing(folder) -> HfBackbone:
    return load_hf("hf:toy", str(folder), {"decoding": "choices"})


def episodes(
    backbone: HfBackbone, n: int = 4, temperature: float = 0.7, skill: Skill | None = None
) -> list[Episode]:
    jobs = [Job(t, 100 + i, skill=skill) for i, t in enumerate(ENV.tasks(n))]
    return play(ENV, backbone.actor(temperature), jobs)


def reference_logprobs(model, prompt, response, temperature) -> list[float]:
    """Straight from transformers: one unpadded row, the whole vocabulary."""
    ids = torch.tensor([[*prompt, *response]])
    logp = torch.log_softmax(model(ids).logits[0].detach() / temperature, -1)
    return [float(logp[len(prompt) + k - 1, token]) for k, token in enumerate(response)]


@pytest.mark.parametrize("kind", ["free", "choosing"])
def test_score_gives_what_was_sampled(kind: str, request: pytest.FixtureRequest) -> None:
    """BR-030: rollout and trainer agree at the sampling temperature, for every token, in padded batches."""
    backbone = request.getfixturevalue(kind)
    samples = backbone.samples(episodes(backbone), ENV)
    assert {s.temperature for s in samples} == {0.7}
    with torch.no_grad():
        scores = backbone.score(samples)
    assert len({s.length for s in samples}) > 1
    for i, s in enumerate(samples):
        assert scores.mask[i].sum() == len(s.turns) == len(s.old) == len(s.data.trace.positions)
        assert scores.logp[i, : len(s.old)].tolist() == pytest.approx(s.old, abs=1e-4)
        assert (scores.logp[i, len(s.old) :] == 0).all() and (scores.entropy[i, len(s.old) :] == 0).all()


def test_score_equals_plain_transformers(free: HfBackbone, folder) -> None:
    """BR-021, BR-029: exactly the response's tokens, no shift, no trace of padding."""
    samples = free.samples(episodes(free, 3), ENV)
    plain = AutoModelForCausalLM.from_pretrained(folder).double()
    with torch.no_grad():
        logp = free.score(samples).logp
    for i, s in enumerate(samples):
        expected = reference_logprobs(plain, s.data.trace.prompt, s.data.trace.response, 0.7)
        assert logp[i, : len(expected)].tolist() == pytest.approx(expected, abs=1e-4)


def test_entropy_is_that_of_the_choice(choosing: HfBackbone) -> None:
    samples = choosing.samples(episodes(choosing), ENV)
    with torch.no_grad():
        scores = choosing.score(samples)
    for i, s in enumerate(samples):
        for k, allowed in enumerate(s.data.trace.allowed):
            assert 0 <= float(scores.entropy[i, k]) <= torch.log(torch.tensor(len(allowed))) + 1e-5


def test_rows_do_not_know_their_neighbours(free: HfBackbone) -> None:
    """BR-020: old and teacher scores are the same whatever the micro-batch."""
    samples = free.samples(episodes(free), ENV)
    n = len(samples)
    rows = Rows(samples, [[1.0] * len(s.turns) for s in samples], [True] * n, [list(s.old) for s in samples])
    skills = ["open the drawer first" if i % 2 else "take the apple, then clean it" for i in range(n)]
    for texts in (None, skills):
        alone = score_rows(free, rows, range(n), 1, texts)
        together = score_rows(free, rows, range(n), 1 << 20, texts)
        for a, b in zip(alone, together, strict=True):
            assert a == pytest.approx(b, abs=1e-4)


def test_teacher_without_a_difference_has_no_gap(free: HfBackbone) -> None:
    samples = free.samples(episodes(free, 2), ENV)
    with torch.no_grad():
        same = free.score(samples, [None] * len(samples)).logp
        plain = free.score(samples).logp
        taught = free.score(samples, ["open the drawer"] * len(samples)).logp
    assert torch.equal(same, plain)
    assert (taught - plain).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["free", "choosing"])
def test_batch_composition_changes_no_token(kind: str, request: pytest.FixtureRequest, folder) -> None:
    """BR-071: alone, side by side, or cut into small batches: same completions, same log-probabilities."""
    backbone = request.getfixturevalue(kind)
    together = episodes(backbone)
    alone = [play(ENV, backbone.actor(0.7), [Job(t, 100 + i)])[0] for i, t in enumerate(ENV.tasks(4))]
    small = load_hf("hf:toy", str(folder), backbone.options.model_dump() | {"batch_tokens": 1})
    for a, b, c in zip(together, alone, episodes(small), strict=True):
        texts = [[t.completion for t in e.turns] for e in (a, b, c)]
        assert texts[0] == texts[1] == texts[2]
        assert [t.trace.response for t in a.turns] == [t.trace.response for t in b.turns]
        for x, y in zip(a.turns, b.turns, strict=True):
            assert x.logprob == pytest.approx(y.logprob, abs=1e-4)


def test_seeds_differ_and_repeat(free: HfBackbone) -> None:
    task = ENV.tasks(1)[0]
    texts = [
        [t.completion for t in play(ENV, free.actor(1.0), [Job(task, seed)])[0].turns] for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_left_padded_row_equals_unpadded(free: HfBackbone) -> None:
    """BR-029: positions come from lengths; holes left by shorter chunks never count."""
    short, long = list(range(10, 14)), list(range(20, 60))
    with torch.no_grad():
        padded, alone = Stream(free.model, 2), Stream(free.model, 1)
        assert torch.allclose(padded.append([short, long])[0], alone.append([short])[0], atol=1e-5)
        assert torch.allclose(padded.append([[7], [8, 9, 11]])[0], alone.append([[7]])[0], atol=1e-5)
        padded.select([0])
        assert torch.allclose(padded.append([[5, 6]])[0], alone.append([[5, 6]])[0], atol=1e-5)


def test_temperature_of_the_log_probability() -> None:
    """BR-030: logits [2, 0], T = 0.6, token 0."""
    tokens, logp = pick(torch.tensor([[2.0, 0.0]]), 0.6, [0.0])
    assert tokens == [0] and logp[0] == pytest.approx(-0.03505, abs=1e-5)
    greedy, at_one = pick(torch.tensor([[0.0, 2.0]]), 0.0, [])
    assert greedy == [1] and at_one[0] == pytest.approx(-0.12693, abs=1e-5)


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0, float("-inf")]])
    stream = random.Random("draws")
    counts = [0] * 4
    for _ in range(4000):
        counts[pick(logits, 1.3, [stream.random()])[0][0]] += 1
    expected = torch.softmax(logits[0] / 1.3, -1).tolist()
    assert counts[3] == 0
    assert [c / 4000 for c in counts] == pytest.approx(expected, abs=0.03)
    assert pick(logits, 1.3, [0.0])[0] == [0] and pick(logits, 1.3, [1 - 2**-53])[0] == [2]


def test_end_token_is_kept_when_sampled_and_never_added(free: HfBackbone) -> None:
    """BR-021, BR-026, BR-028: pad and end token are one id here; nothing not sampled is trained on."""
    assert free.text.tokenizer.pad_token_id == free.text.end
    prompts = [free.text.encode("open drawer 1 " * (1 + i % 3)) for i in range(40)]
    streams = [random.Random(f"end/{i}") for i in range(40)]
    # every third id ends a response, so that both endings occur
    stop = frozenset({free.text.end, *range(0, free.model.inner.config.vocab_size, 3)})
    out = sample_free(free.model, prompts, streams, stop, 3, 1.0)
    assert {s.truncated for s in out} == {True, False}
    for s in out:
        assert len(s.ids) == len(s.logprobs) == len(s.positions) <= 3
        assert all(i not in stop for i in s.ids[:-1])
        assert s.truncated == (s.ids[-1] not in stop) and (not s.truncated or len(s.ids) == 3)


def test_sampled_ids_are_kept(free: HfBackbone) -> None:
    """BR-077, BR-079, BR-080: the trained ids are the sampled ones even where decoding loses them."""
    played = episodes(free, 4, temperature=1.0)
    samples = free.samples(played, ENV)
    turns = [t for e in played for t in e.turns]
    drifted = 0
    for s, t in zip(samples, turns, strict=True):
        assert s.data.trace.response == t.trace.response and s.data.trace.prompt == t.trace.prompt
        assert len(t.trace.response) == len(t.trace.positions) == len(t.trace.logprobs) == t.new_tokens
        drifted += free.text.encode(t.completion) != t.trace.response
    assert drifted > 0, "no completion of a random model survives decode and encode: the test would be empty"
    assert sum(len(s.turns) for s in samples) == sum(t.new_tokens for t in turns)


def test_forced_tokens_are_not_decisions(choosing: HfBackbone) -> None:
    """Names with a common beginning; every candidate ends in the end token, so none hides another."""
    for e in episodes(choosing):
        for t in e.turns:
            trace = t.trace
            assert t.completion in ("open drawer 1", "open drawer 12", "examine")
            assert choosing.text.decode(trace.response) == t.completion
            assert trace.response[-1] == choosing.text.end
            assert len(trace.positions) < len(trace.response)
            assert all(len(a) > 1 for a in trace.allowed)


def test_only_the_response_is_trained(free: HfBackbone) -> None:
    """BR-022, BR-023: gradients reach log-probabilities of response tokens only, the header is prompt."""
    samples = free.samples(episodes(free, 1), ENV)
    s = samples[0]
    assert free.text.tokenizer.decode(s.data.trace.prompt).endswith("<|im_start|>assistant\n")
    rows = [[*s.data.trace.prompt, *s.data.trace.response]]
    where = [[len(s.data.trace.prompt) + p for p in s.data.trace.positions]]
    direct, _ = free.model.score(rows, where, [s.temperature])
    assert torch.allclose(direct, free.score([s]).logp[0])
    assert direct.requires_grad


def test_gradients_do_not_depend_on_checkpointing(folder) -> None:
    """Recomputed activations give the same gradient, and training mode does not linger."""
    found = []
    for checkpointing in (False, True):
        options = {"max_new_tokens": 4, "gradient_checkpointing": checkpointing}
        backbone = load_hf("hf:toy", str(folder), options)
        samples = backbone.samples(episodes(backbone, 2), ENV)
        backbone.score(samples).logp.sum().backward()
        found.append([p.grad.clone() for p in backbone.parameters()])
        assert not backbone.model.inner.training
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, atol=1e-4)


def test_teacher_overflow_names_both_numbers(folder) -> None:
    """BR-086: a skill is never cut and never cuts the task; the update stops with the two numbers."""
    backbone = load_hf("hf:toy", str(folder), {"max_new_tokens": 4, "context": 500})
    samples = backbone.samples(episodes(backbone, 1), ENV)
    with pytest.raises(ConfigError, match=r"prompt of \d+ tokens .* context of 500 tokens"):
        backbone.score(samples[:1], ["never open the drawer " * 200])


def test_acting_skill_stays_in_its_prompt(free: HfBackbone) -> None:
    """Skill-GRPO: sampled and trained under the same prompt; ``None`` asks for ordinary history."""
    skill = Skill("", "open the drawer before the fridge")
    with_it, without = episodes(free, 2, skill=skill), episodes(free, 2)
    samples = free.samples(with_it, ENV)
    assert "[Privileged Skill Information]\nopen the drawer" in free.text.decode(samples[0].data.trace.prompt)
    with torch.no_grad():
        own = free.score(samples).logp
        plain = free.score(samples, [None] * len(samples)).logp
    assert own[0, : len(samples[0].old)].tolist() == pytest.approx(samples[0].old, abs=1e-4)
    assert not torch.allclose(own, plain, atol=1e-3)
    assert free.samples(without, ENV)[0].skill is None


def test_demonstrations_are_scored_too(free: HfBackbone, choosing: HfBackbone) -> None:
    """Turns without a trace are encoded once: completion or chosen action, and the end token."""
    for backbone in (free, choosing):
        played = episodes(backbone, 1)
        for t in played[0].turns:
            t.trace = None
            t.completion = t.action = "open drawer 12"
        samples = backbone.samples(played, ENV)
        assert len(samples) == 3
        for s in samples:
            assert s.data.trace.response[-1] == backbone.text.end
            assert set(s.old) == {0.0} and len(s.old) == len(s.turns)
        assert torch.isfinite(backbone.score(samples).logp).all()


def test_analysis_is_greedy_and_learnable(free: HfBackbone, folder) -> None:
    played = episodes(free, 3)
    backbone = load_hf("hf:toy", str(folder), {"analysis_tokens": 5, "max_new_tokens": 6})
    alone = [backbone.analyse([e], ENV)[0] for e in played]
    assert backbone.analyse(played, ENV) == alone and len(alone) == 3
    target = '{"episode_summary": "s", "episode_skill": "open it"}'
    nll, tokens = backbone.analysis_nll(played, [target] * 3, ENV)
    assert tokens == 3 * (len(backbone.text.encode(target)) + 1)
    nll.backward()
    assert any(p.grad.abs().sum() > 0 for p in backbone.parameters())


def test_frozen_copy_stays(folder) -> None:
    backbone = load_hf("hf:toy", str(folder), {"max_new_tokens": 4})
    twin, before = backbone.frozen(), backbone.sha256()
    assert twin.sha256() == before
    with torch.no_grad():
        next(backbone.parameters()).add_(0.1)
    assert twin.sha256() == before != backbone.sha256()
    assert not any(p.requires_grad for p in twin.parameters())
    n = sum(p.numel() for p in backbone.parameters())
    assert (backbone.flops(10, False), backbone.flops(10, True)) == (20.0 * n, 60.0 * n)


def test_bfloat16_products_keep_float32_weights(folder) -> None:
    """The GPU's default arithmetic: an update of 1e-6 is kept, rollout and trainer stay close."""
    backbone = load_hf("hf:toy", str(folder), {"max_new_tokens": 4, "dtype": "bfloat16"})
    samples = backbone.samples(episodes(backbone, 2), ENV)
    weight = next(backbone.parameters())
    assert weight.dtype == torch.float32
    scores = backbone.score(samples)
    assert scores.logp.dtype == torch.float32
    for i, s in enumerate(samples):
        assert scores.logp[i, : len(s.old)].tolist() == pytest.approx(s.old, abs=0.25)
    scores.logp.sum().backward()
    before = weight.detach().clone()
    torch.optim.AdamW(backbone.parameters(), 1e-6, weight_decay=0.0).step()
    touched = weight.grad.abs() > 1e-3
    assert touched.sum() > 100 and (weight != before)[touched].all()
