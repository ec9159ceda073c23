"""Language models behind a chat endpoint as players: a server of this file's neighbour answers in their place."""

from __future__ import annotations

import email.utils
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from players.chat_server import Answer, Messages, Oracle, Stub, failing, said

import palaestra
from palaestra.cli import main
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.run.opponents import resolve
from palaestra.evaluation import EVALUATION_RUN, MatchTable, evaluate
from palaestra.evaluation.matches import match_seeds, play_pair
from palaestra.players import chat_answers, chat_endpoint
from palaestra.players.chat_endpoint import read_wait
from palaestra.players.chat_player import SYSTEM, ChatPlayer, read_name
from palaestra.registry import make_game
from palaestra.replay import load, record
from palaestra.wrappers.transcript import text_env

pytestmark = pytest.mark.check

ID, TUG, SPOKEN = "palaestra/SearchQA-2Hop-v1", "chat/Tug-v0", "chat/Spoken-v0"
palaestra.register(TUG, "testing.broken_games:tug", family="test")
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")
OVERFLOW = {"error": {"message": "This model's maximum context length is 512 tokens."}}
Serve = Callable[[Callable[[Messages], Answer]], Stub]


def seeds_of(matches: int) -> list[int]:
    """Those of an evaluation."""
    return match_seeds(EVALUATION_RUN, range(matches)).tolist()


def pull(messages: Messages) -> Answer:
    return said("pull 0.5")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs in an empty folder, without waits and without what other tests were answered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(chat_endpoint, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(chat_answers, "_opened", {})


@pytest.fixture
def serve() -> Iterator[Serve]:
    stubs = list[Stub]()

    def serve(answer: Callable[[Messages], Answer]) -> Stub:
        stubs.append(Stub(answer))
        return stubs[-1]

    yield serve
    for stub in stubs:
        stub.server.shutdown()
        stub.server.server_close()


def play(id: str, a: str, b: str, matches: int = 1) -> MatchTable:
    """Matches of a small game; without compiling."""
    game, _ = make_game(id)

    def make(n: int) -> Any:
        return palaestra.make_batch(id, n, compiled=False, autoreset_mode="off")

    return play_pair(id, game, make, a, b, matches=matches)


def play_tug(stub: Stub, query: str = "") -> MatchTable:
    """A match of a model against a script."""
    return play(TUG, f"openai:{stub.url}{query}#tiny", "strong")


def rewards_of(answers: dict[str, list[tuple[str, str]]], seeds: list[int]) -> list[float]:
    """What the environment pays for the same turns."""
    env, rewards = text_env(ID), list[float]()
    for seed in seeds:
        prompt, _ = env.reset(seed=seed)
        rewards.append(sum(float(env.step(f"<{verb}>{text}</{verb}>")[1]) for verb, text in answers[prompt]))
    return rewards


# -- matches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_tools", [False, True])
def test_32_matches_of_2hop_pay_what_the_environment_pays(serve: Serve, with_tools: bool):
    seeds = seeds_of(32)
    oracle = Oracle(ID, seeds, with_tools)
    stub = serve(oracle)
    table = evaluate(ID, f"openai:{stub.url}?tools={with_tools}#tiny", matches=32)
    assert table.results["seed"].tolist() == seeds
    assert table.results["return_a"].tolist() == rewards_of(oracle.turns, seeds)
    assert 0.0 < table.mean_return < 1.0
    assert table.results["steps"].tolist() == [3] * 32
    assert len(stub.asked) == 96
    assert all(("tools" in body) == with_tools for body in stub.asked)


def test_a_request_has_the_settings_and_the_conversation_so_far(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-secret-7 \n")
    oracle = Oracle(ID, seeds_of(1))
    stub = serve(oracle)
    evaluate(ID, f"openai:{stub.url}?temperature=0.5&max_tokens=99&top_p=.9&stop=end#tiny", matches=1)
    (prompt,) = oracle.turns
    shown = text_env(ID)
    shown.reset(seed=seeds_of(1)[0])
    search = "<search>{1}</search>".format(*oracle.turns[prompt][0])
    assert stub.asked[1] == {
        "path": "/v1/chat/completions",
        "model": "tiny",
        "temperature": 0.5,
        "max_tokens": 99,
        "top_p": 0.9,
        "stop": "end",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": search},
            {"role": "user", "content": shown.step(search)[0]},
        ],
    }
    assert stub.headers[0]["Authorization"] == "Bearer sk-secret-7"
    assert "secret" not in Path("runs", "chat", "tiny.jsonl").read_text()


def test_a_called_tool_is_answered_by_its_result(serve: Serve):
    oracle = Oracle(ID, seeds_of(1), with_tools=True)
    two = [{"id": "b", "function": {"name": "answer", "arguments": "{}"}}]

    def answer(messages: Messages) -> Answer:
        status, reply = oracle(messages)[:2]
        reply["choices"][0]["message"]["tool_calls"] += two
        return status, reply

    stub = serve(answer)
    evaluate(ID, f"openai:{stub.url}?tools=true#tiny", matches=1)
    first, second = stub.asked[1]["messages"][-2:]
    assert (first["role"], first["tool_call_id"], second["tool_call_id"]) == ("tool", "call_0", "b")
    assert "<information>" in first["content"]
    assert second["content"] == "Only the first call of a message counts."
    assert [tool["function"]["name"] for tool in stub.asked[0]["tools"]] == ["search", "answer"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "<think>I could <search>this</search>.</think><answer>right</answer>"},
        {"content": "I could <search>this</search>.</think><answer>right</answer>"},
        {"content": "<answer>right</answer> <think>I could <search>this</search>.</think> <think> <think>"},
        {"content": "<answer>right</answer>", "reasoning_content": "I could <search>this</search>."},
        {"content": "<answer>right</answer>", "reasoning": "I could <search>this</search>."},
        {
            "content": "not <answer>this</answer>, so <search>",
            "tool_calls": [{"function": {"name": "answer", "arguments": '{"x": "right"}'}}],
        },
    ],
)
def test_thoughts_are_no_turn_and_a_record_keeps_them(serve: Serve, message: dict[str, Any], tmp_path: Path):
    seed = seeds_of(1)[0]
    right = text_env(ID).reset(seed=seed)[1]["answers"][0]
    message = json.loads(json.dumps(message).replace("right", right))
    stub = serve(lambda _: said(**{"text": message["content"], **{k: message[k] for k in message if k != "content"}}))
    player = f"openai:{stub.url}#tiny"
    table = evaluate(ID, player, matches=1)
    assert (table.mean_return, table.results["steps"][0]) == (1.0, 1)
    record(ID, {"agent": player}, seed=seed).save(tmp_path / "match.npz")
    replay = load(tmp_path / "match.npz")
    (written,) = replay.texts.values()
    for part in ("I could <search>this</search>.", right) if "tool_calls" not in message else ("so <search>", right):
        assert part in written
    assert len(stub.asked) == 1


def test_lanes_are_asked_at_the_same_time_and_no_more_than_are_allowed(serve: Serve):
    meeting, oracle = threading.Barrier(3), Oracle(ID, seeds_of(9))

    def answer(messages: Messages) -> Answer:
        meeting.wait(timeout=20)
        time.sleep(0.05)  # one more would come meanwhile
        return oracle(messages)

    stub = serve(answer)
    evaluate(ID, f"openai:{stub.url}?concurrency=3&retries=0#tiny", matches=9)
    assert stub.most == 3


def test_equal_openings_of_two_matches_are_two_requests_and_of_one_match_one(serve: Serve):
    stub, id = serve(lambda _: said("nothing to say")), "palaestra/ConcertDuel-v0"
    players = {"blue": f"openai:{stub.url}#tiny", "red": "random"}
    sim = palaestra.make_batch(id, 1, form="text", compiled=False, autoreset_mode="off", opponents=players)
    for seed, requests in ((1, 1), (2, 2), (1, 2)):
        sim.reset(seed=seed)
        sim.step()
        assert len(stub.asked) == requests
    assert stub.asked[0] == stub.asked[1]


def test_two_models_play_each_other(serve: Serve):
    left, right = serve(pull), serve(lambda _: said("pull -0.2"))
    table = play(SPOKEN, f"openai:{left.url}#m", f"openai:{right.url}#m", matches=4)
    assert table.seeds == 2
    assert len(left.asked) == len(right.asked) == table.results["steps"].sum()
    assert sum(len(body["messages"]) == 2 for body in left.asked) == 4


def test_agents_of_several_roles_and_of_shared_observations_read_what_the_environment_shows(serve: Serve):
    for id in ("palaestra/Concert-v0", "palaestra/ConcertDuel-v0"):
        stub = serve(lambda _: said("nothing to say"))
        game, _ = make_game(id, form="text")
        players = dict.fromkeys(game.teams, f"openai:{stub.url}#tiny")
        sim = palaestra.make_batch(id, 1, form="text", compiled=False, autoreset_mode="off", opponents=players)
        sim.reset(seed=5)
        shown = {AgentIO(sim, (slot,), codec="text").observe_lane(0) for slot in range(len(game.agents))}
        sim.step()
        asked = {body["messages"][1]["content"] for body in stub.asked}
        assert asked
        assert asked <= shown


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_too_many_requests_are_sent_again_after_the_time_that_the_server_names(serve: Serve):
    slowly = (429, {"error": {"message": "slowly"}}, {"Retry-After": "0.2"})
    stub = serve(failing([slowly, slowly], pull))
    assert play_tug(stub).matches == 1
    waits = np.diff(stub.times_s)
    assert min(waits[:2]) >= 0.2
    assert waits[2] < 0.2


@pytest.mark.parametrize(
    ("answer", "message", "tries"),
    [
        ((500, b"oops"), "status 500: 'oops' (2 tries): look at the server's log", 2),
        ((429, {"error": "slowly"}), "status 429: 'slowly' (2 tries): send fewer at once (concurrency)", 2),
        ((429, {"error": "quota"}, {"Retry-After": "86400"}), "status 429: 'quota' (1 try)", 1),
        ((200, b"{"), "the reply is no JSON: '{' (2 tries): give the URL of an OpenAI-compatible", 2),
        ((200, {"error": "no"}), "the reply has no choices with a message", 2),
        ((200, {"choices": []}), "has no choices", 2),
        ((200, {"choices": [{"message": {"content": [1]}}]}), "the reply's content is no text", 2),
        ((400, {"error": {"message": "temperature is too hot"}}), "too hot': the request is refused", 1),
        (
            (401, {"error": {"message": "key sk-secret-7?"}}),
            "key ***?': the key is refused: the environment variable",
            1,
        ),
        ((403, {"detail": "no"}), "the key is refused", 1),
        ((404, {"detail": "no"}), "no such path or model: the URL ends in /v1 mostly, and http://127.0.0.1", 1),
        ((308, {"detail": "no"}, {"Location": "http://localhost:1/"}), "no chat endpoint", 1),
        ((400, OVERFLOW), "the first message does not fit: lower max_tokens", 1),
    ],
)
def test_what_is_not_answered_is_named_with_the_url_and_what_to_do(
    serve: Serve, answer: Answer, message: str, tries: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-7")
    stub = serve(lambda _: answer)
    with pytest.raises(ValueError, match="openai:tiny at http") as error:
        play_tug(stub, "?retries=1")
    assert f"{stub.url}: " in str(error.value)
    assert message in str(error.value)
    assert "runs/chat/tiny.jsonl" in str(error.value)
    assert "secret" not in str(error.value)
    assert len(stub.asked) == tries


def test_a_reply_that_does_not_come_in_time_is_a_failure(serve: Serve):
    late = threading.Event()
    stub = serve(lambda _: (late.wait(5), said("x"))[1])
    with pytest.raises(ValueError, match=r"no reply within 0.05 s \(2 tries\): raise timeout_s"):
        play_tug(stub, "?timeout_s=0.05&retries=1")
    late.set()
    assert len(stub.asked) == 2


def test_an_endpoint_that_is_not_there_is_named():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ValueError, match=rf"{url}: cannot be reached \(.*\) \(2 tries\): start the server"):
        play(TUG, f"openai:{url}?retries=1#tiny", "strong")


def test_a_conversation_that_outgrows_the_context_goes_on_with_empty_turns_and_is_told(serve: Serve):
    oracle = Oracle(ID, seeds_of(3))
    stub = serve(lambda messages: oracle(messages) if len(messages) == 2 else (400, OVERFLOW))
    table = evaluate(ID, f"openai:{stub.url}#tiny", matches=3)
    assert table.mean_return == 0.0
    assert table.results["steps"].tolist() == [4] * 3
    assert len(stub.asked) == 6
    assert "3 conversations were too long" in chat_answers.reports()[0]


def test_a_model_that_says_nothing_gets_nothing_and_is_told(serve: Serve):
    replies = [said(None), said(""), said("<think>so", "length"), said("I do not know.")]
    table = evaluate(ID, f"openai:{serve(lambda _: replies.pop(0)).url}#tiny", matches=1)
    assert table.mean_return == 0.0
    (line,) = chat_answers.reports()
    assert line.endswith("tiny.jsonl: 4 replies, 1 ended at max_tokens, 2 are empty")


def test_a_turn_that_the_game_refuses_is_told_and_may_be_said_again(serve: Serve):
    stub = serve(failing([said("I do not know."), said("Pull!")], pull))
    sim = palaestra.make_batch(TUG, 1, compiled=False, opponents={"red": f"openai:{stub.url}#tiny", "blue": "strong"})
    sim.reset(seed=0)
    sim.step()
    conversation = stub.asked[2]["messages"]
    assert [message["role"] for message in conversation] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert conversation[2]["content"] == "I do not know."
    assert sim.actions[0, 0, 0] == 0.5
    quiet = serve(lambda _: said("I do not know."))
    sim.set_opponent("red", f"openai:{quiet.url}#tiny")
    sim.reset(seed=0)
    sim.step()
    assert (len(quiet.asked), sim.actions[0, 0, 0]) == (3, 0.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:http://localhost/v1", '"openai:http://HOST:PORT/v1#MODEL"; http://localhost/v1/models lists'),
        ("openai:#tiny", "write"),
        ("openai:ftp://localhost/v1#tiny", "the URL is http://HOST:PORT/v1"),
        ("openai:http://me:sk-secret-7@localhost/v1#tiny", "without name and password"),
        ("openai:http://localhost/v1?temprature=1#tiny", "did you mean 'temperature'?"),
        ("openai:http://localhost/v1?max_tokens=0#tiny", "max_tokens is 1 or more, got 0"),
        ("openai:http://localhost/v1?timeout_s=nan#tiny", "timeout_s is float, got 'nan'"),
        ("openai:http://localhost/v1?tools=3#tiny", "tools is bool"),
        ("openai:http://localhost/v1?tools=true#tiny", "this game has no tools"),
        ("openai:http://localhost/v1?key_from=NO_SUCH_KEY#tiny", "it is not set"),
    ],
)
def test_a_name_that_is_none_is_refused_with_what_to_write(name: str, message: str):
    game, _ = make_game(TUG)
    with pytest.raises(ValueError, match=re.escape(message)):
        resolve(game, "red", name)


def test_a_game_without_text_is_refused():
    game, _ = make_game("palaestra/CartPole-v0")
    with pytest.raises(ValueError, match=r'CartPole has no text here.*give form="text" where it has this keyword'):
        resolve(game, next(iter(game.teams)), "openai:http://localhost/v1#tiny")


def test_names_and_numbers_of_settings_are_read():
    player = read_name("openai:http://h/v1?temperature=none&max_completion_tokens=9&file=a.jsonl#org/m:8b")
    assert (player.url, player.model, player.path) == ("http://h/v1", "org/m:8b", Path("a.jsonl"))
    assert player.request([], []) == {"model": "org/m:8b", "messages": [], "max_completion_tokens": 9}
    assert ChatPlayer("http://h/v1", "org/m").path == Path("runs", "chat", "org_m.jsonl")


def test_a_retry_after_is_seconds_or_a_date():
    assert read_wait("3") == 3.0
    assert 8.0 < read_wait(email.utils.formatdate(time.time() + 10.0, usegmt=True)) <= 10.0
    assert read_wait(email.utils.formatdate(time.time() - 10.0, usegmt=True)) == 0.0
    assert read_wait("soon") == read_wait("") == 0.0


# -- going on ----------------------------------------------------------------------------------------------------------


def test_what_was_answered_before_a_server_died_is_not_asked_again(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    oracle, dies_at = Oracle(ID, seeds_of(8)), [13]

    def answer(messages: Messages) -> Answer:
        dies_at[0] -= 1
        return oracle(messages) if dies_at[0] >= 0 else (500, b"out of memory")

    stub = serve(answer)
    player = f"openai:{stub.url}?retries=0&concurrency=2#tiny"
    with pytest.raises(ValueError, match="out of memory"):
        evaluate(ID, player, matches=8)
    kept = Path("runs", "chat", "tiny.jsonl").read_text().splitlines()
    assert len(kept) == 13
    dies_at[0] = 1000
    monkeypatch.setattr(chat_answers, "_opened", {})  # as in a new process
    before = len(stub.asked)
    table = evaluate(ID, player, matches=8)
    assert len(stub.asked) - before == 24 - 13
    assert table.results["return_a"].tolist() == rewards_of(oracle.turns, seeds_of(8))
    assert "11 replies, 13 more were there already" in chat_answers.reports()[0]


@pytest.mark.parametrize("query", ["?temperature=1", "?top_p=0.5", "?system=You%20pull."])
def test_other_settings_ask_anew(serve: Serve, query: str):
    stub = serve(pull)
    table = play_tug(stub)
    asked = len(stub.asked)
    assert asked == table.results["steps"].sum()
    play_tug(stub)
    assert len(stub.asked) == asked
    play_tug(stub, query)
    assert len(stub.asked) == 2 * asked


def test_a_line_that_was_not_finished_is_asked_again(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    stub = serve(pull)
    play_tug(stub)
    path, asked = Path("runs", "chat", "tiny.jsonl"), len(stub.asked)
    path.write_bytes(path.read_bytes()[:-20])
    for more in (1, 0):
        monkeypatch.setattr(chat_answers, "_opened", {})
        play_tug(stub)
        assert len(stub.asked) == (asked := asked + more)


def test_the_command_plays_records_and_writes_pages_of_one_set_of_replies(serve: Serve, capsys: pytest.CaptureFixture):
    oracle = Oracle(ID, seeds_of(2))
    stub = serve(oracle)
    player = f"openai:{stub.url}#tiny"
    assert main(["eval", "SearchQA-2Hop", "--a", player, "--matches", "2", "--record", "m.npz", "--html", "pages"]) == 0
    assert len(stub.asked) == 6
    printed = capsys.readouterr()
    assert "mean return 0.500" in printed.out
    assert "tiny.jsonl: 6 replies, 6 more were there already" in printed.err
    texts = load("m.npz").texts
    assert {key: texts[key] for key in sorted(texts)} == {
        (turn, lane, 0): f"<{verb}>{text}</{verb}>"
        for lane, turns in enumerate(oracle.turns.values())
        for turn, (verb, text) in enumerate(turns)
    }
    assert len(list(Path("pages").glob("match_*.html"))) == 2
