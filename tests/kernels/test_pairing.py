"""Assignment of seekers to targets."""

import numpy as np
import pytest

from palaestra.kernels.pairing import pair_nearest

pytestmark = pytest.mark.jitless


def pairs(seekers: list[float], targets: list[float]) -> list[int]:
    """Numbers of the targets that the seekers take; all stand on a line, behind one point that does not count."""
    points = np.array([[0.0, 0.0], *([x, 0.0] for x in seekers), *([x, 0.0] for x in targets)])
    target_of = np.zeros(len(seekers), np.int64)
    pair_nearest(points, 1, len(seekers), 1 + len(seekers), len(targets), target_of)
    return (target_of - 1 - len(seekers)).tolist()


def test_the_nearest_pair_is_formed_first_and_the_rest_takes_what_is_left():
    assert pairs([0.0, 1.0], [1.1, 5.0]) == [1, 0]


def test_no_target_gets_a_second_seeker_before_each_has_one():
    assert pairs([0.0, 0.1, 0.2], [0.0, 9.0]) == [0, 0, 1]
    assert pairs([0.0, 0.1, 0.2, 0.3], [0.0, 9.0]) == [0, 0, 1, 1]


def test_all_seekers_take_the_only_target():
    assert pairs([3.0, 2.0, 1.0], [0.0]) == [0, 0, 0]


def test_with_more_targets_than_seekers_the_nearest_are_taken():
    assert pairs([0.0], [4.0, -1.0, 2.0]) == [1]


def test_of_equally_near_pairs_the_first_target_and_then_the_first_seeker_goes_first():
    assert pairs([0.0, 2.0], [1.0, 1.0]) == [0, 1]
    assert pairs([0.0], [1.0, -1.0]) == [0]
