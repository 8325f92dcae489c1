"""``seedbench serve retrieval`` and ``seedbench index build|info|check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

serve = typer.Typer(help="Servers.", no_args_is_help=True)
index = typer.Typer(help="Search indexes: build, describe, verify.", no_args_is_help=True)


@serve.callback()
def _servers() -> None:
    """Servers."""


@serve.command("retrieval")
def serve_retrieval(
    source: Annotated[Path, typer.Argument(help="index folder, or a corpus (JSONL) to index in memory")],
    host: Annotated[str, typer.Option(help="address to listen on; there is no authentication")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    topk: Annotated[int, typer.Option(help="hits when a request names no topk")] = 3,
    waiting: Annotated[int, typer.Option(min=1, help="requests in flight before 503")] = 64,
    lucene: Annotated[bool, typer.Option(help="SOURCE is a Lucene index (pyserini)")] = False,
) -> None:
    """Serve POST /retrieve as Search-R1 and verl-agent clients call it."""
    from seedbench.search.batching import BatchSettings
    from seedbench.search.server import Limits
    from seedbench.search.server import serve as run

    retriever = _open(source, lucene)
    size = f"{len(retriever):,} passages, " if hasattr(retriever, "__len__") else ""
    typer.echo(f"{size}index {retriever.fingerprint[:12]}, http://{host}:{port}/retrieve")
    run(retriever, host, port, Limits(default_topk=topk), BatchSettings(waiting=waiting))


@index.command("build")
def index_build(
    corpus: Annotated[Path, typer.Argument(help="JSONL (.gz, .xz): 'id' and 'contents' on every line")],
    folder: Annotated[Path, typer.Argument(help="where the index goes")],
    kind: Annotated[str, typer.Option(help="bm25, or dense in layout flat, hnsw or ivfpq")] = "bm25",
    encoder: Annotated[str, typer.Option(help="dense: minilm, e5, or a model folder")] = "minilm",
    k1: Annotated[float, typer.Option(help="bm25")] = 0.9,
    b: Annotated[float, typer.Option(help="bm25")] = 0.4,
) -> None:
    """Index a corpus."""
    from seedbench.errors import ConfigError
    from seedbench.search.bm25 import Settings
    from seedbench.search.dense import DenseSettings
    from seedbench.search.store import build_index

    layouts = {"dense": "flat", "flat": "flat", "hnsw": "hnsw", "ivfpq": "ivfpq"}
    if kind == "bm25":
        made = build_index(corpus, folder, Settings(k1, b))
    elif kind in layouts:
        made = build_index(corpus, folder, DenseSettings(encoder=encoder, layout=layouts[kind]))  # type: ignore[arg-type]
    else:
        raise ConfigError(f"Unknown kind '{kind}'. Known: bm25, {', '.join(layouts)}.")
    typer.echo(f"{made['documents']:,} passages, {made['bytes']:,} bytes, hash {made['fingerprint'][:12]}")


@index.command("info")
def index_info(folder: Path) -> None:
    """Describe an index."""
    from seedbench.search.store import describe

    typer.echo(json.dumps(describe(folder), indent=1, sort_keys=True))


@index.command("check")
def index_check(
    folder: Path,
    corpus: Annotated[Path | None, typer.Option(help="also compare order and text with this file")] = None,
) -> None:
    """Read every byte of an index and compare hashes."""
    from seedbench.search.store import check_index

    for line in check_index(folder, corpus):
        typer.echo(f"ok: {line}")


def _open(source: Path, lucene: bool):  # type: ignore[no-untyped-def]
    if lucene:
        from seedbench.search.pyserini import Pyserini

        return Pyserini(source)
    if source.is_file():
        from seedbench.search.bm25 import BM25
        from seedbench.search.corpus import read_corpus

        return BM25.build(read_corpus(source))
    from seedbench.search.store import open_index

    return open_index(source)
