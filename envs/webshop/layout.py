"""Observations as prompts show them: the official text without its instruction, a compact form for mini.

The compact form is made for very small policies: about 40 words for a page of five hits, about 30 for an
item. Hits are named by their place, ``item 1`` to ``item 5``; one that was opened before is marked ``seen``.
"""

from __future__ import annotations

from seedbench.envs.webshop.render import SEPARATOR, Mode, observe
from seedbench.envs.webshop.shop import Visit

SEARCH_FORM = "search[<your query>]"


def brief(visit: Visit, mode: Mode) -> str:
    """The page without the instruction, which prompts carry anyway; segments in quotes (published code)."""
    text = observe(visit, mode)
    if mode != "text" or visit.done:
        return text
    segments = text.split(SEPARATOR)
    instruction = visit.goal.instruction.strip()
    after = segments.index(instruction) + 1 if instruction in segments else 0
    return SEPARATOR.join(f"'{s}'" for s in segments[after:])


def compact(visit: Visit) -> str:
    """A page of the generated shop in a few words."""
    return {"index": _index, "results": _results, "item": _item, "sub": _sub, "done": _done}[visit.kind](
        visit
    )


def legal(visit: Visit) -> tuple[str, ...]:
    """What can be done here, in the original's order; fixed shops leave out the dead ``click[search]``."""
    actions = [SEARCH_FORM] if visit.kind == "index" else []
    dead = {"search"} if visit.shop.rules.fixed else set()
    return tuple(actions + [f"click[{c}]" for c in visit.clickables() if c not in dead])


def _index(visit: Visit) -> str:
    return "search page"


def _results(visit: Visit) -> str:
    size = visit.shop.rules.page_size
    pages = -(-len(visit.hits) // size)
    parts = [f"page {visit.page} of {pages}" if pages else "no results"]
    for place, product in enumerate(visit.on_page(), 1):
        seen = " seen" if product.asin in visit.opened else ""
        parts.append(f"item {place}{seen} {product.title} $ {product.price:.0f}")
    return " . ".join(parts)


def _item(visit: Visit) -> str:
    product = visit.product
    assert product is not None
    rest = [a for a in product.attributes if a not in product.title.split()]
    parts = [" ".join([product.title, "$", f"{product.price:.0f}", *rest])]
    parts += [f"{name} {' '.join(values)}" for name, values in product.options.items()]
    if visit.options:
        parts.append(f"chosen {' '.join(visit.options.values())}")
    return " . ".join(parts)


def _sub(visit: Visit) -> str:
    product = visit.product
    assert product is not None
    text = product.description if visit.sub_page == "Description" else " , ".join(product.bullets)
    return f"{visit.sub_page.lower()} page . {text}"


def _done(visit: Visit) -> str:
    return "thank you for shopping"
