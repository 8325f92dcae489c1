"""What a run folder survives: kills, full disks, other writers, other data, odd text."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seedbench.errors import ConfigError, DataCorrupt, DataMissing, RunConflict, StorageFull
from seedbench.records import to_record
from seedbench.store import Run, RunStore, Stream, canonical_lines, from_record, read_lines
from seedbench.types import Episode, Observation, PublicTask, Turn

CONFIG = {"env": {"name": "toy"}, "method": {"name": "grpo"}, "backbone": {"name": "tiny"}, "seed": 0}
MANIFEST = {
    "env": {"name": "toy", "fingerprint": "f1"},
    "panels": {"eval": {"sha256": "p1"}},
    "started": "now",
}


def record(task: str, status: str = "completed", update: int = 0, repeat: int = 0, text: str = "hi") -> dict:
    good = status == "completed"
    turn = Turn(Observation("o"), text, text, True)
    episode = Episode(
        PublicTask(task, "s", "g"), 1, repeat, turns=[turn], status=status, success=good or None, seconds=1.5
    )
    return to_record(episode, "eval", update)


def make(path: Path, resume: bool = False, config: dict = CONFIG, manifest: dict = MANIFEST) -> RunStore:
    return RunStore.create(path, config, manifest, resume)


def test_a_torn_last_line_is_ignored_by_readers_and_cut_on_resume(tmp_path: Path) -> None:
    with make(tmp_path / "run") as store:
        store.append_episode("eval-final", record("a"))
    path = tmp_path / "run/episodes/eval-final.jsonl"
    with path.open("ab") as file:
        file.write(b'{"schema":1,"phase":"ev\x00\x00')
    assert len(Run(tmp_path / "run").records("eval-final")) == 1
    with make(tmp_path / "run", resume=True) as store:
        assert store.done_keys("eval-final") == {(0, "a", 0)}
        store.append_episode("eval-final", record("b"))
    assert [r["task"]["id"] for r in read_lines(path)] == ["a", "b"]


@pytest.mark.parametrize("cut", [0, 1, 7, 400])
def test_any_prefix_of_the_file_resumes_to_the_same_bytes(tmp_path: Path, cut: int) -> None:
    tasks = [f"t{i}" for i in range(4)]
    with make(tmp_path / "run") as store:
        for task in tasks:
            store.append_episode("eval-final", record(task))
    path = tmp_path / "run/episodes/eval-final.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    with make(tmp_path / "run", resume=True) as store:
        for task in tasks:
            if (0, task, 0) not in store.done_keys("eval-final"):
                store.append_episode("eval-final", record(task))
    assert path.read_bytes() == whole


def test_a_killed_process_loses_at_most_the_line_in_flight(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from test_store_faults import *\n"
        "store = make(Path(sys.argv[1]))\n"
        "for i in range(5): store.append_episode('eval-final', record(f't{i}'))\n"
        "os.kill(os.getpid(), 9)"
    )
    here = str(Path(__file__).resolve().parent)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "run"), here], check=False)
    assert done.returncode == -9
    assert len(Run(tmp_path / "run").records("eval-final")) == 5


def test_a_full_disk_takes_nothing_earlier_and_no_half_line_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "run")
    store.append_episode("train", record("a"))
    real = os.write

    calls = []

    def write(fd: int, data: bytes) -> int:
        calls.append(1)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:20])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StorageFull, match=r"No space.*Free space.*--resume"):
        store.append_episode("train", record("b"))
    monkeypatch.setattr(os, "write", real)
    assert store.append_episode("train", record("b"))
    store.close()
    assert [r["task"]["id"] for r in Run(tmp_path / "run").records("train")] == ["a", "b"]


def test_a_real_write_limit_raises_storage_full_and_keeps_whole_lines(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = make(tmp_path / "run")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StorageFull, match="Cannot append"):
            for i in range(50):
                store.append_episode("train", record(f"t{i}"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    store.close()
    data = (tmp_path / "run/episodes/train.jsonl").read_bytes()
    assert data.endswith(b"}\n") and data.count(b"\n") == i >= 1


def test_a_failed_atomic_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(tmp_path / "run") as store:
        store.set_status("running", 3, 10)

        def broken(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", broken)
        with pytest.raises(StorageFull):
            store.set_status("finished", 10, 10)
        monkeypatch.undo()
        assert store.status["update"] == 3
    assert not list((tmp_path / "run").glob("*.tmp")) and not list((tmp_path / "run").glob(".*.tmp"))


def test_br_106_odd_text_under_a_c_locale(tmp_path: Path) -> None:
    odd = "\ud835 😀 漢字 \x00 end"
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from test_store_faults import *\n"
        "store = make(Path(sys.argv[1]))\n"
        "store.append_episode('train', record('a', text='\\ud835 \\U0001F600 \\u6f22\\u5b57 \\x00 end'))\n"
        "store.append_episode('train', record('b'))\n"
        "store.close()"
    )
    here = str(Path(__file__).resolve().parent)
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run"), here], check=True, env=env)
    path = tmp_path / "run/episodes/train.jsonl"
    path.read_bytes().decode("utf-8", "strict")
    first, second = (from_record(json.loads(line)) for line in path.read_text("utf-8").splitlines())
    assert first.turns[0].completion == odd and second.task.id == "b"


def test_an_episode_is_counted_once_and_only_errors_are_replaced(tmp_path: Path) -> None:
    with make(tmp_path / "run") as store:
        assert store.append_episode("eval-final", record("a", "env_error"))
        assert store.done_keys("eval-final") == set()
        assert store.append_episode("eval-final", record("a", text="first good"))
        assert not store.append_episode("eval-final", record("a", text="second try"))
    path = tmp_path / "run/episodes/eval-final.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes())  # somebody joined two copies
    (kept,) = Run(tmp_path / "run").records("eval-final")
    assert kept["turns"][0]["completion"] == "first good"


def test_settings_that_differ_are_a_conflict_that_names_them(tmp_path: Path) -> None:
    make(tmp_path / "run").close()
    with pytest.raises(RunConflict, match=r"method\.name: grpo there, seed now"):
        make(tmp_path / "run", resume=True, config=CONFIG | {"method": {"name": "seed"}})
    with pytest.raises(RunConflict, match="--resume"):
        make(tmp_path / "run")


@pytest.mark.parametrize("key", ["env", "panels"])
def test_br_097_another_data_set_is_not_continued(tmp_path: Path, key: str) -> None:
    make(tmp_path / "run").close()
    with pytest.raises(RunConflict, match=key):
        make(tmp_path / "run", resume=True, manifest=MANIFEST | {key: {"fingerprint": "f2"}})


def test_foreign_folders_and_files_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunConflict, match=r"thesis\.txt"):
        make(tmp_path)
    with pytest.raises(RunConflict, match="is a file"):
        make(tmp_path / "thesis.txt")
    with pytest.raises(DataMissing, match="no run folder"):
        Run(tmp_path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with make(tmp_path / "run"), pytest.raises(RunConflict, match="Another process"):
        RunStore(tmp_path / "run")
    RunStore(tmp_path / "run").close()


def test_a_beginning_that_was_cut_short_starts_again(tmp_path: Path) -> None:
    make(tmp_path / "run").close()
    (tmp_path / "run/config.json").unlink()
    make(tmp_path / "run").close()
    assert Run(tmp_path / "run").status["state"] == "running"


def test_rewind_forgets_what_the_checkpoint_did_not_see(tmp_path: Path) -> None:
    with make(tmp_path / "run") as store:
        for update in range(4):
            store.append_episode("train", record("a", update=update))
            store.append_metrics({"update": update, "loss": 0.5})
            store.append_cost(update, "rollout", 1.0, 10, 1e3)
        store.append_episode("eval-u0004", record("a", update=4))
        store.rewind(2)
        assert store.done_keys("train") == {(0, "a", 0), (1, "a", 0)}
        assert [m["update"] for m in store.metrics()] == [0, 1] == [c["update"] for c in store.costs()]
        assert store.append_episode("train", record("a", update=2))
        assert store.done_keys("eval-u0004") == {(4, "a", 0)}


def test_corrupt_lines_and_files_are_named(tmp_path: Path) -> None:
    with make(tmp_path / "run") as store:
        store.append_episode("train", record("a"))
    path = tmp_path / "run/episodes/train.jsonl"
    path.write_bytes(b"{broken\n" + path.read_bytes())
    with pytest.raises(DataCorrupt, match="line 1"):
        Run(tmp_path / "run").records("train")
    path.unlink()
    Path(f"{path}.xz").write_bytes(b"not xz")
    with pytest.raises(DataCorrupt, match="xz"):
        Run(tmp_path / "run").records("train")


def test_packed_records_read_the_same_and_are_not_appended_to(tmp_path: Path) -> None:
    import lzma

    with make(tmp_path / "run") as store:
        store.append_episode("train", record("a"))
    path = tmp_path / "run/episodes/train.jsonl"
    plain = list(read_lines(path))
    Path(f"{path}.xz").write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    run = Run(tmp_path / "run")
    assert run.records("train") == plain and [s.name for s in run.streams()] == ["train"]
    with make(tmp_path / "run", resume=True) as store, pytest.raises(RunConflict, match="packed"):
        store.append_episode("train", record("b"))


def test_canonical_lines_leave_out_time_and_order(tmp_path: Path) -> None:
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    a, b = record("a"), record("b")
    one.write_text(json.dumps(a) + "\n" + json.dumps(b) + "\n")
    two.write_text(json.dumps(b | {"seconds": 99.0}) + "\n" + json.dumps(a) + "\n")
    assert canonical_lines(one) == canonical_lines(two)
    two.write_text(json.dumps(b) + "\n" + json.dumps(a | {"success": False}) + "\n")
    assert canonical_lines(one) != canonical_lines(two)


@pytest.mark.parametrize("name", ["eval", "eval-", "../x", "eval-a/b", "train2", "eval-final@"])
def test_stream_names_cannot_leave_the_folder(name: str) -> None:
    with pytest.raises(ConfigError):
        Stream.parse(name)


def test_stream_names_tell_label_skills_and_panel() -> None:
    stream = Stream.parse("eval-final+skills@unseen")
    assert (stream.label, stream.skills, stream.panel) == ("final", True, "unseen")
    assert Stream.parse("eval-u0040").panel == "eval" and Stream.parse("train").phase == "train"
