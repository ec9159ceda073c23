"""Lengths and distances."""

import numpy as np
import pytest

from palaestra.kernels.vectors import distance, norm

pytestmark = pytest.mark.jitless

POINTS = np.array([[1.0, 1.0], [4.0, 5.0], [1.0, -2.0]])


def test_a_vector_of_2_3_and_6_is_7_long():
    assert norm(2.0, -3.0, 6.0) == 7.0
    assert norm(0.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize(("i", "j", "apart"), [(0, 1, 5.0), (0, 2, 3.0), (1, 1, 0.0)])
def test_two_points_are_as_far_apart_as_a_ruler_says(i: int, j: int, apart: float):
    assert distance(POINTS, i, j) == apart


def test_a_distance_is_bitwise_symmetric():
    points = np.random.default_rng(0).normal(size=(20, 2))
    assert all(distance(points, i, j) == distance(points, j, i) for i in range(20) for j in range(i))
