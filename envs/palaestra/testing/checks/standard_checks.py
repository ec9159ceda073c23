"""The checks of Gymnasium and PettingZoo, with the reason for every exception."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pettingzoo
from gymnasium import spaces

from palaestra import registry
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.game import Choice
from palaestra.testing.harness import PRESET, CheckError, Skipped, conformance, require
from palaestra.testing.subject import Subject, without_display

UNITS = (
    "For Box action spaces, we recommend using a symmetric and normalized space",
    "actions have units; the bounds are those of the quantity",
)
UNBOUNDED = (
    "(minimum|maximum) (observation space )?value is -?infinity",
    "velocities and the like have no bounds in peers' spaces either; the kit holds them to the field's checked range",
)
IMPORTS = (
    "The old environment creation API has been deprecated",
    "`import pettingzoo.test` imports one of PettingZoo's own games in the way that PettingZoo 1.27 deprecates",
)
DICTS = (
    "Observation is not a NumPy array|Observation space for each agent probably should be",
    "masks and named fields come in dicts; PettingZoo allows them to games on a list of names inside the test",
)
ACTIONS = ("Action space for each agent probably should be", "composite actions are MultiDiscrete or Dict")
ROLES = (
    "Observations are different shapes|Agents have different observation space sizes|"
    "class of observation spaces is different|class of action spaces is different|Agents have different action space|"
    "Observations between agents are different classes|Observations have different number of dimensions",
    "agents of different roles see and do different things; PettingZoo allows that to games on a list of names",
)
ZEROS = (
    "(Observation|State) numpy array is all zeros",
    "zero is a value like any other, and all that a dead agent or an empty board may show",
)
SINGLES = ("(Observation|State|Action mask) is a single number", "a small game may show one number")
LATE = (
    "No agents present but not all possible_agents are terminated or truncated",
    "slots of agents that did not arrive before the end",
)


MASKS = ("Action mask is not a NumPy array", "MultiDiscrete and Dict are sampled with tuples and dicts of arrays")
SAMPLES_MASKS = tuple(map(int, pettingzoo.__version__.split(".")[:2])) >= (1, 27)
"""Whether PettingZoo's parallel_api_test gives every mask to ``space.sample``."""


class SeededActions:
    """A ParallelEnv for tests that seed neither matches nor action spaces: the same in every run."""

    def __init__(self, subject: Subject) -> None:
        """Remembers the subject; each call makes another env."""
        self._subject = subject

    def __call__(self, **keywords: Any) -> Any:
        """Makes it."""
        face = self._subject.parallel(**{**zoo_options(self._subject), **keywords})
        face.sim.seed(self.seed)
        for number, agent in enumerate(face.possible_agents):
            face.action_space(agent).seed(self.seed + number)
        return face

    seed = 0


def zoo_options(subject: Subject) -> dict[str, Any]:
    """Keywords under which PettingZoo's tests can sample actions.

    They hand a mask to ``space.sample`` as it is, but know no lists of candidates: beside these, masks are left out
    where there are several choices, and illegal samples are the no-ops that they ought to be. Before version 1.27
    parallel_api_test draws one number from a mask that it observes: masks of several choices are in the infos there.
    """
    if subject.game.legal is None and subject.keywords.get("mask") != "obs":
        return {}
    if "zoo options" not in subject.memory:
        face = subject.parallel()
        one_choice = all(isinstance(face.action_space(a), spaces.Discrete) for a in face.possible_agents)
        listed = any(isinstance(f, Choice) and f.candidates is not None for r in subject.game.roles for f in r.action)
        where = {"mask": None} if listed else {} if SAMPLES_MASKS else {"mask": "info"}
        subject.memory["zoo options"] = {} if one_choice else where
    return subject.memory["zoo options"]


def aec(parallel: Any) -> Any:
    """The AEC face."""
    return GameAECEnv(parallel)


def _cycles(subject: Subject, fast: int, full: int) -> int:
    most = full if subject.level == "full" else fast
    return min(most, 60) if subject.is_engine_game and subject.level != "full" else most


@conformance(order=101, expected_warnings=(UNITS, UNBOUNDED))
def gymnasium_check_env(subject: Subject) -> None:
    """Gymnasium's own check_env on the bare Env, in every render mode that can be drawn here."""
    from gymnasium.utils.env_checker import check_env

    undrawn = subject.why_not_drawn(human=True)
    with without_display():
        check_env(subject.env(), skip_render_check=bool(undrawn))
    subject.note(f"not rendered: {undrawn}" if undrawn else "all render modes")


@conformance(order=102, expected_warnings=(IMPORTS, LATE))
def pettingzoo_parallel_api_test(subject: Subject) -> None:
    """PettingZoo's parallel_api_test."""
    from pettingzoo.test import parallel_api_test

    make = SeededActions(subject)
    parallel_api_test(make(), num_cycles=_cycles(subject, 150, 1000))


@conformance(order=103, expected_warnings=(IMPORTS, DICTS, ACTIONS, ROLES, ZEROS, SINGLES, UNBOUNDED, MASKS))
def pettingzoo_api_test(subject: Subject) -> None:
    """PettingZoo's api_test on the AEC face."""
    from pettingzoo.test import api_test

    make = SeededActions(subject)
    api_test(aec(make()), num_cycles=_cycles(subject, 40, 1000))


@conformance(order=104, expected_warnings=(IMPORTS,))
def pettingzoo_seed_tests(subject: Subject) -> None:
    """PettingZoo's seed_test and parallel_seed_test (which looks at one step; `same_seed_same_matches` at 500)."""
    from pettingzoo.test import parallel_seed_test, seed_test

    make = SeededActions(subject)
    seed_test(lambda: aec(make()), num_cycles=_cycles(subject, 30, 500))
    parallel_seed_test(make, num_cycles=_cycles(subject, 30, 500))


@conformance(order=105, expected_warnings=(IMPORTS, ZEROS, SINGLES))
def pettingzoo_state_test(subject: Subject) -> None:
    """PettingZoo's state_test: `state` lies in `state_space`."""
    from pettingzoo.test import state_test

    make = SeededActions(subject)
    state_test(aec(make()), make(), num_cycles=_cycles(subject, 20, 200))


@conformance(order=106, expected_warnings=(IMPORTS,))
def pettingzoo_max_cycles_test(subject: Subject) -> None:
    """PettingZoo's max_cycles_test: ``max_cycles=4`` is four cycles.

    It expects all agents to act in all four cycles. So it runs with the first seed under which no agent dies, arrives
    or is not asked, and no team wins.
    """
    from pettingzoo.test import max_cycles_test

    make = SeededActions(subject)
    for seed in range(20):
        make.seed = seed
        if _all_play(make(max_cycles=4), 4):
            max_cycles_test(SimpleNamespace(parallel_env=make, env=lambda **k: aec(make(**k))))
            subject.note(f"seed {seed}")
            return
        subject.close()
    raise Skipped("no match of 20 asked all agents for four decisions; horizon_is_exact looks at those")


def _all_play(face: Any, cycles: int) -> bool:
    face.reset()
    for number in range(cycles):
        if set(face.agents) != set(face.possible_agents) or not face.sim.acting[0].all():
            return False
        face.step({a: face.action_space(a).sample() for a in face.agents})
        if not face.agents and number < cycles - 1:
            return False
    return True


@conformance(order=107, expected_warnings=(IMPORTS,))
def pettingzoo_render_test(subject: Subject) -> None:
    """PettingZoo's render_test, on no screen."""
    from pettingzoo.test import render_test

    if reason := subject.why_not_drawn(human=True):
        raise Skipped(reason)
    make = SeededActions(subject)
    with without_display():
        render_test(lambda **k: aec(make(**k)))
        subject.close()


@conformance(order=108, levels=PRESET)
def registered_everywhere(subject: Subject) -> None:
    """The id is known to Gymnasium (its spec survives JSON), to PettingZoo and, as a module, to `palaestra.zoo`."""
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

    spec = gymnasium.spec(subject.id)
    again = EnvSpec.from_json(spec.to_json())
    require(again == spec, f"gymnasium's spec of {subject.id} does not survive JSON")
    if hasattr(pettingzoo, "make"):
        made: Any = pettingzoo.make("parallel", subject.id, **subject.parallel_keywords)
        agents = subject.parallel().possible_agents
        require(made.possible_agents == agents, f"pettingzoo.make has the agents {made.possible_agents}, not {agents}")
        made.close()
    from palaestra import zoo

    module = getattr(zoo, registry.zoo_name(subject.id))
    face = module.parallel_env(**subject.parallel_keywords)
    name = face.metadata["name"]
    require(
        name == registry.zoo_name(subject.id), f"metadata['name'] is {name!r}, not {registry.zoo_name(subject.id)!r}"
    )
    face.close()


@conformance(order=109, levels=PRESET)
def spaces_contain_results(subject: Subject) -> None:
    """What the faces return lies in the spaces they declare, with the types that Gymnasium and PettingZoo ask for."""
    from gymnasium.vector.utils import batch_space

    from palaestra.testing.drivers import EnvDriver, ParallelDriver, VectorDriver, drivers

    vec: Any = subject.vec(4)
    for name in ("observation_space", "action_space"):
        single, batched = getattr(vec, f"single_{name}"), getattr(vec, name)
        require(batched == batch_space(single, 4), f"VectorEnv: {name} is {batched}, not a batch of {single}")
    for driver in drivers(subject, 5, batch=False):
        for number in subject.rounds(20, 60, 600):
            result = driver.start() if number == 0 else driver.play()
            place = f"{driver.name}, call {number}"
            if isinstance(driver, ParallelDriver):
                for agent, observation in result[0].items():
                    contained(driver.face.observation_space(agent), observation, f"{place}, {agent}")
            elif isinstance(driver, EnvDriver | VectorDriver):
                contained(driver.face.observation_space, result[0], place)
            if len(result) == 5:
                _types(driver, result, place)


def contained(space: spaces.Space, value: Any, place: str) -> None:
    """Demands that an observation is a member of its space, of its very dtype."""
    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or set(value) != set(space.spaces):  # no `require`: writing spaces takes long
            raise CheckError(f"{place}: the observation is not a dict of {space}")
        for name, part in space.spaces.items():
            contained(part, value[name], f"{place}: {name}")
    elif isinstance(space, spaces.Box):
        same = isinstance(value, np.ndarray) and value.shape == space.shape and value.dtype == space.dtype
        found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        require(same, f"{place}: the observation is {found}, the space {space.dtype} {space.shape}")
        for index in np.argwhere(~((value >= space.low) & (value <= space.high))):
            where = tuple(int(i) for i in index)
            bounds = f"[{space.low[where]:g}, {space.high[where]:g}]"
            require(False, f"{place}: number {list(where)} is {value[where]}, not in {bounds}")
    elif value not in space:
        raise CheckError(f"{place}: {value!r} is not in {space}")


def _types(driver: Any, result: Any, place: str) -> None:
    _, rewards, terminations, truncations, infos = result
    if driver.name == "VectorEnv":
        n = driver.face.num_envs
        for name, array, kind in (
            ("rewards", rewards, "f"),
            ("terminated", terminations, "b"),
            ("truncated", truncations, "b"),
        ):
            fits = isinstance(array, np.ndarray) and array.shape == (n,) and array.dtype.kind == kind
            if not fits:
                raise CheckError(f"{place}: {name} is {array!r}, not an array ({n},)")
        for name in infos:
            require(name.startswith("_") or f"_{name}" in infos, f"{place}: info {name!r} has no mask '_{name}'")
        return
    each = (
        [(rewards, terminations, truncations)]
        if driver.name == "Env"
        else [(rewards[a], terminations[a], truncations[a]) for a in rewards]
    )
    for reward, terminated, truncated in each:
        kinds = type(reward), type(terminated), type(truncated)
        require(
            kinds == (float, bool, bool),
            f"{place}: reward and flags are {[k.__name__ for k in kinds]}, not float, bool, bool",
        )
