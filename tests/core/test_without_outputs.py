"""Results without observations and masks: for search, which asks what joint actions from a position lead to."""

import copy
from typing import Any

import numpy as np
import pytest
from games import body_game, hauliers, orchard, relay
from games.play import all_bytes, idle_actions, leaves, random_actions, simulation

import palaestra
from palaestra.core.run.buffers import rows_of_bytes
from palaestra.replay import Recorder

pytestmark = pytest.mark.jitless

GAMES = {"orchard": orchard.game(), "relay": relay.game(), "hauliers": hauliers.game(teams=2)}
N = 6
SOME = np.array([True, False, True, True, False, False])
RESULTS = ("rewards", "terminated", "truncated", "winners", "end_reasons", "agent_terminated")


def started(name: str, **options: Any) -> Any:
    sim = simulation(GAMES[name], N, autoreset_mode="off", **options)
    sim.reset(seed=3)
    return sim


def runs_of_equal_records(name: str) -> np.ndarray:
    """Records of six lanes in the middle of a match: three equal ones, two, and one."""
    sim = started(name)
    sim.step(idle_actions(sim))
    return sim.states[[0, 0, 0, 1, 1, 2]].copy()


def results(sim: Any) -> list[bytes]:
    return [rows_of_bytes(sim.states).tobytes(), *(getattr(sim.buffers, name).tobytes() for name in RESULTS)]


def write_actions(sim: Any, rng: np.random.Generator) -> np.ndarray:
    """Writes actions inside their spaces, about two in three of them legal by the masks. Returns all action words."""
    sim.write_actions(random_actions(sim, rng))
    table = sim.action_table
    for number, word in enumerate(table.words):
        if word["n"] > 0:
            allowed = table.allowed(sim.buffers.mask_bytes, number)
            chosen = (allowed * rng.random(allowed.shape)).argmax(axis=1)
            keeps = rng.random(N) < 1 / 3
            sim.buffers.action_words[~keeps, word["column"]] = chosen[~keeps]
    return sim.buffers.action_words.copy()


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "threads"),
    [("orchard", 1), ("orchard", 2), ("relay", 1), pytest.param("hauliers", 2, marks=pytest.mark.check)],
)
def test_any_order_of_calls_has_the_results_that_it_has_with_outputs(name: str, threads: int):
    quiet, twin, source = started(name, threads=threads), started(name), started(name)
    rng = np.random.default_rng(0)
    for number in range(40):
        lanes = SOME if rng.random() < 0.3 else rng.random(N) < 0.5 if rng.random() < 0.3 else None
        call, outputs = rng.integers(5), rng.random() < 0.5
        if call == 0:
            count = N if lanes is None else int(lanes.sum())
            records = source.states[np.sort(rng.integers(3, size=count))].copy()
            quiet.load_states(records, lanes, outputs=outputs)
            twin.load_states(records, lanes)
        elif call == 1:
            for sim in (quiet, twin):
                sim.reset(lanes) if number % 2 else sim.refresh(lanes)
        else:
            words = write_actions(twin, rng)
            for sim in (quiet, source):
                sim.buffers.action_words[...] = words
            quiet.step(None, lanes, outputs=outputs)
            twin.step(None, lanes)
            source.step()
        assert results(quiet) == results(twin), f"call {number}"
    for sim in (quiet, twin):
        sim.refresh()
    np.testing.assert_array_equal(all_bytes(quiet), all_bytes(twin))
    quiet.close()


def test_equal_records_side_by_side_share_the_masks_of_the_first():
    sim = started("orchard")
    records = runs_of_equal_records("orchard")
    sim.load_states(records, outputs=False)
    assert sim.buffers.mask_rows.tolist() == [-1, 0, 0, -1, 3, -1]
    sim.load_states(records[[0, 0, 1]], SOME, outputs=False)
    assert sim.buffers.mask_rows.tolist() == [-1, -1, 0, 0, -1, -1]
    sim.step(idle_actions(sim), outputs=False)
    assert sim.buffers.mask_rows.tolist() == [-1] * N
    sim.step(idle_actions(sim))
    assert sim.buffers.mask_rows.tolist() == list(range(N))


def test_observations_and_masks_are_left_as_they_are():
    sim = started("orchard")
    sim.load_states(runs_of_equal_records("orchard"))
    shown = [rows_of_bytes(sim.buffers.observations).copy(), sim.buffers.mask_bytes.copy()]
    sim.step(random_actions(sim, np.random.default_rng(0)), outputs=False)
    np.testing.assert_array_equal(rows_of_bytes(sim.buffers.observations), shown[0])
    np.testing.assert_array_equal(sim.buffers.mask_bytes, shown[1])


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lanes", [None, SOME], ids=["all lanes", "some lanes"])
def test_what_is_legal_only_at_first_is_illegal_in_the_second_decision(lanes: Any, threads: int, outputs: bool):
    sim = started("orchard", threads=threads)
    sim.load_states(runs_of_equal_records("orchard"), outputs=False)
    actions = idle_actions(sim)
    actions["carrier"]["loads"][:, 0, 0] = orchard.GOODS - 1  # after an odd number of decisions
    moved = np.ones(N, bool) if lanes is None else lanes
    sim.step(actions, lanes, outputs=False)
    assert not sim.info["illegal"].any()
    sim.step(actions, outputs=outputs)  # the others are still held to what was legal for their records
    assert sim.info["illegal"][:, orchard.PICKERS - 1].tolist() == moved.astype(int).tolist()
    sim.close()


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("way", ["refresh", "restore", "step", "load_states", "reset", "copy"])
def test_a_call_with_outputs_shows_everything_again(way: str, name: str):
    sim, twin = started(name), started(name)
    records, actions = runs_of_equal_records(name), random_actions(sim, np.random.default_rng(1))
    for each, outputs in ((sim, False), (twin, True)):
        each.load_states(records, outputs=outputs)
        each.step(actions, outputs=outputs)
    if way == "copy":
        sim, twin = copy.deepcopy(sim), copy.deepcopy(twin)
    for each in (sim, twin):
        if way in ("step", "copy"):
            each.step(actions)
        elif way == "restore":
            each.restore(each.snapshot())
        elif way == "load_states":
            each.load_states(records[::-1])
        elif way == "reset":
            each.reset(seed=8)
        else:
            each.refresh()
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_places_beyond_a_list_are_minus_one_whatever_the_memory_held():
    sim, other = started("hauliers"), started("hauliers")
    sim.buffers.mask_bytes[...] = 7
    sim.refresh()
    np.testing.assert_array_equal(sim.buffers.mask_bytes, other.buffers.mask_bytes)
    listed = sim.legal["orders"][0, 0]
    beyond = np.arange(hauliers.ROOM) >= listed["count"][:, None]
    assert (listed["ids"] == -1)[beyond].all()
    assert (listed["ids"] >= 0)[~beyond].all()


def test_a_game_that_forbids_nothing_is_played_without_outputs_too():
    sim, twin = (palaestra.make_batch("palaestra/CartPole-v0", 3, autoreset_mode="off") for _ in range(2))
    for each, outputs in ((sim, False), (twin, True)):
        each.reset(seed=1)
        each.load_states(each.states[[0, 0, 1]].copy(), outputs=outputs)
        each.step([[0], [1], [1]], outputs=outputs)
    assert results(sim) == results(twin)
    assert (leaves(sim.observations)[0] != leaves(twin.observations)[0]).any()


def test_a_match_that_is_to_start_is_started():
    records = started("orchard").states.copy()
    records["pending"][::2] = 1
    quiet, twin = started("orchard"), started("orchard")
    for sim, outputs in ((quiet, False), (twin, True)):
        sim.load_states(records, outputs=outputs)
        for _ in range(2):
            sim.step(idle_actions(sim), outputs=outputs)
    assert results(quiet) == results(twin)
    assert quiet.states["steps"].tolist() == [1, 2] * 3


class Idle:
    """A Python opponent that does nothing and keeps what it saw."""

    memory_size = 0
    seen: Any = None

    def act(self, observations, legal, acting, first, seeds, memory):
        self.seen = copy.deepcopy((observations, legal))
        return {"picker": np.zeros((len(seeds), 1), np.int64), "carrier": np.zeros((len(seeds), 1), CARRIED)}


CARRIED = GAMES["orchard"].action_dtype["carrier"].base


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_matches_that_start_anew_by_themselves_are_refused(mode: Any):
    sim = simulation(GAMES["orchard"], N, autoreset_mode=mode)
    sim.reset(seed=1)
    before = results(sim)
    with pytest.raises(ValueError, match=rf'step\(outputs=False\) needs autoreset_mode="off", got \'{mode}\''):
        sim.step(idle_actions(sim), outputs=False)
    assert results(sim) == before
    sim.load_states(sim.states.copy(), outputs=False)
    sim.step(idle_actions(sim))


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_match_that_ends_in_the_first_step_with_outputs_shows_its_end(mode: Any):
    sims = [simulation(GAMES["orchard"], N, autoreset_mode=mode, parameters={"horizon": 2}) for _ in range(2)]
    for sim, outputs in zip(sims, (False, True), strict=True):
        sim.reset(seed=1)
        records = sim.states[[2, 2, 0, 0, 4, 5]].copy()
        records["steps"][:3] = 1
        sim.load_states(records, outputs=outputs)
        sim.step(idle_actions(sim))
    quiet, twin = sims
    assert quiet.truncated.tolist() == [True] * 3 + [False] * 3
    np.testing.assert_array_equal(all_bytes(quiet), all_bytes(twin))
    for mine, its in zip(*(leaves(sim.final_observations) for sim in sims), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_who_reads_observations_is_a_reason_to_refuse():
    sim = palaestra.make_batch("palaestra/CartPole-v0", 2, autoreset_mode="off")
    sim.reset(seed=1)
    records = sim.states.copy()
    with Recorder(sim):
        with pytest.raises(ValueError, match=r"step\(outputs=False\): the recorder reads observations"):
            sim.step(idle_actions(sim), outputs=False)
        with pytest.raises(ValueError, match=r"load_states\(outputs=False\): the recorder reads"):
            sim.load_states(records, outputs=False)
    sim = started("orchard")
    sim.load_states(sim.states.copy(), outputs=False)
    sim.set_opponent("blue", Idle())
    with pytest.raises(ValueError, match=r"step\(outputs=False\): the Python opponent of blue reads"):
        sim.step(idle_actions(sim), outputs=False)


def test_a_player_that_comes_later_is_shown_what_is():
    records, players, sims = (
        runs_of_equal_records("orchard"),
        (Idle(), Idle()),
        (started("orchard"), started("orchard")),
    )
    for sim, player, outputs in zip(sims, players, (False, True), strict=True):
        sim.load_states(records, outputs=outputs)
        sim.step(idle_actions(sim), outputs=outputs)
        sim.set_opponent("blue", player)
        sim.step(idle_actions(sim))
    np.testing.assert_equal(players[0].seen, players[1].seen)
    assert results(sims[0]) == results(sims[1])


def test_an_engine_outside_is_refused():
    sim = simulation(body_game.game(), 2, autoreset_mode="off")
    sim.reset(seed=1)
    with pytest.raises(ValueError, match=r"step\(outputs=False\) is for compiled rules .* an engine outside moves"):
        sim.step(idle_actions(sim), outputs=False)


@pytest.mark.check
def test_worker_processes_are_refused():
    sim = palaestra.make_batch("palaestra/CartPole-v0", 2, autoreset_mode="off", workers=2)
    sim.reset(seed=1)
    with pytest.raises(ValueError, match=r"load_states\(outputs=False\) is for .* worker processes play"):
        sim.load_states(sim.states.copy(), outputs=False)
    sim.close()
