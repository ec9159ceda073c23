"""One team learns, a script plays the other: who learns, from which reward, what evaluations count, and refusals."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from baselines.short_runs import Stop, assert_same_run, whole_and_resumed

from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import fm3q, iql, vdn
from palaestra_baselines.common.flat_networks import Utilities
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import LearningArgs, Report, Training, learning_command

TAG = "palaestra/TeamTag-2v2-v0"
SMALL: dict[str, Any] = {
    "env_id": TAG,
    "team": "blue",
    "opponent": "default:0.5",
    "total_steps": 400,
    "lanes": 8,
    "warmup_steps": 100,
    "updates": 1,
    "batch_size": 16,
    "replay_size": 200,
    "hidden": (8,),
    "evaluations": 2,
    "matches": 8,
    "quiet": True,
}


def training_of(folder: Path, **given: Any) -> Training:
    """A run that has not begun, by small arguments and those given."""
    args = LearningArgs(**{**SMALL, **given}, directory=folder)
    with RunFolder(args, "some") as entered:
        return Training(args, entered, None)


@pytest.mark.check
@pytest.mark.parametrize("team", ["red", "blue"])
def test_the_agents_of_one_team_learn_and_the_script_plays_the_others(team: str, tmp_path: Path):
    training = training_of(tmp_path, team=team, opponent="random")
    sim, roster = training.collector.sim, training.roster
    assert tuple(roster.slots) == sim.game.teams[team]
    other = next(name for name in sim.game.teams if name != team)
    stays = np.zeros((sim.num_envs, roster.agents), np.int64)
    given = []
    for _ in range(3):
        training.collector.play(stays)
        given.append(sim.team_view(other, "actions").copy())
        assert not sim.team_view(team, "actions").any()
    assert np.unique(given).size > 2


@pytest.mark.check
@pytest.mark.parametrize("method", [vdn, iql])
def test_an_interrupted_run_of_one_team_resumes_bitwise_equal(method: Any, tmp_path: Path):
    assert_same_run(*whole_and_resumed(method, method.Args(**SMALL), tmp_path, stop=Stop))


@pytest.mark.check
def test_evaluations_count_the_wins_and_the_returns_of_the_team_that_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = []

    def fake(id: str, a: Any, b: Any, **options: Any) -> Any:
        calls.append((isinstance(a, str), isinstance(b, str), options["matches"], options["seed"], options["swap"]))
        results = np.array([(3.0, 5.0), (5.0, 9.0)], [("return_a", "f8"), ("return_b", "f8")])
        return SimpleNamespace(wins=1, losses=2, matches=8, results=results)

    monkeypatch.setattr("palaestra_baselines.common.training.evaluate", fake)
    for team, wanted in (("red", (0.125, 4.0)), ("blue", (0.25, 7.0))):
        args = LearningArgs(**{**SMALL, "team": team}, directory=tmp_path / team)
        with RunFolder(args, "some") as folder:
            training = Training(args, folder, None)
            training.should_continue(Utilities(training.roster, (4,)))
        assert (folder.rows[0]["win_rate"], folder.rows[0]["return"]) == wanted
    assert calls == [(False, True, 8, 2**30, False), (True, False, 8, 2**30, False)]


def test_a_saved_policy_of_one_team_plays_that_team_alone(tmp_path: Path):
    report = vdn.train(vdn.Args(**SMALL, directory=tmp_path))
    assert evaluate(TAG, "random", str(report.weights), matches=4, swap=False).matches == 4
    with pytest.raises(FileError, match=r"no layers player_red.*it has 'player_blue"):
        evaluate(TAG, str(report.weights), "random", matches=4, swap=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"team": "green"}, r"--team is one of two teams; TeamTag has red, blue, got 'green'"),
        ({"env_id": "palaestra/Spread-v0", "team": "agent"}, r"--team is one of two teams; \w+ has agent, got 'agent'"),
        ({"opponent": ""}, "--team blue learns against a script: say which by --opponent"),
    ],
)
def test_a_team_that_cannot_learn_against_a_script_is_refused(given: dict[str, str], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        training_of(tmp_path, **given)


@pytest.mark.parametrize(
    ("words", "players"),
    [
        (["--team", "red"], "--a w.safetensors --b random"),
        (["--team", "blue"], "--a random --b w.safetensors"),
        ([], "--a w.safetensors --b random"),
    ],
)
def test_the_command_says_how_the_learnt_team_is_evaluated(
    words: list[str], players: str, capsys: pytest.CaptureFixture[str]
):
    report = Report(Path("w.safetensors"), 0, 0, 0.0)
    learning_command(vdn.Args, "vdn", "VDN.", ["--env-id", TAG, *words], lambda _: report)
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"palaestra eval {TAG} {players}")


def test_fm3q_learns_both_teams_or_none(tmp_path: Path):
    with pytest.raises(ValueError, match="leave --team red out"):
        fm3q.train(fm3q.Args(**{**SMALL, "team": "red"}, directory=tmp_path))
