"""How learnt policies fare with what they have not met: ``python benchmarks/learn.py mates adversary held_out_policy``.

``mates``            one agent beside teammates that others play: learnt beside a mixture of players, or beside copies
``held_out_policy``  blue policies that no policy of ours learns with; they come with the package
``adversary``        policies of the package against an opponent that plays a share of its decisions as a policy

`mates` trains MAPPO twice in each place for the same number of decisions: one agent beside players drawn for each
match, or the whole team, whose policy then plays that agent alone. Both are played beside the mixture and beside
players that are held out of it, and so are random choices and every script, which learn nothing.

`held_out_policy` learns blue in SkirmishDuel, against a mixture of red scripts, on the battles of `skirmish_mix`. There
red sees and moves as in Skirmish and in SkirmishWaves (``blue_order=map`` where the sides differ), so that its policies
play there, too.

`adversary` only plays. The adversary's policy is the attacked one itself where it plays either side (TeamPong's learnt
against itself), and the held-out one on battles. A battle without a held-out policy is named and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from learning import figures
from learning.figures import FigureArgs, Method
from learning.skirmish_figures import HELD_OUT_POLICY, MIX, duel_of, held_out_weights
from learning.study import Entry, Figure, Made, Place, Rows, Study
from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra.wrappers import Adversary
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs

TEST_MATCHES = 1024
LEARNS: dict[str, Any] = {"evaluations": 8, "matches": 256}
"""Arguments of all runs."""
ENTITY: dict[str, Any] = {"network": "entity", "hidden": (32, 64), "critic_hidden": (32, 64)}
ITSELF = "itself"
SHARES = (0.0, 0.1, 0.2, 0.5, 1.0)
"""Shares of the decisions of an adversary that are its policy's."""

# --------------------------------------------------------------------------------------------------- unknown teammates


@dataclass(frozen=True)
class Seat:
    """The first agent of a team as the learner.

    Attributes:
        place: Environment, team and opponent.
        mix: Players of which one has the teammates in each match of the training.
        held_out: Players beside whom nothing learns.
    """

    place: Place
    mix: str | list[str]
    held_out: str | list[str]

    @property
    def beside(self) -> dict[str, Any]:
        """Teammates by their column; None for copies of the first agent."""
        return {"mix": self.mix, "held_out": self.held_out, "copies": None}


SEATS: dict[str, Seat] = {
    **{
        f"Skirmish-{name}": Seat(Place(name, f"palaestra/Skirmish-{name}-v0", (), "red", "builtin"), "mix", "held_out")
        for name in ("3m", "2s3z")
    },
    "GraphPursuit-Grid10": Seat(
        Place("Grid10", "palaestra/GraphPursuit-Grid10-v0", (), "pursuer", "optimal"),
        ["shortest_path", "greedy"],
        ["optimal"],
    ),
}
"""Places where the first agent decides matches: random play there wins less than the best script does."""
ARMS = {"mix": Method("learnt beside a mixture", "mappo"), "team": Method("learnt beside copies of itself", "mappo")}
"""Methods by how their teammates play while they learn."""
MATES: tuple[Entry, ...] = tuple(
    Entry(place, arm, 400_000, arguments={"options": (f"mates={seat.mix}",)} if arm == "mix" else {})
    for place, seat in SEATS.items()
    for arm in ARMS
)


def mates_results(study: Study, made: Made) -> Rows:
    """Share of matches that one agent wins beside teammates it knows and does not know."""
    rows = list[dict[str, Any]]()
    for place in dict.fromkeys(entry.place for entry in study.entries):
        rows += seat_rows(place, {key[1]: group for key, group in made.runs.items() if key[0] == place}, made.logs)
        figures.write_rows(made.args.figures / "mates_results.csv", rows)
    return rows


def seat_rows(place: str, runs: Mapping[str, Sequence[RunArgs]], logs: figures.Logs) -> Iterator[dict[str, Any]]:
    """Shares of new matches that learners, random choices and scripts win in a seat, beside each kind of teammates."""
    seat = SEATS[place]
    game, _ = registry.make_game(seat.place.env_id)
    players: list[tuple[dict[str, Any], str]] = []
    for arm, group in runs.items():
        for run, log in zip(group, logs[place, arm], strict=True):
            cost = {"decisions": int(log[-1]["steps"]), "cpu_s": log[-1]["cpu_s"]}
            players.append(({"learner": arm, "seed": run.seed, **cost}, str(run.folder / WEIGHTS)))
    players += [({"learner": script}, script) for script in ("random", *game.scripts)]
    for about, player in players:
        for column, beside in seat.beside.items():
            if about["learner"] == "mix" and beside is None:
                continue  # the weights of the other agents have learnt nothing
            won = share(seat.place.env_id, player, seat.place.opponent, mates=beside)
            yield {"place": place, **about, "beside": column, **won}
            print(place, *about.values(), column, won["won"], flush=True)


def share(id: str, a: Any, b: Any, **more: Any) -> dict[str, float]:
    """Share of new matches that the first player wins as the first team, its 95 % interval, and the share it loses."""
    table = evaluate(id, a, b, matches=TEST_MATCHES, swap=False, num_envs=min(TEST_MATCHES, 256), **more)
    low, high = table.win_interval
    return {"won": table.wins / table.matches, "low": low, "high": high, "lost": table.losses / table.matches}


# ---------------------------------------------------------------------------------------------------- held-out policies

BLUE = {"mappo": Method("MAPPO, entity", "mappo", {**LEARNS, **ENTITY, "team": "blue", "opponent": "mix"})}
HELD_OUT: tuple[Entry, ...] = (
    Entry("2s3z", "mappo", 400_000, weights=held_out_weights(MIX[0]), seeds=1),
    Entry("5m_vs_6m", "mappo", 200_000, weights=held_out_weights(MIX[1]), seeds=1),
    Entry("Waves", "mappo", 400_000, weights=held_out_weights(MIX[2]), seeds=1),
)
"""One policy a battle of `skirmish_mix`."""


def held_out_results(study: Study, made: Made) -> Rows:
    """What each script of red wins against blue policies that are kept for evaluations."""
    rows = list[dict[str, Any]]()
    for entry, run, log in made.each(study.entries):
        duel, cost = study.places[entry.place], {"decisions": int(log[-1]["steps"]), "cpu_s": log[-1]["cpu_s"]}
        for script in ("random", *registry.make_game(duel.env_id, **duel.keywords)[0].scripts):
            won = share(duel.env_id, script, str(run.folder / WEIGHTS), **duel.keywords)
            rows.append({"battle": entry.place, **cost, "red": script, **won})
            print(entry.place, script, won["won"], flush=True)
    return rows


# ---------------------------------------------------------------------------------------------------------- adversaries


@dataclass(frozen=True)
class Attack:
    """An adversary of a policy of the package.

    Attributes:
        env_id: Where they play.
        policy: Name of the weights that it attacks; they play the first team.
        player: Who plays the other decisions of the second team.
        adverse: Name of the weights of the adversary's policy.
        about: What the policy of the adversary is.
        options: Keywords of the game, ``name=value`` each.
    """

    env_id: str
    policy: str
    player: str
    adverse: str
    about: str
    options: tuple[str, ...] = field(default=())


PONG, TWO_KINDS = "fm3q_team_pong", MIX[0].weights
ATTACKS: tuple[tuple[str, Attack], ...] = (
    *(("TeamPong", Attack("palaestra/TeamPong-v0", PONG, player, PONG, ITSELF)) for player in ("chaser", "tracker")),
    ("Skirmish-2s3z", Attack(duel_of("2s3z").env_id, TWO_KINDS, "nearest", TWO_KINDS, ITSELF, ("map=2s3z",))),
    *(
        (
            f"Skirmish-{entry.place}",
            Attack(
                policy=entry.weights,
                player="nearest",
                adverse=held_out_weights(entry),
                about=HELD_OUT_POLICY,
                env_id=duel_of(entry.place).env_id,
                options=duel_of(entry.place).options,
            ),
        )
        for entry in MIX[:2]
    ),
)
"""Place and adversary."""


def adversary(args: FigureArgs) -> None:
    """Share of matches that policies of the package win by the share of an adversary's decisions."""
    rows = list[dict[str, Any]]()
    for place, attack in ATTACKS:
        policy, adverse = (args.assets / "weights" / f"{name}.safetensors" for name in (attack.policy, attack.adverse))
        if not adverse.exists():
            print(f"{place}: no {adverse.name} yet: python benchmarks/learn.py held_out_policy makes it", flush=True)
            continue
        about = {"place": place, "player": attack.player, "policy": attack.about}
        for part in SHARES:
            opponent = Adversary(attack.player, str(adverse), part)
            won = share(attack.env_id, str(policy), opponent, **keywords(attack.options))
            rows.append({**about, "share": part, **won})
            print(*rows[-1].values(), flush=True)
    figures.write_rows(args.figures / "adversary_results.csv", rows)


SILENT: dict[str, Any] = {"lines": lambda *_: ()}
MATES_STUDY = Study(
    "mates",
    MATES,
    ARMS,
    {name: seat.place for name, seat in SEATS.items()},
    LEARNS,
    columns=("place", "learner"),
    results=mates_results,
    **SILENT,
)
HELD_OUT_STUDY = Study(
    "held_out_policy",
    HELD_OUT,
    BLUE,
    {entry.place: duel_of(entry.place) for entry in HELD_OUT},
    columns=("battle", "method"),
    results=held_out_results,
    **SILENT,
)
FIGURES = (HELD_OUT_STUDY, MATES_STUDY, Figure("adversary", adversary))
