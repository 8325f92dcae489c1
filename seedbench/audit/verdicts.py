"""What an audit says: one verdict per check, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: ``unchecked``: the record or this machine lacks what the check needs; the evidence says what.
Status = Literal["pass", "fail", "unchecked"]
WORDS: dict[Status, str] = {"pass": "pass", "fail": "FAIL", "unchecked": "could not check"}
#: Findings printed per check; all are counted.
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """``key`` names the check, ``question`` is what it answers, ``evidence`` are whole sentences."""

    key: str
    question: str
    status: Status
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """``subject`` is a run's path or an environment's name."""

    subject: str
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(c.key for c in self.checks if c.status == "fail")

    @property
    def ok(self) -> bool:
        """Nothing failed; what could not be checked is no failure and stays visible."""
        return not self.failed

    def __getitem__(self, key: str) -> Check:
        return next(c for c in self.checks if c.key == key)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}

    def lines(self) -> list[str]:
        """For a terminal: one line per verdict, its evidence indented below."""
        out = [f"Audit of {self.subject}"]
        for c in self.checks:
            out.append(f"  {WORDS[c.status]:<16}{c.key}: {c.question}")
            out += [f"{'':18}{line}" for line in c.evidence]
        counts = {s: sum(c.status == s for c in self.checks) for s in WORDS}
        out.append(", ".join(f"{n} {WORDS[s]}" for s, n in counts.items()))
        return out


def verdict(
    key: str, question: str, faults: Iterable[str], held: Iterable[str] = (), gaps: Iterable[str] = ()
) -> Check:
    """``faults``: what is wrong (any: fail). ``held``: what was found in order. ``gaps``: what could not be
    looked at. Without faults and without anything found in order, the verdict is "could not check"."""
    faults, held, gaps = list(faults), list(held), list(gaps)
    status: Status = "fail" if faults else "pass" if held else "unchecked"
    more = [f"... and {len(faults) - SHOWN} more."] if len(faults) > SHOWN else []
    return Check(key, question, status, (*faults[:SHOWN], *more, *held, *(f"Not checked: {g}" for g in gaps)))


def unchecked(key: str, question: str, why: str) -> Check:
    return Check(key, question, "unchecked", (why,))
