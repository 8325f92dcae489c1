"""Options of search_qa and the making of an environment from them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from seedbench.envs.search_qa import data, protocol
from seedbench.envs.search_qa.env import SearchQA
from seedbench.envs.search_qa.mini_world import build
from seedbench.envs.search_qa.mini_writer import Writer
from seedbench.envs.search_qa.questions import SETS, Question

from seedbench.errors import ConfigError, DataMissing
from seedbench.search.base import Retriever
from seedbench.search.bm25 import BM25


class Options(BaseModel):
    """Settings of one environment. Everything here is part of the run record."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: Literal["mini", "real"] = "mini"
    #: ``seed`` is the sdar dialect under SEED's settings; they are equal for search.
    protocol: Literal["sdar", "seed", "search-r1"] = "sdar"
    retriever: Literal["bm25", "dense", "http", "pyserini"] = "bm25"
    #: address(es) of a Search-R1-compatible server, tried in turn
    url: tuple[str, ...] = ()
    #: documents per search; the papers use 3, the small context of mini takes 2
    topk: int | None = Field(None, ge=1, le=100)
    #: form of an observation in the sdar dialect; the papers' is json, mini's default is plain
    observation: Literal["json", "plain"] | None = None
    #: real: folder with questions and corpus (default: $SEARCH_QA_DATA)
    data: Path | None = None
    #: real: a saved index (``seedbench index build``), instead of indexing the corpus in memory
    index: Path | None = None
    #: real: which questions and corpus of the folder
    subset: Literal["all", "mini"] = "all"
    #: question sets to keep, in test; training sets are those of the papers where the data has them
    sets: tuple[str, ...] = Field(SETS, min_length=1)
    train_sets: tuple[str, ...] | None = Field(None, min_length=1)
    #: mini: the world and how many questions are written about each half
    world_seed: int = 0
    train_size: int = Field(2100, ge=7, le=2800)
    test_size: int = Field(350, ge=7, le=2800)


def make(options: Options) -> SearchQA:
    """The environment of ``options``. Raises DataMissing, DataCorrupt, ConfigError with what to do."""
    unknown = [s for s in (*options.sets, *(options.train_sets or ())) if s not in SETS]
    if unknown:
        raise ConfigError(f"Unknown question set '{unknown[0]}'. Known: {', '.join(SETS)}.")
    dialect = protocol.DIALECTS[options.protocol]
    mini = options.variant == "mini"
    form: protocol.Form = options.observation or ("plain" if mini else "json")
    topk = options.topk or (2 if mini else dialect.topk)
    if mini:
        splits, retriever = _mini(options)
        details = {"world_seed": str(options.world_seed)}
    else:
        splits, retriever = _real(options)
        details = {"subset": options.subset}
    return SearchQA(
        splits,
        retriever,
        dialect,
        "transcript" if dialect.transcript else form,
        options.variant,
        topk,
        details,
    )


def _mini(options: Options) -> tuple[dict[str, list[Question]], Retriever]:
    if options.retriever != "bm25" or options.url or options.data or options.index:
        raise ConfigError(
            "The mini variant brings its own questions, corpus and index: leave out retriever, url, data and "
            "index, or set variant = 'real'."
        )
    world = build(options.world_seed)
    sets = {"mini-train": options.train_sets or options.sets, "mini-test": options.sets}
    sizes = {"mini-train": options.train_size, "mini-test": options.test_size}
    splits = {}
    for split, names in sets.items():
        writer = Writer(world, split.removeprefix("mini-"), options.world_seed)
        share, extra = divmod(sizes[split], len(names))
        splits[split] = [q for i, s in enumerate(names) for q in writer.write(s, share + (i < extra))]
    return splits, BM25.build(world.documents())


def _real(options: Options) -> tuple[dict[str, list[Question]], Retriever]:
    folder = data.find(options.data, options.subset == "mini")
    splits = folder.splits(options.sets, options.train_sets)
    if not any(splits.values()):
        raise DataMissing(
            f"{folder.root} holds no questions of {', '.join(options.sets)}. Expected questions/<set>.jsonl "
            "or test.parquet; docs/search_qa.md lists the names."
        )
    return splits, data.retriever(options.retriever, folder, options.index, options.url)
