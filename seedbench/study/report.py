"""The report of a study: tables, figures and costs from the records of its finished runs."""

from __future__ import annotations

from pathlib import Path

from seedbench.errors import ConfigError, ExtraMissing
from seedbench.jsonl import storage, write_bytes
from seedbench.reports.builders import BUILDERS
from seedbench.reports.compare import paired_table
from seedbench.reports.costs import cost_table
from seedbench.reports.spending import Curves
from seedbench.study.folder import StudyFolder
from seedbench.tables import Table, render

#: Format -> suffix of its files.
FORMATS = {"markdown": "md", "html": "html", "csv": "csv", "latex": "tex"}


def report(folder: StudyFolder) -> tuple[Table, list[Path], str]:
    """Write ``report/``; returns the main table, the files, and a sentence on figures when there are none.

    Only finished runs count: a run on its way would be scored with its missing episodes as failures. All
    but the costs depends on the records alone, byte for byte. Raises :class:`ConfigError` when no run is
    finished.
    """
    curves = Curves()
    made = tables(folder, curves)
    out = folder.path / "report"
    with storage(out, "create"):
        out.mkdir(parents=True, exist_ok=True)
    files = [f for table in made for f in _write(table, out)]
    drawn, note = _figures([folder.run_path(run) for run in folder.finished()], out, curves)
    write_bytes(out / "README.md", _summary(folder, made[0], drawn, note).encode())
    return made[0], [out / "README.md", *files, *drawn], note


def tables(folder: StudyFolder, curves: Curves) -> tuple[Table, Table, Table]:
    """The main table, the paired tests and the costs of the finished runs, whose ``curves`` they read once."""
    finished = folder.finished()
    if not finished:
        raise ConfigError(f"No run of '{folder.path}' is finished. 'seedbench study run' makes them.")
    paths = [folder.run_path(run) for run in finished]
    # an unfinished study may lack its reference so far
    reference = folder.study.reference if any(r.arm == folder.study.reference for r in finished) else ""
    tests = paired_table(paths, reference, curves)
    return BUILDERS[folder.study.table](paths), tests, cost_table(paths, curves)


def _write(table: Table, out: Path) -> list[Path]:
    written = []
    for form, suffix in FORMATS.items():
        path = out / f"{table.name}.{suffix}"
        write_bytes(path, render(table, form).encode())
        written.append(path)
    return written


def _figures(paths: list[Path], out: Path, curves: Curves) -> tuple[list[Path], str]:
    from seedbench.figures import draw_all

    try:
        return draw_all(paths, out / "figures", curves), ""
    except ExtraMissing as error:
        return [], f"No figures: {error}"


def _summary(folder: StudyFolder, main: Table, drawn: list[Path], note: str) -> str:
    study, standings = folder.study, folder.standings()
    done = sum(s.state == "finished" for s in standings)
    missing = [f"- {s.run.name}: {s.state}" for s in standings if s.state != "finished"]
    seeds = ", ".join(map(str, study.seeds))
    warning = ["Smoke test: its numbers mean nothing.", ""] if study.smoke else []
    lines = [
        f"# {study.title or study.name}",
        "",
        *warning,
        f"Scale {study.scale}, seeds {seeds}; {done} of {len(standings)} planned runs are finished and counted.",
        "Paired tests: tests.md; costs: costs.md; the same as HTML, CSV and LaTeX beside them.",
        "",
        *(["Not counted:", "", *missing, ""] if missing else []),
        render(main, "markdown").rstrip("\n"),
        "",
        *[f"![{p.stem}](figures/{p.name})" for p in drawn],
        *([note] if note else []),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"
