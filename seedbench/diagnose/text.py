"""What can be said of skills by reading them beside their trajectories. No model is needed.

*Unsupported*: things a skill names that do not occur in its trajectory. An environment that knows what its
skills name brings a function ``faithful(skill, episode) -> share in [0, 1]`` in its modules ``hindsight`` or
``teach``; otherwise the words of the skill are looked up in the trajectory, small words left out.
*Contradicting*: a summary that tells a success of a failed episode or the other way round, by the words below.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from seedbench.contracts import Environment
from seedbench.diagnose.material import Item
from seedbench.types import Episode, Skill

WON = frozenset("won success succeeded successful solved right completed achieved".split())
LOST = frozenset("failed failure failing lost wrong nothing without unsolved never unable".split())
#: A skill is a near copy when this share of its word triples stands in the trajectory word for word.
COPY = 0.8
_SMALL = frozenset(
    "a an the it its in on to of and or then with for is was be do not you your at from by".split()
)

Faithful = Callable[[Skill, Episode], float]


def faithful_of(env: Environment) -> tuple[Faithful, str]:
    """The environment's own measure, or the lexical one; and its name."""
    package = type(env).__module__.rpartition(".")[0]
    for name in ("hindsight", "teach"):
        module = f"{package}.{name}"
        if package and importlib.util.find_spec(module) is not None:
            found = getattr(importlib.import_module(module), "faithful", None)
            if found is not None:
                return found, f"{module.rpartition('.')[2]}.faithful of the environment"
    return lexical, "words of the skill in the trajectory"


def trajectory(episode: Episode) -> str:
    lines = [episode.instruction, *(f"{t.observation.text} {t.action}" for t in episode.turns)]
    return " ".join([*lines, episode.last_observation.text]).lower()


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def lexical(skill: Skill, episode: Episode) -> float:
    named = set(words(skill.text)) - _SMALL
    return len(named & set(words(trajectory(episode)))) / len(named) if named else 1.0


def contradicts(skill: Skill, episode: Episode) -> bool:
    said = set(words(skill.summary))
    tells = (bool(said & WON), bool(said & LOST))
    return tells == ((False, True) if episode.success else (True, False))


def copied(skill: Skill, episode: Episode) -> float:
    """Share of the skill's word triples that stand in the trajectory."""
    own, there = _triples(words(skill.text)), set(_triples(words(trajectory(episode))))
    return fmean(t in there for t in own) if own else 0.0


def repeated(skill: Skill) -> float:
    """Share of the skill's word triples that it has said before."""
    own = _triples(words(skill.text))
    return 1 - len(set(own)) / len(own) if own else 0.0


def _triples(tokens: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(tokens[i : i + 3]) for i in range(len(tokens) - 2)]


def read_skills(
    items: Sequence[Item], written: dict[int, tuple[int, int]], env: Environment
) -> dict[str, Any]:
    """Numbers over all items, and per update for the drift."""
    faithful, how = faithful_of(env)
    rows = [
        {
            "update": i.update,
            "success": bool(i.episode.success),
            "unsupported": 1.0 - faithful(i.skill, i.episode),
            "contradicts": float(contradicts(i.skill, i.episode)),
            "words": float(len(i.skill.text.split())),
            "repeated": repeated(i.skill),
            "copy": float(copied(i.skill, i.episode) >= COPY),
        }
        for i in items
    ]
    texts = Counter(i.skill.text for i in items)
    names = ("unsupported", "contradicts", "words", "repeated", "copy")
    return {
        "measure": how,
        "n": len(rows),
        "parse_rate": sum(k for _, k in written.values()) / sum(n for n, _ in written.values()),
        "distinct": len(texts) / len(rows),
        "overall": {k: fmean(r[k] for r in rows) for k in names},
        "by_outcome": {
            word: {k: fmean(r[k] for r in part) for k in names} | {"n": len(part)}
            for word, part in (
                ("success", [r for r in rows if r["success"]]),
                ("failure", [r for r in rows if not r["success"]]),
            )
            if part
        },
        "by_update": [_of_update(u, rows, written, names) for u in sorted({i.update for i in items})],
    }


def _of_update(
    u: int, rows: Sequence[dict[str, Any]], written: dict[int, tuple[int, int]], names: Sequence[str]
) -> dict[str, float]:
    part = [r for r in rows if r["update"] == u]
    n, k = written[u]
    return {"update": u, "n": len(part), "parse_rate": k / n} | {x: fmean(r[x] for r in part) for x in names}
