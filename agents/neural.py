"""The policy of a trained value network."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.checkpoint import load_checkpoint
from cpoker_env.agents.network import ValueNetwork, hand_features
from cpoker_env.agents.options import Option, list_options
from cpoker_env.agents.ppo_policy import PlacementPolicy, policy_of

from cpoker_env.arrangements import Frontier, frontier
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.row_values import best_of
from cpoker_env.rules import NUM_PATTERNS, Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER

CHUNK = 512
"""Hands valued at once."""


class OptionValues(NamedTuple):
    """Expected units: of showing candidates (M,), of surrendering, of declaring each pattern."""

    candidates: npt.NDArray[np.float32]
    surrender: float
    natural: npt.NDArray[np.float32]


class NeuralPolicy:
    """Plays the option its network values highest: an arrangement, a surrender or the natural."""

    def __init__(self, network: ValueNetwork, rules: Rules) -> None:
        self.network = network
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        actions = Actions(np.full(len(batch), SHOW, np.int8), np.empty((len(batch), 13), np.int8))
        for start in range(0, len(batch), CHUNK):
            part = slice(start, start + CHUNK)
            options = frontier(batch.hands[part], self.rules)
            values = self.values(batch.hands[part], batch.bank[part], options)
            best = best_of(options, values.candidates)
            actions.rows[part] = options.rows[best]
            actions.declarations[part] = choose_declarations(
                values, values.candidates[best], batch.naturals[part], batch.can_surrender[part]
            )
        return actions

    def candidates(self, batch: DecisionBatch, k: int) -> list[list[Option]]:
        """Per hand its `k` best options as (label, rows or None, expected units)."""
        options = frontier(batch.hands, self.rules)
        values = self.values(batch.hands, batch.bank, options)
        natural = values.natural[np.clip(batch.naturals, 0, NUM_PATTERNS - 1)]
        return list_options(
            options,
            values.candidates,
            np.where(batch.can_surrender, values.surrender, np.nan),
            np.where(batch.naturals >= 0, natural, np.nan),
            batch.naturals,
            k,
        )

    def values(
        self, hands: npt.NDArray[np.int8], bank: npt.NDArray[np.int8], options: Frontier
    ) -> OptionValues:
        """Expected units of all options of hands."""
        with torch.inference_mode():
            found = self.network(
                torch.from_numpy(hand_features(hands, bank)),
                torch.from_numpy(options.hand_index),
                torch.from_numpy(options.strengths.astype(np.int64)),
            )
        return OptionValues(
            found.numpy(), self.network.surrender.item(), self.network.natural.numpy()
        )


def choose_declarations(
    values: OptionValues,
    shown: npt.NDArray[np.float32],
    naturals: npt.NDArray[np.int8],
    can_surrender: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]:
    """(B,) int8 declarations: what is worth more than showing, whose value is `shown` (B,)."""
    declarations = np.full(len(shown), SHOW, np.int8)
    declarations[can_surrender & (shown < values.surrender)] = SURRENDER
    best_other = np.where(can_surrender, np.maximum(shown, values.surrender), shown)
    worth = values.natural[np.clip(naturals, 0, NUM_PATTERNS - 1)]
    declarations[(naturals >= 0) & (worth >= best_other)] = DECLARE
    return declarations


def load_policy(
    rules: Rules, num_players: int = 2, argument: str = ""
) -> NeuralPolicy | PlacementPolicy:
    """The policy of a checkpoint of either learner, `argument` being its path or shipped name.

    Raises:
        CheckpointError: It cannot be read, was trained for other rules, or its tensors do not fit
            the network.
    """
    if not argument:
        raise CheckpointError("checkpoint without a name: write checkpoint:PATH-OR-NAME")
    stored = load_checkpoint(argument)
    if _strategic(stored.rules) != _strategic(rules):
        raise CheckpointError(
            f"checkpoint {argument!r} was trained for {stored.rules.name}, not {rules.name}: "
            "choose one of the same rules"
        )
    if stored.config.get("kind") == "ppo":
        return policy_of(stored, rules)
    network = ValueNetwork(rules, int(stored.config.get("width", 64)))
    try:
        network.load_state_dict(stored.weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"checkpoint {argument!r} does not fit this network: {error}"
        ) from None
    return NeuralPolicy(network.eval(), rules)


def _strategic(rules: Rules) -> dict[str, object]:
    """Options that change play; which seat is the bank does not, the network is told."""
    options = rules.to_dict()
    options["banker"] = options["banker"] is not None
    return options
