"""What text search promises, at a small size."""

import pytest

import search_claims as claims

pytestmark = pytest.mark.jitless


def test_no_match_without_an_answer_is_paid():
    found = list(claims.judge_promises(turns=80, lanes=10, seeds=1, compiled=False, entities=9, relations=2))
    assert [promise.value <= 0 for promise in found] == [True, True]


@pytest.mark.check
def test_facts_of_test_are_in_no_path_of_training():
    found = list(claims.split_promises(({"hops": 3}, {"compare": True}), passages=300))
    assert [promise.value for promise in found[::2]] == [0.0, 0.0]
    assert all(promise.value > 0.1 for promise in found[1::2])


def test_the_environment_scores_as_the_rule_does():
    assert claims.count_differences(100, compiled=False) == 0
