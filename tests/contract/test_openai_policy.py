"""The OpenAI-compatible policy and annotator against a server of this machine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import toys
from chat_models import ToyEnv

from seedbench.audit.runs import audit_run
from seedbench.config import EnvSection
from seedbench.errors import ConfigError, ExtraMissing
from seedbench.evaluate import evaluate_policy
from seedbench.policies.openai import messages_sha256, openai_policy
from seedbench.reports.builders import table1
from seedbench.rollout import Job, play
from seedbench.train.annotators import ServerAnnotator, annotator_named
from seedbench.types import Episode, Message, Observation, PublicTask, Turn

pytest.importorskip("openai", reason="the extra 'openai' is not installed")
KEY = "sk-not-a-real-key-1234567890"
Reply = Callable[[dict[str, Any], int], tuple[int, Any]]


class Server:
    """Answers with ``reply(body, number)``; keeps every request."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.reply: Reply = lambda body, n: (200, completion("open drawer 1"))
        lock, outer = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    outer.bodies.append(body)
                    status, answer = outer.reply(body, len(outer.bodies))
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header(
                    "Content-Type", "text/html" if isinstance(answer, str) else "application/json"
                )
                self.send_header("Content-Length", str(len(data)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"


def completion(text: str | None, finish: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    return {
        "id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield server
    server.http.shutdown()
    server.http.server_close()


ENV = ToyEnv()


def run(n: int = 3, **options: Any) -> list[Episode]:
    policy = openai_policy("m", 0.4, options)
    return play(ENV, policy, [Job(t, 40 + i) for i, t in enumerate(ENV.tasks(n))])


def test_plays_episodes_and_records_them(server: Server) -> None:
    episodes = run()
    assert [e.status for e in episodes] == ["completed"] * 3
    turn = episodes[0].turns[1]
    assert (turn.completion, turn.prompt_tokens, turn.new_tokens) == ("open drawer 1", 11, 3)
    assert turn.prompt_sha256 == messages_sha256(ENV.render(episodes[0].history(1)))
    assert len(server.bodies) == 9
    assert {(b["model"], b["temperature"], b["max_tokens"]) for b in server.bodies} == {("m", 0.4, 512)}


def test_answers_are_not_crossed(server: Server) -> None:
    """Each episode gets the answer to its own prompt, however many are in flight."""
    server.reply = lambda body, n: (200, completion(body["messages"][0]["content"].split("\n")[0][-5:]))
    for episode in run(9, concurrency=5):
        assert {t.completion for t in episode.turns} == {episode.task.id}


def test_seeds_are_private_and_repeatable(server: Server) -> None:
    run(2), run(2)
    seeds = sorted(b["seed"] for b in server.bodies)
    assert len(set(seeds)) == 6 and seeds[::2] == seeds[1::2] and all(0 <= s < 2**31 for s in seeds)
    server.bodies.clear()
    run(1, seed=False)
    assert all("seed" not in b for b in server.bodies)


def test_transient_failures_are_retried(server: Server) -> None:
    server.reply = lambda body, n: (503, {"error": "busy"}) if n <= 2 else (200, completion("examine"))
    assert run(1)[0].status == "completed"
    assert len(server.bodies) == 5


def test_lasting_failure_costs_only_its_episode_and_no_key(server: Server) -> None:
    """The agent is not blamed, the others go on, and the key reaches no record."""

    def reply(body: dict[str, Any], n: int) -> tuple[int, Any]:
        if "toy-1" in body["messages"][0]["content"]:
            return 401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}
        return 200, completion("examine")

    server.reply = reply
    good, bad, other = run()
    assert (good.status, other.status) == ("completed", "completed")
    assert (bad.status, bad.success) == ("model_error", None)
    assert "AuthenticationError" in bad.error and KEY not in bad.error


def test_unreachable_server_is_a_model_error(server: Server) -> None:
    episode = run(1, base_url="http://127.0.0.1:9/v1", retries=0)[0]
    assert episode.status == "model_error" and "Connection" in episode.error


def test_slow_server_times_out(server: Server) -> None:
    hold = threading.Event()
    server.reply = lambda body, n: (200 if hold.wait(20) else 504, completion("late"))
    episode = run(1, timeout=0.2, retries=0)[0]
    hold.set()
    assert episode.status == "model_error" and "Timeout" in episode.error


@pytest.mark.parametrize("answer", ["<html>login</html>", {"choices": []}])
def test_answers_that_are_no_completion(server: Server, answer: Any) -> None:
    server.reply = lambda body, n: (200, answer)
    episode = run(1, retries=0)[0]
    assert episode.status == "model_error" and episode.error


def test_silent_backend_is_no_failed_agent(server: Server) -> None:
    """BR-040"""
    server.reply = lambda body, n: (200, completion(None))
    assert run(1)[0].status == "model_error"


def test_surrogates_and_cut_answers(server: Server) -> None:
    """BR-106 on the wire; a cut answer is flagged."""
    server.reply = lambda body, n: (200, completion("cut \ud835", "length"))
    policy = openai_policy("m", 0.0)
    view_env = ToyEnv(1)
    episode = play(view_env, policy, [Job(ENV.tasks(1)[0], 0)])[0]
    assert episode.status == "completed"
    assert messages_sha256((Message("user", "a\ud835"),)) == messages_sha256((Message("user", "a?"),))


def test_wrong_option_and_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="max_tokens"):
        openai_policy("m", 0.0, {"max_tokens": 3})
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ExtraMissing, match=r"seedbench\[openai\]"):
        openai_policy("m", 0.0)
    with pytest.raises(ExtraMissing, match=r"seedbench\[openai\]"):
        annotator_named("openai:m", ENV)  # type: ignore[arg-type]


def test_a_served_model_is_evaluated_like_any_other(server: Server, tmp_path: Path) -> None:
    """Its own row, every prompt rebuilt by the audit, played once; a model that is not there breaks off."""
    toys.register()
    server.reply = lambda body, n: (200, completion("<action>open box 1</action>"))
    section, options = EnvSection(name="boxes"), {"base_url": server.url, "retries": 0}
    folder = evaluate_policy(section, "openai:org/m", tmp_path, options=options)
    asked = len(server.bodies)
    assert evaluate_policy(section, "openai:org/m", tmp_path, options=options) == folder
    assert len(server.bodies) == asked  # nothing is played again
    assert {b["temperature"] for b in server.bodies} == {0.4}
    (block,) = table1([folder]).blocks
    assert block.rows[0].labels[:2] == ("vanilla", "openai:org/m") and block.rows[0].ranked
    checks = {c.key: c.status for c in audit_run(folder).checks}
    assert checks["prompts"] == "pass" and "fail" not in checks.values()
    server.reply = lambda body, n: (404, {"error": {"message": "no such model"}})
    broken = evaluate_policy(section, "openai:other", tmp_path, options=options)
    (block,) = table1([broken]).blocks
    assert not block.rows[0].ranked and "broke off" in " ".join(block.notes)


# -- annotator -------------------------------------------------------------------------------------------------
SKILL = '{"episode_summary": "Done.", "episode_skill": "open the drawer, then take the mug"}'


def finished(n: int) -> list[Episode]:
    episodes = []
    for i in range(n):
        episode = Episode(PublicTask(f"t{i}", "s", "g"), i, instruction=f"task number {i}.", success=True)
        episode.turns.append(Turn(Observation("o"), "look", "look", True))
        episodes.append(episode)
    return episodes


def annotator() -> ServerAnnotator:
    found = annotator_named("openai:m", ENV)  # type: ignore[arg-type]
    assert isinstance(found, ServerAnnotator)
    return found


def test_annotations_belong_to_their_episodes(server: Server) -> None:
    def reply(body: dict[str, Any], n: int) -> tuple[int, Any]:
        number = body["messages"][0]["content"].split("task number ")[1].split(".")[0]
        return 200, completion(f"Here it is:\n```json\n{SKILL.replace('mug', f'mug {number}')}\n```")

    server.reply = reply
    skills = annotator()(finished(12))
    assert [s.text[-2:].strip() for s in skills if s] == [str(i) for i in range(12)]
    assert {s.source for s in skills if s} == {"m"}
    assert {(b["temperature"], b["max_tokens"]) for b in server.bodies} == {(0.0, 1024)}


def test_unreadable_analysis_is_asked_for_again(server: Server) -> None:
    """Two more tries, five words at least (methods page 2.6)."""
    answers = ["no json", SKILL.replace("open the drawer, then take the mug", "just do it"), SKILL]
    server.reply = lambda body, n: (200, completion(answers[n - 1]))
    assert annotator()(finished(1))[0] is not None
    assert [b.get("seed") for b in server.bodies] == [None, 1, 2]
    server.bodies.clear()
    server.reply = lambda body, n: (200, completion("never"))
    assert annotator()(finished(1)) == [None] and len(server.bodies) == 3


def test_few_failures_are_counted_many_stop_the_warm_up(server: Server) -> None:
    def failing(share: int) -> Reply:
        def reply(body: dict[str, Any], n: int) -> tuple[int, Any]:
            number = int(body["messages"][0]["content"].split("task number ")[1].split(".")[0])
            return (400, {"error": "no"}) if number < share else (200, completion(SKILL))

        return reply

    server.reply = failing(1)
    skills = annotator()(finished(12))
    assert skills[0] is None and all(skills[1:])
    server.reply = failing(3)
    with pytest.raises(ConfigError, match="did not answer for 3 of 12 episodes"):
        annotator()(finished(12))


def test_annotator_names_are_checked() -> None:
    for name in ("gpt", "openai:", "http://x"):
        with pytest.raises(ConfigError, match="Unknown annotator"):
            annotator_named(name, ENV)  # type: ignore[arg-type]
