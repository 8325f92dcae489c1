"""Hindsight skills by rules: from the visible trajectory and its outcome alone, in a small closed vocabulary.

A skill is a plan such as ``search woven hooded sweater then open item 2 then choose white medium then buy``.
A success tells its own plan. A failure tells the plan that the trajectory shows to be right, or what to skip.
"""

from __future__ import annotations

import re

from seedbench.envs.webshop.memory import Look, Memory, Wish, read_action

from seedbench.types import Episode, Skill

SOURCE = "rules"
_MOST_SKIPPED = 3
_MAX_WORDS = 25
_ADVICE = "search the kind of thing then compare items then choose every option then check the price then buy"
#: Words of plans that name nothing.
FRAME = frozenset("search then open on page choose buy skip another with back".split())


def annotate(episode: Episode) -> Skill:
    """``summary`` tells what happened, ``text`` what to do next time; at most 25 words."""
    memory = Memory.of(episode.history())
    if memory.wish is None:
        return Skill(_plain_summary(episode), _plan_from_actions(episode), SOURCE)
    good = _good_look(memory, memory.wish)
    text = _plan(memory.wish, good) if good else _skipping(memory, memory.wish)
    return Skill(_summary(episode, memory, memory.wish), text, SOURCE)


def _good_look(memory: Memory, wish: Wish) -> Look | None:
    """The first opened item that has everything wanted, preferring one found by the fewest pages."""
    fitting = [look for look in memory.looks if not look.offer.lacks(wish) and look.query]
    return min(fitting, key=lambda look: look.page, default=None)


def _plan(wish: Wish, look: Look) -> str:
    page = f" on page {look.page}" if look.page > 1 else ""
    choice = " ".join(wish.options.values())
    return f"search {look.query} then open {look.place}{page} then choose {choice} then buy"


def _skipping(memory: Memory, wish: Wish) -> str:
    poor = [k.place for k in memory.looks if k.query == wish.query and k.page == 1 and k.offer.lacks(wish)]
    skip = f" then skip {' '.join(dict.fromkeys(poor[:_MOST_SKIPPED]))}" if poor else ""
    return (
        f"search {wish.query}{skip} then open another then choose {' '.join(wish.options.values())} then buy"
    )


def _summary(episode: Episode, memory: Memory, wish: Wish) -> str:
    steps = f"{len(episode.turns)} steps"
    if episode.success:
        return f"bought right after {steps}"
    if memory.bought is None:
        return f"nothing bought in {steps}"
    lacking = memory.bought.lacks(wish)
    forgotten = [v for v in wish.options.values() if v not in memory.bought.chosen and v not in lacking]
    return f"bought without {' '.join([*lacking, *forgotten][:4]) or 'care'}"


def _plain_summary(episode: Episode) -> str:
    bought = any(read_action(t.action) == ("click", "buy now") and t.effect for t in episode.turns)
    if episode.success:
        return f"bought right after {len(episode.turns)} steps"
    return "bought the wrong thing or options" if bought else f"nothing bought in {len(episode.turns)} steps"


def _plan_from_actions(episode: Episode) -> str:
    """For the official shop: the actions themselves after a success, general advice after a failure."""
    if not episode.success:
        return _ADVICE
    steps: list[str] = []
    for turn in episode.turns:
        kind, argument = read_action(turn.action)
        if not turn.effect or argument in ("< prev", "next >", "back to search"):
            continue
        verb = "search" if kind == "search" else "buy" if argument == "buy now" else "click"
        steps.append("buy" if verb == "buy" else f"{verb} {' '.join(argument.split()[:6])}")
    words = " then ".join(steps).split()
    return " ".join(words if len(words) <= _MAX_WORDS else [*words[: _MAX_WORDS - 2], "then", "buy"])


def faithful(skill: Skill, episode: Episode) -> float:
    """Share in [0, 1] of the things a skill's text names that occur in its trajectory; 1 if it names none."""
    named = named_things(skill.text)
    texts = [episode.instruction, episode.last_observation.text]
    texts += [f"{t.observation.text} {t.action}" for t in episode.turns]
    seen = named_things(" ".join(texts))
    return len(named & seen) / len(named) if named else 1.0


def named_things(text: str) -> set[str]:
    """Places on a results page (``item 2``) and all other words that are not the frame of a plan."""
    places = set(re.findall(r"\bitem \d+\b", text))
    words = set(re.findall(r"[a-z]+", re.sub(r"\bitem \d+\b|\bpage \d+\b", " ", text.lower())))
    return places | (words - FRAME)
