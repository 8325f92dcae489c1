"""A retrieval server for the clients in use: Search-R1, verl-agent, SkyRL and this project's own.

``POST /retrieve`` takes ``{"queries": [...]}`` (Search-R1) or ``{"query": "..."}`` (verl-agent), ``topk``
and ``return_scores``, and answers ``{"result": [[{"document": {"id", "contents"}, "score"}, ...], ...]}``
with scores, or ``{"result": [[{"id", "contents"}, ...], ...]}`` without: the shapes of the clients' own
servers, spec page search_qa 1. ``GET /health`` and ``GET /metrics`` (Prometheus text) tell the rest.

There is no authentication: bind to loopback (the default) or to a network you trust.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seedbench.errors import ConfigError, ExtraMissing
from seedbench.search.base import Hit, Retriever
from seedbench.search.batching import Batcher, BatchSettings, Busy

if TYPE_CHECKING:
    from flask import Flask, Response


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for: bytes of body, queries, characters a query, hits a query."""

    body: int = 4 << 20
    queries: int = 512
    query_chars: int = 10_000
    topk: int = 100
    default_topk: int = 3


class BadRequest(Exception):
    """A request that cannot be answered, with the HTTP status that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    queries: list[str]
    topk: int
    return_scores: bool


def read_request(body: bytes, limits: Limits) -> Asked:
    """Validate a request body. Raises :class:`BadRequest` (400 no JSON, 413 too large, 422 wrong fields)."""
    if len(body) > limits.body:
        raise BadRequest(413, f"the body has more than {limits.body} bytes")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "the body is not JSON") from error
    if not isinstance(data, dict):
        raise BadRequest(422, "expected an object with 'queries' or 'query'")
    queries = data.get("queries", data.get("query"))
    queries = [queries] if isinstance(queries, str) else queries
    if not isinstance(queries, list) or not all(isinstance(q, str) for q in queries):
        raise BadRequest(422, "'queries' must be a list of strings, or 'query' a string")
    if len(queries) > limits.queries:
        raise BadRequest(413, f"more than {limits.queries} queries in one request")
    if any(len(q) > limits.query_chars for q in queries):
        raise BadRequest(413, f"a query has more than {limits.query_chars} characters")
    topk = limits.default_topk if data.get("topk") is None else data["topk"]
    if isinstance(topk, bool) or not isinstance(topk, int) or not 1 <= topk <= limits.topk:
        raise BadRequest(422, f"'topk' must be a whole number from 1 to {limits.topk}")
    scores = data.get("return_scores", False)
    if not isinstance(scores, bool):
        raise BadRequest(422, "'return_scores' must be true or false")
    # Half a surrogate pair is legal in JSON but in no UTF-8 text.
    return Asked([q.encode("utf-8", "replace").decode() for q in queries], topk, scores)


def shape(hits: list[list[Hit]], return_scores: bool) -> dict[str, Any]:
    """The response body of ``/retrieve``."""
    if return_scores:
        return {"result": [[{"document": _document(h), "score": h.score} for h in one] for one in hits]}
    return {"result": [[_document(h) for h in one] for one in hits]}


def _document(hit: Hit) -> dict[str, str]:
    return {"id": hit.id, "contents": hit.contents}


class _Meter:
    """Counters for ``/metrics``."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.queries = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    def note(self, status: int, queries: int, seconds: float) -> None:
        with self._lock:
            self.statuses[status] += 1
            self.queries += queries
            self.seconds += seconds

    def text(self, batcher: Batcher) -> str:
        name = "seedbench_retrieval"
        lines = [f"# TYPE {name}_requests_total counter"]
        lines += [f'{name}_requests_total{{status="{s}"}} {n}' for s, n in sorted(self.statuses.items())]
        lines += [f"# TYPE {name}_queries_total counter", f"{name}_queries_total {self.queries}"]
        lines += [f"# TYPE {name}_seconds_total counter", f"{name}_seconds_total {self.seconds:.6f}"]
        for what in ("batches", "searched", "remembered", "refused", "late"):
            lines += [f"# TYPE {name}_{what}_total counter", f"{name}_{what}_total {batcher.counts[what]}"]
        lines += [f"# TYPE {name}_in_flight gauge", f"{name}_in_flight {batcher.in_flight}"]
        return "\n".join(lines) + "\n"


def create_app(
    retriever: Retriever, limits: Limits | None = None, settings: BatchSettings | None = None
) -> Flask:
    """The WSGI application over one retriever."""
    try:
        from flask import Flask, Response, request
        from werkzeug.exceptions import RequestEntityTooLarge
    except ImportError as error:
        raise ExtraMissing("The retrieval server needs flask: pip install 'seedbench[search]'.") from error
    limits = limits or Limits()
    batcher, meter = Batcher(retriever, settings), _Meter()
    app = Flask("seedbench.retrieval")
    app.config["MAX_CONTENT_LENGTH"] = limits.body
    app.extensions["batcher"] = batcher

    def answer(status: int, body: dict[str, Any], retry_after: int = 0) -> Response:
        response = Response(json.dumps(body), status, mimetype="application/json")
        if retry_after:
            response.headers["Retry-After"] = str(retry_after)
        return response

    @app.post("/retrieve")
    def retrieve() -> Response:
        began, asked = time.perf_counter(), 0
        try:
            wish = read_request(request.get_data(cache=False), limits)
            asked = len(wish.queries)
            hits = batcher.search(wish.queries, wish.topk) if wish.queries else []
            response = answer(200, shape(hits, wish.return_scores))
        except RequestEntityTooLarge:
            response = answer(413, {"error": f"the body has more than {limits.body} bytes"})
        except BadRequest as error:
            response = answer(error.status, {"error": str(error)})
        except Busy as error:
            response = answer(503, {"error": str(error)}, retry_after=1)
        except Exception as error:
            app.logger.exception("search failed")
            response = answer(500, {"error": f"{type(error).__name__}: {error}"})
        meter.note(response.status_code, asked, time.perf_counter() - began)
        return response

    @app.get("/health")
    def health() -> Response:
        documents = len(retriever) if hasattr(retriever, "__len__") else None  # type: ignore[arg-type]
        return answer(200, {"status": "ok", "fingerprint": retriever.fingerprint, "documents": documents})

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(meter.text(batcher), mimetype="text/plain")

    return app


def serve(
    retriever: Retriever,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    settings: BatchSettings | None = None,
) -> None:
    """Serve until interrupted. Raises :class:`ConfigError` when the port is taken."""
    try:
        import waitress
    except ImportError as error:
        raise ExtraMissing("The retrieval server needs waitress: pip install 'seedbench[search]'.") from error
    settings = settings or BatchSettings()
    app = create_app(retriever, limits, settings)
    # More threads than requests that may wait, so that the refusal (503) is ours and comes at once.
    threads = settings.waiting + 8
    logging.getLogger("waitress.queue").setLevel(
        logging.ERROR
    )  # /metrics counts, a line a request does not help
    try:
        waitress.serve(app, host=host, port=port, threads=threads, connection_limit=1000, ident="seedbench")
    except OSError as error:
        raise ConfigError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port."
        ) from error
    finally:
        app.extensions["batcher"].close()
