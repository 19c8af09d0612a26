"""The strongest agent: every option valued exactly against a stored population near equilibrium.

A hand meets the population's hands that share no card with its own, so it knows what its own cards
leave to the others; home runs aside, nothing is approximated but the population's size.
"""

from functools import lru_cache

import numpy as np
from cpoker_env.agents.accounts import OTHERS, PARTS, Account, account_of_plays
from cpoker_env.agents.checkpoint import Checkpoint, hash_of, load_kind, shipped_for
from cpoker_env.agents.options import Estimates, Option, choose, list_options
from cpoker_env.agents.population import (
    Plays,
    Population,
    draw_hands,
    gather,
    keys_of,
    opponents_of,
    respond,
    sides_of,
)

from cpoker_env import kernels
from cpoker_env.arrangements import IntArray
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import SHOW

CHUNK = 512
"""Hands answered at once."""
NUM_RELABELLINGS = 4
"""Times a hand meets the population, its suits renamed each time."""


class Search:
    """Plays the best response to a population."""

    def __init__(self, rules: Rules, population: Population) -> None:
        self.rules = rules
        self.population = population

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        actions = Actions(np.full(len(batch), SHOW, np.int8), np.empty((len(batch), 13), np.int8))
        for start in range(0, len(batch), CHUNK):
            part = slice(start, start + CHUNK)
            found = self._estimate(batch, part)
            best, actions.declarations[part] = choose(found)
            actions.rows[part] = found.options.rows[best]
        return actions

    def candidates(self, batch: DecisionBatch, k: int) -> list[list[Option]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        return list_options(*self.estimate(batch), batch.naturals, k)

    def estimate(self, batch: DecisionBatch) -> Estimates:
        """Units of every option of B decisions."""
        return self._estimate(batch, slice(None))

    def account(self, batch: DecisionBatch, found: Estimates, chosen: IntArray) -> Account:
        """Accounts of some candidates (N,) of what `estimate` found for these decisions."""
        size = len(chosen)
        account = Account(np.empty((size, 3)), np.empty((size, 2)), np.empty((size, len(PARTS))))
        hands = found.options.hand_index[chosen]
        plays = self.population.plays
        for h in np.unique(hands):
            mine = hands == h
            bank = int(batch.bank[h])
            met = opponents_of(batch.hands[h], self.population, bank, NUM_RELABELLINGS)
            shows = met[plays.status[met] == kernels.NORMAL]
            runs = self.population.runs
            part = account_of_plays(
                found.options.strengths[chosen[mine]], plays.strengths[shows], len(met), bank,
                self.rules, runs[shows] / 256 if runs.size else None,
            )  # fmt: skip
            part.parts[:, OTHERS] = found.values[chosen[mine]] - part.parts.sum(axis=1)
            for whole, counted in zip(account, part, strict=True):
                whole[mine] = counted
        return account

    def under(self, rules: Rules) -> "Search":
        """The best response to the same population under other rules."""
        return Search(rules, self.population)

    def _estimate(self, batch: DecisionBatch, part: slice) -> Estimates:
        found = respond(
            batch.hands[part], self.population, self.rules, batch.bank[part], NUM_RELABELLINGS
        ).mean()
        estimates = found.estimates(0, self.rules)
        estimates.surrender[~batch.can_surrender[part]] = np.nan
        estimates.declare[batch.naturals[part] < 0] = np.nan
        return estimates


def make_search(rules: Rules, num_players: int = 2, argument: str = "") -> Search:
    """The policy of a stored population, `argument` being its path or shipped name.

    Without one, the population that ships for these rules.

    Raises:
        CheckpointError: None ships, or it cannot be read, or is of other rules.
    """
    name = argument or shipped_for("search", rules, num_players)
    return Search(rules, _load(rules, name, hash_of(name)))


@lru_cache(maxsize=8)
def _load(rules: Rules, name: str, sha256: str | None) -> Population:
    """A stored population, once for each content of its file."""
    return population_of(load_kind(name, "population", rules))


def population_of(stored: Checkpoint) -> Population:
    """The population of a checkpoint, its hands dealt again from their seed.

    Raises:
        CheckpointError: Tensors or settings are missing, or are not of as many hands.
    """
    arrays = {name: tensor.numpy() for name, tensor in stored.weights.items()}
    try:
        seed, size = int(stored.config["seed"]), int(stored.config["hands"])
        strengths = np.ascontiguousarray(arrays["strengths"], np.int16)
        status, declared = arrays["status"].astype(np.int8), arrays["declared"].astype(np.int8)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoint {stored.name!r}: no population ({error})") from None
    runs = arrays.get("runs")
    each = [status, declared] if runs is None else [status, declared, runs]
    if strengths.shape != (size, 3) or any(part.shape != (size,) for part in each):
        raise CheckpointError(
            f"checkpoint {stored.name!r}: its tensors are not those of {size} hands"
        )
    hands = draw_hands(seed, size)
    plays = Plays(strengths, status, declared, keys_of(hands, declared, stored.rules))
    return gather(hands, plays, sides_of(stored.rules, size), runs)
