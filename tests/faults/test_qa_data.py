"""Question files of all known layouts, and broken ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seedbench.envs.search_qa import KIND, data
from seedbench.envs.search_qa.questions import Question, load, overlap, parse_row

from seedbench.errors import ConfigError, DataCorrupt, DataMissing

PLAIN = {"id": "nq_1", "question": "who?", "golden_answers": ["Ada", "A. L."]}


def write(path: Path, rows: list) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8"
    )
    return path


def search_r1_row(source: str = "nq", text: str = "who?", target: object = ("Ada",), number: int = 0) -> dict:
    return {
        "id": f"test_{number}",
        "question": text,
        "golden_answers": list(target) if not isinstance(target, str) else target,
        "data_source": source,
        "prompt": [{"role": "user", "content": f"Answer. Question: {text}\n"}],
        "ability": "fact-reasoning",
        "reward_model": {"style": "rule", "ground_truth": {"target": target}},
        "extra_info": {"split": "test", "index": number},
    }


def test_plain_and_search_r1_jsonl(tmp_path):
    (q,) = load(write(tmp_path / "nq.jsonl", [PLAIN]), "nq")
    assert q == Question("nq_1", "who?", ("Ada", "A. L."), "nq")
    (q,) = load(write(tmp_path / "x.jsonl", [search_r1_row("popqa")]))
    assert (q.data_source, q.golds) == ("popqa", ("Ada",))


def test_targets_may_be_text_list_or_array():
    np = pytest.importorskip("numpy")
    row = search_r1_row()
    del row["golden_answers"]
    for target in ("Ada", ["Ada"], ("Ada",), np.array(["Ada"], dtype=object)):
        row["reward_model"] = {"ground_truth": {"target": target}}
        assert parse_row(row, "here").golds == ("Ada",)
    row["reward_model"] = {"ground_truth": {"target": np.array([], dtype=object)}}
    with pytest.raises(DataCorrupt, match="here: a question needs"):
        parse_row(row, "here")


def test_verl_agent_rows_keep_the_question_in_env_kwargs():
    kwargs = {"question": "who?", "ground_truth": {"target": ["Ada"]}, "data_source": "musique"}
    q = parse_row({"env_kwargs": kwargs, "data_source": "musique", "id": 3}, "here")
    assert q == Question("3", "who?", ("Ada",), "musique")


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [search_r1_row("nq", f"q{i}?", ["Ada", "B"], i) for i in range(3)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    got = load(tmp_path / "test.parquet")
    assert [q.question for q in got] == ["q0?", "q1?", "q2?"] and got[0].golds == ("Ada", "B")
    (tmp_path / "test.parquet").write_bytes(b"PAR1 oops")
    with pytest.raises(DataCorrupt, match="not a readable parquet file"):
        load(tmp_path / "test.parquet")


def test_parquet_through_pandas_has_array_targets(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame([search_r1_row()]).to_parquet(tmp_path / "t.parquet")
    row = pd.read_parquet(tmp_path / "t.parquet").iloc[0].to_dict()
    assert parse_row(row, "here").golds == ("Ada",)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"id": "1", "question": "who?", "golden_answers": []}], "row 1: a question needs"),
        ([{"id": "1", "question": " ", "golden_answers": ["x"]}], "row 1: a question needs"),
        ([{"id": "1", "golden_answers": ["x"]}], "row 1: a question needs"),
        ([PLAIN, PLAIN], "'nq_1' occurs twice"),
        ([PLAIN, "{oops"], "line 2: not JSON"),
        ([PLAIN, "3"], "line 2: expected an object"),
    ],
)
def test_broken_rows_are_named(tmp_path, rows, says):
    with pytest.raises(DataCorrupt, match=says):
        load(write(tmp_path / "nq.jsonl", rows), "nq")


def test_row_without_a_set_is_refused(tmp_path):
    with pytest.raises(DataCorrupt, match="no 'data_source'"):
        load(write(tmp_path / "test.jsonl", [PLAIN]))


def test_overlap_is_found_after_normalisation():
    train = [Question("a", "Who is THE king?", ("x",), "nq"), Question("b", "Why?", ("x",), "nq")]
    test = [Question("c", "who is king", ("x",), "nq")]
    assert [q.id for q in overlap(train, test)] == ["a"]


def folder(tmp_path: Path) -> Path:
    write(tmp_path / "questions/nq.jsonl", [{**PLAIN, "gold_ids": ["d1"]}])
    write(
        tmp_path / "questions/nq_train.jsonl",
        [{**PLAIN, "id": "t1", "question": "Who ?"}, {**PLAIN, "id": "t2", "question": "what?"}],
    )
    write(tmp_path / "corpus.jsonl", [{"id": "d1", "contents": '"Ada"\nAda wrote.'}])
    return tmp_path


def test_folder_of_question_sets(tmp_path):
    env = KIND.make(KIND.options(variant="real", data=folder(tmp_path)))
    assert env.splits() == {"train": 1, "test": 1, "full": 0}  # "Who ?" is a test question
    assert env.tasks("train")[0].id == "t2" and env.groups == ("nq",)
    session = env.session()
    session.reset(env.tasks("test")[0], 0)
    result = session.step(env.parse("<search>Ada</search>"))
    assert '"result": "Doc 1: \\"Ada\\"\\nAda wrote."' in result.observation.text
    assert session.outcome().metrics["evidence_recall"] == 1.0


def test_folder_of_search_r1_files(tmp_path):
    write(tmp_path / "test.jsonl", [search_r1_row("nq"), search_r1_row("popqa", "what?", ["B"], 1)])
    write(tmp_path / "corpus.jsonl", [{"id": "d1", "contents": "x"}])
    env = KIND.make(KIND.options(variant="real", data=tmp_path))
    assert env.splits()["test"] == 2 and env.groups == ("nq", "popqa")
    env = KIND.make(KIND.options(variant="real", data=tmp_path, sets=("popqa",)))
    assert env.splits()["test"] == 1


def test_saved_index_is_used_and_a_wrong_kind_refused(tmp_path):
    from seedbench.search.bm25 import Settings
    from seedbench.search.store import build_index

    root = folder(tmp_path)
    build_index(root / "corpus.jsonl", tmp_path / "index", Settings())
    (root / "corpus.jsonl").unlink()
    env = KIND.make(KIND.options(variant="real", data=root, index=tmp_path / "index"))
    assert env.retriever.search(["Ada"], 1)[0][0].id == "d1"
    with pytest.raises(ConfigError, match="is a bm25 index"):
        KIND.make(KIND.options(variant="real", data=root, index=tmp_path / "index", retriever="dense"))
    with pytest.raises(DataMissing, match="No corpus"):
        KIND.make(KIND.options(variant="real", data=root))


def test_missing_pieces_say_what_to_do(tmp_path):
    with pytest.raises(DataMissing, match="not a folder"):
        data.find(tmp_path / "nowhere", False)
    with pytest.raises(DataMissing, match="holds no questions"):
        KIND.make(KIND.options(variant="real", data=tmp_path))
    with pytest.raises(ConfigError, match="Unknown question set 'squad'"):
        KIND.make(KIND.options(sets=("squad",)))
    for given in ({"retriever": "http"}, {"data": tmp_path}, {"url": ("http://x",)}, {"index": tmp_path}):
        with pytest.raises(ConfigError, match="variant = 'real'"):
            KIND.make(KIND.options(**given))
    for kind, needs in (("http", "'url'"), ("pyserini", "'index'"), ("dense", "'index'")):
        with pytest.raises(ConfigError, match=needs):
            KIND.make(KIND.options(variant="real", data=folder(tmp_path), retriever=kind))
