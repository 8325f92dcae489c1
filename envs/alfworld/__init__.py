"""ALFWorld (text): native engine, official games, generated games, oracle, demonstrator."""

from seedbench.envs.alfworld.env import AlfWorld, Options

from seedbench.contracts import Download, EnvironmentKind

_RELEASES = "https://github.com/alfworld/alfworld/releases/download"

KIND = EnvironmentKind(
    name="alfworld",
    options=Options,
    make=AlfWorld,
    default_splits={"mini": ("mini-train", "mini-seen"), "official": ("train", "valid_seen")},
    scales={"paper": {"train": {"minibatch_rows": 256}}},
    # the files alfworld-download 0.4.x takes: trajectory metadata, and games in text version 2.1.2
    downloads=(
        Download(f"{_RELEASES}/0.2.2/json_2.1.1_json.zip", "trajectory metadata"),
        Download(f"{_RELEASES}/0.4.0/json_2.1.2_tw-pddl.zip", "game files"),
    ),
    download_folder="~/.cache/alfworld",
)
