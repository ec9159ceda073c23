"""PPO for any environment: it learns a trivial task, resumes bitwise, plays from its file, and says what it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

from baselines.short_runs import assert_same_run, no_figures, whole_and_resumed

from palaestra import registry
from palaestra.cli import main
from palaestra.evaluation import evaluate
from palaestra_baselines import ppo

SMALL = ppo.Args(total_steps=1024, lanes=16, rollout=16, minibatches=4, epochs=2, evaluations=2, matches=8, quiet=True)


@pytest.mark.check
def test_it_learns_to_balance_a_pole(tmp_path: Path):
    args = dataclasses.replace(SMALL, total_steps=20_480, lanes=32, rollout=32, epochs=4, matches=32)
    report = ppo.train(dataclasses.replace(args, learning_rate=(3e-3, 1e-3), directory=tmp_path))
    first, last = report.log[0]["return"], report.log[-1]["return"]
    assert first < 420.0  # of 500 decisions; after a fall the pole is set up again
    assert last > 440.0


@pytest.mark.check
@pytest.mark.parametrize("id", ["TeamPong-v0", "UcavTrack-v3"])  # choices against an opponent; numbers of one team
def test_an_interrupted_run_resumes_bitwise_equal_and_its_file_plays(id: str, tmp_path: Path):
    pytest.importorskip("jsbsim")
    args = dataclasses.replace(SMALL, env_id=f"palaestra/{id}")
    whole, resumed = whole_and_resumed(ppo, args, tmp_path, evaluation=no_figures, stop_at=2)
    assert_same_run(whole, resumed)
    others = ("default",) if "Pong" in id else ()
    table = evaluate(args.env_id, str(resumed.weights), *others, matches=2)
    assert table.matches == 2


def test_it_learns_the_first_team_against_the_default_script():
    def fitted(id: str, **given: Any) -> tuple[str, str]:
        args = ppo.Args(env_id=f"palaestra/{id}", **given)
        args.fit_to_game()
        args.check()
        return args.team, args.opponent

    assert fitted("TeamPong-v0") == ("red", "tracker")
    assert fitted("TeamTag-v0", team="blue", opponent="random") == ("blue", "random")
    assert fitted("CartPole-v0") == ("cart", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"team": "green"}, "--team is one of red, blue, got 'green'"),
        ({"opponent": ""}, "TeamPong: --opponent says who plays the other team, got ''"),
        ({"minibatches": 7}, "--minibatches must divide the 256 decisions"),
        ({"env_id": "palaestra/CartPole-v0", "opponent": "random"}, "--opponent is for games of two teams"),
        ({"env_id": "palaestra/Concert-v0"}, "Concert has 7 teams: this method learns games of one or two"),
        ({"env_id": "palaestra/GridBattle-12-v0"}, "GridBattle: agents of role '.*' see numbers of several kinds"),
    ],
)
def test_what_it_cannot_learn_is_named(changes: dict[str, Any], message: str, tmp_path: Path):
    given = {"env_id": "palaestra/TeamPong-v0", "directory": tmp_path, **changes}
    with pytest.raises(ValueError, match=message):
        ppo.train(dataclasses.replace(SMALL, **given))


@pytest.mark.check
def test_a_method_that_cannot_learn_an_environment_names_the_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    assert main(["train", "qmix", "--env-id", "QuadPushBox"]) == 1
    said = capsys.readouterr().err
    assert "have other actions than single choices" in said
    assert "real numbers alone are learnt by palaestra train mappo and ppo" in said


REFUSED = {"palaestra/GridBattle-12-v0": "several kinds", "palaestra/ConcertDuel-v0": "several kinds"}


@pytest.mark.slow
@pytest.mark.parametrize("id", [family.example for family in registry.FAMILIES.values()])
def test_an_example_of_every_family_is_learnt_or_refused_by_name(id: str, tmp_path: Path):
    args = dataclasses.replace(SMALL, env_id=id, total_steps=256, evaluations=1, matches=2, directory=tmp_path)
    if id in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[id]):
            ppo.train(args)
    else:
        assert ppo.train(args).steps >= 256
