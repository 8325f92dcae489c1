"""What a run is: a frozen, validated description with a hash. TOML files and ``-o a.b=1`` fill it in."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from seedbench.errors import ConfigError
from seedbench.registry import ENVIRONMENTS, METHODS, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EnvSection(Section):
    """``options`` are the environment's own (see ``seedbench info env NAME``); ``split`` trains, ``panel``
    evaluates; both default to the variant's."""

    name: str
    options: dict[str, Any] = {}
    split: str = ""
    panel: str = ""


class MethodSection(Section):
    """``options`` are fields of the method's dataclass, nested ones as tables."""

    name: str
    options: dict[str, Any] = {}


class BackboneSection(Section):
    """``name``: ``tiny``, a named model, or ``hf:<path or id>``; ``options`` are the backbone's own."""

    name: str = "tiny"
    options: dict[str, Any] = {}


class TrainSection(Section):
    """One update plays ``tasks`` x ``group`` episodes and makes ``minibatches`` optimiser steps on them (or, with
    ``minibatch_rows``, as many as that size of a mini-batch asks for).

    ``learning_rate`` rises linearly over ``lr_warmup`` updates and stays; ``micro_tokens`` bounds the padded
    tokens of one forward pass and changes no result; ``old_logprobs``: as sampled (free) or recomputed once
    before the update (as the papers do); ``importance_cap`` (0: off) multiplies a recomputed token's advantage by
    its probability now over that when sampled, at most the cap, where engine and trainer disagree (truncated
    importance sampling); ``mask_truncated`` trains on no completion that was cut at its token limit, which still
    counts in its group's baseline; ``data_fraction`` trains on a nested subset of the split;
    ``block`` episodes are played side by side (see :mod:`seedbench.rollout`).
    """

    updates: int = Field(150, ge=0)
    data_fraction: float = Field(1.0, gt=0, le=1)
    tasks: int = Field(16, ge=1)
    group: int = Field(8, ge=2)
    temperature: float = Field(1.0, gt=0)
    learning_rate: float = Field(1e-6, gt=0)
    lr_warmup: int = Field(0, ge=0)
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.01
    clip_norm: float = Field(1.0, gt=0)
    minibatches: int = Field(4, ge=1)
    minibatch_rows: int = Field(0, ge=0)
    micro_tokens: int = Field(16384, ge=1)
    old_logprobs: Literal["sampled", "recomputed"] = "recomputed"
    importance_cap: float = Field(0.0, ge=0)
    mask_truncated: bool = False
    checkpoint_every: int = Field(10, ge=1)
    block: int = Field(64, ge=1)

    @model_validator(mode="after")
    def _something_to_correct(self) -> TrainSection:
        if self.importance_cap and self.old_logprobs == "sampled":
            raise ValueError(
                "importance_cap needs old_logprobs = 'recomputed': it compares them with those sampled"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_later(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Settings that came later are written when used, so that older runs keep their hash and name."""
        fields = TrainSection.model_fields
        unused = {k for k in ("importance_cap", "mask_truncated") if getattr(self, k) == fields[k].default}
        return {k: v for k, v in write(self).items() if k not in unused}


class EvaluationSection(Section):
    """``every``: updates between evaluations on the panel (0: only first and last); ``episodes``: plays of
    each panel task."""

    temperature: float = Field(0.4, ge=0)
    every: int = Field(5, ge=0)
    episodes: int = Field(1, ge=1)


class RunConfig(Section):
    """``label`` is the row name a study gives this arm; empty, it is left out of the record."""

    env: EnvSection
    method: MethodSection
    backbone: BackboneSection = BackboneSection()
    scale: str = "quick"
    seed: int = Field(0, ge=0)
    train: TrainSection = TrainSection()
    eval: EvaluationSection = EvaluationSection()
    label: str = ""

    @model_serializer(mode="wrap")
    def _without_empty_label(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {k: v for k, v in write(self).items() if k != "label" or v}

    def canonical(self) -> str:
        """JSON with sorted keys; equal configurations give equal text on every machine."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    def sha256(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def overrides(pairs: list[str]) -> dict[str, Any]:
    """``["train.updates=3", "method.options.coefficient=0.1"]`` as a nested dictionary."""
    out: dict[str, Any] = {}
    for pair in pairs:
        path, sign, text = pair.partition("=")
        if not sign or not path:
            raise ConfigError(f"'-o {pair}' should read section.name=value.")
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text  # a bare word is a string
        _set(out, path.split("."), value)
    return out


def _set(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"'{'.'.join(path)}' and '{part}' are both set: one of them is no section.")
    tree[path[-1]] = value


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``, tables merged, everything else replaced."""
    out = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            value = merge(out[key], value)
        out[key] = value
    return out


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Configuration file {path} cannot be read: {error}.") from error


def validated(kind: type[BaseModel] | TypeAdapter, data: Any, what: str) -> Any:
    """``data`` as ``kind``; a wrong name or value becomes one readable line per problem."""
    try:
        return kind.validate_python(data) if isinstance(kind, TypeAdapter) else kind.model_validate(data)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or what}: {_explained(kind, e)}" for e in error.errors()]
        raise ConfigError(f"Wrong {what}:\n  " + "\n  ".join(lines)) from error


def _explained(kind: Any, error: Any) -> str:
    """Pydantic's message; for a setting that does not exist, the nearest one that does."""
    if error["type"] != "extra_forbidden":
        return error["msg"]
    *sections, name = error["loc"]
    for part in sections:
        field = getattr(kind, "model_fields", {}).get(part)
        kind = field.annotation if field else None
    known = getattr(kind, "model_fields", {})
    return f"there is no such setting.{did_you_mean(str(name), known)}"


def make_method(section: MethodSection) -> Any:
    """The method object. Unknown or ill-typed options are errors that name the option.

    A table for a nested option changes what it names and keeps the method's other values; ``false`` switches
    an optional part off (``warm_up = false``: SEED without Stage 1).
    """
    kind = METHODS.get(section.name)
    options = _completed(kind, section.options, section.name)
    return validated(TypeAdapter(kind), options, f"options of method '{section.name}'")


def _completed(kind: Any, options: dict[str, Any], path: str) -> dict[str, Any]:
    """``options`` with nested tables laid on the defaults of ``kind``, a dataclass. Raises for unknown names,
    which pydantic ignores in standard dataclasses."""
    fields = {f.name: f for f in dataclasses.fields(kind)}
    hints = get_type_hints(kind)
    out: dict[str, Any] = {}
    for name, value in options.items():
        if name not in fields:
            hint = did_you_mean(name, fields)
            raise ConfigError(f"'{path}' has no option '{name}'.{hint} Options: {', '.join(sorted(fields))}.")
        parts = get_args(hints[name]) or (hints[name],)
        nested = next((p for p in parts if dataclasses.is_dataclass(p)), None)
        if value is False and type(None) in parts:
            value = None
        elif isinstance(value, dict) and nested is not None:
            own, default = _completed(nested, value, f"{path}.{name}"), fields[name].default
            if isinstance(default, nested):  # type: ignore[arg-type]
                own = {f.name: getattr(default, f.name) for f in dataclasses.fields(nested)} | own
            value = own
        out[name] = value
    return out


def make_environment(section: EnvSection) -> Any:
    """The environment object of a run."""
    kind = ENVIRONMENTS.get(section.name)
    return kind.make(validated(kind.options, section.options, f"options of environment '{section.name}'"))


def splits_of(section: EnvSection) -> tuple[str, str]:
    """(training split, evaluation panel) of a run, from its section or its variant's defaults."""
    kind = ENVIRONMENTS.get(section.name)
    options = validated(kind.options, section.options, f"options of environment '{section.name}'")
    split, panel = kind.default_splits[options.variant]
    return section.split or split, section.panel or panel
