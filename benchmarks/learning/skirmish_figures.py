"""The figures of methods on battles, made by ``python benchmarks/learn.py skirmish``.

Red learns against the script ``builtin``; its units share a network. A table of entries says which method learns on
which battle for how many decisions, and what is asked of the median of its seeds. Each group of entries is a figure:

``skirmish_solved``    the maps that every method is to win
``skirmish_outnumbered``  five marines against six
``skirmish_actor_critic``  MAPPO, in no more processor time than UNMAS: the same, late units, and harder maps
``skirmish_claim``     UNMAS against QMIX and VDN where red is outnumbered
``skirmish_waves``     the same where units come late
``skirmish_transfer``  learnt on teams of three sizes, played by one of another size
``skirmish_frontier``  curves of one seed on harder maps, without a bar
``skirmish_even``      MAPPO on 3m and VDN on 5m_vs_6m
``skirmish_hard``      VDN and QMIX on MMM2 and 6h_vs_8z, two seeds
``skirmish_mix``       what comes with the package: MAPPO against a mixture of scripts, played against each of them
``skirmish_scripts``   every script, and random legal orders, on the same battles; nothing learns
``skirmish_speed``     decisions a second of the whole training, beside PyMARL's on the game client

A figure trains the runs that are missing, plays `TEST_MATCHES` new matches with each, and writes the curves
(``skirmish_solved.csv``, ``.png``, ``.svg``) and the final shares of won matches (``skirmish_solved_results.csv``). A
replay of QMIX or UNMAS fills 200 MB on 2s3z and up to 800 MB on the largest maps, and so does each of its two
checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from learning import figures
from learning.figures import FigureArgs, Method
from learning.study import Entry, Figure, Made, Place, Rows, Study, asked_of, median, won_per_place
from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra.games.skirmish import maps
from palaestra.games.skirmish.games import is_uneven
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, read_rows

RED_LEARNS: dict[str, Any] = {"team": "red", "opponent": "builtin", "evaluations": 8, "matches": 256}
"""Arguments of all runs."""
VALUE_BASED: dict[str, Any] = {"lanes": 64, "updates": 2, "replay_size": 50_000, "warmup_steps": 5_000}
"""Arguments of methods with a replay."""
FACTORED: dict[str, Any] = {"length": 8, "td_lambda": 0.7, "epsilon_until": 0.25}
"""Arguments of methods with a total value."""
GREEDY: dict[str, Any] = {"epsilon": (1.0, 0.02), "epsilon_until": 0.1}
"""Arguments where a random action costs most: the last of few units must not step aside."""
WIDE: dict[str, Any] = {
    "hidden": (128, 64),
    "critic_hidden": (128, 64),
    "learning_rate": (1e-3, 5e-5),
    "critic_learning_rate": (1e-3, 5e-5),
}
"""Arguments of MAPPO on a harder map."""
UNSHAPED = ("Waves", "Late", "Abilities", "Turncoats", "Maps")
BATTLES: dict[str, dict[str, Any]] = {
    **{name: {"env_id": f"palaestra/Skirmish-{name}-v0"} for name in maps.names()},
    **{name: {"env_id": f"palaestra/SkirmishUnshaped-{name}-v0"} for name in UNSHAPED},
    "Gen-a5v5": {"env_id": "palaestra/SkirmishGen-a5v5-v0"},
    "3m 5m 8m": {"env_id": "palaestra/SkirmishUnshaped-Maps-v0", "options": ("maps=['3m', '5m', '8m']",)},
    "10m": {"env_id": "palaestra/SkirmishUnshaped-Maps-v0", "options": ("maps=['10m']",)},
}
"""Arguments of a battle by its name."""
TEST_MATCHES = 1024
PYMARL_DECISIONS, PYMARL_HOURS = 2_000_000, 7.5
"""QMIX of PyMARL on the game client with a V100, 5m_vs_6m, as the README of DI-engine's SMAC benchmark states it
(github.com/opendilab/DI-engine, dizoo/smac/README.md, commit 09050db; 3s5z: 9.5 hours). We know of no published time on
2s3z, whose teams have as many units."""


METHODS: dict[str, Method] = {
    "vdn": Method("VDN", "vdn", VALUE_BASED),
    "qmix": Method("QMIX", "qmix", FACTORED),
    "unmas": Method("UNMAS", "unmas", FACTORED),
    "mappo": Method("MAPPO", "mappo"),
}
"""Method by the name that entries give it."""


PLACES = {name: Place(f"Skirmish {name}", **given) for name, given in BATTLES.items()}


GROUPS: dict[str, tuple[Entry, ...]] = {
    "solved": (
        Entry("3m", "vdn", 200_000, bar=0.9, minutes=3.0),
        Entry("3m", "qmix", 200_000, bar=0.95, minutes=2.0),
        Entry("3m", "unmas", 120_000, bar=0.95, minutes=2.0),
        Entry("2s3z", "vdn", 200_000, bar=0.9, minutes=3.0),
        Entry("2s3z", "qmix", 150_000, bar=0.95, minutes=4.0),
        Entry("2s3z", "unmas", 150_000, bar=0.95, minutes=4.0),
        Entry("2s3z", "mappo", 200_000),
    ),
    "outnumbered": (
        Entry("5m_vs_6m", "qmix", 500_000, bar=0.95, minutes=5.0, arguments=GREEDY),
        Entry(
            "5m_vs_6m",
            "unmas",
            560_000,
            bar=0.95,
            minutes=5.0,
            arguments={**GREEDY, "td_lambda": 0.5, "gamma": 0.97},
        ),
    ),
    "actor_critic": (
        Entry("5m_vs_6m", "mappo", 700_000, arguments=WIDE),
        Entry("MMM2", "mappo", 500_000, arguments=WIDE),
        Entry("3s5z_vs_3s6z", "mappo", 1_000_000, arguments=WIDE),
        Entry("Waves", "mappo", 1_000_000, arguments=WIDE),
        Entry("6h_vs_8z", "mappo", 1_000_000, arguments=WIDE),
    ),
    "claim": (
        Entry("3s5z_vs_3s6z", "vdn", 300_000, minutes=10.0),
        Entry("3s5z_vs_3s6z", "qmix", 300_000, minutes=10.0),
        Entry("3s5z_vs_3s6z", "unmas", 300_000, bar=0.5, minutes=10.0, ahead={"vdn": 0.0, "qmix": 0.0}),
    ),
    "waves": (
        Entry("Waves", "vdn", 300_000, minutes=6.0),
        Entry("Waves", "qmix", 300_000, minutes=6.0),
        Entry("Waves", "unmas", 300_000, minutes=6.0, ahead={"vdn": 0.1}),
    ),
    "transfer": (Entry("3m 5m 8m", "unmas", 200_000, unseen="10m"),),
    "frontier": (
        Entry("MMM2", "unmas", 120_000, seeds=1),
        Entry("corridor", "unmas", 120_000, seeds=1),
        Entry("6h_vs_8z", "unmas", 250_000, seeds=1),
        Entry("27m_vs_30m", "unmas", 50_000, seeds=1, arguments={"replay_size": 8_000, "updates": 1}),
        Entry("Gen-a5v5", "unmas", 300_000, seeds=1),
    ),
    "even": (Entry("3m", "mappo", 200_000), Entry("5m_vs_6m", "vdn", 500_000, arguments=GREEDY)),
    "hard": tuple(Entry(b, method, 300_000, seeds=2) for b in ("MMM2", "6h_vs_8z") for method in ("vdn", "qmix")),
}
"""Entries by group; a group has one of a method and a battle."""
MIX = (
    Entry("2s3z", "mappo", 500_000, weights="skirmish_2s3z", arguments={**WIDE, "opponent": "mix"}),
    Entry("5m_vs_6m", "mappo", 1_000_000, weights="skirmish_5m_vs_6m", arguments={**WIDE, "opponent": "mix"}),
    Entry("Waves", "mappo", 1_000_000, weights="skirmish_waves", arguments={**WIDE, "opponent": "mix"}),
)
"""What comes with the package."""
DUEL_MAPS = {"2s3z": "2s3z", "5m_vs_6m": "5m_vs_6m", "Waves": "waves"}
HELD_OUT_POLICY = "held-out policy"
"""What tables call blue's policy of a battle that no policy of red learns with; see `learning.robust_figures`."""
SPEED_BATTLE = "2s3z"


def battle_results(study: Study, made: Made) -> Rows:
    """Final shares of each run, on its battle and where it did not learn."""
    rows = list[dict[str, Any]]()
    for entry, run, log in made.each(study.entries):
        rows.append(final_row(entry.place, entry.method, run, log))
        if entry.unseen:
            rows.append({**final_row(entry.unseen, entry.method, run, log), "learnt_on": entry.place})
    return rows


def final_row(battle: str, method: str, run: RunArgs, log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Cost of a run, and share of new matches of a battle that its greedy team won."""
    return {
        "battle": battle,
        "method": method,
        "seed": run.seed,
        "decisions_wanted": run.total_steps,
        "decisions": int(log[-1]["steps"]),
        "cpu_s": log[-1]["cpu_s"],
        **share_won(battle, str(run.folder / WEIGHTS)),
    }


def mix_results(study: Study, made: Made) -> Rows:
    """Share of matches that policies which learnt against a mixture of scripts win against each, held-out ones too.

    The held-out policy of a battle plays as well, once ``learn.py held_out_policy`` has made it.
    """
    rows = list[dict[str, Any]]()
    for entry, run, log in made.each(study.entries):
        cost = {"decisions": int(log[-1]["steps"]), "cpu_s": log[-1]["cpu_s"]}
        held_out = made.args.assets / "weights" / f"{held_out_weights(entry)}.safetensors"
        for opponent in (*opponents_of(entry.place), *([HELD_OUT_POLICY] if held_out.exists() else [])):
            if opponent == HELD_OUT_POLICY:
                won = share_won(entry.place, str(run.folder / WEIGHTS), str(held_out), duel_of(entry.place))
            else:
                won = share_won(entry.place, str(run.folder / WEIGHTS), opponent)
            rows.append({"battle": entry.place, "seed": run.seed, **cost, "opponent": opponent, **won})
            print(" ".join(str(value) for value in rows[-1].values()), flush=True)
    return rows


def held_out_weights(entry: Entry) -> str:
    """Name of the weights of the held-out policy of an entry's battle."""
    return f"{entry.weights}_held_out"


def duel_of(battle: str) -> Place:
    """A battle of `MIX` in which blue can be a policy; red sees and does what it does in `BATTLES`."""
    order = ("blue_order=map",) if is_uneven(DUEL_MAPS[battle]) else ()
    return Place(f"Skirmish {battle}", "palaestra/SkirmishDuel-v0", (f"map={DUEL_MAPS[battle]}", *order))


def opponents_of(battle: str) -> tuple[str, ...]:
    """The mixture that policies learn with, what it is made of, scripts that it lacks, and random play."""
    game, _ = registry.make_game(PLACES[battle].env_id, **PLACES[battle].keywords)
    return ("mix", *game.scripts, "random")


def share_won(
    battle: str, red: str, blue: str = RED_LEARNS["opponent"], instead: Place | None = None
) -> dict[str, float]:
    """Share of new matches of a battle that red wins, and its 95 % interval.

    Args:
        battle: See `PLACES`.
        red: A script or the file of a policy.
        blue: A script, or with `duel_of` the file of a policy.
        instead: Where they play, if it is not that of `PLACES`.
    """
    place, sizes = instead or PLACES[battle], {"matches": TEST_MATCHES, "num_envs": min(TEST_MATCHES, 256)}
    table = evaluate(place.env_id, red, blue, swap=False, **sizes, **place.keywords)
    low, high = table.win_interval
    return {"won": table.wins / table.matches, "low": low, "high": high}


def skirmish_scripts(args: FigureArgs) -> None:
    """Shares of matches that red's scripts and random legal orders win on all battles: what learning has to beat."""
    rows = []
    for battle, place in PLACES.items():
        game, _ = registry.make_game(place.env_id, **place.keywords)
        for script in ("random", *game.scripts):
            rows.append({"battle": battle, "script": script, **share_won(battle, script)})
            won = "  ".join(f"{rows[-1][name]:.3f}" for name in ("won", "low", "high"))
            print(f"{battle:14s}{script:>14s}  {won}", flush=True)
    figures.write_rows(args.figures / "skirmish_scripts.csv", rows)


def result_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """A line of text for each run; then medians over the seeds beside what the entries ask for."""
    yield f"{'battle':14s}{'method':>8s}{'seed':>6s}{'decisions':>11s}{'processor s':>13s}{'won':>8s}  95 % interval"
    for row in rows:
        cost = f"{row['seed']:6d}{row['decisions']:11d}{row['cpu_s']:13.1f}{row['won']:8.3f}"
        learnt = f", learnt on {row['learnt_on']}" if "learnt_on" in row else ""
        title = METHODS[row["method"]].title
        yield f"{row['battle']:14s}{title:>8s}{cost}  {row['low']:.3f} to {row['high']:.3f}{learnt}"
    yield "\nmedians of the seeds, and what is asked:"
    for entry in study.entries:
        battle = entry.unseen or entry.place
        of = lambda method, column, battle=battle: median(rows, column, battle=battle, method=method)  # noqa: E731
        won, minutes = of(entry.method, "won"), of(entry.method, "cpu_s") / 60
        asked = asked_of(study, entry, won, minutes, lambda other, of=of: of(other, "won"))
        title = METHODS[entry.method].title
        yield f"{battle:14s}{title:>8s}  won {won:.3f}  {minutes:.1f} min{figures.verdicts(asked)}"


def skirmish_speed(args: FigureArgs) -> None:
    """Decisions a second of the whole training on 2s3z, play and learning, without evaluations."""
    entries = tuple(entry for entry in STUDIES["skirmish_solved"].entries if entry.place == SPEED_BATTLE)
    made = replace(STUDIES["skirmish_solved"], entries=entries).train(args)
    rows = [speed_row(entry.method, run) for entry, run, _ in made.each(entries)]
    figures.write_rows(args.figures / "skirmish_speed.csv", rows)
    print(f"{'method':8s}{'seed':>6s}{'decisions':>11s}{'processor s':>13s}{'decisions/s':>13s}{'over PyMARL':>13s}")
    for row in rows:
        rates = f"{row['decisions_per_s']:13.0f}{row['over_pymarl']:13.0f}"
        print(f"{METHODS[row['method']].title:8s}{row['seed']:6d}{row['decisions']:11d}{row['cpu_s']:13.1f}{rates}")


def speed_row(method: str, run: RunArgs) -> dict[str, Any]:
    """Speed of a run, in decisions of the team a second of processor time, and how many times PyMARL's it is."""
    last = read_rows(run.folder / "log.csv")[-1]
    rate, pymarl = last["steps"] / last["cpu_s"], PYMARL_DECISIONS / (3600 * PYMARL_HOURS)
    return {
        "method": method,
        "seed": run.seed,
        "decisions": int(last["steps"]),
        "cpu_s": last["cpu_s"],
        "decisions_per_s": rate,
        "over_pymarl": rate / pymarl,
    }


BATTLE: dict[str, Any] = {"methods": METHODS, "places": PLACES, "shared": RED_LEARNS, "columns": ("battle", "method")}
STUDIES: dict[str, Study] = {
    f"skirmish_{group}": Study(
        f"skirmish_{group}", entries, **BATTLE, panels=won_per_place, results=battle_results, lines=result_lines
    )
    for group, entries in GROUPS.items()
}
MIXED = Study("skirmish_mix", MIX, **BATTLE, results=mix_results, lines=lambda *_: ())
FIGURES = (
    *STUDIES.values(),
    MIXED,
    Figure("skirmish_scripts", skirmish_scripts),
    Figure("skirmish_speed", skirmish_speed),
)
