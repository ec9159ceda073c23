"""The network inside the rules gives what NumPy gives, compiled or not, and refuses files that are not networks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from palaestra.core.files import FileError
from palaestra.kernels.networks import (
    WIDEST,
    Network,
    fold_normalisation,
    load_network,
    make_network,
    mlp,
)


def make_layers(*sizes: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    return [
        (random.normal(0, 0.5, (outputs, inputs)), random.normal(0, 0.3, outputs))
        for inputs, outputs in pairwise(sizes)
    ]


def as_arrays(layers: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    return {
        f"layer_{k}.{name}": a
        for k, layer in enumerate(layers)
        for name, a in zip(("weight", "bias"), layer, strict=True)
    }


def evaluate(network: Network, x: np.ndarray) -> np.ndarray:
    front, back = np.zeros(WIDEST), np.zeros(WIDEST)
    mlp(*network, x, front, back)
    return front[: network.sizes[-1]].copy()


@pytest.mark.parametrize("sizes", [(22, 64, 64, 4), (3, 8, 2), (5, 5), (4, 256, 1)])
def test_it_equals_numpy(sizes):
    layers = make_layers(*sizes)
    x = np.random.default_rng(1).normal(size=sizes[0])
    expected = x
    for number, (matrix, bias) in enumerate(layers):
        expected = matrix @ expected + bias
        if number < len(layers) - 1:
            expected = np.tanh(expected)
    np.testing.assert_allclose(evaluate(make_network(layers), x), expected, rtol=1e-12, atol=1e-13)


def test_compiled_and_interpreted_results_are_bitwise_equal():
    numba = pytest.importorskip("numba")
    compiled = numba.njit(error_model="numpy")(mlp)
    network = make_network(make_layers(22, 64, 64, 4))
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=22)
        front, back = np.zeros(WIDEST), np.zeros(WIDEST)
        compiled(*network, x, front, back)
        assert front[:4].tobytes() == evaluate(network, x).tobytes()


def test_the_normalisation_folds_into_the_first_layer():
    layers, random = make_layers(6, 16, 2), np.random.default_rng(3)
    mean, deviation, x = random.normal(size=6), random.uniform(0.1, 3, 6), random.normal(size=6)
    folded = [fold_normalisation(layers[0], mean, deviation), *layers[1:]]
    expected = evaluate(make_network(layers), (x - mean) / deviation)
    np.testing.assert_allclose(evaluate(make_network(folded), x), expected, rtol=1e-10)


def test_a_saved_network_loads_bitwise_equal(tmp_path):
    layers = make_layers(7, 9, 3)
    network = make_network(layers)
    save_file(as_arrays(layers), tmp_path / "inner.safetensors")
    for saved, read in zip(network, load_network(tmp_path / "inner.safetensors"), strict=True):
        assert saved.tobytes() == read.tobytes()
        assert saved.dtype == read.dtype


def test_layers_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ValueError, match="layer 1"):
        make_network([*make_layers(3, 8), *make_layers(7, 2)])
    with pytest.raises(ValueError, match="at most"):
        make_network(make_layers(3, WIDEST + 1))


OTHER = {
    "nothing": {},
    "other names": {"a": np.zeros(3)},
    "a layer left out": {"layer_1.weight": np.zeros((2, 3)), "layer_1.bias": np.zeros(2)},
    "a layer too much": {**as_arrays(make_layers(3, 2)), "layer_7.bias": np.zeros(2)},
    "a bias that does not fit": {"layer_0.weight": np.zeros((2, 3)), "layer_0.bias": np.zeros(3)},
    "a number for a matrix": {"layer_0.weight": np.zeros(2), "layer_0.bias": np.zeros(2)},
    "a number for a bias": {"layer_0.weight": np.zeros((2, 3)), "layer_0.bias": np.zeros(())},
    "too wide": {"layer_0.weight": np.zeros((2, WIDEST + 1)), "layer_0.bias": np.zeros(2)},
}


@pytest.mark.parametrize("arrays", OTHER.values(), ids=OTHER)
def test_a_file_that_is_no_network_is_refused_by_name(tmp_path: Path, arrays: dict[str, np.ndarray]):
    save_file(arrays, tmp_path / "other.safetensors")
    with pytest.raises(FileError, match=r"other\.safetensors is not a network: "):
        load_network(tmp_path / "other.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "other.safetensors").read_bytes()[:-1])
    with pytest.raises(FileError, match=r"cut\.safetensors is not a network: "):
        load_network(tmp_path / "cut.safetensors")
