"""Start of the next match: the three autoreset modes and the reset of chosen lanes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.core.faces.agent_io import MASK_KEYS
from palaestra.core.faces.joint_choices import MOST
from palaestra.core.faces.masks import split_masks
from palaestra.core.run.arrays import summed
from palaestra.game import Choice
from palaestra.pages import forms_of
from palaestra.testing.call_sequences import STEPS, Episode, opponent_specs, play_episodes
from palaestra.testing.checks.lane_checks import SHORT, compare_shown
from palaestra.testing.drivers import LANES, EnvDriver, VectorDriver, pay_ends
from palaestra.testing.harness import conformance, require
from palaestra.testing.players import Player, lane_of
from palaestra.testing.snapshot_view import difference, record_change, rows_of, snapshot_view, unlike
from palaestra.testing.subject import Subject


@conformance(order=301)
def autoreset_next_step(subject: Subject) -> None:
    """NEXT_STEP: the step after an end ignores the action and returns the first observation, reward 0 and no flags."""
    _against_scalars(subject, "next_step")


@conformance(order=302)
def autoreset_same_step(subject: Subject) -> None:
    """SAME_STEP: the step of an end returns the next first observation; the last is in final_obs and final_info."""
    _against_scalars(subject, "same_step")
    engine = subject.is_engine_game
    rounds = subject.rounds(1, 1, 20) if engine else subject.rounds(1, 2, 100)
    make = lambda: Episode(subject, subject.draw, modes=("same_step",))  # noqa: E731
    play_episodes(subject, rounds, STEPS, 10 if engine else 24, make)


@conformance(order=303)
def autoreset_off(subject: Subject) -> None:
    """DISABLED: a finished lane waits for ``reset(options={"reset_mask": ...})``, options stay as they are."""
    _against_scalars(subject, "off")
    vec = subject.vec(LANES, autoreset_mode="off")
    vec.reset(seed=subject.draw.seed())
    options = {"reset_mask": np.array([True, False, True])}
    vec.reset(options=options)
    require(list(options) == ["reset_mask"], "reset took reset_mask out of the caller's options")
    _waiting_lanes_stand_still(subject)
    _chosen_lanes_move(subject)


def _against_scalars(subject: Subject, mode: str) -> None:
    """Plays a VectorEnv against a loop over single Envs: what `gymnasium.vector.SyncVectorEnv` would return."""
    steps = ends = 0
    draw = subject.draw
    teams = list(subject.game.teams)
    for some in (True, False) if subject.level != "full" else (True,) * 9 + (False,):
        options: dict[str, Any] = {"horizon": draw.integer("horizon", 1, 2 * SHORT)} if some else {}
        if some and len(teams) > 1 and "control" not in subject.keywords:
            options["control"] = draw.choice("control", teams)
            options["opponent"] = draw.choice("opponent", opponent_specs(subject.game))
        options |= drawn_form(subject) if some else {}
        lanes = draw.integer("lanes", 2 if some else 1, 2 if subject.is_engine_game else 5)
        seed = draw.seed()
        vector = VectorDriver(subject.vec(lanes, autoreset_mode=mode, **options), seed)
        scalars = [EnvDriver(subject.env(**options), seed + i) for i in range(lanes)]
        shown = vector.start()
        for lane, scalar in enumerate(scalars):
            _compare(vector, shown, scalar.start(), lane, f"{mode}, first reset")
        for number in subject.rounds(16, 24, 300):
            ends += _one_step(subject, vector, scalars, f"{mode}, step {number}")
            steps += lanes
    subject.note(f"{steps} lane-steps, {ends} ends")


def drawn_form(subject: Subject) -> dict[str, Any]:
    """Keywords of the form in which observations, masks and actions come."""
    draw, form = subject.draw, {}
    if "observation" not in subject.keywords:
        form["observation"] = subject.shown(draw.choice("form", forms_of(subject.game)))
    if subject.game.legal is not None:
        form["mask"] = draw.choice("mask", ("info", "obs", None))
        if form["mask"] == "obs":
            form["mask_keys"] = draw.choice("mask_keys", (MASK_KEYS, ("seen", "allowed")))
    fields = [(f, len(role.agents)) for role in subject.game.roles for f in role.action]
    sizes = [f.n for f, count in fields if isinstance(f, Choice) for _ in range(f.size * count)]
    if all(isinstance(f, Choice) for f, _ in fields) and math.prod(sizes) < MOST:
        form["choices"] = draw.choice("choices", ("separate", "discrete"))
    return form


def _one_step(subject: Subject, vector: VectorDriver, scalars: list[EnvDriver], place: str) -> int:
    waiting = vector.over.copy()
    resets_only = vector.mode == "DISABLED" and waiting.any()
    result = vector.play()
    if resets_only:
        for lane in np.flatnonzero(waiting):
            _compare(vector, result, scalars[lane].play(), int(lane), f"{place}, reset_mask")
        return 0
    for lane, scalar in enumerate(scalars):
        expected = scalar.play()
        where = f"{place}, lane {lane}"
        if len(expected) == 2:  # NEXT_STEP: the scalar loop has just been reset
            _numbers(result, lane, (0.0, False, False), where)
            _compare(vector, result, expected, lane, place)
            continue
        _numbers(result, lane, expected[1:4], where)
        over = expected[2] or expected[3]
        if over and vector.mode == "SAME_STEP":
            _compare_final(vector, result[4], expected, lane, where)
            _compare(vector, result, scalar.play(), lane, place)
        else:
            _compare(vector, result, expected, lane, place)
            claimed = "final_obs" in result[4] and bool(result[4]["_final_obs"][lane])
            require(not claimed, f"{where}: final_obs without an end in this step")
    return int((result[2] | result[3]).sum())


def _numbers(result: Any, lane: int, expected: tuple[float, bool, bool], where: str) -> None:
    for name, array, value in zip(("reward", "terminated", "truncated"), result[1:4], expected, strict=True):
        require(array[lane] == value, f"{where}: {name} is {array[lane]}, a single Env has {value}")


def _compare(vector: VectorDriver, result: Any, expected: Any, lane: int, place: str) -> None:
    """Observation and info of one lane of a VectorEnv against those of a single Env."""
    found = unlike(_row(result[0], lane, expected[0]), expected[0])
    require(
        not found, f"{place}, lane {lane}: observation{' ' if found[:1].isalpha() else ''}{found} (VectorEnv and Env)"
    )
    _compare_info(vector, result[-1], expected[-1], lane, f"{place}, lane {lane}")


def _compare_info(vector: VectorDriver, infos: Any, info: Any, lane: int, where: str, of: str = "info") -> None:
    for name, value in info.items():
        require(name in infos and infos[f"_{name}"][lane], f"{where}: {of} has no {name!r}, a single Env has {value}")
        row = lane_of(infos[name], lane)
        if name == "action_mask":  # flat in the infos of a VectorEnv
            row = split_masks(vector.face.agent_io.mask_plan, row)
        found = unlike(_plain(row), _plain(value))
        require(not found, f"{where}: {of} {name}{found} (VectorEnv and Env)")
    extra = {name for name in infos if not name.startswith("_")} - {*info, "final_obs", "final_info"}
    require(not extra, f"{where}: {of} has {', '.join(sorted(extra))}, a single Env has not")


def _compare_final(vector: VectorDriver, infos: Any, expected: Any, lane: int, where: str) -> None:
    for name in ("final_obs", "final_info"):
        require(name in infos and infos[f"_{name}"][lane], f"{where}: an end without info[{name!r}]")
    found = unlike(infos["final_obs"][lane], expected[0])
    require(not found, f"{where}: final_obs{found} (VectorEnv and the last observation of an Env)")
    _compare_info(vector, infos["final_info"], expected[4], lane, where, "final_info")


def _plain(value: Any) -> Any:
    """Numbers and lists of Python's own: an Env gives a float where a VectorEnv gives a row of an array."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return np.asarray(value).tolist()


def _row(value: Any, lane: int, single: Any) -> Any:
    """What one lane has of a batched result; ``single`` is the like of an Env, whose tuples are batched by member."""
    if isinstance(value, dict):
        return {k: _row(v, lane, single.get(k) if isinstance(single, dict) else None) for k, v in value.items()}
    if isinstance(single, tuple):
        return tuple(_row(member, lane, one) for member, one in zip(value, single, strict=True))
    row = value[lane]
    return row if row is None else np.array(row)  # None: a choice without a mask


def _waiting_lanes_stand_still(subject: Subject) -> None:
    sim = subject.batch(4, autoreset_mode="off", horizon=2)
    player = Player(sim)
    sim.reset(seed=subject.draw.seed())
    for _ in range(2):
        player.play(sim)
        sim.step()
    sim.reset(np.array([True, False, True, False]))
    still, states = snapshot_view(sim), sim.states.copy()
    player.play(sim)
    sim.step()
    for lane in (1, 3):
        changed = record_change(sim, states, lane)
        require(not changed, f"lane {lane} waits for a reset, but a step changed its record: {changed}")
        rows = slice(lane, lane + 1)
        found = difference(
            subject.game, rows_of(still, rows), rows_of(snapshot_view(sim), rows), lane, ("rewards", "agent_terminated")
        )
        require(not found, f"{found}: the lane waits for a reset, a step may not change it")
        require(not sim.rewards[lane].any(), f"lane {lane} waits for a reset but has the rewards {sim.rewards[lane]}")


def _chosen_lanes_move(subject: Subject) -> None:
    """Two steps, of some lanes and of the others, are a step of all."""
    draw, lanes = subject.draw, 3
    seed = draw.seed()
    whole, parts = (VectorDriver(subject.vec(lanes, autoreset_mode="off"), seed) for _ in range(2))
    for driver in (whole, parts):
        driver.start()
    for number in range(4):
        result = whole.play()
        which = draw.mask("step mask", lanes)
        some, others = (parts.face.step(whole.given, options={"step_mask": each}) for each in (which, ~which))
        where = f"decision {number}, a step of the lanes {which} and one of the others"
        found = unlike(result[0], others[0])
        require(not found, f"{where}: {found} (in one step, and in two)")
        paid = some[1][~which].any() or others[1][which].any()
        require(not paid, f"{where}: a lane that is left out is paid: {some[1]} and {others[1]}")
        for k, name in ((1, "rewards"), (2, "terminated"), (3, "truncated")):
            own = np.where(which, some[k], others[k])
            require(np.array_equal(own, result[k]), f"{where}: {name} are {own}, in one step {result[k]}")
        if whole.over.any():
            break


@conformance(order=304)
def masked_reset_keeps_other_lanes(subject: Subject) -> None:
    """A reset of chosen lanes starts their next matches and leaves the record and results of all others alone."""
    draw = subject.draw
    for mode in ("next_step", "same_step", "off"):
        lanes, seed = draw.integer("lanes", 2, 3 if subject.is_engine_game else 6), draw.seed()
        options = {"autoreset_mode": mode, "horizon": draw.integer("horizon", 2, 12)}
        sim = subject.batch(lanes, **options)
        singles = [subject.batch(1, **options) for _ in range(lanes)]
        simulations = [sim, *singles]
        players = [Player(s) for s in simulations]
        for offset, s in enumerate(simulations):
            s.reset(seed=seed + max(0, offset - 1))
        moments = draw.integer("first mask after", 1, 4), draw.integer("second mask after", 4, 6)
        for number in range(1, 8):
            for s, player in zip(simulations, players, strict=True):
                player.play(s)
                s.step()
            if number not in moments:
                continue
            which = draw.mask("reset mask", lanes)
            before, records = snapshot_view(sim), sim.states.copy()
            sim.reset(which)
            for lane, single in enumerate(singles):
                where = (
                    f"lane {lane} ({'' if which[lane] else 'not '}in the mask), autoreset_mode={mode!r}, step {number}"
                )
                rows = slice(lane, lane + 1)
                if which[lane]:
                    single.reset()
                    found = difference(subject.game, rows_of(snapshot_view(sim), rows), snapshot_view(single), lane)
                    require(not found, f"{where}: {found} (reset by mask, and alone)")
                else:
                    found = difference(subject.game, rows_of(before, rows), rows_of(snapshot_view(sim), rows), lane)
                    require(not found, f"{where}: {found} (before and after the reset of others)")
                    changed = record_change(sim, records, lane)
                    require(not changed, f"{where}: the reset of others changed the match record: {changed}")


@conformance(order=305)
def modes_show_the_same_matches(subject: Subject) -> None:
    """In each autoreset mode a VectorEnv pays, ends and shows what a batch without autoreset does, lane by lane.

    Matches that are cut together are paid too; what is last seen of a match has its own masks, not those of the next.
    """
    masks: tuple[Any, ...] = ("info", "obs") if subject.game.legal is not None else (None,)
    compared = 0
    for mode in ("same_step", "next_step", "off"):
        for mask in masks if mode == "same_step" else masks[:1]:
            compared += _beside_batch(subject, mode, mask)
    subject.note(f"{compared} lane-steps")


def _beside_batch(subject: Subject, mode: str, mask: Any) -> int:
    draw, game = subject.draw, subject.game
    lanes, horizon = draw.integer("lanes", 3, 3 if subject.is_engine_game else 6), draw.integer("horizon", 1, 3)
    options: dict[str, Any] = {"autoreset_mode": mode, "mask": mask, "horizon": horizon}
    teams, others = list(game.teams), {}
    team = subject.keywords.get("control") or draw.choice("control", teams)
    if len(teams) > 1:
        options |= {"control": team, "opponent": draw.choice("opponent", opponent_specs(game))}
        others = {other: options["opponent"] for other in teams if other != team}
    vec = subject.vec(lanes, observation=subject.shown("dict"), **options)
    sim, batch = vec.sim, subject.batch(lanes, autoreset_mode="off", opponents=others, horizon=horizon)
    sim.set_parameters([0], horizon=horizon + 1)  # the others are cut together
    batch.set_parameters([0], horizon=horizon + 1)
    seed, words, step = draw.seed(), sim.buffers.action_words.copy(), sim.step

    def noted_step(*given: Any, **keywords: Any) -> None:
        words[...] = sim.buffers.action_words  # before the rules replace what is illegal
        step(*given, **keywords)

    sim.step = noted_step
    for each in (sim, batch):
        pay_ends(each)
    driver = VectorDriver(vec, seed)
    batch.reset(seed=seed)
    _same_shown(vec, batch, driver.start(), np.zeros(lanes, np.bool_), f"{mode}, first reset")
    most = 60 if subject.level == "full" else 2 * horizon + 2
    for number in range(most):
        place = f"{mode}, decision {number}"
        waiting = driver.over & (mode != "same_step")
        result = driver.play()
        if waiting.any():
            batch.reset(waiting)
        if len(result) == 2:
            _same_shown(vec, batch, result, np.zeros(lanes, np.bool_), place)
            continue
        batch.buffers.action_words[...] = words
        batch.step(lanes=~waiting)
        own = list(vec.agent_io.slots)
        paid = summed(batch.rewards[:, own]) if game.reward == "agent" else batch.rewards[:, own[0]]
        for name, given, wanted in zip(
            ("rewards", "terminated", "truncated"),
            result[1:4],
            (paid, batch.terminated & ~waiting, batch.truncated & ~waiting),
            strict=True,
        ):
            wrong = np.flatnonzero(given != wanted)
            require(not len(wrong), f"{place}, lanes {wrong}: {name} are {given[wrong]}, in the batch {wanted[wrong]}")
        over = (batch.terminated | batch.truncated) & ~waiting
        if mode == "same_step" and over.any():
            finals = result[-1].get("final_obs"), result[-1].get("final_info")
            require(finals[0] is not None and finals[1], f"{place}: an end without final_obs and final_info")
            _same_shown(vec, batch, finals, over, f"{place}, final", over)
            batch.reset(over)
            over = np.zeros_like(over)
        _same_shown(vec, batch, result, over, place)
    return lanes * most


def _same_shown(
    vec: Any, batch: Any, result: Any, over: np.ndarray, place: str, lanes: np.ndarray | None = None
) -> None:
    """Observations and infos of a VectorEnv against the arrays of a batch, of all lanes or of some."""
    own = {
        name: value for name, value in result[-1].items() if f"_{name}" in result[-1] and not name.startswith("final")
    }
    for lane in range(batch.num_envs) if lanes is None else np.flatnonzero(lanes).tolist():
        seen = result[0][lane] if lanes is not None else lane_of(result[0], lane)
        given = seen, lane_of(own, lane)
        compare_shown(batch, vec.agent_io.slots, vec.agent_io, given, bool(over[lane]), lane, f"{place}, lane {lane}")
