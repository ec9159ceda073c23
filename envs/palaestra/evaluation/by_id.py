"""Which player is better: matches between named players of a registered environment.

Example::

    print(evaluate("palaestra/TeamPong-v0", "tracker", "chaser", matches=100))
    print(tournament("palaestra/TeamPong-v0", ["tracker", "chaser", "random"], anchors={"random": 0}))

A player is anything that an opponent can be: the name of a script, ``"random"``, the file of a saved policy, a callable
on batched observations or a `palaestra.core.run.opponents.Opponent`. How the matches are laid out is documented in
`palaestra.evaluation.matches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from palaestra import registry
from palaestra.core.run.opponents import OpponentSpec, player_name
from palaestra.drawing.canvas import import_pillow
from palaestra.evaluation.matches import (
    EVALUATION_RUN,
    MatchTable,
    Progress,
    Tournament,
    names_of,
    play_pair,
    play_tournament,
    without_shaping,
)
from palaestra.wrappers.transcript import text_keywords


def evaluate(
    id: str,
    a: OpponentSpec,
    b: OpponentSpec = None,
    *,
    matches: int = 64,
    seed: int = EVALUATION_RUN,
    swap: bool | None = None,
    num_envs: int = 64,
    names: tuple[str, str | None] | None = None,
    progress: Progress | None = None,
    html: str | Path | None = None,
    pages: int | None = None,
    mates: OpponentSpec | Sequence[OpponentSpec] = None,
    **keywords: Any,
) -> MatchTable:
    """Plays exactly ``matches`` matches of a against b (of a alone where the game has one team).

    Args:
        id: Registered id.
        a: First player: its wins and returns are counted.
        b: Second player.
        matches: Number of matches.
        seed: Number of the run: match seeds are ``(seed << 32) + k``. Training runs use small numbers, so the default
            never meets their matches.
        swap: Play each seed from both sides. None does so where the game declares
            ``symmetric_teams``; True also where the teams only have the same roles (chasers then flee).
        num_envs: Matches at the same time; the result does not depend on it.
        names: What to call the players.
        progress: Called with the numbers of finished and of all matches; for ``html``, then with those of pages.
        html: Folder for a page of each match and ``index.html``; the matches are played again for them.
        pages: How many of the first matches get a page; None for all. The index lists all.
        mates: Teammates of a, which then plays the first agent of its team alone: a player, or a list of players of
            which one is drawn for each match. None lets a play its whole team.
        **keywords: As for `palaestra.make_batch`: ``workers``, ``threads``, the game's own. Weights of rewards that
            only help learning (`palaestra.game.Parameter.shaping`) are 0 unless they are given, and the form is
            ``"text"`` where there is one and a player reads nothing else.

    Raises:
        KeyError: No such id.
        ValueError: No such player, a number out of range, sides that cannot be swapped, or mates of a team of one.
    """
    _refuse(keywords)
    if pages is not None and (html is None or pages < 1):
        raise ValueError(f"pages={pages}: a number from 1 on of pages to write to a folder, html='FOLDER'")
    keywords = text_keywords(id, keywords, (a, b))
    if html is not None:
        import_pillow()  # before anything is played
    names = names_of(names, a, b)
    if mates is not None:
        names = f"{names[0]} beside {_names_of_all(mates)}", names[1]
    rules = {name: value for name, value in keywords.items() if name not in ("workers", "threads")}
    game, _ = registry.make_game(id, **rules)
    keywords = without_shaping(game, keywords)
    table = play_pair(
        id,
        game,
        lambda n: registry.make_batch(id, n, autoreset_mode="off", **keywords),
        a,
        b,
        matches=matches,
        seed=seed,
        swap=swap,
        num_envs=num_envs,
        names=names,
        progress=progress,
        mates_of=None if mates is None else lambda team: registry.mates_of(id, game, team, mates, rules),
    )
    if html is not None:
        from palaestra.evaluation.match_pages import write_pages

        write_pages(html, table, (a, b), {**keywords, "mates": mates}, progress, pages)
    return table


def tournament(
    id: str,
    players: Mapping[str, OpponentSpec] | Sequence[OpponentSpec],
    *,
    matches: int = 64,
    anchors: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    **keywords: Any,
) -> Tournament:
    """Lets every player meet every other in ``matches`` matches and rates them by Elo.

    Args:
        id: Registered id of a game with two teams.
        players: Players by name, or a list of players with names of their own.
        matches: Matches of each pair.
        anchors: Elo of some players, which stays; without any the mean is 0.
        progress: Called with the numbers of finished and of all matches.
        **keywords: As for `evaluate`.

    Raises:
        ValueError: Fewer than two players, two of the same name, or an anchor that is none of them.
    """
    if "mates" in keywords:
        raise TypeError("mates= makes no sense here: one of two players has teammates in evaluate(id, a, b, mates=...)")
    players = named_players(players)
    keywords = text_keywords(id, keywords, [*players.values()])
    return play_tournament(
        players,
        lambda a, b, report_progress: evaluate(
            id, players[a], players[b], matches=matches, names=(a, b), progress=report_progress, **keywords
        ),
        matches,
        anchors,
        progress,
    )


def named_players(players: Mapping[str, OpponentSpec] | Sequence[OpponentSpec]) -> Mapping[str, OpponentSpec]:
    """Players by name, a list of them by names of their own.

    Raises:
        ValueError: Two have the same name.
    """
    if isinstance(players, Mapping):
        return players
    named = {player_name(player): player for player in players}
    if len(named) < len(players):
        raise ValueError(f"two players have the same name ({', '.join(named)}): give a dict of names")
    return named


def _names_of_all(players: Any) -> str:
    """What to call a player, or those of a list."""
    return " or ".join(map(player_name, players)) if isinstance(players, list | tuple) else player_name(players)


def _refuse(keywords: Mapping[str, Any]) -> None:
    for name in ("autoreset_mode", "opponents", "opponent", "control"):
        if name in keywords:
            raise TypeError(f"{name}= makes no sense here: the players are a and b")
