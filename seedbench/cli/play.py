"""``seedbench play``: a person takes the policy's place, in the terminal or (where there is a site) a browser."""

from __future__ import annotations

from typing import Annotated

import typer


def play(
    env: Annotated[str, typer.Argument(help="environment")],
    task: Annotated[str, typer.Option(help="task id, or its number in the split")] = "0",
    split: Annotated[str, typer.Option(help="default: the evaluation split")] = "",
    settings: Annotated[list[str] | None, typer.Option("-o", "--set", help="e.g. -o env.options.variant=mini")] = None,
    web: Annotated[bool, typer.Option("--web", help="serve the environment as web pages (WebShop)")] = False,
    host: Annotated[str, typer.Option(help="address for --web; there is no authentication")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="port for --web")] = 3000,
) -> None:
    """Play one episode by hand. '?' lists the legal actions, a number chooses one, 'quit' leaves."""
    from seedbench.config import EnvSection, make_environment, merge, overrides, splits_of
    from seedbench.errors import ConfigError
    from seedbench.rollout import Job, derive_seed
    from seedbench.rollout import play as play_block

    own = merge({"env": {"name": env}}, overrides(settings or []))
    section = EnvSection(**own["env"])
    world = make_environment(section)
    if web:
        serve = getattr(world, "serve", None)
        if serve is None:
            raise ConfigError(f"Environment '{env}' has no web pages. Play it in the terminal: leave out --web.")
        serve(host, port)
        return
    tasks = world.tasks(split or splits_of(section)[1])
    found = [t for t in tasks if t.id == task] or (tasks[int(task) : int(task) + 1] if task.isdigit() else [])
    if not found:
        raise ConfigError(f"No task '{task}' among the {len(tasks)} of this split. Give an id or a number.")
    person = _Person()
    (episode,) = play_block(world, person, [Job(found[0], 0, derive_seed("play", found[0].id))])
    typer.echo(episode.last_observation.text)
    word = "solved" if episode.success else "not solved"
    typer.echo(f"{word} after {len(episode.turns)} steps ({episode.status}), score {episode.score or 0:.2f}")


class _Person:
    """Asks at the keyboard; anything typed is sent as the action."""

    name, privileged, constrained = "human", False, True

    def act(self, views):  # type: ignore[no-untyped-def]
        from seedbench.types import Generation

        (view,) = views
        if not view.history.past:
            typer.echo(f"Task: {view.history.instruction}\n")
        typer.echo(view.history.observation.text)
        while True:
            said = typer.prompt(f"[{view.history.step + 1}]", prompt_suffix="> ").strip()
            if said == "quit":
                raise SystemExit(0)  # not an error of the policy: leave at once
            if said == "?":
                for i, choice in enumerate(view.choices):
                    typer.echo(f"  {i:>3}  {choice}")
                continue
            if said.isdigit() and int(said) < len(view.choices):
                said = view.choices[int(said)]
            return [Generation(said)]

    def forget(self, slots) -> None:  # type: ignore[no-untyped-def]
        pass
