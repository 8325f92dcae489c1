"""Servers that are down, slow, wrong or restarted; indexes and corpora that are damaged."""

from __future__ import annotations

import json
import lzma
import socket
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("flask")

from seedbench.errors import ConfigError, DataCorrupt, DataMissing, RetrieverFailed, SeedbenchError
from seedbench.search.base import Hit
from seedbench.search.batching import Batcher, BatchSettings, Busy
from seedbench.search.bm25 import Settings
from seedbench.search.corpus import read_corpus
from seedbench.search.remote import Remote, RemoteSettings
from seedbench.search.server import create_app
from seedbench.search.store import build_index, check_index, describe, open_index

QUICK = RemoteSettings(timeout=0.3, tries=3, pause=0.01, longest_pause=0.02)
GOOD = {"result": [[{"document": {"id": "1", "contents": '"T"\nx'}, "score": 1.0}]]}


class Script:
    """A server that plays a list of (status, body, headers); the last entry repeats. ``None`` hangs."""

    def __init__(self, steps: list, port: int = 0) -> None:
        self.steps, self.asked = steps, 0
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                step = script.steps[min(script.asked, len(script.steps) - 1)]
                script.asked += 1
                if step is None:
                    time.sleep(0.5)
                    return
                status, body, headers = (*step, {})[:3]
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(raw))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def do_GET(self) -> None:
                self.send_error(404)

            def log_message(self, *args) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/retrieve"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *args) -> None:
        self.server.shutdown()
        self.server.server_close()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_server_down_names_the_address_and_the_cure():
    port = free_port()
    with pytest.raises(RetrieverFailed, match=rf"127\.0\.0\.1:{port}.*seedbench serve retrieval"):
        Remote([f"http://127.0.0.1:{port}/retrieve"], QUICK)


def test_busy_server_is_asked_again():
    with Script([(503, {}, {"Retry-After": "0"}), (500, {}), (200, GOOD)]) as script:
        assert Remote([script.url], QUICK).search(["x"], 1) == [[Hit("1", '"T"\nx', 1.0)]]
        assert script.asked == 3


def test_server_that_stays_busy_fails_after_the_last_try():
    with Script([(503, {"error": "busy"})]) as script:
        with pytest.raises(RetrieverFailed, match="No answer after 3 tries"):
            Remote([script.url], QUICK).search(["x"], 1)
        assert script.asked == 3


def test_slow_server_is_given_up():
    with Script([None]) as script, pytest.raises(RetrieverFailed, match="No answer after 3 tries"):
        Remote([script.url], QUICK).search(["x"], 1)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, b"<html>", "no {'result'"),
        (200, {"results": []}, "no {'result'"),
        (200, {"result": []}, "0 result lists to 1"),
        (200, {"result": [[], []]}, "2 result lists to 1"),
        (200, {"result": "none"}, "str result lists"),
        (200, {"result": [[{"document": {"id": 1}}]]}, "without 'contents'"),
        (200, {"result": [["text"]]}, "without 'contents'"),
        (200, {"result": [None]}, "instead of a list"),
        (404, {"detail": "Not Found"}, "status 404"),
    ],
)
def test_wrong_answers_are_not_taken_for_results(status, body, says):
    with Script([(status, body)]) as script, pytest.raises(RetrieverFailed) as failure:
        Remote([script.url], QUICK).search(["x"], 1)
    assert says in str(failure.value)


def test_bare_documents_and_title_text_documents_are_read():
    answer = {
        "result": [[{"id": 5, "contents": "c"}, {"document": {"title": "T", "text": "x"}, "score": None}]]
    }
    with Script([(200, answer)]) as script:
        assert Remote([script.url], QUICK).search(["x"], 3) == [[Hit("5", "c", 0.0), Hit("", '"T"\nx', 0.0)]]


def test_server_that_only_knows_the_singular_form():
    with Script([(422, {"detail": "field required"}), (200, GOOD)]) as script:
        remote = Remote([script.url], QUICK)
        assert len(remote.search(["x", "y"], 1)) == 2
        assert script.asked == 3  # one refused list, then one request for each query


def test_restart_in_the_middle_of_a_run():
    settings = RemoteSettings(timeout=1, tries=8, pause=0.05, longest_pause=0.2)
    first = Script([(200, GOOD)])
    remote = Remote([first.url], settings)
    assert remote.search(["x"], 1)
    port = first.port
    first.__exit__()
    later: list[Script] = []

    def restart() -> None:
        time.sleep(0.3)
        later.append(Script([(200, GOOD)], port))

    thread = threading.Thread(target=restart)
    thread.start()
    assert remote.search(["x"], 1) == [[Hit("1", '"T"\nx', 1.0)]]
    thread.join()
    later[0].__exit__()


def test_second_address_takes_over():
    with Script([(200, GOOD)]) as a, Script([(200, GOOD)]) as b:
        remote = Remote([a.url, b.url], QUICK)
        a.__exit__()
        assert [remote.search(["x"], 1) for _ in range(2)] == [[[Hit("1", '"T"\nx', 1.0)]]] * 2


def test_addresses_are_checked():
    for urls in ((), ("localhost:8000",)):
        with pytest.raises(ConfigError):
            Remote(urls, QUICK)


class Slow:
    """A retriever that waits for a signal."""

    fingerprint = "slow"

    def __init__(self) -> None:
        self.go = threading.Event()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.go.wait(5)
        if "bad" in queries:
            raise ValueError("broken engine")
        return [[Hit(q, q, 1.0)] for q in queries]


def test_full_queue_is_refused_at_once_with_retry_after():
    slow = Slow()
    app = create_app(slow, settings=BatchSettings(waiting=2, patience=5))
    threads = [
        threading.Thread(target=lambda: app.test_client().post("/retrieve", json={"query": "x"}))
        for _ in range(2)
    ]
    for t in threads:
        t.start()
    batcher = app.extensions["batcher"]
    while batcher.in_flight < 2:
        time.sleep(0.005)
    answer = app.test_client().post("/retrieve", json={"query": "x"})
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
    slow.go.set()
    for t in threads:
        t.join()
    assert app.test_client().post("/retrieve", json={"query": "x"}).status_code == 200
    batcher.close()


def test_engine_that_hangs_is_not_waited_for():
    slow = Slow()
    batcher = Batcher(slow, BatchSettings(patience=0.05))
    with pytest.raises(Busy, match=r"within 0\.05 s"):
        batcher.search(["x"], 1)
    slow.go.set()
    batcher.close()


def test_engine_that_raises_costs_only_its_own_batch():
    slow = Slow()
    slow.go.set()
    app = create_app(slow)
    answer = app.test_client().post("/retrieve", json={"query": "bad"})
    assert answer.status_code == 500 and "broken engine" in answer.json["error"]
    assert app.test_client().post("/retrieve", json={"query": "good"}).status_code == 200
    app.extensions["batcher"].close()


LINES = [json.dumps({"id": str(i), "contents": f'"T{i}"\nsome words {i}'}) for i in range(5)]


def write(path, lines, encoding="utf-8"):
    path.write_bytes("\n".join(lines).encode(encoding) + b"\n")
    return path


def test_corpus_faults_name_file_and_line(tmp_path):
    cases = [
        (LINES[:2] + ['{"contents": "x"}'], "line 3: a passage without 'id'"),
        (LINES[:1] + ['{"id": "", "contents": "x"}'], "line 2: a passage without 'id'"),
        (LINES[:1] + ['{"id": "x"}'], "line 2: passage 'x' has no 'contents'"),
        (LINES[:1] + ["{oops"], "line 2: not JSON"),
        (LINES[:1] + ["[]"], "line 2: expected an object"),
    ]
    for lines, says in cases:
        with pytest.raises(DataCorrupt, match=says):
            list(read_corpus(write(tmp_path / "c.jsonl", lines)))
    (tmp_path / "c.jsonl").write_bytes(LINES[0].encode() + b'\n{"id": "1", "contents": "caf\xe9"}\n')
    with pytest.raises(DataCorrupt, match=r"c\.jsonl, line 2: not UTF-8"):
        list(read_corpus(tmp_path / "c.jsonl"))
    (tmp_path / "c.jsonl.xz").write_bytes(lzma.compress("\n".join(LINES).encode())[:-20])
    with pytest.raises(DataCorrupt, match="whole compressed file"):
        list(read_corpus(tmp_path / "c.jsonl.xz"))
    with pytest.raises(DataMissing):
        list(read_corpus(tmp_path / "none.jsonl"))


def test_title_and_text_lines_are_read(tmp_path):
    path = write(tmp_path / "c.jsonl", ['{"id": 7, "title": "T", "text": "x"}', ""])
    (document,) = read_corpus(path)
    assert (document.id, document.contents) == ("7", '"T"\nx')


@pytest.fixture
def saved(tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", LINES)
    build_index(corpus, tmp_path / "index", Settings())
    return corpus, tmp_path / "index"


def test_index_round_trip(saved):
    corpus, folder = saved
    assert [h.id for h in open_index(folder).search(["words 3"], 1)[0]] == ["3"]
    about = describe(folder)
    assert about["kind"] == "bm25" and about["documents"] == 5 and about["corpus"]["file"] == "corpus.jsonl"
    assert check_index(folder, corpus)[-1] == "same passages in the same order as corpus.jsonl"


def test_index_of_another_corpus_is_refused(saved, tmp_path):
    _, folder = saved
    for name, lines in {"order": LINES[::-1], "text": [*LINES[:4], LINES[4].replace("some", "same")]}.items():
        with pytest.raises(DataCorrupt, match="does not belong to"):
            check_index(folder, write(tmp_path / f"{name}.jsonl", lines))
    with pytest.raises(DataCorrupt, match="holds 5 passages"):
        check_index(folder, write(tmp_path / "short.jsonl", LINES[:4]))
    longer = write(tmp_path / "long.jsonl", [*LINES, '{"id": "9", "contents": "x"}'])
    with pytest.raises(DataCorrupt, match="does not belong to"):
        check_index(folder, longer)


def test_any_damaged_file_of_an_index_is_noticed(saved):
    _, folder = saved
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(DataCorrupt):
            check_index(folder)
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataCorrupt):
            open_index(folder)
        path.write_bytes(whole)
    check_index(folder)
    (folder / "index.json").write_text("{}")
    with pytest.raises(DataCorrupt, match="another version"):
        open_index(folder)
    (folder / "index.json").unlink()
    with pytest.raises(DataMissing, match="seedbench index build"):
        open_index(folder)


def test_failed_build_leaves_the_old_index_and_no_litter(saved, tmp_path):
    _, folder = saved
    before = describe(folder)
    bad = write(tmp_path / "bad.jsonl", [*LINES, '{"contents": "x"}'])
    with pytest.raises(DataCorrupt):
        build_index(bad, folder, Settings())
    assert describe(folder) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.jsonl", "corpus.jsonl", "index"]


def test_folder_with_other_things_is_not_overwritten(saved, tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConfigError, match="no search index"):
        build_index(saved[0], tmp_path / "mine", Settings())
    with pytest.raises(SeedbenchError, match="is a bm25 index, not dense"):
        open_index(saved[1], kind="dense")
