"""The leaderboard as one static HTML file: sortable columns, filters, no server and no outside resource."""

from __future__ import annotations

import html

from seedbench.tables import Table, render

_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: .5rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; }
td { text-align: right; font-variant-numeric: tabular-nums; }
thead th { cursor: pointer; }
td.reported { color: #666; font-style: italic; }
small { color: #555; }
"""

_SCRIPT = """
function value(row, i) {
  const cell = row.cells[i];
  if (!cell) return null;
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.tagName === 'TH' ? cell.textContent : null;
}
for (const table of document.querySelectorAll('table')) {
  const heads = table.tHead.rows[1].cells;
  for (let i = 0; i < heads.length; i++) heads[i].addEventListener('click', () => {
    const down = heads[i].dataset.order !== 'down';
    heads[i].dataset.order = down ? 'down' : 'up';
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a, i), y = value(b, i);
      if (x === null || y === null) return (x === null) - (y === null);
      const numbers = typeof x === 'number' && typeof y === 'number';
      const order = numbers ? x - y : String(x).localeCompare(String(y));
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  });
}
function filter() {
  const origin = document.getElementById('provenance').value;
  const setting = document.getElementById('setting').value;
  for (const block of document.querySelectorAll('.block')) {
    block.hidden = setting !== '' && block.dataset.title !== setting;
    for (const row of block.querySelectorAll('tbody tr'))
      row.hidden = origin !== '' && !row.querySelector('td.' + origin);
  }
}
for (const id of ['provenance', 'setting']) document.getElementById(id).addEventListener('change', filter);
"""


def page(table: Table) -> str:
    """A whole HTML document. Text of the table is escaped; the script holds no data."""
    settings = "".join(_option(b.title, b.title) for b in table.blocks)
    origins = "".join(_option(p, p) for p in ("measured", "reported", "imported"))
    return (
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        f"<title>{html.escape(table.title)}</title><style>{_STYLE}</style></head><body>\n"
        f'<p><label>Provenance <select id="provenance">{_option("", "all")}{origins}</select></label> '
        f'<label>Setting <select id="setting">{_option("", "all")}{settings}</select></label></p>\n'
        f"{render(table, 'html')}<script>{_SCRIPT}</script></body></html>\n"
    )  # fmt: skip


def _option(value: str, text: str) -> str:
    return f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
