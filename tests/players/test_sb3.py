"""Models of Stable-Baselines3 as players: what they do is what ``model.predict`` says, whichever way they came."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import duel, relay, two_team_homogeneous
from games.play import simulation

from palaestra.core.files import FileError
from palaestra.core.run.opponents import resolve
from palaestra.players import as_opponent

sb3 = pytest.importorskip("stable_baselines3")
torch = pytest.importorskip("torch")

MELEE, DUEL, PAIRS, RELAY = two_team_homogeneous.game(), duel.game(players=1), duel.game(players=2), relay.game()
MIXED = next(team for team in RELAY.teams if len(RELAY.team_roles(team)) > 1)


def model_of(env: Any, algorithm: str = "PPO", **keywords: Any) -> Any:
    """An untrained model whose actions differ from row to row."""
    policy = "MultiInputPolicy" if hasattr(env.observation_space, "spaces") else "MlpPolicy"
    keywords.setdefault("policy_kwargs", {"net_arch": [8, 8]})
    if algorithm in ("SAC", "TD3", "DQN"):
        keywords["buffer_size"] = 10
    model = getattr(sb3, algorithm)(policy, env, seed=1, device="cpu", **keywords)
    with torch.no_grad():
        for weight in model.policy.parameters():
            weight.mul_(3.0)
    return model


CASES = {
    "joint reals": ("PPO", MELEE, "red", "joint", "flat", "separate"),
    "reals of each agent": ("PPO", MELEE, "red", "rows", "flat", "separate"),
    "dict observations": ("PPO", MELEE, "blue", "rows", "dict", "separate"),
    "joint dict": ("A2C", MELEE, "red", "joint", "dict", "separate"),
    "one choice": ("PPO", DUEL, "red", "joint", "flat", "separate"),
    "several choices": ("PPO", PAIRS, "blue", "joint", "flat", "separate"),
    "joint choices": ("DQN", PAIRS, "red", "joint", "flat", "discrete"),
    "values of each agent": ("DQN", PAIRS, "red", "rows", "flat", "separate"),
    "squashed Gaussian": ("SAC", MELEE, "red", "rows", "flat", "separate"),
    "deterministic actor": ("TD3", MELEE, "red", "joint", "flat", "separate"),
    "padded roles": ("PPO", RELAY, MIXED, "rows", "flat", "separate"),
    "joint roles": ("PPO", RELAY, MIXED, "joint", "flat", "separate"),
}


@pytest.mark.check
@pytest.mark.parametrize("source", ["model", "file"])
@pytest.mark.parametrize("case", CASES)
def test_a_model_plays_what_it_predicts(case: str, source: str, spaces_env, moments, tmp_path: Path):
    algorithm, game, team, agents, form, choices = CASES[case]
    model = model_of(spaces_env(game, team, agents, form, choices), algorithm)
    player: Any = as_opponent(model)
    if source == "file":
        model.save(tmp_path / "mine.zip")
        player = str(tmp_path / "mine.zip")
    compared = 0
    for seen, masks, played, acting in moments(game, team, agents, form, player, 6, choices):
        expected = model.predict(seen, deterministic=True)[0]
        legal = np.ones(len(acting), np.bool_)
        if choices == "discrete":
            legal = masks[np.arange(len(expected)), expected]
            expected = np.stack(np.unravel_index(expected, (3,) * acting.shape[1]), axis=1)
        whole = np.concatenate([part.reshape(len(acting), -1) for part in played], axis=1)
        expected = expected.reshape(len(acting), -1)
        counts = np.repeat(acting & legal[:, None], whole.shape[1] // acting.shape[1], axis=1)
        if masks is not None and choices != "discrete":  # predict knows no masks: compare what they allow
            counts &= _allowed(expected, masks, whole.shape[1])
        np.testing.assert_allclose(whole[counts], expected[counts], atol=1e-5)
        compared += int(counts.sum())
    assert compared > 3


def _allowed(chosen: np.ndarray, masks: np.ndarray, count: int) -> np.ndarray:
    """Whether the masks allow each choice of the rows."""
    flat = masks.reshape(len(chosen), -1)
    sizes = [flat.shape[1] // count] * count if flat.shape[1] % count == 0 else [3] * (count - 1) + [2]
    starts = np.cumsum([0, *sizes[:-1]])
    return np.take_along_axis(flat, chosen.astype(int) + starts, axis=1)


def test_draws_follow_the_seed_of_the_lane_alone(spaces_env):
    player = as_opponent(model_of(spaces_env(MELEE, "red", "rows", "flat")), deterministic=False)

    def drawn(lanes: list[int], team: str = "red") -> np.ndarray:
        sim = simulation(MELEE, len(lanes), compiled=False, opponents={team: player})
        sim.reset(seed=lanes)
        found = []
        for _ in range(2):
            sim.step(np.zeros((len(lanes), 10, 2)))
            found.append(sim.actions[:, list(MELEE.teams[team])].copy())
        return np.array(found)

    four, two = drawn([5, 6, 7, 8]), drawn([8, 6])
    np.testing.assert_allclose(four[:, [3, 1]], two, atol=1e-6)
    assert len(np.unique(four.round(6), axis=None)) > 30, "every number is drawn by itself"
    assert not np.allclose(four[0], four[1])
    np.testing.assert_array_equal(four, drawn([5, 6, 7, 8]))


@pytest.mark.parametrize("source", ["model", "file"])
@pytest.mark.parametrize(("algorithm", "game"), [("PPO", MELEE), ("SAC", MELEE), ("PPO", DUEL)])
def test_draws_have_the_distribution_of_the_model(algorithm: str, game: Any, source: str, spaces_env, tmp_path: Path):
    model = model_of(spaces_env(game, "red", "rows", "flat"), algorithm)
    player = as_opponent(model, deterministic=False)
    if source == "file":
        model.save(tmp_path / "mine.zip")
        player.model = resolve(game, "red", tmp_path / "mine.zip").player.model  # type: ignore[union-attr]
    n = 3000
    sim = simulation(game, 1, compiled=False)
    sim.reset(seed=0)
    agent = player.for_team(game, "red")
    rows = np.repeat(sim.team_view("red", "observations")[:1], n, axis=0)
    legal = None if sim.legal is None else np.ones((n, *sim.team_view("red", "legal").shape[1:]), np.int8)
    slots = len(game.teams["red"])
    ones = np.ones((n, slots), np.bool_)
    actions = agent.act(rows, legal, ones, ones[:, 0], np.arange(n, dtype=np.uint64), np.zeros((n, 1)))
    reference = model.predict(np.repeat(rows[:1, 0], 3000, axis=0), deterministic=False)[0]
    ours = np.asarray(actions)[:, 0].reshape(n, -1)
    np.testing.assert_allclose(ours.mean(0), reference.reshape(n, -1).mean(0), atol=0.06)
    np.testing.assert_allclose(ours.std(0), reference.reshape(n, -1).std(0), atol=0.06)


@pytest.mark.parametrize("source", ["model", "file"])
@pytest.mark.parametrize(("algorithm", "name"), [("PPO", "probability"), ("DQN", "action value")])
def test_a_model_tells_probabilities_or_values(algorithm: str, name: str, source: str, spaces_env, tmp_path: Path):
    model = model_of(spaces_env(DUEL, "red", "rows", "flat"), algorithm)
    player = as_opponent(model).for_team(DUEL, "red")
    if source == "file":
        model.save(tmp_path / "mine.zip")
        player = resolve(DUEL, "red", tmp_path / "mine.zip")
    sim = simulation(DUEL, 4, compiled=False)
    sim.reset(seed=0)
    seen, legal = sim.team_view("red", "observations"), sim.team_view("red", "legal").copy()
    legal[1:, :, 2] = 0
    ones = np.ones((4, 1), np.bool_)
    chosen = player.act(seen, legal, ones, ones[:, 0], np.zeros(4, np.uint64), np.zeros((4, 0)))  # type: ignore[union-attr]
    (told,) = player.policy_outputs.values()  # type: ignore[union-attr]
    assert list(player.policy_outputs) == [name]  # type: ignore[union-attr]
    assert told.shape == (4, 1, 3)
    tensor = torch.from_numpy(seen[:, 0].copy())
    if algorithm == "DQN":
        np.testing.assert_allclose(told[:, 0], model.q_net(tensor).detach(), atol=1e-5)
        return
    weights = model.policy.get_distribution(tensor).distribution.probs.detach().numpy() * legal[:, 0]
    np.testing.assert_allclose(told[:, 0], weights / weights.sum(1, keepdims=True), atol=1e-5)
    np.testing.assert_array_equal(told[:, 0].argmax(1), np.asarray(chosen)[:, 0].ravel())


def test_values_are_no_distribution(spaces_env):
    player = as_opponent(model_of(spaces_env(DUEL), "DQN"), deterministic=False)
    sim = simulation(DUEL, 2, compiled=False, opponents={"red": player})
    sim.reset(seed=0)
    with pytest.raises(ValueError, match=r"DQN, red of Duel: .* no distribution to draw from: deterministic=True"):
        sim.step()


def test_a_model_of_another_game_is_refused_with_what_both_see(spaces_env, tmp_path: Path):
    model = model_of(spaces_env(MELEE, "red", "rows", "flat"))
    with pytest.raises(
        ValueError,
        match=r"PPO: the model does not fit red of Duel. The model: Box\(34,\) -> Box\(2,\). The team, the whole",
    ):
        simulation(DUEL, 1, opponents={"red": as_opponent(model)})
    model.save(tmp_path / "melee.zip")
    with pytest.raises(
        FileError, match=r"melee.zip: .* does not fit red of Duel. The model: Box of \d+ numbers -> Box by 2"
    ):
        simulation(DUEL, 1, opponents={"red": str(tmp_path / "melee.zip")})


def test_a_model_itself_is_no_player_and_the_error_says_what_is(spaces_env):
    with pytest.raises(TypeError, match=r"got PPO: give palaestra.players.as_opponent\(model\)"):
        simulation(DUEL, 1, opponents={"red": model_of(spaces_env(DUEL))})


def test_a_file_plays_after_it_is_gone_and_in_other_processes(spaces_env, tmp_path: Path):
    model_of(spaces_env(MELEE)).save(tmp_path / "mine.zip")
    player = resolve(MELEE, "red", tmp_path / "mine.zip")
    (tmp_path / "mine.zip").unlink()
    copy = pickle.loads(pickle.dumps(player))
    assert copy.name == "mine"
    sim = simulation(MELEE, 2, compiled=False, opponents={"red": copy})
    sim.reset(seed=0)
    sim.step()


class Harm:
    """Would leave a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def rewritten(path: Path, changes: dict[str, bytes | None], compress: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def test_a_hostile_archive_runs_nothing(spaces_env, tmp_path: Path):
    import base64

    import cloudpickle

    path, mark = tmp_path / "hostile.zip", tmp_path / "mark"
    model_of(spaces_env(DUEL)).save(path)
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
    harm = base64.b64encode(cloudpickle.dumps(Harm(mark))).decode()
    for item in data.values():
        if isinstance(item, dict) and ":serialized:" in item:
            item[":serialized:"] = harm
    resolve(DUEL, "red", rewritten(path, {"data": json.dumps(data).encode()}))
    assert not mark.exists()
    rewritten(path, {"policy.pth": pickle.dumps(Harm(mark))})
    with pytest.raises(FileError, match=r"hostile.zip: its policy.pth holds no plain weights"):
        resolve(DUEL, "red", path)
    buffer = io.BytesIO()
    torch.save({"action_net.weight": Harm(mark)}, buffer)
    with pytest.raises(FileError, match=r"hostile.zip: its policy.pth holds no plain weights"):
        resolve(DUEL, "red", rewritten(path, {"policy.pth": buffer.getvalue()}))
    assert not mark.exists()
    pickle.loads(pickle.dumps(Harm(mark)))
    assert mark.exists(), "the mark tells"


def test_a_list_that_begins_before_the_archive_is_an_error_of_the_file(spaces_env, tmp_path: Path):
    path = tmp_path / "mine.zip"
    model_of(spaces_env(DUEL)).save(path)
    content = bytearray(path.read_bytes())
    content[-6:-2] = (int.from_bytes(content[-6:-2], "little") + 100_000).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"mine.zip: a damaged file, or no model of Stable-Baselines3"):
        resolve(DUEL, "red", path)


def test_an_archive_of_very_many_members_is_refused_unread(tmp_path: Path):
    path = tmp_path / "mine.zip"
    path.write_bytes(b"PK\1\2" * 20_000)
    with pytest.raises(FileError, match=r"mine.zip: .* more than 10000 members"):
        resolve(DUEL, "red", path)


def test_words_of_an_archive_are_quoted(spaces_env, tmp_path: Path):
    path = tmp_path / "mine.zip"
    model_of(spaces_env(DUEL)).save(path)
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
    rewritten(path, {"data": json.dumps(data | {"policy_kwargs": {"\x1b[2J" + "x" * 9000: 1}}).encode()})
    with pytest.raises(FileError, match=r"the keyword '\\x1b\[2Jx{56}'\.\.\. \(9004 characters\)"):
        resolve(DUEL, "red", path)


def test_damaged_archives_play_or_are_refused_by_name(spaces_env, refused_by_name, tmp_path: Path):
    path = tmp_path / "mine.zip"
    model_of(spaces_env(DUEL)).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for k in range(150):
        damaged = bytearray(whole)
        if k % 3 == 0:
            damaged = damaged[: rng.integers(len(whole))]
        for _ in range(1 + k % 4):
            if damaged:
                damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with refused_by_name(path):
            resolve(DUEL, "red", path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"policy_kwargs": {"features_extractor_class": "x"}}, "the keyword 'features_extractor_class'"),
        ({"policy_class": {"__module__": "mine.policies"}}, "its policy class is of 'mine.policies', whose code would"),
        (
            {"policy_kwargs": {"activation_fn": "<class 'torch.nn.modules.activation.Softsign'>"}},
            "activation is 'Softsign'",
        ),
        ({"use_sde": True}, "explores by gSDE"),
        ({"observation_space": {":type:": "<class 'mine.Box'>"}}, "its spaces are not those"),
        ({"observation_space": 3}, "its spaces are not those"),
    ],
)
def test_what_cannot_be_read_safely_is_refused_with_the_way_out(
    change: dict, complaint: str, spaces_env, tmp_path: Path
):
    path = tmp_path / "mine.zip"
    model_of(spaces_env(DUEL)).save(path)
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
    rewritten(path, {"data": json.dumps(data | change).encode()})
    with pytest.raises(FileError, match=rf"mine.zip: .*{complaint}.*PPO.load\(path\), and give .*as_opponent\(model\)"):
        resolve(DUEL, "red", path)


def test_other_zip_files_are_refused(tmp_path: Path, spaces_env):
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(
        FileError, match=r"mine.zip: no model of Stable-Baselines3, data and policy.pth is missing in it"
    ):
        resolve(DUEL, "red", path)
    model_of(spaces_env(DUEL)).save(path)
    with pytest.raises(FileError, match=r"mine.zip: its data is compressed or too large"):
        resolve(DUEL, "red", rewritten(path, {}, zipfile.ZIP_DEFLATED))


def test_a_custom_extractor_is_refused(spaces_env, tmp_path: Path):
    from stable_baselines3.common.torch_layers import FlattenExtractor

    class Scaled(FlattenExtractor):
        def __init__(self, space: Any) -> None:
            super().__init__(space)
            self.register_buffer("scale", torch.ones(1))

    kwargs = {"net_arch": [8], "features_extractor_class": Scaled}
    model_of(spaces_env(DUEL), policy_kwargs=kwargs).save(tmp_path / "mine.zip")
    with pytest.raises(FileError, match=r"keyword 'features_extractor_class'"):
        resolve(DUEL, "red", tmp_path / "mine.zip")
