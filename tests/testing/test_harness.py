"""How checks run and how their results are reported."""

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from games import duel

from palaestra import register, registry, testing
from palaestra.game import Choice, Parameter
from palaestra.testing import CHECKS, CheckError, Report, Result, Skipped, Subject, check, check_all
from palaestra.testing.checks import autoreset_checks, codec_checks
from palaestra.testing.checks.buffer_checks import arrays_in
from palaestra.testing.drawn import Draw
from palaestra.testing.harness import Check, run_one
from palaestra.testing.players import SpacePlayer, mask_of

ID = "palaestra/CartPole-v0"
QUICK = "rewards_are_finite"


def run(function, expected_warnings=()):
    return run_one(Subject(ID), Check("mine", "mine", "Mine.", function, expected_warnings=expected_warnings))


def test_an_unexpected_warning_fails_a_check():
    def warn(subject):
        warnings.warn("odd", UserWarning, stacklevel=1)

    result = run(warn)
    assert result.status == "FAILED"
    assert "UserWarning: odd" in result.message
    assert run(warn, [("^od", "known")]).status == "passed"


def test_an_id_that_has_a_newer_version_passes():
    older = lambda s: warnings.warn("The environment palaestra/Duel-v0 is out of date.", stacklevel=1)  # noqa: E731
    assert run(older).status == "passed"
    assert run(lambda s: warnings.warn("The environment is out of sight.", stacklevel=1)).status == "FAILED"


def test_a_failure_says_what_is_broken():
    def broken(subject):
        raise CheckError("lane 3, red_0: health = 4 is not in [0, 3]")

    result = run(broken)
    assert (result.status, result.message) == ("FAILED", "lane 3, red_0: health = 4 is not in [0, 3]")


def test_any_exception_is_a_failure_with_its_place():
    result = run(lambda subject: 1 / 0)
    assert result.status == "FAILED"
    assert result.message.startswith("ZeroDivisionError: division by zero (")
    assert "test_harness.py" in result.message


def test_a_check_that_does_not_apply_gives_its_reason():
    def skip(subject):
        raise Skipped("no masks")

    result = run(skip)
    assert (result.status, result.message) == ("skipped", "no masks")


def test_what_a_check_prints_is_not_shown(capsys: pytest.CaptureFixture[str]):
    run(lambda subject: print("Passed API test"))
    assert capsys.readouterr().out == ""


def test_what_a_check_makes_is_closed_after_it():
    made = []
    run(lambda subject: made.append(subject.batch(1)))
    with pytest.raises(RuntimeError, match="closed"):
        made[0].reset()


@pytest.mark.check
def test_only_and_skip_choose_checks():
    assert [r.name for r in check(ID, only=[QUICK]).results] == [QUICK]
    assert [r.name for r in check(ID, only=QUICK).results] == [QUICK]
    assert check(ID, only=[QUICK, "masks_allow_an_action"], skip=[QUICK]).results[0].name == "masks_allow_an_action"


def test_rules_are_checked_as_plain_python_too():
    subject = Subject(ID, compiled=False)
    assert not subject.batch(2).compiled
    assert check(ID, only=["observations_are_in_spaces", "documentation_is_complete"], compiled=False).passed
    with pytest.raises(TypeError, match="'compiled': it is for what plays the rules"):
        registry.make_game(ID, compiled=False)


def test_a_check_that_does_not_exist_is_refused_with_the_near_name():
    with pytest.raises(ValueError, match="did you mean 'rewards_are_finite'"):
        check(ID, only=["rewards_are_finit"])
    with pytest.raises(ValueError, match="did you mean 'rewards_are_finite'"):
        check(ID, skip=["rewards_are_finit"])


def test_an_id_that_does_not_exist_is_refused_with_the_near_name():
    with pytest.raises(KeyError, match="CartPole-v0"):
        check("palaestra/CartPol-v0")


def test_a_level_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="preset, fast, full"):
        check(ID, "quick")  # type: ignore[arg-type]


def test_keywords_reach_the_environment():
    subject = Subject(ID, gravity_mps2=1.6, observation="dict")
    assert subject.batch().states["parameters"]["gravity_mps2"][0] == 1.6
    assert set(subject.env().observation_space.spaces) == {
        "position_m", "velocity_mps", "angle_rad", "velocity_radps",
    }  # fmt: skip
    subject.close()


def test_a_report_prints_as_a_table():
    report = Report(ID, "fast", [Result("a", "passed", 0.5, "9 steps"), Result("bcd", "FAILED", 1.0, "one\ntwo")])
    assert str(report).splitlines() == [
        "palaestra/CartPole-v0, level fast: 1 passed, 1 FAILED in 1.5 s",
        "  a    passed     0.50 s  9 steps",
        "  bcd  FAILED     1.00 s  one",
        "                          two",
    ]


def test_a_report_names_the_checks_that_failed():
    good, bad = Result("good", "passed", 0.0), Result("bad", "FAILED", 0.0, "why")
    report = Report(ID, "fast", [good, bad])
    assert not report.passed
    assert not report
    assert report.failures == [bad]
    assert report["good"] is good
    with pytest.raises(CheckError, match=r"breaks 1 of its promises:\n\* bad: why"):
        report.raise_if_failed()
    Report(ID, "fast", [good]).raise_if_failed()


def test_a_missing_package_is_one_skipped_result(monkeypatch: pytest.MonkeyPatch):
    def missing(*arguments, **keywords):
        raise ImportError('pip install "palaestra[flight]"')

    monkeypatch.setattr(testing, "check", missing)
    (report,) = check_all(ids=[ID])
    assert report.passed
    assert report.results == [Result("all", "skipped", 0.0, 'pip install "palaestra[flight]"')]


def test_every_check_says_in_one_line_what_it_proves():
    for entry in CHECKS.values():
        assert 20 < len(entry.headline) < 120, entry.name
        assert entry.headline.endswith("."), entry.name
        for pattern, reason in entry.expected_warnings:
            assert pattern, entry.name
            assert reason, entry.name


def test_a_preset_is_held_to_what_an_id_has_of_its_own():
    assert [name for name, entry in CHECKS.items() if "preset" in entry.levels] == [
        "registered_everywhere",
        "spaces_contain_results",
        "faces_agree",
        "observations_are_in_spaces",
        "documentation_is_complete",
        "keywords_that_name_files_are_declared",
    ]
    report = check(ID, "preset")
    assert report.passed, str(report)
    assert {"preset", "fast", "full"} == {level for entry in CHECKS.values() for level in entry.levels}


def test_a_failure_names_what_was_drawn_and_the_command_that_draws_it_again():
    def broken(subject):
        raise CheckError(f"{subject.draw.integer('lanes', 1, 9)} lanes")

    subject = Subject(ID, "full", gravity_mps2=1.6)
    subject.seed = 7
    results = [run_one(subject, Check("mine", "mine", "Mine.", broken)) for _ in range(2)]
    lanes = Draw(7, ID, "mine").integer("lanes", 1, 9)
    assert results[0].message.splitlines() == [
        f"{lanes} lanes",
        f"drawn: lanes = {lanes}",
        f"again: palaestra check {ID} --only mine --level full --seed 7 --set gravity_mps2=1.6",
    ]
    assert results[1].message == results[0].message


def test_draws_are_of_the_seed_the_id_and_the_check_and_stay_in_their_ranges():
    draws = [Draw(*words) for words in ((0, ID, "a"), (1, ID, "a"), (0, "b", "a"), (0, ID, "b"), (0, ID, "a"))]
    seeds = [[draw.seed() for _ in range(40)] for draw in draws]
    assert seeds[0] == seeds[4]
    assert len({tuple(drawn) for drawn in seeds}) == 4
    assert max(seeds[0]) > 2**63
    assert all(0 <= seed < 2**64 for seed in seeds[0])
    speed, many = Parameter("speed", 2.0, 0.5, 3.0), Parameter("many", 5, 1, np.inf)
    for draw in draws:
        assert draw.mask("mask", 5).any()
        assert ((draw.parameter("speed", speed, 9) >= 0.5) & (draw.parameter("speed", speed, 9) <= 3.0)).all()
        assert float(draw.parameter("many", many)).is_integer()
        assert len(set(draw.seeds("seeds", 6).tolist())) == 6


def test_small_values_of_wide_ranges_of_whole_numbers_are_drawn_too():
    counts = Draw(0, ID, "a").parameter("ends_at", Parameter("ends_at", 1000, 0, 1000), 1000)
    assert ((counts >= 0) & (counts <= 1000) & (counts == np.round(counts))).all()
    assert 0.05 < ((counts > 0) & (counts <= 20)).mean() < 0.2, "uniform draws give 0.008"


def reset_with_an_idle_agent(s, world):
    duel.reset(s, world)
    s.acting[1] = 0


@pytest.mark.check
def test_pettingzoos_test_of_cycles_is_left_out_where_an_agent_is_never_asked():
    register("test/Idle-v0", lambda: replace(duel.game(), reset=reset_with_an_idle_agent), family="test")
    result = check("test/Idle-v0", only=["pettingzoo_max_cycles_test"]).results[0]
    assert result.status == "skipped"
    assert "no match of 20 asked all agents" in result.message


def test_arrays_of_a_nested_world_are_found():
    class Ground(NamedTuple):
        heights: np.ndarray

    class World(NamedTuple):
        ground: Ground
        gravity: float

    world = World(Ground(np.arange(3.0)), 9.81)
    assert dict(arrays_in(world, "world")) == {"world[0][0]": world.ground.heights}
    sim = SimpleNamespace(game=SimpleNamespace(world=world))
    before = codec_checks.world_bytes(sim)
    world.ground.heights[1] = 7
    assert codec_checks.world_bytes(sim) != before


def test_the_number_of_joint_choices_of_hundreds_of_agents_is_counted_exactly():
    crowd = SimpleNamespace(agents=range(700), action=(Choice("move", 4),))  # 4**700 is beyond all floats
    game = SimpleNamespace(legal=None, roles=[crowd])
    subject: Any = SimpleNamespace(draw=Draw(0), keywords={"observation": "flat"}, game=game)
    assert "choices" not in autoreset_checks.drawn_form(subject)


def test_a_game_that_another_process_cannot_make_is_not_asked_of_one():
    register("tests/Local-v0", lambda: duel.game())
    try:
        result = run_one(Subject("tests/Local-v0"), CHECKS["another_process_plays_the_same"])
    finally:
        registry.ROWS.pop("tests/Local-v0")
    assert result.status == "skipped", result.message
    assert "no other process" in result.message


def test_players_of_a_face_take_the_masks_of_several_roles_side_by_side():
    register("tests/Relay-v0", "games.relay:game")
    try:
        env: Any = registry.make_env("tests/Relay-v0", control="blue", compiled=False)
    finally:
        registry.ROWS.pop("tests/Relay-v0")
    env.reset(seed=0)
    player = SpacePlayer(env.action_space, 0)
    for _ in range(4):
        action = player.act(mask_of(env.agent_io))
        assert action in env.action_space
        *_, info = env.step(action)
        assert not info["illegal"].any()
