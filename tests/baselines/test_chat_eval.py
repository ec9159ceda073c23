"""Evaluating a model behind a chat endpoint: a server of this file answers in its place."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import palaestra
from palaestra.wrappers.transcript import text_env
from palaestra_baselines import chat_eval
from palaestra_baselines.chat_eval import SYSTEM
from palaestra_baselines.common import chat_endpoint
from palaestra_baselines.common.chat_endpoint import read_wait

ID, SPOKEN, TUG = "palaestra/SearchQA-2Hop-v1", "chat/Spoken-v0", "chat/Tug-v0"
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")
palaestra.register(TUG, "testing.broken_games:tug", family="test")
MATCHES = 5
OVERFLOW = {"error": {"message": "This model's maximum context length is 512 tokens."}}

Messages = list[dict[str, str]]
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
"""Status, body (bytes as they are, all else as JSON), headers."""


def said(text: str | None, reason: str = "stop", **more: Any) -> Answer:
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}], **more}


class Oracle:
    """Asks for each fact of the path, then gives the answer."""

    def __init__(self, seeds: range = range(MATCHES)) -> None:
        env = text_env(ID)
        self.told = {prompt: info for prompt, info in (env.reset(seed=seed) for seed in seeds)}

    def __call__(self, messages: Messages) -> Answer:
        info, turn = self.told[messages[1]["content"]], len(messages) // 2 - 1
        if turn == len(info["path"]):
            text = f"<answer>{info['answers'][0]}</answer>"
        else:
            subject, relation, _ = info["path"][turn]
            text = f"<search>{relation} of {subject}</search>"
        return said(text, usage={"prompt_tokens": 100, "completion_tokens": 10})


class Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: what can fail here is a client that did not wait for its reply."""


class Stub:
    """An endpoint; ``asked`` has the bodies of the requests, ``headers`` and ``times_s`` what came with them."""

    def __init__(self, answer: Callable[[Messages], Answer]) -> None:
        self.asked, self.headers, self.times_s = list[dict[str, Any]](), list[dict[str, str]](), list[float]()
        self.now, self.most, self.lock = 0, 0, threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with stub.lock:
                    stub.asked.append(body | {"path": self.path})
                    stub.headers.append(dict(self.headers))
                    stub.times_s.append(time.monotonic())
                    stub.now += 1
                    stub.most = max(stub.most, stub.now)
                status, content, *headers = answer(body["messages"])
                with stub.lock:
                    stub.now -= 1
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def prompts(self) -> list[str]:
        """First messages of the matches that were begun."""
        return [body["messages"][1]["content"] for body in self.asked if len(body["messages"]) == 2]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Messages], Answer]], Stub]]:
    stubs = list[Stub]()
    monkeypatch.setattr(chat_endpoint, "FIRST_WAIT_S", 0.001)

    def serve(answer: Callable[[Messages], Answer]) -> Stub:
        stubs.append(Stub(answer))
        return stubs[-1]

    yield serve
    for stub in stubs:
        stub.server.shutdown()
        stub.server.server_close()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    """``run(url, *options)``: the exit code; results are in ``results.jsonl``."""

    def run(url: str, *options: str) -> int:
        given = ["--url", url, "--model", "tiny", "--file", str(tmp_path / "results.jsonl"), "--concurrency", "2"]
        return chat_eval.main([*given, "--matches", str(MATCHES), *options])

    return run


def rows(folder: Path) -> list[dict[str, Any]]:
    """Finished matches by seed."""
    lines = (folder / "results.jsonl").read_text().splitlines()
    return sorted((json.loads(line) for line in lines[1:]), key=lambda row: row["seed"])


def untimed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found]


def failing(answers: list[Answer], then: Callable[[Messages], Answer]) -> Callable[[Messages], Answer]:
    """Gives these answers first, one each."""
    return lambda messages: answers.pop(0) if answers else then(messages)


def junk(messages: Messages) -> Answer:
    return said("I do not know.")


# -- what is asked and written -----------------------------------------------------------------------------------------


def test_an_oracle_answers_all_and_every_match_is_a_line(serve, run, tmp_path, capsys):
    stub = serve(Oracle())
    assert run(f"{stub.url}/", "--temperature", "0.5", "--max-tokens", "99") == 0
    found = rows(tmp_path)
    assert [row["seed"] for row in found] == list(range(MATCHES))
    for row in found:
        assert {name: row[name] for name in ("exact_match", "f1", "reward", "turns", "malformed", "cut", "end")} == {
            "exact_match": 1, "f1": 1.0, "reward": 1.0, "turns": 3, "malformed": 0, "cut": 0, "end": "answered",
        }  # fmt: skip
        assert (row["prompt_tokens"], row["completion_tokens"]) == (300, 30)
        assert row["seconds"] > 0.0
        roles = ["system", "user", "assistant", "user", "assistant", "user", "assistant"]
        assert [message["role"] for message in row["messages"]] == roles
        assert row["messages"][0]["content"] == SYSTEM
    first = stub.asked[0]
    assert first.pop("path") == "/v1/chat/completions"
    assert first == {"model": "tiny", "messages": first["messages"], "temperature": 0.5, "max_tokens": 99}
    assert "Authorization" not in stub.headers[0]
    heading, figures, _ = capsys.readouterr().out.splitlines()
    assert heading.split("  ")[0] == "matches"
    assert "1.000  [0.566, 1.000]" in figures


def test_a_model_that_babbles_gets_nothing_and_its_turns_are_counted(serve, run, tmp_path, capsys):
    replies = [said("I do not know."), said(None, "length")] * 10
    assert run(serve(lambda _: replies.pop()).url) == 0
    for row in rows(tmp_path):
        assert (row["exact_match"], row["turns"], row["malformed"], row["end"]) == (0, 4, 4, "horizon")
        assert row["prompt_tokens"] is None
    assert sum(row["cut"] for row in rows(tmp_path)) == 10
    assert "0.000  [0.000, 0.434]  0.000   0.000   4.00           100.0%      50.0%" in capsys.readouterr().out


def test_options_reach_the_environment_and_the_seeds_count_from_the_first(serve, run, tmp_path):
    stub = serve(junk)
    assert run(stub.url, "--options", "max_turns=1", "prompt=Now: {question}", "--seed", "7", "--matches", "2") == 0
    assert [(row["seed"], row["turns"]) for row in rows(tmp_path)] == [(7, 1), (8, 1)]
    asked = {f"Now: {text_env(ID).reset(seed=seed)[1]['question']}" for seed in (7, 8)}
    assert set(stub.prompts()) == asked


def test_any_environment_of_text_is_played_and_what_it_does_not_measure_is_left_out(serve, run, tmp_path, capsys):
    assert run(serve(lambda _: said("pull 0.5")).url, "--env-id", SPOKEN) == 0
    assert {row["end"] for row in rows(tmp_path)} <= {"horizon", "dragged_over"}
    assert {(row["exact_match"], row["f1"], row["malformed"]) for row in rows(tmp_path)} == {(None, None, None)}
    assert capsys.readouterr().out.split()[:3] == ["matches", "reward", "turns"]


def test_a_text_that_the_environment_does_not_understand_ends_the_match(serve, run, tmp_path):
    turns = failing([said("pull 0.5")], junk)
    options = ("--env-id", TUG, "--options", "codec=words", "--matches", "1")
    assert run(serve(turns).url, *options) == 0
    (row,) = rows(tmp_path)
    assert (row["end"], row["turns"]) == ("refused_turn", 2)
    assert row["messages"][-1] == {"role": "assistant", "content": "I do not know."}


def test_an_environment_without_text_is_refused_with_what_to_name_instead(serve, run, tmp_path, capsys):
    stub = serve(junk)
    assert run(stub.url, "--env-id", "CartPole") == 1
    error = capsys.readouterr().err
    assert "palaestra/CartPole-v0 is not played as text: name a SearchQA environment" in error
    assert "--options codec=NAME" in error
    assert stub.asked == []


def test_matches_are_played_side_by_side_and_no_more_than_are_allowed(serve, run):
    meeting, oracle = threading.Barrier(3), Oracle(range(9))

    def answer(messages: Messages) -> Answer:
        if len(messages) == 2:
            meeting.wait(timeout=5)
        return oracle(messages)

    stub = serve(answer)
    assert run(stub.url, "--matches", "9", "--concurrency", "3", "--retries", "0") == 0
    assert stub.most == 3


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_a_failure_of_the_server_is_tried_again(serve, run, tmp_path):
    stub = serve(failing([(500, b"oops"), (503, {"error": "busy"})], Oracle()))
    assert run(stub.url, "--retries", "2", "--concurrency", "1") == 0
    assert len(stub.asked) == 3 * MATCHES + 2
    assert [row["exact_match"] for row in rows(tmp_path)] == [1] * MATCHES


def test_after_too_many_requests_the_time_that_the_server_names_is_waited(serve, run):
    stub = serve(failing([(429, {"error": {"message": "slowly"}}, {"Retry-After": "0.2"})], Oracle()))
    assert run(stub.url, "--matches", "1") == 0
    assert stub.times_s[1] - stub.times_s[0] >= 0.2
    assert stub.times_s[2] - stub.times_s[1] < 0.2


def test_a_retry_after_is_seconds_or_a_date():
    assert read_wait("3") == 3.0
    assert 8.0 < read_wait(email.utils.formatdate(time.time() + 10.0, usegmt=True)) <= 10.0
    assert read_wait(email.utils.formatdate(time.time() - 10.0, usegmt=True)) == 0.0
    assert read_wait("soon") == read_wait("") == 0.0


def test_a_wait_of_hours_ends_the_match_instead(serve, run, capsys):
    stub = serve(lambda _: (429, {"error": {"message": "quota"}}, {"Retry-After": "86400"}))
    assert run(stub.url, "--matches", "1") == 1
    assert len(stub.asked) == 1
    assert "seed 0 failed: status 429: 'quota'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, b"oops"), "status 500: 'oops' (2 tries)"),
        ((200, b"{"), "the reply is no JSON: '{' (2 tries)"),
        ((200, {"error": "no"}), 'the reply has no choices with a message: \'{"error": "no"}\' (2 tries)'),
        ((200, {"choices": []}), "has no choices"),
        ((200, {"choices": [{"message": {"content": [1]}}]}), "the reply's content is no text"),
    ],
)
def test_a_match_that_fails_after_all_is_listed_and_played_by_the_next_call(
    serve, run, tmp_path, capsys, answer, message
):
    stub = serve(failing([answer, answer], Oracle()))
    assert run(stub.url, "--retries", "1", "--concurrency", "1") == 1
    assert [row["seed"] for row in rows(tmp_path)] == [1, 2, 3, 4]
    told = capsys.readouterr()
    assert f"seed 0 failed: {message}" in told.err or message in told.err
    assert "the same command plays the failed matches again" in told.err
    asked = len(stub.asked)
    assert run(stub.url) == 0
    assert len(stub.asked) == asked + 3
    assert [row["seed"] for row in rows(tmp_path)] == list(range(MATCHES))


def test_a_request_that_is_wrong_is_not_tried_again(serve, run, capsys):
    stub = serve(lambda _: (400, {"error": {"message": "temperature is too hot"}}))
    assert run(stub.url, "--matches", "2") == 1
    assert len(stub.asked) == 2
    assert "temperature is too hot" in capsys.readouterr().err


def test_a_reply_that_does_not_come_in_time_is_a_failure(serve, run, tmp_path, capsys):
    late = threading.Event()
    stub = serve(lambda messages: (late.wait(5), said("x"))[1])
    assert run(stub.url, "--timeout-s", "0.05", "--retries", "1", "--matches", "1") == 1
    late.set()
    assert len(stub.asked) == 2
    assert "no reply within 0.05 s (--timeout-s) (2 tries)" in capsys.readouterr().err
    assert not (tmp_path / "results.jsonl").exists()


def test_a_refused_key_ends_the_run_and_the_key_is_not_shown(serve, run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TEST_KEY", " sk-secret-7 \n")
    stub = serve(lambda _: (401, {"error": {"message": "Incorrect API key: sk-secret-7"}}))
    assert run(stub.url, "--api-key-from", "TEST_KEY", "--concurrency", "1") == 1
    assert stub.headers[0]["Authorization"] == "Bearer sk-secret-7"
    assert len(stub.asked) == 1
    told = capsys.readouterr()
    assert "status 401: 'Incorrect API key: ***': the key is refused: --api-key-from" in told.err
    assert "secret" not in told.err + told.out
    assert list(tmp_path.iterdir()) == []


def test_no_file_has_the_key(serve, run, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sk-secret-7")
    assert run(serve(Oracle()).url, "--api-key-from", "TEST_KEY") == 0
    assert "secret" not in (tmp_path / "results.jsonl").read_text()


def test_a_key_that_is_missing_or_stands_in_the_url_is_refused_and_not_repeated(run, capsys):
    assert run("http://localhost/v1", "--api-key-from", "sk-secret-7") == 1
    assert run("http://me:sk-secret-7@localhost/v1") == 1
    assert run("http://localhost/v1?key=sk-secret-7") == 1
    assert run("ftp://localhost/v1") == 1
    told = capsys.readouterr().err
    assert told.count("--url is http://HOST:PORT/v1") == 3
    assert told.count("it is not set") == 1
    assert "secret" not in told


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "no such path or model"), (403, "the key is refused"), (308, "no chat endpoint")],
)
def test_an_endpoint_that_will_not_answer_ends_the_run(serve, run, capsys, monkeypatch, status, message):
    class Slow(SimpleQueue):
        def get(self, *given: Any, **named: Any) -> Any:
            time.sleep(0.02)
            return super().get(*given, **named)

    monkeypatch.setattr(chat_eval, "SimpleQueue", Slow)
    stub = serve(lambda _: (status, {"detail": "no"}, {"Location": "http://localhost:1/"}))
    assert run(stub.url, "--concurrency", "1") == 1
    assert len(stub.asked) == 1
    assert f"chat_eval: status {status}: 'no': {message}" in capsys.readouterr().err


def test_an_endpoint_that_is_not_there_is_named(serve, run, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert run(f"http://127.0.0.1:{port}/v1", "--retries", "1") == 1
    assert (
        f"chat_eval: cannot reach http://127.0.0.1:{port}/v1 (Connection refused): start the server"
        in capsys.readouterr().err
    )


def test_a_conversation_that_outgrows_the_context_is_a_wrong_answer(serve, run, tmp_path, capsys):
    oracle = Oracle()
    stub = serve(lambda messages: oracle(messages) if len(messages) == 2 else (400, OVERFLOW))
    assert run(stub.url) == 0
    assert {(row["end"], row["exact_match"], row["turns"]) for row in rows(tmp_path)} == {("context_overflow", 0, 1)}
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["5", "0"]


def test_a_first_message_that_does_not_fit_is_a_failure(serve, run, capsys):
    assert run(serve(lambda _: (400, OVERFLOW)).url, "--matches", "1") == 1
    assert "seed 0 failed: the first message and --max-tokens do not fit" in capsys.readouterr().err


# -- going on ----------------------------------------------------------------------------------------------------------


def test_a_run_that_was_interrupted_goes_on_and_asks_no_finished_match_again(serve, run, tmp_path, capsys, monkeypatch):
    assert run(serve(Oracle()).url) == 0
    uninterrupted = rows(tmp_path)
    (tmp_path / "results.jsonl").unlink()

    def interrupt(self: Any, done: int, **numbers: float) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chat_eval.Progress, "update", interrupt)
        assert run(serve(Oracle()).url, "--concurrency", "1") == 130
    assert "interrupted: finished matches are in" in capsys.readouterr().err
    finished = rows(tmp_path)
    assert [row["seed"] for row in finished] == [0, 1]
    stub = serve(Oracle())
    assert run(stub.url) == 0
    assert len(stub.prompts()) == 3
    assert {row["messages"][1]["content"] for row in finished}.isdisjoint(stub.prompts())
    assert untimed(rows(tmp_path)) == untimed(uninterrupted)
    assert run(stub.url) == 0
    assert len(stub.prompts()) == 3


def test_a_line_that_was_not_finished_is_played_again(serve, run, tmp_path):
    stub, path = serve(Oracle(range(MATCHES + 1))), tmp_path / "results.jsonl"
    assert run(stub.url, "--concurrency", "1") == 0
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert run(stub.url, "--matches", str(MATCHES + 1)) == 0, "more matches may be asked for"
    assert len(stub.prompts()) == MATCHES + 2
    assert [row["seed"] for row in rows(tmp_path)] == list(range(MATCHES + 1))
    path.write_bytes(whole[:30])
    assert run(stub.url) == 0
    assert len(rows(tmp_path)) == MATCHES


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--temperature", "1.0"), "temperature: was 0.0, is 1.0"),
        (("--options", "max_turns=2"), "options: was [], is ['max_turns=2']"),
        (("--seed", "3"), "seed: was 0, is 3"),
        (("--model", "other"), "model: was tiny, is other"),
    ],
)
def test_other_settings_are_refused(serve, run, tmp_path, capsys, options, told):
    stub = serve(junk)
    assert run(stub.url, "--matches", "1") == 0
    before, asked = (tmp_path / "results.jsonl").read_bytes(), len(stub.asked)
    assert run(stub.url, "--matches", "1", *options) == 1
    assert f"has results of other settings ({told})" in capsys.readouterr().err
    assert (tmp_path / "results.jsonl").read_bytes() == before
    assert len(stub.asked) == asked


HEAD = json.dumps({"chat_eval": 1, "settings": chat_eval.Args("", "tiny").settings}) + "\n"


@pytest.mark.parametrize("text", ["my notes", "{}\n", HEAD + "7\n", HEAD + '{"seed": 1}\n'])
def test_another_file_is_left_as_it_is(run, tmp_path, capsys, text):
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    assert run("http://localhost/v1") == 1
    assert f"{path}: " in (told := capsys.readouterr().err)
    assert "choose another --file" in told
    assert path.read_text() == text


def test_numbers_that_mean_nothing_are_refused_by_their_option(run, capsys):
    for option, value in (("--matches", "0"), ("--timeout-s", "nan"), ("--max-tokens", "-1"), ("--retries", "-1")):
        assert run("http://localhost/v1", option, value) == 1
        assert f"{option} must be" in capsys.readouterr().err
