"""Reading the official files where their users keep them: ``$WEBSHOP_DATA`` or the ``data`` setting.

File names are those of the official set-up script; the names of the small research copies are understood too.
"""

from __future__ import annotations

import json
import lzma
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from seedbench.envs.webshop.catalogue import Product, clean
from seedbench.envs.webshop.nouns import Frozen, TitleNouns

from seedbench.errors import DataCorrupt, DataMissing

VARIABLE = "WEBSHOP_DATA"
Size = Literal["small", "full"]

_PRODUCTS = {
    "small": ("items_shuffle_1000.json", "items_shuffle_1000.reconstructed.json", "documents_1k.jsonl.xz"),
    "full": ("items_shuffle.json",),
}
_ATTRIBUTES = {"small": ("items_ins_v2_1000.json", "items_ins_v2.json"), "full": ("items_ins_v2.json",)}
_HUMAN = ("items_human_ins.json", "items_human_ins.subset13.json")
_NOUNS = "title_nouns_*.json"


def folder(setting: str | None) -> Path:
    """The data folder. Raises :class:`DataMissing` with what to do."""
    place = setting or os.environ.get(VARIABLE)
    if not place:
        raise DataMissing(f"The WebShop files are not configured. {_cure('small')}")
    path = Path(place).expanduser()
    if not path.is_dir():
        raise DataMissing(f"{path} is not a folder. {_cure('small')}")
    return path


def read_attributes(place: Path, size: Size) -> Mapping[str, Any]:
    """asin -> attributes and synthetic instruction."""
    return _mapping(_find(place, _ATTRIBUTES[size], size))


def read_human(place: Path, size: Size) -> Mapping[str, Any]:
    """asin -> written instructions."""
    return _mapping(_find(place, _HUMAN, size))


def read_products(
    place: Path, size: Size, attributes: Mapping[str, Any], rng: random.Random
) -> tuple[Product, ...]:
    """Cleaned products in file order; price ranges are drawn from ``rng``."""
    path = _find(place, _PRODUCTS[size], size)
    if path.suffix == ".xz":
        raw = [_as_raw(row) for row in _json_lines(path)]
    else:
        raw = _json(path)
    if not isinstance(raw, list) or not raw:
        raise DataCorrupt(f"{path} should hold a list of products. {_cure(size)}")
    return clean(raw, attributes, rng)


def read_nouns(place: Path) -> TitleNouns | None:
    """The frozen noun table of the folder, if there is one; its name tells the tagger."""
    for path in sorted(place.glob(_NOUNS)):
        return Frozen(_mapping(path), f"table {path.stem.removeprefix('title_nouns_')}")
    return None


def missing_files(setting: str | None, size: Size, human: bool) -> list[str]:
    """Sentences about what keeps the real catalogue from being used; empty if nothing does."""
    try:
        place = folder(setting)
        _find(place, _PRODUCTS[size], size)
        _find(place, _ATTRIBUTES[size], size)
        if human:
            _find(place, _HUMAN, size)
    except DataMissing as e:
        return [str(e)]
    return []


def _cure(size: Size) -> str:
    flag = "small" if size == "small" else "all"
    return (
        f"Get the official files with `./setup.sh -d {flag}` of the princeton-nlp/WebShop repository, then "
        f"`export {VARIABLE}=/path/to/WebShop/data`. Without files, use the variant 'mini'."
    )


def _find(place: Path, names: Sequence[str], size: Size) -> Path:
    for name in names:
        if (place / name).is_file():
            return place / name
    raise DataMissing(f"{place} has no {names[0]}. {_cure(size)}")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, OSError) as e:
        raise DataCorrupt(f"{path} cannot be read as JSON ({e}). Fetch the file again.") from e


def _mapping(path: Path) -> Mapping[str, Any]:
    found = _json(path)
    if not isinstance(found, dict):
        raise DataCorrupt(f"{path} should hold an object with one entry per product. Fetch the file again.")
    return found


def _json_lines(path: Path) -> list[Any]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except (ValueError, OSError, EOFError, lzma.LZMAError) as e:
        raise DataCorrupt(f"{path} cannot be read as xz-compressed JSON lines ({e}). Fetch it again.") from e


def _as_raw(row: Any) -> dict[str, Any]:
    """A search document of the original holds the cleaned product; this turns it back into a raw record."""
    try:
        product = row["product"]
        images = product.get("option_to_image") or {}
        groups = {
            name: [{"value": v, "image": images.get(v)} for v in values]
            for name, values in product["options"].items()
        }
        pricing = "" if product["Price"] == "$100.0" else "".join(f"${p}" for p in product["pricing"])
        return {**product, "pricing": pricing, "customization_options": groups}
    except (KeyError, TypeError, AttributeError) as e:
        raise DataCorrupt(f"A search document lacks a product field ({type(e).__name__}: {e}).") from e
