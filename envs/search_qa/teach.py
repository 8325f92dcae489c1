"""A teacher made of rules: a demonstrator (clean or flawed), a writer of hindsight skills, and a check.

All three use ordinary history only: the question, the actions, the results. Questions of the generated
world are understood through :mod:`mini_questions`; for other questions the skill writer falls back on what
the trajectory itself shows.

A skill is a plan in plain words without punctuation, so that it survives any tokenizer, for example
``search hollow storm then search vera oakes then answer its birthplace``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seedbench.envs.search_qa import mini_questions, mini_words, mini_world, spans
from seedbench.envs.search_qa.metrics import normalize
from seedbench.envs.search_qa.mini_questions import Asked, understand
from seedbench.envs.search_qa.mini_world import read
from seedbench.envs.search_qa.protocol import act_of, documents, results, wrap

from seedbench.types import Episode, History, Skill

#: Ways to go wrong: answer at once; stop after one article; search something else; misread the article.
FLAWS = ("early", "one_hop", "wrong_query", "wrong_value")
CLEAN = 0.0
#: The share of spoiled questions that leaves a demonstrator about 38 % success on mini-train.
FLAWED = 0.65
#: Worlds a warm start practises in, with their weights; the default world (seed 0) stays unseen.
WORLDS = tuple(({"world_seed": seed}, 0.125) for seed in range(1, 9))
#: Optimiser steps behind the shipped weights: on clean demonstrations, then on the mix.
RECIPE = {"world_steps": 1200, "habit_steps": 1100}
SPLIT = "mini-train"
_MAX_SKILL_WORDS = 25
#: Words of actions, results, skills and their summaries.
_OTHER_WORDS = (
    "search answer information doc then its their compare from results right wrong after searches answered "
    "too early no yes in steps"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A chain of facts read as far as the articles seen allow.

    ``found``: names whose article was read, in order. ``next``: the name to search now, "" when nothing is
    left to look up. ``value``: the last fact read. ``rest``: relations not read yet.
    """

    found: tuple[str, ...]
    next: str
    value: str
    rest: tuple[str, ...]


def pages(history: History) -> list[dict[str, str]]:
    """Facts of all articles seen, in order of appearance."""
    seen = [t.observation.text for t in history.past] + [history.observation.text]
    facts = [read(text) for observation in seen for _, text in documents(observation)]
    return [f for f in facts if f]


def follow(seen: Sequence[dict[str, str]], start: str, chain: Sequence[str], job: str = "") -> Reading:
    """Read ``chain`` from the article of ``start`` onwards; ``job`` tells people of one name apart."""
    name, found, rest = start, [], list(chain)
    while rest:
        page = _page(seen, name, "" if found else job)
        if page is None:
            return Reading(tuple(found), name, "", tuple(rest))
        found.append(name)
        relation = rest.pop(0)
        if relation == "home_city" and rest[:1] == ["country"]:  # both facts are in the company's article
            relation = "home_country"
            rest.pop(0)
        if relation not in page:
            return Reading(tuple(found), "", "", (relation, *rest))
        name = page[relation]
    return Reading(tuple(found), "", name, ())


def _page(seen: Sequence[dict[str, str]], name: str, job: str) -> dict[str, str] | None:
    key = name.lower()
    for page in seen:
        if key in (page["name"].lower(), page.get("alias", "").lower()) and job in ("", page.get("job", "")):
            return page
    return None


@dataclass(frozen=True, slots=True)
class Demonstrator:
    """Acts by rules. ``flaws`` is the share of questions on which one of :data:`FLAWS` spoils the play.

    The same seed, question and history give the same action. A relevant skill overrides the flaw: its
    named searches are made in its order; a skill about other names is ignored.
    """

    flaws: float = CLEAN
    seed: int | str = 0

    def act(self, history: History, skill: Skill | str | None = None) -> str:
        """Text of the next action, one of the environment's ``choices``."""
        skill = skill.text if isinstance(skill, Skill) else skill
        candidates = spans.choices(history)
        if skill is not None and _relevant(skill, history):
            named = _named_search(skill, history)
            wish = wrap("search", named) if named else _clean(history)
        else:
            wish = self._spoiled(history, candidates) or _clean(history)
        return _nearest(wish, candidates)

    def _spoiled(self, history: History, candidates: Sequence[str]) -> str | None:
        draw = random.Random(f"{self.seed}|{history.instruction}")
        if draw.random() >= self.flaws:
            return None
        flaw = draw.choice(FLAWS)
        rng = random.Random(f"{self.seed}|{history.instruction}|{history.step}")
        searches = [c for c in candidates if act_of(c)[0] == "search"]
        answers = [c for c in candidates if act_of(c)[0] == "answer"]
        clean = _clean(history)
        kind, text = act_of(clean)
        if flaw == "early" or (flaw == "one_hop" and history.step == 1):
            return rng.choice(answers)
        if flaw == "wrong_query" and kind == "search":
            return rng.choice([s for s in searches if s != clean])
        if flaw == "wrong_value" and kind == "answer":
            return rng.choice([a for a in answers if normalize(act_of(a)[1]) != normalize(text)] or answers)
        return None


def _clean(history: History) -> str:
    """The next action of a careful reader; the question itself is searched when it is not understood."""
    asked = understand(history.instruction)
    if asked is None:
        return wrap("search", history.instruction) if history.step == 0 else wrap("answer", "unknown")
    seen = pages(history)
    read_so_far = [follow(seen, s, asked.chain, asked.job) for s in asked.starts]
    tried = {normalize(q) for q in _queries(history)}
    for reading in read_so_far:
        if reading.next and normalize(reading.next) not in tried:
            return wrap("search", reading.next)
    values = [r.value for r in read_so_far]
    return wrap("answer", _conclude(asked, values))


def _conclude(asked: Asked, values: Sequence[str]) -> str:
    if asked.compare == "same":
        return "yes" if values[0] and values[0] == values[1] else "no"
    if asked.compare == "first":
        return asked.starts[0] if values[0] <= values[1] else asked.starts[1]
    return values[0]


def _nearest(wish: str, candidates: Sequence[str]) -> str:
    """The candidate equal to ``wish`` after normalisation, else the first of its kind."""
    kind, text = act_of(wish)
    same = [c for c in candidates if act_of(c)[0] == kind]
    key = normalize(text)
    return next((c for c in same if normalize(act_of(c)[1]) == key), same[0] if same else candidates[0])


def _queries(history: History) -> list[str]:
    return [text for kind, text in (act_of(t.action) for t in history.past) if kind == "search"]


def _seen_text(history: History) -> str:
    parts = [history.instruction, *(f"{a} {o}" for a, o in results(history))]
    return f" {normalize(' '.join(parts))} "


def _named(skill: str) -> list[str]:
    """The names a plan says to search, in order; ``its employer`` names nothing yet."""
    clauses = re.split(r"\bthen\b", skill.lower())
    found = [c.strip()[len("search ") :].strip() for c in clauses if c.strip().startswith("search ")]
    return [n for n in found if not n.startswith("its ")]


def _relevant(skill: str, history: History) -> bool:
    names = _named(skill)
    return bool(names) and f" {normalize(names[0])} " in f" {normalize(history.instruction)} "


def _named_search(skill: str, history: History) -> str | None:
    """The first named search of the plan that is still to be made and whose name has been seen."""
    tried = {normalize(q) for q in _queries(history)}
    text = _seen_text(history)
    for name in _named(skill):
        key = normalize(name)
        if key not in tried:
            return name if f" {key} " in text else None
    return None


def annotate(episode: Episode) -> Skill:
    """A hindsight skill from the visible trajectory and its outcome; at most 25 words.

    Success and failure both give the plan that this question needs, with the names the trajectory has
    shown and, for what it never read, the relation to look up; the summary says what went wrong.
    """
    history = episode.history()
    asked = understand(history.instruction)
    plan = _plan(asked, history) if asked else _plan_from_trajectory(history)
    return Skill(_summary(episode, asked, history), " ".join(plan.split()[:_MAX_SKILL_WORDS]), "rules")


def _summary(episode: Episode, asked: Asked | None, history: History) -> str:
    queries = _queries(history)
    answers = [text for kind, text in (act_of(t.action) for t in episode.turns) if kind == "answer"]
    if episode.success:
        return f"right after {len(queries)} searches"
    if not answers:
        return f"no answer in {len(episode.turns)} steps"
    if asked and any(follow(pages(history), s, asked.chain, asked.job).next for s in asked.starts):
        return f"answered too early after {len(queries)} searches"
    return f"wrong answer after {len(queries)} searches"


def _plan(asked: Asked, history: History) -> str:
    seen = pages(history)
    readings = [follow(seen, s, asked.chain, asked.job) for s in asked.starts]
    if asked.compare:
        return " then ".join([*(f"search {s}" for s in asked.starts), _ending(asked)])
    reading = readings[0]
    names = [*reading.found, *([reading.next] if reading.next else [])]
    steps = [f"search {n}" for n in names]
    pairs = zip(reading.rest, reading.rest[1:], strict=False)
    middle = [r for r, after in pairs if (r, after) != ("home_city", "country")]
    steps += [f"search its {r.replace('_', ' ')}" for r in middle]
    return " then ".join([*steps, _ending(asked)])


def _plan_from_trajectory(history: History) -> str:
    """For questions of other worlds: the searches that found something, or else the question's own words."""
    useful = [act_of(a)[1] for a, o in results(history) if act_of(a)[0] == "search" and documents(o)]
    if not useful:
        useful = [max(spans.question_names(history.instruction), key=len, default=history.instruction)]
    steps = [f"search {' '.join(u.split()[:6])}" for u in useful[:3]]
    return " then ".join([*steps, "answer from the results"])


def faithful(skill: Skill, episode: Episode) -> float:
    """Share in [0, 1] of what a skill says that the trajectory bears out; 0 if it says to search nothing.

    Counted are the names to search, which must occur in it, and the ending, which must be what was asked.
    """
    history = episode.history()
    names, text = _named(skill.text), _seen_text(history)
    borne_out = [f" {normalize(n)} " in text for n in names]
    asked = understand(history.instruction)
    if asked is not None:
        borne_out.append(normalize(skill.text).endswith(_ending(asked)))
    return sum(borne_out) / len(borne_out) if names else 0.0


def entities() -> dict[str, int]:
    """Names worth a token of their own: none, names are made of words."""
    return {}


def words() -> tuple[str, ...]:
    """Every word of the generated world and its questions, in small letters."""
    texts = [*mini_world.ARTICLES.values(), *mini_questions.templates(), _OTHER_WORDS]
    made = {w for text in texts for w in re.findall(r"[a-z]+", text.lower())}
    named = {w.lower() for table in vars(mini_words).values() if isinstance(table, list) for w in table}
    years = {str(y) for y in range(mini_world.YEARS[0], mini_world.YEARS[1] + 1)}
    return tuple(sorted(made | named | years))


def _ending(asked: Asked) -> str:
    last = asked.chain[-1].replace("_", " ")
    return f"compare their {last}" if asked.compare else f"answer its {last}"
