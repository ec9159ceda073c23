"""The file of a learned inner loop: read to the bit, or refused by its name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from palaestra import make_batch
from palaestra.core.files import FileError
from palaestra.games.ucav import pursuit
from palaestra.games.ucav.inner_loop import STICK, TRACKING_SIZE, load_inner_loop
from palaestra.kernels.networks import WIDEST, make_network

SEEN, GIVEN = TRACKING_SIZE, len(STICK)


def layer(number: int, inputs: int, outputs: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(number)
    weight = {f"layer_{number}.weight": random.normal(size=(outputs, inputs))}
    return {**weight, f"layer_{number}.bias": random.normal(size=outputs)}


SOUND = {**layer(0, SEEN, 9), **layer(1, 9, GIVEN)}


def test_a_network_is_read_bitwise_equal(tmp_path: Path):
    save_file(SOUND, tmp_path / "loop.safetensors")
    made = make_network([(SOUND[f"layer_{k}.weight"], SOUND[f"layer_{k}.bias"]) for k in range(2)])
    for read, expected in zip(load_inner_loop(str(tmp_path / "loop.safetensors")), made, strict=True):
        assert read.tobytes() == expected.tobytes()
        assert read.dtype == expected.dtype


OTHER = {
    "nothing": ({}, "expected layer_0"),
    "other names": ({"a": np.zeros(3)}, "expected layer_0"),
    "a layer left out": (layer(1, SEEN, GIVEN), "expected layer_0"),
    "an array too much": ({**SOUND, "layer_7.bias": np.zeros(2)}, "expected layer_0"),
    "layers that do not fit": ({**layer(0, SEEN, 9), **layer(1, 8, GIVEN)}, "layer 1: W is"),
    "a matrix of one dimension": ({**layer(0, SEEN, GIVEN), "layer_0.weight": np.zeros(GIVEN)}, "layer 0: W is"),
    "a bias of none": ({**layer(0, SEEN, GIVEN), "layer_0.bias": np.zeros(())}, "layer 0: W is"),
    "too wide": ({**layer(0, SEEN, WIDEST + 1), **layer(1, WIDEST + 1, GIVEN)}, "at most"),
    "another observation": (layer(0, SEEN - 1, GIVEN), "its layers have"),
    "other commands": (layer(0, SEEN, GIVEN + 1), "its layers have"),
}


@pytest.mark.parametrize(("arrays", "problem"), OTHER.values(), ids=OTHER)
def test_a_file_that_is_no_inner_loop_is_refused_by_name(tmp_path: Path, arrays: dict, problem: str):
    save_file(arrays, tmp_path / "other.safetensors")
    with pytest.raises(FileError, match=rf"other\.safetensors is no inner loop: .*{problem}"):
        load_inner_loop(str(tmp_path / "other.safetensors"))


def test_a_file_that_is_cut_is_refused_by_name(tmp_path: Path):
    save_file(SOUND, tmp_path / "loop.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "loop.safetensors").read_bytes()[:-1])
    with pytest.raises(FileError, match=r"cut\.safetensors is no inner loop: "):
        load_inner_loop(str(tmp_path / "cut.safetensors"))


LOOPS = {"pid": 1, "ppo": 6}
"""Inner loops that ship, and in how many of 64 matches of 200 s a script may lose its aircraft over them. A network
that had learnt from a product of Gaussians lost 21 of 64 in 40 s."""


def own_losses(id: str, loop: str, red: str, matches: int, **options: Any) -> int:
    """Matches that a rule ends against red, whose target is unarmed, so that it is its own fault."""
    opponents = {"red": red, "blue": "level_turn"}
    options = {"commands": "macro", "inner_loop": loop, "opponents": opponents, "autoreset_mode": "off", **options}
    sim: Any = make_batch(id, matches, **options)
    sim.reset(seed=9)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
    lost = int((sim.info["winner"] == 1)[sim.terminated].sum())
    sim.close()
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_hunter_by_macros_stays_in_the_air_over_each_inner_loop(loop: str):
    assert own_losses("palaestra/UcavPursuit-v2", loop, "lag_pursuit", 32) <= 1


@pytest.mark.slow  # 200 s of all scripts
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "id", ["UcavPursuit-v2", "UcavPursuit-Contest-v2", "UcavDogfight-v2", "UcavDogfight-Contest-v2"]
)
def test_each_script_by_macros_stays_in_the_air_over_each_inner_loop(id: str, loop: str):
    scripts = pursuit.game(commands="macro").scripts
    # without a price for leaving the arena: where to fly is the script's decision, and matches last their 200 s
    options = {"blue_gun": 0.0, "arena_drain": 0.0}
    lost = {red: own_losses(f"palaestra/{id}", loop, red, 64, **options) for red in scripts}
    assert len(lost) == 11
    assert max(lost.values()) <= LOOPS[loop], lost
