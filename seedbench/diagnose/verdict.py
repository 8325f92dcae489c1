"""A diagnosis in words: what the numbers say, and warnings where the signal is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Below this spread over actions of one state the gate is called flat.
FLAT_STD = 0.02
#: Share of tokens with a gap above 0.1 below which the teacher hardly differs from the student.
FEW_GAPS = 0.1
#: AUC within this distance of the controls' is no support.
MARGIN = 0.05
#: Fewer harmful tokens than this give no warning.
ENOUGH = 30


def warnings(d: Mapping[str, Any]) -> list[str]:
    gate, support, skills = d["gate"], d["support"], d["skills"]
    out = []
    spread = gate["gate_within_state_std"]
    if spread is not None and spread < FLAT_STD:
        out.append(
            f"The gate is flat: at one state it varies by {spread:.3f} over actions. A constant gate on on-policy "
            "samples has zero expected gradient; the auxiliary loss adds variance and no direction."
        )
    if gate["gap_above_0.1"] < FEW_GAPS:
        out.append(
            f"The teacher hardly differs: only {gate['gap_above_0.1']:.1%} of tokens have a gap above 0.1 nats."
        )
    own = support["conditions"]["own"]["auc"]
    controls = [support["conditions"][c]["auc"] for c in ("shuffled", "random")]
    if own is not None and own - max(c for c in controls if c is not None) < MARGIN:
        out.append(
            f"No support beyond the controls: AUC {own:.2f} with the own skill, {controls[0]:.2f} with another's, "
            f"{controls[1]:.2f} with random words."
        )
    if own is None:
        out.append("Support could not be measured: no sampled state had both a useful and another action.")
    if gate["harmful_tokens"] >= ENOUGH and gate["harmful_rewarded"] > 0.5:
        out.append(f"The gate rewards harm: above 0.5 on {gate['harmful_rewarded']:.0%} of harmful tokens.")
    if skills["overall"]["unsupported"] > 0.2:
        out.append(
            f"{skills['overall']['unsupported']:.0%} of what skills name does not occur in their trajectory."
        )
    if skills["distinct"] < 0.2:
        out.append(f"Skills repeat themselves: {skills['distinct']:.0%} distinct texts.")
    return out


def words(d: Mapping[str, Any]) -> str:
    """A page of Markdown: one paragraph per question, warnings last."""
    g, s, t, c = d["gate"], d["support"], d["skills"], d["gradients"]
    by = s["conditions"]
    first, last = t["by_update"][0], t["by_update"][-1]
    lines = [
        f"# Skill diagnosis of {d['subject']}",
        "",
        f"{d['items']} training episodes, {s['states']} states, checkpoint {d['checkpoint']}.",
        "",
        "**Support.** AUC of useful against other actions at the same state: "
        + ", ".join(f"{name} {_n(v['auc'])}" for name, v in by.items())
        + f". Gap per token with the own skill: useful {_n(by['own']['gap_useful'])}, idle "
        f"{_n(by['own']['gap_idle'])}, harmful {_n(by['own']['gap_harmful'])} nats.",
        "",
        f"**Faithfulness** ({t['measure']}). Unsupported {t['overall']['unsupported']:.1%}, contradicting the "
        f"outcome {t['overall']['contradicts']:.1%}; update {first['update']}: {first['unsupported']:.1%}, update "
        f"{last['update']}: {last['unsupported']:.1%}.",
        "",
        f"**Form.** Parsed {t['parse_rate']:.1%}, {t['overall']['words']:.1f} words, repeated triples "
        f"{t['overall']['repeated']:.1%}, near copies of the trajectory {t['overall']['copy']:.1%}, distinct texts "
        f"{t['distinct']:.1%}.",
        "",
        f"**Gate.** Mean {g['gate_mean']:.3f}, spread {g['gate_std']:.3f}; {g['upweighted']:.1%} of {g['tokens']} "
        f"tokens upweighted, {_p(g['upweighted_useful'])} of these in useful actions; rewards "
        f"{_p(g['harmful_rewarded'])} of {g['harmful_tokens']} harmful tokens.",
        "",
        f"**Signal.** Teacher gap mean {g['gap_mean']:+.4f}, spread {g['gap_std']:.4f}, above 0.1 on "
        f"{g['gap_above_0.1']:.1%} of tokens; gate within a state varies by {_n(g['gate_within_state_std'])}; "
        f"cosine of auxiliary and policy gradient {_n(c['cosine'])}.",
        "",
        *[f"- Warning: {w}" for w in d["warnings"]],
        *([] if d["warnings"] else ["No warning."]),
    ]
    return "\n".join(lines) + "\n"


def _n(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3f}"


def _p(value: float | None) -> str:
    return "none" if value is None else f"{value:.1%}"
