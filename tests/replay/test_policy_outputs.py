"""What players computed for their decisions: recorded beside them, kept in the file, and shown on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from replay.test_page import read, unpacked

from palaestra import make_batch
from palaestra.replay import Recorder, Replay, ReplayError, load, record, verify
from palaestra.replay.page import make_page

ID = "palaestra/TeamTag-v0"
CHASERS, MOVES = 3, 5


class Teller:
    """Plays at random and tells numbers by which each decision is known again."""

    memory_size = 1
    policy_outputs: dict[str, np.ndarray]

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        memory[:, 0] += 1
        place = np.arange(CHASERS * MOVES, dtype=np.float64).reshape(CHASERS, MOVES)
        value = np.repeat(memory[:, :1], CHASERS, 1) + np.array([0.0, 0.25, 0.5])
        self.policy_outputs = {"probability": place + 16 * memory[:, :1, None], "value": value}
        return np.zeros((len(observations), CHASERS), np.int64)


def play(check: Any = None, **keywords: Any) -> Replay:
    """Two lanes of a teller's match. Each is left out once; the second one starts anew after four decisions."""
    sim = make_batch(ID, 2, autoreset_mode="off")
    sim.set_opponent("red", Teller() if check is None else check)
    sim.set_opponent("blue", "default")
    with Recorder(sim, **{"keep_outputs": True, **keywords}) as recorder:
        sim.reset(seed=1)
        for k in range(8):
            if k == 4:
                sim.reset(np.array([False, True]))
            sim.step(lanes=np.array([k != 2, k != 6]))
    sim.close()
    return recorder.replay()


def test_outputs_of_every_decision_and_lane_are_kept():
    replay = play()
    assert replay.output_columns == {"red": {"probability": MOVES, "value": 1}}
    assert replay.outputs.shape == (8, 2, CHASERS * (MOVES + 1))
    place = np.arange(CHASERS * MOVES)
    for lane, numbers in ((0, [1, 2, None, 3, 4, 5, 6, 7]), (1, [1, 2, 3, 4, 1, 2, None, 3])):
        for decision, number in enumerate(numbers):
            row = replay.outputs[decision, lane]
            if number is None:
                assert np.isnan(row).all()
            else:
                assert row.tolist() == [*(16 * number + place), number, number + 0.25, number + 0.5]


def test_outputs_of_players_of_single_agents_stand_at_these_agents_alone():
    sim = make_batch(ID, 2, autoreset_mode="off", opponents={"blue": "default"})
    sim.set_opponent("red_0", Teller())
    sim.set_opponent("red_2", Teller(), lanes=[1])
    with Recorder(sim, keep_outputs=True) as recorder:
        sim.reset(seed=1)
        sim.step(np.zeros((2, 4), np.int64))
    replay, place = recorder.replay(), np.arange(CHASERS * MOVES).reshape(CHASERS, MOVES) + 16
    assert verify(replay).ok
    assert replay.outside == {"red_0": ["Teller"], "red_2": ["Teller"]}
    assert replay.players["red"] == "red_0 Teller; red_1 caller; red_2 Teller"
    told = replay.outputs[0, :, : CHASERS * MOVES].reshape(2, CHASERS, MOVES)
    np.testing.assert_array_equal(told[:, 0], [place[0]] * 2)
    np.testing.assert_array_equal(told[1, 2], place[2])
    assert np.isnan(told[:, 1]).all()
    assert np.isnan(told[0, 2]).all()


def test_they_are_in_the_file_and_change_no_hash(tmp_path: Path):
    replay = play()
    replay.save(tmp_path / "match.npz")
    again = load(tmp_path / "match.npz")
    np.testing.assert_array_equal(again.outputs, replay.outputs)
    assert again.output_columns == replay.output_columns
    assert verify(again).ok
    without = play(keep_outputs=False)
    assert without.outputs.shape == (8, 2, 0)
    assert without.digest == replay.digest
    assert verify(replace(replay, outputs=replay.outputs + 1)).ok


def test_the_page_shows_them_beside_the_decision_that_they_led_to():
    replay = play()
    for lane, numbers in ((0, [None, 1, 2, None, 3, None, 4, 5, 6, 7]), (1, [None, 1, 2, 3, 4, None, 1, 2, None, 3])):
        header, blocks = read(make_page(replay, lane))
        assert header["outputs"] == [
            {"name": "probability", "agents": [0, 1, 2], "size": MOVES},
            {"name": "value", "agents": [0, 1, 2], "size": 1},
        ]
        shown = unpacked(header, blocks, "outputs")[:, CHASERS * MOVES]
        np.testing.assert_array_equal(shown, [np.nan if number is None else number for number in numbers])


def test_an_array_of_another_shape_is_refused_and_its_player_named():
    class Careless:
        memory_size = 0

        def act(self, observations: Any, *_: Any) -> np.ndarray:
            self.policy_outputs = {"value": np.zeros(len(observations))}
            return np.zeros((len(observations), CHASERS), np.int64)

    with pytest.raises(ReplayError, match=r"policy_outputs\['value'\] of Careless, red, has the shape \(2,\)"):
        play(Careless())


def test_outputs_that_do_not_fit_the_teams_are_refused():
    replay = play()
    with pytest.raises(ReplayError, match="does not fit the teams"):
        make_page(replace(replay, output_columns={"red": {"value": 1}}))
    with pytest.raises(ReplayError, match="no team 'green'"):
        make_page(replace(replay, output_columns={"green": {"value": 6}}))


@pytest.mark.parametrize("columns", [{"red": {"value": 0}}, {"red": {"value\n": 1}}, {"red": ["value"]}, {"red": 1}])
def test_a_file_with_other_columns_is_damaged(columns: Any, tmp_path: Path):
    replace(play(), output_columns=columns).save(tmp_path / "match.npz")
    with pytest.raises(ReplayError, match="'output_columns' do not fit a replay"):
        load(tmp_path / "match.npz")


def test_matches_between_players_keep_them():
    replay = record(ID, {"red": Teller(), "blue": "default"})
    np.testing.assert_array_equal(replay.outputs[:, 0, CHASERS * MOVES], np.arange(1, replay.steps + 1))


class Writer:
    """Writes which of its decisions it is, but for the second agent."""

    memory_size = 1
    policy_outputs: dict[str, np.ndarray]

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        memory[:, 0] += 1
        written = [[f"<b>{number:g}", "", f"third {number:g}"] for number in memory[:, 0]]
        self.policy_outputs = {"turn": np.array(written, object)}
        return np.zeros((len(observations), CHASERS), np.int64)


def test_what_players_wrote_is_kept_and_stands_on_the_page_in_its_frame(tmp_path: Path):
    replay = play(check=Writer())
    replay.save(tmp_path / "match.npz")
    again = load(tmp_path / "match.npz")
    assert again.texts == replay.texts
    for lane, numbers in ((0, [1, 2, None, 3, 4, 5, 6, 7]), (1, [1, 2, 3, 4, 1, 2, None, 3])):
        for decision, number in enumerate(numbers):
            found = [again.texts.get((decision, lane, slot)) for slot in range(CHASERS)]
            assert found == ([None] * 3 if number is None else [f"<b>{number}", None, f"third {number}"])
    assert verify(again).ok
    header, blocks = read(make_page(again, lane=1))
    shown = [["", *header["strings"]][number] for number in blocks["turns"][:, 0].tolist()]
    assert [text for text in shown if text] == [f"<b>{number}" for number in (1, 2, 3, 4, 1, 2, 3)]
    assert "turns" not in read(make_page(play(), lane=0))[1]


def test_what_players_wrote_in_a_foreign_file_is_checked(tmp_path: Path):
    path, replay = tmp_path / "match.npz", play(check=Writer())
    for wrong in ("{}", "[[0, 0, 0, ", '[[8, 0, 0, "x"]]', '[[0, 2, 0, "x"]]', '[[0, 0, "0", "x"]]', "[[0, 0, 0, 1]]"):
        replace(replay, turns=np.frombuffer(wrong.encode(), np.uint8)).save(path)
        with pytest.raises(ReplayError, match="'turns' are not what players wrote"):
            load(path)


@pytest.mark.check
def test_turns_that_a_user_writes_are_kept_as_they_were_written(tmp_path: Path):
    env = gymnasium.make("palaestra/SearchQA-2Hop-v1", form="text")
    turns = ["<think>I wonder about zebra</think><search>mayor of Dadam Shore</search>", "no tags at all"]
    with Recorder(env.unwrapped.sim) as recorder:  # type: ignore[attr-defined]
        env.reset(seed=7)
        for turn in turns:
            env.step(turn)
    recorder.replay().save(tmp_path / "match.npz")
    again = load(tmp_path / "match.npz")
    assert again.texts == {(0, 0, 0): turns[0], (1, 0, 0): turns[1]}
    assert verify(again).ok
