"""Learning curves, data efficiency and cost against score, as SVG files with stable bytes.

matplotlib is the extra ``[plots]`` and is imported when a figure is drawn.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seedbench import stats
from seedbench.errors import ExtraMissing
from seedbench.jsonl import storage, write_bytes
from seedbench.reports.builders import Paths, by_setting
from seedbench.reports.collect import Arm, arms, collect
from seedbench.reports.layout import describe, title
from seedbench.reports.spending import Curves, training

#: Okabe & Ito's colours, told apart with all common kinds of colour vision; markers tell the rest.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^v<>P"
#: More arms than this make bands that hide each other; they are drawn fainter.
MANY = 5


def draw_all(runs: Paths, folder: str | Path, curves: Curves | None = None) -> list[Path]:
    """Every figure the runs allow, one file per setting and kind; returns the files, sorted.

    ``curves`` may be shared with tables of the same runs. Raises :class:`ExtraMissing` without matplotlib.
    """
    found, _ = collect(runs)
    curves = curves or Curves()
    folder, out = Path(folder), []
    with storage(folder, "create"):
        folder.mkdir(parents=True, exist_ok=True)
    for setting, members in by_setting(arms(found)).items():
        stem = f"{setting.env}-{setting.variant}-{setting.panel}-{setting.sha256}"
        shares = {_share(a) for a in members}
        kinds: list[tuple[str, Callable[[Sequence[Arm]], bytes]]] = [
            ("curve", partial(learning_curves, curves=curves)),
            ("cost", cost_score),
        ]
        kinds += [("data", data_efficiency)] if len(shares) > 1 else []
        for kind, draw in kinds:
            path = folder / f"{kind}-{stem}.svg"
            write_bytes(path, draw(members))
            out.append(path)
    return sorted(out)


def learning_curves(members: Sequence[Arm], curves: Curves) -> bytes:
    """Success after each evaluated update; bands are 95 % intervals over seeds and tasks. An arm that does not
    train is a dotted line."""
    figure, axes = _axes(members, "Updates")
    alpha = 0.15 if len(members) <= MANY else 0.06
    for i, arm in enumerate(members):
        at: dict[int, list[np.ndarray]] = defaultdict(list)
        for evaluation in arm.evaluations:
            for point in curves.of(evaluation):
                at[point.update].append(point.success)
        # an update that not every seed evaluated would mix different sets of seeds into one line
        updates = [u for u in sorted(at) if len(at[u]) == len(arm.evaluations)]
        if updates == [0]:
            style = {**_style(i), "linestyle": ":", "marker": ""}
            axes.axhline(_percent(arm.success)[0], label=_name(arm), **style)
        else:
            _band(axes, i, arm, updates, [np.stack(at[u]) for u in updates], alpha=alpha)
    return _svg(figure, axes)


def data_efficiency(members: Sequence[Arm]) -> bytes:
    """Final success against the share of training tasks."""
    figure, axes = _axes(members, "Share of training tasks (%)")
    by_label: dict[tuple[str, str], list[Arm]] = defaultdict(list)
    for arm in members:
        by_label[arm.evaluations[0].method, arm.backbone].append(arm)
    for i, (_, part) in enumerate(sorted(by_label.items())):
        part = sorted(part, key=_share)
        _band(
            axes,
            i,
            part[0],
            [100 * _share(a) for a in part],
            [a.success for a in part],
            name=part[0].evaluations[0].method,
        )
    return _svg(figure, axes)


def cost_score(members: Sequence[Arm]) -> bytes:
    """Final success against training tokens, one point per arm with its 95 % interval."""
    figure, axes = _axes(members, "Training tokens (millions)")
    for i, arm in enumerate(members):
        tokens = float(np.mean([training(e.run).tokens for e in arm.evaluations])) / 1e6
        value, interval = _percent(arm.success)
        error = (
            None if interval is None else [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]]
        )
        axes.errorbar([tokens], [value], yerr=error, label=_name(arm), capsize=3, **_style(i))
    return _svg(figure, axes)


def _share(arm: Arm) -> float:
    return float(arm.evaluations[0].run.config.get("train", {}).get("data_fraction", 1.0))


def _band(
    axes: Any, i: int, arm: Arm, x: Sequence[float], values: Sequence[np.ndarray], alpha: float = 0.15,
    name: str | None = None,
) -> None:  # fmt: skip
    points = [_percent(v) for v in values]
    axes.plot(x, [p[0] for p in points], label=_name(arm, name), **_style(i))
    if all(p[1] is not None for p in points):
        low, high = ([p[1][k] for p in points if p[1] is not None] for k in (0, 1))
        axes.fill_between(x, low, high, color=COLOURS[i % len(COLOURS)], alpha=alpha, linewidth=0)


def _percent(values: np.ndarray) -> tuple[float, tuple[float, float] | None]:
    interval = stats.rate_interval(values)
    return 100 * float(np.nanmean(values)), interval and (100 * interval[0], 100 * interval[1])


def _name(arm: Arm, name: str | None = None) -> str:
    seeds = f"{arm.seeds} seeds" if arm.seeds > 1 else stats.ONE_SEED
    return f"{name or arm.label}, {arm.backbone} ({seeds})"


def _style(i: int) -> dict[str, Any]:
    """Colour and marker part ways in the second round, so that no two of 64 arms look alike."""
    round_, place = divmod(i, len(COLOURS))
    marker = MARKERS[(place + 3 * round_) % len(MARKERS)]
    return {
        "color": COLOURS[place],
        "marker": marker,
        "markersize": 4,
        "linestyle": "-" if not round_ else "--",
    }


def _axes(members: Sequence[Arm], label: str) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ExtraMissing("Figures need matplotlib: pip install 'seedbench[plots]'.") from None
    figure = Figure(figsize=(8.0, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(label)
    axes.set_ylabel("Success (%)")
    axes.set_title(title(members[0].setting.env))
    figure.supxlabel(describe(members[0].setting, members[0].success.shape[1]), fontsize=6)
    axes.grid(alpha=0.3)
    return figure, axes


def _svg(figure: Any, axes: Any) -> bytes:
    """The figure as bytes that depend on its content alone: fixed ids, no date, text as text."""
    import matplotlib

    low, high = axes.get_ylim()
    axes.set_ylim(max(-2, 10 * math.floor(low / 10)), min(102, 10 * math.ceil(high / 10)))
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "seedbench", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()
