"""Recorded experts: the same rules on distributions from a file, and files that cannot be used."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ensemble.ensemble_matches import ONE, K, dense, started

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.games.ensemble import recordings

C, T, V = 5, 24, 24
Arrays = dict[str, np.ndarray]


def made_up(seed: int = 0, documents: int = C, length: int = T) -> Arrays:
    generator = np.random.default_rng(seed)
    probs = generator.dirichlet(np.full(V, 0.3), (documents, length, K)).astype(np.float32)
    right = generator.integers(0, V, (documents, length), np.int32)
    return {"probs": probs, "right": right, "domain": np.arange(documents, dtype=np.int32)}


def saved(folder: Path, arrays: Arrays, name: str = "experts.npz") -> str:
    np.savez(folder / name, **arrays)  # pyright: ignore[reportArgumentType]
    return str(folder / name)


def test_dense_copies_of_synthetic_experts_give_the_same_tokens(tmp_path: Path) -> None:
    lanes, generator = 24, np.random.default_rng(0)
    logits = generator.uniform(-5.0, 5.0, (6, lanes, 1, K))
    sim, probs, right, written = started(lanes), [], [], []
    for span in range(6):
        probs.append(dense(sim.states).astype(np.float32))
        right.append(sim.states["right"][:, :4].copy())
        sim.step(logits[span])
        written.append(sim.states["written"][:, :4].copy())
    arrays = {"probs": np.concatenate(probs, 1), "right": np.concatenate(right, 1), "domain": np.zeros(lanes, "i4")}
    copy = started(64, recorded=saved(tmp_path, arrays))
    document = copy.states["document"].copy()
    assert len(set(document.tolist())) > lanes / 2
    for span in range(6):
        copy.step(logits[span][document])
        assert np.array_equal(copy.states["written"][:, :4], written[span][document])
    assert np.array_equal(copy.info["right"], sim.info["right"][document])
    assert np.array_equal(copy.info["expert_right"], sim.info["expert_right"][document])


@pytest.mark.jitless
def test_the_token_is_that_of_the_largest_weighted_sum(tmp_path: Path) -> None:
    arrays, generator = made_up(), np.random.default_rng(3)
    sim = started(6, recorded=saved(tmp_path, arrays))
    for span in range(2):
        logits = generator.uniform(-5.0, 5.0, (6, 1, K))
        sim.step(logits)
        weights = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(axis=1, keepdims=True)
        probs = arrays["probs"][sim.states["document"], 4 * span : 4 * span + 4].astype("f8")
        assert np.array_equal(sim.states["written"][:, :4], np.einsum("nk,ntkv->ntv", weights, probs).argmax(axis=-1))


@pytest.mark.jitless
def test_equal_sums_give_the_lowest_token(tmp_path: Path) -> None:
    arrays = made_up()
    arrays["probs"][:] = 1 / 22
    arrays["probs"][..., :2] = 0.0
    sim = started(4, recorded=saved(tmp_path, arrays))
    sim.step(np.zeros((4, 1, K)))
    assert (sim.states["written"][:, :4] == 2).all()
    assert (sim.states["proposed"][:, :4] == 2).all()


@pytest.mark.jitless
def test_domains_stand_for_documents_or_for_tokens(tmp_path: Path) -> None:
    arrays = made_up()
    sim = started(32, feature_noise=0.0, recorded=saved(tmp_path, arrays))
    assert np.array_equal(sim.info["domain"], sim.states["document"])
    assert np.array_equal(sim.observations[:, 0, :C].argmax(axis=1), sim.states["document"])
    each = np.random.default_rng(1).integers(0, 3, (C, T), np.int32)
    sim = started(8, recorded=saved(tmp_path, arrays | {"domain": each}, "tokens.npz"))
    for span in range(5):
        assert np.array_equal(sim.info["domain"], each[sim.states["document"], 4 * span])
        sim.step(np.zeros((8, 1, K)))


@pytest.mark.jitless
def test_entropies_are_those_of_the_spans_first_token(tmp_path: Path) -> None:
    arrays = made_up()
    sim = started(4, recorded=saved(tmp_path, arrays))
    sim.step(np.zeros((4, 1, K)))
    probs = arrays["probs"][sim.states["document"], 4].astype("f8")
    expected = -(probs * np.log(np.maximum(probs, 1e-30))).sum(axis=-1) / np.log(V)
    np.testing.assert_allclose(sim.observations[:, 0, C : C + K], expected, atol=1e-5)


@pytest.mark.jitless
def test_the_oracle_takes_the_expert_with_the_most_right_tokens(tmp_path: Path) -> None:
    arrays = made_up()
    is_right = arrays["probs"].argmax(axis=-1) == arrays["right"][..., None]
    arrays["right"] = np.where(is_right.any(axis=-1), arrays["right"], arrays["probs"][:, :, 1].argmax(axis=-1)).astype(
        "i4"
    )
    is_right = arrays["probs"].argmax(axis=-1) == arrays["right"][..., None]
    sim = started(16, recorded=saved(tmp_path, arrays), opponents={"agent": "oracle"})
    for span in range(3):
        sim.step()
        best = is_right[sim.states["document"], 4 * span : 4 * span + 4].sum(axis=1).argmax(axis=1)
        assert np.array_equal(sim.states["weights"].argmax(axis=1), best)


def test_static_weights_are_the_experts_shares_of_right_tokens(tmp_path: Path) -> None:
    arrays = made_up()
    arrays["right"] = arrays["probs"][:, :, 0].argmax(axis=-1).astype("i4")
    shares = (arrays["probs"].argmax(axis=-1) == arrays["right"][..., None]).mean(axis=(0, 1))
    sim = started(1, recorded=saved(tmp_path, arrays), opponents={"agent": "static"})
    sim.step()
    expected = np.maximum(shares / shares.max(), np.exp(-5.0))
    np.testing.assert_allclose(sim.states["weights"][0], expected / expected.sum())


def test_lanes_share_the_memory_of_a_file(tmp_path: Path) -> None:
    arrays = made_up(documents=40)
    path = saved(tmp_path, arrays | {"domain": arrays["domain"] % 3})
    few, many = started(2, recorded=path), started(64, recorded=path)
    assert few.game is many.game
    assert few.game.world.probs.nbytes > 10 * few.states.itemsize
    assert registry.make_game(ONE)[0].state_dtype == few.game.state_dtype


def changed(name: str, index: Any, value: float) -> Arrays:
    arrays = made_up()
    arrays[name][index] = value
    return arrays


def without(name: str) -> Arrays:
    return {key: array for key, array in made_up().items() if key != name}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (without("right"), "has no array 'right'"),
        (without("domain"), "has no array 'domain'"),
        (changed("probs", (1, 2, 0, 3), np.nan), r"array 'probs' has a number that is not finite at \(1, 2, 0\)"),
        (changed("probs", (1, 2, 1, 3), -0.5), r"array 'probs' has a negative number at \(1, 2, 1\)"),
        (changed("probs", (4, 23, 2, 3), 2.0), r"array 'probs' has a sum other than 1 at \(4, 23, 2\)"),
        (changed("right", (2, 5), V), r"array 'right' has 24 at \(2, 5\): give numbers from 0 to 23"),
        (changed("domain", (3,), 8), r"array 'domain' has 8 at \(3,\): give numbers from 0 to 7"),
        (made_up(length=23), "documents of 23 tokens, a match 24: give a longer recording"),
        (made_up() | {"probs": np.zeros((C, T, V), np.float32)}, "array 'probs' is <f4 5x24x24, not <f4 any"),
        (made_up() | {"probs": np.full((C, T, 9, V), 1 / V, np.float32)}, "has 9 experts and 24 tokens: give 1 to 8"),
        (made_up() | {"right": np.zeros((C, T), np.int64)}, "array 'right' is <i8 5x24, not <i4 5x24"),
        (made_up() | {"right": np.zeros((C, 3), np.int32)}, "array 'right' is <i4 5x3, not <i4 5x24"),
        (made_up() | {"domain": np.zeros(3, np.int32)}, "array 'domain' is <i4 3, not <i4 5"),
        (made_up() | {"domain": np.array([{}] * C, object)}, "member 'domain' is no plain array"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, arrays: Arrays, message: str) -> None:
    path = saved(tmp_path, arrays)
    with pytest.raises(FileError, match=f"experts.npz.*{message}"):
        registry.make_game(ONE, recorded=path)


def test_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no archive at all, but long enough to hold the end of one")
    with pytest.raises(FileError, match=r"text\.npz is no archive of arrays"):
        registry.make_game(ONE, recorded=str(tmp_path / "text.npz"))
    with pytest.raises(FileError, match=r"nowhere\.npz: cannot be read: No such file"):
        registry.make_game(ONE, recorded=str(tmp_path / "nowhere.npz"))


def test_gigabytes_of_nothing_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "LARGE", 2**20)
    zeros = np.zeros((2, 8, 2, 40_000), "<f4")
    np.savez_compressed(tmp_path / "zeros.npz", probs=zeros, right=np.zeros((2, 8), "<i4"), domain=np.zeros(2, "<i4"))
    with pytest.raises(FileError, match=r"zeros\.npz: array 'probs' has 5120128 bytes, of which few are stored"):
        recordings.read_recording(tmp_path / "zeros.npz", 8)
