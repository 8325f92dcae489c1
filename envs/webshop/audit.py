"""For the audit: a goal that wants something else than its instruction says, everything visible kept."""

from __future__ import annotations

import copy
from dataclasses import replace

from seedbench.envs.webshop.env import WebShop
from seedbench.envs.webshop.goals import Goal

from seedbench.types import Task


def plant(env: WebShop, task: Task, mark: str) -> tuple[WebShop, Task]:
    """``mark`` in every hidden text of the goal but the product's number, which the scorer looks up."""
    goal = env.goal(task)
    marked = replace(
        goal,
        attributes=(*goal.attributes, mark),
        options=(*goal.options, (mark, mark)),
        title=f"{goal.title} {mark}",
        query=f"{goal.query} {mark}",
        path=f"{goal.path} {mark}",
    )
    return _with(env, task, marked), task


def exchange(env: WebShop, task: Task, other: Task) -> tuple[WebShop, Task]:
    """The goal of ``other`` under the instruction of ``task``."""
    return _with(env, task, replace(env.goal(other), instruction=env.goal(task).instruction)), task


def _with(env: WebShop, task: Task, goal: Goal) -> WebShop:
    goals = list(env.world.goals)
    goals[task.hidden.payload] = goal
    twin = copy.copy(env)
    twin.world = replace(env.world, goals=goals)
    return twin
