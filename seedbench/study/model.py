"""What a study is: a TOML file that says which runs to make, and the plan that follows from it.

A study is a grid (environments x backbones x methods and named arms x data fractions x seeds). Tables
``[scale.<name>]`` hold what differs at a scale and ``[smoke]`` what differs in a smoke test; both are laid on
the rest of the file. ``docs/studies.md`` shows every key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from seedbench.config import RunConfig, Section, merge, read_toml, splits_of, validated
from seedbench.errors import ConfigError, SeedbenchError, UnknownName
from seedbench.jsonl import read_json
from seedbench.panel import short_name
from seedbench.registry import ENVIRONMENTS, METHODS, did_you_mean
from seedbench.runner import resolve, run_name

#: The resolved study inside a study's folder.
RECORD = "study.json"
#: Settings of every run of a smoke test: it proves that the parts fit, its numbers mean nothing.
SMOKE: dict[str, Any] = {
    "seeds": [0],
    "settings": {
        "train": {"updates": 1, "tasks": 2, "group": 2, "minibatches": 1, "checkpoint_every": 1},
        "eval": {"every": 0, "episodes": 1},
    },
}
SMOKE_WARM_UP = {"tasks": 2, "repeats": 1, "epochs": 1, "batch": 2}
#: Tasks of every panel in a smoke test: at least one of each reporting group of the shipped environments.
SMOKE_TASKS = 7


class Arm(Section):
    """A named row: ``options`` of its method, and any other ``settings`` of its runs."""

    label: str = Field(min_length=1)
    method: str
    options: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)


class Place(Section):
    """How a study uses one environment. ``panels``: evaluated with the final checkpoint, beside the usual."""

    options: dict[str, Any] = Field(default_factory=dict)
    split: str = ""
    panel: str = ""
    panels: tuple[str, ...] = ()
    settings: dict[str, Any] = Field(default_factory=dict)


class Study(Section):
    """A study at one scale. ``methods`` and ``environments`` may be ``"all"``. ``reference``: the arm that the
    paired tests compare the others with; without one they compare all pairs."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    table: Literal["1", "2", "6", "7"] = "1"
    reference: str = ""
    scale: str = "quick"
    smoke: bool = False
    environments: tuple[str, ...] | Literal["all"]
    backbones: tuple[str, ...] = ("tiny",)
    methods: tuple[str, ...] | Literal["all"] = ()
    arm: tuple[Arm, ...] = ()
    fractions: tuple[float, ...] = (1.0,)
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field((0,), min_length=1)
    settings: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Place] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of a study; ``panels`` are evaluated after training."""

    config: RunConfig
    panels: tuple[str, ...]

    @property
    def name(self) -> str:
        return run_name(self.config)

    @property
    def arm(self) -> str:
        """What a reader calls it: its label, or its method."""
        return self.config.label or self.config.method.name


# -- files -----------------------------------------------------------------------------------------------------
def shipped() -> list[str]:
    """Names of the studies in the package."""
    folder = files("seedbench").joinpath("studies")
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))


def load(
    source: str, scale: str = "", smoke: bool = False, changes: Mapping[str, Any] | None = None
) -> Study:
    """A study from a shipped name, a TOML file, or the folder of a study that was begun.

    ``changes`` are laid on last. A folder holds its study at one scale: nothing can be changed any more.
    Raises :class:`ConfigError` or :class:`UnknownName` naming the file and the key.
    """
    path = Path(source)
    if (path / RECORD).is_file():
        if scale or smoke or changes:
            raise ConfigError(
                f"'{path}' is a study that was begun; its settings are fixed. Leave the other options out, or "
                "give the study's name or file."
            )
        return validated(Study, read_json(path / RECORD), f"study {path / RECORD}")
    if source in shipped():
        path = Path(str(files("seedbench").joinpath("studies", f"{source}.toml")))
    elif not path.is_file():
        raise UnknownName(
            f"There is no study '{source}'.{did_you_mean(source, shipped())} Shipped: "
            f"{', '.join(shipped())}; or give a TOML file, or the folder of a study."
        )
    return _assembled(read_toml(path), path, scale, smoke, changes or {})


def _assembled(raw: dict[str, Any], path: Path, scale: str, smoke: bool, changes: Mapping[str, Any]) -> Study:
    """The layers of a file put together. Every scale is checked, not only the one asked for."""
    base = {k: v for k, v in raw.items() if k not in ("scale", "smoke")}
    base.setdefault("name", path.stem)
    overlays, own_smoke = raw.get("scale", {}), raw.get("smoke", {})
    if not isinstance(overlays, dict) or not all(isinstance(o, dict) for o in overlays.values()):
        raise ConfigError(f"Study {path}: 'scale' must be tables like [scale.quick].")
    what = f"study {path}"
    for name, over in overlays.items():
        validated(Study, merge(base, over) | {"scale": name}, f"{what} at [scale.{name}]")
    chosen = scale or "quick"
    made = merge(base, overlays.get(chosen, {})) | {"scale": chosen, "smoke": smoke}
    if smoke:
        made = merge(merge(made, SMOKE), own_smoke)
    return validated(Study, merge(made, dict(changes)), what)


def spelled_out(study: Study) -> Study:
    """``study`` with "all" replaced by names: what is on disk must not change with what is installed."""
    names: dict[str, Any] = {}
    if study.environments == "all":
        names["environments"] = tuple(ENVIRONMENTS.names())
    if study.methods == "all":
        names["methods"] = tuple(METHODS.names())
    return study.model_copy(update=names)


# -- the plan --------------------------------------------------------------------------------------------------
def plan(study: Study) -> list[Planned]:
    """Every run, seeds outermost so that an unfinished study has whole rows.

    All settings are checked here, before anything runs. Raises :class:`ConfigError` naming the arm.
    """
    named = spelled_out(study)
    environments = named.environments
    stray = sorted(set(study.environment) - set(environments))
    if stray and study.environments == "all":
        ENVIRONMENTS.get(stray[0])  # says what is known
    arms = _arms(study, named.methods)
    lists = {"environments": environments, "backbones": study.backbones, "seeds": study.seeds}
    for key, values in {**lists, "fractions": study.fractions}.items():
        _once(study, key, values)
    cells = [
        _planned(study, env, backbone, arm, fraction)
        for env in environments
        for backbone in study.backbones
        for arm in arms
        for fraction in study.fractions
    ]
    if not cells:
        raise ConfigError(f"Study '{study.name}' plans no run: give methods or arms, and environments.")
    _distinct(study, cells)
    return [replace(c, config=c.config.model_copy(update={"seed": s})) for s in study.seeds for c in cells]


def _arms(study: Study, methods: Sequence[str]) -> list[Arm]:
    _once(study, "methods", methods)
    _once(study, "arm labels", [a.label for a in study.arm])
    named = [Arm(label=m, method=m) for m in methods]
    taken = sorted({a.label for a in study.arm} & set(methods))
    if taken:
        raise ConfigError(
            f"Study '{study.name}': '{taken[0]}' is both a method of the list and an arm's label. Rename the arm."
        )
    known = {a.label for a in (*named, *study.arm)}
    if study.reference and study.reference not in known:
        raise ConfigError(
            f"Study '{study.name}': the reference '{study.reference}' is none of its arms: {', '.join(sorted(known))}."
        )
    return [*named, *study.arm]


def _once(study: Study, key: str, values: Sequence[Any]) -> None:
    double = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if double is not None:
        raise ConfigError(f"Study '{study.name}': {key} names '{double}' twice.")


def _planned(study: Study, env: str, backbone: str, arm: Arm, fraction: float) -> Planned:
    """One cell of the grid, under the first seed."""
    place = study.environment.get(env, Place())
    # a method by itself is named by the tables; beside arms of its own it needs its name as a label
    several = any(a.method == arm.method for a in study.arm)
    own: dict[str, Any] = {
        "env": {"options": place.options, "split": place.split, "panel": place.panel},
        "label": arm.label if several else "",
    }
    for layer in (study.settings, place.settings, arm.settings):
        own = merge(own, layer)
    own = merge(own, {"method": {"options": arm.options}})
    if fraction != 1.0:
        own = merge(own, {"train": {"data_fraction": fraction}})
    try:
        if study.smoke and METHODS.get(arm.method).warm_up is not None:
            own = merge({"method": {"options": {"warm_up": SMOKE_WARM_UP}}}, own)
        config = resolve(env, arm.method, backbone, study.scale, study.seeds[0], own)
    except SeedbenchError as error:
        raise type(error)(f"Study '{study.name}', arm '{arm.label}': {error}") from error
    if not study.smoke:
        return Planned(config, place.panels)
    section = config.env.model_copy(update={"panel": short_name(splits_of(config.env)[1], SMOKE_TASKS)})
    short = config.model_copy(update={"env": section})
    return Planned(short, tuple(short_name(name, SMOKE_TASKS) for name in place.panels))


def _distinct(study: Study, runs: Sequence[Planned]) -> None:
    """Two arms of equal settings would be one run counted twice."""
    seen: dict[str, Planned] = {}
    for run in runs:
        other = seen.setdefault(run.config.model_copy(update={"label": ""}).sha256(), run)
        if other is not run:
            raise ConfigError(
                f"Study '{study.name}': the arms '{other.arm}' and '{run.arm}' have the same settings. "
                "Remove one, or change what should differ."
            )
