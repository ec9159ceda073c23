"""Modules of PyTorch and callables as players."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import duel, two_team_homogeneous
from games.play import played, simulation

from palaestra.core.files import FileError
from palaestra.core.run.opponents import resolve
from palaestra.players import as_opponent

torch = pytest.importorskip("torch")

MELEE, DUEL, PAIRS = two_team_homogeneous.game(), duel.game(players=1), duel.game(players=2)
SIZE = 34
"""Numbers that a point of the melee sees."""


def module(inputs: int, outputs: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))


def test_a_module_of_each_agent_gives_clipped_reals():
    net = module(SIZE, 2)
    with torch.no_grad():
        net[2].weight.mul_(30.0)
    seen, actions = played(MELEE, as_opponent(net))
    raw = net(torch.from_numpy(seen)).detach().numpy()
    np.testing.assert_allclose(actions, np.clip(raw, -1, 1), atol=1e-5)
    assert (np.abs(raw) > 1).any()


def test_a_module_of_the_whole_team_gives_all_its_reals():
    net = module(5 * SIZE, 10)
    seen, actions = played(MELEE, as_opponent(net), "blue")
    raw = net(torch.from_numpy(seen.reshape(3, -1))).detach().numpy()
    np.testing.assert_allclose(actions.reshape(3, 10), np.clip(raw, -1, 1), atol=1e-5)


def test_a_module_sees_a_dict_where_it_is_asked_for():
    class Net(torch.nn.Module):
        def forward(self, fields):
            return torch.cat([fields["position"], fields["position"]], 1)[:, :2]

    seen, actions = played(MELEE, as_opponent(Net(), observation="dict", agents="rows"))
    np.testing.assert_allclose(actions, seen[:, :, :2], atol=1e-6)


def test_a_module_in_training_plays_in_evaluation_mode_and_goes_on_training():
    net = torch.nn.Sequential(torch.nn.Linear(SIZE, 2), torch.nn.Dropout(0.5))
    net.train()
    first, second = (played(MELEE, as_opponent(net))[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert net.training
    assert net[1].training


def test_forbidden_alternatives_are_never_chosen():
    def prefers_the_last(observations: np.ndarray) -> np.ndarray:
        return np.tile([0.0, 1.0, 2.0], (len(observations), 1))

    sim = simulation(DUEL, 4, compiled=False, opponents={"red": as_opponent(prefers_the_last)})
    sim.reset(seed=0)
    for _ in range(5):
        allowed = sim.team_view("red", "legal")[:, 0].copy()
        sim.step()
        expected = np.where(allowed[:, 2] == 1, 2, 1)
        np.testing.assert_array_equal(sim.actions[:, 0], expected)
    assert not sim.info["illegal"].any()


def test_logits_are_drawn_by_the_softmax():
    logits = np.log([0.2, 0.5, 0.3])
    player = as_opponent(lambda rows: np.tile(logits, (len(rows), 1)), deterministic=False).for_team(DUEL, "red")
    n = 20_000
    act = lambda seeds: player.act(  # noqa: E731
        np.zeros((n, 1, 3), np.float32),
        np.ones((n, 1, 3), np.int8),
        np.ones((n, 1), np.bool_),
        np.ones(n, np.bool_),
        np.asarray(seeds, np.uint64),
        np.zeros((n, 1)),
    )[:, 0]
    np.testing.assert_allclose(np.bincount(act(range(n)), minlength=3) / n, [0.2, 0.5, 0.3], atol=0.015)
    assert len(set(act([7] * n).tolist())) == 1, "one seed, one draw"
    np.testing.assert_allclose(player.policy_outputs["score"], np.tile(logits, (n, 1, 1)))


def test_a_callable_may_give_integers():
    _, actions = played(PAIRS, as_opponent(lambda rows: np.full(len(rows), 1), agents="rows"))
    assert (actions == 1).all()
    _, actions = played(PAIRS, as_opponent(lambda rows: np.tile([0, 1], (len(rows), 1))))
    assert actions.tolist() == [[0, 1]] * 3


@pytest.mark.parametrize(
    ("model", "options", "complaint"),
    [
        (
            lambda rows: np.zeros((len(rows), 7)),
            {},
            r"it gives float64 \(1, 7\), neither logits \(1, 6\) nor integers \(1, 2\)",
        ),
        (lambda rows: (np.zeros((len(rows), 3)), 0), {}, "it gives a tuple: wrap it"),
        (lambda rows: np.zeros((len(rows), 3 * (2 if rows.shape[1] > 3 else 1))), {}, 'choose by agents="joint" or'),
        (lambda rows: np.zeros(3), {}, r"it gives float64 \(3,\), neither logits"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(model: Any, options: dict, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        simulation(PAIRS, 1, opponents={"red": as_opponent(model, **options)})


def test_nan_is_no_action():
    player = as_opponent(lambda rows: np.full((len(rows), 3), np.nan if len(rows) > 1 else 0.0))
    with pytest.raises(ValueError, match=r"<lambda>, red of Duel: the model gave NaN in row 0"):
        played(DUEL, player)


def test_words_and_things_that_are_no_model_are_refused():
    wrong: Any = ({"agents": "all"}, {"observation": "rgb"}, {"choices": "one"})
    for options in wrong:
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
            as_opponent(print, **options)
    with pytest.raises(TypeError, match=r"a model is one of Stable-Baselines3, .* got int"):
        as_opponent(3)


def test_another_suffix_is_refused_with_those_that_work(tmp_path: Path):
    path = tmp_path / "mine.pkl"
    path.write_bytes(b"")
    with pytest.raises(FileError, match=r"mine.pkl: .* holds no policy: give one of .safetensors, .zip, .onnx"):
        resolve(MELEE, "red", path)
    with pytest.raises(FileError, match=r"absent.zip: there is no such file"):
        resolve(MELEE, "red", tmp_path / "absent.zip")


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".ts"])
def test_a_file_of_torch_is_not_opened_and_the_error_says_what_to_write(suffix: str, tmp_path: Path):
    path = tmp_path / f"mine{suffix}"
    path.write_bytes(b"")
    with pytest.raises(
        FileError, match=r"torch.onnx.export\(module.eval\(\), .* external_data=False\), after pip install"
    ):
        resolve(MELEE, "red", path)


def test_the_exact_solver_takes_players_of_models():
    from palaestra.exact import enumerate_positions
    from palaestra.exact.policies import joint_policy

    table = enumerate_positions(DUEL, symmetry=False)
    of_function = joint_policy(table, as_opponent(lambda rows: rows @ np.diag([1.0, 2.0, 0.5])), "red")
    assert set(np.unique(of_function)) <= {0.0, 1.0}
