"""Porter's stemmer in the variant that Lucene uses.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, with the three departures of
Martin Porter's own later programs: words of one or two letters are left alone, ``-bli`` becomes ``-ble``, and
``-logi`` becomes ``-log``. (The Snowball stemmer called ``porter`` lacks these and cannot be used instead.)
"""

from __future__ import annotations

from functools import lru_cache

_STEP2 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_STEP3 = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP4 = tuple(
    "al ance ence er ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize".split(),
)


def _shape(word: str) -> str:
    """One letter per letter: ``v`` vowel, ``c`` consonant. ``y`` is a vowel after a consonant."""
    shape = []
    for i, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and i > 0 and shape[i - 1] == "c")
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(stem: str) -> int:
    """The number of vowel-consonant sequences, Porter's *m*."""
    return _shape(stem).count("vc")


def _double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short_end(word: str) -> bool:
    """Ends consonant-vowel-consonant, the last one not w, x or y (Porter's *o)."""
    return len(word) > 2 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plurals(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _past_and_gerund(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            stem = word[: -len(ending)]
            if "v" not in _shape(stem):
                return word
            if stem.endswith(("at", "bl", "iz")):
                return stem + "e"
            if _double_consonant(stem):
                return stem if stem[-1] in "lsz" else stem[:-1]
            return stem + "e" if _measure(stem) == 1 and _short_end(stem) else stem
    return word


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    """The first ending that matches decides, whether or not its stem is long enough."""
    for ending, new in rules:
        if word.endswith(ending):
            stem = word[: -len(ending)]
            return stem + new if _measure(stem) > 0 else word
    return word


def _drop_ending(word: str) -> str:
    for ending in _STEP4:
        if word.endswith(ending):
            cut = 3 if ending in ("sion", "tion") else len(ending)
            stem = word[:-cut]
            return stem if _measure(stem) > 1 else word
    return word


def _tidy(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        m = _measure(stem)
        if m > 1 or (m == 1 and not _short_end(stem)):
            word = stem
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Stem of a lower-cased word. Letters outside a-z count as consonants, as in Lucene."""
    if len(word) < 3:
        return word
    word = _past_and_gerund(_plurals(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return _tidy(_drop_ending(_replace(_replace(word, _STEP2), _STEP3)))
