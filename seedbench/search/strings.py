"""A list of strings in two numpy arrays, so that it can be saved, memory-mapped and shared."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np


class Strings(Sequence[str]):
    """A read-only list of strings in two arrays: UTF-8 bytes (uint8) and n + 1 offsets (int64)."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        self.data, self.offsets = data, offsets

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        buffer, offsets = bytearray(), array("q", [0])
        for s in strings:
            buffer += s.encode("utf-8", "surrogatepass")
            offsets.append(len(buffer))
        return cls(np.frombuffer(bytes(buffer), np.uint8), np.frombuffer(offsets, np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, i: int) -> bytes:
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def __getitem__(self, i: int) -> str:  # type: ignore[override]
        return self.raw(i).decode("utf-8", "surrogatepass")

    def find(self, s: str) -> int:
        """Position of ``s`` in a list sorted by UTF-8 bytes, or -1."""
        key, low, high = s.encode("utf-8", "surrogatepass"), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.raw(middle) < key:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.raw(low) == key else -1
