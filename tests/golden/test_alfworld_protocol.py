"""Prompts, parsing, limits and dialects of the named protocols, written out by hand."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from seedbench.envs.alfworld import KIND
from seedbench.envs.alfworld.engine import DIALECTS, HELP, listing
from seedbench.envs.alfworld.protocol import in_dialect

from seedbench.types import Action, History, Observation, PastTurn

FIRST = """\
You are an agent that solves household tasks in a text version of the ALFRED world.

Your current observation is: You see a room.

Your task is to: put a cup in sink.
The actions you may take now are:
'go to desk 1'
'look'

Choose your next action.
First reason step by step about the situation, inside <think> </think> tags.
Then give exactly one of the actions above, inside <action> </action> tags."""

LATER = """\
You are an agent that solves household tasks in a text version of the ALFRED world.

Your task is to: put a cup in sink.
You have taken 3 action(s) so far. The last 2 observation(s) and the actions you took:
[Observation 2: 'sight 2', Action 2: 'act 2']
[Observation 3: 'sight 3', Action 3: 'act 3']
You are now at step 4.

Your current observation is: now
The actions you may take now are:
'look'

Choose your next action.
First reason step by step about the situation, inside <think> </think> tags.
Then give exactly one of the actions above, inside <action> </action> tags."""


def test_the_first_prompt_holds_observation_and_actions_without_help() -> None:
    env = KIND.make(KIND.options())
    now = Observation(
        "You see a room.\n\nYour task is to: put a cup in sink.", ("go to desk 1", "help", "look")
    )
    (message,) = env.render(History("put a cup in sink.", (), now))
    assert (message.role, message.content) == ("user", FIRST)


def test_later_prompts_hold_the_last_pairs() -> None:
    env = KIND.make(KIND.options(protocol="sdar"))
    past = tuple(PastTurn(Observation(f"sight {i}"), f"act {i}") for i in (1, 2, 3))
    (message,) = env.render(History("put a cup in sink.", past, Observation("now", ("help", "look"))))
    assert message.content == LATER


@pytest.mark.parametrize(("name", "steps", "history"), [("seed", 30, 5), ("sdar", 50, 2)])
def test_named_protocols(name: str, steps: int, history: int) -> None:
    spec = KIND.make(KIND.options(protocol=name)).spec
    assert (spec.max_steps, spec.history_length, spec.invalid_penalty) == (steps, history, 0.1)
    assert spec.protocol == name and spec.details["text"] == "2.1.2"


def test_every_setting_that_changes_a_result_changes_the_fingerprint() -> None:
    settings = ({}, {"protocol": "sdar"}, {"text": "2.1.1"}, {"size": "large"}, {"require_think": False})
    settings += ({"engine": "native", "variant": "official"},)
    prints = [KIND.make(KIND.options(**s)).spec.fingerprint for s in settings]
    assert len(set(prints)) == len(prints)
    assert KIND.make(KIND.options()).spec.fingerprint == prints[0]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValidationError, match="textt"):
        KIND.options(textt="2.1.1")
    with pytest.raises(ValidationError, match="protocol"):
        KIND.options(protocol="papers")


@pytest.mark.parametrize(
    ("completion", "action"),
    [
        ("<think>a</think><action>Go to Desk 1</action>", Action("go to desk 1")),
        ("<action>look</action>", Action("look", False, "no_think")),
        (
            "so I would just go to big desk 1 now",
            Action("would just go to big desk 1 now"[-30:], False, "no_tags"),
        ),
        ("", Action("", False, "empty")),
        (
            "<think>x</think><action>look</action><action>help</action>",
            Action("look", False, "too_many_actions"),
        ),
        ("<think>看</think><action>look</action>", Action("look", False, "cjk")),
    ],
)
def test_parsing(completion: str, action: Action) -> None:
    assert KIND.make(KIND.options()).parse(completion) == action


def test_think_block_is_a_setting() -> None:
    lenient = KIND.make(KIND.options(require_think=False))
    assert lenient.parse("<action>look</action>") == Action("look")
    assert lenient.spec.details["require_think"] == "false"


@pytest.mark.parametrize(
    "given",
    [
        "put tin 1 in/on drawer 1",
        "put tin 1 in drawer 1",
        "put tin 1 on drawer 1",
        "put tin 1 into drawer 1",
        "move tin 1 to drawer 1",
        " place tin 1 onto drawer 1 ",
    ],
)
def test_every_way_of_putting_down_fits_the_dialect(given: str) -> None:
    """BR-042, BR-043: one canonical command, the names untouched."""
    assert in_dialect(given, DIALECTS["2.1.1"]) == "put tin 1 in/on drawer 1"
    assert in_dialect(given, DIALECTS["2.1.2"]) == "move tin 1 to drawer 1"


@pytest.mark.parametrize(
    "given",
    ["put in", "move desk 1", "put the tin in the drawer", "go to desk 1", "put a 1 in b 2 in c 3"],
)
def test_other_commands_are_not_touched(given: str) -> None:
    assert in_dialect(given, DIALECTS["2.1.2"]) == given


def test_help_and_lists_read_as_in_textworld() -> None:
    assert HELP.splitlines()[7] == "  move (object) to (receptacle):  place an object in or on a receptacle"
    assert HELP.splitlines()[1] == "  look:                             look around your current location"
    assert [listing(list("abc"[:n])) for n in range(4)] == ["nothing", "a", "a, and b", "a, b, and c"]
