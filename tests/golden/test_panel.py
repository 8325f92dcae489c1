"""Short panels: which tasks they hold, and that they are panels of their own."""

from __future__ import annotations

import pytest
import toys

from seedbench.errors import ConfigError
from seedbench.panel import Panel, find_panel, shortened

WHOLE = Panel.of("p", ["a1", "a2", "b1", "a3", "b2", "a1"])
GROUP = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}


@pytest.mark.parametrize(
    ("count", "ids"),
    [
        (1, ("a1",)),
        (2, ("a1", "b1")),
        (4, ("a1", "a2", "b1", "b2")),
        (9, ("a1", "a2", "b1", "a3", "b2")),
    ],
)
def test_groups_take_turns_and_the_order_stays(count: int, ids: tuple[str, ...]) -> None:
    short = shortened(WHOLE, GROUP, count)
    assert short.ids == ids and short.name == f"p.{count}"
    assert short.sha256 == Panel.of("elsewhere", ids).sha256


def test_a_panel_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="without a task"):
        shortened(WHOLE, GROUP, 0)


def test_a_name_with_a_number_is_a_short_panel_and_others_are_the_environments_own() -> None:
    env = toys.Boxes(toys.Options())
    assert find_panel(env, "test") == env.panel("test")
    short = find_panel(env, "test.2")
    assert len(short.ids) == 2 and set(short.ids) < set(env.panel("test").ids)
    assert short.sha256 != env.panel("test").sha256
