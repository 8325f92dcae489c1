"""The faithful shop against recordings of the original program: zero mismatches."""

from __future__ import annotations

import gzip
import json
import lzma
import random

import pytest
from seedbench.envs.webshop.env import Options, WebShop
from seedbench.envs.webshop.panels import shared_products
from seedbench.envs.webshop.render import observe
from seedbench.envs.webshop.shop import Visit

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data("webshop")


@pytest.fixture(scope="module")
def faithful(folder):
    return WebShop(Options(variant="faithful", data=str(folder)))


@pytest.fixture(scope="module")
def recorded(folder):
    with lzma.open(folder / "golden_original.jsonl.xz", "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_all_prices(faithful, recorded):
    prices = {p.asin: p.price for p in faithful.world.shop.products}
    assert len(prices) == 1000 and prices == recorded[0]["prices"]


def test_all_synthetic_goals(faithful, folder):
    recorded = json.loads(gzip.open(folder / "synthetic_goals_seed0_shuffle233.json.gz").read())
    assert len(recorded) == 6910
    for ours, theirs in zip(faithful.world.goals, recorded, strict=True):
        assert {
            "asin": ours.asin,
            "instruction_text": ours.instruction,
            "attributes": list(ours.attributes),
            "price_upper": ours.price_upper,
            "goal_options": dict(ours.options),
            "name": ours.title,
            "query": ours.query,
            "product_category": ours.path,
            "weight": ours.weight,
        } == theirs


def test_all_recorded_episodes(faithful, recorded):
    episodes = recorded[1:]
    assert len(episodes) == 150 and {e["mode"] for e in episodes} == {"text", "text_rich", "url", "html"}
    steps = 0
    for e in episodes:
        goal = faithful.world.goals[e["goal_index"]]
        assert goal.instruction == e["goal"]["instruction_text"]
        visit = Visit(faithful.world.shop, goal, str(e["goal_index"]), random.Random(0))
        assert observe(visit, e["mode"]) == e["reset"]
        assert _available(visit) == e["available0"]
        for s in e["steps"]:
            visit.act(s["action"])
            assert observe(visit, e["mode"]) == s["observation"], s["action"]
            assert (visit.score.value if visit.done else 0.0) == s["reward"], s["action"]
            assert visit.done == s["done"]
            assert _available(visit) == s["available"], s["action"]
            steps += 1
    assert steps == 1391


def _available(visit: Visit) -> dict:
    return {"has_search_bar": visit.kind == "index", "clickables": list(visit.clickables())}


def test_documents_equal_the_indexed_ones(faithful, folder):
    with lzma.open(folder / "documents_1k.jsonl.xz", "rt", encoding="utf-8") as f:
        contents = {d["id"]: d["contents"] for d in map(json.loads, f)}
    assert {p.asin: p.document().contents for p in faithful.world.shop.products} == contents


def test_search_documents_serve_as_product_file(folder, faithful, tmp_path):
    for name in ("documents_1k.jsonl.xz", "items_ins_v2_1000.json", "title_nouns_en_core_web_sm_3.8.0.json"):
        (tmp_path / name).symlink_to(folder / name)
    other = WebShop(Options(variant="faithful", data=str(tmp_path)))
    assert other.world.shop.products == faithful.world.shop.products
    assert other.spec == faithful.spec


def test_papers_split_shares_products_and_strict_split_does_not(faithful):
    world = faithful.world
    assert faithful.splits() == {
        "test": 500, "paper128": 128, "train": 6410, "strict-dev": 111, "strict-train": 634,
    }  # fmt: skip
    assert shared_products(world.goals, world.splits["test"], world.splits["train"]) == (127, 146)
    for name in ("strict-dev", "strict-train"):
        assert shared_products(world.goals, world.splits["test"], world.splits[name])[0] == 0
    assert set(world.splits["paper128"]) <= set(world.splits["test"])
    assert any("127 of 146" in line for line in world.overlap("test"))


def test_frozen_panel_hashes(faithful):
    """Goal 17 is goal 17 everywhere (BR-100): a change here is another benchmark."""
    details = faithful.spec.details
    assert details["products"] == "1000" and details["goal_count"] == "6910"
    assert details["nouns"] == "table en_core_web_sm_3.8.0"
    assert details["goals_sha256"] == "0a81a831095bb48263b4915facf073814646bae58d72056f54136fbb162ed1f5"
    assert details["index_sha256"] == "02f806c1d8617fc4aecd726d1fe45ef5e01ac897170c788d00b2edacc1078584"


def test_unreachable_goals_of_the_original_and_the_oracle_in_the_fixed_shop(folder, faithful):
    """458 goals cannot reach 1.0 in the original even with everything right; in the fixed shop all can."""
    fixed = WebShop(Options(variant="fixed", data=str(folder)))
    unreachable = 0
    for goal in faithful.world.goals:
        product, chosen = faithful.world.shop.by_asin[goal.asin], dict(goal.options)
        unreachable += not faithful.world.shop.score(product, chosen, goal).perfect
        assert fixed.world.shop.score(product, chosen, goal).perfect
    assert unreachable == 458


@pytest.mark.parametrize("goals", ["synthetic", "human"])
def test_oracle_buys_right_in_the_fixed_shop(folder, goals):
    from seedbench.types import Action

    env = WebShop(Options(variant="fixed", data=str(folder), goals=goals))
    session = env.session()
    tasks = list(env.tasks("test"))
    if goals == "synthetic":
        tasks += list(env.tasks("train"))[::16]
    for task in tasks:
        session.reset(task, 0)
        while not (result := session.step(Action(session.oracle()))).terminated:
            assert not result.truncated, task.id
        assert session.outcome().success, task.id


@pytest.mark.reference
def test_spacy_gives_the_nouns_of_the_frozen_table(folder, faithful):
    pytest.importorskip("spacy", reason="needs the extra 'webshop'")
    from seedbench.envs.webshop.nouns import Spacy

    tagger = Spacy()
    frozen = json.loads((folder / "title_nouns_en_core_web_sm_3.8.0.json").read_text())
    if not tagger.name.endswith("3.8.0"):
        pytest.skip(f"the table was made with model 3.8.0, here is {tagger.name}")
    for product in faithful.world.shop.products[::5]:
        assert list(tagger.of(product)) == frozen[product.asin], product.title
