"""ALFWorld (text): native engine, official games, generated games, oracle, demonstrator."""

from seedbench.envs.alfworld.env import AlfWorld, Options

from seedbench.types import EnvironmentKind

KIND = EnvironmentKind(
    name="alfworld",
    options=Options,
    make=AlfWorld,
    default_splits={"mini": ("mini-train", "mini-seen"), "official": ("train", "valid_seen")},
)
