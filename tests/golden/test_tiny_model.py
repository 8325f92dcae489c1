"""The tiny model: equal to Hugging Face's Qwen2, equal to itself in pieces, and honest about what it sampled."""

from __future__ import annotations

import hashlib
import json
import math
import random
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbench.errors import CheckpointCorrupt, ConfigError, ModelMissing
from seedbench.policies.tiny.actor import TinyActor, _Row
from seedbench.policies.tiny.backbone import TinyBackbone
from seedbench.policies.tiny.model import Cache
from seedbench.policies.tiny.tokenizer import BOS, END, SPECIAL, TinyTokenizer, build
from seedbench.policies.tiny.transcript import decisions, prompt_ids
from seedbench.rollout import Job, blocks, derive_seed, play
from seedbench.types import Episode, Generation, History, Observation, Skill, View


@pytest.fixture(scope="module")
def backbone() -> TinyBackbone:
    return toys.random_backbone(3)


@pytest.fixture(scope="module")
def env() -> toys.Boxes:
    return toys.Boxes(toys.Options())


def jobs(env: toys.Boxes, count: int = 16, skill: Skill | None = None) -> list[Job]:
    tasks = env.tasks("train")
    return [Job(tasks[i % 6], derive_seed("test", i), 0, i, skill) for i in range(count)]


def run(
    backbone: TinyBackbone, env: toys.Boxes, size: int, temperature: float = 1.0, **more: object
) -> list[Episode]:
    actor = backbone.actor(temperature)
    return [e for part in blocks(jobs(env, **more), size) for e in play(env, actor, part)]  # type: ignore[arg-type]


def rows_of_ids(seed: int, lengths: list[int], vocab: int) -> list[list[int]]:
    rng = random.Random(f"ids/{seed}")
    return [[rng.randrange(3, vocab) for _ in range(n)] for n in lengths]


# -- equality with the reference implementation ---------------------------------------------------------------
def test_the_saved_folder_is_a_qwen2_with_the_same_logits(tmp_path: Path, backbone: TinyBackbone) -> None:
    transformers = pytest.importorskip("transformers")
    backbone.save(tmp_path)
    theirs, info = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, attn_implementation="sdpa", dtype=torch.float32, output_loading_info=True
    )
    assert type(theirs).__name__ == "Qwen2ForCausalLM"
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids = torch.tensor(rows_of_ids(0, [60, 60, 60], backbone.tok.size))
    with torch.inference_mode():
        ours = backbone.model.logits(backbone.model.hidden(ids))
        assert torch.allclose(ours, theirs(ids).logits, rtol=0, atol=2e-5)
        # in double precision nothing but rounding is left
        wide = theirs.double()(ids).logits
        model = toys.random_backbone(3).model.double()
        assert torch.allclose(model.logits(model.hidden(ids)), wide, rtol=0, atol=1e-5)


def test_the_saved_tokenizer_loads_in_transformers(tmp_path: Path, backbone: TinyBackbone) -> None:
    transformers = pytest.importorskip("transformers")
    backbone.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    for text in ("you see three boxes .", "open box 2", "a coin in box 17 , perhaps"):
        assert theirs.encode(text, add_special_tokens=False) == list(backbone.tok.encode(text))
    assert (theirs.pad_token_id, theirs.bos_token_id, theirs.eos_token_id) == (0, 1, 2)


# -- the ragged cache -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_appending_piece_by_piece_equals_one_forward_pass(seed: int, backbone: TinyBackbone) -> None:
    """Rows of different lengths growing by different amounts, some leaving, some coming in later."""
    model, rng = backbone.model, random.Random(seed)
    texts = rows_of_ids(seed, [rng.randint(40, 200) for _ in range(6)], backbone.tok.size)
    cache, fed, live = Cache(model.config, 4, room=8), [0] * 6, [0, 1, 2, 3]
    late = [4, 5]
    with torch.inference_mode():
        while live:
            if late and rng.random() < 0.3:
                live.append(late.pop(0))
                cache.add_rows(1)
            new = []
            for i in live:
                take = min(rng.choice([1, 1, 3, 17]), len(texts[i]) - fed[i])
                new.append(texts[i][fed[i] : fed[i] + take])
                fed[i] += take
            logits = model.append(cache, new)
            for k, i in enumerate(live):
                whole = model.logits(model.hidden(torch.tensor([texts[i][: fed[i]]])))[0, -1]
                assert torch.allclose(logits[k], whole, rtol=0, atol=2e-4)
            keep = [k for k, i in enumerate(live) if fed[i] < len(texts[i])]
            if len(keep) < len(live):
                cache.select(keep)
                live = [live[k] for k in keep]
                if not live and late:
                    live.append(late.pop(0))
                    cache.add_rows(1)
    assert fed == [len(t) for t in texts]


def test_right_padding_changes_nothing(backbone: TinyBackbone) -> None:
    """BR-029: the same row alone and padded beside a longer one."""
    short, long = rows_of_ids(1, [7, 50], backbone.tok.size)
    with torch.inference_mode():
        alone = backbone.model.hidden(torch.tensor([short]))
        both = backbone.model.hidden(torch.tensor([short + [0] * 43, long]))
    assert torch.allclose(alone[0], both[0, :7], rtol=0, atol=1e-5)


# -- acting ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("temperature", [1.0, 0.6, 0.4])
def test_sampled_log_probabilities_are_those_of_scoring(
    temperature: float, backbone: TinyBackbone, env: toys.Boxes
) -> None:
    """BR-030, BR-020: same weights, same temperature, ratio 1 in any batch; the temperature is in the row."""
    episodes = run(backbone, env, 16, temperature)
    samples = backbone.samples(episodes, env)
    assert {s.temperature for s in samples} == {temperature}
    with torch.no_grad():
        together = backbone.score(samples)
        alone = [backbone.score([s]) for s in samples]
    assert len(samples) == 16
    for i, s in enumerate(samples):
        n = len(s.old)
        assert n == len(s.turns) == int(together.mask[i].sum())
        assert together.logp[i, :n].tolist() == pytest.approx(list(s.old), abs=1e-4)
        assert alone[i].logp[0].tolist() == pytest.approx(list(s.old), abs=1e-4)
    assert min(x for s in samples for x in s.old) < -0.5  # there was something to choose


def test_temperature_in_one_choice() -> None:
    """BR-030: logits [2, 0] at T 0.6 -> log-probability -0.03505 of the first (unscaled: -0.12693)."""
    found = set()
    for seed in range(60):
        row = _Row(View(0, seed, History("", (), Observation("")), (), ()))
        row.begin((), [(5, END), (6, END)])
        logits = np.full(10, -50.0)
        logits[5], logits[6] = 2.0, 0.0
        row.choose(logits, 0.6)
        found.add((row.action[0], round(row.logprobs[0], 4)))
    assert found == {(5, -0.0351), (6, -3.3684)}


@pytest.mark.parametrize("size", [1, 3])
def test_actions_do_not_depend_on_the_batch(size: int, backbone: TinyBackbone, env: toys.Boxes) -> None:
    """BR-071: blocks of 1, 3 and 16 play the same episodes."""

    def shape(episodes: list[Episode]) -> list:
        return [
            (e.task.id, e.repeat, e.success, [(t.action, t.prompt_sha256, t.prompt_tokens) for t in e.turns])
            for e in episodes
        ]

    reference, other = run(backbone, env, 16), run(backbone, env, size)
    assert shape(other) == shape(reference)
    for a, b in zip(other, reference, strict=True):
        assert [t.logprob for t in a.turns] == pytest.approx([t.logprob for t in b.turns], abs=1e-4)


def test_greedy_acting_takes_the_most_likely_candidate(backbone: TinyBackbone, env: toys.Boxes) -> None:
    first, second = run(backbone, env, 16, 0.0), run(backbone, env, 4, 0.0)
    assert [[t.action for t in e.turns] for e in first] == [[t.action for t in e.turns] for e in second]
    by_task: dict[str, set] = {}
    for e in first:
        by_task.setdefault(e.task.id, set()).add(tuple(t.action for t in e.turns))
    assert all(len(v) == 1 for v in by_task.values())  # the seed plays no part


def test_sampling_follows_the_model(backbone: TinyBackbone, env: toys.Boxes) -> None:
    """Frequencies of first actions against exp of their log-probabilities (chi-square, very loose)."""
    task = env.tasks("train")[0]
    many = [Job(task, derive_seed("many", i), 0, i) for i in range(240)]
    episodes = [e for part in blocks(many, 60) for e in play(env, backbone.actor(1.0), part)]
    counts: dict[str, int] = {}
    probability: dict[str, float] = {}
    for e in episodes:
        first = e.turns[0]
        counts[first.action] = counts.get(first.action, 0) + 1
        probability[first.action] = math.exp(first.logprob or 0.0)
    chi = sum((n - 240 * probability[a]) ** 2 / (240 * probability[a]) for a, n in counts.items())
    assert sum(probability.values()) == pytest.approx(1.0, abs=0.02)
    assert chi < 40


def test_ids_are_kept_as_sampled(backbone: TinyBackbone, env: toys.Boxes) -> None:
    """BR-077, BR-079, BR-080: what is trained on is what was read and written, position by position."""
    for episode in run(backbone, env, 16):
        traces = [t.trace for t in episode.turns]
        (sample,) = backbone.samples([episode], env)
        ids, positions, allowed = sample.data
        assert ids == [i for t in traces for i in (*t.prompt, *t.action)]
        assert len(positions) == len(allowed) == len(sample.old) == len(sample.turns)
        assert all(ids[p] in options for p, options in zip(positions, allowed, strict=True))
        for k, turn in enumerate(episode.turns):
            read = prompt_ids(backbone.tok, episode.history(k))
            assert turn.prompt_tokens == len(read)
            assert turn.prompt_sha256 == hashlib.sha256(struct.pack(f"<{len(read)}I", *read)).hexdigest()
            assert read == tuple(ids[: len(read)])


def test_only_decided_tokens_of_actions_are_trained(backbone: TinyBackbone, env: toys.Boxes) -> None:
    """BR-022, BR-023: no token of a prompt or an observation; no token that left no choice."""
    for episode in run(backbone, env, 16):
        (sample,) = backbone.samples([episode], env)
        ids, positions, allowed = sample.data
        place, action_places = 0, []
        for t in (t.trace for t in episode.turns):
            place += len(t.prompt)
            action_places += range(place, place + len(t.action))
            place += len(t.action)
        assert set(positions) <= set(action_places)
        assert all(len(o) > 1 for o in allowed)
        assert BOS not in [ids[p] for p in positions]


def test_changing_an_observation_token_of_the_future_changes_no_earlier_score(
    backbone: TinyBackbone, env: toys.Boxes
) -> None:
    episode = max(run(backbone, env, 16), key=lambda e: len(e.turns))
    (sample,) = backbone.samples([episode], env)
    ids, positions, allowed = sample.data
    last = positions[-1]
    other = list(ids)
    other[last + 1 :] = [3] * (len(ids) - last - 1)
    with torch.no_grad():
        a = backbone.score([sample]).logp
        b = backbone.score([replace(sample, data=(other, positions, allowed))]).logp
    assert torch.allclose(a, b, atol=1e-6)


def test_an_acting_skill_is_read_when_acting_and_when_scoring(
    backbone: TinyBackbone, env: toys.Boxes
) -> None:
    """Skill-GRPO trains on the skill-conditioned prompt; a teacher's skill replaces it."""
    skill = Skill("s", "open box 3", "bank")
    episodes = run(backbone, env, 16, skill=skill)
    plain = run(backbone, env, 16)
    samples = backbone.samples(episodes, env)
    assert {s.skill for s in samples} == {"open box 3"}
    assert episodes[0].turns[0].prompt_sha256 != plain[0].turns[0].prompt_sha256
    with torch.no_grad():
        own = backbone.score(samples)
        without = backbone.score(samples, [None] * len(samples))
        again = backbone.score(samples, ["open box 3"] * len(samples))
    assert torch.equal(own.logp, again.logp)
    assert not torch.allclose(own.logp, without.logp, atol=1e-3)
    for i, s in enumerate(samples):
        assert own.logp[i, : len(s.old)].tolist() == pytest.approx(list(s.old), abs=1e-4)


def test_the_entropy_is_that_of_the_choice(backbone: TinyBackbone, env: toys.Boxes) -> None:
    """Closed form from the logits of one row, over allowed tokens only."""
    (sample,) = backbone.samples(run(backbone, env, 1)[:1], env)
    ids, positions, allowed = sample.data
    with torch.no_grad():
        scores = backbone.score([sample])
        logits = backbone.model.logits(backbone.model.hidden(torch.tensor([ids])))[0].double()
    for k, (p, options) in enumerate(zip(positions, allowed, strict=True)):
        z = [math.exp(float(logits[p - 1, o])) for o in options]
        share = [x / sum(z) for x in z]
        assert scores.entropy[0, k].item() == pytest.approx(-sum(x * math.log(x) for x in share), abs=1e-4)
        chosen = share[options.index(ids[p])]
        assert scores.logp[0, k].item() == pytest.approx(math.log(chosen), abs=1e-4)


def test_a_transcript_that_no_longer_fits_ends_with_context_limit(env: toys.Boxes) -> None:
    """BR-088, BR-083: policy "stop"; the others go on undisturbed, the sampled turns are all kept."""
    long = toys.Boxes(toys.Options(steps=30))
    small, wide = toys.random_backbone(3, context=170), toys.random_backbone(3, context=1024)
    cut, whole = run(small, long, 16), run(wide, long, 16)
    stopped = [i for i, e in enumerate(cut) if e.status == "context_limit"]
    assert 0 < len(stopped) < 16
    for i, (a, b) in enumerate(zip(cut, whole, strict=True)):
        actions = [t.action for t in b.turns]
        assert [t.action for t in a.turns] == actions[: len(a.turns)]
        if i in stopped:
            assert (a.success, a.score) == (False, 0.0)
            assert len(a.turns) < len(b.turns)
        else:
            assert len(a.turns) == len(b.turns)
    assert len(small.samples(cut, long)) >= 16 - sum(not e.turns for e in cut)


def test_a_skill_that_does_not_fit_is_refused_and_never_cut(backbone: TinyBackbone, env: toys.Boxes) -> None:
    """BR-086."""
    samples = backbone.samples(run(backbone, env, 16), env)
    with pytest.raises(ConfigError, match="context"):
        backbone.score(samples, ["open box 2 " * 200] + [None] * 15)


def test_scores_do_not_depend_on_row_order_and_padding_has_finite_gradients(env: toys.Boxes) -> None:
    fresh = toys.random_backbone(3)
    samples = fresh.samples(run(fresh, env, 16), env)
    scores = fresh.score(samples)
    scores.logp.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in fresh.parameters() if p.grad is not None)
    with torch.no_grad():
        back = fresh.score(samples[::-1])
    for i in range(len(samples)):
        n = len(samples[i].old)
        assert torch.allclose(scores.logp[i, :n], back.logp[len(samples) - 1 - i, :n], atol=1e-5)


def test_the_frozen_copy_stays(backbone: TinyBackbone, env: toys.Boxes) -> None:
    mine = toys.random_backbone(5)
    frozen = mine.frozen()
    before = frozen.sha256()
    samples = mine.samples(run(mine, env, 16), env)
    optimizer = torch.optim.SGD(mine.parameters(), 0.1)
    (-mine.score(samples).logp.sum()).backward()
    optimizer.step()
    assert frozen.sha256() == before != mine.sha256()
    assert not frozen.score(samples).logp.requires_grad


# -- files ----------------------------------------------------------------------------------------------------
def test_saving_and_loading_keeps_every_bit(tmp_path: Path, backbone: TinyBackbone) -> None:
    backbone.save(tmp_path)
    loaded = TinyBackbone.load(tmp_path)
    assert loaded.sha256() == backbone.sha256()
    assert loaded.model.config == backbone.model.config
    again = tmp_path / "again"
    loaded.save(again)
    for name in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "garbage", "other"])
def test_a_damaged_folder_is_named(tmp_path: Path, name: str, damage: str, backbone: TinyBackbone) -> None:
    backbone.save(tmp_path)
    path = tmp_path / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {"empty": b"", "half": data[: len(data) // 2], "garbage": b"\x00\xff" * 99, "other": b"{}"}[
                damage
            ]
        )
    with pytest.raises(CheckpointCorrupt, match=str(tmp_path)):
        TinyBackbone.load(tmp_path)


def test_weights_of_another_shape_are_refused(tmp_path: Path, backbone: TinyBackbone) -> None:
    backbone.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["tiny"]["layers"] = 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointCorrupt):
        TinyBackbone.load(tmp_path)


def test_missing_weights_say_how_to_make_them(tmp_path: Path) -> None:
    from seedbench.config import BackboneSection
    from seedbench.policies.backbones import load_backbone

    with pytest.raises(ModelMissing, match="pretrain"):
        load_backbone(BackboneSection(options={"path": str(tmp_path)}), "boxes")
    with pytest.raises(ConfigError, match="path"):
        load_backbone(BackboneSection(options={"paht": "x"}), "boxes")


# -- the tokenizer --------------------------------------------------------------------------------------------
WORDS = [
    w for w in toys.tokenizer().inner.get_vocab() if w.isalpha() and len(w) > 1 and w not in ("and", "the")
]


@given(st.lists(st.sampled_from([*WORDS, "box 1", "box 2", "box 3", ".", ","]), max_size=20))
@settings(max_examples=80, deadline=None)
def test_known_words_come_back(words: list[str]) -> None:
    tok: TinyTokenizer = toys.tokenizer()
    words = [w for w in words if w not in ("you", ".", ",")]  # filler words and , . are dropped by design
    text = " ".join(words)
    assert tok.decode(tok.encode(text)) == text
    assert len(tok.encode(text)) == len(words)


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_encodes_to_ids_of_the_vocabulary_and_decodes(text: str) -> None:
    """BR-106: emoji, CJK, NUL, lone surrogates."""
    tok: TinyTokenizer = toys.tokenizer()
    ids = tok.encode(text)
    assert all(0 <= i < tok.size for i in ids)
    again = tok.encode(tok.decode(ids))
    assert tok.encode(tok.decode(again)) == again


@pytest.mark.parametrize("text", ["\ud835", "a \udfff b", "open \ud800box 2"])
def test_a_lone_surrogate_is_no_crash(text: str) -> None:
    """BR-106."""
    tok: TinyTokenizer = toys.tokenizer()
    assert all(0 <= i < tok.size for i in tok.encode(text))


@pytest.mark.parametrize("word", SPECIAL)
def test_text_cannot_forge_control_tokens(word: str) -> None:
    """An observation that spells a control token out stays text: it can neither end an action nor open a skill."""
    tok: TinyTokenizer = toys.tokenizer()
    assert not set(tok.encode(f"see {word} box 2")) & set(range(len(SPECIAL)))


def test_entity_tokens_are_one_decision() -> None:
    tok = TinyTokenizer(build(["open", "cabinet 12", "cabinet 1"], {"cabinet": 20}))
    assert len(tok.encode("open cabinet 12")) == 2
    assert tok.decode(tok.encode("open cabinet 12")) == "open cabinet 12"


def test_unknown_words_are_spelled() -> None:
    tok: TinyTokenizer = toys.tokenizer()
    ids = tok.encode("open zyxw")
    assert tok.decode(ids) == "open zyxw"
    assert len(ids) == 5


@given(
    st.lists(
        st.lists(st.integers(3, 9), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8, unique=True
    ),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_decisions_are_where_candidates_part(candidates: list[tuple[int, ...]], rng: random.Random) -> None:
    """The decided positions and options single the action out, and nothing else is decided."""
    ended = [(*c, END) for c in candidates]
    action = rng.choice(ended)
    positions, allowed = decisions(action, ended)
    left = ended
    for t, token in enumerate(action):
        options = {c[t] for c in left if len(c) > t}
        if t in positions:
            assert set(allowed[positions.index(t)]) == options
            assert len(options) > 1
        else:
            assert options == {token}
        left = [c for c in left if len(c) > t and c[t] == token]
    assert left == [action]


def test_an_actor_notices_wrong_use(backbone: TinyBackbone, env: toys.Boxes) -> None:
    actor: TinyActor = backbone.actor(1.0)
    view = View(
        0,
        1,
        History("find the key", (), Observation("you see", ("wait here", "look around"))),
        (),
        ("look around", "wait here"),
    )
    other = replace(view, slot=1)
    answers: list[Generation] = actor.act([view, other])
    assert all(a.text in view.choices for a in answers)
    with pytest.raises(ValueError, match="forgotten"):
        actor.act([other])
