"""Text to terms, as Lucene's English analysis does it.

Chain (Lucene 9 ``EnglishAnalyzer`` as configured by Anserini): Unicode word segmentation, possessive removal,
lower case, 33 stop words, Porter stems. Word segmentation is UAX #29 with Lucene's additions: an ideograph or
a hiragana letter is a token by itself, a run of a South-East Asian script is one token, emoji sequences are
tokens, everything else between words is dropped. Tokens are cut at 255 characters.

Checked against recordings of Lucene (2,615 queries and 1,000 product texts) and, character by character, against
a running one: only characters encoded after Unicode 12 differ.
"""

from __future__ import annotations

import re
from functools import lru_cache

import regex

from seedbench.search.porter import stem

MAX_TOKEN = 255
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)

# Extended_Pictographic as of Unicode 11, which Lucene 9 was generated from; later versions dropped many
# symbols (U+2605 BLACK STAR for one), so the regex module's own table would not do.
_PICTOGRAPH = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3"
    "\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705"
    "\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767"
    "\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f12f\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e"
    "\U0001f191-\U0001f19a\U0001f1ad-\U0001f1e5\U0001f201-\U0001f20f\U0001f21a\U0001f22f\U0001f232-\U0001f23a"
    "\U0001f23c-\U0001f23f\U0001f249-\U0001f3fa\U0001f400-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff"
    "\U0001f774-\U0001f77f\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f848-\U0001f84f\U0001f85a-\U0001f85f"
    "\U0001f888-\U0001f88f\U0001f8ae-\U0001f8ff\U0001f90c-\U0001f93a\U0001f93c-\U0001f945\U0001f947-\U0001fffd"
)
# Characters that became letters, middles or digits of words after the Unicode version of Lucene 9. Scripts that
# were encoded later still (Yezidi, Vithkuqi ...) are left to the regex module.
_LATER_LETTERS = "\u00b8\u02e5-\u02eb\u055a\u055f\u058a\u070f\ua708-\ua716"
_LATER_DIGITS = "\u0600-\u0605\u06dd\u070f\u08e2\U000110bd\U000110cd"


def _unicode_pattern() -> regex.Pattern[str]:
    """Group 1 holds a token; a match with an empty group 1 is skipped text.

    Skipped runs of connectors are matched whole, which keeps the scan linear on hostile input.
    """
    x = rf"[\p{{WB=Format}}\p{{WB=Extend}}\p{{WB=ZWJ}}{_LATER_DIGITS}]*+"
    letter = rf"[[\p{{WB=ALetter}}\p{{WB=Hebrew_Letter}}]--[{_LATER_LETTERS}]]{x}"
    hebrew = rf"\p{{WB=Hebrew_Letter}}{x}"
    digit = rf"[\p{{WB=Numeric}}--[{_LATER_DIGITS}]]{x}"
    join = rf"(?:\p{{WB=ExtendNumLet}}{x})"
    mid_letter = rf"[[\p{{WB=MidLetter}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}]--[{_LATER_LETTERS}]]{x}"
    mid_digit = rf"[\p{{WB=MidNum}}\p{{WB=MidNumLet}}\p{{WB=Single_Quote}}\ufe10\ufe14]{x}"
    unit = (
        rf"(?:{hebrew}(?:\p{{WB=Double_Quote}}{x}(?={hebrew})|\p{{WB=Single_Quote}}{x})"
        rf"|{letter}(?:{mid_letter}(?={letter}))?+|{digit}(?:{mid_digit}(?={digit}))?+)"
    )
    katakana = rf"\p{{WB=Katakana}}{x}"
    run = rf"(?:{katakana}(?:{join}*+{katakana})*+|{unit}(?:{join}*+{unit})*+)"
    word = rf"{join}*+{run}(?:{join}++{run})*+{join}*+"

    # A joiner belongs to the emoji sequence when another emoji follows it, else to the character before.
    joins = rf"\u200d(?=\u200d*[{_PICTOGRAPH}\U0001f3fb-\U0001f3ff])"
    bare = rf"(?:(?!{joins})[[\p{{WB=Format}}\p{{WB=Extend}}\p{{WB=ZWJ}}]--[\ufe0e\ufe0f\u20e3]])*+"
    picture = rf"[{_PICTOGRAPH}]{bare}\ufe0f?"
    modifier = rf"\p{{Emoji_Modifier}}{bare}"
    person = rf"\p{{Emoji_Modifier_Base}}{bare}{modifier}"
    element = rf"\u200d*+(?:{person}|{picture}|{modifier})"
    emoji = (
        rf"{element}(?:[\U000e0020-\U000e007e]+\U000e007f|(?:\u200d{element})*+)"
        rf"|[#*]{bare}\ufe0f?\u20e3{bare}|(?:\p{{WB=Regional_Indicator}}{x}){{2}}"
    )
    other = rf"(?:\p{{LB=SA}}{x})+|\p{{Script=Han}}{x}|\p{{Script=Hiragana}}{x}"
    return regex.compile(rf"({word}|{emoji}|{other})|{join}++", regex.V1)


_ASCII = re.compile(
    r"(?:_*[a-z0-9](?:_*[a-z0-9]|(?<=[0-9])[.,;'](?=[0-9])|(?<=[a-z])[.:'](?=[a-z]))*_*)|_+",
)
_UNICODE = _unicode_pattern()


def _lower(text: str) -> str:
    # Lucene lower-cases code point by code point: no final sigma, and one letter for the dotted capital I.
    return text.lower() if text.isascii() else text.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()


def _cut_scan(text: str) -> list[str]:
    """As Lucene's scanner with its 255-character buffer: the longest token that fits, then on from there."""
    out = []
    for found in _UNICODE.finditer(text):
        at, end = found.span(1)
        while at < end:
            piece = _UNICODE.match(text, at, min(at + MAX_TOKEN, end))
            if piece and piece.group(1):
                out.append(piece.group(1))
            at = piece.end() if piece else at + 1
    return out


def words(text: str) -> list[str]:
    """Lower-cased tokens in order, before stop words and stems."""
    text = _lower(text)
    if text.isascii():
        found = [w for w in _ASCII.findall(text) if w[-1] != "_" or w.strip("_")]
    else:
        found = [w for w in _UNICODE.findall(text) if w]
    return _cut_scan(text) if any(len(w) > MAX_TOKEN for w in found) else found


@lru_cache(maxsize=1 << 17)
def term(word: str) -> str:
    """The index term of a token, or ``""`` for a stop word."""
    if len(word) > 1 and word[-1] == "s" and word[-2] in "'\u2019\uff07":
        word = word[:-2]
    return "" if word in STOP_WORDS else stem(word)


def terms(text: str) -> list[str]:
    """Index terms of a text, in order, with repetitions.

    Blanks end tokens (all but the narrow no-break space), and the same pieces between blanks come again and
    again, so they are remembered.
    """
    if "\u202f" in text:
        return list(_terms_of(text))
    out: list[str] = []
    for piece in text.split():
        out += _piece_terms(piece) if len(piece) <= _REMEMBERED else _terms_of(piece)
    return out


def _terms_of(text: str) -> tuple[str, ...]:
    return tuple(t for w in words(text) if (t := term(w)))


_REMEMBERED = 40
_piece_terms = lru_cache(maxsize=1 << 18)(_terms_of)
