"""Meta-DT: what is learnt, players and their prompts, families of tasks, runs and files."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.random_walks import Episode, walks
from baselines.short_runs import Stop, assert_same_run, whole_and_resumed

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.data import make_data
from palaestra_baselines import meta_dt
from palaestra_baselines.common import task_families
from palaestra_baselines.common.decision_transformers import (
    Agent,
    Design,
    design_of,
)
from palaestra_baselines.common.offline_data import (
    Matches,
    gather_matches,
    largest_segments,
    make_learnable,
)
from palaestra_baselines.common.sequence_player import SequencePlayer
from palaestra_baselines.common.task_families import (
    Family,
    find_family,
    play_matches,
    play_returns,
    read_matches,
    reference_returns,
)
from palaestra_baselines.meta_dt import Args, Learner, load_policy

pytestmark = pytest.mark.check

POINT = "palaestra/MetaPoint-v0"
SMALL = Design("reward", 3, "largest", prompt=3, steps=6, width=8, layers=2, heads=2, tokens=1)
TINY: dict[str, Any] = {
    **{"matches_per_task": 2, "context": 3, "world_steps": 4, "world_batch": 8, "total_steps": 6, "batch_size": 4},
    **{"context_steps": 6, "prompt_steps": 3, "width": 8, "evaluations": 3, "episodes": 2, "matches": 2},
    **{"quiet": True},
}
ARMS: dict[str, dict[str, Any]] = {
    "Meta-DT": {},
    "any segment": {"prompt": "random", "decoder": "both"},
    "DT": {"task": "hidden", "prompt": "none"},
    "Prompt-DT": {"task": "hidden", "prompt": "expert"},
    "true task": {"task": "true", "prompt": "none", "tokens": 3},
}


@pytest.fixture(autouse=True)
def seeded():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def family() -> Family:
    return find_family(POINT, {})


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules run as plain Python."""
    monkeypatch.setattr(registry, "make_batch", functools.partial(registry.make_batch, compiled=False))


# -- what is learnt ----------------------------------------------------------------------------------------------------


def learner_of(family: Any, matches: Matches, prompts: Matches | None = None, **changes: Any) -> Learner:
    torch.manual_seed(0)
    learner = Learner(Args(**{**TINY, "prompt_share": 0.5, **changes}), family, matches, prompts)
    learner.learn_world()
    learner.prepare()
    return learner


@pytest.mark.parametrize("arm", ["Meta-DT", "Prompt-DT"])
def test_the_number_of_a_task_decides_nothing_that_is_learnt(family: Family, arm: str):
    found = []
    for numbers in ((7, 3, 5), (0, 41, 30)):
        prompts = gather_matches(walks(numbers, seed=1)) if arm == "Prompt-DT" else None
        learner = learner_of(family, gather_matches(walks(numbers)), prompts, **ARMS[arm])
        found.append(([learner.step(0.0) for _ in range(3)], learner.matches.digest))
    assert found[0] == found[1]


def test_a_batch_has_whole_windows_and_prompts_of_other_matches_of_the_same_task(
    family: Family, monkeypatch: pytest.MonkeyPatch
):
    learner = learner_of(family, gather_matches(walks()), batch_size=64)
    kept = dict[str, Any]()

    def look(rows: torch.Tensor, prompt: torch.Tensor, is_there: torch.Tensor) -> torch.Tensor:
        kept.update(rows=rows, prompt=prompt, is_there=is_there)
        return torch.zeros(*rows.shape[:2], 2)

    def look_at_loss(predicted: torch.Tensor, actions: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        kept.update(actions=actions, weights=weights)
        return predicted.sum()

    monkeypatch.setattr(learner.agent.transformer, "forward", look)
    monkeypatch.setattr(meta_dt, "imitation_loss", look_at_loss)
    learner.loss()
    source = learner.source.rows
    starts = set()
    for row, prompt, actions, weights in zip(
        kept["rows"], kept["prompt"], kept["actions"], kept["weights"], strict=True
    ):
        match, start = next((n, t) for n in range(9) for t in range(4) if torch.equal(source[n, t : t + 6], row))
        other, at = next((n, t) for n in range(9) for t in range(7) if torch.equal(source[n, t : t + 3], prompt))
        assert other != match
        assert learner.matches.tasks[other] == learner.matches.tasks[match]
        assert at == learner.source.starts[other]  # type: ignore[index]
        torch.testing.assert_close(actions, learner.data.decisions.actions[match, start : start + 6])
        torch.testing.assert_close(weights, learner.data.weights[match, start : start + 6])
        starts.add(start)
    assert starts == {0, 1, 2, 3}
    assert 0.25 < kept["is_there"].float().mean() < 0.75


def test_the_context_of_a_row_is_that_of_the_world_model_or_the_true_task(family: Family):
    numbers = tuple(family.training[:3].tolist())
    matches = gather_matches(walks(numbers))
    learner = learner_of(family, matches)
    z, errors = meta_dt.predict(learner.agent.world, learner.data)
    torch.testing.assert_close(learner.source.rows[..., 6:], z)
    assert learner.source.starts is not None
    assert learner.source.starts.tolist() == largest_segments(errors, matches.lengths, 3).tolist()
    told = learner_of(family, matches, **ARMS["true task"])
    for row, task in zip(told.source.rows, matches.tasks, strict=True):
        torch.testing.assert_close(row[:, 6:], torch.from_numpy(family.told[task]).expand(9, -1))


def test_the_learning_rate_is_a_fifth_of_it_at_the_end(family: Family, monkeypatch: pytest.MonkeyPatch):
    rates = list[float]()
    monkeypatch.setattr(meta_dt, "gradient_step", lambda optimizer, loss, rate, norm: rates.append(rate))
    learner = learner_of(family, gather_matches(walks()), task="hidden", prompt="none")
    for progress in (0.0, 0.69, 0.71, 1.0):
        learner.step(progress)
    assert rates == pytest.approx([1e-3, 1e-3, 2e-4, 2e-4])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"task": "hidden"}, "--prompt largest needs the world model of --task context, got --task hidden"),
        ({"heads": 3}, "--width must be a multiple of --heads, got 64 and 3"),
        ({"tokens": 2}, "--tokens is 1 or 3, got 2"),
        ({"context_steps": 5}, "--context-steps must be at least 6, got 5"),
        ({"prompt_share": 1.5}, "--prompt-share must be between 0 and 1, got 1.5"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes: dict[str, Any], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        Args(**changes).check()


# -- players -----------------------------------------------------------------------------------------------------------


def agent_of(family: Family, **changes: Any) -> Agent:
    """An agent of random weights, scaled by what uniform play sees."""
    agent = Agent(dataclasses.replace(SMALL, **changes), 2, 2)
    agent.scaling.fit(state=torch.randn(20, 2), change=0.1 * torch.randn(20, 2), reward=torch.randn(20) - 1.0)
    agent.scaling.fit(to_go=8.0 * torch.randn(20) - 10.0)
    agent.target.fill_(-7.0)
    return agent.requires_grad_(False)


class Played(NamedTuple):
    """Matches of a lane, one after the other."""

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray


def play(family: Family, player: Any, steps: int, lanes: int = 2, task: int = 3, seed: int = 1) -> Played:
    """Decisions ``[N, steps]`` of a player in one task."""
    sim = family.make_lanes(lanes, task, autoreset_mode="same_step")
    sim.set_opponent("agent", player)
    sim.reset(seed=seed)
    parts: tuple[list[Any], ...] = ([], [], [])
    for _ in range(steps):
        parts[0].append(np.array(sim.observations)[:, 0])
        sim.step()
        parts[1].append(np.array(sim.team_view("agent", "actions"))[:, 0])
        parts[2].append(np.array(sim.rewards)[:, 0])
    sim.close()
    return Played(*(np.stack(part, 1) for part in parts))


def rows_of(agent: Agent, played: Played, lane: int, match: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The 20 decisions of a match as the learner makes them, ``[20, R]``, and errors of the world model ``[19]``."""
    inside = slice(20 * match, 20 * match + 20)
    states, actions, rewards = (part[lane, inside] for part in played)
    matches = gather_matches([Episode(np.concatenate([states, states[-1:]]), actions, rewards, 0)])
    data = make_learnable(matches, agent.scaling)
    z, errors = meta_dt.predict(agent.world, data)
    to_go = agent.target - torch.from_numpy(np.concatenate([[0.0], rewards[:-1]]).cumsum()).float()
    rows = dataclasses.replace(data, to_go=agent.scaling("to_go", to_go)[None]).rows(z)
    return rows[0], errors[0, :-1]


@pytest.mark.parametrize(
    ("tokens", "segment"),
    [(1, "largest"), *(pytest.param(*both, marks=pytest.mark.check) for both in ((3, "largest"), (1, "random")))],
)
def test_a_player_acts_by_its_last_decisions_and_the_prompt_of_its_earlier_matches(
    family: Family, interpreted: None, tokens: int, segment: str
):
    agent = agent_of(family, tokens=tokens, segment=segment)
    played = play(family, SequencePlayer(agent, family.roster.game, "agent"), 60)
    prompts = set[int]()
    for lane in range(2):
        before = [rows_of(agent, played, lane, match) for match in range(3)]
        for match in range(3):
            rows, _ = before[match]
            candidates = [
                (float(errors[at : at + 3].sum()), earlier[at : at + 3])
                for earlier, errors in before[:match]
                for at in range(17)
            ]
            if segment == "largest" and candidates:
                candidates = [max(candidates, key=lambda pair: pair[0])]
            for at in (0, 3, 5, 6, 11, 19):
                window = rows[max(at - 5, 0) : at + 1]
                given = torch.stack([c for _, c in candidates]) if candidates else torch.zeros(1, 3, rows.shape[1])
                there = torch.full((len(given),), bool(candidates))
                found = agent.transformer(window.expand(len(given), -1, -1), given, there)[:, -1]
                off = np.abs(found.numpy() - played.actions[lane, 20 * match + at]).max(-1)
                assert off.min() < 2e-5
                prompts |= {int(off.argmin())} if segment == "random" and at == 19 else set()
    assert len(prompts) > 2 or segment == "largest"


def test_the_score_of_a_prompt_is_the_largest_sum_of_errors_in_the_earlier_matches(
    family: Family, interpreted: None, monkeypatch: pytest.MonkeyPatch
):
    agent, kept = agent_of(family), list[np.ndarray]()
    player = SequencePlayer(agent, family.roster.game, "agent")
    act, at = player.act, list(player.shapes).index("before_score")
    monkeypatch.setattr(player, "act", lambda *given: (act(*given), kept.append(given[-1].copy()))[0])
    played = play(family, player, 41)
    for lane in range(2):
        errors = [rows_of(agent, played, lane, match)[1] for match in range(2)]
        best = max(float(part.unfold(0, 3, 1).sum(-1).max()) for part in errors)
        assert kept[-1][lane, at] == pytest.approx(best, rel=1e-4)


@pytest.mark.check
def test_a_player_plays_the_same_to_the_bit_whatever_lanes_are_beside_it(family: Family, interpreted: None):
    agent = agent_of(family)
    few, many = (play(family, SequencePlayer(agent, family.roster.game, "agent"), 26, lanes=lanes) for lanes in (3, 70))
    for part, same in zip(few, many, strict=True):
        np.testing.assert_array_equal(part, same[:3])


def test_what_is_aimed_at_is_the_same_number_at_the_start_in_all_tasks_and_falls_by_what_is_paid(family: Family):
    player = SequencePlayer(agent_of(family), family.roster.game, "agent")
    memory, at = np.zeros((1, player.memory_size)), list(player.shapes).index("to_go")
    for step in range(3):
        memory[:, 0] = -2.0
        player.act(np.zeros((1, 1, 2), np.float32), None, None, np.array([step == 0]), np.zeros(1, np.uint64), memory)
        assert memory[0, at] == -7.0 + 2.0 * step


@pytest.mark.check
def test_a_player_that_is_told_the_task_or_a_prompt_needs_no_memory_of_it(family: Family, interpreted: None):
    agent = agent_of(family, decoder="", segment="given", context=2)
    make = functools.partial(SequencePlayer, agent, family.roster.game, "agent")
    with pytest.raises(ValueError, match="trained to be told the task of each match, and nobody tells it"):
        make()
    told, prompt = torch.tensor([1.0, -1.0]), torch.randn(2, 3, 8)
    plain = play(family, make(told=told), 22)
    assert not np.array_equal(play(family, make(told=-told), 22).actions, plain.actions)
    assert not np.array_equal(play(family, make(told=told, prompt=prompt), 22).actions, plain.actions)
    np.testing.assert_array_equal(play(family, make(told=told), 22).actions, plain.actions)


def test_games_without_one_agent_of_numbers_or_without_tasks_are_refused():
    with pytest.raises(ValueError, match="TeamTrap-v0 is no family of tasks: choose from palaestra/Meta"):
        find_family("palaestra/TeamTrap-v0", {})
    with pytest.raises(ValueError, match="leave tasks= and task= out of the options"):
        find_family(POINT, {"tasks": "test"})


# -- data and scores ---------------------------------------------------------------------------------------------------


def test_only_matches_of_training_tasks_are_read(family: Family, monkeypatch: pytest.MonkeyPatch):
    train, test = int(family.training[0]), int(family.test[0])
    made = walks((train, test, train + 1000))
    monkeypatch.setitem(sys.modules, "palaestra.data", SimpleNamespace(read_data=lambda path, id: made))
    matches = read_matches(family, Path("folder"))
    assert matches.tasks.tolist() == [train] * 3
    np.testing.assert_allclose(matches.actions[0], made[0].actions, rtol=1e-6)


def test_a_medium_player_is_the_weakened_expert_of_one_wrong_task_in_all_its_matches(
    family: Family, interpreted: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(task_families, "NOISE", 0.0)
    matches = play_matches(family, family.test[:2], "medium", 3, seed=5)
    for task in family.test[:2]:
        own = matches.tasks == task
        places, moves = matches.states[own, :-1], matches.actions[own]
        goal = family.tasks[task]
        turned = [
            np.array([c * goal[0] - s * goal[1], s * goal[0] + c * goal[1]])
            for c, s in [(np.cos(a), np.sin(a)) for a in (-0.25, 0.25)]
        ]
        off = [np.abs(0.6 * np.clip((wrong - places) / 0.1, -1.0, 1.0) - moves).max() for wrong in turned]
        assert min(off) < 1e-5 < max(off)


@pytest.mark.parametrize("player", ["expert", "mixed"])
def test_recorded_matches_are_what_the_rules_made_of_the_actions(family: Family, interpreted: None, player: str):
    matches = play_matches(family, family.training[:2], player, 3, seed=5)
    assert matches.tasks.tolist() == np.repeat(family.training[:2], 3).tolist()
    assert matches.lengths.tolist() == [20] * 6
    np.testing.assert_allclose(matches.states[:, 1:], matches.states[:, :-1] + 0.1 * matches.actions, atol=1e-6)
    goals = family.tasks[matches.tasks][:, None]
    np.testing.assert_allclose(matches.rewards, -np.linalg.norm(goals - matches.states[:, 1:], axis=-1), atol=1e-6)
    best = np.clip((goals - matches.states[:, :-1]) / 0.1, -1.0, 1.0)
    is_expert = np.abs(best - matches.actions).max((1, 2)) < 1e-5
    assert is_expert.tolist() == ([True] * 6 if player == "expert" else [True, False, False] * 2)


class TellTale:
    """Pushes with all motors by the target speed that it is told, over 10 m/s; remembers how often it was asked."""

    memory_size = 1

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> Any:
        assert first.all() == (memory == 0.0).all()
        memory += 1.0
        return np.repeat(observations[:, :, -1:] / 10.0, 6, axis=2)


@pytest.fixture(scope="module")
def cheetahs() -> Family:
    return find_family("palaestra/MetaCheetahVel-v0", {}, TellTale())


@pytest.mark.check
def test_a_policy_that_is_told_the_task_is_the_expert_of_games_without_a_script(cheetahs: Family):
    matches = play_matches(cheetahs, cheetahs.test[:2], "expert", 2, seed=5)
    assert matches.states.shape == (4, 201, 17)  # the task is in no state
    pushes = cheetahs.tasks[matches.tasks][:, None] / 10.0
    np.testing.assert_allclose(matches.actions, np.broadcast_to(pushes, (4, 200, 6)), rtol=1e-6)
    few = dataclasses.replace(cheetahs, test=cheetahs.test[:2])
    returns = reference_returns(few, "expert", 1, 2, seed=5)
    np.testing.assert_allclose(returns[:, 0], matches.rewards.sum(1).reshape(2, 2), rtol=1e-5)


@pytest.mark.check
def test_a_medium_player_by_a_policy_is_weakened(cheetahs: Family, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_families, "NOISE", 0.0)
    matches = play_matches(cheetahs, cheetahs.test[:1], "medium", 1, seed=5)
    np.testing.assert_allclose(matches.actions, 0.06 * float(cheetahs.tasks[cheetahs.test[0], 0]), rtol=1e-6)


def test_an_expert_that_cannot_be_used_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="has a script 'expert'"):
        find_family(POINT, {}, TellTale())
    nobody = find_family("palaestra/MetaCheetahVel-v0", {})
    with pytest.raises(ValueError, match="--expert"):
        play_matches(nobody, nobody.test[:1], "medium", 1, seed=5)
    missing = dataclasses.replace(nobody, expert=str(tmp_path / "policy.safetensors"))
    with pytest.raises(FileError, match="no such file"):
        play_matches(missing, nobody.test[:1], "expert", 1, seed=5)
    random = dataclasses.replace(nobody, expert="random")
    with pytest.raises(ValueError, match="no policy"):
        play_matches(random, nobody.test[:1], "expert", 1, seed=5)


def test_the_expert_of_a_task_scores_100_and_uniform_play_0(family: Family, interpreted: None):
    few = dataclasses.replace(family, test=family.test[:2])
    played = [play_returns(few, lambda _, who=who: who, 2, 3, 0) for who in ("expert", "random")]
    assert played[0].shape == (2, 2, 3)
    for returns, score in zip(played, (100.0, 0.0), strict=True):
        assert task_families.scores(returns, *played).mean(1).tolist() == pytest.approx([score] * 2)


def test_what_is_said_of_tasks_is_scaled_by_those_for_training(family: Family):
    told = family.told[family.training]
    np.testing.assert_allclose(told.mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(told.std(0), 1.0, atol=1e-6)
    assert not set(family.training) & set(family.test)


# -- runs and files ----------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_run_learns_from_a_data_set_of_all_tasks_what_it_learns_from_its_training_tasks(
    few_tasks: None, family: Family, tmp_path: Path
):
    pytest.importorskip("minari")
    made = [(*family.training[:2].tolist(), family.test[0]), family.training[:2].tolist()]
    reports = []
    for tasks, name in zip(made, ("all-v0", "training-v0"), strict=True):
        make_data(POINT, "expert:0.5", tmp_path / name, episodes=3, each_task=tasks, tasks="all")
        args = Args(**{**TINY, "evaluations": 1}, data=str(tmp_path / name), directory=tmp_path / f"run-{name}")
        reports.append(meta_dt.train(args, lambda _: {}))
    assert reports[0].log[-1]["loss"] == reports[1].log[-1]["loss"]


@pytest.fixture
def few_tasks(monkeypatch: pytest.MonkeyPatch, interpreted: None) -> None:
    """Three tasks for training and two held out."""

    def find(env_id: str, options: Any, expert: Any) -> Family:
        found = find_family(env_id, options, expert)
        return dataclasses.replace(found, training=found.training[:3], test=found.test[:2])

    monkeypatch.setattr(meta_dt, "find_family", find)


@pytest.mark.check
@pytest.mark.parametrize("arm", ARMS)
def test_a_training_measures_scores_and_leaves_a_policy_that_plays(few_tasks: None, tmp_path: Path, arm: str):
    report = meta_dt.train(Args(**{**TINY, "total_steps": 2, "evaluations": 1, **ARMS[arm]}, directory=tmp_path))
    assert report.steps == 2
    more = {"with_expert", "with_uniform"} if arm == "Prompt-DT" else {"zero_shot"}
    assert set(report.log[-1]) == {"steps", "updates", "score", *more, "loss", "world_loss", "cpu_s"}
    game = find_family(POINT, {}).roster.game
    if arm == "true task":
        with pytest.raises(FileError, match="told the task"):
            load_policy(report.weights, game, "agent")
        return
    player = load_policy(report.weights, game, "agent")
    assert np.isfinite(play(find_family(POINT, {}), player, 5).actions).all()


@pytest.mark.check
@pytest.mark.parametrize("arm", ["Meta-DT", "Prompt-DT"])
def test_a_resumed_run_is_the_same_to_the_bit(few_tasks: None, tmp_path: Path, arm: str):
    args = Args(**{**TINY, **ARMS[arm]})
    assert_same_run(*whole_and_resumed(meta_dt, args, tmp_path))


def test_a_run_goes_on_with_its_own_data_alone(few_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    args = Args(**TINY, directory=tmp_path)

    def stop(_: Any) -> dict[str, float]:
        if any(tmp_path.glob("**/checkpoint.safetensors")):
            raise Stop
        return {}

    with pytest.raises(Stop):
        meta_dt.train(args, stop)
    monkeypatch.setattr(task_families, "NOISE", 0.4)
    with pytest.raises(FileError, match="begun with other data than --data medium has now"):
        meta_dt.train(dataclasses.replace(args, resume=True), stop)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"layers": 10**9}, "layers of the policy's design is 1000000000"),
        ({"decoder": "os.system"}, "decoder of the policy's design is 'os.system'"),
        ({"context": -1}, "context of the policy's design is -1"),
        ({"width": True}, "width of the policy's design is True"),
        ({"more": 1}, "the metadata hold no design of a sequence model"),
    ],
)
def test_a_design_that_cannot_be_is_refused(changes: dict[str, Any], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        design_of({**dataclasses.asdict(SMALL), **changes})
