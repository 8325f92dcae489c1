"""Products: what a product is, and how raw product files become products.

Rules: webshop specification 1.1 (measured on the original program). The order of products is the order of the
file; it decides every later random draw.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedbench.errors import DataCorrupt
from seedbench.search.base import Document

DEFAULT_PRICE = 100.0
NO_ATTRIBUTES = ("DUMMY_ATTR",)
_NOT_A_NUMBER = re.compile(r"[^\d.]")


@dataclass(frozen=True, slots=True)
class Product:
    """One product, immutable and shared by all sessions.

    ``options``: name -> values, in page order. ``prices``: one or two dollars as printed; ``price``: dollars
    that are charged. ``images``: value -> address, for the web pages only.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    category: str
    query: str
    path: str
    options: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    prices: tuple[float, ...]
    price: float
    image: str = ""
    images: Mapping[str, str | None] | None = None

    @property
    def price_tag(self) -> str:
        """As the original prints it: Python's shortest float, ``$14.0``."""
        return " to ".join(f"${p}" for p in self.prices[:2])

    def document(self) -> Document:
        """What the search engine indexes: lower-cased title, description, first bullet, options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        parts = (self.title, self.description, self.bullets[0] if self.bullets else "", options)
        return Document(self.asin, " ".join(parts).lower())


def clean(
    raw: Sequence[Mapping[str, Any]], attributes: Mapping[str, Any], rng: random.Random
) -> tuple[Product, ...]:
    """Products of a raw file. Repeated and over-long asins are dropped; price ranges are drawn from ``rng``.

    With ``random.Random(0)`` the draws equal those of the original after ``random.seed(0)``; the global
    generator is not touched. Raises :class:`DataCorrupt` with the place when a record is not a product.
    """
    seen: set[str] = set()
    products = []
    for number, record in enumerate(raw):
        try:
            asin = record["asin"]
            if asin == "nan" or len(asin) > 10 or asin in seen:
                continue
            seen.add(asin)
            products.append(_product(record, attributes.get(asin) or {}, rng))
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as e:
            what = f"{type(e).__name__}: {e}"
            raise DataCorrupt(f"Product number {number} of the product file cannot be read ({what}).") from e
    return tuple(products)


def price_numbers(pricing: str | None) -> tuple[float, ...]:
    """Dollars in a price string; ``(100.0,)`` when there is none."""
    if not pricing:
        return (DEFAULT_PRICE,)
    return tuple(float(_NOT_A_NUMBER.sub("", piece)) for piece in pricing.split("$")[1:])


def _product(record: Mapping[str, Any], attributes: Mapping[str, Any], rng: random.Random) -> Product:
    bullets = record["small_description"]
    prices = price_numbers(record["pricing"])
    options, images = _options(record.get("customization_options"))
    return Product(
        asin=record["asin"],
        title=record["name"],
        description=record["full_description"] or "",
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets,),
        category=record["category"],
        query=record["query"].lower().strip(),
        path=record["product_category"],
        options=options,
        attributes=tuple(attributes.get("attributes") or NO_ATTRIBUTES),
        prices=prices,
        price=prices[0] if len(prices) == 1 else rng.uniform(prices[0], prices[1]),
        image=(record.get("images") or [""])[0],
        images=images,
    )


def _options(groups: Any) -> tuple[dict[str, tuple[str, ...]], dict[str, str | None]]:
    options: dict[str, tuple[str, ...]] = {}
    images: dict[str, str | None] = {}
    for name, entries in (groups or {}).items():
        if entries is None:
            continue
        values = []
        for entry in entries:
            value = entry["value"].strip().replace("/", " | ").lower()
            values.append(value)
            images[value] = entry.get("image")
        options[name.lower()] = tuple(values)
    return options, images


def index_documents(products: Iterable[Product]) -> Iterable[Document]:
    return (p.document() for p in products)
