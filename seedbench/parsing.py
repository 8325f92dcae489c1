"""Reading an action out of a completion. One rule, shared by every environment that uses tags.

Source: projection functions of the published code (methods.md section 4). The papers look at the first
``<action>`` of the whole text; reasoning that quotes a tag would then be executed, so the reasoning is
removed first when it is properly closed (BR-034).
"""

from __future__ import annotations

import re

from seedbench.types import Action

_CJK = re.compile(r"[\u4e00-\u9fff]")
_THINK = re.compile(r"</?think>", re.IGNORECASE)


def strip_reasoning(text: str) -> str:
    """Text without closed ``<think>`` blocks; a closing tag alone (prefilled opening) also ends one."""
    return _split_reasoning(text)[0]


def _split_reasoning(text: str) -> tuple[str, int]:
    """What is left of a text, and how many blocks were taken out. One pass, whatever the text holds."""
    kept: list[str] = []
    blocks, place, opened = 0, 0, -1
    for tag in _THINK.finditer(text):
        closing = tag[0][1] == "/"
        if not closing:
            opened = tag.start() if opened < 0 else opened
            continue
        if opened < 0:
            kept.clear()  # the block began in the prompt
        else:
            kept.append(text[place:opened])
        blocks, place, opened = blocks + 1, tag.end(), -1
    return "".join([*kept, text[place:]]), blocks


def tag_counts(text: str, *tags: str) -> dict[str, int]:
    """How often each opening tag occurs, case-insensitively."""
    low = text.lower()
    return {t: low.count(f"<{t}>") for t in tags}


def parse_tagged(completion: str, *, fallback_chars: int, require_think: bool) -> Action:
    """Action between the first ``<action>`` and the next ``</action>``, lower-cased and stripped.

    Without both tags the last ``fallback_chars`` characters are sent on, marked invalid, as the papers do.
    ``require_think`` also wants a ``<think>`` block, and only one (BR-035). CJK characters make a completion
    invalid. Reasons: ``empty``, ``no_tags``, ``too_many_actions``, ``no_think``, ``too_many_thinks``, ``cjk``.
    """
    if not completion.strip():
        return Action("", False, "empty")
    body, thinks = _split_reasoning(completion)
    body = body.lower()
    start = body.find("<action>")
    end = body.find("</action>", start)
    if start < 0 or end < 0:
        return Action(completion.strip().lower()[-fallback_chars:], False, "no_tags")
    text = body[start + len("<action>") : end].strip()
    if tag_counts(body, "action")["action"] > 1:
        return Action(text, False, "too_many_actions")
    if require_think and not ("<think>" in completion and "</think>" in completion):
        return Action(text, False, "no_think")
    if require_think and thinks > 1:
        return Action(text, False, "too_many_thinks")
    if _CJK.search(completion):
        return Action(text, False, "cjk")
    if not text:
        return Action("", False, "empty")
    return Action(text)
