"""Evaluation: the exact number of matches, the same seeds for all players, both sides, and the resulting figures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from games import body_game, two_team, two_team_homogeneous  # noqa: F401 (body_game registers its ids)
from games.play import simulation

import palaestra
from palaestra import registry
from palaestra.core.run.opponents import player_name
from palaestra.evaluation import evaluate, tournament
from palaestra.evaluation.matches import EVALUATION_RUN, MATCH, MatchTable, play_pair
from palaestra.evaluation.ratings import fit_elo, wilson_interval

pytestmark = pytest.mark.check

MELEE, RAID, CARTPOLE = "test/Melee-v0", "test/Raid-v0", "palaestra/CartPole-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")
palaestra.register(RAID, "games.two_team:game", family="test")


SHAPED = "test/ShapedCartPole-v0"


def shaped_cartpole():
    game = registry.make_game(CARTPOLE)[0]
    return replace(game, parameters=tuple(replace(p, shaping=p.name == "force_n") for p in game.parameters))


palaestra.register(SHAPED, shaped_cartpole, family="test")


def drift(observations: np.ndarray) -> np.ndarray:
    return np.zeros((*observations.shape[:2], 2))


def push_right(observations: np.ndarray) -> np.ndarray:
    return (observations[..., 2] > 0).astype(np.int64)


def test_a_player_against_itself_wins_half_of_the_points():
    table = evaluate(MELEE, "chaser", "chaser", matches=40, num_envs=8)
    assert table.wins == table.losses, "the same match from both sides has one winner"
    assert table.score == 0.5
    assert abs(table.mean_return) < 1e-5


def test_a_player_against_itself_shows_whether_the_sides_are_fair():
    table = evaluate(MELEE, "chaser", "chaser", matches=40)
    red_won = table.results["outcome"] * np.where(table.results["side"] == 0, 1, -1)
    assert table.first_team_score == np.mean((red_won + 1) / 2)
    low, high = table.first_team_interval
    assert (low, high) == wilson_interval(20 * table.first_team_score, 20), "a seed from both sides is one match"
    assert f"red's share {table.first_team_score:.3f}, 95 % interval {low:.3f} to {high:.3f}" in str(table)
    assert table.as_dict()["first_team_score"] == table.first_team_score
    assert "share" not in str(evaluate(MELEE, "chaser", "random", matches=2))


def test_the_first_team_has_its_share_with_either_player():
    results = np.zeros(4, MATCH)
    results["seed"], results["side"], results["outcome"] = [1, 1, 2, 3], [0, 1, 0, 0], [1, -1, 0, -1]  # red: 1 1 0 -1
    assert MatchTable("x", "a", "b", two_team.game(), results).first_team_score == (1 + 1 + 0.5) / 4


def test_the_stronger_player_wins_from_both_sides():
    table = evaluate(MELEE, "chaser", "random", matches=40)
    assert table.score > 0.85
    assert table.score_interval[0] > 0.7
    assert set(table.sides) == {"red", "blue"}
    back = evaluate(MELEE, "random", "chaser", matches=40)
    assert (back.wins, back.losses, back.draws) == (table.losses, table.wins, table.draws)


@pytest.mark.parametrize("num_envs", [1, 3, 64])
def test_the_result_does_not_depend_on_the_number_of_lanes(num_envs: int):
    expected = evaluate(MELEE, "chaser", "random", matches=11, num_envs=5)
    table = evaluate(MELEE, "chaser", "random", matches=11, num_envs=num_envs)
    np.testing.assert_array_equal(table.results, expected.results)


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_workers():
    expected = evaluate(MELEE, "chaser", "random", matches=8)
    table = evaluate(MELEE, "chaser", "random", matches=8, workers=2)
    np.testing.assert_array_equal(table.results, expected.results)


def test_each_seed_is_played_once_from_each_side():
    table = evaluate(MELEE, "chaser", "chaser", matches=7, seed=5)
    assert table.results["seed"].tolist() == [(5 << 32) + k for k in (0, 0, 1, 1, 2, 2, 3)]
    assert table.results["side"].tolist() == [0, 1, 0, 1, 0, 1, 0]


def test_every_match_of_a_lane_is_the_match_of_its_seed():
    table = evaluate(CARTPOLE, push_right, matches=9, num_envs=2)
    assert table.b is None
    sim = palaestra.make_batch(CARTPOLE, autoreset_mode="off")
    for result in table.results:
        sim.reset(seed=int(result["seed"]))
        while not (sim.terminated | sim.truncated)[0]:
            sim.step(push_right(sim.observations))  # type: ignore[arg-type]
        assert (sim.states["steps"][0], sim.info["end_reason"][0]) == (result["steps"], result["end_reason"])
        assert result["return_a"] == result["steps"]
    assert (table.results["seed"] >> np.uint64(32) == EVALUATION_RUN).all()


def test_players_keep_their_sides_where_teams_are_not_alike():
    table = evaluate(RAID, "runner", "fighter", matches=6)
    assert set(table.sides) == {"red"}
    with pytest.raises(ValueError, match=r"the teams of test/Raid-v0 are not alike: .* \(swap=False\)"):
        evaluate(RAID, "runner", "fighter", swap=True)


def test_the_first_line_says_which_sides_were_played():
    assert str(evaluate(MELEE, "chaser", "chaser", matches=6)).startswith(
        "test/Melee-v0: chaser against chaser, 6 matches, sides swapped, 3 seeds\n"
    )
    kept = evaluate(RAID, "runner", "fighter", matches=2)
    assert str(kept).splitlines()[0] == "test/Raid-v0: runner against fighter, 2 matches, runner plays red"
    assert kept.as_dict()["sides_swapped"] is False
    assert str(evaluate(CARTPOLE, push_right, matches=1)).splitlines()[0] == f"{CARTPOLE}: push_right, 1 matches"


def test_success_is_a_win_or_an_end_in_which_the_task_is_done():
    results = np.zeros(4, MATCH)
    results["end_reason"] = [1, 1, 2, 3]
    results["outcome"][0] = 1
    results["seed"] = range(4)
    game = replace(registry.make_game(CARTPOLE)[0], end_reasons=("done", "fell"))
    table = MatchTable("x", "a", None, game, results)
    assert table.success == 0.5
    assert table.as_dict()["success_interval"] == list(wilson_interval(2, 4))
    low, high = wilson_interval(2, 4)
    assert f"\n  success 0.500, 95 % interval {low:.3f} to {high:.3f}\n" in str(table)


def test_success_is_reported_where_the_rules_of_one_team_name_it():
    expected = {"Spread": True, "SparseSpread": True, "TeamTrap": True, "CartPole": False, "TeamPong": False}
    for name, names_it in expected.items():
        game, _ = registry.make_game(f"palaestra/{name}-v0")
        table = MatchTable("x", "a", None, game, np.zeros(1, MATCH))
        assert ("success" in table.as_dict(), "success" in str(table)) == (names_it, names_it), name


SYMMETRIC = {
    "ArenaDuel2v2",
    "GraphConfront",
    "GridBattle",
    "GridSoccer",
    "QuadFootball1v1",
    "QuadFootball2v2",
    "QuadSumo",
    "TeamGridSoccer",
    "TeamMatrix",
    "TeamPong",
    "TeamPush",
    "UcavDogfight",
    "UcavTeam",
}
SYMMETRIC_IDS = {"palaestra/ConcertDuel-v0", "palaestra/ConcertDuel-20-v0", "palaestra/SkirmishDuel-v0"}
"""Of games whose other ids are not."""


def test_players_change_sides_by_default_where_the_game_declares_its_teams_symmetric():
    for id in registry.ROWS:
        if not id.startswith("palaestra/"):
            continue
        game, _ = registry.make_game(id)
        assert game.symmetric_teams == (game.name in SYMMETRIC or id in SYMMETRIC_IDS), id
        proven = game.mirror is not None or game.physics is not None
        assert proven or not game.symmetric_teams, f"{id}: no proof"
    assert not registry.make_game("palaestra/TeamMatrix-v0", game="pennies")[0].symmetric_teams


def test_players_of_like_roles_with_other_tasks_change_sides_only_where_it_is_asked_for():
    hunt = replace(two_team_homogeneous.game(), symmetric_teams=False)
    make = lambda n: simulation(hunt, n, autoreset_mode="off", parameters={"horizon": 5})  # noqa: E731
    assert set(play_pair("Hunt", hunt, make, "chaser", "random", matches=4).sides) == {"red"}
    assert set(play_pair("Hunt", hunt, make, "chaser", "random", matches=4, swap=True).sides) == {"red", "blue"}


def test_teams_of_other_roles_cannot_be_declared_symmetric():
    with pytest.raises(ValueError, match="Raid: symmetric_teams needs two teams with equally many agents of each role"):
        replace(two_team.game(), symmetric_teams=True)


def test_sides_can_be_kept():
    assert set(evaluate(MELEE, "chaser", "chaser", matches=6, swap=False).sides) == {"red"}


def test_progress_counts_to_the_last_match():
    printed: list[tuple[int, int]] = []
    evaluate(MELEE, "chaser", drift, matches=13, num_envs=4, progress=lambda done, total: printed.append((done, total)))
    counts = [done for done, _ in printed]
    assert counts == sorted(set(counts))
    assert printed[-1] == (13, 13)


def test_parameters_of_the_rules_are_taken():
    assert evaluate(MELEE, "chaser", "chaser", matches=4, horizon=3).end_reasons == {"horizon": 4}


@pytest.mark.parametrize(
    ("players", "options", "error"),
    [
        (("chaser", "missing"), {}, "'missing' is neither a script of Melee"),
        (("chaser", None), {}, "has two teams: give as many players"),
        (("chaser", "chaser"), {"matches": 0}, "must be at least 1"),
        (("chaser", "chaser"), {"num_envs": 0}, "must be at least 1"),
        (("chaser", "chaser"), {"seed": 2**32}, "number of a run"),
        (("chaser", "chaser"), {"names": ("a",)}, "names must be two"),
        (("chaser", "chaser"), {"names": "ab"}, "names must be two"),
    ],
)
def test_what_makes_no_match_is_refused(players: tuple, options: dict, error: str):
    with pytest.raises(ValueError, match=error):
        evaluate(MELEE, *players, **options)


def test_a_game_with_one_team_takes_one_player():
    with pytest.raises(ValueError, match="has one team: give as many players"):
        evaluate(CARTPOLE, push_right, push_right)


def test_keywords_that_contradict_the_players_are_refused():
    with pytest.raises(TypeError, match="opponent= makes no sense here"):
        evaluate(MELEE, "chaser", "chaser", opponent="random")


def table_of(*outcomes: int) -> MatchTable:
    from games import two_team_homogeneous

    results = np.zeros(len(outcomes), MATCH)
    results["seed"], results["outcome"], results["return_a"] = range(len(outcomes)), outcomes, outcomes
    results["steps"], results["end_reason"] = 10, [2 if outcome else 1 for outcome in outcomes]
    return MatchTable("test", "a", "b", two_team_homogeneous.game(), results)


def test_the_table_counts_wins_losses_and_draws_apart():
    table = table_of(1, 1, 1, -1, 0)
    assert (table.matches, table.wins, table.losses, table.draws) == (5, 3, 1, 1)
    assert table.score == pytest.approx(0.7)
    assert table.win_interval == wilson_interval(3, 5)
    assert table.mean_return == pytest.approx(0.4)
    assert table.return_half_width == pytest.approx(1.96 * np.std([1, 1, 1, -1, 0], ddof=1) / math.sqrt(5), rel=1e-4)
    assert table.end_reasons == {"wiped_out": 4, "horizon": 1}
    assert "3 wins, 1 losses, 1 draws" in str(table)
    assert table.as_dict()["score_interval"] == list(wilson_interval(3.5, 5))


def both_sides(*pairs: tuple[int, int]) -> MatchTable:
    """Outcomes of a for each seed, as red and as blue."""
    table = table_of(*(outcome for pair in pairs for outcome in pair))
    table.results["seed"] = np.arange(len(table.results)) // 2
    table.results["side"] = np.arange(len(table.results)) % 2
    return table


def test_the_two_matches_of_a_seed_are_one_trial():
    table = both_sides((1, 1), (1, 1), (-1, -1), (1, -1))
    assert (table.matches, table.seeds, table.swapped) == (8, 4, True)
    assert table.score_interval == wilson_interval(4 * table.score, 4)
    assert table.win_interval == wilson_interval(4 * 5 / 8, 4)
    means = [1, 1, -1, 0]
    assert table.return_half_width == pytest.approx(1.96 * np.std(means, ddof=1) / math.sqrt(4), rel=1e-4)


def test_the_score_interval_covers_the_true_score_where_a_seed_decides_both_of_its_matches():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        won = np.where(rng.random(40) < 0.7, 1, -1)
        low, high = both_sides(*zip(won.tolist(), won.tolist(), strict=True)).score_interval
        covered.append(low <= 0.7 <= high)
    assert np.mean(covered) > 0.92  # with 80 independent trials it would be 0.83


def test_ratings_from_both_sides_have_wider_intervals_and_are_the_same():
    points = points_of([0, 100], 50)
    once, twice = (fit_elo(["a", "b"], points, {"a": 0}, matches_per_trial=k)["b"] for k in (1, 2))
    assert once.elo == twice.elo
    assert twice.half_width == pytest.approx(once.half_width * math.sqrt(2))


def test_wilson_interval_is_that_of_the_textbook():
    # Newcombe (1998, Statistics in Medicine 17), table I, method 3.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson_interval(1, 29) == pytest.approx((0.0061, 0.1718), abs=1e-4)
    assert wilson_interval(0, 0) == (0.0, 1.0)


def points_of(elo: list[float], games: float) -> np.ndarray:
    ratings = np.array(elo)
    expected = 1 / (1 + 10 ** ((ratings[None, :] - ratings[:, None]) / 400))
    return games * (expected - np.diag(np.diag(expected)))


def test_elo_finds_the_ratings_that_made_the_results():
    true = {"a": 1200.0, "b": 1000.0, "c": 750.0, "d": 1490.0}
    found = fit_elo(list(true), points_of(list(true.values()), 100), {"b": 1000.0}, virtual_draws=0)
    assert {name: round(r.elo, 4) for name, r in found.items()} == true
    assert found["b"].half_width == 0.0
    assert found["a"].half_width > 10.0


def test_elo_holds_several_anchors_against_the_results():
    found = fit_elo(["low", "new", "high"], points_of([0, 300, 600], 50), {"low": 0.0, "high": 1000.0})
    assert (found["low"].elo, found["high"].elo) == (0.0, 1000.0)
    assert found["new"].elo == pytest.approx(500, abs=1)


def test_elo_without_anchors_has_the_mean_zero():
    found = fit_elo(["a", "b", "c"], points_of([100, 0, -40], 1000))
    assert sum(r.elo for r in found.values()) == pytest.approx(0, abs=1e-6)
    assert found["a"].elo - found["b"].elo == pytest.approx(100, abs=1)


def test_elo_of_a_player_that_won_everything_is_finite():
    points = np.array([[0.0, 10.0], [0.0, 0.0]])
    assert 300 < fit_elo(["best", "worst"], points, {"worst": 0.0})["best"].elo < 700
    with pytest.raises(ValueError, match="won or lost everything"):
        fit_elo(["best", "worst"], points, {"worst": 0.0}, virtual_draws=0)


def test_elo_of_a_player_without_a_match_is_refused():
    with pytest.raises(ValueError, match="'c' met no player of known rating"):
        fit_elo(["a", "b", "c"], np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), {"a": 0.0})


def test_a_tournament_rates_all_players_with_the_anchor_fixed():
    printed: list[tuple[int, int]] = []
    result = tournament(
        MELEE,
        {"strong": "chaser", "weak": drift, "noise": "random"},
        matches=10,
        anchors={"weak": 1000},
        progress=lambda done, total: printed.append((done, total)),
    )
    assert next(iter(result.ratings)) == "strong"
    assert result.ratings["weak"].elo == 1000
    assert [(t.a, t.b) for t in result.tables] == [("strong", "weak"), ("strong", "noise"), ("weak", "noise")]
    assert printed[-1] == (30, 30)
    assert "anchor" in str(result)
    assert result.as_dict()["ratings"]["weak"] == {"elo": 1000.0, "half_width": 0.0}


def test_a_tournament_needs_players_with_names_of_their_own():
    with pytest.raises(ValueError, match="two players have the same name"):
        tournament(MELEE, ["chaser", "chaser"])
    with pytest.raises(ValueError, match="at least two players"):
        tournament(MELEE, ["chaser"])
    with pytest.raises(ValueError, match="anchor 'x' is none of the players: chaser, random"):
        tournament(MELEE, ["chaser", "random"], anchors={"x": 0})
    with pytest.raises(ValueError, match="the Elo of anchor 'random' must be a finite number, got nan"):
        tournament(MELEE, ["chaser", "random"], anchors={"random": float("nan")})


def test_players_are_called_by_their_names():
    assert [player_name(p) for p in ("expert", "expert:0.5", "runs/best.safetensors", drift, None)] == [
        "expert",
        "expert:0.5",
        "best",
        "drift",
        "caller",
    ]


def test_the_return_of_a_team_whose_agents_are_paid_apart_is_their_sum():
    table = evaluate("tests/Body-v0", "steer", matches=3, num_envs=2, horizon=10)
    sim = palaestra.make_batch("tests/Body-v0", 3, opponents={"puck": "steer"}, horizon=10, autoreset_mode="off")
    sim.reset(seed=(EVALUATION_RUN << 32) + np.arange(3, dtype=np.uint64))
    total = np.zeros((3, 3))
    for _ in range(10):
        sim.step()
        total += sim.rewards
    np.testing.assert_allclose(table.results["return_a"], total.sum(axis=1), rtol=1e-12)
    assert set(table.end_reasons) == {"horizon"}


def test_returns_are_without_shaping_unless_it_is_asked_for():
    plain = evaluate(SHAPED, push_right, matches=6)
    without, shaped = (evaluate(SHAPED, push_right, matches=6, force_n=newton) for newton in (0.0, 10.0))
    assert plain.results.tobytes() == without.results.tobytes() != shaped.results.tobytes()
    assert shaped.results.tobytes() == evaluate(CARTPOLE, push_right, matches=6).results.tobytes()
    assert palaestra.make_batch(SHAPED).parameters["force_n"].tolist() == [10.0]
