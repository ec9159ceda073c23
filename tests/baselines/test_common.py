"""Saved policies, curves, progress."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from games import body_game, size_game

from learning.figures import bootstrap_interval, interquartile_mean
from palaestra.core.files import FileError
from palaestra.core.run.opponents import policy_metadata
from palaestra.game import Continuous, Field, Game, Role
from palaestra.kernels.networks import WIDEST, make_network, mlp
from palaestra_baselines.common.flat_networks import ranges
from palaestra_baselines.common.policy_file import arrays_to_layers, read_policy, save_policy
from palaestra_baselines.common.run_folder import read_rows, write_curve
from palaestra_baselines.ppo_tracking import PerceptronPlayer, layer_arrays, perceptron_player


@dataclass
class Arguments:
    seed: int = 3
    folder: Path = Path("somewhere")


def random_layers(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(sizes)]


def nothing(*_): ...


def steering(inputs: int) -> Game:
    action = (Continuous("wheel", (), -1.0, 1.0), Continuous("pedal", (), 0.0, 0.5))
    role = Role("driver", ("red_0", "blue_0"), (Field("road", (inputs,), -9.0, 9.0),), action)
    return Game("Steering", (role,), (("x", "f8"),), reset=nothing, observe=nothing, step=nothing)


def test_a_saved_policy_comes_back_with_what_made_it_but_no_path_of_the_machine(tmp_path: Path):
    path, layers = tmp_path / "deep" / "policy.safetensors", random_layers(3, 8, 2)
    save_policy(path, layer_arrays(layers), method="mine", env_id="palaestra/X-v0", args=Arguments(), score=1.5)
    arrays, notes = read_policy(path)
    for (weight, bias), (weight_back, bias_back) in zip(layers, arrays_to_layers(arrays), strict=True):
        np.testing.assert_array_equal(weight, weight_back)
        np.testing.assert_array_equal(bias, bias_back)
    expected = {"method": "mine", "env_id": "palaestra/X-v0", "args": {"seed": 3}, "score": 1.5}
    assert notes == expected
    assert policy_metadata(path)["method"] == "mine"
    assert [p.name for p in path.parent.iterdir()] == ["policy.safetensors"]


def test_a_perceptron_player_is_the_network_of_the_kernels_with_clipped_output():
    layers = random_layers(5, 16, 16, 2)
    network, player = make_network(layers), PerceptronPlayer(layers, np.full(2, -0.5), np.full(2, 0.5))
    seen = np.random.default_rng(1).normal(size=(7, 1, 5)).astype(np.float32)
    front, back = np.zeros(WIDEST), np.zeros(WIDEST)
    chosen = player.act(seen, None, None, None, None, None)
    assert chosen.shape == (7, 1, 2)
    for k in range(7):
        mlp(network.weights, network.biases, network.sizes, seen[k, 0].astype(np.float64), front, back)
        np.testing.assert_allclose(chosen[k, 0], np.clip(front[:2], -0.5, 0.5), atol=1e-12)


def test_a_player_keeps_to_the_bounds_of_its_action():
    layers = [(np.zeros((2, 4)), np.array([-5.0, 5.0]))]
    player = perceptron_player(layer_arrays(layers), steering(4), "blue")
    np.testing.assert_array_equal(player(np.zeros((3, 4))), [[-1.0, 0.5]] * 3)


def test_a_policy_of_another_game_is_refused():
    arrays = layer_arrays(random_layers(3, 8, 2))
    with pytest.raises(ValueError, match="sees 3 numbers and gives 2; red of Steering sees 4 and gives 2"):
        perceptron_player(arrays, steering(4), "red")


def test_the_interquartile_mean_ignores_a_quarter_on_each_side():
    assert interquartile_mean(np.array([-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1000.0])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)  # three values have no quarter


def test_the_bootstrap_resamples_runs_within_each_task():
    constant_tasks = np.array([[0.0, 10.0]] * 5)
    assert bootstrap_interval(constant_tasks) == (5.0, 5.0, 5.0)
    scores = np.random.default_rng(0).normal(3.0, 1.0, 400)
    mean, low, high = bootstrap_interval(scores)
    assert low < mean < high
    assert abs(mean - 3.0) < 0.2
    assert 0.15 < high - low < 0.35  # 2 x 1.96 x 1.1 / sqrt(400) is 0.22
    assert bootstrap_interval(scores) == (mean, low, high)


def test_a_log_is_written_as_a_whole_from_the_rows_before(tmp_path: Path):
    path = tmp_path / "log.csv"
    rows = [{"steps": steps, "error": steps / 3} for steps in (0, 100)]
    for count in (1, 2):
        write_curve(path, rows[:count])
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])  # a process was killed within the row
    write_curve(path, rows)
    assert path.read_bytes() == whole
    write_curve(path, [rows[0], {"steps": 150, "error": 1.0}])
    assert [row["steps"] for row in read_rows(path)] == [0, 150]
    assert [p.name for p in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize("text", ["steps,error\n0,1\n100,", "steps,error\n0,1\n100\n", "steps,error\n0,1\n5,6,7\n"])
def test_a_row_that_is_not_whole_is_an_error_that_names_file_and_line(tmp_path: Path, text: str):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=r"log\.csv: line 3 is no row of numbers"):
        read_rows(path)


# -- games of the second contract --------------------------------------------------------------------------------------


def test_bounds_that_differ_from_number_to_number_are_those_of_the_player():
    layers = random_layers(11, 8, 2)
    player = perceptron_player(layer_arrays(layers), body_game.game(), "puck")
    assert (player.low.tolist(), player.high.tolist()) == ([-3.0, -2.0], [4.0, 2.0])
    assert player(np.full((1, 11), 1e3)).shape == (1, 2)


def test_a_network_cannot_make_choices():
    with pytest.raises(ValueError, match="red of Couriers has choices to make, the policy gives numbers"):
        perceptron_player(layer_arrays(random_layers(4, 2)), size_game.game(), "red")


def test_inputs_are_scaled_by_the_range_that_they_keep_to():
    fields = body_game.ROLE.observation
    widths = np.concatenate(ranges(fields))
    assert len(widths) == sum(f.size for f in fields)
    assert np.isinf(fields[0].high)
    assert widths[0] == 1.0, "no end: what is checked is what is possible, not what is usual"
    assert np.isfinite(widths).all()
    couriers = np.concatenate(ranges(size_game.game(parcels=4).roles[0].observation))
    assert couriers[-3:].tolist() == [1.0, 4.0, 4.0]
    assert len(couriers) == 2 + 1 + 6 * 4 + 4 * 3
