"""Search-based question answering over seven question sets, with the two dialects of the literature."""

from seedbench.envs.search_qa.options import Options, make

from seedbench.contracts import EnvironmentKind

KIND = EnvironmentKind(
    name="search_qa",
    options=Options,
    make=make,
    default_splits={"mini": ("mini-train", "mini-test"), "real": ("train", "test")},
    scales={
        "paper": {
            "train": {"tasks": 128, "minibatch_rows": 512, "lr_warmup": 15},
            "eval": {"every": 0},
            "objective": {"kl": 0.001, "entropy": 0.0},
        }
    },
)
