"""The shop as web pages for people: the same engine, served by Flask and waitress (extra ``web``).

Bound to loopback by default. A visit has an unguessable address; everything a visitor types or a product says
is escaped by the templates; no script runs and nothing is loaded from elsewhere. Old visits are dropped.
"""

from __future__ import annotations

import ipaddress
import random
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from seedbench.envs.webshop.env import WebShop
from seedbench.envs.webshop.shop import OriginalCrash, Visit

from seedbench.errors import ConfigError, ExtraMissing
from seedbench.types import Task

if TYPE_CHECKING:
    from flask import Flask

MOST_VISITS = 1000
MOST_BYTES = 64 * 1024
_POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


class Visits:
    """Live visits by address; the one unused for longest goes first when there are too many."""

    def __init__(self, env: WebShop, tasks: list[Task], seed: int | None) -> None:
        self.env, self.tasks = env, tasks
        self.lock = threading.Lock()
        self._random = random.Random(seed) if seed is not None else random.SystemRandom()
        self._visits: OrderedDict[str, Visit] = OrderedDict()

    def new(self, number: int | None) -> str:
        """Begin task ``number`` of the split (any when None) and return the visit's address."""
        place = self._random.randrange(len(self.tasks)) if number is None else number
        goal = self.env.goal(self.tasks[place])
        token = secrets.token_urlsafe(16)
        self._visits[token] = Visit(self.env.world.shop, goal, token, random.Random(f"webshop-site/{place}"))
        while len(self._visits) > MOST_VISITS:
            self._visits.popitem(last=False)
        return token

    def get(self, token: str) -> Visit | None:
        visit = self._visits.get(token)
        if visit is not None:
            self._visits.move_to_end(token)
        return visit

    def __len__(self) -> int:
        return len(self._visits)


def create_app(env: WebShop, split: str, host: str = "127.0.0.1", seed: int | None = None) -> Flask:
    """The site. ``seed`` fixes which tasks are drawn. Raises :class:`ExtraMissing` without Flask."""
    try:
        import flask
    except ImportError as e:
        raise ExtraMissing("The web shop needs Flask: `pip install 'seedbench[web]'`.") from e
    app = flask.Flask(__name__)
    app.config.update(MAX_CONTENT_LENGTH=MOST_BYTES, MAX_FORM_MEMORY_SIZE=MOST_BYTES)
    if _is_loopback(host):
        # A page elsewhere could otherwise reach this one through a name that it lets point here.
        app.config["TRUSTED_HOSTS"] = ["localhost", "127.0.0.1", "[::1]", host]
    visits = Visits(env, list(env.tasks(split)), seed)
    app.extensions["webshop_visits"] = visits

    def page(token: str, visit: Visit, message: str = "", status: int = 200) -> Any:
        html = flask.render_template(f"{visit.kind}.html", **_values(token, visit), message=message)
        return html, status

    def gone() -> Any:
        return flask.render_template("gone.html", message="This visit is over or never began."), 404

    def act(token: str, action: str) -> Any:
        with visits.lock:
            visit = visits.get(token)
            if visit is None:
                return gone()
            try:
                done = visit.act(action)
            except OriginalCrash as e:
                return page(token, visit, str(e), 422)
            if not done:
                return page(token, visit, "That is not possible on this page.", 409)
        return flask.redirect(flask.url_for("show", token=token), 303)

    @app.get("/")
    def home() -> Any:
        return flask.render_template("start.html", count=len(visits.tasks), split=split, message="")

    @app.post("/visits")
    def start() -> Any:
        text = flask.request.form.get("number", "").strip()
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
        if text and (number is None or number >= len(visits.tasks)):
            message = f"Choose a task between 0 and {len(visits.tasks) - 1}."
            values = {"count": len(visits.tasks), "split": split, "message": message}
            return flask.render_template("start.html", **values), 400
        with visits.lock:
            token = visits.new(number)
        return flask.redirect(flask.url_for("show", token=token), 303)

    @app.get("/visits/<token>")
    def show(token: str) -> Any:
        with visits.lock:
            visit = visits.get(token)
            return page(token, visit) if visit is not None else gone()

    @app.post("/visits/<token>/search")
    def search(token: str) -> Any:
        return act(token, f"search[{' '.join(flask.request.form.get('query', '').split())}]")

    @app.post("/visits/<token>/click")
    def click(token: str) -> Any:
        return act(token, f"click[{flask.request.form.get('target', '')}]")

    @app.after_request
    def guard(response: Any) -> Any:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        if flask.request.endpoint != "static":
            response.headers["Cache-Control"] = "no-store"
        return response

    return app


def play(
    env: WebShop, split: str, *, host: str = "127.0.0.1", port: int = 8642, seed: int | None = None
) -> None:
    """Serve the shop until interrupted. Raises :class:`ConfigError` when the port cannot be used."""
    app = create_app(env, split, host, seed)
    try:
        from waitress import create_server
    except ImportError as e:
        raise ExtraMissing("The web shop needs waitress: `pip install 'seedbench[web]'`.") from e
    try:
        server = create_server(app, host=host, port=port, threads=4)
    except OSError as e:
        raise ConfigError(f"Port {port} of {host} cannot be used ({e}). Choose another with --port.") from e
    print(f"WebShop is open at http://{host}:{server.effective_port}/ (stop with Ctrl-C)")
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _values(token: str, visit: Visit) -> dict[str, Any]:
    """What the templates show of a visit."""
    fixed = visit.shop.rules.fixed
    buttons = [n for n in visit.nodes if n.kind == "button" and n.click != "search"]
    values: dict[str, Any] = {"token": token, "visit": visit, "buttons": buttons}
    if visit.kind == "results":
        links = [n for n in visit.nodes if n.kind == "link"]
        values["hits"] = [
            {
                "click": node.click,
                "title": product.title,
                "price": f"${product.price:.2f}" if fixed else product.price_tag,
                "seen": product.asin in visit.opened,
            }
            for node, product in zip(links, visit.on_page(), strict=True)
        ]
    if visit.kind == "item" and visit.product is not None:
        groups: dict[str, list[dict[str, Any]]] = {}
        for n in visit.nodes:
            if n.kind == "option":
                chosen = visit.options.get(n.group) == n.text
                groups.setdefault(n.group, []).append({"click": n.click, "text": n.text, "chosen": chosen})
        price = f"${visit.product.price:.2f}" if fixed else visit.product.price_tag
        values |= {"groups": groups, "price": price}
    if visit.kind == "sub":
        texts = [n.text for n in visit.nodes if n.kind == "text" and n.text.strip()]
        values["texts"] = texts[2:]  # after "Instruction:" and the instruction itself
    return values
