"""Small sound games in which single rules can be broken by number: ``fault=3`` breaks the third, ``fault=0`` none.

Two are here, a third is in `broken_crowd`. All faults share one compiled game each, so that planting fifty of them
costs three compilations.
"""

from __future__ import annotations

import multiprocessing
import re
from dataclasses import replace

import numpy as np

from palaestra.game import (
    AgentView,
    Choice,
    Continuous,
    Field,
    Game,
    Parameter,
    Role,
    TextSpace,
    integer,
    script_integer,
    script_uniform,
    uniform,
)

SOUND = 0
FAULTS = (
    "none",
    "lanes share their dice",
    "matches remember earlier ones",
    "lanes share scratch",
    "worker processes play on",
    "observation above its bound",
    "observation is NaN",
    "infinite reward",
    "one member is paid",
    "rewards do not add up",
    "empty mask",
    "script plays illegally",
    "end without a reason",
    "winner out of nowhere",
    "the dead come back",
    "horizon moves",
    "illegal actions hurt",
    "script throws the dice of the rules",
    "script heals itself",
    "start depends on the luck of scripts",
    "script pulls too hard",
    "state is infinite",
    "pictures wound",
    "codec talks too long",
    "rope leans to red",
    "blue sees badly",
    "codec writes into the row",
    "codec stumbles",
    "codec promises too much",
    "codec pulls too hard",
    "rope grows",
    "rope is lost in the end",
    "hidden slot is alive",
    "hidden slot is paid",
    "candidate beyond the goals",
    "candidate offered twice",
    "more candidates than room",
    "speed beyond its checked range",
    "table beyond its bounds",
    "terminated by the reason of a truncation",
    "truncated by the reason of a rule",
    "one walker is paid",
    "script peeks",
    "info beyond its bounds",
    "codec tells arrays",
)
NUMBER = {name: number for number, name in enumerate(FAULTS)}
(
    SHARED_RNG, REMEMBERS, SHARED_SCRATCH, IN_WORKER, ABOVE_BOUND, NOT_A_NUMBER, INFINITE_REWARD, ONE_PAID,
    NOT_ZERO_SUM, EMPTY_MASK, ILLEGAL_SCRIPT, NO_REASON, ODD_WINNER, RESURRECTION, MOVING_HORIZON, HURTING_ILLEGAL,
    SCRIPT_RNG, SCRIPT_HEALS, SCRIPT_START, SCRIPT_PULLS, INFINITE_STATE, PICTURES_WOUND, CODEC_TALKS,
    ROPE_LEANS, BLUE_BLINKS, CODEC_WRITES, CODEC_STUMBLES, CODEC_PROMISES, CODEC_PULLS,
    ROPE_GROWS, ROPE_IS_LOST, HIDDEN_ALIVE, HIDDEN_PAID, BEYOND_GOALS, OFFERED_TWICE, TOO_MANY, TOO_FAST, TABLE_BEYOND,
    TERMINATED_AS_LOST, TRUNCATED_AS_MET, ONE_WALKER_PAID, SCRIPT_PEEKS, INFO_BEYOND, CODEC_TELLS,
) = range(1, len(FAULTS))  # fmt: skip

IS_WORKER = float(multiprocessing.current_process().name.startswith("palaestra-worker"))
FAULT = Parameter("fault", SOUND, 0, len(FAULTS) - 1, "1", "number of the planted fault")

# -- duel: two against two on a line, with masks, deaths and scripts ---------------------------------------------------

WAIT, LEFT, RIGHT, STRIKE = range(4)
PLACES, HEALTH, CHARGE = 5, 3.0, 2
RED, BLUE = 0, 1
WIPED_OUT = 2
STRIKER, WALKER = 0, 1
FIGHTER = Role(
    "fighter",
    ("red_0", "red_1", "blue_0", "blue_1"),
    (
        Field("health", (), 0, HEALTH, "1", "left"),
        Field("place", (), 0, PLACES - 1, "1", "on the line"),
        Field("charge", (), 0, CHARGE, "1", "of the weapon"),
        Field("opponents_health", (2,), 0, HEALTH, "1", "left to each of them"),
    ),
    (Choice("move", 4, ("wait", "left", "right", "strike")),),
)


def reset(s, world):
    fault = s.parameters.fault
    for a in range(4):
        s.health[a] = HEALTH
        s.place[a] = integer(s, PLACES)
        if fault == SCRIPT_START:
            s.place[a] = script_integer(s, PLACES)
    if fault == IN_WORKER and IS_WORKER == 1.0:
        s.place[0] = (s.place[0] + 1) % PLACES


def walk(s, a, move):
    if move == WAIT:
        s.charge[a] = min(s.charge[a] + 1, CHARGE)
    elif move == LEFT:
        s.place[a] -= 1
    elif move == RIGHT:
        s.place[a] += 1
    elif move == STRIKE:
        s.charge[a] -= 1


def strike(s, a, damage):
    """Hits every opponent next to the striker; a random number is drawn for each of them, hit or not."""
    points = 0.0
    first = 2 if a < 2 else 0
    for b in range(first, first + 2):
        draw = uniform(s, 0.0, 1.0)
        if damage[a] > 0.0 and s.alive[b] and abs(s.place[a] - s.place[b]) <= 1 and draw < 0.8:
            s.health[b] = max(s.health[b] - damage[a], 0.0)
            points += damage[a]
    return points


def step(s, world, actions, rewards, scratch):
    fault = s.parameters.fault
    for a in range(4):
        if fault != SHARED_SCRATCH:
            scratch.damage[a] = 0.0
        walk(s, a, actions.fighter[a].move)
        if actions.fighter[a].move == STRIKE:
            scratch.damage[a] += 1.0
        if fault == HURTING_ILLEGAL and s.info.illegal[a] > 0:
            s.health[a] = max(s.health[a] - 0.5, 0.0)
    points = 0.0
    for a in range(4):
        gained = strike(s, a, scratch.damage)
        points += gained if a < 2 else -gained
    if fault in (SHARED_RNG, REMEMBERS):
        scratch.decisions += 1
        s.place[0] = (s.place[0] + scratch.decisions) % PLACES
    for a in range(4):
        s.alive[a] = s.alive[a] and s.health[a] > 0.0
        rewards[a] = points if a < 2 else -points
    if fault == RESURRECTION and s.steps % 7 == 0:
        for a in range(4):
            s.alive[a] = 1
            s.health[a] = HEALTH
    break_rewards(fault, s.steps, rewards)
    if fault == MOVING_HORIZON and s.steps == 3:
        s.parameters.horizon += 1.0
    if fault == ODD_WINNER:
        s.info.winner = s.steps % 2
    return evaluate_match(s, fault)


def break_rewards(fault, steps, rewards):
    if fault == INFINITE_REWARD and steps % 11 == 10:
        for a in range(4):
            rewards[a] = np.inf if a < 2 else -np.inf
    if fault == ONE_PAID:
        rewards[1] = 0.0
        rewards[3] = 0.0
    if fault == NOT_ZERO_SUM:
        rewards[2] *= 0.5
        rewards[3] *= 0.5


def evaluate_match(s, fault):
    red = s.alive[0] or s.alive[1]
    blue = s.alive[2] or s.alive[3]
    if red and blue:
        return False
    if fault != NO_REASON:
        s.info.end_reason = WIPED_OUT
    if red or blue:
        s.info.winner = RED if red else BLUE
    return True


def observe(s, world, observations, scratch):
    fault = s.parameters.fault
    for a in range(4):
        if not s.alive[a]:
            continue
        seen = observations.fighter[a]
        seen.health, seen.place, seen.charge = s.health[a], s.place[a], s.charge[a]
        first = 2 if a < 2 else 0
        for k in range(2):
            seen.opponents_health[k] = s.health[first + k]
        if fault == ABOVE_BOUND and a == 2 and s.charge[a] == CHARGE:
            seen.charge = CHARGE + 1
        if fault == NOT_A_NUMBER and a == 3 and s.steps == 4:
            seen.place = np.nan
    observations.lane.time_left = max(0.0, 1.0 - s.steps / s.parameters.horizon)


def legal(s, world, mask):
    for a in range(4):
        allowed = mask.fighter[a].move
        allowed[WAIT] = 1
        allowed[LEFT] = s.place[a] > 0
        allowed[RIGHT] = s.place[a] < PLACES - 1
        allowed[STRIKE] = s.charge[a] > 0
        if s.parameters.fault == EMPTY_MASK and s.charge[a] == 0 and s.place[a] == 0:
            for move in range(4):
                allowed[move] = 0


def script(s, world, slot, which, actions, scratch):
    """0 "striker": strikes whenever it can; 1 "walker": wanders."""
    fault = s.parameters.fault
    move = STRIKE if s.charge[slot] > 0 else WAIT
    if which == WALKER:
        move = LEFT if script_uniform(s, 0.0, 1.0) < 0.5 else RIGHT
        if (move == LEFT and s.place[slot] == 0) or (move == RIGHT and s.place[slot] == PLACES - 1):
            move = WAIT
    if fault == ILLEGAL_SCRIPT:
        move = STRIKE
    if fault == SCRIPT_PEEKS and actions.fighter[(slot + 2) % 4].move == STRIKE:
        move = WAIT
    if fault == SCRIPT_RNG:
        uniform(s, 0.0, 1.0)
    if fault == SCRIPT_HEALS:
        s.health[slot] = HEALTH
    actions.fighter[slot].move = move


def global_state(s, world, out):
    for a in range(4):
        out[a] = s.health[a] if s.parameters.fault != INFINITE_STATE else np.inf
        out[4 + a] = s.place[a]


def draw(game, world, s):
    """One column a place, one row a fighter."""
    picture = np.zeros((4, PLACES, 3), np.uint8)
    for a in range(4):
        picture[a, s["place"][a]] = 50 + 60 * int(s["health"][a])
    if s["parameters"]["fault"] == PICTURES_WOUND:
        s["health"][0] -= 0.25
    return picture


def duel() -> Game:
    """Two against two on a line."""
    return Game(
        name="Duel",
        roles=(FIGHTER,),
        state=(("health", "f8", (4,)), ("place", "i8", (4,)), ("charge", "i8", (4,))),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=script,
        scripts=("striker", "walker"),
        parameters=(FAULT,),
        horizon=30,
        end_reasons=("wiped_out",),
        lane_observation=(Field("time_left", (), 0, 1, "1", "share of the match"),),
        global_state=global_state,
        global_state_size=8,
        scratch=(("damage", "f8", (4,)), ("decisions", "i8")),
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="striker",
        render="testing.broken_games:draw",
    )


def apart() -> Game:
    """The duel with rewards for each agent, which the dead get too."""
    return replace(duel(), name="Apart", zero_sum=False, reward="agent")


# -- tug: one against one with real numbers ----------------------------------------------------------------------------

PULLER = Role(
    "puller",
    ("red_0", "blue_0"),
    (
        Field("knot_m", (), -2.1, 2.1, "m", "positive towards me"),
        Field("rope_m", (), 0.0, 60.0, "m", "length of the rope", at="reset"),
    ),
    (Continuous("pull", (), -0.3, 0.7, "1", "negative gives way"), Continuous("stance", (2,), about="feet")),
)


def reset_tug(s, world):
    s.knot_m = uniform(s, -0.1, 0.1)
    s.rope_m = uniform(s, 10.0, 12.0)


def step_tug(s, world, actions, rewards, scratch):
    s.knot_m += actions.puller[0].pull - actions.puller[1].pull
    s.knot_m += 0.01 if integer(s, 2) == 1 else -0.01  # it slips
    if s.parameters.fault == ROPE_LEANS:
        s.knot_m += 1e-9
    if abs(s.knot_m) < 1.0:
        return False
    s.info.end_reason = 2
    s.info.winner = RED if s.knot_m > 0.0 else BLUE
    rewards[0] = 1.0 if s.knot_m > 0.0 else -1.0
    rewards[1] = -rewards[0]
    return True


def observe_tug(s, world, observations, scratch):
    observations.puller[0].knot_m = s.knot_m
    observations.puller[1].knot_m = -s.knot_m if s.parameters.fault != BLUE_BLINKS else -0.9 * s.knot_m
    if s.parameters.fault == ROPE_GROWS and s.steps > 0:
        observations.puller[1].rope_m = s.rope_m + s.steps
    if s.parameters.fault == ROPE_IS_LOST and s.info.end_reason > 0:
        observations.puller[0].rope_m = 0.0


def observe_reset_tug(s, world, observations, scratch):
    for k in range(2):
        observations.puller[k].rope_m = s.rope_m


def mirror_tug(states, actions):
    states["knot_m"] *= -1.0
    actions["puller"] = actions["puller"][:, ::-1].copy()


def script_tug(s, world, slot, which, actions, scratch):
    """0 "strong": pulls as hard as it can."""
    actions.puller[slot].pull = 0.7 if s.parameters.fault != SCRIPT_PULLS else 2.0


def a_pull(generator: np.random.Generator) -> str:
    return f"pull {generator.choice(('0.0', '0.6', '-0.2'))}"


class Words:
    """``"0.25"`` and ``"pull 0.5"``, with faults of its own."""

    def __init__(self, fault: int) -> None:
        self._fault = fault
        self.total = fault in (CODEC_PROMISES, CODEC_PULLS)

    def observation_space(self, role: Role) -> TextSpace:
        return TextSpace(5, charset="-.0123456789")

    def action_space(self, role: Role) -> TextSpace:
        return TextSpace(9, charset="pul -.0123456789", samples=a_pull)

    def encode(self, view: AgentView) -> str:
        if self._fault == CODEC_WRITES:
            view.row["knot_m"] += 1.0
        return f"{float(view.row['knot_m']):.{20 if self._fault == CODEC_TALKS else 2}f}"

    def info(self, view: AgentView) -> dict:
        knot_m = view.row["knot_m"]
        return {"knot": knot_m if self._fault == CODEC_TELLS else f"{float(knot_m):.2f} m"}

    def encode_action(self, view: AgentView, action: np.ndarray) -> str:
        if action[0] < -0.24 or action[0] > 0.64 or np.any(action[1:]):
            raise ValueError("nobody can say so")
        return f"pull {action[0]:.1f}"

    def decode(self, view: AgentView, action: str) -> list[float]:
        if self._fault == CODEC_PULLS:
            return [2.0, 0.0, 0.0]
        if not re.fullmatch(r"pull (0\.[0-6]|-0\.[0-2])", action):
            if self._fault == CODEC_STUMBLES:
                raise KeyError(action)
            raise ValueError(f"say 'pull -0.2' to 'pull 0.6', not {action!r}")
        return [float(action[5:]), 0.0, 0.0]


def tug(words: int = 0) -> Game:
    """A rope, two pullers."""
    return Game(
        name="Tug",
        roles=(PULLER,),
        state=(("knot_m", "f8"), ("rope_m", "f8")),
        reset=reset_tug,
        step=step_tug,
        observe=observe_tug,
        observe_reset=observe_reset_tug,
        script=script_tug,
        scripts=("strong",),
        parameters=(FAULT,),
        horizon=40,
        end_reasons=("dragged_over",),
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="strong",
        codecs={"words": Words(words)},
        symmetric_teams=True,
        mirror=mirror_tug,
    )


class ForgivingWords(Words):
    """Pulls nothing where it does not understand."""

    def __init__(self) -> None:
        super().__init__(SOUND)
        self.total = True

    def decode(self, view: AgentView, action: str) -> list[float]:
        try:
            return super().decode(view, action)
        except ValueError:
            return [0.0, 0.0, 0.0]


def spoken() -> Game:
    """The same, with a text codec by default."""
    return replace(tug(), codecs={"words": ForgivingWords()}, default_codec="words")


def half_documented() -> Game:
    """A page without most of its sections.

    ## Description

    A rope.

    ## Action Space

    Pull.
    """
    return tug()
