"""The oracle: an omniscient buyer who finds, configures and buys the wanted product."""

from __future__ import annotations

from seedbench.envs.webshop.goals import Goal
from seedbench.envs.webshop.protocol import queries
from seedbench.envs.webshop.shop import Shop, Visit

_BRACKETS = str.maketrans("[]\n\r\t", "     ")


def next_action(visit: Visit) -> str:
    """The next action on the way to the wanted purchase, from wherever the visit is."""
    goal = visit.goal
    if visit.kind == "index":
        return f"search[{best_query(visit.shop, goal)}]"
    if visit.kind == "results":
        return _on_results(visit)
    if visit.kind == "sub" or visit.product is None or visit.product.asin != goal.asin:
        return "click[< prev]"
    can = visit.clickables()
    for name, value in goal.options:
        group = name or next((n for n, vs in visit.product.options.items() if value in vs), "")
        for click, node in can.items():
            if node.kind == "option" and (node.group, node.text) == (group, value):
                if visit.options.get(group) != value:
                    return f"click[{click}]"
    return "click[buy now]"


def best_query(shop: Shop, goal: Goal) -> str:
    """The query that ranks the wanted product highest.

    In the generated shop one of the offered queries, in the real one the whole instruction or the title.
    """
    plain = [" ".join(t.lower().translate(_BRACKETS).split()) for t in (goal.instruction, goal.title)]
    candidates = queries(goal.instruction) if shop.rules.slots else plain
    ranks = [_rank(shop, goal, q) for q in candidates]
    best = min(range(len(candidates)), key=lambda i: (ranks[i], i))
    return candidates[best]


def _rank(shop: Shop, goal: Goal, query: str) -> int:
    hits = shop.index.rank_rows(query, shop.rules.depth)
    places = (i for i, (row, _) in enumerate(hits) if shop.products[row].asin == goal.asin)
    return next(places, shop.rules.depth)


def _on_results(visit: Visit) -> str:
    asins = [p.asin for p in visit.hits]
    if visit.goal.asin not in asins:
        return "click[back to search]"
    size = visit.shop.rules.page_size
    page = asins.index(visit.goal.asin) // size + 1
    if page != visit.page:
        return "click[next >]" if page > visit.page else "click[< prev]"
    return next(f"click[{n.click}]" for n in visit.nodes if n.kind == "link" and n.text == visit.goal.asin)
