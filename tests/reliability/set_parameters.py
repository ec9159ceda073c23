"""Sets each parameter of games by the setters of all faces and compares 200 decisions with those of ``set_parameters``.

    PYTHONPATH=tests python tests/reliability/set_parameters.py             # one game of each of five families
    PYTHONPATH=tests python tests/reliability/set_parameters.py ID [ID ...]

Env takes `set_wrapper_attr` through Gymnasium's wrappers, VectorEnv, SyncVectorEnv, AsyncVectorEnv and the VecEnv of
Stable-Baselines3 `set_attr`, and Stable-Baselines3's own DummyVecEnv ``env_method("set_wrapper_attr")``. Each plays the
same decisions as an environment whose simulation was given the value by `set_parameters`: rewards, observations and
winners are equal to the bit, and another match than with the default. The exit status is 1 where they are not.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from palaestra import make_batch, registry
from palaestra.game import Parameter

IDS: dict[str, dict[str, Any]] = {
    "palaestra/CartPole-v0": {},
    "palaestra/TeamTag-v0": {"opponent": "random"},  # who flees well is never touched
    "palaestra/GraphPursuit-v0": {},
    "palaestra/MaHalfCheetah-v0": {},
    "palaestra/LLMEnsemble-v0": {},
}
"""Five families, and keywords with which all parameters act in the decisions that are played."""
LANES, DECISIONS, SEED = 2, 200, 1
Setter = Callable[[str, Any], Any]


def other_values(parameter: Parameter) -> list[float]:
    """Values other than the default, some of which change the match."""
    if parameter.values:
        return [value for value in parameter.values if value != parameter.default]
    low, high, default = parameter.low, parameter.high, parameter.default
    wanted = [1.7 * default, 11.0, 0.5, default / 2, default - 1, default + 1, low, high]
    fits = [value for value in wanted if low <= value <= high and np.isfinite(value) and value != default]
    return [value for value in fits if not parameter.whole or value == round(value)]


class Actions:
    """The same actions for all faces of an id: of an Env, or of N lanes."""

    def __init__(self, id: str) -> None:
        env: Any = gymnasium.make_vec(id, LANES, **IDS.get(id, {}))
        env.action_space.seed(SEED)
        self.lanes = [env.action_space.sample() for _ in range(DECISIONS)]
        env.close()


def digest(values: list[Any]) -> str:
    """Of numbers and arrays by name."""
    text = hashlib.sha256()
    for value in values:
        for part in value.values() if isinstance(value, dict) else [value]:
            text.update(np.ascontiguousarray(part).tobytes())
    return text.hexdigest()


def played_alone(env: Any, actions: Actions) -> str:
    """Rewards, observations and winners of an Env."""
    seen, _ = env.reset(seed=SEED)
    found = [seen]
    for action in actions.lanes:
        seen, reward, terminated, truncated, info = env.step(action[0])
        found += [seen, np.float64(reward), terminated, info["winner"]]
        if terminated or truncated:
            seen, _ = env.reset()
            found.append(seen)
    return digest(found)


def played_in_lanes(envs: Any, actions: Actions) -> str:
    """Those of a VectorEnv of Gymnasium."""
    seen, _ = envs.reset(seed=SEED)
    found = [seen]
    for action in actions.lanes:
        seen, rewards, terminated, truncated, infos = envs.step(action)
        found += [seen, np.asarray(rewards, np.float64), terminated, truncated, infos["winner"]]
    return digest(found)


def played_by_sb3(vec: Any, actions: Actions) -> str:
    """Those of a VecEnv of Stable-Baselines3."""
    vec.seed(SEED)
    found = [vec.reset()]
    for action in actions.lanes:
        seen, rewards, dones, infos = vec.step(action)
        found += [seen, np.asarray(rewards, np.float64), dones, [info.get("winner", -1) for info in infos]]
    return digest(found)


def faces(id: str) -> dict[str, tuple[Any, Setter, Callable[[Any, Actions], str], Callable[..., Any]]]:
    """By name: the face, its setter, how it plays, and how another is made whose simulation is given a value."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    from palaestra.adapters.sb3 import as_vec_env

    def given(make: Callable[[], Any], sim_of: Callable[[Any], Any]) -> Callable[..., Any]:
        def make_with(**values: Any) -> Any:
            face = make()
            for sim in sim_of(face):
                sim.set_parameters(**values)
            return face

        return make_with

    words = IDS.get(id, {})
    one: Callable[[], Any] = lambda: gymnasium.make(id, **words)  # noqa: E731
    many: Callable[[], Any] = lambda: gymnasium.make_vec(id, LANES, **IDS.get(id, {}))  # noqa: E731
    dummy: Callable[[], Any] = lambda: DummyVecEnv([one] * LANES)  # noqa: E731
    env, native, vec = one(), many(), as_vec_env(id, LANES, **words)
    sync: Any = gymnasium.make_vec(id, LANES, vectorization_mode="sync", **words)
    apart: Any = gymnasium.make_vec(id, LANES, vectorization_mode="async", **words)
    own, alone = dummy(), given(one, lambda env: [env.unwrapped.sim])
    lanes, rows = (
        given(many, lambda envs: [envs.sim]),
        given(lambda: as_vec_env(id, LANES, **words), lambda vec: [vec.sim]),
    )
    dummies = given(dummy, lambda vec: [env.unwrapped.sim for env in vec.envs])
    return {
        "Env": (env, env.set_wrapper_attr, played_alone, alone),
        "VectorEnv": (native, native.set_attr, played_in_lanes, lanes),
        "SyncVectorEnv": (sync, sync.set_attr, played_in_lanes, lanes),
        "AsyncVectorEnv": (apart, apart.set_attr, played_in_lanes, lanes),
        "SB3 adapter": (vec, vec.set_attr, played_by_sb3, rows),
        "SB3 DummyVecEnv": (own, lambda *v: own.env_method("set_wrapper_attr", *v), played_by_sb3, dummies),
    }


def chosen(id: str, actions: Actions) -> dict[str, float]:
    """For each parameter the first value by which another match is played, or that of its list if none is."""

    def played(**values: float) -> str:
        envs: Any = gymnasium.make_vec(id, LANES, **IDS.get(id, {}))
        envs.sim.set_parameters(**values)
        return played_in_lanes(envs, actions)

    default, found = played(), {}
    for parameter in registry.make_game(id)[0].parameters:
        values = other_values(parameter)
        acting = (value for value in values if played(**{parameter.name: value}) != default)
        found[parameter.name] = next(acting, values[0])
    return found


def compare(id: str) -> list[str]:
    """What was wrong."""
    actions, wrong = Actions(id), []
    values, known = chosen(id, actions), make_batch(id).parameters
    for name, (face, put, play, make_with) in faces(id).items():
        default, equal, differ = play(face, actions), 0, 0
        for parameter, value in values.items():
            put(parameter, value)
            found = play(face, actions)
            put(parameter, float(known[parameter][0]))
            other = make_with(**{parameter: value})
            expected = play(other, actions)
            other.close()
            equal, differ = equal + (found == expected), differ + (found != default)
            if found != expected or found == default:
                how = "the match is the same as before" if found == default else "another match than set_parameters"
                wrong.append(f"{id}, {name}: {parameter}={value:g}: {how}")
        if play(face, actions) != default:
            wrong.append(f"{id}, {name}: not as before when all parameters are set back")
        face.close()
        print(f"{id:28} {name:16} {len(values):3} parameters: {equal:3} as set_parameters, {differ:3} act", flush=True)
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", default=IDS, metavar="ID", help="registered ids (default: five)")
    warnings.simplefilter("ignore")
    wrong = [problem for id in parser.parse_args(argv).ids for problem in compare(id)]
    print("\n".join(wrong) or "all parameters act, everywhere as set_parameters")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
