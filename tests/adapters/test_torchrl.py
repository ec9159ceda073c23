"""The promises of `palaestra.adapters.torchrl` to TorchRL."""

# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import duel, orchard, two_team, two_team_homogeneous
from gymnasium.vector import AutoresetMode

import palaestra
from palaestra import zoo
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Field, Game, Role

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

with warnings.catch_warnings(action="ignore"):  # TorchRL warns of itself
    from tensordict.nn import TensorDictModule
    from torchrl.collectors import Collector
    from torchrl.data import Bounded, Categorical, MultiCategorical
    from torchrl.envs import ActionMask, GymEnv, GymWrapper, PettingZooWrapper, TransformedEnv
    from torchrl.envs.utils import check_env_specs
    from torchrl.modules import ProbabilisticActor
    from torchrl.objectives import ClipPPOLoss

    from palaestra.adapters.torchrl import TorchRLEnv

torch.set_num_threads(1)
TAG, ARENA = "palaestra/TeamTag-v0", "palaestra/ArenaDuel2v2-v0"
EVERY_HIT_KILLS: dict[str, Any] = {
    "front_damage": 2000.0,
    "side_damage": 2000.0,
    "rear_damage": 2000.0,
    "range_m": 10.0,
}
"""Parameters of the arena."""


def reset(s, world):
    s.last[0] = s.last[1] = 0


def step(s, world, actions, rewards, scratch):
    for a in range(2):
        s.last[a] = 10 * actions.player[a].door + actions.player[a].key
        rewards[a] = s.last[a] if a == 0 else -s.last[a]
    return False


def observe(s, world, observations, scratch):
    for a in range(2):
        observations.player[a].last = s.last[a]
    observations.lane.steps = s.steps


def legal(s, world, mask):
    """Door 2 and key 0 are forbidden after the first decision."""
    for a in range(2):
        for j in range(3):
            mask.player[a].door[j] = j < 2 or s.steps == 0
        mask.player[a].key[0] = s.steps == 0
        mask.player[a].key[1] = 1


def locks() -> Game:
    """Each player chooses one of 3 doors and one of 2 keys, and is paid 10 times the door and the key."""
    choices = (Choice("door", 3), Choice("key", 2, noop=1))
    role = Role("player", ("red_0", "blue_0"), (Field("last", (), 0, 99),), choices)
    return Game(
        name="Locks",
        roles=(role,),
        state=(("last", "i8", (2,)),),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        reward="agent",
        lane_observation=(Field("steps", (), 0, 99),),
        horizon=6,
    )


@pytest.fixture(autouse=True)
def _same_random_actions():
    torch.manual_seed(0)


def plain(game: Game, num_envs: int = 3, **keywords: Any) -> TorchRLEnv:
    """An environment whose rules run as plain Python."""
    return TorchRLEnv(KernelSimulation(game, num_envs, autoreset_mode="off", compiled=False), **keywords)


def played(env: TorchRLEnv, tensordict: Any, **actions: Any) -> Any:
    """What a step gives; actions are by group, random for the other groups."""
    env.rand_action(tensordict)
    for group, action in actions.items():
        tensordict[group, "action"] = torch.as_tensor(action)
    return env.step(tensordict)["next"]


# -- specs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [TAG, ARENA, "palaestra/SpeakerListener-v0"])
def test_the_specs_of_an_id_hold(id):
    check_env_specs(TorchRLEnv(id, 3))
    check_env_specs(TorchRLEnv(id, 1, choices="discrete", state=False))


@pytest.mark.parametrize(
    ("game", "observation"),
    [(duel.game(2, listed=True), "flat"), (two_team.game(), "dict"), (orchard.game(), "dict"), (locks(), "flat")],
)
def test_the_specs_of_games_with_masks_lists_shared_fields_and_composite_actions_hold(game, observation):
    check_env_specs(plain(game, observation=observation))


def test_a_team_is_a_group_and_unlike_roles_are_groups_of_their_own():
    assert TorchRLEnv(TAG, 1).group_map == {"red": ["red_0", "red_1", "red_2"], "blue": ["blue_0"]}
    groups = plain(two_team.game(), observation="dict")
    assert groups.group_map["red_scout"] == ["red_0", "red_1"]
    assert groups.group_map["blue_guard"] == ["blue_1"]
    assert groups.team_of_group == {"red_scout": "red", "red_guard": "red", "blue_scout": "blue", "blue_guard": "blue"}


def test_actions_are_categorical_multicategorical_or_bounded():
    kinds = {
        TorchRLEnv(TAG, 2): (Categorical, (2, 3)),
        TorchRLEnv(ARENA, 2): (MultiCategorical, (2, 2, 2)),
        TorchRLEnv(ARENA, 2, choices="discrete"): (Categorical, (2, 2)),
        plain(two_team_homogeneous.game()): (Bounded, (3, 5, 2)),
    }
    for env, (kind, shape) in kinds.items():
        spec = env.full_action_spec["red", "action"]
        assert isinstance(spec, kind)
        assert spec.shape == shape


def test_opponents_leave_their_group_out():
    env = TorchRLEnv(TAG, 2, opponents={"blue": "random"})
    assert list(env.group_map) == ["red"]
    env.rollout(3)
    with pytest.raises(ValueError, match="no agent is left to control"):
        TorchRLEnv(TAG, 2, opponents={"blue": "random", "red": "random"})


# -- the same match as the batch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [TAG, ARENA])
def test_a_seeded_rollout_is_that_of_the_batch_through_partial_resets(id):
    """Lanes end apart from each other: one is started anew by hand first."""
    env, sim = TorchRLEnv(id, 3), palaestra.make_batch(id, 3, autoreset_mode="off")
    env.set_seed(7)
    now = env.reset()
    sim.reset(seed=7)
    ends = 0
    for decision in range(120):
        if decision == 11:
            which = np.array([False, True, False])
            now = env.reset(now.set("_reset", torch.as_tensor(which)[:, None]))
            sim.reset(which)
        env.rand_action(now)
        sim.step(np.concatenate([now[team, "action"].numpy() for team in sim.game.teams], axis=1))
        then, now = env.step_and_maybe_reset(now)
        rewards = np.concatenate([then["next", team, "reward"].numpy() for team in sim.game.teams], axis=1)
        np.testing.assert_array_equal(rewards[..., 0], sim.rewards)
        np.testing.assert_array_equal(then["next", "terminated"].numpy()[:, 0], sim.terminated)
        np.testing.assert_array_equal(then["next", "truncated"].numpy()[:, 0], sim.truncated)
        np.testing.assert_array_equal(then["next", "info", "winner"].numpy()[:, 0], sim.info["winner"])
        np.testing.assert_array_equal(then["next", "state"].numpy(), sim.state())
        over = sim.terminated | sim.truncated
        ends += over.sum()
        if over.any():
            sim.reset(over)
        for team, slots in sim.game.teams.items():
            np.testing.assert_array_equal(now[team, "observation"].numpy(), sim.observations[:, slots])
            np.testing.assert_array_equal(now[team, "mask"].numpy(), sim.acting[:, slots])
    assert ends >= 4


@pytest.mark.parametrize(("game", "form"), [(locks(), "flat"), (two_team.game(), "dict"), (orchard.game(), "dict")])
def test_each_agent_sees_its_own_fields_and_those_it_shares_as_in_the_other_faces(game, form):
    env = plain(game, observation=form)
    now = env.rollout(4)["next"][:, -1]
    for group, agents in env.group_map.items():
        for k, agent in enumerate(agents):
            seen: Any = AgentIO(env.sim, (game.agents.index(agent),), form).observe()
            own = now[group, "observation"][:, k]
            if form == "flat":
                np.testing.assert_array_equal(own.numpy(), seen)
            else:
                assert set(own.keys()) == set(seen)
                for name, values in seen.items():
                    np.testing.assert_array_equal(own[name].numpy(), values)


def test_the_same_seed_gives_the_same_match_and_no_seed_another():
    env = TorchRLEnv(TAG, 2)
    first, again, other = (env.reset() for seed in (3, 3, None) if (env.set_seed(seed), True))
    assert torch.equal(first["state"], again["state"])
    assert not torch.equal(again["state"], other["state"])


def test_finished_matches_wait_for_their_reset():
    env = plain(duel.game(horizon=2), 2)
    now = env.reset()
    for _ in range(2):
        now = played(env, now)
    assert now["done"].all()
    now = env.reset(now.set("_reset", torch.tensor([[True], [False]])))
    assert now["done"].flatten().tolist() == [False, True]
    assert played(env, now)["done"].flatten().tolist() == [False, True]


def test_tensors_are_copies():
    env = TorchRLEnv(TAG, 2)
    now = env.reset()
    then = played(env, now)
    kept = [tensordict.clone() for tensordict in (now, then)]
    played(env, then.clone())
    env.sim.reset(seed=99)
    for tensordict, copy in zip((now, then), kept, strict=True):
        assert (tensordict == copy).all()


@pytest.mark.parametrize("copied", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_plays_on_with_memory_of_its_own(copied):
    for env in (TorchRLEnv(TAG, 2), plain(locks(), 2)):
        env.set_seed(0)
        now = env.rand_action(env.reset())
        other = copied(env)
        mine = env.step(now.clone())["next"]
        assert torch.equal(other.step(now.clone())["next", "state"], mine["state"])
        other.step(now.clone())
        assert torch.equal(torch.as_tensor(env.sim.state()), mine["state"])


# -- masks and the dead ------------------------------------------------------------------------------------------------


def test_the_dead_are_masked_ignored_and_paid_with_their_team():
    env = TorchRLEnv(ARENA, 8, opponents={"blue": "focus"}, **EVERY_HIT_KILLS)
    env.set_seed(0)
    now = env.reset()
    while not (((dead := ~now["red", "mask"]).sum(1) == 1) & ~now["done"][:, 0]).any():
        now = played(env, now).exclude(("red", "reward"))
    other = deepcopy(env)
    actions = env.full_action_spec["red", "action"].rand()
    others = torch.where(dead.unsqueeze(-1), 1 - actions.clamp(max=1), actions)
    assert not torch.equal(actions, others)
    then, again = played(env, now.clone(), red=actions), played(other, now.clone(), red=others)
    assert torch.equal(then["state"], again["state"])
    paid = torch.zeros(())
    for _ in range(10):
        assert torch.equal(then["red", "reward"][:, 0], then["red", "reward"][:, 1])
        paid += then["red", "reward"][dead].abs().sum()
        then = played(env, then.exclude(("red", "reward")))
    assert paid > 0


def test_action_mask_keeps_random_actions_legal():
    """One Categorical, a list of candidates made dense, and a MultiCategorical."""
    for game in (duel.game(2), duel.game(2, listed=True), locks()):
        env = TransformedEnv(plain(game))
        for team in game.teams:
            env.append_transform(ActionMask(action_key=(team, "action"), mask_key=(team, "action_mask")))
        masked = env.rollout(30, break_when_any_done=False)
        assert masked["next", "info", "illegal"].sum() == 0
        assert plain(game).rollout(30, break_when_any_done=False)["next", "info", "illegal"].sum() > 0


def test_the_mask_stands_choice_after_choice():
    env = plain(locks(), 1)
    now = env.reset()
    assert now["red", "action_mask"].tolist() == [[[True] * 5]]
    then = played(env, now, red=[[[2, 0]]], blue=[[[1, 1]]])
    assert then["red", "reward"].item() == 20.0
    assert then["red", "action_mask"].tolist() == [[[True, True, False, False, True]]]


def test_discrete_choices_multiply_out_actions_and_masks():
    env = plain(locks(), 1, choices="discrete")
    pairs = list(itertools.product(range(3), range(2)))
    allowed = [door < 2 and key == 1 for door, key in pairs]
    for number, (door, key) in enumerate(pairs):
        then = played(env, env.reset(), red=[[number]])
        assert then["red", "reward"].item() == 10 * door + key
        assert then["red", "action_mask"].tolist() == [[allowed]]
    for wrong in (-1, 6):
        with pytest.raises(ActionError, match="lane 0, red_0: joint choice"):
            played(env, env.reset(), red=[[wrong]])


def test_agents_that_are_not_asked_are_masked():
    env = plain(two_team.game(), observation="dict")
    now = env.reset()
    assert now["red_guard", "mask"].all()
    assert not now["blue_guard", "mask"].any()
    assert now["blue_guard", "action_mask"][0, 0].sum() == 2  # the no-op of each choice


# -- actions -----------------------------------------------------------------------------------------------------------


def test_real_numbers_beyond_their_bounds_are_clipped():
    env = plain(two_team_homogeneous.game(), 2)
    results = []
    for factor in (1.0, 5.0):
        env.set_seed(1)
        now = env.reset()
        ones = {team: torch.full_like(env.full_action_spec[team, "action"].zero(), factor) for team in env.group_map}
        results.append(played(env, now, **ones)["state"])
    assert torch.equal(*results)


def test_an_action_outside_its_space_is_named():
    env = TorchRLEnv(TAG, 2)
    with pytest.raises(ActionError, match=r"lane 1, red_2: \w+ = 9"):
        played(env, env.reset(), red=[[0, 0, 0], [0, 0, 9]])


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_what_cannot_be_wrapped_is_refused():
    with pytest.raises(ValueError, match='autoreset_mode="off"'):
        TorchRLEnv(palaestra.make_batch(TAG, 2))
    with pytest.raises(ValueError, match='autoreset_mode="off"'):
        TorchRLEnv(TAG, 2, autoreset_mode="same_step")
    with pytest.raises(TypeError, match="num_envs: only for an id"):
        TorchRLEnv(palaestra.make_batch(TAG, 2, autoreset_mode="off"), 2)
    with pytest.raises(ValueError, match='"discrete"'):
        TorchRLEnv(TAG, choices="joint")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='use observation="dict"'):
        plain(orchard.game())
    with pytest.raises(ValueError, match=r"unknown options; for a seed call set_seed"):
        TorchRLEnv(TAG).reset(options={})


def test_without_torchrl_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import palaestra.adapters.torchrl"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install torchrl" in done.stderr


# -- without the adapter -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda: GymEnv("palaestra/TeamPong-v0"),
        lambda: GymEnv(TAG, mask="obs", choices="discrete"),
        lambda: GymWrapper(gymnasium.make_vec(TAG, num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)),
        lambda: PettingZooWrapper(zoo.team_pong_v0.parallel_env()),
        lambda: PettingZooWrapper(zoo.arena_duel2v2_v0.parallel_env(), use_mask=True),
    ],
)
def test_torchrls_own_wrappers_play_ids_as_they_are(wrapped):
    env = wrapped()
    check_env_specs(env)
    assert env.rollout(60, break_when_any_done=False).shape[-1] == 60  # a match lasts 50 decisions


# -- learning ----------------------------------------------------------------------------------------------------------


def test_a_collector_feeds_a_ppo_update():
    env = TransformedEnv(TorchRLEnv(TAG, 8, opponents={"blue": "random"}))
    sizes = env.full_action_spec["red", "action"].n
    network = torch.nn.Linear(env.observation_spec["red", "observation"].shape[-1], sizes)
    actor = ProbabilisticActor(
        TensorDictModule(network, [("red", "observation")], [("red", "logits")]),
        in_keys={"logits": ("red", "logits")},
        out_keys=[("red", "action")],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
        log_prob_key=("red", "action_log_prob"),
    )
    critic = TensorDictModule(
        torch.nn.Linear(network.in_features, 1), [("red", "observation")], [("red", "state_value")]
    )
    loss = ClipPPOLoss(actor, critic)
    loss.set_keys(
        reward=("red", "reward"),
        action=("red", "action"),
        value=("red", "state_value"),
        sample_log_prob=("red", "action_log_prob"),
        done=("red", "done"),
        terminated=("red", "terminated"),
    )
    loss.make_value_estimator(gamma=0.99, lmbda=0.95)
    before = network.weight.detach().clone()
    optimizer = torch.optim.Adam(loss.parameters(), 1e-2)
    data = next(iter(Collector(env, actor, frames_per_batch=8 * 60, total_frames=8 * 60)))
    for name in ("done", "terminated"):
        flag = data["next", name].unsqueeze(-1).expand(data["next", "red", "reward"].shape)
        data["next", "red", name] = flag
    assert data["next", "done"].any()  # a match lasts 50 decisions
    with torch.no_grad():
        loss.value_estimator(data, params=loss.critic_network_params, target_params=loss.target_critic_network_params)
    losses = loss(data)
    total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
    total.backward()
    optimizer.step()
    assert torch.isfinite(total)
    assert not torch.equal(before, network.weight)
