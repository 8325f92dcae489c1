"""The figures of a diagnosis, as SVG bytes that depend on the numbers alone."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from seedbench.errors import ExtraMissing

_COLOURS = ("#0072b2", "#d55e00", "#009e73")


def draw(diagnosis: Mapping[str, Any]) -> dict[str, bytes]:
    """File name -> SVG. Raises :class:`ExtraMissing` without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ExtraMissing("Figures need matplotlib: pip install 'seedbench[plots]'.") from None
    out = {}
    for name, paint in (("support", _support), ("faithfulness", _faithfulness), ("gate", _gate)):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        paint(figure.subplots(1, 2), diagnosis)
        figure.suptitle(diagnosis["subject"], fontsize=8)
        data = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "seedbench", "svg.fonttype": "none"}):
            figure.savefig(data, format="svg", metadata={"Date": None, "Creator": None})
        out[f"{name}.svg"] = data.getvalue()
    return out


def _support(axes: Any, d: Mapping[str, Any]) -> None:
    conditions = d["support"]["conditions"]
    names = list(conditions)
    for k, label in enumerate(("useful", "idle", "harmful")):
        values = [conditions[c][f"gap_{label}"] or 0.0 for c in names]
        places = [i + 0.25 * (k - 1) for i in range(len(names))]
        axes[0].bar(places, values, 0.25, label=label, color=_COLOURS[k])
    axes[0].set_xticks(range(len(names)), names)
    axes[0].set_ylabel("gap per token (nats)")
    axes[0].legend(fontsize=7)
    axes[1].bar(range(len(names)), [conditions[c]["auc"] or 0.0 for c in names], color=_COLOURS[0])
    axes[1].axhline(0.5, color="black", linewidth=0.8)
    axes[1].set_xticks(range(len(names)), names)
    axes[1].set_ylim(0, 1)
    axes[1].set_ylabel("AUC useful against others")


def _faithfulness(axes: Any, d: Mapping[str, Any]) -> None:
    rows = d["skills"]["by_update"]
    x = [r["update"] for r in rows]
    for k, (name, label) in enumerate((("unsupported", "unsupported"), ("contradicts", "contradicting"))):
        axes[0].plot(
            x, [100 * r[name] for r in rows], label=label, color=_COLOURS[k], marker="o", markersize=3
        )
    axes[0].plot(
        x, [100 * r["parse_rate"] for r in rows], label="parsed", color=_COLOURS[2], marker="s", markersize=3
    )
    axes[0].set_ylim(-2, 102)
    axes[0].set_ylabel("% of skills")
    axes[0].legend(fontsize=7)
    axes[1].plot(x, [r["words"] for r in rows], color=_COLOURS[0], marker="o", markersize=3)
    axes[1].set_ylabel("words per skill")
    for a in axes:
        a.set_xlabel("update")


def _gate(axes: Any, d: Mapping[str, Any]) -> None:
    gate = d["gate"]
    rows = gate["by_update"]
    x = [r["update"] for r in rows]
    axes[0].fill_between(x, [r["q10"] for r in rows], [r["q90"] for r in rows], alpha=0.2, color=_COLOURS[0])
    axes[0].plot(x, [r["q50"] for r in rows], color=_COLOURS[0], marker="o", markersize=3)
    axes[0].axhline(0.5, color="black", linewidth=0.8)
    axes[0].set_ylim(0, 1)
    axes[0].set_xlabel("update")
    axes[0].set_ylabel("gate: 10 %, median, 90 %")
    counts = gate["gate_histogram"]
    places = [(i + 0.5) / len(counts) for i in range(len(counts))]
    axes[1].bar(places, counts, 1 / len(counts), color=_COLOURS[0])
    axes[1].set_xlabel("gate")
    axes[1].set_ylabel("decided tokens")
