"""Options: each one decides something of the game."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.contract.options import is_meant, options_of, values_of
from palaestra.core.faces.agent_io import AgentIO, speaks_text
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.game import Game, Option, any_text
from palaestra.testing.harness import FAST, Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import snapshot_view
from palaestra.testing.subject import Subject

LANES, SEED = 4, 7
SOON, DECISIONS = 10, {"fast": 100, "full": 300}
"""Decisions within which most values make a difference, and within which another value must make one."""


@conformance(order=1303, levels=FAST)
def each_option_makes_a_difference(subject: Subject) -> None:
    """With another value of an option, spaces, states, observations, masks, rewards, ends or what is said differ.

    Other values are the option's own words, the next number, ``example``, and those of other ids of the factory. An
    option for files, models or code of the user's that has none of these is left out. Options of the id that mean
    nothing beside a value are left out there. An option may be about what the file of another one lacks (a map without
    shields): then another file may show it. The matches are played as plain Python, from the same seeds, by the game's
    scripts where it has some.
    """
    factory = factories.load(registry.row(subject.id).factory)
    options = options_of(factory)
    table = {option.name: option for option in options}
    if not options:
        raise Skipped("the factory has no table of options")
    first = next(row.id for row in registry.ROWS.values() if factories.load(row.factory) is factory)
    if first != subject.id:
        raise Skipped(f"{first} is of the same factory")
    given = {**registry.row(subject.id).kwargs, **subject.rules_keywords}
    base = {name: given[name] for name in inspect.signature(factory).parameters if name in given}
    for option in options:
        values = list(_others(option, base, factory))
        if not values and option.texts is not None and option.texts is not any_text:
            continue
        require(bool(values), f"option {option.name!r}: give an example= that makes a difference")
        refusals = []
        for value in values:
            context = _meaningful(option, base, table, factory)
            chosen = {**context, option.name: value}
            context = {n: v for n, v in context.items() if _means_something(table[n], chosen)}
            try:
                pair = factory(**context), factory(**{**context, option.name: value})
            except ValueError as error:
                refusals.append(str(error))
                continue
            except ImportError:
                break  # an optional package is missing
            if _differ(*pair, SOON):
                break
            pairs = [pair]
            for beside in _with_other_files(option, context, options, factory):
                with contextlib.suppress(ValueError, ImportError):  # a combination that is refused shows nothing
                    pairs.append((factory(**beside), factory(**{**beside, option.name: value})))
            if any(_differ(*pair, decisions) for decisions in (SOON, DECISIONS[subject.level]) for pair in pairs):
                break
            require(False, f"{option.name}={value!r} makes no difference beside {context}: leave it out or refuse it")
        else:
            require(False, f"option {option.name!r}: no other value is accepted: {'; '.join(refusals)}")


def _value(option: Option, context: Mapping[str, Any], factory: Any) -> Any:
    """What a factory gets for an option."""
    return values_of(options_of(factory), context)[option.name]


def _others(option: Option, base: Mapping[str, Any], factory: Any) -> Iterator[Any]:
    """Values other than the one that is used."""
    used = _value(option, base, factory)
    rows = [row for row in registry.ROWS.values() if factories.load(row.factory) is factory]
    tried = [option.example, option.default, *option.words, *(row.kwargs.get(option.name) for row in rows)]
    if option.is_flag:
        tried.append(not used)
    if option.low is not None and option.high is not None:
        number = option.low if used is None else used[1] if option.is_span else used
        step = 1 if isinstance(option.low, int) else (option.high - option.low) / 2
        tried += [number + step, number - step, option.high, option.low]
    for value in tried:
        if value is not None and _can_be(option, value):
            with contextlib.suppress(ValueError):  # beside these others it cannot be
                if np.array_equal(np.asarray(_value(option, {**base, option.name: value}, factory)), np.asarray(used)):
                    continue
            yield value


def _can_be(option: Option, value: Any) -> bool:
    inside = option.low is None or isinstance(value, tuple | list) or option.low <= value <= option.high  # type: ignore[operator]
    return bool(inside)


def _meaningful(option: Option, base: Mapping[str, Any], table: Mapping[str, Option], factory: Any) -> dict[str, Any]:
    """The base, with values of other options beside which the option means something."""
    context = dict(base)
    for name, meant in option.only.items():
        if not is_meant(_value(table[name], context, factory), meant):
            fitting = [value for value in _others(table[name], context, factory) if is_meant(value, meant)]
            wanted = [meant] if not callable(meant) and not isinstance(meant, tuple) else []
            context |= {**_meaningful(table[name], context, table, factory), name: [*fitting, *wanted][0]}
    return context


def _means_something(option: Option, chosen: Mapping[str, Any]) -> bool:
    """Whether an option means something beside the values that are given."""
    return all(is_meant(chosen[name], meant) for name, meant in option.only.items() if name in chosen)


def _with_other_files(
    option: Option, context: Mapping[str, Any], options: Iterable[Option], factory: Any
) -> Iterator[dict[str, Any]]:
    """The same with another value of each other option that may name a file."""
    for other in options:
        if other is not option and other.texts not in (None, any_text):
            for value in islice(_others(other, context, factory), 1):
                yield {**context, other.name: value}


def _differ(one: Game, other: Game, decisions: int) -> bool:
    """Whether two games have other spaces or rules, or are played otherwise."""
    if _form(one) != _form(other):
        return True
    with contextlib.closing(_simulation(one)) as a, contextlib.closing(_simulation(other)) as b:
        plays = [_shown(sim) for sim in (a, b)]
        for _ in range(decisions):
            if next(plays[0]) != next(plays[1]):
                return True
    return False


def _form(game: Game) -> str:
    """What is known of a game before it is played."""
    parts = (game.roles, game.state, game.horizon, game.parameters, game.info, game.end_reasons, game.periods)
    return repr((*parts, game.zero_sum, game.determinism, game.default_codec, game.scripts, game.representations))


def _simulation(game: Game) -> Any:
    kind: Any = KernelSimulation if game.physics is None else PhysicsSimulation
    return kind(game, LANES, compiled=False)


def _shown(sim: Any) -> Iterator[list[Any]]:
    """What a simulation shows, decision by decision."""
    player = Player(sim)
    talkers = [AgentIO(sim, (slot,)) for slot in range(len(sim.game.agents))] if speaks_text(sim.game) else []
    if sim.game.scripts:
        for team in sim.game.teams:
            sim.set_opponent(team, "mix")
    sim.reset(seed=SEED)
    while True:
        shown = [array.tobytes() for array in snapshot_view(sim).values()]
        yield [*shown, *(str(talker.observe_lane()) for talker in talkers)]
        player.play(sim)
        sim.step()
