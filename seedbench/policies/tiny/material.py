"""What the warm start reads: demonstrations without and with a skill, and skills to be written.

An environment's ``teach`` module brings a demonstrator (acting on ordinary history only), a rule-based
annotator, the worlds to practise in and the names worth a token. Everything here is a pure function of
(seed, chunk number), so chunks can be made by any number of processes.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seedbench.config import EnvSection, make_environment
from seedbench.contracts import Environment
from seedbench.errors import ConfigError
from seedbench.policies.scripted import ScriptPolicy
from seedbench.policies.tiny.backbone import TinyBackbone
from seedbench.policies.tiny.tokenizer import END, TinyTokenizer, build
from seedbench.policies.tiny.transcript import hindsight_ids
from seedbench.rollout import Job, derive_seed, play
from seedbench.train.backbone import Sample
from seedbench.train.skills import to_analysis
from seedbench.types import Episode, Skill, View


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the four kinds of rows; they add up to 1.

    ``plain``: the demonstrator without a skill; ``guided``: the clean demonstrator following a skill written
    from another attempt at the same task; ``misled``: a skill of another task, which must be ignored;
    ``written``: a trajectory and the skill the rules write for it. ``flawed``: is the plain demonstrator
    the flawed one (what reinforcement learning shall mend) or the clean one (to learn the world first)?
    """

    plain: float
    guided: float
    misled: float
    written: float
    flawed: bool


@dataclass(frozen=True, slots=True)
class WriteRow:
    """Token ids of a trajectory with its hindsight question, and of the answer."""

    question: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    act: list[Sample]
    write: list[WriteRow]


def teach_module(name: str) -> Any:
    """The environment's teaching material. Raises :class:`ConfigError` when it has none."""
    try:
        return importlib.import_module(f"seedbench.envs.{name}.teach")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"Environment '{name}' has no teaching material (a module 'teach'), so no tiny model can be made for it."
        ) from error


def demonstrate(env: Environment, jobs: Sequence[Job], teach: Any, flaws: Any) -> list[Episode]:
    """Episodes of the demonstrator; a job's skill is what it is told."""
    actors = {slot: teach.Demonstrator(flaws, job.seed) for slot, job in enumerate(jobs)}
    say = ScriptPolicy("demonstrator", lambda v: _say(actors, v))
    return play(env, say, jobs)


def _say(actors: dict[int, Any], view: View) -> str:
    return actors[view.slot].act(view.history, view.skill)


class Material:
    """Makes chunks for one environment."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed, self.teach = name, seed, teach_module(name)
        self.worlds = [
            (make_environment(EnvSection(name=name, options=dict(options))), weight)
            for options, weight in self.teach.WORLDS
        ]

    def tokenizer(self, sample_chunks: int = 12) -> TinyTokenizer:
        """Built from the names an environment lists and from the words its demonstrations use."""
        entities: dict[str, int] = self.teach.entities()
        words = {f"{kind} {n}" for kind, top in entities.items() for n in range(1, top + 1)} | set(entities)
        words |= {str(n) for n in range(51)} | set(self.teach.words())
        finder = build((), entities)
        for i in range(sample_chunks):
            env, episodes = self._attempts(-1 - i, self.teach.FLAWED, 48)
            for e in episodes:
                skill = env.annotate(e)
                texts = [skill.summary, skill.text, e.instruction, e.last_observation.text]
                texts += [
                    x for t in e.turns for x in (t.observation.text, *env.choices(e.history(0)), t.action)
                ]
                for text in texts:
                    normal = finder.normalizer.normalize_str(text)
                    words |= {w for w, _ in finder.pre_tokenizer.pre_tokenize_str(normal)}
        known = {w for w in words if " " not in w or w.rpartition(" ")[0] in entities}
        return TinyTokenizer(build(known, entities))

    def _attempts(self, i: int, flaws: Any, count: int) -> tuple[Environment, list[Episode]]:
        rng = random.Random(f"material/{self.seed}/{i}")
        env = rng.choices([e for e, _ in self.worlds], [w for _, w in self.worlds])[0]
        tasks = env.tasks(self.teach.SPLIT)
        jobs = [
            Job(t, derive_seed(self.seed, i, k), derive_seed(self.seed, "world", i, k))
            for k, t in enumerate(rng.choices(tasks, k=count))
        ]
        self._jobs = jobs
        return env, demonstrate(env, jobs, self.teach, flaws)

    def chunk(self, i: int, mix: Mix, tok: TinyTokenizer, tasks: int = 48) -> Chunk:
        """Rows from ``tasks`` tasks. First attempts give plain rows, skills and rows to write; second
        attempts at the same tasks are guided or misled by those skills."""
        teach, rng = self.teach, random.Random(f"mix/{self.seed}/{i}")
        flaws = teach.FLAWED if mix.flawed else teach.CLEAN
        # skills come from good and bad attempts alike
        source = teach.FLAWED if mix.flawed or rng.random() < 0.5 else teach.CLEAN
        env, first = self._attempts(i, source, tasks)
        jobs = self._jobs
        skills = [env.annotate(e) for e in first]
        kinds = rng.choices(
            ["plain", "guided", "misled", "written"],
            [mix.plain, mix.guided, mix.misled, mix.written],
            k=tasks,
        )
        told = [self._told(kind, k, skills, rng) for k, kind in enumerate(kinds)]
        act_jobs = [replace(j, skill=s, seed=j.seed + 1) for j, s in zip(jobs, told, strict=True)]
        second = [j for j, kind in zip(act_jobs, kinds, strict=True) if kind != "written"]
        episodes = demonstrate(env, second, teach, flaws)
        reader = TinyBackbone.__new__(TinyBackbone)  # rows need the tokenizer, no weights
        reader.tok = tok
        write = [
            WriteRow(hindsight_ids(tok, e), (*tok.encode(to_analysis(s)), END))
            for e, s, kind in zip(first, skills, kinds, strict=True)
            if kind == "written" and e.success is not None
        ]
        return Chunk(reader.samples(episodes, env), write)

    @staticmethod
    def _told(kind: str, k: int, skills: list[Skill], rng: random.Random) -> Skill | None:
        if kind == "guided":
            return skills[k]
        if kind == "misled":
            return skills[(k + rng.randrange(1, len(skills))) % len(skills)]
        return None
