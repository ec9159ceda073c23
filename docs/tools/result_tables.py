"""Tables of the pages of results, made of the tables in `docs/figures` and of the claims of the pages themselves."""

from __future__ import annotations

import csv
import itertools
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FIELDS = Path("docs", "results")
"""Pages of results, one a field. Each begins with its table of claims, whose numbers for the overview are bold."""
BADGES = {"shown": "🟢", "partly": "🟡", "not shown": "⚪", "refuted": "🔴"}
"""Before a verdict, by its first words."""
FIGURES = Path("docs", "figures")
SPEED = Path("docs", "speed.csv")
"""Measured speeds beside those of peers; the page beside it is written from them."""
SPEED_HEAD = ("| what | measured | machine | `--measurements` |", "|---|---|---|---|")
LEARNERS = {"vdn": "VDN", "qmix": "QMIX", "unmas": "UNMAS", "mappo": "MAPPO"}
"""Columns of the table of battles, by the name of the method in the files of results."""
SEATED = {
    "mix": "MAPPO, learnt beside the mixture",
    "team": "MAPPO, learnt beside copies of itself",
    "random": "random choices",
}
"""What players of one agent that are no scripts are called, by their name in the file of results."""
SOLVED = 0.95
"""Share of won matches from which on a battle counts as solved."""
LUCK = 0.02
"""Share of won matches up to which random play counts as winning nothing, and a script as no solution."""
SMALL_RETURN = 100.0
"""Returns below it are shown with a decimal, see `ordered_table`."""


def speed_tables(root: Path) -> dict[str, str]:
    """A table for each peer of ``docs/speed.csv``, by the heading of its section.

    A row of the file: peer, what is compared, what was measured, the machine, and the words by which
    ``benchmarks/speed.py --measurements`` makes it again.

    Raises:
        FileNotFoundError: There is no such file.
    """
    tables = dict[str, list[str]]()
    with (root / SPEED).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            words = f" `{row['measurements']}`" if row["measurements"] else ""
            line = f"| {row['what']} | {row['measured']} | {row['machine']} |{words} |"
            tables.setdefault(row["peer"], [*SPEED_HEAD]).append(line)
    return {peer: "\n".join(lines) for peer, lines in tables.items()}


def claims_table(root: Path) -> str:
    """Overview of the claims of all `FIELDS`: a line each, with its verdict and what is bold in the cell of figures."""
    lines = ["| paper | its claim | verdict | measured here |", "|---|---|---|---|"]
    for page in sorted((root / FIELDS).glob("*.md")):
        for paper, claim, measured, verdict, _ in claims_of(page):
            word = max((word for word in BADGES if verdict.startswith(word)), key=len)
            number = re.search(r"\*\*(.+?)\*\*", measured)
            if number is None:
                raise ValueError(f"{page}: no number of the claim {claim!r} is bold")
            shown = "" if paper == "the same" else paper
            badge = f"[{BADGES[word]} {word}]({FIELDS.name}/{page.name})"
            lines.append(f"| {shown} | {claim} | {badge} | {number[1]} |")
    return "\n".join(lines)


def claims_of(page: Path) -> list[list[str]]:
    """Rows of a page's first table: paper, claim, what was measured, verdict, command."""
    table = page.read_text(encoding="utf-8").partition("\n|")[2].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def battle_table(root: Path) -> str:
    """Table of the battles on which every method has learnt, from the results that ``learn.py skirmish`` has written.

    A cell holds the median of the seeds, bold from `SOLVED` on, the least and the most, and the decisions of a run.
    """
    found = {battle: runs for battle, runs in _battles(root).items() if len(_methods(runs)) == len(LEARNERS)}
    if not found:
        return "No results yet."
    lines = [f"| battle | random | best script | {' | '.join(LEARNERS.values())} |", "|---" * (3 + len(LEARNERS)) + "|"]
    scripts = _script_scores(root)
    for battle, runs in found.items():
        cells = ["; ".join(_cell(rows) for (name, _), rows in runs.items() if name == method) for method in LEARNERS]
        lines.append(f"| {battle} | {' | '.join(_beaten(scripts, battle))} | {' | '.join(cells)} |")
    return "\n".join(lines)


def more_battles_table(root: Path) -> str:
    """The battles on which some methods have learnt: a row for each of them. See `battle_table`."""
    found = {battle: runs for battle, runs in _battles(root).items() if len(_methods(runs)) < len(LEARNERS)}
    if not found:
        return "None."
    lines = ["| battle | random | best script | method | won |", "|---" * 5 + "|"]
    scripts = _script_scores(root)
    for battle, runs in found.items():
        cells = " | ".join([battle, *_beaten(scripts, battle.partition(",")[0])])
        lines += [f"| {cells} | {LEARNERS[method]} | {_cell(rows)} |" for (method, _), rows in runs.items()]
    return "\n".join(lines)


def methods_table(root: Path, equal: str) -> str:
    """Table of all methods on battles by ``learn.py skirmish_methods``: a row a battle, a column an arm.

    A cell holds the median of the seeds, the least and the most; one without a run says so.

    Args:
        root: Of the checkout.
        equal: ``time``: won by the last weights, each run in the same processor time. ``decisions``: won after as many
            decisions as the shortest run of the battle made, between two evaluations of the curve.
    """
    runs = _grouped(_rows(root, "skirmish_methods_results.csv"), "battle", "arm")
    if not runs:
        return "No results yet."
    curves = _grouped(_rows(root, "skirmish_methods.csv"), "battle", "arm", "seed")
    arms = list(dict.fromkeys(arm for _, arm in runs))
    lines = ["| battle |" + " decisions |" * (equal == "decisions") + f" {' | '.join(arms)} |"]
    lines += ["|---" * (lines[0].count("|") - 1) + "|"]
    for battle in dict.fromkeys(battle for battle, _ in runs):
        own = {arm: runs[battle, arm] for arm in arms if (battle, arm) in runs}
        least = min(float(row["decisions"]) for rows in own.values() for row in rows)
        cells = [f"{least / 1e6:.2f} M"] if equal == "decisions" else []
        for arm in arms:
            won = [float(row["won_builtin"]) for row in own.get(arm, ())]
            if equal == "decisions":
                won = [_at(least, curves[battle, arm, row["seed"]]) for row in own.get(arm, ())]
            cells.append(_spread([{"won": f"{share}"} for share in won]) if won else "not run")
        lines.append(f"| {battle} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _at(decisions: float, curve: Sequence[Mapping[str, str]]) -> float:
    """Share won after so many decisions, between the two evaluations around it."""
    points = [(float(point["steps"]), float(point["won"])) for point in curve]
    for (before, low), (after, high) in itertools.pairwise(points):
        if decisions <= after:
            return low + (high - low) * (decisions - before) / (after - before)
    return points[-1][1]


def mix_table(root: Path) -> str:
    """Table of the policies that learnt against a mixture of scripts: a row an opponent, a column a battle."""
    found = _grouped(_rows(root, "skirmish_mix_results.csv"), "opponent", "battle")
    if not found:
        return "No results yet."
    battles = list(dict.fromkeys(battle for _, battle in found))
    lines = [f"| against | {' | '.join(battles)} |", "|---" * (1 + len(battles)) + "|"]
    for opponent in dict.fromkeys(opponent for opponent, _ in found):
        cells = " | ".join(_spread(found[opponent, battle]) for battle in battles)
        lines += [f"| `{opponent}` | {cells} |"]
    return "\n".join(lines)


def mates_table(root: Path) -> str:
    """Table of one agent beside other teammates: a row for each learner, for random choices and the best script."""
    found = _grouped(_rows(root, "mates_results.csv"), "place", "learner")
    if not found:
        return "No results yet."
    head = ("place", "its one agent", "beside the mixture", "beside held-out players", "beside copies")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for place in dict.fromkeys(place for place, _ in found):
        seated = {learner: rows for (where, learner), rows in found.items() if where == place}
        won = {name: _median(_beside(rows, "mix")) for name, rows in seated.items() if name not in SEATED}
        best = max(won, key=lambda name: won[name])
        for learner, title in {**SEATED, best: f"best script there, `{best}`"}.items():
            cells = (_beside(seated.get(learner, []), column) for column in ("mix", "held_out", "copies"))
            lines.append(f"| {place} | {title} | {' | '.join(_share(cell) for cell in cells)} |")
    return "\n".join(lines)


def _beside(rows: Sequence[dict[str, str]], column: str) -> list[dict[str, str]]:
    """The rows of matches beside one kind of teammates."""
    return [row for row in rows if row["beside"] == column]


def _share(rows: Sequence[Mapping[str, str]]) -> str:
    """Median share of won matches; of several seeds with the least and the most; nothing without rows."""
    return "" if not rows else _spread(rows) if len(rows) > 1 else f"{float(rows[0]['won']):.2f}"


def adversary_table(root: Path) -> str:
    """Table of policies against an adversary: a row an adversary, a column for each share of its decisions."""
    found = _grouped(_rows(root, "adversary_results.csv"), "place", "player", "policy")
    if not found:
        return "No results yet."
    parts = [row["share"] for row in next(iter(found.values()))]
    lines = [f"| place | script | adverse policy | {' | '.join(parts)} |", "|---" * (3 + len(parts)) + "|"]
    for (place, player, policy), rows in found.items():
        shares = ([float(row[name]) for name in ("won", "low", "high")] for row in rows)
        cells = " | ".join(f"{won:.2f} ({low:.2f} to {high:.2f})" for won, low, high in shares)
        lines.append(f"| {place} | `{player}` | {policy} | {cells} |")
    return "\n".join(lines)


def _spread(rows: Sequence[Mapping[str, str]]) -> str:
    """Median, least and most of the seeds; the share alone of one."""
    if len(rows) == 1:
        return f"{float(rows[0]['won']):.2f}"
    won = sorted(float(row["won"]) for row in rows)
    return f"{statistics.median(won):.2f} ({won[0]:.2f} to {won[-1]:.2f})"


def measures_table(root: Path) -> str:
    """Table of all battles: what random play, waiting and the best script win, and what the battle is good for."""
    lines = ["| battle | random | `hold` | best script | what it measures |", "|---" * 5 + "|"]
    for battle, scores in _script_scores(root).items():
        random, best = _beaten({battle: scores}, battle)
        lines.append(f"| {battle} | {random} | {scores['hold']:.2f} | {best} | {_measures(scores)} |")
    return "\n".join(lines)


def _measures(scores: Mapping[str, float]) -> str:
    """What a battle is good for, by the shares of matches that players win who learn nothing."""
    best = max(scores.values())
    if scores["random"] > LUCK:
        return "little: random play wins, too"
    if best >= SOLVED:
        return "a first run: a script solves it"
    if best > LUCK:
        return f"learning, where it wins well over {best:.2f}"
    return "learning: no script wins"


def duel_table(root: Path) -> str:
    """Table of the rounds of self-play on SkirmishDuel, from the results of ``learn.py skirmish_duel``."""
    rounds = _grouped(_rows(root, "skirmish_duel.csv"), "round")
    if not rounds:
        return "No results yet."
    lines = [
        "| round | policies in the pool | gain of the best response, by seed | matches it won | "
        "score of the policy against `nearest` |",
        "|---|---|---|---|---|",
    ]
    for (number,), rows in rounds.items():
        gains = ", ".join(f"{float(row['gain']):+.1f}" for row in rows)
        won, script = (
            ", ".join(f"{float(row[name]):.2f}" for row in rows) for name in ("exploited", "score_against_script")
        )
        lines.append(f"| {int(number) + 1} | {rows[0]['pool']} | {gains} | {won} | {script} |")
    return "\n".join(lines)


def pursuit_table(root: Path) -> str:
    """Table of what learnt teams and scripts win on graphs, from the results that ``learn.py pursuit`` has written.

    Medians of the seeds, with the least and the most share of won matches. Scripts stand above what has learnt in the
    same setting; beside the name of a reference stands what it wins itself in the same test.
    """
    learnt = _grouped(_rows(root, "pursuit_*_results.csv"), "where", "reference", "title", "test", "opponent")
    if not learnt:
        return "No results yet."
    head = ("learnt on", "played", "opponent", "player", "reference", "won", "moves over optimal", "decisions")
    lines = [f"| {' | '.join(head)} | processor |", "|---" * (len(head) + 1) + "|"]
    scripts = _rows(root, "pursuit_references.csv")
    alone = {(row["where"], row["test"], row["script"]): float(row["won"]) for row in scripts}
    for where in dict.fromkeys(key[0] for key in learnt):
        for row in (row for row in scripts if row["where"] == where):
            player = "random choices" if row["script"] == "random" else f"script `{row['script']}`"
            cells = [where, row["test"], f"`{row['opponent']}`", player, "", f"{float(row['won']):.3f}"]
            lines.append(f"| {' | '.join([*cells, _moves(float(row['slower'])), '', ''])} |")
        for (_, reference, title, test, opponent), rows in ((k, v) for k, v in learnt.items() if k[0] == where):
            slower, decisions, seconds = (
                statistics.median(float(row[name]) for row in rows) for name in ("slower", "decisions", "cpu_s")
            )
            won = sorted(float(row["won"]) for row in rows)
            cells = [
                where,
                test,
                opponent if test.startswith("against") else f"`{opponent}`",
                title,
                _reference(reference, alone.get((where, test, reference))),
                f"{_median(rows):.3f} ({won[0]:.3f} to {won[-1]:.3f})",
                _moves(slower),
                f"{decisions / 1e6:.2f} M" if decisions else "",
                f"{seconds / 60:.1f} min" if decisions else "",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def robots_table(root: Path, name: str) -> str:
    """Table of SeqWM and of methods beside it on robots, from the results that ``learn.py seqwm`` has written.

    Args:
        root: Of the repository.
        name: Of the figure.
    """
    by_task = _grouped((row for row in _rows(root, f"{name}_results.csv") if row["return"]), "task")
    if not by_task:
        return "No results yet."
    lines = [
        "| task | player | area under the curve | return | success | return of the actor alone | its success | "
        "processor |",
        "|---" * 8 + "|",
    ]
    for row in (row for rows in by_task.values() for row in rows):
        columns = ("return", "success", "actor_return", "actor_success")
        shown = [f"{float(row[name]):.2f}" if row[name] else "" for name in columns]
        minutes = f"{float(row['cpu_s']) / 60:.1f} min" if row["cpu_s"] else ""
        lines.append(f"| {' | '.join([row['task'], row['method'], _interval(row, 'area'), *shown, minutes])} |")
    return "\n".join(lines)


def copy_table(root: Path) -> str:
    """Table of the modes of SeqWM in the copy game, from the results of ``learn.py seqwm_copy``."""
    rows = _rows(root, "seqwm_copy_results.csv")
    if not rows:
        return "No results yet."
    lines = ["| player | reward of a decision | of the actor alone | processor |", "|---" * 4 + "|"]
    for row in rows:
        shown = [f"{float(row['actor']):.3f}", f"{float(row['cpu_s']):.0f} s"] if row["actor"] else ["", ""]
        lines.append(f"| {' | '.join([row['method'], _interval(row, 'score', 3), *shown])} |")
    return "\n".join(lines)


def settings_table(root: Path) -> str:
    """Table of the settings that were tried for SeqWM and the methods beside it, by ``learn.py seqwm_tuning``."""
    by_method = _grouped(_rows(root, "seqwm_tuning.csv"), "method")
    if not by_method:
        return "No results yet."
    lines = ["| method | setting: area under the curve |", "|---|---|"]
    for (method,), rows in by_method.items():
        best = max(float(row["area"]) for row in rows)
        shown = [(row["setting"], float(row["area"])) for row in rows]
        cells = (f"{name}: **{area:.2f}**" if area == best else f"{name}: {area:.2f}" for name, area in shown)
        lines.append(f"| {method} | {'; '.join(cells)} |")
    return "\n".join(lines)


def ordered_table(root: Path, name: str) -> str:
    """Table of policies on atoms and of numbers, from the results that ``learn.py poisson`` has written.

    Args:
        root: Of the repository.
        name: Of the figure.
    """
    rows = [row for row in _rows(root, f"{name}_results.csv") if row["last_return"]]
    if not rows:
        return "No results yet."
    head = ("task", "policy", "area under the curve", "its mean", "last return of training", "last return", "processor")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        digits = 0 if abs(float(row["last_return"])) >= SMALL_RETURN else 1
        columns = ("mean_area", "last_training_return", "last_return")
        shown = [f"{float(row[column]):z.{digits}f}" if row[column] else "" for column in columns]
        minutes = f"{float(row['cpu_s']) / 60:.1f} min" if row["cpu_s"] else ""
        lines.append(f"| {' | '.join([row['task'], row['arm'], _interval(row, 'area', digits), *shown, minutes])} |")
    return "\n".join(lines)


def deviations_table(root: Path) -> str:
    """Table of the first deviations that were tried for policies, by ``learn.py poisson_tuning``; the best in bold."""
    by_arm = _grouped(_rows(root, "poisson_tuning.csv"), "arm")
    if not by_arm:
        return "No results yet."
    names = [row["start_std"] for row in next(iter(by_arm.values()))]
    lines = [f"| policy | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for (arm,), rows in by_arm.items():
        areas = [float(row["area"]) for row in rows]
        cells = (f"**{area:.0f}**" if area == max(areas) else f"{area:.0f}" for area in areas)
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines)


def gradient_table(root: Path) -> str:
    """Table of the noise of gradients of heads on atoms, from ``learn.py poisson_gradient``."""
    by_head = _grouped(_rows(root, "poisson_gradient.csv"), "atoms", "head")
    if not by_head:
        return "No results yet."
    lines = ["| atoms | policy | variance, 1e-6 | variance over the squared gradient |", "|---" * 4 + "|"]
    for (atoms, head), rows in by_head.items():
        lines.append(f"| {' | '.join([atoms, head, *(_interval(row, 'mean', 1) for row in rows)])} |")
    return "\n".join(lines)


def messages_table(root: Path) -> str:
    """Table of catches with and without messages, of each seed, from the results of ``learn.py nvif``."""
    groups = _grouped(_rows(root, "nvif_*_results.csv"), "setting", "title")
    if not groups:
        return "No results yet."
    lines = ["| task | team | as learnt | messages shuffled | larger map | processor |", "|---" * 6 + "|"]
    for (setting, title), rows in groups.items():
        cells = []
        for test in ("as learnt", "messages shuffled", "24"):
            means = [float(row.get("catches") or row["win_rate"]) for row in rows if row["test"].startswith(test)]
            each = f" ({', '.join(f'{mean:.2f}' for mean in means)})" if len(means) > 1 else ""
            cells.append(f"{sum(means) / len(means):.2f}{each}" if means else "")
        seconds = max(float(row["cpu_s"]) for row in rows)
        lines.append(f"| {' | '.join([setting, title, *cells, f'{seconds:.0f} s'])} |")
    return "\n".join(lines)


def orders_table(root: Path) -> str:
    """Table of the points of policies of joint orders, by map, from the results of ``learn.py dipllm``."""
    pairs = _grouped(_rows(root, "dipllm_*_results.csv"), "one", "other")
    if not pairs:
        return "No results yet."
    maps = ("duel", "duel20", "france_austria", "standard")
    lines = [f"| one | other | {' | '.join(maps)} |", "|---" * (len(maps) + 2) + "|"]
    for pair, rows in pairs.items():
        cells = []
        for place in maps:
            scores = [float(row["score"]) for row in rows if row["map"] == place]
            each = f" ({', '.join(f'{score:.2f}' for score in scores)})" if len(scores) > 1 else ""
            cells.append(f"{sum(scores) / len(scores):.3f}{each}" if scores else "")
        lines.append(f"| {' | '.join([*pair, *cells])} |")
    return "\n".join(lines)


def _rows(root: Path, pattern: str) -> list[dict[str, str]]:
    """Rows of the files of results whose names fit the pattern."""
    rows: list[dict[str, str]] = []
    for path in sorted((root / FIGURES).glob(pattern)):
        with path.open(newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file)
    return rows


def _grouped(rows: Iterable[dict[str, str]], *columns: str) -> dict[tuple[str, ...], list[dict[str, str]]]:
    """The rows by the values of some columns, in the order of their first appearance."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name, "") for name in columns), []).append(row)
    return found


def _battles(root: Path) -> dict[str, dict[tuple[str, ...], list[dict[str, str]]]]:
    """The runs on battles by method and budget; the best won battle first."""
    battles, learnt = {}, (row for row in _rows(root, "skirmish_*_results.csv") if row.get("method"))
    for (battle, learnt_on), rows in _grouped(learnt, "battle", "learnt_on").items():
        name = f"{battle}, learnt on {learnt_on}" if learnt_on else battle
        battles[name] = _grouped(rows, "method", "decisions_wanted")
    return dict(sorted(battles.items(), key=lambda item: -max(map(_median, item[1].values()))))


def _methods(runs: Iterable[tuple[str, ...]]) -> set[str]:
    return {method for method, _ in runs}


def _script_scores(root: Path) -> dict[str, dict[str, float]]:
    """Share of matches that each script wins, by battle and script."""
    scores: dict[str, dict[str, float]] = {}
    for row in _rows(root, "skirmish_scripts.csv"):
        scores.setdefault(row["battle"], {})[row["script"]] = float(row["won"])
    return scores


def _beaten(scripts: dict[str, dict[str, float]], battle: str) -> tuple[str, str]:
    """What random legal orders and the best script win on a battle."""
    scores = dict(scripts.get(battle, {}))
    if not scores:
        return "", ""
    random = scores.pop("random")
    best = max(scores, key=lambda name: scores[name])
    return f"{random:.2f}", f"{scores[best]:.2f}" + (f" (`{best}`)" if scores[best] else "")


def _median(rows: Sequence[dict[str, str]]) -> float:
    """Median share of won matches over seeds."""
    return statistics.median(float(row["won"]) for row in rows)


def _cell(rows: Sequence[dict[str, str]]) -> str:
    """Median, least and most of the seeds, and the decisions of a run in millions."""
    won, median = sorted(float(row["won"]) for row in rows), _median(rows)
    shown = f"**{median:.2f}**" if median >= SOLVED else f"{median:.2f}"
    seeds = f"{won[0]:.2f} to {won[-1]:.2f}" if len(rows) > 1 else "one seed"
    seeds += ", two seeds" if len(rows) == 2 else ""
    return f"{shown} ({seeds}), {int(rows[0]['decisions_wanted']) / 1e6:g} M"


def _interval(row: Mapping[str, str], column: str, digits: int = 2) -> str:
    """A number with its interval, if it has one, or nothing."""
    if not row.get(column):
        return ""
    shown, low, high = (f"{float(row[x]):z.{digits}f}" if row[x] else "" for x in (column, "low", "high"))
    return f"{shown} [{low}, {high}]" if low else shown


def _reference(name: str, won: float | None) -> str:
    """A reference and its own score, if it has played the same test."""
    return f"`{name}`" + (f" {won:.3f}" if won is not None else "") if name else ""


def _moves(slower: float) -> str:
    return f"{slower:.2f}" if slower else ""
