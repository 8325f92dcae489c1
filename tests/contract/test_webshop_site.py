"""The shop as web pages, through Flask's test client: whole purchases, escaping, limits."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace

import pytest

pytest.importorskip("flask", reason="the web shop needs the extra 'web'")

from seedbench.envs.webshop import site
from seedbench.envs.webshop.env import Options, WebShop
from seedbench.envs.webshop.shop import Shop

SPLIT = "mini-test"


@pytest.fixture
def app():
    return site.create_app(WebShop(Options()), SPLIT, seed=0)


def begin(client, number="0") -> str:
    response = client.post("/visits", data={"number": number})
    assert response.status_code == 303
    return response.location


def targets(text: str) -> list[str]:
    return [html.unescape(t) for t in re.findall(r'name="target" value="([^"]*)"', text)]


def buy(app, number: int) -> str:
    """Follow the oracle through the pages; returns the last page."""
    client = app.test_client()
    place = begin(client, str(number))
    visits = app.extensions["webshop_visits"]
    from seedbench.envs.webshop import buyer

    for _ in range(15):
        visit = visits.get(place.rsplit("/", 1)[1])
        page = client.get(place).get_data(as_text=True)
        assert html.escape(visit.goal.instruction) in page
        if visit.done:
            return page
        kind, argument = buyer.next_action(visit)[:-1].split("[", 1)
        if kind == "search":
            response = client.post(f"{place}/search", data={"query": argument})
        else:
            assert argument in targets(page)
            response = client.post(f"{place}/click", data={"target": argument})
        assert response.status_code == 303 and response.location == place
    raise AssertionError("nothing bought in 15 steps")


def test_buying_shows_the_score(app):
    for number in range(12):
        assert '<strong id="score">1.0</strong>' in buy(app, number)


def test_addresses_are_unguessable_and_visits_are_apart(app):
    client = app.test_client()
    places = {begin(client) for _ in range(50)}
    assert len(places) == 50 and all(len(p.rsplit("/", 1)[1]) >= 22 for p in places)
    assert client.get("/visits/0").status_code == 404
    assert client.post("/visits/0/click", data={"target": "buy now"}).status_code == 404


def test_what_a_visitor_types_is_escaped(app):
    client = app.test_client()
    place = begin(client)
    nasty = "<script>alert(1)</script>{{ 7*7 }}\"'"
    for path, field in ((f"{place}/search", "query"), (f"{place}/click", "target"), ("/visits", "number")):
        response = client.post(path, data={field: nasty})
        page = response.get_data(as_text=True)
        assert "<script" not in page and "49" not in page
    shown = client.get(place).get_data(as_text=True)
    assert "<script" not in shown


def test_what_a_product_says_is_escaped():
    env = WebShop(Options(catalogue_seed=5, products=200))
    evil = '<img src=x onerror="alert(1)">'
    shop = env.world.shop
    products = [
        replace(p, title=f"{p.title} {evil}", description=evil, options={evil: (evil, "fine")})
        for p in shop.products
    ]
    env.world = replace(env.world, shop=Shop(products, shop.nouns, shop.rules))
    client = site.create_app(env, SPLIT).test_client()
    place = begin(client)
    client.post(f"{place}/search", data={"query": products[0].query})
    pages = [client.get(place)]
    for target in ("item 1", "description"):
        client.post(f"{place}/click", data={"target": target})
        pages.append(client.get(place))
    for page in pages:
        text = page.get_data(as_text=True)
        assert "<img" not in text and "&lt;img" in text
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    client.post(f"{place}/click", data={"target": "< prev"})
    assert client.post(f"{place}/click", data={"target": evil.lower()}).status_code == 303


def test_impossible_clicks_and_empty_queries_say_so(app):
    client = app.test_client()
    place = begin(client)
    for path, data in (
        ("click", {"target": "buy now"}),
        ("click", {}),
        ("search", {"query": "  "}),
        ("search", {}),
    ):
        response = client.post(f"{place}/{path}", data=data)
        assert response.status_code == 409 and "not possible" in response.get_data(as_text=True)


@pytest.mark.parametrize("number", ["-1", "200", "x", "9" * 30, "１"])
def test_bad_task_numbers(app, number):
    response = app.test_client().post("/visits", data={"number": number})
    assert response.status_code == 400 and "between 0 and 199" in response.get_data(as_text=True)


def test_too_much_text_is_refused_and_much_text_is_not(app):
    client = app.test_client()
    place = begin(client)
    assert client.post(f"{place}/search", data={"query": "x" * 100_000}).status_code == 413
    assert client.post(f"{place}/search", data={"query": "é[x] " * 3_000}).status_code == 303
    assert client.get(place).status_code == 200


def test_old_visits_are_dropped(app, monkeypatch):
    monkeypatch.setattr(site, "MOST_VISITS", 5)
    client = app.test_client()
    places = [begin(client) for _ in range(5)]
    client.get(places[0])
    begin(client)
    assert len(app.extensions["webshop_visits"]) == 5
    assert client.get(places[0]).status_code == 200 and client.get(places[1]).status_code == 404


def test_other_host_names_are_refused_on_loopback(app):
    assert app.test_client().get("/", headers={"Host": "evil.example"}).status_code == 400
    assert app.test_client().get("/", headers={"Host": "127.0.0.1:8642"}).status_code == 200


def test_many_visitors_at_once(app):
    pages: list[str] = []
    threads = [threading.Thread(target=lambda n=n: pages.append(buy(app, n))) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(pages) == 8 and all(">1.0</strong>" in p for p in pages)


def test_served_by_waitress_and_a_taken_port_is_told():
    import socket

    from seedbench.errors import ConfigError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot be used"):
            site.play(WebShop(Options()), SPLIT, port=taken.getsockname()[1])
