"""From recorded episodes to numbers. Success is what the record says, never inferred from an ending.

Rules, each tested under its bug report:

* ``success`` and ``score`` are separate columns (BR-045). The environment wrote both; an ending by the step
  limit is no success (BR-001).
* The denominator is the panel. Tasks whose episode broke off (environment, backend, timeout) and tasks never
  played count as failures (BR-051, BR-104); rates without them stand beside, never instead.
* Tasks are told apart by id, not by their wording (BR-057).
* micro = mean over episodes, macro = unweighted mean of the reporting groups (BR-053, BR-058).
* A run is not ranked when more than 1 % of its episodes broke off, when the panel is not covered, when the
  policy read hidden state, or when evaluation prompts held a skill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seedbench.errors import DataCorrupt
from seedbench.panel import sha256_lines
from seedbench.records import Record, episode_key
from seedbench.store import Run, Stream, is_good

#: Share of episodes that may break off before a run loses its rank.
MAX_ERROR_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class GroupScore:
    """Counts of one reporting group. ``n`` is what the panel asks for; ``played`` what is on record."""

    group: str
    n: int
    played: int
    errors: int
    successes: int
    score_sum: float

    @property
    def rate(self) -> float | None:
        """Success rate in [0, 1], errors and missing tasks as failures."""
        return self.successes / self.n if self.n else None

    @property
    def rate_without_errors(self) -> float | None:
        """Success rate over the episodes that ended by the agent's doing."""
        finished = self.played - self.errors
        return self.successes / finished if finished else None

    @property
    def score(self) -> float | None:
        """Mean score in [0, 1], errors and missing tasks as 0."""
        return self.score_sum / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class EvalScore:
    """What one evaluation stream says. ``not_ranked`` holds the reasons; empty means it may be ranked."""

    groups: tuple[GroupScore, ...]
    total: GroupScore
    #: means over finished episodes
    steps: float | None
    metrics: Mapping[str, float]
    #: shares of turns
    invalid_share: float | None
    no_effect_share: float | None
    prompt_tokens: int
    new_tokens: int
    not_ranked: tuple[str, ...]

    @property
    def micro(self) -> float | None:
        return self.total.rate

    @property
    def macro(self) -> float | None:
        return mean_or_none([g.rate for g in self.groups if g.n])

    @property
    def macro_without_errors(self) -> float | None:
        return mean_or_none([g.rate_without_errors for g in self.groups if g.n])

    @property
    def coverage(self) -> str:
        return f"{self.total.played}/{self.total.n}"

    @property
    def error_share(self) -> float:
        return self.total.errors / self.total.played if self.total.played else 0.0


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """Mean, or None when there is nothing or any part is unknown (BR-055)."""
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class PanelTable:
    """A panel as the scorer needs it: distinct ids in order, their group, how often each is played."""

    ids: tuple[str, ...]
    group: Mapping[str, str]
    times: Mapping[str, int]

    @classmethod
    def of(cls, panel: Mapping[str, Any]) -> PanelTable:
        """``panel`` as in the manifest. Raises :class:`DataCorrupt` when its hash does not fit its ids."""
        ids, groups = panel["ids"], panel["groups"]
        if sha256_lines(ids) != panel["sha256"] or len(ids) != len(groups):
            raise DataCorrupt(
                f"Panel '{panel['name']}' of the manifest does not match its sha256: the record was edited. "
                "Restore the manifest, or run the evaluation again."
            )
        repeats = panel.get("repeats", 1)
        times = {task: count * repeats for task, count in Counter(ids).items()}
        return cls(tuple(dict.fromkeys(ids)), dict(zip(ids, groups, strict=True)), times)


def score_stream(run: Run, stream: str, records: Sequence[Record] | None = None) -> EvalScore:
    """Score one evaluation stream of a run against the panel in its manifest. ``records``: its records, where
    they were read already."""
    name = Stream.parse(stream)
    panel = PanelTable.of(_panel(run, name.panel))
    reasons = ["the policy reads hidden state"] if run.manifest.get("policy", {}).get("privileged") else []
    reasons += ["evaluation prompts held a skill"] if name.skills else []
    return score_records(
        run.records(stream) if records is None else records, panel, run.manifest["env"]["groups"], reasons
    )


def score_records(
    records: Sequence[Record], panel: PanelTable, groups: Sequence[str], reasons: Sequence[str] = ()
) -> EvalScore:
    """``groups`` in reporting order; groups of the panel that it lacks follow, sorted."""
    check_records(records, panel)
    order = list(dict.fromkeys([*groups, *sorted(set(panel.group.values()))]))
    by_group = {g: [r for r in records if r["task"]["group"] == g] for g in order}
    expected = Counter({g: 0 for g in order})
    for task, group in panel.group.items():
        expected[group] += panel.times[task]
    parts = tuple(_group_score(g, expected[g], by_group[g]) for g in order)
    total = _group_score("all", sum(expected.values()), records)
    finished = [r for r in records if is_good(r)]
    turns = [t for r in records for t in r["turns"]]
    return EvalScore(
        groups=parts,
        total=total,
        steps=_mean(len(r["turns"]) for r in finished),
        metrics=_metric_means(finished),
        invalid_share=_mean(not t.get("valid", True) for t in turns),
        no_effect_share=_mean(not t.get("effect", True) for t in turns),
        prompt_tokens=sum(t.get("prompt_tokens", 0) for t in turns),
        new_tokens=sum(t.get("new_tokens", 0) for t in turns),
        not_ranked=(*reasons, *_reasons(total)),
    )


def check_records(records: Iterable[Record], panel: PanelTable) -> None:
    """Raise :class:`DataCorrupt` for an episode that cannot be one of this panel's."""
    seen: set[tuple[str, int]] = set()
    for record in records:
        _, task, repeat = episode_key(record)
        what = _fault(record, panel, task, repeat)
        if (task, repeat) in seen:
            what = "it is recorded twice, after different numbers of updates"
        seen.add((task, repeat))
        if what:
            raise DataCorrupt(
                f"Episode of task '{task}' (repeat {repeat}) cannot be scored: {what}. "
                "Restore the record, or evaluate again into a new folder."
            )


def _fault(record: Record, panel: PanelTable, task: str, repeat: int) -> str:
    if task not in panel.group:
        return "the task is not in the panel"
    if not 0 <= repeat < panel.times[task]:
        return f"the panel plays it {panel.times[task]} times"
    if record["task"]["group"] != panel.group[task]:
        return f"its group is '{record['task']['group']}', the panel says '{panel.group[task]}'"
    if not is_good(record):
        return ""
    score = record["score"]
    if not isinstance(record["success"], bool) or not isinstance(score, (int, float)):
        return "it ended without a verdict"
    return "" if 0 <= score <= 1 else f"its score {score} lies outside [0, 1]"


def value_array(
    records: Sequence[Record], panel: PanelTable, field: str = "success"
) -> tuple[np.ndarray, list[str]]:
    """``(values, groups)``: values (tasks, repeats) in panel order, NaN where the panel has no such repeat.

    ``field`` is ``success`` or ``score``. Errors and missing episodes are 0.
    """
    repeats = max(panel.times.values(), default=1)
    values = np.full((len(panel.ids), repeats), np.nan)
    place = {task: i for i, task in enumerate(panel.ids)}
    for task, i in place.items():
        values[i, : panel.times[task]] = 0.0
    for record in records:
        if is_good(record):
            values[place[record["task"]["id"]], record["repeat"]] = float(record[field])
    return values, [panel.group[task] for task in panel.ids]


def _group_score(group: str, n: int, records: Sequence[Record]) -> GroupScore:
    good = [r for r in records if is_good(r)]
    return GroupScore(
        group=group,
        n=n,
        played=len(records),
        errors=len(records) - len(good),
        successes=sum(r["success"] for r in good),
        score_sum=float(sum(r["score"] for r in good)),
    )


def _reasons(total: GroupScore) -> list[str]:
    out = []
    if total.played < total.n:
        out.append(f"coverage {total.played}/{total.n}")
    if total.played and total.errors / total.played > MAX_ERROR_SHARE:
        out.append(f"{100 * total.errors / total.played:.1f} % of the episodes broke off")
    return out


def _mean(values: Iterable[float]) -> float | None:
    numbers = [float(v) for v in values]
    return sum(numbers) / len(numbers) if numbers else None


def _metric_means(records: Sequence[Record]) -> dict[str, float]:
    """Mean of each named metric over the finished episodes that carry it; NaN and infinities left out."""
    columns: dict[str, list[float]] = {}
    for record in records:
        for name, value in record["metrics"].items():
            if not isinstance(value, str):
                columns.setdefault(name, []).append(float(value))
    return {name: sum(v) / len(v) for name, v in sorted(columns.items())}


def _panel(run: Run, name: str) -> Mapping[str, Any]:
    panels = run.manifest.get("panels", {})
    if name not in panels:
        known = ", ".join(sorted(panels)) or "none"
        raise DataCorrupt(f"The manifest of '{run.path}' has no panel '{name}'. It has: {known}.")
    return panels[name]
