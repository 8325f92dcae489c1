"""Hindsight skills: reading an analysis, asking for one, and the rules that stand in for a large annotator."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from seedbench.contracts import Environment
from seedbench.errors import ConfigError
from seedbench.train.backbone import Backbone
from seedbench.types import Episode, Skill


def parse_analysis(text: str, source: str, min_words: int = 3) -> Skill | None:
    """The skill in an analysis, or None when the JSON is broken, a field is missing, or the skill is empty.

    The first balanced object of ``text`` counts, so prose or a code fence around it does no harm. A skill of
    fewer than ``min_words`` words is empty (methods page 2.6: unparsable or empty -> no distillation term).
    """
    start = text.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text[start:])
    except (ValueError, RecursionError):  # the latter from thousands of nested brackets
        return None
    if not isinstance(found, dict):
        return None
    summary, skill = found.get("episode_summary"), found.get("episode_skill")
    if not isinstance(summary, str) or not isinstance(skill, str):
        return None
    if len(skill.split()) < min_words or skill.strip().lower() in ("none", "null"):
        return None
    return Skill(summary.strip(), skill.strip(), source)


def to_analysis(skill: Skill) -> str:
    """The JSON text a policy is taught to write for ``skill``; :func:`parse_analysis` reads it back."""
    return f'{{"episode_summary": "{_quoted(skill.summary)}", "episode_skill": "{_quoted(skill.text)}"}}'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


class BackboneAnalyst:
    """Asks the policy itself. ``frozen`` copies the weights at construction, so build it after the warm-up."""

    def __init__(
        self,
        backbone: Backbone,
        environment: Environment,
        bank: Callable[[str], Skill],
        keep_frozen: bool,
    ) -> None:
        self._backbone, self._environment, self._bank = backbone, environment, bank
        self._frozen = backbone.frozen() if keep_frozen else None

    def current(self, episodes: Sequence[Episode]) -> list[Skill | None]:
        return self._ask(self._backbone, episodes, "self")

    def frozen(self, episodes: Sequence[Episode]) -> list[Skill | None]:
        if self._frozen is None:
            raise ConfigError("This run keeps no frozen analyzer; set the method's skill_source to 'frozen'.")
        return self._ask(self._frozen, episodes, "self-frozen")

    def bank(self, group: str) -> Skill:
        return self._bank(group)

    def _ask(self, who: Backbone, episodes: Sequence[Episode], source: str) -> list[Skill | None]:
        usable = [i for i, e in enumerate(episodes) if e.success is not None and e.turns]
        texts = who.analyse([episodes[i] for i in usable], self._environment)
        skills: list[Skill | None] = [None] * len(episodes)
        for i, text in zip(usable, texts, strict=True):
            skills[i] = parse_analysis(text, source)
        return skills
