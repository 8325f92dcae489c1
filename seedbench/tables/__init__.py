"""One Table object, rendered to every format."""

from seedbench.tables.model import Block, Cell, Column, Provenance, Row, Table, mark_best
from seedbench.tables.render import RENDERERS

__all__ = ["RENDERERS", "Block", "Cell", "Column", "Provenance", "Row", "Table", "mark_best", "render"]


def render(table: Table, form: str) -> str:
    """``form`` is one of :data:`RENDERERS`. Raises :class:`~seedbench.errors.ConfigError` for another."""
    from seedbench.errors import ConfigError

    if form not in RENDERERS:
        raise ConfigError(f"Unknown table format '{form}'. Known: {', '.join(RENDERERS)}.")
    return RENDERERS[form](table)
