"""One recorded episode as text a person can read."""

from __future__ import annotations

from collections.abc import Sequence

from seedbench.errors import ConfigError
from seedbench.records import from_record
from seedbench.store import Run, Stream
from seedbench.types import Episode, Skill, Turn


def find_episode(
    run: Run, wanted: str, stream: str = "", repeat: int = 0, update: int | None = None
) -> Episode:
    """The episode of a task: ``wanted`` is a task id, a part of one that fits one task only, or ``#3`` for
    the third line. ``stream`` defaults to the final evaluation, else the newest one.

    Raises :class:`ConfigError` with what there is when nothing or too much fits.
    """
    name = stream or _default_stream(run)
    Stream.parse(name)
    records = run.records(name)
    if wanted.startswith("#") and wanted[1:].isdigit():
        place = int(wanted[1:])
        if not 1 <= place <= len(records):
            raise ConfigError(f"'{name}' of '{run.path}' has episodes #1 to #{len(records)}.")
        return from_record(records[place - 1])
    records = [r for r in records if r["repeat"] == repeat and update in (None, r["update"])]
    ids = list(dict.fromkeys(r["task"]["id"] for r in records))
    fitting = [wanted] if wanted in ids else [i for i in ids if wanted in i]
    if len(fitting) != 1:
        some = ", ".join((fitting or ids)[:5]) or "none"
        what = f"{len(fitting)} tasks fit" if fitting else "no task fits"
        raise ConfigError(f"In '{name}' of '{run.path}' {what} '{wanted}'. For example: {some}.")
    return from_record([r for r in records if r["task"]["id"] == fitting[0]][-1])


def _default_stream(run: Run) -> str:
    names = [s.name for s in run.streams()]
    if not names:
        raise ConfigError(f"'{run.path}' has no episodes yet.")
    evaluations = [n for n in names if n != "train"]
    return "eval-final" if "eval-final" in names else (evaluations or names)[-1]


def describe_episode(episode: Episode) -> str:
    """Task, outcome, every turn, and the skills that acted or were written afterwards."""
    verdict = {True: "solved", False: "not solved", None: "no verdict"}[episode.success]
    score = "" if episode.score is None else f", score {episode.score:g}"
    lines = [
        f"Task      {episode.task.id}  ({episode.task.group}, {episode.task.split})",
        f"Outcome   {verdict}{score}, {episode.status}, {len(episode.turns)} steps, reward {episode.reward:g}",
        f"Seed      {episode.seed}, repeat {episode.repeat}",
        *([f"Error     {episode.error}"] if episode.error else []),
        *([f"Metrics   {_pairs(episode.metrics)}"] if episode.metrics else []),
        f"Task text {episode.instruction}",
        *_skill("Skill in the prompts", episode.acting_skill),
    ]
    for number, turn in enumerate(episode.turns, 1):
        lines += ["", *_turn(number, turn)]
    lines += [
        "",
        *_block("end", episode.last_observation.text),
        *_skill("Hindsight skill", episode.hindsight),
    ]
    return printable("\n".join(lines))


def _turn(number: int, turn: Turn) -> list[str]:
    flags = [] if turn.valid else [f"invalid: {turn.reason}"]
    flags += [] if turn.effect else ["no effect"]
    flags += [f"reward {turn.reward:g}"] if turn.reward else []
    lines = _block(str(number), turn.observation.text)
    if turn.completion.strip() != turn.action:
        lines += _block("", turn.completion, "~ ")
    return lines + [f"     > {turn.action}" + (f"   [{', '.join(flags)}]" if flags else "")]


def _block(head: str, text: str, mark: str = "") -> list[str]:
    first, *rest = text.split("\n")
    return [f"{head:>4} {mark}{first}", *(f"     {mark}{line}" for line in rest)]


def _skill(head: str, skill: Skill | None) -> Sequence[str]:
    if skill is None:
        return []
    return ["", f"{head} (by {skill.source or 'unknown'}): {skill.summary}", *_block("", skill.text)]


def _pairs(metrics: dict[str, float]) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in sorted(metrics.items()))


def printable(text: str) -> str:
    """Control characters and lone surrogates as escapes: a completion must not drive the terminal."""
    return "".join(ch if ch.isprintable() or ch in "\n\t" else ascii(ch)[1:-1] for ch in text)
