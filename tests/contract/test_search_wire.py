"""The retrieval server as the client families call it, over a real socket."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request

import pytest

pytest.importorskip("flask")
waitress = pytest.importorskip("waitress")

from seedbench.search.base import Document  # noqa: E402
from seedbench.search.batching import BatchSettings  # noqa: E402
from seedbench.search.bm25 import BM25  # noqa: E402
from seedbench.search.remote import Remote, RemoteSettings  # noqa: E402
from seedbench.search.server import Limits, create_app  # noqa: E402

DOCS = [
    Document("0", '"Evan Morris"\nEvan Morris was a lobbyist of Genentech.'),
    Document("1", '"Röntgen"\nRöntgen received the first Nobel Prize in Physics.'),
    Document("2", '"Nobel Prize"\nThe Nobel Prize in Physics is given by an academy.'),
    Document("3", '"Lima"\nLima is the capital of Peru.'),
]


@pytest.fixture(scope="module")
def address():
    app = create_app(BM25.build(DOCS), Limits(body=200_000, queries=8, query_chars=5_000, topk=10))
    server = waitress.create_server(app, host="127.0.0.1", port=0, threads=8)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.close()
    thread.join(5)
    app.extensions["batcher"].close()


def post(address: str, body: bytes, path: str = "/retrieve") -> tuple[int, dict]:
    request = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def passages(result: list) -> str:
    """Read as Search-R1's client does: the first line of ``contents`` is the title."""
    parts = [item["document"]["contents"].partition("\n") for item in result]
    return "".join(f"Doc {i}(Title: {t}) {rest}\n" for i, (t, _, rest) in enumerate(parts, 1))


def test_search_r1_client(address):
    payload = {
        "queries": ["first nobel prize in physics", "capital of Peru"],
        "topk": 2,
        "return_scores": True,
    }
    status, body = post(address, json.dumps(payload).encode())
    assert status == 200 and list(body) == ["result"]
    first, second = body["result"]
    assert [set(x) for x in first] == [{"document", "score"}] * 2
    assert first[0]["document"] == {"id": "1", "contents": DOCS[1].contents}
    assert first[0]["score"] > first[1]["score"] > 0
    assert passages(second) == 'Doc 1(Title: "Lima") Lima is the capital of Peru.\n'


def test_verl_agent_client(address):
    status, body = post(address, json.dumps({"query": "Peru", "topk": 3, "return_scores": True}).encode())
    assert status == 200
    (hits,) = body["result"]
    text = "\n".join(f"Doc {i}: {h['document']['contents']}" for i, h in enumerate(hits, 1))
    assert text == f"Doc 1: {DOCS[3].contents}"


def test_without_scores_documents_are_bare(address):
    status, body = post(address, json.dumps({"queries": ["Peru", "qqq"], "topk": 1}).encode())
    assert status == 200 and body == {"result": [[{"id": "3", "contents": DOCS[3].contents}], []]}


def test_no_queries_and_default_topk(address):
    assert post(address, b'{"queries": []}') == (200, {"result": []})
    status, body = post(
        address, b'{"queries": ["the Nobel Prize in Physics capital lobbyist"], "topk": null}'
    )
    assert status == 200 and len(body["result"][0]) == 3


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 50_000, 400, "not JSON"),
        (b"[]", 422, "object"),
        (b"{}", 422, "queries"),
        (b'{"queries": "x", "topk": 0}', 422, "topk"),
        (b'{"queries": ["x"], "topk": 11}', 422, "topk"),
        (b'{"queries": ["x"], "topk": true}', 422, "topk"),
        (b'{"queries": ["x"], "topk": 2.5}', 422, "topk"),
        (b'{"queries": [1]}', 422, "strings"),
        (b'{"queries": {"a": 1}}', 422, "strings"),
        (b'{"queries": ["x"], "return_scores": "yes"}', 422, "return_scores"),
        (json.dumps({"queries": ["x"] * 9}).encode(), 413, "8 queries"),
        (json.dumps({"query": "x" * 6_000}).encode(), 413, "5000 characters"),
        (json.dumps({"query": "x" * 1_000_000}).encode(), 413, "200000 bytes"),
    ],
)
def test_bad_requests_say_why(address, body, status, says):
    got, answer = post(address, body)
    assert got == status and says in answer["error"]


def test_half_a_surrogate_pair_is_no_crash(address):  # BR-106
    status, body = post(address, b'{"query": "Peru \\ud835"}')
    assert status == 200 and body["result"][0][0]["id"] == "3"


def test_health_and_metrics(address):
    with urllib.request.urlopen(address + "/health", timeout=5) as answer:
        health = json.load(answer)
    assert health == {"status": "ok", "fingerprint": BM25.build(DOCS).fingerprint, "documents": 4}
    with urllib.request.urlopen(address + "/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert (
        'seedbench_retrieval_requests_total{status="200"}' in text and "seedbench_retrieval_in_flight" in text
    )


@pytest.mark.parametrize("style", ["auto", "queries", "query"])
def test_own_client_gives_what_the_retriever_gives(address, style):
    local = BM25.build(DOCS)
    remote = Remote([address], RemoteSettings(style=style, batch=3))
    queries = ["nobel prize", "capital", "zzz", "physics academy", "Röntgen", "lobbyist"]
    assert remote.search(queries, 2) == local.search(queries, 2)
    assert remote.fingerprint == local.fingerprint
    assert remote.search([], 2) == []


def test_concurrent_clients_get_their_own_answers():
    docs = [Document(str(i), f'"T{i}"\nword{i} common') for i in range(200)]
    app = create_app(BM25.build(docs), settings=BatchSettings(batch=16, linger=0.01, memory=10))
    client_count, wrong = 12, []

    def ask(worker: int) -> None:
        client = app.test_client()
        for i in range(worker, 200, client_count):
            body = client.post(
                "/retrieve", json={"queries": [f"word{i}", f"word{(i + 1) % 200}"], "topk": 1}
            ).json
            if [r[0]["id"] for r in body["result"]] != [str(i), str((i + 1) % 200)]:
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(w,)) for w in range(client_count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    batcher = app.extensions["batcher"]
    assert wrong == [] and batcher.in_flight == 0
    assert batcher.counts["searched"] + batcher.counts["remembered"] <= 400
    batcher.close()
