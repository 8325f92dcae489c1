"""Search-based question answering behind the environment contract.

An episode: the question; up to three searches (``sdar``) or four (``search-r1``); one answer. Success is
exact match of the answer, and only text the agent wrote as its answer is ever scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from seedbench.envs.search_qa import metrics, protocol, spans, teach
from seedbench.envs.search_qa.bank import bank
from seedbench.envs.search_qa.questions import SETS, Question

from seedbench.contracts import EnvSpec
from seedbench.errors import DataMissing, EpisodeOver
from seedbench.panel import Panel, sha256_lines
from seedbench.search.base import Hit, Retriever
from seedbench.types import (
    Action,
    Episode,
    HiddenTask,
    History,
    Message,
    Observation,
    Outcome,
    PublicTask,
    Skill,
    Start,
    StepResult,
    Task,
)


class SearchQA:
    """The shared half: questions by split, a retriever, a dialect."""

    def __init__(
        self,
        splits: Mapping[str, Sequence[Question]],
        retriever: Retriever,
        dialect: protocol.Dialect,
        form: protocol.Form,
        variant: str,
        topk: int,
        details: Mapping[str, str] | None = None,
    ) -> None:
        self.dialect, self.form, self.topk = dialect, form, topk
        self.retriever = retriever
        self._tasks = {split: _tasks(split, questions) for split, questions in splits.items()}
        present = Counter(t.public.group for tasks in self._tasks.values() for t in tasks)
        self.groups = tuple(s for s in SETS if s in present) + tuple(sorted(set(present) - set(SETS)))
        asked = (f"{t.id}\t{t.hidden.payload}" for tasks in self._tasks.values() for t in tasks)
        panels = {
            f"split {name}": f"{len(tasks)} tasks, sha256 {Panel.of(name, [t.id for t in tasks]).sha256}"
            for name, tasks in self._tasks.items()
            if tasks
        }
        settings = [repr(dialect), form, str(topk), retriever.fingerprint, sha256_lines(asked)]
        self.spec = EnvSpec(
            name="search_qa",
            variant=variant,
            protocol=dialect.name,
            max_steps=dialect.max_steps,
            history_length=dialect.history_length,
            invalid_penalty=dialect.invalid_penalty,
            fingerprint=sha256_lines(settings),
            details={
                "topk": str(topk),
                "observation": form,
                "index": retriever.fingerprint,
                **panels,
                **(details or {}),
            },
        )

    def splits(self) -> Mapping[str, int]:
        return {split: len(tasks) for split, tasks in self._tasks.items()}

    def tasks(self, split: str) -> Sequence[Task]:
        tasks = self._tasks.get(split, ())
        if not tasks:
            known = ", ".join(f"{s} ({n})" for s, n in self.splits().items() if n)
            raise DataMissing(
                f"search_qa has no questions in split '{split}'. Splits with questions: {known}."
            )
        return tasks

    def panel(self, name: str) -> Panel:
        """All of a split, under its name."""
        return Panel.of(name, [t.id for t in self.tasks(name)])

    def session(self) -> SearchSession:
        return SearchSession(self)

    def parse(self, completion: str) -> Action:
        return protocol.parse(completion, self.dialect)

    def wrap(self, action: str) -> str:
        return action

    def render(self, history: History) -> tuple[Message, ...]:
        return protocol.render(history, self.dialect)

    def choices(self, history: History) -> tuple[str, ...]:
        return spans.choices(history)

    def annotate(self, episode: Episode) -> Skill:
        return teach.annotate(episode)

    def bank(self, group: str) -> Skill:
        return bank(group)


class SearchSession:
    """One episode at a time. A retriever that fails raises: that is an infrastructure error, no result."""

    def __init__(self, env: SearchQA) -> None:
        self._env = env
        self._question: Question | None = None
        self._over = True

    def reset(self, task: Task, seed: int) -> Start:
        question = task.hidden.payload
        if not isinstance(question, Question):
            raise TypeError(f"task {task.id} is not a search_qa task")
        self._question, self._over = question, False
        self._steps = self._invalid = 0
        self._queries: list[str] = []
        self._answer: str | None = None
        self._hits: dict[str, Hit] = {}
        return Start(question.question, Observation("", protocol.FORMS))

    def step(self, action: Action) -> StepResult:
        if self._over:
            raise EpisodeOver("step() after the end of the episode, or before reset().")
        self._steps += 1
        self._invalid += not action.valid
        last = self._steps >= self._env.dialect.max_steps
        kind, text = protocol.act_of(action.text)
        if kind == "answer":
            self._answer, self._over = text, True
            return StepResult(Observation(""), metrics.em(text, self._asked.golds), terminated=True)
        self._over = last
        if last:
            return StepResult(Observation(""), truncated=True, effect=False)
        if kind == "search":
            return self._search(text)
        told = protocol.invalid_observation(self._env.dialect)
        return StepResult(Observation(told, protocol.FORMS), effect=False)

    def outcome(self) -> Outcome:
        """Answer metrics, number of searches, and how much of the evidence was retrieved."""
        golds = self._asked.gold_ids
        found = metrics.score(self._answer, self._asked.golds)
        named = {
            **found,
            "n_searches": float(len(self._queries)),
            "n_invalid": float(self._invalid),
            "answered": float(self._answer is not None),
            "answer_seen": float(metrics.mentions(self._seen_text(), self._asked.golds)),
        }
        if golds:
            got = sum(g in self._hits for g in golds)
            named |= {"evidence_recall": got / len(golds), "evidence_hit": float(got > 0)}
        return Outcome(bool(found["em"]), found["em"], named)

    def oracle(self) -> str:
        """Look up the evidence by title, then the question itself; answer what the results name.

        When they never name the answer it says "unknown": the oracle's score is what retrieval allows.
        """
        question = self._asked
        read = {h.contents.partition("\n")[0].strip('"').lower() for h in self._hits.values()}
        wanted = [t for t in dict.fromkeys(question.route) if t.lower() not in read]
        wanted = [q for q in (*wanted, question.question) if q not in self._queries]
        if wanted and self._steps < self._env.dialect.max_steps - 1 and not self._complete(question):
            return protocol.wrap("search", wanted[0])
        return protocol.wrap("answer", question.golds[0] if self._named(question) else "unknown")

    def close(self) -> None:
        self._question, self._over = None, True

    @property
    def _asked(self) -> Question:
        if self._question is None:
            raise EpisodeOver("no episode: call reset() first.")
        return self._question

    def _search(self, query: str) -> StepResult:
        # A lone surrogate cannot be sent as UTF-8; the model sees its own text unchanged (BR-106).
        sent = query.encode("utf-8", "replace").decode("utf-8")
        hits = []
        if sent:
            hits = self._env.retriever.search([sent], self._env.topk)[0]
            self._queries.append(query)
        self._hits.update((h.id, h) for h in hits)
        text = protocol.observation(hits, self._env.form)
        return StepResult(Observation(text, protocol.FORMS), effect=bool(hits))

    def _seen_text(self) -> str:
        return "\n".join(h.contents for h in self._hits.values())

    def _named(self, question: Question) -> bool:
        """Can the gold answer be said from what was read, or from the question (yes, no, one of two)?"""
        closed = {"yes", "no"} & {metrics.normalize(g) for g in question.golds}
        return bool(closed) or metrics.mentions(f"{question.question}\n{self._seen_text()}", question.golds)

    def _complete(self, question: Question) -> bool:
        """All evidence is read; one page is enough when evidence was found by the answer it holds."""
        if question.evidence == "distant":
            return metrics.mentions(self._seen_text(), question.golds)
        return bool(question.gold_ids) and all(g in self._hits for g in question.gold_ids)


def _tasks(split: str, questions: Sequence[Question]) -> tuple[Task, ...]:
    made = [Task(PublicTask(q.id, split, q.data_source), HiddenTask(q)) for q in questions]
    return tuple(sorted(made, key=lambda t: t.id))
