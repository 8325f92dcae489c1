"""Writes a game as a PDDL problem in ALFWorld's form, so that TextWorld can play a generated game."""

from __future__ import annotations

from seedbench.envs.alfworld.game import Description, Goal

_OBJECT = ("(objectType ?o {o}type)", "(receptacleType ?r {p}type)", "(inReceptacle ?o ?r)")
_STATE = {
    "clean": ("(cleanable ?o)", "(isClean ?o)"),
    "heat": ("(heatable ?o)", "(isHot ?o)"),
    "cool": ("(coolable ?o)", "(isCool ?o)"),
}
_TWO = (
    "(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 {o}type) "
    "(receptacleType ?r {p}type) (inReceptacle ?o1 ?r) "
    "(exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {o}type) "
    "(receptacleType ?r {p}type) (inReceptacle ?o2 ?r))))))"
)
_LOOK = (
    "(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot {p}type) "
    "(toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))"
    " (exists (?o - object ?a - agent) (and (objectType ?o {o}type) (holds ?a ?o)))"
)


def problem_text(description: Description) -> str:
    """The problem with domain ``alfred``; :func:`.game.parse_problem` reads it back to the same facts."""
    declared: dict[str, str] = {}
    kinds = {
        "atlocation": ("agent", "location"),
        "receptacleatlocation": ("receptacle", "location"),
        "receptacletype": ("receptacle", "rtype"),
        "objecttype": ("object", "otype"),
        "cancontain": ("rtype", "otype"),
    }
    for predicate, arguments in description.facts:
        declared |= dict(zip(arguments, kinds.get(predicate, ()), strict=False))
    goal = description.goal
    # The goal's and the domain's own types must exist even where no thing has them.
    declared |= {f"{t}type": "rtype" for t in ("sink", "sinkbasin", "microwave", "fridge")}
    declared |= {f"{t}type": "otype" for t in ("knife", "butterknife", goal.object_type)}
    declared[f"{goal.place_type}type"] = "otype" if goal.kind == "look" else "rtype"
    objects = "\n".join(f"        {name} - {kind}" for name, kind in declared.items())
    facts = "\n".join(f"        ({p} {' '.join(a)})" for p, a in description.facts)
    return (
        f"(define (problem plan_generated)\n(:domain alfred)\n(:objects\n{objects}\n)\n"
        f"(:init\n{facts}\n)\n(:goal (and {_goal_text(goal)}))\n)\n"
    )


def _goal_text(goal: Goal) -> str:
    if goal.kind == "look":
        form = _LOOK
    elif goal.kind == "two":
        form = _TWO
    else:
        conditions = " ".join((*_OBJECT, *_STATE.get(goal.kind, ())))
        form = f"(exists (?r - receptacle) (exists (?o - object) (and {conditions})))"
    return form.format(o=goal.object_type, p=goal.place_type)
