"""Static skills by question set, written by this project for the methods that need a bank.

The papers' retrieval rule (methods page 1.8): PopQA asks for an attribute of an entity, NQ and TriviaQA for
one direct look-up, the others for several hops. Their comparison rule looks at a question's wording, which a
bank by set cannot; multi-hop texts name comparison instead.
"""

from __future__ import annotations

from types import MappingProxyType

from seedbench.errors import ConfigError
from seedbench.types import Skill

_DIRECT = "search the name in the question then answer from the results"
_ATTRIBUTE = "search the name in the question then answer its attribute from the page of that name"
_HOPS = (
    "search the first name then search the name found on its page then answer from the last page ; "
    "to compare search both names then compare"
)
_TEXTS = MappingProxyType(
    {
        "nq": _DIRECT,
        "triviaqa": _DIRECT,
        "popqa": _ATTRIBUTE,
        "hotpotqa": _HOPS,
        "2wikimultihopqa": _HOPS,
        "musique": _HOPS,
        "bamboogle": _HOPS,
    }
)


def bank(group: str) -> Skill:
    """The skill of a question set. Raises :class:`ConfigError` for an unknown one."""
    if group not in _TEXTS:
        raise ConfigError(f"The Search-QA skill bank has no skill for '{group}'. Sets: {', '.join(_TEXTS)}.")
    return Skill(f"how to answer questions of {group}", _TEXTS[group], "bank")
