"""LLMEnsemble: what experts say, what weights make of it, what is paid, and how good the scripts are."""

from typing import Any

import numpy as np
import pytest
from ensemble.ensemble_matches import EXPERTS, ONE, SPAN_TOKENS, SPANS, D, K, V, dense, started

from palaestra import make_batch, registry
from palaestra.core.compile.linker import link
from palaestra.games.ensemble.llm_ensemble import SKILL

MATCHES = 4096
jitless = pytest.mark.jitless


def play(sim: Any) -> np.ndarray:
    """Lets the scripts play to the end; what the first agent was paid, ``[N]``."""
    while not sim.terminated.any():
        sim.step()
    return sim.rewards[:, 0]


# -- experts -----------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_the_first_tokens_of_an_expert_are_right_as_often_as_its_skill_says() -> None:
    sim = started(MATCHES)
    is_right = sim.states["top"][:, :SPAN_TOKENS] == sim.states["right"][:, :SPAN_TOKENS, None]
    for domain in range(D):
        found = is_right[sim.info["domain"] == domain].mean(axis=(0, 1))
        np.testing.assert_allclose(found, np.array(SKILL)[:, domain], atol=0.035)


@pytest.mark.check
def test_unskilled_experts_are_sure_of_their_errors() -> None:
    sim = started(MATCHES, overconfidence=0.34, skill=((0.9,), (0.1,), (0.5,)))
    top, right, confidence = (sim.states[name][:, :SPAN_TOKENS] for name in ("top", "right", "confidence"))
    is_right = top == right[..., None]
    for k, extra in ((0, 0.034), (1, 0.306)):
        wrong, fine = confidence[:, :, k][~is_right[:, :, k]], confidence[:, :, k][is_right[:, :, k]]
        assert 0.35 + extra <= wrong.min() < 0.36 + extra
        assert 0.64 + extra < wrong.max() <= 0.65 + extra
        assert 0.40 <= fine.min() < 0.41
        assert 0.84 < fine.max() <= 0.85


@pytest.mark.parametrize(("shared_errors", "least", "most"), [(1.0, 1.0, 1.0), (0.0, 0.02, 0.07)])
def test_wrong_tokens_are_shared_as_often_as_told(shared_errors: float, least: float, most: float) -> None:
    sim = started(1024, shared_errors=shared_errors, skill=((0.0,),) * K)
    top = sim.states["top"][:, :SPAN_TOKENS]
    assert least <= (top[..., 0] == top[..., 1]).mean() <= most


@jitless
def test_wrong_tokens_are_no_right_ones_and_half_of_them_have_the_right_one_second() -> None:
    sim = started(256, skill=((0.0,),) * K, vocabulary=4)
    top, second, right = (sim.states[name][:, :SPAN_TOKENS] for name in ("top", "second", "right"))
    assert (top != right[..., None]).all()
    assert (top != second).all()
    assert set(top.reshape(-1).tolist()) == set(range(4))
    assert 0.64 < (second == right[..., None]).mean() < 0.69  # a half, and a third of the other half


@jitless
def test_entropies_are_those_of_the_first_tokens_distributions() -> None:
    sim = started(32)
    probs = dense(sim.states)[:, 0]
    np.testing.assert_allclose(probs.sum(axis=-1), 1.0)
    expected = -(probs * np.log(probs)).sum(axis=-1) / np.log(V)
    np.testing.assert_allclose(sim.observations[:, 0, D : D + K], expected, atol=1e-6)


# -- domains -----------------------------------------------------------------------------------------------------------


def test_domains_are_drawn_from_the_mixture() -> None:
    domain = started(MATCHES, mixture=(1, 0, 3, 0, 0)).info["domain"]
    assert set(domain.tolist()) == {0, 2}
    assert 0.72 < (domain == 2).mean() < 0.78
    np.testing.assert_allclose(np.bincount(started(MATCHES).info["domain"]) / MATCHES, 0.2, atol=0.025)


@jitless
def test_each_span_has_a_domain_of_its_own() -> None:
    sim, seen = started(16), list[np.ndarray]()
    for _ in range(SPANS - 1):
        seen.append(sim.info["domain"].copy())
        sim.step(np.zeros((16, 1, K)))
    assert all(len(set(column)) > 1 for column in np.transpose(seen))


def domains_of(sim: Any) -> np.ndarray:
    """Domains of all spans of a match, int64 ``[spans, N]``."""
    found = [sim.info["domain"].copy()]
    for _ in range(sim.game.world.spans - 1):
        sim.step(np.zeros((sim.num_envs, 1, K)))
        found.append(sim.info["domain"].copy())
    return np.array(found)


def test_a_span_keeps_the_domain_of_the_one_before_as_often_as_told() -> None:
    """Of five domains a span that is drawn anew has the old one in a fifth, of this mixture in 5/8 of the cases."""
    for mixture, again in (((1,) * D, 0.2), ((3, 1, 0, 0, 0), 0.625)):
        domains = domains_of(started(1024, domain_stay=0.75, mixture=mixture))
        assert abs((domains[1:] == domains[:-1]).mean() - (0.75 + 0.25 * again)) < 0.02
        for drawn in (domains[0], domains[1:][domains[1:] != domains[:-1]]):  # the mixture where spans begin anew
            assert set(drawn.tolist()) == {d for d in range(D) if mixture[d]}
        np.testing.assert_allclose(
            np.bincount(domains[0], minlength=D) / 1024, np.array(mixture) / sum(mixture), atol=0.05
        )


@pytest.mark.check
@jitless
def test_a_domain_that_stays_is_drawn_once_a_match() -> None:
    sim = started(32, domain_stay=1.0)
    domains = domains_of(sim)
    assert (domains == domains[0]).all()
    sim.reset(seed=5)
    assert (sim.info["domain"] != domains[0]).any()
    assert set(sim.info["domain"].tolist()) == set(range(D))


@jitless
def test_features_without_noise_are_the_domain() -> None:
    sim = started(32, feature_noise=0.0)
    assert np.array_equal(sim.observations[:, 0, :D], np.eye(D, dtype=np.float32)[sim.info["domain"]])


def test_noise_hides_the_domain_now_and_then() -> None:
    sim = started(MATCHES)
    noise = sim.observations[:, 0, :D] - np.eye(D)[sim.info["domain"]]
    assert abs(noise.mean()) < 0.01
    assert 0.29 < noise.std() < 0.31
    assert 0.95 < (sim.observations[:, 0, :D].argmax(axis=1) == sim.info["domain"]).mean() < 0.99


# -- the decision ------------------------------------------------------------------------------------------------------


@pytest.mark.check
@jitless
def test_the_token_is_that_of_the_largest_weighted_sum() -> None:
    sim, generator = started(48), np.random.default_rng(0)
    for _ in range(SPANS - 1):
        logits = generator.uniform(-5.0, 5.0, (48, 1, K))
        probs, right = dense(sim.states), sim.states["right"][:, :SPAN_TOKENS].copy()
        weights = np.exp(logits[:, 0]) / np.exp(logits[:, 0]).sum(axis=1, keepdims=True)
        sim.step(logits)
        np.testing.assert_allclose(sim.states["weights"], weights, rtol=1e-12)
        expected = np.einsum("nk,ntkv->ntv", weights, probs).argmax(axis=-1)
        assert np.array_equal(sim.states["written"][:, :SPAN_TOKENS], expected)
        assert np.array_equal(sim.states["wanted"][:, :SPAN_TOKENS], right)


@jitless
def test_equal_sums_give_the_lowest_token() -> None:
    sim, generator = started(64), np.random.default_rng(0)
    top = sim.states["top"][:, :SPAN_TOKENS]
    top[:] = generator.permuted(np.tile(np.arange(V, dtype=np.int32), (64, SPAN_TOKENS, 1)), axis=-1)[..., :K]
    sim.states["second"][:, :SPAN_TOKENS] = (top + 1) % V
    sim.states["confidence"][:] = 0.9
    lowest = top.min(axis=-1)
    is_plain = ~(top[..., None] == (top[..., None, :] + 1) % V).any(axis=(-1, -2))
    sim.step(np.zeros((64, 1, K)))
    assert is_plain.mean() > 0.5
    assert (sim.states["written"][:, :SPAN_TOKENS] == lowest)[is_plain].all()


@jitless
def test_the_share_of_right_tokens_is_paid_at_the_end() -> None:
    sim, counts = started(8), np.zeros((8, K + 1))
    for span in range(SPANS):
        assert not sim.terminated.any()
        sim.step(np.zeros((8, 1, K)))
        wanted = sim.states["wanted"][:, :SPAN_TOKENS]
        counts[:, K] += (sim.states["written"][:, :SPAN_TOKENS] == wanted).sum(axis=1)
        counts[:, :K] += (sim.states["proposed"][:, :SPAN_TOKENS] == wanted[..., None]).sum(axis=1)
        assert np.array_equal(sim.info["right"], counts[:, K] / (SPAN_TOKENS * (span + 1)))
        assert np.array_equal(sim.info["expert_right"], counts[:, :K] / (SPAN_TOKENS * (span + 1)))
        np.testing.assert_allclose(sim.rewards[:, 0], sim.info["right"] * (span == SPANS - 1), rtol=1e-6)
    assert sim.terminated.all()
    assert {sim.game.end_reason(int(number)) for number in sim.info["end_reason"]} == {"complete"}
    assert np.array_equal(sim.states["history"][:, :SPANS].sum(axis=1), counts)


@jitless
def test_a_smaller_horizon_truncates_and_pays() -> None:
    sim = started(8, horizon=2)
    sim.step(np.zeros((8, 1, K)))
    assert not sim.rewards.any()
    sim.step(np.zeros((8, 1, K)))
    assert sim.truncated.all()
    np.testing.assert_allclose(sim.rewards[:, 0], sim.info["right"])
    assert sim.rewards.any()


@jitless
def test_agents_of_experts_play_the_match_of_the_one_agent() -> None:
    one, experts, generator = started(8), started(8, id=EXPERTS), np.random.default_rng(1)
    assert np.array_equal(experts.observations[:, :, -K:], np.tile(np.eye(K, dtype=np.float32), (8, 1, 1)))
    for _ in range(SPANS):
        assert (experts.observations[:, :, :-K] == one.observations).all()
        logits = generator.uniform(-5.0, 5.0, (8, K))
        one.step(logits[:, None])
        experts.step(logits[:, :, None])
        assert (experts.rewards == one.rewards).all()
    assert one.states["history"].any()
    assert np.array_equal(one.states["history"], experts.states["history"])


@jitless
def test_progress_is_the_share_of_spans_that_are_written() -> None:
    sim = started(1, spans=4)
    found = [sim.observations[0, 0, -1]]
    for _ in range(4):
        sim.step(np.zeros((1, 1, K)))
        found.append(sim.observations[0, 0, -1])
    assert found == [0.0, 0.25, 0.5, 0.75, 1.0]


# -- scripts -----------------------------------------------------------------------------------------------------------

STRENGTHS = {
    "static_0": 0.36,
    "static_1": 0.63,
    "static_2": 0.64,
    "entropy": 0.65,
    "uniform": 0.68,
    "static": 0.71,
    "oracle": 0.93,
}


def test_scripts_are_ordered_by_their_strength() -> None:
    """The seed of the docstring's numbers is 0."""
    found = []
    for script, strength in STRENGTHS.items():
        sim = make_batch(ONE, MATCHES, autoreset_mode="off", opponents={"agent": script})
        sim.reset(seed=3)
        found.append(play(sim).mean())
        assert abs(found[-1] - strength) < 0.012, script
    assert found == sorted(found)
    assert tuple(STRENGTHS) == registry.make_game(ONE)[0].scripts


@pytest.mark.check
def test_scripts_of_single_experts_write_what_these_propose() -> None:
    for k in range(K):
        sim = make_batch(EXPERTS, 256, autoreset_mode="off", opponents={"expert": f"static_{k}"})
        sim.reset(seed=5)
        sim.step()
        np.testing.assert_allclose(sim.states["weights"][:, k], 1.0, atol=1e-3)
        assert (sim.states["written"] == sim.states["proposed"][:, :, k]).all()


@jitless
def test_the_static_script_weights_by_the_shares_of_right_tokens() -> None:
    sim = make_batch(ONE, 1, opponents={"agent": "static"}, mixture=(1, 0, 0, 0, 1), skill=SKILL)
    sim.reset(seed=0)
    sim.step()
    shares = np.array(SKILL)[:, [0, 4]].mean(axis=1)
    np.testing.assert_allclose(sim.states["weights"][0], shares / shares.sum())


@jitless
def test_the_entropy_script_weights_by_how_sure_the_experts_are() -> None:
    sim = make_batch(ONE, 4, opponents={"agent": "entropy"})
    sim.reset(seed=0)
    expected = np.exp(-sim.observations[:, 0, D : D + K].astype("f8"))
    sim.step()
    np.testing.assert_allclose(sim.states["weights"], expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)


# -- keywords ----------------------------------------------------------------------------------------------------------


def test_sizes_and_tables_share_one_kernel() -> None:
    game, _ = registry.make_game(ONE)
    other, _ = registry.make_game(
        ONE, skill=((0.9, 0.1), (0.1, 0.9), (0.5, 0.5)), spans=9, span_tokens=7, vocabulary=50
    )
    assert link(other) is link(game)
    sim = started(4, skill=((0.9, 0.1), (0.1, 0.9), (0.5, 0.5)), spans=9, span_tokens=7, vocabulary=50)
    for _ in range(9):
        assert not sim.terminated.any()
        sim.step(np.zeros((4, 1, K)))
    assert sim.terminated.all()
    assert (sim.states["tokens"] == 63).all()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"skill": ((0.5, 1.5),)}, r"skill=\(\(0.5, 1.5\),\): give a row of numbers from 0 to 1"),
        ({"skill": ((0.5, 0.5), (0.5,))}, "skill=.*give a row of numbers"),
        ({"skill": ((0.5,),) * 9}, "1 to 8 experts"),
        ({"skill": ((0.5,) * 9,)}, "1 to 8 domains"),
        ({"skill": 3}, "skill=3: give a row"),
        ({"mixture": (1, 2)}, r"mixture=\(1, 2\): give 5 numbers of 0 or more"),
        ({"mixture": (0,) * 5}, "not all of them 0"),
        ({"mixture": (-1, 1, 1, 1, 1)}, "mixture="),
        ({"mixture": (float("nan"), 1, 1, 1, 1)}, "mixture="),
    ],
)
def test_keywords_that_do_not_fit_are_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.make_game(ONE, **keywords)


@pytest.mark.parametrize("name", ["recorded", "live", "prompts"])
def test_experts_of_files_and_models_are_no_longer_keywords(name: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}': it is not a keyword of {ONE}"):
        registry.make_game(ONE, **{name: "experts"})
