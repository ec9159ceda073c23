"""A small network inside the rules: a tanh perceptron that a kernel evaluates from arrays in its `world`.

A network that acts inside a hook, as the learned inner loop of the dogfight does in `command`, must be compiled with
the rules, give the same bits on every run, and change without a new compilation. Its numbers therefore lie in flat
arrays whose sizes are known only at run time, and every output adds its inputs in one fixed order.

Layout: layer after layer, ``weights`` holds the transpose of ``W``, [inputs, outputs], ``biases`` the vector ``b``:
    neighbours in memory belong to different outputs, so that the compiler adds several outputs at once, each in its
    own order. Each layer but the last is followed by tanh; the output is not clipped. A normalisation of the
    observation is no separate step: fold it into the first layer before the network is saved (`fold_normalisation`).
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
        weights: All matrices, [inputs, outputs], float64.
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
            back[j] = biases[bias + j]
        bias += outputs
        for i in range(inputs):
            value = front[i]
            row = weights[weight : weight + outputs]  # an index of its own from 0 on: the compiler vectorises that
            for j in range(outputs):
                back[j] += row[j] * value
            weight += outputs
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
        np.concatenate([np.asarray(matrix, np.float64).T.ravel() for matrix, _ in layers]),
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
