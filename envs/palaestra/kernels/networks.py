"""A small network inside the rules: a tanh perceptron that a kernel evaluates from arrays in its `world`.

A network that acts inside a hook, as the learned inner loop of the dogfight does in `command`, must be compiled with
the rules, give the same bits on every run, and change without a new compilation. Its numbers therefore lie in flat
arrays whose sizes are known only at run time, and the loops below add in one fixed order.

Layout: layer after layer, ``weights`` holds the rows of ``W`` (outputs x inputs), ``biases`` the vector ``b``. Each
    layer but the last is followed by tanh; the output is not clipped. A normalisation of the observation is no
    separate step: fold it into the first layer before the network is saved (`fold_normalisation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WIDEST = 256
"""Largest layer that `mlp` can take: the length of its scratch rows."""


class Network(NamedTuple):
    """A perceptron as flat arrays, to be a part of a game's `world`.

    Attributes:
        weights: All matrices, row by row, float64.
        biases: All bias vectors, float64.
        sizes: Width of the input, of each hidden layer and of the output, int64.
    """

    weights: np.ndarray
    biases: np.ndarray
    sizes: np.ndarray


def mlp(weights, biases, sizes, x, front, back):
    """Evaluates the network: h = tanh(W h + b), the last layer without tanh.

    Args:
        weights: As in `Network`.
        biases: As in `Network`.
        sizes: As in `Network`.
        x: Input, at least ``sizes[0]`` numbers; left as it is.
        front: Work row of `WIDEST` float64. Holds the output afterwards.
        back: Another one.
    """
    for i in range(sizes[0]):
        front[i] = x[i]
    weight, bias, layers = 0, 0, sizes.shape[0] - 1
    for layer in range(layers):
        inputs, outputs = sizes[layer], sizes[layer + 1]
        for j in range(outputs):
            total = biases[bias + j]
            for i in range(inputs):
                total += weights[weight + i] * front[i]
            weight += inputs
            back[j] = total
        bias += outputs
        for j in range(outputs):
            front[j] = math.tanh(back[j]) if layer < layers - 1 else back[j]


def make_network(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> Network:
    """Flattens ``(W [outputs, inputs], b [outputs])`` of each layer.

    Raises:
        ValueError: The layers do not fit each other or are too wide.
    """
    sizes = [math.prod(layers[0][0].shape[1:])]
    for number, (matrix, bias) in enumerate(layers):
        if bias.ndim != 1 or matrix.shape != (len(bias), sizes[-1]):
            raise ValueError(f"layer {number}: W is {matrix.shape}, b is {bias.shape}, the layer before {sizes[-1]}")
        sizes.append(len(bias))
    if max(sizes) > WIDEST:
        raise ValueError(f"layers of {sizes} numbers: at most {WIDEST} are allowed")
    return Network(
        np.concatenate([np.asarray(matrix, np.float64).ravel() for matrix, _ in layers]),
        np.concatenate([np.asarray(bias, np.float64).ravel() for _, bias in layers]),
        np.array(sizes, np.int64),
    )


def fold_normalisation(
    layer: tuple[np.ndarray, np.ndarray], mean: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First layer for the raw observation: W (x - mean) / d + b = (W / d) x + (b - W mean / d)."""
    matrix, bias = (np.asarray(array, np.float64) for array in layer)
    scaled = matrix / deviation
    return scaled, bias - scaled @ mean
