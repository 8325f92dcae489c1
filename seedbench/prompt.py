"""Placing a privileged skill in a prompt: pure functions of messages, for acting, teaching and the audit.

At deployment no skill exists and the environment's messages are sent as they are. The two places are those
of the published programs:

``prefix``
    SDAR, Skill-SD, RLSD, Skill-GRPO (methods page 1.7): the block comes before everything else. The released
    teacher puts it before the chat template's first token, the released Skill-GRPO rollout at the head of the
    user message; here both use the head of the user message, so that acting and teaching agree.
``after-task``
    SEED (methods page 2.6.3): a titled block after the line that states the task, or, where no line does,
    before the last paragraph, which holds the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from seedbench.errors import ConfigError
from seedbench.types import Message

SkillPosition = Literal["prefix", "after-task"]
PREFIX_TITLE = "[Privileged Skill Information]"
EPISODE_TITLE = "[Episode-Level Skill]"


def with_skill(
    messages: Sequence[Message], skill: str, position: SkillPosition, task: str
) -> tuple[Message, ...]:
    """``messages`` with ``skill`` in the first user message; ``task`` is the instruction to look for.

    Raises :class:`ConfigError` for an empty skill or an unknown position: a missing skill is never written
    into a prompt as an empty block or the word "None" (BR-089).
    """
    if not skill.strip():
        raise ConfigError("An empty skill cannot be placed in a prompt; leave the skill out instead.")
    if position not in get_args(SkillPosition):
        raise ConfigError(
            f"Unknown skill position '{position}'. Known: {', '.join(get_args(SkillPosition))}."
        )
    where = next((i for i, m in enumerate(messages) if m.role == "user"), None)
    if where is None:
        raise ConfigError("A skill needs a user message to stand in; this prompt has none.")
    place = _prefixed if position == "prefix" else _after_task
    content = place(messages[where].content, skill.strip(), task)
    return (*messages[:where], Message("user", content), *messages[where + 1 :])


def _prefixed(content: str, skill: str, task: str) -> str:
    return f"{PREFIX_TITLE}\n{skill}\n\n{content}"


def _after_task(content: str, skill: str, task: str) -> str:
    block = f"\n{EPISODE_TITLE}\n{skill}\n"
    found = content.find(task) if task.strip() else -1
    if found >= 0:
        end = content.find("\n", found + len(task))
        end = len(content) if end < 0 else end
        return f"{content[:end]}\n{block}{content[end:]}"
    head, gap, request = content.rpartition("\n\n")
    return f"{head}{gap}{block[1:]}\n{request}" if gap else f"{block[1:]}\n{content}"
