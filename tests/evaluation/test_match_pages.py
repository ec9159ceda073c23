"""Pages of an evaluation: a page of every match as it was counted, and an index that tells the same."""

import json
import re
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.cli import main
from palaestra.evaluation import evaluate
from palaestra.evaluation.match_pages import index_of
from palaestra.replay import load, record, show, verify

ID = "palaestra/TeamPong-v0"
html_of = methodcaller("_repr_html_")


def listed(page: str) -> dict[str, Any]:
    """What an index tells."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_every_match_has_a_page_and_a_line(tmp_path: Path):
    table = evaluate(ID, "tracker", "random", matches=5, num_envs=2, html=tmp_path / "pages")
    index = listed((tmp_path / "pages" / "index.html").read_text(encoding="utf-8"))
    assert [match["file"] for match in index["matches"]] == [f"match_{k:04}.html" for k in range(5)]
    for line, match in zip(index["matches"], table.results, strict=True):
        assert (tmp_path / "pages" / line["file"]).stat().st_size > 50_000
        assert line["seed"] == str(match["seed"])
        assert line["decisions"] == match["steps"]
        assert line["first"] == ("tracker", "random")[match["side"]]
        assert line["winner"] == {1: "tracker", -1: "random", 0: ""}[int(match["outcome"])]
    replays = sorted((tmp_path / "pages").glob("*.npz"))
    assert [path.name for path in replays] == ["matches_0_0000.npz", "matches_1_0000.npz"]
    assert all(verify(load(path)).ok for path in replays)


@pytest.mark.check
def test_a_page_ends_where_its_match_ends(tmp_path: Path):
    from replay.test_page import read

    table = evaluate(ID, "tracker", "random", matches=4, html=tmp_path)
    for k, match in enumerate(table.results):
        header, blocks = read((tmp_path / f"match_{k:04}.html").read_text(encoding="utf-8"))
        assert header["frames"] == match["steps"] + 1
        returns = blocks["team_rewards"].sum(axis=0)
        assert returns[match["side"]] == match["return_a"]
        about = dict(header["about"])
        assert about["red"] == ("tracker", "random")[match["side"]]
        lane = f" --lane {k // 2}" if k // 2 else ""
        assert about["command"] == f"palaestra replay matches_{k % 2}_0000.npz --verify{lane}"


@pytest.mark.check
def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["eval", "TeamPong", "--a", "tracker", "--b", "chaser", "--matches", "2", "--html", str(tmp_path)]
    assert main(words) == 0
    assert f"{tmp_path / 'index.html'}: open it in a browser" in capsys.readouterr().out
    assert listed((tmp_path / "index.html").read_text(encoding="utf-8"))["player"] == "tracker"


def test_the_first_matches_alone_have_pages(tmp_path: Path):
    words = ["eval", "TeamPong", "--a", "tracker", "--b", "chaser", "--matches", "4", "--html", str(tmp_path)]
    assert main([*words, "--pages", "3"]) == 0
    files = [match["file"] for match in listed((tmp_path / "index.html").read_text(encoding="utf-8"))["matches"]]
    assert files == ["match_0000.html", "match_0001.html", "match_0002.html", ""]
    assert sorted(path.name for path in tmp_path.glob("match_*.html")) == files[:3]


def test_python_writes_the_first_pages_as_the_command_does(tmp_path: Path):
    evaluate(ID, "tracker", "random", matches=4, html=tmp_path, pages=1)
    assert [path.name for path in tmp_path.glob("match_*.html")] == ["match_0000.html"]
    for pages, folder in ((1, None), (0, tmp_path)):
        with pytest.raises(ValueError, match=rf"pages={pages}: a number from 1 on .* html='FOLDER'"):
            evaluate(ID, "tracker", "random", matches=4, html=folder, pages=pages)


def test_pages_of_a_tournament_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["eval", "TeamPong", "--players", "tracker", "chaser", "--html", str(tmp_path)]
    assert main(words) != 0
    assert "--html goes with --a and --b" in capsys.readouterr().err


def test_a_player_that_plays_otherwise_the_second_time_is_refused(tmp_path: Path):
    class Fickle:
        memory_size = 0
        random = np.random.default_rng(0)

        def act(self, observations: Any, *_: Any) -> np.ndarray:
            return self.random.integers(0, 3, observations.shape[:2])

    player: Any = Fickle()
    with pytest.raises(ValueError, match="another way"):
        evaluate(ID, player, "tracker", matches=4, html=tmp_path)


def test_names_of_players_are_no_markup():
    name = "</script><script>alert(1)</script>"
    table = evaluate(ID, "tracker", "random", matches=2, names=(name, "b"))
    page = index_of(table)
    assert page.count("<script") == 2
    assert listed(page)["player"] == name


@pytest.mark.check
def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    shown = show(record(ID, {"red": "tracker"}, seed=1), height=500)
    text = shown.html
    assert re.search(r'title="TeamPong: tracker \(\w+\) beat tracker \(\w+\) by point, \d+ decisions"', text)
    assert text.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert 'sandbox="allow-scripts"' in text
    assert 'height="500"' in text
    assert text.count("<") == 2


def test_a_result_is_printed_though_its_pages_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("palaestra.evaluation.match_pages._write", lambda *_: 1 / 0)
    words = ["eval", "TeamPong", "--a", "tracker", "--b", "chaser", "--matches", "2", "--html", str(tmp_path)]
    assert main(words) != 0
    assert "2 matches" in capsys.readouterr().out


def test_a_notebook_shows_tables_and_replays_as_text_without_markup():
    table = evaluate(ID, "tracker", "random", matches=2, names=("<b>", "random"))
    assert "&lt;b&gt; against random" in html_of(table)
    assert "\n" not in repr(table)
    replay = record(ID, {"red": "tracker", "blue": "random"}, seed=1)
    assert "tracker (red) and random (blue)" in html_of(replay)
