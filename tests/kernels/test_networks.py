"""The network inside the rules gives what NumPy gives, compiled or not, and refuses files that are not networks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from palaestra.kernels.networks import (
    WIDEST,
    Network,
    fold_normalisation,
    make_network,
    mlp,
)


def make_layers(*sizes: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    return [
        (random.normal(0, 0.5, (outputs, inputs)), random.normal(0, 0.3, outputs))
        for inputs, outputs in pairwise(sizes)
    ]


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


@pytest.mark.check
def test_compiled_and_interpreted_results_are_bitwise_equal():
    numba = pytest.importorskip("numba")
    compiled = numba.njit(error_model="numpy")(mlp)
    network = make_network(make_layers(22, 64, 64, 4))
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=22)
        front, back = np.zeros(WIDEST), np.zeros(WIDEST)
        compiled(*network, x, front, back)
        assert front[:4].tobytes() == evaluate(network, x).tobytes()


def test_every_output_adds_its_inputs_in_their_order():
    ((matrix, bias),) = layers = make_layers(22, 9)
    x = np.random.default_rng(1).normal(size=22)
    totals = bias.copy()
    for j in range(9):
        for i in range(22):
            totals[j] += matrix[j, i] * x[i]
    assert evaluate(make_network(layers), x).tobytes() == totals.tobytes()


def test_the_normalisation_folds_into_the_first_layer():
    layers, random = make_layers(6, 16, 2), np.random.default_rng(3)
    mean, deviation, x = random.normal(size=6), random.uniform(0.1, 3, 6), random.normal(size=6)
    folded = [fold_normalisation(layers[0], mean, deviation), *layers[1:]]
    expected = evaluate(make_network(layers), (x - mean) / deviation)
    np.testing.assert_allclose(evaluate(make_network(folded), x), expected, rtol=1e-10)


def test_layers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="layer 1"):
        make_network([*make_layers(3, 8), *make_layers(7, 2)])
    with pytest.raises(ValueError, match="at most"):
        make_network(make_layers(3, WIDEST + 1))
