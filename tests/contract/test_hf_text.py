"""Prompts of chat models: template, skill, truncation, analysis request, reasoning opened by the template."""

from __future__ import annotations

import pytest
from chat_models import THINKING_TEMPLATE, ToyEnv, tokenizer, write_model

from seedbench.errors import ConfigError
from seedbench.parsing import parse_tagged
from seedbench.policies.hf import load_hf
from seedbench.policies.hf.text import ChatText, truncated
from seedbench.prompt import with_skill
from seedbench.rollout import Job, play
from seedbench.train.analysis_prompt import analysis_messages
from seedbench.types import Episode, History, Message, Observation, PublicTask, Turn, View

USER = "You are an agent.\n\nYour task is to: heat the egg\nYou see a drawer 1.\n\nNow choose."


def chat(template: str | None = None) -> ChatText:
    words = tokenizer(template) if template else tokenizer()
    return ChatText(words, [words.eos_token_id], False)


def placed(position: str, text: str = USER, task: str = "heat the egg") -> str:
    messages = (Message("system", "s"), Message("user", text))
    out = with_skill(messages, "Open the microwave first.", position, task)  # type: ignore[arg-type]
    assert out[0] == messages[0] and len(out) == 2
    return out[1].content


def test_skill_before_everything() -> None:
    assert placed("prefix") == f"[Privileged Skill Information]\nOpen the microwave first.\n\n{USER}"


def test_skill_after_the_task_line() -> None:
    head, _, tail = placed("after-task").partition("\n\n[Episode-Level Skill]\nOpen the microwave first.\n")
    assert head.endswith("Your task is to: heat the egg") and head + tail == USER


def test_skill_before_the_request_where_no_line_states_the_task() -> None:
    content = placed("after-task", task="something else")
    assert content.endswith("[Episode-Level Skill]\nOpen the microwave first.\n\nNow choose.")
    assert placed("after-task", "Act.", "").endswith("\n\nAct.")


@pytest.mark.parametrize("env", ["alfworld", "search_qa", "webshop"])
def test_every_environment_shows_its_task_where_seed_wants_the_skill(env: str) -> None:
    """The skill must follow the task and precede the request, on the first turn and on later ones."""
    from seedbench.config import EnvSection, make_environment

    environment = make_environment(EnvSection(name=env))
    split = next(iter(environment.splits()))
    session = environment.session()
    start = session.reset(environment.tasks(split)[0], 0)
    history = History(start.instruction, (), start.observation)
    for _ in range(2):
        messages = environment.render(history)
        content = with_skill(messages, "ZXQ-1 skill", "after-task", history.instruction)[0].content
        task_at, skill_at = content.find(history.instruction), content.find("ZXQ-1 skill")
        assert 0 <= task_at < skill_at < len(content) - 20
        action = environment.choices(history)[1]  # of Search-QA the first one answers and ends
        result = session.step(environment.parse(environment.wrap(action)))
        past = Episode(PublicTask("t", "s", "g"), 0, instruction=start.instruction)
        past.turns.append(Turn(history.observation, "", action, True))
        past.last_observation = result.observation
        history = past.history()
    session.close()


@pytest.mark.parametrize("skill", ["", "  \n"])
def test_empty_skill_is_refused(skill: str) -> None:
    """BR-089: never "None" and never an empty block."""
    with pytest.raises(ConfigError, match="empty skill"):
        with_skill((Message("user", USER),), skill, "prefix", "heat the egg")


@pytest.mark.parametrize(("how", "length"), [("left", 512), ("middle", 512), ("stop", None), ("error", None)])
def test_truncation_keeps_its_promise(how: str, length: int | None) -> None:
    """BR-084: 558 tokens into 512. ``middle`` keeps frame, task and request, which stand at the two ends."""
    ids = tuple(range(558))
    cut = truncated(ids, 512, how)  # type: ignore[arg-type]
    assert (None if cut is None else len(cut)) == length
    if how == "left":
        assert cut == ids[46:]
    if how == "middle":
        assert cut == (*ids[:256], *ids[302:])
    assert truncated(ids[:512], 512, how) == ids[:512]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("how", ["stop", "error", "left", "middle"])
def test_overlong_prompts_follow_the_named_policy(how: str, folder) -> None:
    """BR-084, BR-088: ``stop`` is the agent's ending, ``error`` is not; the cutting ones finish all turns."""
    options = {"max_new_tokens": 2, "max_prompt_tokens": 30, "truncation": how}
    env, backbone = ToyEnv(), load_hf("hf:toy", str(folder), options)
    episode = play(env, backbone.actor(1.0), [Job(env.tasks(1)[0], 1)])[0]
    if how == "stop":
        assert (episode.status, len(episode.turns)) == ("context_limit", 0) and episode.success is not None
    elif how == "error":
        assert episode.status == "model_error" and episode.success is None
        assert "tokens, the limit is 30" in episode.error and any(c.isdigit() for c in episode.error[:25])
    else:
        assert (episode.status, len(episode.turns)) == ("completed", 3)
        assert {t.prompt_tokens for t in episode.turns} == {30}
        samples = backbone.samples([episode], env)
        assert all(len(s.data.trace.prompt) == 30 for s in samples)


def test_prompt_hash_is_of_the_tokens_fed(folder) -> None:
    from seedbench.policies.tiny.actor import ids_sha256

    env, backbone = ToyEnv(), load_hf("hf:toy", str(folder), {"max_new_tokens": 2})
    episode = play(env, backbone.actor(1.0), [Job(env.tasks(1)[0], 1)])[0]
    for i, turn in enumerate(episode.turns):
        ids = backbone.text.prompt(env.render(episode.history(i)))
        assert turn.prompt_sha256 == ids_sha256(ids) and turn.prompt_tokens == len(ids)


def test_template_that_drops_reasoning_makes_one_row_per_turn(tmp_path) -> None:
    """BR-081: turn n+1 is no extension of turn n, so nothing is ever merged: trained tokens = sampled tokens."""
    write_model(tmp_path, template=THINKING_TEMPLATE)
    env, backbone = ToyEnv(), load_hf("hf:toy", str(tmp_path), {"max_new_tokens": 5})
    episodes = play(env, backbone.actor(1.0), [Job(t, i) for i, t in enumerate(env.tasks(2))])
    samples = backbone.samples(episodes, env)
    turns = [t for e in episodes for t in e.turns]
    assert [set(s.turns) for s in samples] == [{i} for e in episodes for i in range(len(e.turns))]
    assert sum(len(s.turns) for s in samples) == sum(t.new_tokens for t in turns)
    for s, t in zip(samples, turns, strict=True):
        assert t.completion == "<think>" + backbone.text.decode(s.data.trace.response)


def test_reasoning_opened_by_the_template() -> None:
    """BR-082: one opening and one closing tag in the record, and the parser is content."""
    text = chat(THINKING_TEMPLATE)
    opened = text.opened((Message("user", "u"),))
    completion = opened + "r</think><action>look</action>"
    assert (completion.count("<think>"), completion.count("</think>")) == (1, 1)
    assert parse_tagged(completion, fallback_chars=30, require_think=True).valid
    assert chat().opened((Message("user", "u"),)) == ""


def test_prefilled_demonstration_is_not_opened_twice(tmp_path) -> None:
    write_model(tmp_path, template=THINKING_TEMPLATE)
    env, backbone = ToyEnv(), load_hf("hf:toy", str(tmp_path), {"max_new_tokens": 5})
    episode = Episode(PublicTask("toy-0", "toy", "room"), 0, instruction="x", success=True)
    episode.turns.append(Turn(Observation("o", ("look",)), "<think>r</think>look", "look", True))
    row = backbone.samples([episode], env)[0].data.trace
    assert backbone.text.decode((*row.prompt, *row.response)).count("<think>") == 1


def test_missing_chat_template_is_named() -> None:
    words = tokenizer()
    words.chat_template = None
    with pytest.raises(ConfigError, match="no chat template"):
        ChatText(words, [2], False)


def test_lone_surrogates_reach_no_tokenizer() -> None:
    """BR-106"""
    text = chat()
    assert (
        text.decode(text.prompt((Message("user", "a\ud835b \u00e9\U0001f600"),))).count(
            "a?b \u00e9\U0001f600"
        )
        == 1
    )


def long_episode(n: int) -> Episode:
    episode = Episode(PublicTask("t", "s", "g"), 0, instruction="find it", success=False)
    for i in range(n):
        episode.turns.append(Turn(Observation(f"room {i}."), f"<think>t</think>go {i}", f"go {i}", i != 3))
    return episode


def test_analysis_lists_every_step() -> None:
    """BR-091: 12 steps in, 12 steps listed, invalid ones marked; no word of hidden fields."""
    content = analysis_messages(long_episode(12))[0].content
    assert all(f"[Step {i}]" in content for i in range(1, 13)) and "[Step 13]" not in content
    assert content.count("broke the format") == 1 and "left out" not in content
    assert "Outcome: failure" in content and "find it" in content


def test_analysis_says_what_it_leaves_out() -> None:
    """BR-091: the cut stands in the middle and carries its number; too small a room gives nothing."""
    content = analysis_messages(long_episode(12), 5)[0].content
    assert [i for i in range(1, 13) if f"[Step {i}]" in content] == [1, 2, 3, 11, 12]
    assert "(7 steps left out here)" in content
    text, episode = chat(), long_episode(40)
    whole = text.analysis(episode, 1 << 20)
    assert whole is not None
    fitted = text.analysis(episode, len(whole) // 2)
    assert fitted is not None and len(fitted) <= len(whole) // 2
    assert "left out here" in text.decode(fitted)
    assert text.analysis(episode, 10) is None


def test_analysis_that_cannot_fit_is_no_skill(tmp_path) -> None:
    write_model(tmp_path, context=200)
    env = ToyEnv()
    backbone = load_hf("hf:toy", str(tmp_path), {"max_new_tokens": 2, "analysis_tokens": 20})
    assert backbone.analyse([long_episode(3)], env) == [""]
    with pytest.raises(ConfigError, match="do not fit the context of 200"):
        backbone.analysis_nll([long_episode(3)], ["x"], env)


def test_no_choice_is_that_episodes_error(folder) -> None:
    backbone = load_hf("hf:toy", str(folder), {"decoding": "choices"})
    history = History("x", (), Observation("o"))
    views = [View(i, i, history, (Message("user", "u"),), c) for i, c in enumerate([(), ("look", "go")])]
    bad, good = backbone.actor(1.0).act(views)
    assert "no action" in bad.error and good.text in ("look", "go") and not good.error


def test_choice_prefix_is_appended_not_sampled(folder) -> None:
    options = {"decoding": "choices", "choice_prefix": "<action>"}
    backbone = load_hf("hf:toy", str(folder), options)
    view = View(0, 0, History("x", (), Observation("o")), (Message("user", "u"),), ("look", "go"))
    answer = backbone.actor(1.0).act([view])[0]
    assert backbone.text.decode(answer.trace.response) == "<action>" + answer.text
    assert min(answer.trace.positions) >= len(backbone.text.encode("<action>")) - 1
