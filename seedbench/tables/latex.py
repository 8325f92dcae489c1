"""Table -> LaTeX: one ``table`` per block. Needs ``booktabs``; with ``graphicx`` what is too wide is shrunk."""

from __future__ import annotations

import re
from itertools import groupby

from seedbench.tables.model import Block, Row, Table, by_group, format_cell

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "—": "---", "±": r"$\pm$",
    "≥": r"$\ge$", "<": r"$<$", ">": r"$>$", "α": r"$\alpha$", "−": "--",
    "†": r"\textdagger{}", "Δ": r"$\Delta$", "×": r"$\times$", "[": "{[}",  # after \\ a bracket is an option
}  # fmt: skip


_HEAD = r"""% needs \usepackage{booktabs,graphicx}; without graphicx wide tables stay wide
\providecommand{\resizebox}[3]{#3}"""
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
#: Columns of numbers that fit beside the row labels on a page; wider blocks are cut between their groups.
WIDEST = 9


def latex(table: Table) -> str:
    """A ``tabular`` per block, or one per column group (below each other) where all would not fit."""
    out = [_HEAD, f"% {table.title}"]
    for block in table.blocks:
        out += [r"\begin{table}", r"\centering\footnotesize\setlength{\tabcolsep}{3pt}"]
        title = re.sub(r"^Table \d+: ", "", table.title)  # LaTeX numbers by itself
        out.append(rf"\caption{{{_tex(f'{title[:1].upper()}{title[1:]}. {block.title}')}}}")
        for part in [block] if len(block.columns) <= WIDEST else by_group(block):
            out += [_SHRUNK, *_tabular(part), r"}\par\medskip"]
        out += [rf"\par{{\scriptsize {_tex(note)}}}" for note in block.notes]
        out.append(r"\end{table}")
    out += [f"% {note}" for note in table.notes]
    return "\n".join(out) + "\n"


def _tabular(block: Block) -> list[str]:
    spec = "l" * len(block.labels) + "".join("l" if c.unit == "text" else "r" for c in block.columns)
    out = [rf"\begin{{tabular}}{{{spec}}}", r"\toprule"]
    if any(c.group for c in block.columns):
        out += _headings(block)
    out.append(" & ".join(_tex(h) for h in [*block.labels, *(c.title for c in block.columns)]) + r" \\")
    out.append(r"\midrule")
    out += [_line(block, row) for row in block.rows]
    return [*out, r"\bottomrule", r"\end{tabular}"]


def _headings(block: Block) -> list[str]:
    """The group names over their columns, each with its rule."""
    over, rules, place = [""] * len(block.labels), [], len(block.labels)
    for name, columns in groupby(block.columns, key=lambda c: c.group):
        count = len(list(columns))
        over.append(rf"\multicolumn{{{count}}}{{c}}{{{_tex(name)}}}")
        rules += [rf"\cmidrule(lr){{{place + 1}-{place + count}}}"] if name else []
        place += count
    return [" & ".join(over) + r" \\", "".join(rules)]


def _line(block: Block, row: Row) -> str:
    cells = [_tex(label) for label in row.labels]
    for column in block.columns:
        cell = row.cells.get(column.key)
        text = _tex(format_cell(cell, column))
        cells.append(rf"\textbf{{{text}}}" if cell is not None and cell.best else text)
    return " & ".join(cells) + r" \\"


def _tex(text: str) -> str:
    return "".join(_LATEX.get(ch, ch) for ch in text)
