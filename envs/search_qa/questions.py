"""Questions and where they come from: Search-R1 parquet and JSONL, FlashRAG and plain JSONL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedbench.envs.search_qa.metrics import normalize

from seedbench.errors import DataCorrupt, DataMissing, ExtraMissing
from seedbench.search.corpus import read_objects

#: The seven sets in the order of the papers' table.
SETS = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
#: The sets the papers train on.
TRAIN_SETS = ("nq", "hotpotqa")


@dataclass(frozen=True, slots=True)
class Question:
    """``gold_ids`` are corpus ids of evidence; ``route`` the titles to look up, in order (oracle only).

    ``evidence`` says how the evidence was found: ``annotated``, ``distant`` (holds the answer),
    ``heuristic`` (title match), ``generated`` or ``none``.
    """

    id: str
    question: str
    golds: tuple[str, ...]
    data_source: str
    gold_ids: tuple[str, ...] = ()
    route: tuple[str, ...] = ()
    evidence: str = "none"


def load(path: Path, data_source: str = "", limit_sets: Sequence[str] = ()) -> list[Question]:
    """Questions of one file, in its order. ``data_source`` fills rows that name none."""
    rows = _parquet(path) if path.suffix == ".parquet" else read_objects(path)
    questions = [parse_row(row, f"{path}, row {n}", data_source) for n, row in rows]
    _unique(questions, path)
    return [q for q in questions if not limit_sets or q.data_source in limit_sets]


def parse_row(row: Mapping[str, Any], where: str, data_source: str = "") -> Question:
    """One row of any of the known layouts.

    FlashRAG and plain rows have ``question`` and ``golden_answers``; Search-R1's also hold
    ``reward_model.ground_truth.target`` (a list, a string or a numpy array after pandas) and
    ``extra_info``; verl-agent's keep the question in ``env_kwargs``.
    """
    inner, notes = row.get("env_kwargs") or {}, row.get("metadata") or {}
    text = row.get("question") or inner.get("question") or _prompt_question(row.get("prompt"))
    golds = _golds(row, inner)
    if not isinstance(text, str) or not text.strip() or not golds:
        raise DataCorrupt(f"{where}: a question needs 'question' and a non-empty 'golden_answers'.")
    source = str(row.get("data_source") or data_source or inner.get("data_source") or "")
    if not source:
        raise DataCorrupt(f"{where}: no 'data_source'; name the file after its set, e.g. nq.jsonl.")
    identity = row.get("id") or f"{source}_{normalize(text).replace(' ', '_')[:60]}"
    return Question(
        id=str(identity),
        question=text,
        golds=golds,
        data_source=source,
        gold_ids=tuple(map(str, _listed(row.get("gold_ids", notes.get("gold_ids"))))),
        route=tuple(map(str, _listed(row.get("gold_titles", notes.get("gold_titles"))))),
        evidence=str(row.get("evidence") or notes.get("evidence") or "none"),
    )


def overlap(train: Iterable[Question], evaluation: Iterable[Question]) -> list[Question]:
    """Training questions whose normalised text is also an evaluation question."""
    seen = {normalize(q.question) for q in evaluation}
    return [q for q in train if normalize(q.question) in seen]


def _golds(row: Mapping[str, Any], inner: Mapping[str, Any]) -> tuple[str, ...]:
    truth = (row.get("reward_model") or {}).get("ground_truth") or inner.get("ground_truth") or {}
    for value in (row.get("golden_answers"), truth.get("target"), row.get("answers"), row.get("answer")):
        listed = _listed(value)
        if listed:
            return tuple(map(str, listed))
    return ()


def _listed(value: Any) -> list[Any]:
    """A list from a list, a string (one entry) or an array, whose truth value must not be asked for."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _prompt_question(prompt: Any) -> str | None:
    """The question at the end of a Search-R1 prompt, for parquet files that hold nothing else."""
    messages = _listed(prompt)
    content = messages[0].get("content", "") if messages and isinstance(messages[0], Mapping) else ""
    return content.rpartition("Question:")[2].strip() or None


def _parquet(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ExtraMissing(f"{path} needs pyarrow: pip install 'seedbench[search]'.") from error
    if not path.is_file():
        raise DataMissing(f"{path} does not exist.")
    try:
        table = parquet.read_table(path)
    except Exception as error:
        raise DataCorrupt(f"{path} is not a readable parquet file: {error}.") from error
    yield from enumerate(table.to_pylist())


def _unique(questions: Sequence[Question], path: Path) -> None:
    seen: set[str] = set()
    for q in questions:
        if q.id in seen:
            raise DataCorrupt(f"{path}: the id '{q.id}' occurs twice. Ids name tasks and must be unique.")
        seen.add(q.id)
