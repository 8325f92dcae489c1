"""Search-based question answering over seven question sets, with the two dialects of the literature."""

from seedbench.envs.search_qa.options import Options, make

from seedbench.types import EnvironmentKind

KIND = EnvironmentKind(
    name="search_qa",
    options=Options,
    make=make,
    default_splits={"mini": ("mini-train", "mini-test"), "real": ("train", "test")},
)
