"""The policy of a trained value network."""

import numpy as np
from cpoker_env.agents.checkpoint import load_kind, shipped_for
from cpoker_env.agents.network import ValueNetwork, Valuer
from cpoker_env.agents.options import Estimates, Option, choose, list_options

from cpoker_env.arrangements import frontier
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import NUM_PATTERNS, Rules
from cpoker_env.scoring import SHOW

CHUNK = 512
"""Hands valued at once."""


class NeuralPolicy:
    """Plays the option its network values highest: an arrangement, a surrender or the natural."""

    def __init__(self, valuer: Valuer) -> None:
        self.rules = valuer.network.rules
        self.valuer = valuer

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

    def _estimate(self, batch: DecisionBatch, part: slice) -> Estimates:
        hands, naturals = batch.hands[part], batch.naturals[part]
        options = frontier(hands, self.rules)
        values, surrender = self.valuer.values(hands, batch.bank[part], options)
        may = batch.can_surrender[part] & self.rules.surrender_allowed
        return Estimates(
            options,
            values,
            np.where(may, surrender, np.nan),
            np.where(naturals >= 0, self.valuer.natural[naturals % NUM_PATTERNS], np.nan),
        )


def make_neural(rules: Rules, num_players: int = 2, argument: str = "") -> NeuralPolicy:
    """The policy of a trained network, `argument` being its path or shipped name.

    Without one, the network that ships for these rules and so many seats.

    Raises:
        CheckpointError: None ships, it cannot be read, is of another kind or other rules, or its
            tensors do not fit the network.
    """
    name = argument or shipped_for("neural", rules, num_players)
    stored = load_kind(name, "network", rules)
    try:
        seats = num_players if rules.topology == "pool" else 2
        network = ValueNetwork(rules, seats, int(stored.config["width"]))
        network.load_state_dict(stored.weights)
        network.check()
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise CheckpointError(f"checkpoint {name!r} does not fit its network: {error}") from None
    network.read_counts()
    return NeuralPolicy(Valuer(network))
