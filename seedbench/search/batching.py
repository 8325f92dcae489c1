"""Many callers, one retriever: requests are put together, counted, bounded, and remembered.

Callers block in :meth:`Batcher.search` while one worker thread drains the queue: everything that has
arrived within ``linger`` seconds, up to ``batch`` queries, is one call of the retriever. That is what a
dense encoder needs and what keeps a graph or JVM engine from being entered by many threads at once.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from seedbench.search.base import Hit, Retriever


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """``waiting``: requests in flight before new ones are refused. ``patience``: seconds a caller waits.

    ``linger`` is only spent when several callers are waiting at once; a lone caller is served immediately.
    ``memory``: queries whose hits are kept (0: none).
    """

    batch: int = 64
    linger: float = 0.002
    waiting: int = 64
    patience: float = 30.0
    memory: int = 4096


class Busy(Exception):
    """Too many requests in flight, or no answer within ``patience``: come back later."""


@dataclass(slots=True)
class _Request:
    queries: tuple[str, ...]
    k: int
    done: threading.Event = field(default_factory=threading.Event)
    hits: list[list[Hit]] | None = None
    error: Exception | None = None
    given_up: bool = False


class Batcher:
    """Thread-safe front of a retriever. :meth:`close` ends the worker."""

    def __init__(self, retriever: Retriever, settings: BatchSettings | None = None) -> None:
        self.retriever, self.settings = retriever, settings or BatchSettings()
        self.counts: Counter[str] = Counter()
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._known: OrderedDict[tuple[str, int], list[Hit]] = OrderedDict()
        self._lock = threading.Lock()
        self._in_flight = 0
        self._worker = threading.Thread(target=self._run, name="retrieval", daemon=True)
        self._worker.start()

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """As the retriever's own; raises :class:`Busy`, or what the retriever raised."""
        request = _Request(tuple(queries), k)
        with self._lock:
            if self._in_flight >= self.settings.waiting:
                self.counts["refused"] += 1
                raise Busy(f"{self._in_flight} requests are waiting")
            self._in_flight += 1
        try:
            self._queue.put(request)
            if not request.done.wait(self.settings.patience):
                request.given_up = True
                self.counts["late"] += 1
                raise Busy(f"no answer within {self.settings.patience:g} s")
        finally:
            with self._lock:
                self._in_flight -= 1
        if request.error is not None:
            raise request.error
        assert request.hits is not None
        return request.hits

    def close(self) -> None:
        self._queue.put(None)
        self._worker.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            requests, stop = self._gather(first)
            for k in sorted({r.k for r in requests}):
                self._answer([r for r in requests if r.k == k and not r.given_up], k)
            if stop:
                return

    def _gather(self, first: _Request) -> tuple[list[_Request], bool]:
        """The first request and those that arrive while lingering, up to the size of a batch."""
        requests, size = [first], len(first.queries)
        deadline = time.monotonic() + self.settings.linger
        while size < self.settings.batch:
            # Nobody else is in flight: waiting would only slow this caller down.
            alone = self._in_flight <= len(requests)
            pause = 0.0 if alone else max(0.0, deadline - time.monotonic())
            try:
                request = self._queue.get(timeout=pause) if pause else self._queue.get_nowait()
            except queue.Empty:
                break
            if request is None:
                return requests, True
            requests.append(request)
            size += len(request.queries)
        return requests, False

    def _answer(self, requests: list[_Request], k: int) -> None:
        try:
            found = self._look_up(sorted({q for r in requests for q in r.queries}), k)
            for request in requests:
                request.hits = [found[q] for q in request.queries]
        except Exception as error:
            for request in requests:
                request.error = error
        finally:
            for request in requests:
                request.done.set()

    def _look_up(self, wanted: list[str], k: int) -> dict[str, list[Hit]]:
        found = {q: self._known[q, k] for q in wanted if (q, k) in self._known}
        missing = [q for q in wanted if q not in found]
        self.counts["remembered"] += len(found)
        self.counts["searched"] += len(missing)
        for start in range(0, len(missing), self.settings.batch):
            part = missing[start : start + self.settings.batch]
            found.update(zip(part, self.retriever.search(part, k), strict=True))
            self.counts["batches"] += 1
        for q in wanted:
            self._known[q, k] = found[q]
            self._known.move_to_end((q, k))
        while len(self._known) > self.settings.memory:
            self._known.popitem(last=False)
        return found
