"""Client of a retrieval server that speaks ``POST /retrieve`` (Search-R1, verl-agent, SkyRL, seedbench).

Requests are retried with growing pauses while the server is down, busy (503 with Retry-After) or slow; then
a :class:`~seedbench.errors.RetrieverFailed` says what happened. It is never turned into a search result: an
episode whose search failed is an infrastructure error, not a wrong answer. (verl-agent puts the error into
the observation; Search-R1 reads the body without looking at the status.)
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from seedbench.errors import ConfigError, ExtraMissing, RetrieverFailed
from seedbench.search.base import Hit

_AGAIN = (429, 500, 502, 503, 504)
#: ``queries`` sends a list (Search-R1), ``query`` one text a request (verl-agent's own server), ``auto``
#: begins with the list and changes over when the server refuses it with 400 or 422.
Style = Literal["auto", "queries", "query"]


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """Seconds and counts. ``tries`` 10 and ``timeout`` 60 are verl-agent's."""

    timeout: float = 60.0
    tries: int = 10
    pause: float = 0.5  # before the second try; doubled each time, at most ``longest_pause``
    longest_pause: float = 8.0
    batch: int = 64
    style: Style = "auto"


class Remote:
    """A :class:`~seedbench.search.base.Retriever` behind one or several addresses, used in turn.

    ``fingerprint`` is what the server reports (``/health`` of seedbench), else a hash of the addresses:
    what another program's server has indexed cannot be known from here. Raises
    :class:`~seedbench.errors.RetrieverFailed` when no server can be reached.
    """

    def __init__(self, urls: Sequence[str], settings: RemoteSettings | None = None) -> None:
        self.settings = settings or RemoteSettings()
        self.urls = tuple(_address(u) for u in urls)
        if not self.urls:
            raise ConfigError("No retrieval server named: url = ['http://host:port/retrieve'].")
        self._pool = _pool(self.settings)
        self._single = self.settings.style == "query"
        self._turn = itertools.cycle(self.urls)
        self._lock = threading.Lock()
        self.fingerprint = self._identify()

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits per query, best first, in batches of ``settings.batch``."""
        if k < 1:
            raise ConfigError(f"k is the number of hits and must be at least 1, not {k}.")
        out: list[list[Hit]] = []
        for start in range(0, len(queries), self.settings.batch):
            out += self._batch(list(queries[start : start + self.settings.batch]), k)
        return out

    def _batch(self, queries: list[str], k: int) -> list[list[Hit]]:
        if not self._single:
            status, body, url = self._post({"queries": queries, "topk": k, "return_scores": True})
            if status in (400, 422) and self.settings.style == "auto":
                self._single = True
            else:
                return read_answer(_checked(status, body, url), len(queries), k, url)
        found = []
        for query in queries:
            status, body, url = self._post({"query": query, "topk": k, "return_scores": True})
            found += read_answer(_checked(status, body, url), 1, k, url)
        return found

    def _post(self, payload: dict[str, Any]) -> tuple[int, bytes, str]:
        """Status, body and address of the first server that answers; all are asked before giving up."""
        failures = []
        with self._lock:
            order = [next(self._turn) for _ in self.urls]
        body = json.dumps(payload).encode("ascii")
        for url in order:
            try:
                answer = self._pool.request(
                    "POST", url, body=body, headers={"Content-Type": "application/json"}
                )
                return answer.status, answer.data, url
            except self._errors() as error:
                failures.append(f"{url}: {_reason(error)}")
        raise RetrieverFailed(
            f"No answer after {self.settings.tries} tries: {'; '.join(failures)}. "
            "Start the server (seedbench serve retrieval INDEX) or correct 'url'."
        )

    def _errors(self) -> tuple[type[Exception], ...]:
        import urllib3

        return (urllib3.exceptions.HTTPError,)

    def _identify(self) -> str:
        reported = {self._reported(url) for url in self.urls}
        if len(reported - {""}) > 1:
            raise ConfigError(f"The servers {', '.join(self.urls)} serve different indexes.")
        return max(reported) or hashlib.sha256("\n".join(self.urls).encode()).hexdigest()

    def _reported(self, url: str) -> str:
        """The fingerprint a server tells on ``/health``; "" from a program that has no such page."""
        try:
            answer = self._pool.request("GET", url.rsplit("/", 1)[0] + "/health")
        except self._errors() as error:
            raise RetrieverFailed(
                f"No retrieval server at {url} ({_reason(error)}). "
                "Start it (seedbench serve retrieval INDEX) or correct 'url'."
            ) from error
        try:
            return str(json.loads(answer.data)["fingerprint"])
        except (ValueError, KeyError, TypeError):
            return ""


def read_answer(body: bytes, expected: int, k: int, url: str) -> list[list[Hit]]:
    """Hits from a response body of either family, wrapped (with scores) or bare (without)."""
    try:
        lists = json.loads(body)["result"]
    except (ValueError, KeyError, TypeError) as error:
        raise RetrieverFailed(f"{url} answered no {{'result': ...}} but {body[:120]!r}.") from error
    if not isinstance(lists, list) or len(lists) != expected:
        count = len(lists) if isinstance(lists, list) else type(lists).__name__
        raise RetrieverFailed(f"{url} answered {count} result lists to {expected} queries.")
    for one in lists:
        if not isinstance(one, list):
            raise RetrieverFailed(f"{url} answered {str(one)[:120]} instead of a list of documents.")
    return [[_hit(item, url) for item in one][:k] for one in lists]


def _hit(item: Any, url: str) -> Hit:
    document = item.get("document", item) if isinstance(item, dict) else None
    if isinstance(document, dict):
        contents = document.get("contents")
        if contents is None and isinstance(document.get("text"), str):
            contents = f'"{document.get("title", "")}"\n{document["text"]}'
        if isinstance(contents, str):
            score = item.get("score")
            return Hit(str(document.get("id", "")), contents, float(score) if score is not None else 0.0)
    raise RetrieverFailed(f"{url} answered a document without 'contents': {str(item)[:120]}.")


def _checked(status: int, body: bytes, url: str) -> bytes:
    if status != 200:
        raise RetrieverFailed(f"{url} answered status {status}: {body[:200].decode('utf-8', 'replace')}.")
    return body


def _address(url: str) -> str:
    """A full address; ``http://host:port`` alone means its ``/retrieve``."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"'{url}' is no address. Expected http://host:port/retrieve.")
    scheme, _, rest = url.partition("://")
    return url if "/" in rest.rstrip("/") else f"{scheme}://{rest.rstrip('/')}/retrieve"


def _pool(settings: RemoteSettings) -> Any:
    try:
        import urllib3
    except ImportError as error:
        raise ExtraMissing("The retrieval client needs urllib3: pip install 'seedbench[search]'.") from error
    retry = urllib3.Retry(
        total=settings.tries - 1,
        backoff_factor=settings.pause,
        backoff_max=settings.longest_pause,
        status_forcelist=_AGAIN,
        allowed_methods=None,  # a search changes nothing, so POST may be repeated
        respect_retry_after_header=True,
    )
    return urllib3.PoolManager(retries=retry, timeout=settings.timeout, maxsize=16)


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", None) or error
    return str(inner).rpartition(": ")[2] or type(inner).__name__
