"""Word-level tokens with *entity tokens*: ``cabinet 2`` is one token, so naming a thing is one decision.

The tokenizer is an ordinary ``tokenizers`` file (and loads in ``transformers``): lower-case, filler words
dropped, words looked up whole, unknown words spelled in characters. Why entity tokens: with numbers as
tokens of their own a small policy stayed at 2 % success with half its actions invalid (training notes).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from seedbench.errors import CheckpointCorrupt

PAD, BOS, END, ACT, OBS, SKILL, SKILL_END, WON, LOST, HINDSIGHT = range(10)
SPECIAL = [
    "<pad>",
    "<bos>",
    "<end>",
    "<act>",
    "<obs>",
    "<skill>",
    "</skill>",
    "<won>",
    "<lost>",
    "<hindsight>",
]
#: The frame of a skill in JSON, one token each, so that a small model writes well-formed skills.
FRAME = ['{"episode_summary": "', '", "episode_skill": "', '"}']
_FRAME = re.compile("(" + "|".join(map(re.escape, FRAME)) + ")")
FILLER = ("a", "an", "the", "you", "and")


def build(words: Iterable[str], entities: Iterable[str] = ()) -> Tokenizer:
    """A tokenizer over ``words``; an entry such as ``"cabinet 2"`` of an ``entities`` kind is one token."""
    filler, kinds = "|".join(FILLER), "|".join(sorted(entities, key=lambda k: (-len(k), k)))
    entity = rf"\b(?:{kinds}) [0-9]+\b|" if kinds else ""
    pattern = rf"{entity}\b(?!(?:{filler})\b)[a-z]+|[0-9]+(?:\.[0-9]+)?|[^\sa-z0-9,.\"]"
    characters = list(string.ascii_lowercase + string.digits + string.punctuation + " ")
    vocabulary = SPECIAL + FRAME + ["<unk>"] + characters + ["##" + c for c in characters]
    vocabulary += sorted(set(words) - set(vocabulary))
    tokenizer = Tokenizer(
        models.WordPiece(
            {w: i for i, w in enumerate(vocabulary)}, unk_token="<unk>", max_input_chars_per_word=64
        )
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.add_special_tokens(SPECIAL + FRAME)
    return tokenizer


class TinyTokenizer:
    """Encoding with memory: observations and actions repeat, so most calls are a dictionary look-up."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.inner = tokenizer
        self.inner.encode_special_tokens = True  # as text, see _encode
        self.size = tokenizer.get_vocab_size()
        self.encode = lru_cache(maxsize=200_000)(self._encode)
        self.frame = tuple(tokenizer.token_to_id(f) for f in FRAME)

    @classmethod
    def load(cls, path: Path) -> TinyTokenizer:
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:
            raise CheckpointCorrupt(f"Tokenizer {path} cannot be read: {error}.") from error

    def _encode(self, text: str) -> tuple[int, ...]:
        """Ids of ``text``. Only the frame of a skill is recognised; a control token spelled out in a text stays
        text, so an observation can neither end an action nor open a skill. Lone surrogates become ``?``."""
        text = text.encode("utf-8", "replace").decode()
        ids: list[int] = []
        for part in _FRAME.split(text):
            if part in FRAME:
                ids.append(self.frame[FRAME.index(part)])
            else:
                ids += self.inner.encode(part, add_special_tokens=False).ids
        return tuple(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ``ids``, frame tokens written out, other special tokens left out."""
        out: list[str] = []
        words: list[int] = []
        for i in ids:
            if i in self.frame:
                out += [self.inner.decode(words, skip_special_tokens=True), FRAME[self.frame.index(i)]]
                words = []
            else:
                words.append(i)
        out.append(self.inner.decode(words, skip_special_tokens=True))
        return "".join(out)
