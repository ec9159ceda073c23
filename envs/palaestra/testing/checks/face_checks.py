"""Options of faces: each shows the same matches, in the form that the option asks for."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.compile.batch_loop import HORIZON
from palaestra.core.faces.joint_choices import MOST
from palaestra.game import Choice
from palaestra.testing.call_sequences import opponent_specs
from palaestra.testing.drivers import EnvDriver, ParallelDriver, VectorDriver, pay_ends
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import STYLES, lane_of
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject

PARTS = ("observation", "reward", "termination", "truncation", "info")


def _match_options(subject: Subject) -> dict[str, Any]:
    """Keywords of Gymnasium's faces for short matches of a drawn team against a drawn opponent."""
    draw, teams = subject.draw, list(subject.game.teams)
    options: dict[str, Any] = {"horizon": draw.integer("horizon", 2, 16)}
    if len(teams) > 1 and "control" not in subject.keywords:
        options["control"] = draw.choice("control", teams)
        options["opponent"] = draw.choice("opponent", opponent_specs(subject.game))
    return options


def _decisions(subject: Subject) -> int:
    return 200 if subject.level == "full" else 8 if subject.is_engine_game else 20


@conformance(order=210)
def uncopied_results_are_equal(subject: Subject) -> None:
    """A VectorEnv with ``copy=False`` returns what it returns with copies, in the simulation's own arrays."""
    draw = subject.draw
    for mode in ("next_step", "same_step", "off"):
        options = {**_match_options(subject), "autoreset_mode": mode}
        lanes, seed = draw.integer("lanes", 1, 4), draw.seed()
        copied, live = (VectorDriver(subject.vec(lanes, copy=c, **options), seed) for c in (True, False))
        for number in range(_decisions(subject)):
            one, other = (d.start() if number == 0 else d.play() for d in (copied, live))
            found = unlike(one, other)
            require(not found, f"{mode}, call {number}: {found} (with copies and without)")
            if len(other) == 5:
                sim = live.face.sim
                for name, array, own in (
                    ("terminated", other[2], sim.terminated),
                    ("truncated", other[3], sim.truncated),
                ):
                    require(np.shares_memory(array, own), f"{mode}: {name} is a copy, in spite of copy=False")
                paid = np.shares_memory(other[1], sim.rewards) or len(sim.game.teams[live.face.control]) > 1
                require(paid, f"{mode}: rewards are a copy, in spite of copy=False")
            if isinstance(other[0], np.ndarray) and live.face.agent_io.has_plain_rows and lanes > 1:
                own = np.shares_memory(other[0], live.face.sim.buffers.observations)
                single = live.face.single_observation_space.shape
                require(own or len(single) != 1, f"{mode}: observations are a copy, in spite of copy=False")


@conformance(order=211)
def aec_matches_parallel(subject: Subject) -> None:
    """The AEC face asks the agents of a ParallelEnv in their order; each sees and earns what it does there."""
    draw = subject.draw
    for style in (0, draw.integer("style", 1, len(STYLES) - 1)):
        seed = draw.seed()
        _in_turn(subject, seed - seed % len(STYLES) + style, {"horizon": draw.integer("horizon", 1, 20)})


def _in_turn(subject: Subject, seed: int, options: dict[str, Any]) -> None:
    driver, aec = ParallelDriver(subject.parallel(**options), seed), subject.aec(**options)
    for parallel in (driver.face, aec.unwrapped):
        pay_ends(parallel.sim)
    seen, infos = driver.start()
    aec.reset(seed=seed)
    earned = dict.fromkeys(seen, 0.0)
    for number in range(_decisions(subject)):
        face, place = driver.face, f"decision {number}"
        if not face.agents:
            require(not aec.agents, f"{place}: the match is over, but the AEC face has the agents {aec.agents}")
            seen, infos = driver.play()
            aec.reset()
            earned = dict.fromkeys(seen, 0.0)
            continue
        acting = face.sim.acting[0]
        asked = [a for a in face.agents if acting[face.sim.game.agents.index(a)]]
        result = driver.play()
        for agent in asked:
            _same_turn(aec, agent, (seen[agent], earned[agent], False, False, infos[agent]), place)
            aec.step(driver.given[agent])
            earned[agent] = 0.0
        seen, rewards, ends, cuts, infos = result
        for agent, reward in rewards.items():
            earned[agent] = earned.get(agent, 0.0) + reward
        flagged = [a for a in seen if ends[a] or cuts[a]]
        for _ in flagged:
            agent = aec.agent_selection
            require(agent in flagged, f"{place}: the AEC face selects {agent}, but {', '.join(flagged)} have left")
            expected = (seen[agent], earned.pop(agent), ends[agent], cuts[agent], infos[agent])
            _same_turn(aec, agent, expected, place)
            aec.step(None)


def _same_turn(aec: Any, agent: str, expected: tuple[Any, ...], place: str) -> None:
    chosen = aec.agent_selection
    require(chosen == agent, f"{place}: the AEC face selects {chosen}, not {agent}")
    found = unlike(aec.observe(agent), expected[0])
    require(not found, f"{place}: the AEC face shows {agent} an observation with {found} (ParallelEnv)")
    for name, given, wanted in zip(PARTS, aec.last(), expected, strict=True):
        found = unlike(given, wanted)
        require(not found, f"{place}: the AEC face gives {agent} a {name} with {found} (ParallelEnv)")


@conformance(order=212)
def fixed_agents_play_the_same(subject: Subject) -> None:
    """With ``fixed_agents=True`` a ParallelEnv plays the same matches; present agents see and earn the same."""
    draw = subject.draw
    horizon, seed = draw.integer("horizon", 1, 20), draw.seed()
    plain = ParallelDriver(subject.parallel(horizon=horizon), seed)
    fixed = subject.parallel(horizon=horizon, fixed_agents=True)
    for parallel in (plain.face, fixed):
        pay_ends(parallel.sim)
    one, other = plain.start(), fixed.reset(seed=seed)
    _same_for_present(one, other, "reset")
    for number in range(_decisions(subject)):
        if not plain.face.agents:
            require(not fixed.agents, f"decision {number}: the match is over, but agents are {fixed.agents}")
            _same_for_present(plain.play(), fixed.reset(), "reset")
            continue
        require(fixed.agents == fixed.possible_agents, f"decision {number}: agents are {fixed.agents}, not all")
        one = plain.play()
        other = fixed.step(copy.deepcopy(plain.given))
        over = not plain.face.agents
        _same_for_present((one[0], one[1], one[4]), (other[0], other[1], other[4]), f"decision {number}")
        for name, flags, wanted in (("terminations", other[2], one[2]), ("truncations", other[3], one[3])):
            expected = any(wanted[a] for a in plain.face.possible_agents if a in wanted) if over else False
            require(set(flags.values()) == {expected}, f"decision {number}: {name} are {flags}, not all {expected}")


def _same_for_present(one: tuple[Any, ...], other: tuple[Any, ...], place: str) -> None:
    for plain, fixed in zip(one, other, strict=True):
        found = unlike(plain, {a: fixed.get(a) for a in plain})
        require(not found, f"{place}: {found} (ParallelEnv, and with fixed_agents=True)")


@conformance(order=213)
def joint_choices_match(subject: Subject) -> None:
    """With ``choices="discrete"`` every number plays the choices that it encodes, and its mask is theirs."""
    options, seed = _match_options(subject), subject.draw.seed()
    plain = EnvDriver(subject.env(**options), seed)
    blocks = plain.face.agent_io.blocks
    sizes = [
        f.n
        for b in blocks
        for _ in range(b.count)
        for f in b.role.action
        if isinstance(f, Choice)
        for _ in range(f.size)
    ]
    if any(not isinstance(f, Choice) for b in blocks for f in b.role.action) or math.prod(sizes) > MOST:
        raise Skipped("actions are not choices alone, or too many for one")
    joint = subject.env(choices="discrete", **options)
    vec = subject.vec(1, choices="discrete", autoreset_mode="off", **options)
    require(vec.single_action_space == joint.action_space, f"VectorEnv: the action space is {vec.single_action_space}")
    require(joint.action_space == spaces.Discrete(math.prod(sizes)), f"the action space is {joint.action_space}")
    results = plain.start(), joint.reset(seed=seed)
    for number in range(_decisions(subject)):
        one, other = (result[0] if number == 0 else result for result in results)
        found = unlike(_without_masks(one), _without_masks(other))
        require(not found, f"call {number}: {found} (separate choices and joint ones)")
        over = plain.over
        one = plain.play()
        if over:
            results = (one, joint.reset())
            continue
        chosen = np.ravel(_leaves(plain.given))
        results = one, joint.step(int(np.ravel_multi_index(tuple(chosen.astype(np.int64)), sizes)))

    _joint_parallel(subject, seed)


def _joint_parallel(subject: Subject, seed: int) -> None:
    """The same for the agents of a ParallelEnv."""
    plain = ParallelDriver(subject.parallel(mask=None, horizon=8), seed)
    keys = ("seen", "allowed")
    joint = subject.parallel(choices="discrete", mask="obs", mask_keys=keys, horizon=8)
    one, other = plain.start(), joint.reset(seed=seed)
    for number in range(_decisions(subject)):
        shown = {a: o["seen"] for a, o in other[0].items()}
        found = unlike(one[0], shown) or (unlike(one[1:4], other[1:4]) if len(one) == 5 else "")
        require(not found, f"ParallelEnv, call {number}: {found} (separate choices and joint ones)")
        over = not plain.face.agents
        one = plain.play()
        if over:
            other = joint.reset()
            continue
        numbers = {}
        for agent, action in plain.given.items():
            sizes = [f.n for b in joint.agent_ios[agent].blocks for f in b.role.action for _ in range(f.size)]
            numbers[agent] = int(np.ravel_multi_index(tuple(_leaves(action).astype(np.int64)), sizes))
        other = joint.step(numbers)


def _leaves(action: Any) -> np.ndarray:
    if isinstance(action, dict):
        return np.concatenate([_leaves(part) for part in action.values()])
    return np.ravel(action)


def _without_masks(result: Any) -> Any:
    """A result of an Env without its masks, which are of another form."""
    if not isinstance(result, tuple):
        return result
    return (*result[:-1], {k: v for k, v in result[-1].items() if k not in ("action_mask", "candidates")})


@conformance(order=214)
def mask_placement(subject: Subject) -> None:
    """``mask=`` moves masks between info and observation, ``mask_keys=`` renames them; ``action_masks`` is the same."""
    if subject.game.legal is None:
        raise Skipped("the game forbids nothing")
    options, seed = _match_options(subject), subject.draw.seed()
    keys = ("seen", "allowed")
    none, info, obs = (EnvDriver(subject.env(mask=m, **options), seed) for m in (None, "info", "obs"))
    renamed = EnvDriver(subject.env(mask="obs", mask_keys=keys, **options), seed)
    vec = subject.vec(1, mask="obs", mask_keys=keys, autoreset_mode="off", **options)
    each = (none, info, obs, renamed, VectorDriver(vec, seed))
    for number in range(_decisions(subject)):
        results = [d.start() if number == 0 else d.play() for d in each]
        place = f"call {number}"
        plain, in_info, in_obs, renamed_obs, batched = results
        found = unlike(renamed_obs[0], lane_of(batched[0], 0))
        require(not found, f"{place}: {found} (Env and VectorEnv with masks in their observations)")
        masks = {k: in_info[-1][k] for k in ("action_mask", "candidates") if k in in_info[-1]}
        require(masks, f"{place}: mask='info' gives no masks: {sorted(in_info[-1])}")
        require(not set(masks) & set(plain[-1]), f"{place}: mask=None gives masks")
        found = (
            unlike(plain[0], in_info[0])
            or unlike(plain[0], in_obs[0]["observation"])
            or unlike(plain[0], renamed_obs[0]["seen"])
        )
        require(not found, f"{place}: the observation depends on where masks are: {found}")
        require(
            "allowed" in renamed_obs[0] or "action_mask" not in in_obs[0],
            f"{place}: mask_keys are not {sorted(renamed_obs[0])}",
        )
        for a, b in ((plain, in_info), (plain, in_obs), (plain, renamed_obs)):
            same = unlike(a[1:-1], b[1:-1])
            require(not same, f"{place}: reward and flags depend on where masks are: {same}")
        flat = np.concatenate([np.ravel(leaf) for leaf in _mask_leaves(masks.get("action_mask"))] or [np.zeros(0)])
        inner = {k: v for k, v in in_obs[0].items() if k in masks}
        inside = np.concatenate([np.ravel(leaf) for leaf in _mask_leaves(inner.get("action_mask"))] or [np.zeros(0)])
        same = flat.size != inside.size or sorted(flat.tolist()) == sorted(inside.tolist())
        require(same, f"{place}: the mask in the observation allows {inside.sum()} choices, in the info {flat.sum()}")
        dense = info.face.action_masks()
        if "candidates" not in masks:
            require(
                int(dense.sum()) == int(flat.sum()), f"{place}: action_masks() allows {dense.sum()}, not {flat.sum()}"
            )


def _mask_leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in _mask_leaves(part)]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _mask_leaves(part)]
    return [] if tree is None else [tree]


@conformance(order=215)
def face_attributes_match(subject: Subject) -> None:
    """Horizon, state, spaces and pictures are the same on all faces; a changed ``max_cycles`` holds exactly."""
    draw, game = subject.draw, subject.game
    horizon, seed = draw.integer("horizon", 2, 9), draw.seed()
    env = subject.env(horizon=horizon)
    spec = env.spec
    limit = None if spec is None else spec.max_episode_steps
    require(limit in (None, horizon), f"Env: spec.max_episode_steps is {limit}, the horizon {horizon}")
    parallel = subject.parallel(horizon=horizon)
    require(parallel.max_cycles == horizon, f"ParallelEnv: max_cycles is {parallel.max_cycles}, not {horizon}")
    longer = parallel.max_cycles = horizon + draw.integer("more cycles", 1, 5)
    driver, aec = ParallelDriver(parallel, seed), subject.aec(horizon=longer)
    driver.start()
    aec.reset(seed=seed)
    state, shown = parallel.state(), parallel.sim.state()[0]
    require(np.array_equal(state, shown, equal_nan=True), f"ParallelEnv: state() is {state}, not {shown}")
    require(not np.shares_memory(state, parallel.sim.state()), "ParallelEnv: state() is the simulation's own memory")
    require(state in parallel.state_space, "ParallelEnv: state() is not in state_space")
    found = unlike(state, aec.state())
    require(not found, f"AECEnv: state() has {found} (ParallelEnv and AECEnv)")
    require(aec.state_space == parallel.state_space, f"AECEnv: state_space is {aec.state_space}")
    require(aec.unwrapped.possible_agents == parallel.possible_agents, "AECEnv: unwrapped is no ParallelEnv")
    for agent in parallel.possible_agents:
        for name in ("observation_space", "action_space"):
            one, other = getattr(aec, name)(agent), getattr(parallel, name)(agent)
            require(one == other, f"AECEnv: {name} of {agent} is {one}, not {other}")
    number = 0
    while parallel.agents:
        require(number < longer, f"ParallelEnv: max_cycles was set to {longer}, but the match goes on")
        driver.play()
        number += 1
    cut = parallel.sim.truncated[0] and parallel.sim.info["end_reason"][0] == HORIZON
    require(not cut or number == longer, f"ParallelEnv: cut after {number} decisions, max_cycles was set to {longer}")
    _lanes_have_parameters(subject, horizon)
    if game.render_text is not None:
        _same_texts(subject, seed)
    if not subject.why_not_drawn():
        _same_pictures(subject, seed)


def _lanes_have_parameters(subject: Subject, horizon: int) -> None:
    """`get_attr`, `set_attr` and `call` of a VectorEnv, and the attributes of the other faces."""
    vec = subject.vec(3, horizon=horizon)
    require(vec.get_attr("horizon") == (horizon,) * 3, f"VectorEnv: get_attr('horizon') is {vec.get_attr('horizon')}")
    values = [subject.draw.integer("horizon", 1, 99) for _ in range(3)]
    vec.set_attr("horizon", values)
    for horizons in (vec.call("horizon"), tuple(vec.sim.parameters["horizon"].tolist())):
        require(horizons == tuple(values), f"VectorEnv: horizon was set to {values}, but is {horizons}")
    env, aec = subject.env(horizon=horizon), subject.aec(horizon=horizon)
    env.set_wrapper_attr("horizon", values[0])
    aec.max_cycles = values[0]
    for name, found in (("Env", env.get_wrapper_attr("horizon")), ("AECEnv", aec.max_cycles)):
        require(found == values[0], f"{name}: horizon was set to {values[0]}, but is {found}")
    require(env.sim.parameters["horizon"][0] == values[0], "Env: an attribute was set, and the rules did not change")
    spaces_told = vec.call("action_space")
    require(spaces_told == (vec.single_action_space,) * 3, f"VectorEnv: call('action_space') is {spaces_told}")


def _same_texts(subject: Subject, seed: int) -> None:
    vec, env = subject.vec(2, render_mode="ansi"), subject.env(render_mode="ansi")
    aec, parallel = subject.aec(render_mode="ansi"), subject.parallel(render_mode="ansi")
    for face in (vec, env, aec, parallel):
        face.reset(seed=seed)
    texts = vec.render()
    require(vec.sim.render_text() == texts[0] and vec.sim.render_text(1) == texts[1], "texts of the lanes differ")
    for face, text in ((env, texts[0]), (parallel, parallel.sim.render_text()), (aec, parallel.render())):
        require(face.render() == text, f"{type(face).__name__}: render() is {face.render()!r}, not {text!r}")


def _same_pictures(subject: Subject, seed: int) -> None:
    mode = "rgb_array"
    vec, parallel = subject.vec(2, render_mode=mode), subject.parallel(render_mode=mode)
    env, aec = subject.env(render_mode=mode), subject.aec(render_mode=mode)
    for face in (vec, env, parallel, aec):
        face.reset(seed=seed)
    pictures = vec.render()
    require(len(pictures) == 2, f"VectorEnv: render() gives {len(pictures)} pictures of 2 lanes")
    shown = parallel.render()
    for name, picture, other in (("Env", pictures[0], env.render()), ("AECEnv", shown, aec.render())):
        found = unlike(picture, other)
        require(not found, f"{name}: another picture than another face: {found}")
    env.reset(seed=seed + 1)
    found = unlike(pictures[1], env.render())
    require(not found, f"Env: another picture than lane 1 of a VectorEnv: {found}")
