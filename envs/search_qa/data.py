"""Real questions and corpora from a user's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedbench.errors import DataMissing

if TYPE_CHECKING:
    from seedbench.envs.search_qa.options import Options
    from seedbench.envs.search_qa.questions import Question

    from seedbench.search.base import Retriever


def load(options: Options) -> tuple[dict[str, list[Question]], Retriever, dict[str, str]]:
    raise DataMissing("real")
