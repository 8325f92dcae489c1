"""Dense retrieval with faiss by inner product: exact (``flat``), graph (``hnsw``), compressed (``ivfpq``).

Row i of the faiss index is document i of the corpus. Nothing in faiss ties them together, so ids and texts
are stored in the same folder, counted and hashed (a mismatched pair is the most common fault of this kind
of server: FlashRAG #2, #42).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from seedbench.errors import ConfigError, DataCorrupt, ExtraMissing
from seedbench.search.base import Document, Hit
from seedbench.search.encoder import Encoder
from seedbench.search.strings import Strings

Layout = Literal["flat", "hnsw", "ivfpq"]
#: Documents encoded at a time while building.
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class DenseSettings:
    """``links``, ``ef_search``: HNSW. ``lists`` (0: 4 * sqrt(n)), ``probes``, ``code_bytes``: IVFPQ."""

    encoder: str = "minilm"
    layout: Layout = "flat"
    links: int = 32
    ef_search: int = 64
    lists: int = 0
    probes: int = 16
    code_bytes: int = 48


class Dense:
    """A :class:`~seedbench.search.base.Retriever`. Threads may share it."""

    def __init__(
        self,
        index: Any,
        ids: Strings,
        texts: Strings,
        encoder: Encoder,
        settings: DenseSettings,
        fingerprint: str,
    ) -> None:
        if index.ntotal != len(ids) or len(ids) != len(texts):
            raise DataCorrupt(
                f"The faiss index has {index.ntotal} rows for {len(ids)} ids and {len(texts)} texts. "
                "It belongs to another corpus: build the index again."
            )
        if index.d != encoder.dimensions:
            raise DataCorrupt(
                f"The index holds vectors of {index.d} dimensions, encoder '{encoder.name}' makes "
                f"{encoder.dimensions}. Name the encoder the index was built with."
            )
        self.index, self.ids, self.texts = index, ids, texts
        self.encoder, self.settings, self.fingerprint = encoder, settings, fingerprint
        tune(index, settings)

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        settings: DenseSettings | None = None,
        encoder: Encoder | None = None,
    ) -> Dense:
        """Encode and index a corpus. Raises :class:`DataCorrupt` on a repeated id."""
        settings = settings or DenseSettings()
        encoder = encoder or Encoder(settings.encoder)
        kept = list(documents)
        names = [d.id for d in kept]
        if len(set(names)) < len(names):
            raise DataCorrupt("The corpus has a repeated id. Ids must differ.")
        vectors = np.empty((len(kept), encoder.dimensions), np.float32)
        for i in range(0, len(kept), _BATCH):
            vectors[i : i + _BATCH] = encoder.encode([d.contents for d in kept[i : i + _BATCH]], "passage")
        return cls.of_vectors(kept, vectors, encoder, settings)

    @classmethod
    def of_vectors(
        cls, documents: Sequence[Document], vectors: np.ndarray, encoder: Encoder, settings: DenseSettings
    ) -> Dense:
        """Index unit ``vectors`` (documents, dimensions) that were computed elsewhere."""
        index = make_index(vectors, settings)
        ids, texts = Strings.of(d.id for d in documents), Strings.of(d.contents for d in documents)
        digest = hashlib.sha256(f"dense {encoder.fingerprint} {asdict(settings)!r}".encode())
        for part in (ids, texts):
            digest.update(part.offsets.tobytes())
            digest.update(part.data.tobytes())
        return cls(index, ids, texts, encoder, settings, digest.hexdigest())

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most ``k`` hits per query, best first; ties broken by id, ascending."""
        if k < 1:
            raise ConfigError(f"k is the number of hits and must be at least 1, not {k}.")
        if not queries or not len(self):
            return [[] for _ in queries]
        scores, rows = self.index.search(self.encoder.encode(queries, "query"), min(k, len(self)))
        return [self._hits(s, r) for s, r in zip(scores, rows, strict=True)]

    def _hits(self, scores: np.ndarray, rows: np.ndarray) -> list[Hit]:
        # An approximate index reports row -1 when it found fewer than k; that is no document.
        found = [
            Hit(self.ids[int(r)], self.texts[int(r)], float(s))
            for s, r in zip(scores, rows, strict=True)
            if r >= 0
        ]
        return sorted(found, key=lambda h: (-h.score, h.id))

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the parts of the index into an existing folder; returns what :meth:`read` needs to know."""
        faiss = load_faiss()
        faiss.write_index(self.index, str(folder / "vectors.faiss"))
        for name, part in (("ids", self.ids), ("texts", self.texts)):
            np.save(folder / f"{name}.npy", part.data)
            np.save(folder / f"{name}_at.npy", part.offsets)
        return {
            "settings": asdict(self.settings),
            "encoder_sha256": self.encoder.fingerprint,
            "fingerprint": self.fingerprint,
            "documents": len(self),
            "vector_bytes": (folder / "vectors.faiss").stat().st_size,
        }

    @classmethod
    def read(
        cls, folder: Path, meta: dict[str, Any], *, mmap: bool = True, encoder: Encoder | None = None
    ) -> Dense:
        """Open what :meth:`write` wrote. Raises :class:`DataCorrupt` when a part is damaged or misfits."""
        faiss = load_faiss()
        settings = DenseSettings(**meta["settings"])
        encoder = encoder or Encoder(settings.encoder)
        if encoder.fingerprint != meta["encoder_sha256"]:
            raise DataCorrupt(
                f"{folder} was built with other weights of encoder '{settings.encoder}'. "
                "Queries and passages would not share a space: build the index again."
            )
        path = folder / "vectors.faiss"
        # A mapped file that is too short kills the process at the first missing page; ask before mapping.
        if not path.is_file() or path.stat().st_size != meta["vector_bytes"]:
            raise DataCorrupt(f"{path} cannot be read (absent or cut off). Build the index again.")
        try:
            flags = faiss.IO_FLAG_MMAP if mmap and settings.layout != "hnsw" else 0
            index = faiss.read_index(str(path), flags)
            parts = [
                Strings(
                    np.load(folder / f"{n}.npy", mmap_mode="r" if mmap else None, allow_pickle=False),
                    np.load(folder / f"{n}_at.npy", mmap_mode="r" if mmap else None, allow_pickle=False),
                )
                for n in ("ids", "texts")
            ]
        except (OSError, ValueError, EOFError, RuntimeError) as error:
            raise DataCorrupt(f"{folder} cannot be read ({_short(error)}). Build the index again.") from error
        return cls(index, parts[0], parts[1], encoder, settings, meta["fingerprint"])


def make_index(vectors: np.ndarray, settings: DenseSettings) -> Any:
    """A faiss index over rows of ``vectors`` (n, d), float32, inner product."""
    faiss = load_faiss()
    n, d = vectors.shape
    if settings.layout == "flat":
        index = faiss.IndexFlatIP(d)
    elif settings.layout == "hnsw":
        index = faiss.IndexHNSWFlat(d, settings.links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 200
    else:
        index = _ivfpq(faiss, n, d, settings)
        index.train(vectors)
    index.add(vectors)
    return index


def _ivfpq(faiss: Any, n: int, d: int, settings: DenseSettings) -> Any:
    lists = settings.lists or max(1, int(4 * math.sqrt(n)))
    if n < max(lists, 256):
        raise ConfigError(
            f"IVFPQ learns its codes from at least 256 passages; this corpus has {n}. Use flat."
        )
    if d % settings.code_bytes:
        raise ConfigError(f"code_bytes must divide the {d} dimensions; {settings.code_bytes} does not.")
    coarse = faiss.IndexFlatIP(d)
    index = faiss.IndexIVFPQ(coarse, d, lists, settings.code_bytes, 8, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = 1234
    index.own_fields = True
    coarse.this.disown()
    return index


def tune(index: Any, settings: DenseSettings) -> None:
    """Set the search-time parameters, which faiss does not keep in every file."""
    if settings.layout == "hnsw":
        index.hnsw.efSearch = settings.ef_search
    if settings.layout == "ivfpq":
        index.nprobe = settings.probes


def load_faiss() -> Any:
    """The faiss module. Raises :class:`ExtraMissing` with the line that installs it."""
    try:
        import faiss
    except ImportError as error:
        raise ExtraMissing("Dense retrieval needs faiss: pip install 'seedbench[search]'.") from error
    return faiss


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:200] if lines else type(error).__name__
