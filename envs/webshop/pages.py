"""What stands on each page of the shop, as a list of nodes; the observation modes print them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seedbench.envs.webshop.catalogue import Product

if TYPE_CHECKING:
    from seedbench.envs.webshop.shop import Visit

SUB_PAGES = ("Description", "Features", "Reviews")
PageKind = Literal["index", "results", "item", "sub", "done"]
_SCRIPT_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"})


@dataclass(frozen=True, slots=True)
class Node:
    """A visible piece of a page: what to click (``""`` for plain text), ``group`` is an option's name."""

    kind: Literal["text", "button", "option", "link"]
    text: str
    click: str = ""
    group: str = ""


def script_json(value: object) -> str:
    """JSON that is safe inside a page: sorted keys, and no markup characters (the original's ``tojson``)."""
    return json.dumps(value, sort_keys=True).translate(_SCRIPT_ESCAPES)


def _head(visit: Visit) -> list[Node]:
    return [Node("text", "Instruction:"), Node("text", visit.goal.instruction), _button("Back to Search")]


def _button(text: str) -> Node:
    return Node("button", text, text.lower())


def _index_page(visit: Visit) -> list[Node]:
    opening = [Node("text", t) for t in ("WebShop", "Instruction: ", visit.goal.instruction)]
    return [*opening, _button("Search")]


def _results_page(visit: Visit) -> list[Node]:
    rules = visit.shop.rules
    nodes = [*_head(visit), Node("text", f"Page {visit.page} (Total results: {len(visit.hits)})")]
    if visit.page > 1:
        nodes.append(_button("< Prev"))
    if not rules.fixed or visit.page * rules.page_size < len(visit.hits):
        nodes.append(_button("Next >"))
    for slot, product in enumerate(visit.on_page(), 1):
        click = f"item {slot}" if rules.slots else product.asin.lower()
        tag = f"${product.price:.2f}" if rules.fixed else product.price_tag
        nodes += [Node("link", product.asin, click), Node("text", product.title), Node("text", tag)]
    return nodes


def _item_page(visit: Visit) -> list[Node]:
    product, fixed = visit.product, visit.shop.rules.fixed
    assert product is not None
    nodes = [*_head(visit), _button("< Prev")]
    label = _labels(product) if fixed else (lambda name, value: value)
    for name, values in product.options.items():
        nodes.append(Node("text", name))
        nodes += [Node("option", v, label(name, v), name) for v in values]
    tag = f"${product.price:.2f}" if fixed else product.price_tag
    nodes += [Node("text", t) for t in (product.title, f"Price: {tag}", "Rating: N.A.")]
    return nodes + [_button(t) for t in (*visit.shop.rules.sub_pages, "Buy Now")]


def _labels(product: Product) -> Callable[[str, str], str]:
    """What to click for an option: its value, after the group's name where the value alone is unclear."""
    count: dict[str, int] = {
        t.lower(): 1 for t in (*SUB_PAGES, "Buy Now", "< Prev", "Back to Search", "Search")
    }
    for values in product.options.values():
        for v in set(values):
            plain = " ".join(v.split())
            count[plain] = count.get(plain, 0) + 1

    def label(name: str, value: str) -> str:
        plain = " ".join(value.split())
        return plain if count[plain] == 1 else f"{' '.join(name.split())}: {plain}"

    return label


def _sub_page(visit: Visit) -> list[Node]:
    product, fixed = visit.product, visit.shop.rules.fixed
    assert product is not None
    nodes = [*_head(visit), _button("< Prev")]
    if visit.sub_page == "Description" and product.description:
        nodes.append(Node("text", product.description))
    elif visit.sub_page == "Features":
        nodes += [Node("text", f" {b}") for b in product.bullets if b.strip() or not fixed]
    return nodes


def _done_page(visit: Visit) -> list[Node]:
    assert visit.product is not None and visit.score is not None
    if visit.shop.rules.fixed:
        return [Node("text", "Thank you for shopping with us!")]
    bought = ["Purchased", "asin", visit.product.asin, "options", script_json(visit.options), "attrs", "None"]
    bought += ["category", "None", "query", "None", "product category", "None"]
    target = ["Target", "asin", "options", "attrs", "price upper", "instuction text", "category"]
    target += ["product category", "query"]
    reward = ["Reward", "Your score (min 0.0, max 1.0)", str(visit.score.value), "Reward Details ", "None"]
    head = ["Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)"]
    return [Node("text", t) for t in (*head, *bought, *target, "Goal ", "None", *reward)]


PAGES: dict[PageKind, Callable[[Visit], list[Node]]] = {
    "index": _index_page,
    "results": _results_page,
    "item": _item_page,
    "sub": _sub_page,
    "done": _done_page,
}
