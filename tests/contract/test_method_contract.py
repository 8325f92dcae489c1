"""What every method must hold, tried on each registered one; and a method of someone else's."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from pathlib import Path

import pytest
import torch
import toys
from torch import Tensor

from seedbench.config import MethodSection, make_method
from seedbench.errors import ConfigError, UnknownName
from seedbench.registry import METHODS, Registry
from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import LossBatch, PolicyObjective, Totals
from seedbench.train.method import WarmUp
from seedbench.types import Episode, PublicTask, Skill

NAMES = METHODS.names()
each = pytest.mark.parametrize("name", NAMES)
LENGTHS = [5, 1, 3, 4, 2]
TAUGHT = [True, False, True, True, False]
#: Field that scales what a method adds to GRPO.
SCALES = ("coefficient", "strength")


def method(name: str, **options: object) -> object:
    return METHODS.get(name)(**options)


def adds(name: str) -> str | None:
    """The field that turns a method into GRPO when it is 0."""
    fields = {f.name for f in dataclasses.fields(METHODS.get(name))}
    return next((s for s in SCALES if s in fields), None)


def data(seed: int = 0, width: int = 6) -> dict[str, Tensor]:
    rng = random.Random(f"contract/{seed}")
    n = len(LENGTHS)

    def draw(low: float, high: float) -> Tensor:
        drawn = [[rng.uniform(low, high) for _ in range(6)] + [0.0] * (width - 6) for _ in range(n)]
        return torch.tensor(drawn, dtype=torch.float64)

    return {
        "logp": draw(-3, -0.1),
        "entropy": draw(0.1, 1.5),
        "logp_old": draw(-3, -0.1),
        "advantage": draw(-2, 2),
        "logp_ref": draw(-3, -0.1),
        "logp_teacher": draw(-3, -0.1),
        "taught": torch.tensor(TAUGHT),
        "mask": torch.tensor([[j < k for j in range(width)] for k in LENGTHS]),
    }


FULL = Totals(sum(LENGTHS), len(LENGTHS), sum(k for k, t in zip(LENGTHS, TAUGHT, strict=True) if t))


def gradient(
    m: object, parts: dict[str, Tensor], rows: list[int], total: Totals = FULL
) -> tuple[float, Tensor]:
    """Loss of some rows, and its gradient with respect to their log-probabilities and entropies."""
    cut = {k: v[rows] for k, v in parts.items()}
    logp = cut.pop("logp").clone().requires_grad_()
    entropy = cut.pop("entropy").clone().requires_grad_()
    loss = m.loss(LossBatch(logp=logp, entropy=entropy, totals=total, update=3, **cut))  # type: ignore[attr-defined]
    loss.value.backward()
    zero = torch.zeros_like(logp)
    return loss.value.item(), torch.stack([zero if x.grad is None else x.grad for x in (logp, entropy)])


ALL = list(range(len(LENGTHS)))


# -- the shape of a method -----------------------------------------------------------------------------------
@each
def test_a_method_is_a_frozen_dataclass_with_the_contracts_parts(name: str) -> None:
    kind = METHODS.get(name)
    assert dataclasses.is_dataclass(kind)
    m = kind()
    assert m.name == name
    assert isinstance(m.learns, bool)
    assert isinstance(m.starred, bool)
    assert isinstance(m.advantage, GroupAdvantage)
    assert isinstance(m.objective, PolicyObjective)
    assert m.warm_up is None or isinstance(m.warm_up, WarmUp)
    assert kind.__doc__
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.objective = None
    json.dumps(dataclasses.asdict(m))  # lands in the run record


@each
def test_no_method_imports_another(name: str) -> None:
    kind = METHODS.get(name)
    source = Path(__import__(kind.__module__, fromlist=["x"]).__file__).read_text()
    assert "baselines." not in source
    assert len(source.splitlines()) <= 130


# -- the loss ------------------------------------------------------------------------------------------------
@each
@pytest.mark.parametrize("junk", [0.0, 1e9, math.inf, -math.inf, math.nan])
def test_masked_places_reach_neither_loss_nor_gradient(name: str, junk: float) -> None:
    """BR-015, BR-022, BR-024: whatever stands at padding, in any tensor."""
    clean = data()
    dirty = {
        k: torch.where(clean["mask"], v, torch.full_like(v, junk)) if v.is_floating_point() else v
        for k, v in clean.items()
    }
    value, grads = gradient(method(name), clean, ALL)
    got, dirty_grads = gradient(method(name), dirty, ALL)
    assert got == value
    assert torch.equal(grads, dirty_grads)
    assert not grads[:, ~clean["mask"]].any()
    assert math.isfinite(value)


@each
@pytest.mark.parametrize("cuts", [[[0, 1, 2, 3, 4]], [[0], [1], [2], [3], [4]], [[4, 1], [0, 3], [2]]])
@pytest.mark.parametrize("how", ["token-mean", "seq-mean-token-mean"])
def test_the_split_into_micro_batches_changes_nothing(name: str, cuts: list[list[int]], how: str) -> None:
    """BR-008: sums of the parts, and the gradient of every token."""
    m = dataclasses.replace(METHODS.get(name)(), objective=PolicyObjective(aggregation=how))  # type: ignore[arg-type]
    value, grads = gradient(m, data(), ALL)
    parts = [gradient(m, data(), rows) for rows in cuts]
    assert sum(v for v, _ in parts) == pytest.approx(value, rel=1e-12)
    for rows, (_, part) in zip(cuts, parts, strict=True):
        assert torch.allclose(part, grads[:, rows], rtol=1e-12, atol=1e-15)


@each
def test_the_width_of_the_padding_changes_nothing(name: str) -> None:
    narrow, wide = gradient(method(name), data(width=6), ALL), gradient(method(name), data(width=11), ALL)
    assert narrow[0] == pytest.approx(wide[0], rel=1e-12)
    assert torch.allclose(narrow[1], wide[1][:, :, :6], rtol=1e-12, atol=1e-15)


@each
def test_only_the_current_policy_carries_a_gradient(name: str) -> None:
    """BR-011, BR-016: teacher, reference, old log-probabilities and advantages are constants."""
    parts = data()
    watched = {}
    for k in ("logp_old", "advantage", "logp_ref", "logp_teacher"):
        parts[k] = watched[k] = parts[k].clone().requires_grad_()
    cut = dict(parts)
    logp = cut.pop("logp").clone().requires_grad_()
    loss = method(name).loss(LossBatch(logp=logp, totals=FULL, update=0, **cut))  # type: ignore[attr-defined]
    loss.value.backward()
    assert logp.grad.abs().sum() > 0
    teacher = watched["logp_teacher"].grad
    assert teacher is None or not teacher.any()


@each
def test_terms_are_plain_numbers_and_teacherless_batches_are_grpo(name: str) -> None:
    """Without a teacher (no skill was valid anywhere) a method's loss is the shared objective."""
    parts = data()
    without = {**parts, "taught": torch.zeros(5, dtype=torch.bool)}
    loss = method(name).loss(LossBatch(totals=FULL, **parts))  # type: ignore[attr-defined]
    assert all(isinstance(v, float) and math.isfinite(v) for v in loss.terms.values())
    bare = {k: v for k, v in without.items() if k not in ("logp_teacher", "taught")}
    m = method(name)
    base = m.objective(LossBatch(totals=FULL, **bare)).value  # type: ignore[attr-defined]
    assert torch.equal(m.loss(LossBatch(totals=FULL, **bare)).value, base)  # type: ignore[attr-defined]


@each
def test_no_taught_trajectory_leaves_the_shared_objective(name: str) -> None:
    """2.7: an empty M gives 0, no NaN. Methods that teach from a bank are handed a skill for every episode."""
    parts = {**data(), "taught": torch.zeros(5, dtype=torch.bool)}
    parts["logp_teacher"] = parts["logp_old"].clone()  # what the trainer leaves where no teacher was asked
    value, grads = gradient(method(name), parts, ALL, Totals(FULL.tokens, FULL.rows, 0))
    assert math.isfinite(value)
    assert torch.isfinite(grads).all()
    if name == "seed":
        base, plain = gradient(method("grpo"), parts, ALL)
        assert value == base
        assert torch.equal(grads, plain)


@each
def test_an_all_masked_batch_is_zero(name: str) -> None:
    """BR-015."""
    parts = {**data(), "mask": torch.zeros(5, 6, dtype=torch.bool)}
    value, grads = gradient(method(name), parts, ALL, Totals(0, 0, 0))
    assert value == 0.0
    assert not grads.any()


@pytest.mark.parametrize("name", [n for n in NAMES if adds(n)])
@pytest.mark.parametrize("seed", range(3))
def test_coefficient_zero_is_grpo_bit_for_bit(name: str, seed: int) -> None:
    """2.7, BR-017: same value, same gradient, and no teacher is asked for."""
    m = method(name, **{adds(name): 0.0, "objective": PolicyObjective()})  # type: ignore[dict-item]
    value, grads = gradient(m, data(seed), ALL)
    base, plain = gradient(method("grpo"), data(seed), ALL)
    assert value == base
    assert torch.equal(grads, plain)
    assert m.teaching(episodes(), Bank()) is None  # type: ignore[attr-defined]


def test_some_methods_have_a_coefficient() -> None:
    assert {n for n in NAMES if adds(n)} >= {"seed", "sdar", "rlsd", "skill_sd", "opsd", "grpo_opsd"}


# -- hooks ---------------------------------------------------------------------------------------------------
class Bank:
    """An analyst that writes down who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def current(self, episodes: list[Episode]) -> list[Skill | None]:
        self.asked.append("current")
        return [Skill("s", f"own skill of {e.seed}", "self") for e in episodes]

    def frozen(self, episodes: list[Episode]) -> list[Skill | None]:
        self.asked.append("frozen")
        return [Skill("s", f"frozen skill of {e.seed}", "self-frozen") for e in episodes]

    def bank(self, group: str) -> Skill:
        self.asked.append(group)
        return Skill("s", f"bank skill of {group}", "bank")


def episodes() -> list[Episode]:
    return [
        Episode(PublicTask(f"t{i // 2}", "train", "ab"[i % 2]), i, status="completed", success=i % 3 == 0)
        for i in range(6)
    ]


@each
def test_teaching_gives_one_skill_per_episode_or_nothing(name: str) -> None:
    played = episodes()
    before = [dataclasses.replace(e) for e in played]
    skills = method(name).teaching(played, Bank())  # type: ignore[attr-defined]
    assert played == before
    if skills is not None:
        assert len(skills) == 6
        assert all(s is None or (isinstance(s, Skill) and s.text) for s in skills)


@each
def test_acting_skills_come_from_the_bank_of_the_tasks_group(name: str) -> None:
    task = toys.Boxes(toys.Options()).tasks("train")[0]
    bank = Bank()
    skill = method(name).acting(task, bank)  # type: ignore[attr-defined]
    assert skill is None or (skill.text == f"bank skill of {task.public.group}" and name == "skill_grpo")


@each
def test_a_missing_bank_skill_is_an_error_and_never_a_word(name: str) -> None:
    """BR-089: no "None" in a prompt."""

    class Empty(Bank):
        def bank(self, group: str) -> Skill:
            raise ConfigError(f"no skill for {group}")

    task = toys.Boxes(toys.Options()).tasks("train")[0]
    for call in (lambda m: m.teaching(episodes(), Empty()), lambda m: [m.acting(task, Empty())]):
        try:
            got = call(method(name))
        except ConfigError:
            continue
        assert got is None or not any(s and "None" in s.text for s in got)


@pytest.mark.parametrize(
    ("source", "outcomes", "asked"),
    [("current", "all", "current"), ("frozen", "success", "frozen"), ("bank", "failure", "b")],
)
def test_settings_of_seed_decide_who_writes_and_for_whom(source: str, outcomes: str, asked: str) -> None:
    bank = Bank()
    skills = method("seed", skill_source=source, outcomes=outcomes).teaching(episodes(), bank)  # type: ignore[attr-defined]
    assert asked in bank.asked
    wanted = {"all": {0, 1, 2, 3, 4, 5}, "success": {0, 3}, "failure": {1, 2, 4, 5}}[outcomes]
    assert {i for i, s in enumerate(skills) if s is not None} == wanted


def test_shuffled_skills_all_change_hands_and_random_ones_keep_the_length() -> None:
    own = method("seed").teaching(episodes(), Bank())  # type: ignore[attr-defined]
    moved = method("seed", content="shuffled").teaching(episodes(), Bank())  # type: ignore[attr-defined]
    again = method("seed", content="shuffled").teaching(episodes(), Bank())  # type: ignore[attr-defined]
    noise = method("seed", content="random").teaching(episodes(), Bank())  # type: ignore[attr-defined]
    assert sorted(s.text for s in moved) == sorted(s.text for s in own)
    assert all(a.text != b.text for a, b in zip(own, moved, strict=True))
    assert moved == again
    assert [len(s.text.split()) for s in noise] == [len(s.text.split()) for s in own]
    assert {s.source for s in noise} == {"random"}


# -- options -------------------------------------------------------------------------------------------------
@each
def test_an_unknown_option_is_named_with_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="advantage"):
        make_method(MethodSection(name=name, options={"advntage": {}}))


@each
@pytest.mark.parametrize("section", ["objective", "advantage"])
def test_an_unknown_nested_option_is_an_error_too(name: str, section: str) -> None:
    """A misspelt ``objective.kl`` must not leave the default in place silently."""
    with pytest.raises(ConfigError, match=f"{section}.*klx|klx"):
        make_method(MethodSection(name=name, options={section: {"klx": 1.0}}))


@each
def test_setting_one_nested_option_keeps_the_methods_other_ones(name: str) -> None:
    """An environment's scale sets ``objective.kl``; the method's own ``pg`` (OPSD: 0) must survive."""
    made = make_method(MethodSection(name=name, options={"objective": {"kl": 0.5}}))
    assert made.objective == dataclasses.replace(METHODS.get(name)().objective, kl=0.5)
    if made.warm_up is not None:
        made = make_method(MethodSection(name=name, options={"warm_up": {"tasks": 7}}))
        assert made.warm_up == dataclasses.replace(METHODS.get(name)().warm_up, tasks=7)


@pytest.mark.parametrize(
    "options", [{"coefficient": "much"}, {"gate": "sigmoidal"}, {"objective": {"aggregation": "mean"}}]
)
def test_a_wrong_value_is_named(options: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        make_method(MethodSection(name="seed", options=options))


def test_the_registry_refuses_doubles_and_guesses_names() -> None:
    table = Registry("method", "seedbench.baselines", "METHOD", "seedbench.none")
    table.add("mine", "toys:KIND")
    table.add("mine", "toys:KIND")
    with pytest.raises(ConfigError, match="twice"):
        table.add("mine", "toys:OTHER")
    with pytest.raises(UnknownName, match="Did you mean 'sdar'"):
        table.get("sdra")
    table.add("grpo", "toys:KIND")
    with pytest.raises(ConfigError, match="twice"):
        table.names()


# -- through the trainer -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toys.save_backbone(tmp_path_factory.mktemp("model"), seed=4)


class Stop(Exception):
    """The power went off."""


@each
def test_a_resumed_run_equals_an_uninterrupted_one(name: str, model: Path, tmp_path: Path) -> None:
    """BR-093, BR-095: stopped after the first update (before its checkpoint is complete, and after)."""
    whole = toys.fingerprint(toys.run(model, tmp_path / "whole", name))
    seen = []

    def report(metrics: dict) -> None:
        seen.append(metrics)
        if len(seen) == 2:
            raise Stop

    try:
        toys.run(model, tmp_path / "cut", name, report=report)
    except Stop:
        pass
    else:
        assert not METHODS.get(name).learns
    assert toys.fingerprint(toys.run(model, tmp_path / "cut", name)) == whole


@each
def test_workers_and_micro_batches_change_no_record(name: str, model: Path, tmp_path: Path) -> None:
    """Two processes play what one plays. Micro-batches change sums in their last bits only."""
    one = toys.fingerprint(toys.run(model, tmp_path / "one", name))
    two = toys.fingerprint(toys.run(model, tmp_path / "two", name, workers=2))
    assert one == two


TOY = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
from seedbench.train.advantages import GroupAdvantage
from seedbench.train.losses import Loss, LossBatch, PolicyObjective, aggregate
from seedbench.train.method import WarmUp


@dataclass(frozen=True)
class Reinforce:
    """Plain policy gradient: minus advantage times log-probability."""

    name: ClassVar[str] = "toy_reinforce"
    learns: ClassVar[bool] = True
    starred: ClassVar[bool] = False
    advantage: GroupAdvantage = GroupAdvantage(scale="none")
    objective: PolicyObjective = PolicyObjective(kl=0.0, entropy=0.0)
    warm_up: WarmUp | None = None
    weight: float = 1.0

    def loss(self, batch: LossBatch) -> Loss:
        term = aggregate(-batch.advantage * batch.logp, batch.mask, batch.totals)
        return Loss(self.weight * term, {"reinforce": float(term.detach())})

    def acting(self, task, analyst):
        return None

    def teaching(self, episodes, analyst):
        return None
'''


def test_a_method_of_another_package_trains_without_touching_the_core(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file and one entry point: found, configured, trained, recorded."""
    (tmp_path / "their_package.py").write_text(TOY)
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[seedbench.methods]\ntoy_reinforce = their_package:Reinforce\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "toy_reinforce" in METHODS.names()
    folder = toys.run(model, tmp_path / "run", "toy_reinforce", updates=1)
    record = toys.fingerprint(folder)
    updates = [m for m in record["metrics"] if "evaluation" not in m]
    assert [set(m) >= {"loss_reinforce", "grad_norm"} for m in updates] == [True]
    config = json.loads((folder / "config.json").read_text())
    assert config["method"]["name"] == "toy_reinforce"
    assert record["weights"]["start"] != record["weights"]["u00001"]


def test_an_optional_part_can_be_switched_off() -> None:
    """The ablation "without hindsight-skill SFT"."""
    assert make_method(MethodSection(name="seed", options={"warm_up": False})).warm_up is None
