"""The one loop that plays episodes, for training and for evaluation.

Only running episodes are asked for an action; a finished one costs nothing. Every episode owns its seed, so
what it does depends neither on its neighbours nor on the number of workers. Work is cut into blocks of fixed
composition (:func:`blocks`): a block is always played as one batch, by whichever worker, which keeps even
the last bit of a log-probability reproducible.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seedbench.contracts import Environment, Policy, Session
from seedbench.types import (
    AGENT_ENDINGS,
    Action,
    Episode,
    Generation,
    History,
    Observation,
    PastTurn,
    Skill,
    Task,
    Turn,
    View,
)


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play. ``seed`` drives the policy, ``world_seed`` the environment: the plays of a group
    share the latter, so that they start from the same state. ``repeat`` counts plays of one task."""

    task: Task
    seed: int
    world_seed: int = 0
    repeat: int = 0
    skill: Skill | None = None


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from names and numbers; equal on every machine."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def panel_world_seed(task_id: str, repeat: int) -> int:
    """World seed of an evaluation episode: the same for every method, run and seed, so that all start alike."""
    return derive_seed("panel", task_id, repeat)


def evaluation_job(task: Task, run_seed: int, repeat: int, skill: Skill | None = None) -> Job:
    """The one way an evaluation episode is set up; records can be played again from it."""
    return Job(
        task, derive_seed(run_seed, "eval", task.id, repeat), panel_world_seed(task.id, repeat), repeat, skill
    )


def blocks(jobs: Sequence[Job], size: int) -> list[list[Job]]:
    """Consecutive blocks of ``size`` jobs: the unit of batching, of work for a worker, and of resuming."""
    return [list(jobs[i : i + size]) for i in range(0, len(jobs), size)]


class _Running:
    """One episode in flight."""

    def __init__(self, env: Environment, job: Job, slot: int) -> None:
        self.env, self.job, self.slot = env, job, slot
        self.session: Session | None = None
        self.episode = Episode(job.task.public, job.seed, job.repeat, acting_skill=job.skill)
        self.past: list[PastTurn] = []
        self.over = False
        self.began = time.perf_counter()
        self.now = Observation("")
        try:
            self.session = env.session()
            start = self.session.reset(job.task, job.world_seed)
            self.episode.instruction = start.instruction
            self.now = start.observation
        except Exception as error:
            self._end("env_error", error)

    def view(self) -> View | None:
        """The next request to the policy. None when the environment raised: the episode is over then."""
        history = History(self.episode.instruction, tuple(self.past), self.now)
        skill = self.job.skill.text if self.job.skill else None
        try:
            messages, choices = self.env.render(history), self.env.choices(history)
        except Exception as error:
            self._end("env_error", error)
            return None
        return View(self.slot, self.job.seed, history, messages, choices, skill)

    def advance(self, answer: Generation, constrained: bool) -> None:
        """Record one generation and carry its action out."""
        if answer.error:
            self._end("context_limit" if answer.error == "context_limit" else "model_error", answer.error)
            return
        completion, action = answer.text, Action("", False)
        try:
            completion = self.env.wrap(answer.text) if constrained else answer.text
            action = self.env.parse(completion)
            result = self.session.step(action)
        except Exception as error:
            self._record(answer, completion, action, 0.0, False)
            self._end("env_error", error)
            return
        self._record(answer, completion, action, result.reward, result.effect)
        self.now = result.observation
        if result.terminated or result.truncated:
            self._end("completed" if result.terminated else "step_limit")

    def fail(self, error: Exception) -> None:
        self._end("model_error", error)

    def _record(
        self, answer: Generation, completion: str, action: Action, reward: float, effect: bool
    ) -> None:
        self.past.append(PastTurn(self.now, action.text))
        self.episode.turns.append(
            Turn(
                observation=self.now,
                completion=completion,
                action=action.text,
                valid=action.valid,
                reason=action.reason,
                effect=effect,
                reward=reward,
                prompt_sha256=answer.prompt_sha256,
                prompt_tokens=answer.prompt_tokens,
                new_tokens=answer.new_tokens,
                logprob=answer.logprob,
                truncated=answer.truncated,
                trace=answer.trace,
            )
        )

    def _end(self, status: str, error: object = "") -> None:
        e = self.episode
        text = str(error) or type(error).__name__ if isinstance(error, Exception) else str(error)
        e.status, e.error, e.last_observation = status, text, self.now  # type: ignore[assignment]
        if status != "env_error" and e.turns and all(t.reason == "empty" for t in e.turns):
            # an agent that never said a word is a silent backend, not a failed agent (BR-040)
            e.status, e.error = "model_error", "the backend gave no output on any turn"
        self.over = True
        try:
            if e.status in AGENT_ENDINGS and self.session is not None:
                outcome = self.session.outcome()
                e.success, e.score = outcome.success, outcome.score
                e.metrics = dict(outcome.metrics)
        except Exception as failure:
            self._spoil(failure)
        try:
            if self.session is not None:
                self.session.close()
        except Exception as failure:
            self._spoil(failure)
        e.seconds = time.perf_counter() - self.began

    def _spoil(self, error: Exception) -> None:
        """The environment raised after the last step: the result cannot be trusted."""
        e = self.episode
        e.status, e.error = "env_error", e.error or str(error) or type(error).__name__
        e.success, e.score, e.metrics = None, None, {}


def play(
    env: Environment,
    policy: Policy,
    jobs: Sequence[Job],
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play one block of jobs side by side; episodes come back in the order of ``jobs``.

    ``on_episode`` is called as each one ends. An environment that raises, wherever, costs its own episode
    (``env_error``); a policy that raises costs the episodes in flight (``model_error``), never the run.
    Privileged policies are handed the sessions through their ``attach`` method.
    """
    running = [_Running(env, job, slot) for slot, job in enumerate(jobs)]
    if policy.privileged:
        policy.attach({r.slot: r.session for r in running})  # type: ignore[attr-defined]
    live = running
    while True:
        ended = [r for r in live if r.over]
        if ended:
            policy.forget([r.slot for r in ended])
            for r in ended:
                if on_episode:
                    on_episode(r.episode)
        live = [r for r in live if not r.over]
        if not live:
            return [r.episode for r in running]
        views = [r.view() for r in live]
        if any(r.over for r in live):
            continue  # the policy is told to forget those before it is asked again
        try:
            answers = policy.act(views)  # type: ignore[arg-type]
            if len(answers) != len(views):
                raise ValueError(f"the policy gave {len(answers)} answers to {len(views)} requests")
        except Exception as error:
            for r in live:
                r.fail(error)
            continue
        for r, answer in zip(live, answers, strict=True):
            r.advance(answer, policy.constrained)
