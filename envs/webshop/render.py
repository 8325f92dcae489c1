"""Observation modes of the original: ``text``, ``text_rich`` and ``url`` (``html`` is in :mod:`.markup`)."""

from __future__ import annotations

from typing import Literal

from seedbench.envs.webshop.markup import page_html
from seedbench.envs.webshop.shop import Visit

Mode = Literal["text", "text_rich", "url", "html"]
SEPARATOR = " [SEP] "


def observe(visit: Visit, mode: Mode) -> str:
    """The current page as the given mode shows it."""
    if mode == "url":
        return visit.url()
    if mode == "html":
        return page_html(visit)
    return _text(visit) if mode == "text" else _text_rich(visit)


def _segments(visit: Visit) -> list[str]:
    fixed = visit.shop.rules.fixed
    out = []
    for node in visit.nodes:
        text = node.text
        if not fixed and not text.strip() and "\n" in text:
            continue  # the original drops blank text with a line break and keeps other blanks
        if fixed and node.kind == "option":
            text = node.click + (" (chosen)" if visit.options.get(node.group) == node.text else "")
        out.append(text.strip())
    return out


def _text(visit: Visit) -> str:
    return SEPARATOR.join(_segments(visit))


def _text_rich(visit: Visit) -> str:
    fixed, url = visit.shop.rules.fixed, visit.url()
    body, clicked = [], []
    for node in visit.nodes:
        if node.kind == "text":
            if not node.text.strip() and "\n" in node.text:
                continue
            body.append(f"{node.text}\n")
            continue
        if node.kind == "option":
            if fixed:
                chosen = visit.options.get(node.group) == node.text
            else:
                # looked for in the address, so quotes hide a choice and a quoted query fakes one
                chosen = f'"{node.text}"' in url
            if chosen:
                clicked.append(f"You have clicked {node.text}.\n")
            indent, text = "  ", node.click if fixed else node.text
        else:
            chosen = node.kind == "link" and node.text in visit.opened
            indent, text = ("\n" if node.kind == "link" else ""), node.text
        word = "clicked button" if chosen else "button"
        body.append(f"{indent}[{word}] {text} [{word}_]\n")
    return "".join([*reversed(clicked), *body])
