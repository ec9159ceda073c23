# pyright: reportMissingImports=false
"""OpenEnv: text search in this process and behind its server."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi.testclient import TestClient
from openenv.core.env_server import create_fastapi_app
from peers.libraries.search_turns import ID, SEARCH, check_alike, right
from peers.libraries.trials import main, trial

from palaestra.adapters.openenv import TextAction, TextEnvironment, TextObservation


def episode(env: TextEnvironment, seed: int) -> list[Any]:
    """All that is returned in an episode of a search and the right answer."""
    observation = env.reset(seed=seed, episode_id="one")
    answer = right(env.state.info)
    assert (observation.done, observation.reward) == (False, None)
    seen = [observation.model_dump(mode="json"), env.state.model_dump(mode="json")]
    for turn, reward in ((SEARCH, 0.0), (answer, 1.0)):
        observation = env.step(TextAction(text=turn))
        assert (observation.reward, observation.done) == (reward, turn is answer)
        seen += [observation.model_dump(mode="json"), env.state.model_dump(mode="json")]
    assert seen[1]["info"] != seen[-1]["info"]
    assert (env.state.episode_id, env.state.step_count) == ("one", 2)
    return seen


@trial("adapter", "adapters.openenv: episodes by seed")
def _() -> None:
    env = TextEnvironment(ID)
    check_alike(episode(env, 7), episode(TextEnvironment(ID), 7), episode(env, 8))


@trial("adapter", "adapters.openenv: two sessions of one seed at the server")
def _() -> None:
    def send(session: Any, type: str, **data: Any) -> Any:
        session.send_json({"type": type, "data": data} if type != "state" else {"type": type})
        return session.receive_json()["data"]

    app = create_fastapi_app(partial(TextEnvironment, ID), TextAction, TextObservation, max_concurrent_envs=2)
    with TestClient(app) as client, client.websocket_connect("/ws") as one, client.websocket_connect("/ws") as other:
        assert send(one, "reset", seed=7) == send(other, "reset", seed=7)
        assert send(one, "step", text=SEARCH) == send(other, "step", text=SEARCH)
        answered = send(one, "step", text=right(send(one, "state")["info"]))
        assert (answered["reward"], answered["done"]) == (1.0, True)
        assert not send(other, "step", text=SEARCH)["done"]


if __name__ == "__main__":
    main("openenv")
