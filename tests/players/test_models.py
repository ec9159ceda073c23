"""Modules of PyTorch, TorchScript and ONNX files, and callables as players."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import duel, two_team_homogeneous
from games.play import simulation

import palaestra
from palaestra.core.files import FileError
from palaestra.core.opponents import player_name, resolve
from palaestra.evaluation import evaluate
from palaestra.players import as_opponent
from palaestra.replay import record

torch = pytest.importorskip("torch")

MELEE, DUEL, PAIRS = two_team_homogeneous.game(), duel.game(players=1), duel.game(players=2)
SIZE = 34
"""Numbers that a point of the melee sees."""
MELEE_ID = "test/Melee-v0"
palaestra.register(MELEE_ID, "games.two_team_homogeneous:game", family="test")


def module(inputs: int, outputs: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))


def script_file(path: Path, net: Any) -> Path:
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        torch.jit.save(torch.jit.script(net), str(path))
    return path


def played(game: Any, player: Any, team: str = "red") -> tuple[Any, np.ndarray]:
    """Observations and actions of one decision in three lanes."""
    sim = simulation(game, 3, compiled=False, opponents={team: player})
    sim.reset(seed=2)
    seen = sim.team_view(team, "observations").copy()
    sim.step()
    return seen, sim.team_view(team, "actions")


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
        (lambda rows: np.zeros((len(rows), 3 * (2 if rows.shape[1] > 3 else 1))), {}, 'say which by agents="joint" or'),
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


@pytest.mark.parametrize("suffix", [".pt", ".ts"])
def test_a_torchscript_file_plays_as_its_module(suffix: str, tmp_path: Path):
    net = module(SIZE, 2)
    path = script_file(tmp_path / f"mine{suffix}", net)
    expected = played(MELEE, as_opponent(net))[1]
    np.testing.assert_allclose(played(MELEE, path)[1], expected, atol=1e-6)
    copy = pickle.loads(pickle.dumps(resolve(MELEE, "red", path)))
    np.testing.assert_allclose(played(MELEE, copy)[1], expected, atol=1e-6)
    assert player_name(copy) == player_name(str(path)) == "mine"


def test_a_pickled_module_is_refused_and_not_unpickled(tmp_path: Path):
    mark, path = tmp_path / "mark", tmp_path / "mine.pt"

    class Harm:
        def __reduce__(self):
            return (Path.touch, (mark,))

    for write in (lambda: torch.save(Harm(), path), lambda: path.write_bytes(pickle.dumps(Harm()))):
        write()
        with pytest.raises(
            FileError, match=r"mine.pt: .*write it by torch.jit.save\(torch.jit.script\(module\), path\)"
        ):
            resolve(MELEE, "red", path)
    assert not mark.exists()


@pytest.mark.parametrize("operator", ["from_file", "save"])
def test_a_script_that_reaches_files_is_refused(operator: str, tmp_path: Path):
    mark = tmp_path / "mark"

    class Harm(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, rows: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportInvalidTypeForm]
            return torch.from_file(self.name, True, 1)

    path = script_file(tmp_path / "harm.pt", Harm(str(mark)))
    if operator == "save":
        with zipfile.ZipFile(path) as archive:
            members = {entry: archive.read(entry) for entry in archive.infolist()}
        with zipfile.ZipFile(path, "w") as archive:
            for entry, content in members.items():
                archive.writestr(entry, content.replace(b"torch.from_file", b"torch.save"))
    with pytest.raises(FileError, match=f"harm.pt: its code uses {operator}, which reaches files"):
        resolve(MELEE, "red", path)
    assert not mark.exists()


def test_damaged_scripts_play_or_are_refused_by_name(refused_by_name, tmp_path: Path):
    path = script_file(tmp_path / "mine.pt", module(SIZE, 2))
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for k in range(60):
        damaged = bytearray(whole[: rng.integers(1, len(whole))] if k % 2 else whole)
        for _ in range(3):
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with refused_by_name(path):
            resolve(MELEE, "red", path)


def test_a_script_whose_weights_are_damaged_is_refused(tmp_path: Path):
    path = script_file(tmp_path / "mine.pt", module(SIZE, 2))
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        weights = next(entry for entry in archive.infolist() if re.search(r"/data/\d+$", entry.filename))
        at = content.index(archive.read(weights), weights.header_offset)
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"mine.pt: damaged: .*/data/\d+ is not what was written"):
        resolve(MELEE, "red", path)


def test_another_suffix_is_refused_with_those_that_work(tmp_path: Path):
    path = tmp_path / "mine.pkl"
    path.write_bytes(b"")
    with pytest.raises(
        FileError, match=r"mine.pkl: .* holds no policy: give one of .safetensors, .zip, .pt, .ts, .onnx"
    ):
        resolve(MELEE, "red", path)
    with pytest.raises(FileError, match=r"absent.zip: there is no such file"):
        resolve(MELEE, "red", tmp_path / "absent.zip")


def test_files_play_wherever_a_player_is_named(tmp_path: Path):
    path = str(script_file(tmp_path / "mine.pt", module(SIZE, 2)))
    table = evaluate(MELEE_ID, path, "random", matches=2, horizon=3)
    assert table.a == "mine"
    assert record(MELEE_ID, {"red": path}, horizon=3).players["red"] == "mine"
    with_one = evaluate(MELEE_ID, as_opponent(module(SIZE, 2)), "random", matches=2, horizon=3)
    np.testing.assert_array_equal(with_one.results, table.results)


def onnx_file(path: Path, weight: np.ndarray) -> Path:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["seen", "weight"], ["actions"], transB=1)],
        "policy",
        [helper.make_tensor_value_info("seen", kind, ["rows", weight.shape[1]])],
        [helper.make_tensor_value_info("actions", kind, ["rows", weight.shape[0]])],
        [onnx.numpy_helper.from_array(weight.astype(np.float32), "weight")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), str(path))
    return path


def test_an_onnx_file_plays(tmp_path: Path):
    runtime = pytest.importorskip("onnxruntime")
    weight = np.random.default_rng(0).normal(size=(2, SIZE))
    path = onnx_file(tmp_path / "mine.onnx", weight)
    seen, actions = played(MELEE, path)
    np.testing.assert_allclose(actions, np.clip(seen @ weight.T, -1, 1), atol=1e-5)
    copy = pickle.loads(pickle.dumps(resolve(MELEE, "red", path)))
    np.testing.assert_array_equal(played(MELEE, copy)[1], actions)
    np.testing.assert_array_equal(played(MELEE, as_opponent(runtime.InferenceSession(str(path))))[1], actions)


def test_what_is_no_onnx_file_is_refused(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "mine.onnx"
    path.write_bytes(b"no graph")
    with pytest.raises(FileError, match=r"mine\.onnx: no ONNX file that onnxruntime can run"):
        resolve(MELEE, "red", path)


def test_without_onnxruntime_the_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    path = tmp_path / "mine.onnx"
    path.write_bytes(b"")
    with pytest.raises(ImportError, match="pip install onnxruntime"):
        resolve(MELEE, "red", path)


def test_the_exact_solver_takes_players_of_models():
    from palaestra.exact import enumerate_positions
    from palaestra.exact.policies import joint_policy

    table = enumerate_positions(DUEL, symmetry=False)
    of_function = joint_policy(table, as_opponent(lambda rows: rows @ np.diag([1.0, 2.0, 0.5])), "red")
    assert set(np.unique(of_function)) <= {0.0, 1.0}
