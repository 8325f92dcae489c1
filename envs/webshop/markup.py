"""Pages of the ``html`` observation mode, byte for byte those of the recorded original.

The markup is what an agent in this mode reads, so it is reproduced as recorded, unbalanced tags, blank lines
and all; it was reconstructed from recordings of the original site (WebShop, MIT licence). Text is escaped.
The pages that people shop on are other ones: :mod:`.site`.
"""

from __future__ import annotations

from urllib.parse import urlencode

from seedbench.envs.webshop import markup_templates as parts
from seedbench.envs.webshop.catalogue import Product
from seedbench.envs.webshop.pages import SUB_PAGES, script_json
from seedbench.envs.webshop.shop import Visit

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})
_SUB_NAMES = {"Description": "description", "Features": "bulletpoints", "Reviews": "reviews"}


def page_html(visit: Visit) -> str:
    """The current page as HTML."""
    if visit.kind == "index":
        return parts.SMALL_HEAD + parts.INDEX_BODY.format(
            instruction=_text(visit.goal.instruction), url=_address(session_id=visit.session_id)
        )
    if visit.kind == "done":
        return parts.SMALL_HEAD + _done(visit)
    back = _address(session_id=visit.session_id)
    head = parts.HEAD + parts.TOP.format(instruction=_text(visit.goal.instruction), url=back)
    return head + {"results": _results, "item": _item, "sub": _sub}[visit.kind](visit)


def _text(s: str) -> str:
    return s.translate(_ESCAPES)


def _address(**query: object) -> str:
    pairs = [
        (key, item)
        for key, value in query.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return _text("/?" + urlencode(pairs, safe="!$'()*,/:;?@", errors="replace"))


def _results(visit: Visit) -> str:
    def to_page(page: int) -> str:
        return _address(session_id=visit.session_id, keywords=visit.keywords, page=page)

    back = parts.PAGE_BUTTON.format(url=to_page(visit.page - 1), text="&lt; Prev") if visit.page > 1 else ""
    onward = parts.PAGE_BUTTON.format(url=to_page(visit.page + 1), text="Next &gt;")
    top = parts.RESULTS_TOP.format(page=visit.page, total=len(visit.hits), back=back, onward=onward)
    return top + "".join(_hit(visit, p) for p in visit.on_page()) + parts.RESULTS_END


def _hit(visit: Visit, product: Product) -> str:
    url = _address(
        session_id=visit.session_id, asin=product.asin, keywords=visit.keywords, page=visit.page, options={}
    )
    return parts.HIT.format(
        image=_text(product.image),
        url=url,
        asin=_text(product.asin),
        title=_text(product.title),
        price=_text(product.price_tag),
        category=_text(product.category),
        query=_text(product.query),
        path=_text(product.path),
    )


def _item(visit: Visit) -> str:
    product = visit.product
    assert product is not None

    def here(**more: object) -> str:
        query = {"asin": product.asin, "keywords": visit.keywords, "page": visit.page, **more}
        return _address(session_id=visit.session_id, **query)

    groups = []
    for name, values in product.options.items():
        radios = [
            parts.RADIO.format(
                name=_text(name), number=i, value=_text(v), url=here(options={**visit.options, name: v})
            )
            for i, v in enumerate(values)
        ]
        groups.append(parts.GROUP.format(name=_text(name), radios="".join(radios)))
    buttons = [
        parts.SUB_BUTTON.format(name=_SUB_NAMES[sub], text=sub, url=here(sub_page=sub, options=visit.options))
        for sub in SUB_PAGES
    ]
    body = parts.ITEM.format(
        back=_address(session_id=visit.session_id, keywords=visit.keywords, page=visit.page),
        image=_text(product.image),
        groups="".join(groups),
        title=_text(product.title),
        price=_text(product.price_tag),
        buttons="".join(buttons),
        buy=_address(session_id=visit.session_id, asin=product.asin, options=visit.options),
    )
    script = parts.SCRIPT.replace("@OPTIONS@", script_json(visit.options)).replace(
        "@IMAGES@", script_json(product.images or {})
    )
    return body + script


def _sub(visit: Visit) -> str:
    product = visit.product
    assert product is not None
    if visit.sub_page == "Description":
        inside = f'<p class="product-info">{_text(product.description)}</p>'
    elif visit.sub_page == "Features":
        items = (
            f'                  <li><p class="product-info"> {_text(b)}</p></li>\n' for b in product.bullets
        )
        gap = "                  \n"
        inside = f"<ul>\n{gap}{gap.join(items)}{gap}                </ul>"
    else:
        inside = ""
    url = _address(
        session_id=visit.session_id,
        asin=product.asin,
        keywords=visit.keywords,
        page=visit.page,
        options=visit.options,
    )
    return parts.SUB.format(url=url, name=_SUB_NAMES[visit.sub_page], inside=inside)


def _done(visit: Visit) -> str:
    assert visit.product is not None and visit.score is not None
    return parts.DONE_BODY.format(
        asin=_text(visit.product.asin), options=script_json(visit.options), reward=visit.score.value
    )
