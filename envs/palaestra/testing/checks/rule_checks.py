"""Rules that hold in every decision: what the random walk has found."""

from __future__ import annotations

import numpy as np

from palaestra.core.contract.fields import checked_bounds
from palaestra.testing.harness import PRESET, Skipped, conformance, require
from palaestra.testing.pay_record import VARIANTS
from palaestra.testing.random_walk import random_walk, report_on
from palaestra.testing.subject import Subject


@conformance(order=601, levels=PRESET)
def observations_are_in_spaces(subject: Subject) -> None:
    """Every field of every agent, team and lane stays within its table, last observations of matches included."""
    for table in (
        *(r.observation for r in subject.game.roles),
        subject.game.team_observation,
        subject.game.lane_observation,
    ):
        for f in table:
            low, high = checked_bounds(f)
            bounded = np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all() and (low < high).any()
            text = f"[{low.min():g}, {high.max():g}]"
            require(bool(bounded), f"observation {f.name} has the bounds {text}: give finite ones, low < high")
    report_on(subject, "observations")


@conformance(order=611)
def infos_are_in_their_bounds(subject: Subject) -> None:
    """Every field of the info stays within its table, the last infos of matches included."""
    if not subject.game.info:
        raise Skipped("the game has no info of its own")
    report_on(subject, "infos")


@conformance(order=612)
def no_reward_after_leaving(subject: Subject) -> None:
    """Where agents have rewards of their own, one that has left gets 0: PettingZoo shows it no reward any more."""
    if subject.game.reward != "agent":
        raise Skipped("members of a team are paid together, dead or alive")
    report_on(subject, "late pay")


@conformance(order=602)
def rewards_are_finite(subject: Subject) -> None:
    """No reward is infinite or NaN."""
    report_on(subject, "finite rewards")


@conformance(order=603)
def team_rewards_are_equal(subject: Subject) -> None:
    """All members of a team have bitwise the same reward, dead or alive."""
    report_on(subject, "equal rewards")


@conformance(order=604)
def zero_sum_is_exact(subject: Subject) -> None:
    """In a game declared zero-sum, the two team rewards add up to exactly 0 in every step."""
    report_on(subject, "zero sum")


@conformance(order=605)
def masks_allow_an_action(subject: Subject) -> None:
    """Masks and lists of candidates are well formed and allow a choice; agents that do not act have the no-op alone."""
    report_on(subject, "masks")


@conformance(order=606)
def legal_actions_are_accepted(subject: Subject) -> None:
    """Nothing that a mask allows is counted as illegal, whether a random player or a script chose it."""
    report_on(subject, "legal counts")


@conformance(order=607)
def end_reasons_are_valid(subject: Subject) -> None:
    """Every end has a reason of its kind, of a rule or of a truncation; running matches have none."""
    report_on(subject, "reasons")


@conformance(order=608)
def dead_agents_stay_dead(subject: Subject) -> None:
    """An agent that leaves is flagged in that step and in no other, does not act any more, and does not come back."""
    report_on(subject, "deaths")


@conformance(order=609)
def reset_fields_are_constant(subject: Subject) -> None:
    """Observation fields written at reset alone keep their values to the end of the match."""
    tables = [*(r.observation for r in subject.game.roles), subject.game.team_observation]
    if not any(f.at == "reset" for table in (*tables, subject.game.lane_observation) for f in table):
        raise Skipped("all observations may change in every decision")
    report_on(subject, "fixed")


@conformance(order=610)
def unused_slots_are_inactive(subject: Subject) -> None:
    """Slots of the kernel's memory beyond the agents are never alive, never act and get no reward."""
    if subject.game.slots == len(subject.game.agents):
        raise Skipped("every slot is an agent")
    report_on(subject, "hidden slots")


@conformance(order=613)
def winners_match_rewards(subject: Subject) -> None:
    """In a game declared zero-sum, the winner is the team that gains: by the last decision, or by the whole match."""
    if not subject.game.zero_sum:
        raise Skipped("rewards do not determine the winner: the game is not zero-sum")
    report_on(subject, "winners")


@conformance(order=614)
def arriving_agents_act(subject: Subject) -> None:
    """An agent that arrives during matches is asked for actions, if its teammates are."""
    report_on(subject, "newcomers")


@conformance(order=615)
def rewards_are_immediate(subject: Subject) -> None:
    """A decision is paid for in its own step: no reward follows from what the record showed one decision before."""
    if subject.is_engine_game:
        raise Skipped("another engine moves the bodies: a record does not determine their motion")
    pay = random_walk(subject).pay
    for payee in pay.suspects():
        probe = subject.batch(VARIANTS, autoreset_mode="off")
        settled = pay.is_settled(payee, probe, subject.draw.seeds("seeds", VARIANTS))
        require(
            not settled,
            f"{pay.names[payee]}: all rewards follow from {pay.entry(payee)} of the decision before, whatever is done "
            "and drawn now: they are paid one decision late (if the game means that, leave this check out by "
            "skip=['rewards_are_immediate'])",
        )
    report_on(subject)
