"""WebShop: the real shop without Java, a generated one, oracle, demonstrator, web pages."""

from seedbench.envs.webshop.env import Options, WebShop

from seedbench.contracts import EnvironmentKind

KIND = EnvironmentKind(
    name="webshop",
    options=Options,
    make=WebShop,
    default_splits={
        "mini": ("mini-train", "mini-test"),
        "faithful": ("train", "test"),
        "fixed": ("strict-train", "test"),
    },
    # SEED's scripts: mean-only advantages
    scales={"paper": {"train": {"minibatch_rows": 64}, "advantage": {"scale": "none"}}},
)
