"""Planted faults in what the faces make of their options; they join `planting.FAULTS` when imported."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import gymnasium
import numpy as np
from testing.planting import COURIERS, SPOKEN, face, replace_step

from palaestra.drawing.canvas import Canvas


@face("uncopied_results_are_equal", "vec", "in spite of copy=False")
def always_copies(vec: Any) -> None:
    """copy=False is ignored"""
    vec.copy = True


@face("aec_matches_parallel", "aec", "a reward with")
def late_rewards(aec: Any) -> None:
    """what an agent has earned is paid twice"""
    last = aec.last
    aec.last = lambda: ((r := last())[0], 2 * r[1], *r[2:])


@face("fixed_agents_play_the_same", "parallel", "with fixed_agents=True")
def unpaid_fixed_agents(parallel: Any) -> None:
    """with fixed agents nobody is paid"""
    if parallel.fixed_agents:
        replace_step(parallel, lambda _, r: (r[0], dict.fromkeys(r[1], 0.0), *r[2:]))


@face("joint_choices_match", "env", "separate choices and joint ones")
def reversed_joint_choices(env: Any) -> None:
    """joint choices are numbered from behind"""
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        step, last = env.step, int(env.action_space.n) - 1
        env.step = lambda action: step(last - action)


@face("mask_placement", "env", "with masks in their observations|depends on where masks are")
def blinding_mask(env: Any) -> None:
    """beside a mask the observation is empty"""
    if env.agent_io.mask_mode == "obs":
        replace_step(
            env, lambda _, r: ({k: np.zeros_like(v) if k != "action_mask" else v for k, v in r[0].items()}, *r[1:])
        )


@face("face_attributes_match", "parallel", "max_cycles was set to")
def fixed_max_cycles(parallel: Any) -> None:
    """max_cycles changes what it says, but not the match"""
    first = int(parallel.sim.parameters["horizon"][0])
    parallel.reset = lambda seed=None, options=None, reset=parallel.reset: (
        parallel.sim.set_parameters(horizon=first),
        reset(seed, options),
    )[1]


@face("compiled_rules_equal_plain_python", "batch", "compiled and in plain Python")
def other_numbers_in_plain_python(sim: Any) -> None:
    """plain Python starts matches from another stream"""
    if not sim.compiled:
        sim.reset = lambda seed, reset=sim.reset: reset(seed=seed + 1)


# -- what one looks at is in order, but beyond it ----------------------------------------------------------------------


@face("agents_keep_their_order", "parallel", r"rewards hold \[.*\], not \[")
def rewards_in_reverse(parallel: Any) -> None:
    """rewards stand in reverse"""
    replace_step(parallel, lambda _, r: (r[0], dict(reversed(r[1].items())), *r[2:]))


@face("wide_batches_match_narrow", "vec", r"VectorEnv, decision 0, lanes \d+ to \d+: .*lanes and")
def last_lane_of_many_is_paid_more(vec: Any) -> None:
    """the last of many lanes is paid more"""
    if vec.num_envs > 30:
        replace_step(vec, lambda _, r: (r[0], r[1] + (np.arange(vec.num_envs) == vec.num_envs - 1), *r[2:]))


@face("opponents_get_their_rows", "batch", "handed over, and in the batch")
def opponents_see_the_other_team(sim: Any) -> None:
    """a Python opponent is handed the rows of the other team"""
    view, teams = sim.team_view, list(sim.game.teams)
    sim.team_view = lambda team, what, lanes: view(teams[1 - teams.index(team)], what, lanes)


@face("mates_leave_one_agent", "batch", r"mates leave the slots \(0, 1\) of red to the caller, not \(0,\)")
def mates_that_the_caller_plays(sim: Any) -> None:
    """the caller is left all agents of a team that has mates"""
    sim.open_slots = lambda team: sim.game.teams[team]


@face("texts_have_no_side_effects", "batch", "writing lane 0 changed the match record of lane 0: idle", COURIERS)
def text_that_touches(sim: Any) -> None:
    """a text changes the record"""
    text = sim.render_text

    def render_text(lane: int) -> str:
        sim.states["idle"] += 1
        return text(lane)

    sim.render_text = render_text


@face("representations_match", "batch", "usual observations and these", COURIERS)
def other_matches_of_a_representation(sim: Any) -> None:
    """with another representation matches start from another seed"""
    if sim.game.roles[0].observation[0].name == "nearest_m":
        reset = sim.reset
        sim.reset = lambda seed: reset(seed=seed + 1)


class Counting:
    """A codec that counts its calls."""

    def __init__(self, codec: Any) -> None:
        self._codec, self.calls = codec, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)

    def encode(self, view: Any) -> Any:
        self.calls += 1
        return self.calls, self._codec.encode(view)


@face("codec_lanes_are_independent", "batch", "in a batch, and again", SPOKEN)
def counting_codec(sim: Any) -> None:
    """a codec says something else each time"""
    codecs = {name: Counting(codec) for name, codec in sim.game.codecs.items()}
    sim.game = dataclasses.replace(sim.game, codecs=codecs)


class Repeating(Counting):
    """A codec that says for ever what it has said first."""

    def encode(self, view: Any) -> Any:
        if not hasattr(self._codec, "first"):
            self._codec.first = self._codec.encode(view)
        return self._codec.first


@face("codec_lanes_are_independent", "batch", "after other matches, and as new", SPOKEN)
def repeating_codec(sim: Any) -> None:
    """a codec repeats what it has said first"""
    codecs = {name: Repeating(codec) for name, codec in sim.game.codecs.items()}
    sim.game = dataclasses.replace(sim.game, codecs=codecs)


@face("decisions_match_hooks", "batch", "rewards = .* played and by the hooks as plain Python")
def compiled_rules_pay_more(sim: Any) -> None:
    """compiled rules pay more"""
    if sim.compiled:
        step = sim.step
        sim.step = lambda: (step(), np.add(sim.rewards, 1.0, out=sim.rewards))


@face("winners_match_rewards", "batch", "the winner is paid less than 0")
def loser_is_named(sim: Any) -> None:
    """the loser is named as the winner"""
    step, winners = sim.step, sim.final_info["winner"]
    sim.step = lambda: (step(), np.copyto(winners, 1 - winners, where=winners >= 0))


@face("arriving_agents_act", "batch", r"has arrived in \d+ matches", COURIERS)
def newcomers_are_never_acting(sim: Any) -> None:
    """those who arrive are never acting"""
    step, sim.legal = sim.step, None

    def deaf_step() -> None:
        step()
        sim.acting = sim.states["acting"][:, :6].astype(np.bool_) & (np.arange(6) < 3)

    sim.step = deaf_step


@face("rewards_are_immediate", "batch", "follow from s.info.lead of the decision before", COURIERS)
def rewards_come_late(sim: Any) -> None:
    """rewards come one decision late"""
    step, load, before = sim.step, sim.load_states, np.zeros_like(sim.rewards)

    def late_step() -> None:
        step()
        now = sim.rewards.copy()
        sim.rewards[...] = before
        before[...] = now

    sim.step = late_step
    sim.load_states = lambda records: (before.fill(0.0), load(records))


@face("far_lanes_equal_single_envs", "batch", r"does not seed lanes \[64 65 66")
def seeds_repeat_after_64_lanes(sim: Any) -> None:
    """lane 64 has the seed of the first lane"""
    reset = sim.reset

    def repeat(mask: Any = None, *, seed: Any = None) -> Any:
        if isinstance(seed, int) and sim.num_envs > 64:
            seed = np.array([(seed + lane % 64) % 2**64 for lane in range(sim.num_envs)], np.uint64)
        return reset(mask, seed=seed)

    sim.reset = repeat


@face("far_lanes_equal_single_envs", "batch", r"lane 12[78].* \(of \d+ lanes, and alone with seed")
def far_matches_start_alike(sim: Any) -> None:
    """beyond 127 lanes matches start elsewhere"""
    reset = sim.reset

    def start(mask: Any = None, *, seed: Any = None) -> None:
        reset(mask, seed=seed)
        if sim.num_envs > 128:
            sim.states["charge"][127:] = 1

    sim.reset = start


@face("modes_show_the_same_matches", "vec", r"next_step, decision \d, lanes .*: rewards are")
def unpaid_cut_matches(vec: Any) -> None:
    """matches that the horizon cuts together are paid nothing"""

    def change(_: Any, result: tuple) -> tuple:
        if vec.metadata["autoreset_mode"].name == "NEXT_STEP" and result[3].sum() > 1:
            return (result[0], np.where(result[3], 0.0, result[1]), *result[2:])
        return result

    replace_step(vec, change)


@face("modes_show_the_same_matches", "vec", r"same_step, decision \d, final, lane \d: action_mask")
def final_masks_of_the_next_match(vec: Any) -> None:
    """final infos have the masks of the next match"""

    def change(_: Any, result: tuple) -> tuple:
        if "final_info" in result[4] and "action_mask" in result[4]:
            result[4]["final_info"]["action_mask"] = result[4]["action_mask"].copy()
        return result

    replace_step(vec, change)


@face("faces_agree", "env", r"Env, decision \d+, lane 0, red: reward 0.0 but")
def env_does_not_pay_cut_matches(env: Any) -> None:
    """an Env pays nothing in the decision that the horizon cuts"""
    replace_step(env, lambda _, r: (r[0], 0.0 if r[3] else r[1], *r[2:]))


class Weakening(Counting):
    """A codec that pulls half as hard as it is told."""

    def encode(self, view: Any) -> Any:
        return self._codec.encode(view)

    def decode(self, view: Any, action: Any) -> Any:
        return [0.5 * number for number in self._codec.decode(view, action)]


@face("codec_actions_are_kept", "batch", r"_0, .* \d: read before was pull = .*, said as 'pull", SPOKEN)
def weakening_codec(sim: Any) -> None:
    """a codec makes less of what is said"""
    codecs = {name: Weakening(codec) for name, codec in sim.game.codecs.items()}
    sim.game = dataclasses.replace(sim.game, codecs=codecs)


@face("codec_results_are_current", "parallel", r"GameParallelEnv, codec 'words', .*: info .*knot", SPOKEN)
def late_codec_infos(parallel: Any) -> None:
    """what a codec tells is one decision old"""
    before: dict[str, Any] = {}

    def change(_: Any, result: tuple) -> tuple:
        told = {agent: info["knot"] for agent, info in result[4].items()}
        for agent, info in result[4].items():
            info["knot"] = before.get(agent, info["knot"])
        before.update(told)
        return result

    replace_step(parallel, change)


@face("another_process_plays_the_same", "batch", r"other digests of records after 0 decisions")
def hashed_start(sim: Any) -> None:
    """matches start where a hash of this process says"""
    reset = sim.reset
    sim.reset = lambda *, seed: reset(seed=seed ^ 1 ^ hash("start") & 0xFE)


@face("pictures_follow_the_match", "batch", r"the picture is the same after \d+ decisions")
def still_picture(sim: Any) -> None:
    """the picture is always that of the start"""
    sim.render = lambda lane=0: np.zeros((4, 5, 3), np.uint8)


@face("pictures_follow_the_match", "batch", r"the text is the same after \d+ decisions")
def still_text(sim: Any) -> None:
    """the text is always that of the start"""
    sim.render_text = lambda lane=0: "a duel"


@face("pictures_follow_the_match", "batch", r"a picture takes 0\.[67]\d s of the processor, more than 0.5 s")
def slow_picture(sim: Any) -> None:
    """a picture takes 0.6 s of the processor"""
    render = sim.render

    def slow(lane: int = 0) -> Any:
        end = time.process_time() + 0.6
        while time.process_time() < end:
            pass
        return render(lane)

    sim.render = slow


@face("pictures_follow_the_match", "batch", r"'health 3 of 3' at \(.*\) leaves its panel of 60 x 40 pixels")
def words_beside_the_picture(sim: Any) -> None:
    """a line of a picture is longer than the picture is wide"""
    sim.draw = lambda lane=0: canvas_of(((4, 14), "health 3 of 3"))


@face("pictures_follow_the_match", "batch", "'blue' stands upon 'red 3'")
def words_upon_words(sim: Any) -> None:
    """two words of a panel stand on each other"""

    def draw(lane: int = 0) -> Canvas:
        whole = Canvas(100, 100)
        whole.put(canvas_of(((4, 14), "red 3"), ((20, 18), "blue")), (20, 20))
        return whole

    sim.draw = draw


def canvas_of(*words: tuple[tuple[float, float], str]) -> Canvas:
    """A picture of 60 x 40 pixels with words."""
    canvas = Canvas(60, 40)
    for at, text in words:
        canvas.text(at, text)
    return canvas
