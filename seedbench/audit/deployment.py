"""What was deployed: the declared setting, the trained weights, no skill, and training tasks kept apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seedbench.audit.case import Case
from seedbench.audit.verdicts import Check, unchecked, verdict
from seedbench.audit.weights import file_sha256, weights_sha256
from seedbench.errors import CheckpointCorrupt
from seedbench.manifest import bank_sha256, prompt_sha256
from seedbench.panel import sha256_lines
from seedbench.store import config_sha256

SETTING = (
    "Was the run made under the declared data, templates and limits, and are they those of this installation?"
)
WEIGHTS = "Are the evaluated weights exactly the trained checkpoint?"
NO_SKILL = "Did every ordinary evaluation episode run without a skill?"
SOURCES = "Were skills written from training episodes only?"
PANEL = "Are the evaluated tasks those of the declared panel?"


def check_setting(case: Case) -> Check:
    """Fingerprint, prompt hash and limits of the manifest against what this installation computes itself."""
    declared = case.run.manifest.get("env", {})
    faults, held, gaps = [], [], []
    if case.run.manifest.get("config_sha256", config_sha256(case.run.config)) != config_sha256(
        case.run.config
    ):
        faults.append("config.json is not the configuration that the manifest was written for.")
    if case.env is None:
        return verdict("setting", SETTING, faults, [], [case.no_env])
    spec = case.env.spec
    for name in ("name", "variant", "protocol", "max_steps", "history_length", "invalid_penalty"):
        if name in declared and declared[name] != getattr(spec, name):
            faults.append(f"{name}: {declared[name]} in the manifest, {getattr(spec, name)} here.")
    if "fingerprint" not in declared:
        gaps.append("the manifest has no fingerprint of data and templates")
    elif declared["fingerprint"] != spec.fingerprint:
        faults.append(
            f"Data or templates differ: fingerprint {declared['fingerprint'][:12]} in the manifest, "
            f"{spec.fingerprint[:12]} here."
        )
    else:
        held.append(f"fingerprint {spec.fingerprint[:12]} of data, templates and limits is equal here.")
    expected = prompt_sha256(case.env)
    if case.run.manifest.get("prompt_sha256", expected) != expected:
        faults.append("prompt_sha256 of the manifest is not that of the declared templates.")
    bank, here = case.run.manifest.get("bank_sha256"), bank_sha256(case.env)
    if bank and bank != here:
        faults.append(f"The skill bank differs: {bank[:12]} in the manifest, {here[:12]} here.")
    over = [e.task.id for _, e in case.evaluated() if len(e.turns) > spec.max_steps]
    faults += [f"Task '{i}' was played for more than the {spec.max_steps} steps declared." for i in over]
    return verdict("setting", SETTING, faults, held, gaps)


def check_panel(case: Case) -> Check:
    faults, held = [], []
    for stream in case.streams:
        panel = case.run.manifest.get("panels", {}).get(stream.panel)
        if panel is None:
            faults.append(f"Stream '{stream.name}' names panel '{stream.panel}', which the manifest lacks.")
            continue
        if sha256_lines(panel["ids"]) != panel["sha256"]:
            faults.append(
                f"The ids of panel '{panel['name']}' do not give its hash: the manifest was edited."
            )
        episodes, ids = case.episodes(stream.name), set(panel["ids"])
        strange = sorted({e.task.id for e in episodes} - ids)
        faults += [f"Stream '{stream.name}': task '{i}' is not in the panel." for i in strange]
        missing = len(ids - {e.task.id for e in episodes})
        held.append(f"{stream.name}: {len(ids) - missing} of {len(ids)} panel tasks on record.")
    return verdict("panel", PANEL, faults, held, [] if held else ["no evaluation on record."])


def check_no_skill(case: Case) -> Check:
    """Only streams marked ``+skills`` may declare a skill; a hindsight skill in an evaluation is a leak too."""
    faults, clean, starred = [], 0, 0
    for stream, e in case.evaluated():
        if stream.skills:
            starred += 1
            continue
        if e.acting_skill is not None:
            faults.append(
                f"{stream.name}, task '{e.task.id}': acted with the skill '{e.acting_skill.text[:60]}'."
            )
        clean += e.acting_skill is None
    held = [f"{clean} ordinary episodes declare no skill."] if clean else []
    if starred:
        held.append(
            f"{starred} episodes of '+skills' streams declare theirs; such rows are marked and not ranked."
        )
    return verdict("no skill", NO_SKILL, faults, held, [] if held else ["no evaluation on record."])


def check_sources(case: Case) -> Check:
    """BR-102: a skill written after an evaluation episode would train on it by way of memory."""
    faults, written, gaps = [], 0, []
    train_ids, panel_ids = case.training_ids(), case.panel_ids()
    for stream, e in case.evaluated():
        if e.hindsight is not None:
            faults.append(
                f"{stream.name}, task '{e.task.id}': a skill was written from an evaluation episode."
            )
    has_training = any(s.phase == "train" for s in case.run.streams())
    splits = {case.run.manifest.get("panels", {}).get("train", {}).get("split")} - {None}
    for e in case.episodes("train") if has_training else []:
        skill = e.hindsight or e.acting_skill
        if skill is None:
            continue
        written += 1
        if e.task.id in panel_ids:
            faults.append(f"Task '{e.task.id}' of the evaluation panel has a skill in the training log.")
        elif (train_ids and e.task.id not in train_ids) or (splits and e.task.split not in splits):
            faults.append(f"Task '{e.task.id}' (split '{e.task.split}') has a skill but is no training task.")
    if not has_training:
        gaps.append("the training episodes are not on record")
    held = [f"{written} skills in the training log, each beside the training episode it came from."]
    return verdict("skill sources", SOURCES, faults, held if has_training else [], gaps)


def check_weights(case: Case) -> Check:
    if case.feeds_no_model:
        return unchecked("weights", WEIGHTS, f"Policy '{case.policy}' has no weights.")
    folder = case.run.path / "checkpoints"
    saved = sorted(
        p for p in folder.glob("*") if (p / "files.json").is_file() and not p.name.endswith(".part")
    )
    if not saved:
        return unchecked(
            "weights", WEIGHTS, "No checkpoint lies in the run folder (packed records hold none)."
        )
    faults = [f for p in saved for f in _damage(p)]
    said = {m["evaluation"]: m for m in case.run.metrics() if "evaluation" in m}
    held, gaps = [], []
    for stream in case.streams:
        line = said.get(stream.name.removeprefix("eval-"), {})
        logged = line.get("weights_sha256")
        if logged is None:
            gaps.append(f"{stream.name}: the hash of the evaluated weights was not logged")
            continue
        place = _checkpoint_of(folder, stream.label, line.get("update"))
        if place is None:
            gaps.append(f"{stream.name}: its checkpoint is no longer kept")
            continue
        try:
            here = weights_sha256(place)
        except CheckpointCorrupt as error:
            faults.append(str(error))
            continue
        if logged in here:
            held.append(f"{stream.name}: weights {logged[:12]} are those of checkpoint {place.name}.")
        else:
            faults.append(
                f"{stream.name}: the evaluated weights {logged[:12]} are not those of checkpoint {place.name}."
            )
    faults += _chain(case.model, folder, case)
    return verdict("weights", WEIGHTS, faults, held, gaps)


def _damage(folder: Path) -> Iterator[str]:
    try:
        listed = json.loads((folder / "files.json").read_text())["sha256"]
    except (OSError, ValueError, KeyError):
        yield f"Checkpoint {folder.name} has no readable list of its files."
        return
    for name, digest in listed.items():
        path = folder / name
        if not path.is_file() or file_sha256(path) != digest:
            yield f"Checkpoint file {folder.name}/{name} is missing or was changed after it was written."
    extra = sorted(p.name for p in folder.iterdir() if p.name not in {*listed, "files.json"})
    if extra:
        yield f"Checkpoint {folder.name} holds a file that the trainer did not write: {extra[0]}."


def _checkpoint_of(folder: Path, label: str, update: Any) -> Path | None:
    """The checkpoint an evaluation was made from: ``start`` before the first update, else ``u<updates>``."""
    done = int(label[1:]) if label[:1] == "u" and label[1:].isdigit() else update
    place = folder / ("start" if done == 0 else f"u{int(done):05d}") if done is not None else None
    return place if place is not None and place.is_dir() else None


def _chain(model: Mapping[str, Any], folder: Path, case: Case) -> Iterator[str]:
    """Without a warm start, training must begin at the weights that the manifest names."""
    start = folder / "start"
    if "sha256" not in model or not start.is_dir() or (case.run.path / "warm_up.json").is_file():
        return
    try:
        if model["sha256"] not in weights_sha256(start):
            yield "Checkpoint 'start' is not the model that the manifest names, and there was no warm start."
    except CheckpointCorrupt as error:
        yield str(error)
