"""A planted fault for every check: a rule broken by number in `broken_games`, or a face broken here by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from testing.planting import (
    CALLABLE,
    COURIERS,
    CROWD,
    FAULTS,
    HALF_DOCUMENTED,
    REACH,
    TUG,
    Fault,
    codec,
    face,
    replace_step,
    rule,
)

from palaestra.core.contract.actions import ActionError
from palaestra.testing import Subject

# -- Gymnasium's and PettingZoo's own ----------------------------------------------------------------------------------


@face("gymnasium_check_env", "env", "truncates after 1 step")
def numpy_flags(env: Any) -> None:
    """truncated is a numpy.bool"""
    replace_step(env, lambda action, result: (*result[:3], np.bool_(result[3]), result[4]))


@face("pettingzoo_parallel_api_test", "parallel", "exact same space object")
def new_spaces(parallel: Any) -> None:
    """action_space makes a new space each time"""
    spaces = parallel.action_spaces
    parallel.action_space = lambda agent: copy.deepcopy(spaces[agent])


@face("pettingzoo_api_test", "parallel", "is not True or False")
def numpy_terminations(parallel: Any) -> None:
    """terminations are numpy.bool"""
    replace_step(parallel, lambda _, r: (*r[:2], {a: np.bool_(t) for a, t in r[2].items()}, *r[3:]))


@face("infos_are_numbers", "env", "info side is 'left', no number")
def wordy_info(env: Any) -> None:
    """infos hold words"""
    reset = env.reset
    env.reset = lambda **options: ((result := reset(**options))[0], {**result[1], "side": "left"})


@face("infos_are_numbers", "env", r"decision 1: info has .*'winner'.*, before \[\]")
def late_info(env: Any) -> None:
    """the first observation comes without info"""
    reset = env.reset
    env.reset = lambda **options: (reset(**options)[0], {})


@face("pettingzoo_seed_tests", "parallel", "Incorrect info")
def random_info(parallel: Any) -> None:
    """infos hold fresh noise"""
    noise = np.random.default_rng()
    replace_step(parallel, lambda _, r: (*r[:4], {a: {**i, "noise": noise.random()} for a, i in r[4].items()}))


rule("pettingzoo_state_test", "state is infinite", "outside of it's state space")


@face("pettingzoo_max_cycles_test", "parallel", "AssertionError")
def deaf_to_max_cycles(parallel: Any) -> None:
    """max_cycles is ignored"""
    parallel.sim.set_parameters(horizon=30)


@face("pettingzoo_render_test", "parallel", "valid image")
def float_picture(parallel: Any) -> None:
    """pictures are of float32"""
    render = parallel.render
    parallel.render = lambda: None if (p := render()) is None else p.astype(np.float32)


FAULTS.append(
    Fault(
        "the entry point is a lambda", "registered_everywhere", "Cannot|JSON|lambda|callable", lambda: Subject(CALLABLE)
    )
)


@face("spaces_contain_results", "env", "float64")
def double_observations(env: Any) -> None:
    """observations are of float64, their space is not"""
    replace_step(env, lambda _, result: (result[0].astype(np.float64), *result[1:]))


# -- lanes -------------------------------------------------------------------------------------------------------------

rule("lanes_equal_single_envs", "lanes share their dice", r"in a batch of \d and alone")


@face("same_seed_same_matches", "parallel", "two with seed")
def deaf_to_seeds(parallel: Any) -> None:
    """reset ignores the seed"""
    reset = parallel.reset
    parallel.reset = lambda seed=None, options=None: reset(options=options)


rule("seeding_resets_history", "matches remember earlier ones", "had played seed")


@face("faces_agree", "parallel", "observation")
def swapped_observations(parallel: Any) -> None:
    """red_0 sees what blue_0 should see"""
    parallel.agent_ios["red_0"].views = parallel.agent_ios["blue_0"].views


@face("faces_agree", "parallel", r"red_0: action_mask is \[.*\], in the batch \[")
def inverted_masks(parallel: Any) -> None:
    """the mask of red_0 shows what is forbidden"""

    def invert(_: Any, result: tuple) -> tuple:
        if "red_0" in result[0]:
            result[0]["red_0"]["action_mask"] = 1 - result[0]["red_0"]["action_mask"]
        return result

    replace_step(parallel, invert)


@face("faces_agree", "env", r"red: candidates goal is \[.*\], in the batch \[", CROWD)
def swapped_candidates(env: Any) -> None:
    """the candidates of a team's members are exchanged"""

    def swap(_: Any, result: tuple) -> tuple:
        goals = result[4]["candidates"]["goal"]
        goals[...] = goals[::-1].copy()
        return result

    replace_step(env, swap)


@face("call_lanes_are_independent", "batch", r"lane \d: parameter \w+ is")
def shifted_lanes(sim: Any) -> None:
    """set_parameters changes the lane before each of the chosen ones"""
    change = sim.set_parameters
    sim.set_parameters = lambda lanes=None, **values: change(
        lanes if lanes is None else np.roll(np.isin(np.arange(sim.num_envs), np.arange(sim.num_envs)[lanes]), -1),
        **values,
    )


rule("threads_do_not_change_results", "lanes share scratch", r"one thread and with \d")
rule("workers_do_not_change_results", "worker processes play on", r"without workers and with \d")


@face("all_seed_bits_matter", "batch", "give one stream")
def short_seeds(sim: Any) -> None:
    """seeds are cut to 32 bits"""
    seed = sim.seed
    sim.seed = lambda seeds, mask=None: seed(np.asarray(seeds, np.uint64) & np.uint64(2**32 - 1), mask)


@face("unseeded_lanes_differ", "env", "starts like the first|were there before")
def seeded_by_zero(env: Any) -> None:
    """a reset without a seed is one with seed 0"""
    reset = env.reset
    env.reset = lambda seed=None, options=None: reset(seed=seed or 0, options=options)


# -- autoreset ---------------------------------------------------------------------------------------------------------


@face("autoreset_next_step", "vec", "reward")
def paid_resets(vec: Any) -> None:
    """the step that resets pays a reward"""
    over = np.zeros(vec.num_envs, np.bool_)

    def change(_: Any, result: tuple) -> tuple:
        rewards = result[1] + over
        over[:] = result[2] | result[3]
        return (result[0], rewards, *result[2:])

    replace_step(vec, change)


@face("autoreset_same_step", "vec", "final_obs")
def early_finals(vec: Any) -> None:
    """final_obs is the first observation of the next match"""

    def change(_: Any, result: tuple) -> tuple:
        for lane in np.flatnonzero(result[4].get("_final_obs", ())):
            result[4]["final_obs"][lane] = result[0][lane].copy()
        return result

    replace_step(vec, change)


@face("autoreset_off", "vec", "out of the caller's options")
def greedy_reset(vec: Any) -> None:
    """reset takes reset_mask out of the caller's dict"""
    reset = vec.reset

    def pop(*, seed: Any = None, options: Any = None) -> Any:
        mask = (options or {}).pop("reset_mask", None)
        return reset(seed=seed, options=None if mask is None else {"reset_mask": mask})

    vec.reset = pop


@face("masked_reset_keeps_other_lanes", "batch", "not in the mask")
def deaf_to_masks(sim: Any) -> None:
    """reset starts all lanes, whatever the mask"""
    reset = sim.reset
    sim.reset = lambda mask=None, *, seed=None: reset(seed=seed)


# -- copies ------------------------------------------------------------------------------------------------------------


@face("snapshot_continues", "batch", "restored")
def forgetful_snapshot(sim: Any) -> None:
    """the snapshot lacks the random stream"""
    snapshot = sim.snapshot

    def forget() -> Any:
        saved = snapshot()
        saved.states["rng"] = 0
        return saved

    sim.snapshot = forget


@face("deepcopy_continues", "env", "decisions after the copy")
def shallow_copy(env: Any) -> None:
    """a deep copy is the env itself"""
    env.__deepcopy__ = lambda memo: env


@face("pickle_continues", "parallel", "pickle|lambda")
def unpicklable(parallel: Any) -> None:
    """an attribute cannot be pickled"""
    parallel._helper = lambda: None


# -- buffers -----------------------------------------------------------------------------------------------------------


@face("results_share_no_memory", "vec", "own memory")
def live_vectors(vec: Any) -> None:
    """the VectorEnv hands out its own arrays"""
    vec.copy = False


@face("results_keep_their_values", "env", "later calls changed")
def reused_buffer(env: Any) -> None:
    """all observations are written into one array"""
    buffer = np.zeros(env.observation_space.shape, np.float32)

    def change(_: Any, result: tuple) -> tuple:
        buffer[...] = result[0]
        return (buffer, *result[1:])

    replace_step(env, change)


@face("results_are_copies", "env", "after writing")
def kept_observation(env: Any) -> None:
    """the reward is computed from the observation that was returned before"""
    kept = [np.zeros(1)]

    def change(_: Any, result: tuple) -> tuple:
        before, kept[0] = kept[0], result[0]
        return (result[0], result[1] + float(before.sum()), *result[2:])

    replace_step(env, change)


# -- rules -------------------------------------------------------------------------------------------------------------

rule("observations_are_in_spaces", "observation above its bound", r"blue_0: .*charge = 3.0 is not in \[0, 2\]")
rule("observations_are_in_spaces", "observation is NaN", r"blue_1: .*place = nan is not in \[0, 4\]")
rule(
    "observations_are_in_spaces",
    "speed beyond its checked range",
    r"red_0: .*speed = 3.0 is not in \[-1, 1\]",
    CROWD,
)
rule(
    "observations_are_in_spaces",
    "table beyond its bounds",
    r"red_0: .*walkers\[1\].place = 10.0 is not in \[0, 9\]",
    CROWD,
)
rule("rewards_are_finite", "infinite reward", "red_0: reward inf")
rule("team_rewards_are_equal", "one member is paid", "red_0 gets .* but red_1 gets 0")
rule("team_rewards_are_equal", "one walker is paid", "red_0 gets 0.0 but red_1 gets 1.0", CROWD)
rule("infos_are_in_their_bounds", "info beyond its bounds", r"info shares\[1\] = 1.5 is not in \[0, 1\]", CROWD)
rule("zero_sum_is_exact", "rewards do not add up", "do not add up to 0")
rule("masks_allow_an_action", "empty mask", "the mask of move forbids all 4 alternatives")
rule("masks_allow_an_action", "candidate beyond the goals", r"goal are \[0, 8, 10\]: no list of ids below 10", CROWD)
rule("masks_allow_an_action", "candidate offered twice", r"goal are \[0, 8, 0\]: no list of ids below 10", CROWD)
rule("masks_allow_an_action", "more candidates than room", "goal has 4 candidates and room for 3", CROWD)
rule("legal_actions_are_accepted", "script plays illegally", "illegal actions counted")
rule("end_reasons_are_valid", "end without a reason", "end_reason is 0")
rule("end_reasons_are_valid", "winner out of nowhere", "while the match is running")
rule(
    "end_reasons_are_valid",
    "terminated by the reason of a truncation",
    r"terminated with end_reason 3 \('lost'\), a reason of truncation",
    CROWD,
)
rule(
    "end_reasons_are_valid",
    "truncated by the reason of a rule",
    r"truncated with end_reason 2 \('met'\), a reason of a rule's end",
    CROWD,
)
rule("reset_fields_are_constant", "rope grows", "rope_m is fixed during a match .* changed in a running", TUG)
rule(
    "reset_fields_are_constant",
    "rope is lost in the end",
    "rope_m is fixed during a match .* changed in the last observation",
    TUG,
)
rule("unused_slots_are_inactive", "hidden slot is alive", "slot 4 is alive, but there are 3 agents", CROWD)
rule("unused_slots_are_inactive", "hidden slot is paid", "slot 4, beyond the agents, has a reward", CROWD)
rule("dead_agents_stay_dead", "the dead come back", "is back")
rule("horizon_is_exact", "horizon moves", "not over")


@face("terminated_xor_truncated", "parallel", "at the end the flags are")
def mixed_flags(parallel: Any) -> None:
    """at the horizon red is truncated and blue terminated"""

    def change(_: Any, r: tuple) -> tuple:
        if not any(r[3].values()):
            return r
        terminated = {a: a.startswith("blue") for a in r[2]}
        return (*r[:2], terminated, {a: not t for a, t in terminated.items()}, r[4])

    replace_step(parallel, change)


@face("dead_agents_get_final_reward", "parallel", "was in the match but is not in")
def silent_deaths(parallel: Any) -> None:
    """dead agents are left out of the results"""

    def change(_: Any, r: tuple) -> tuple:
        return tuple({a: v for a, v in part.items() if a in parallel.agents or not parallel.agents} for part in r)

    replace_step(parallel, change)


@face("calls_out_of_order_raise", "batch", "step before reset is not refused")
def eager_batch(sim: Any) -> None:
    """step does not wait for the first reset"""
    sim.guard.started, sim.guard.blocked = True, False


# -- actions -----------------------------------------------------------------------------------------------------------


rule("mirror_symmetry_holds", "rope leans to red", "state knot_m: lane 0 is .* in the mirrored match", TUG)
rule("mirror_symmetry_holds", "blue sees badly", "observation of (red|blue)_0: lane 0 knot_m is", TUG)


@face("malformed_actions_raise", "env", "is not refused")
def forgiving_env(env: Any) -> None:
    """what is malformed is replaced by the first action"""
    step = env.step

    def forgive(action: Any) -> Any:
        try:
            return step(action)
        except ActionError:
            return step(env.action_space.sample() * 0)

    env.step = forgive


@face("malformed_actions_raise", "batch", "has changed")
def refusal_that_moves(sim: Any) -> None:
    """a refused step advances the random stream"""
    step = sim.step

    def throw(actions: Any = None) -> None:
        sim.states["rng"] += np.uint64(1)
        step(actions)

    sim.step = throw


@face("action_bounds_are_accepted", "env", "ActionError", TUG)
def open_bounds(env: Any) -> None:
    """the bounds themselves are refused"""
    step = env.step

    def refuse(action: Any) -> Any:
        if (np.asarray(action) >= env.action_space.high).any():
            raise ActionError("at its bound")
        return step(action)

    env.step = refuse


@face("real_numbers_are_clipped", "batch", r"numbers beyond their bounds and at them: lane \d, red_0", TUG)
def unclipped_batch(sim: Any) -> None:
    """numbers beyond their bounds become no-ops"""
    step, columns = sim.step, sim.action_table.words["column"]

    def drop(actions: Any = None) -> None:
        reals = sim.buffers.action_reals
        reals[:, columns] = np.where(np.abs(reals[:, columns]) > 1.0, 0.0, reals[:, columns])
        step(actions)

    sim.step = drop


rule("illegal_actions_become_noops", "illegal actions hurt", "after an illegal action and after the no-op")


@face("inactive_actions_are_ignored", "batch", "agents that were not asked")
def haunted_batch(sim: Any) -> None:
    """the dead are paid for what they would do"""
    step = sim.step

    def haunt(actions: Any = None) -> None:
        wishes = (sim.buffers.action_words * ~sim.alive).sum(axis=1)
        step(actions)
        sim.rewards[:] += wishes[:, None]

    sim.step = haunt


# -- sizes, fields at reset, lists of candidates -----------------------------------------------------------------------


def after_steps(sim: Any, change: Callable[[], Any]) -> None:
    """Lets ``change()`` happen after each step."""
    step = sim.step

    def changed(actions: Any = None) -> None:
        step(actions)
        change()

    sim.step = changed


@face("reset_fields_are_constant", "batch", "speed_m is fixed during a match", COURIERS)
def tiring_courier(sim: Any) -> None:
    """a courier is shown a lower speed in every decision"""

    def tire() -> None:
        sim.buffers.observations["courier"]["speed_m"][:, 0] *= 0.5

    after_steps(sim, tire)


@face("unused_slots_are_inactive", "batch", "slot 39, beyond the agents, has a reward", COURIERS)
def paid_nobody(sim: Any) -> None:
    """a slot that no agent has is paid"""
    after_steps(sim, lambda: sim.buffers.rewards[:, -1].fill(1.0))


@face("masks_allow_an_action", "batch", r"the candidates of parcel are \[.*: no list of ids below 13", COURIERS)
def doubled_candidate(sim: Any) -> None:
    """a list names an alternative twice"""

    def double() -> None:
        ids = sim.buffers.masks["courier"]["parcel"]["ids"]
        ids[:, 0, 1] = ids[:, 0, 0]

    after_steps(sim, double)


@face("autoreset_next_step", "vec", r"info candidates.*parcel.*\[0\] = \d+ and \d+ \(VectorEnv and Env\)", COURIERS)
def other_candidates(vec: Any) -> None:
    """a VectorEnv lists other alternatives than an Env"""
    replace_step(vec, lambda _, result: (*result[:4], shuffled(result[4])))


def shuffled(info: dict[str, Any]) -> dict[str, Any]:
    if "candidates" not in info:
        return info
    lists = info["candidates"]["parcel"].copy()
    lists[:, 0, :2] = lists[:, 0, 1::-1]
    return {**info, "candidates": {"parcel": lists}}


@face("results_share_no_memory", "parallel", r"\['speed_m'\] is the simulation's own memory", COURIERS)
def live_and_locked(parallel: Any) -> None:
    """a ParallelEnv shows live memory, which the caller cannot write to but a step does"""
    view = parallel.sim.buffers.observations["courier"]["speed_m"][0, :1]
    view.flags.writeable = False
    replace_step(parallel, lambda _, r: ({a: {**seen, "speed_m": view} for a, seen in r[0].items()}, *r[1:]))


# -- opponents, pictures, pages ----------------------------------------------------------------------------------------

rule("scripts_play_legally", "script plays illegally", "illegal actions")
rule("scripts_play_legally", "script pulls too hard", r"pull = 2.0 is not in", TUG)


@face("weak_scripts_play_legally", "batch", r"red_0, script 'striker:0', step 0: 1 illegal actions")
def careless_chance(sim: Any) -> None:
    """random decisions of a script ignore the mask"""
    step = sim.step

    def play(actions: Any = None) -> None:
        step(actions)
        sim.info["illegal"][:, 0] += sim.states["strength"][:, 0] < 1.0

    sim.step = play


rule("scripts_change_only_actions", "script throws the dice of the rules", "its actions given by hand")
rule("scripts_change_only_actions", "script heals itself", "its actions given by hand")
rule("scripts_ignore_current_actions", "script peeks", "when the others choose differently")


@face("strength_is_decision_share", "batch", "random player in place of")
def full_strength(sim: Any) -> None:
    """the strength of a script is taken for 1"""
    assign = sim.set_opponent

    def strong(*arguments: Any) -> None:
        assign(*arguments)
        sim.states["strength"] = 1.0

    sim.set_opponent = strong


@face("mix_draws_every_script", "batch", "mix plays script 0, drew 1")
def first_of_the_mix(sim: Any) -> None:
    """mix is always the first script"""
    reset = sim.reset

    def start(*arguments: Any, **options: Any) -> Any:
        reset(*arguments, **options)
        sim.states["current_player"] = np.maximum(sim.states["assigned_player"], sim.states["current_player"] * 0)

    sim.reset = start


rule("script_rng_is_separate", "start depends on the luck of scripts", "the start of a match")
codec("codec talks too long", "is not in its space")
codec("codec writes into the row", "read-only .* in encode")
codec("codec stumbles", "raises KeyError .*, not ValueError")
codec("codec promises too much", "refused .* a total codec")
codec("codec tells arrays", "info holds more than plain Python values")
codec("codec pulls too hard", r"decoded to .* pull = 2.0 is not in \[-0.3, 0.7\]")


@face("codec_results_are_copies", "parallel", "is what an earlier call gave .*red_0, call 0", TUG)
def lending_codec(parallel: Any) -> None:
    """a codec shows an array of its own, that its caller may write to"""
    edges = np.zeros((2, 2))
    for agent_io in parallel.agent_ios.values():
        agent_io.observe_lane = lambda **_: {"edges": edges[:]}


@face("codec_results_are_copies", "parallel", "changed an observation: .* = 0 and 7", TUG)
def forgetful_codec(parallel: Any) -> None:
    """a codec goes on writing into the text that it has shown"""
    texts: list[list[int]] = []

    def observe(**_: Any) -> tuple[list[int], ...]:
        if texts:
            texts[-1][0] = 7
        texts.append([0])
        return (texts[-1],)

    for agent_io in parallel.agent_ios.values():
        agent_io.observe_lane = observe


rule("render_has_no_side_effects", "pictures wound", "changed the match record of lane 1: health")


FAULTS.append(
    Fault(
        "half a page", "documentation_is_complete", "has no section Observation Space", lambda: Subject(HALF_DOCUMENTED)
    )
)


@face("goal_rewards_are_paid", "env", r"Env, decision \d+: paid -?\d.0, compute_reward gives -?\d.0", REACH)
def goals_exchanged_with_rewards(env: Any) -> None:
    """a goal that is reached costs, and one that is not is free"""
    env.compute_reward = lambda *goals, compute=env.compute_reward, **more: -1.0 - compute(*goals, **more)


@face("goal_rewards_are_paid", "vec", "VectorEnv, decision 0, lanes", REACH)
def goals_of_the_lane_before(vec: Any) -> None:
    """lanes get the reward of their neighbours"""
    vec.compute_reward = lambda *goals, compute=vec.compute_reward, **more: np.roll(compute(*goals, **more), 1) + 1.0
