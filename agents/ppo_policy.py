"""The policy that PPO learns: the likeliest way to place a hand's cards."""

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.checkpoint import Checkpoint, load_kind, shipped_for
from cpoker_env.agents.placement import (
    DECLARES,
    SURRENDERS,
    Choices,
    PlacementNetwork,
    decode,
    list_choices,
)

from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER

CHUNK = 2048
"""Hands whose choices are listed at once."""
SCORED = 64
"""Hands scored at once, few enough for the processor's caches."""


class PlacementPolicy:
    """Plays the choice its network scores highest; it never fouls, as no choice does."""

    def __init__(self, network: PlacementNetwork, rules: Rules) -> None:
        self.network = network
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        actions = Actions(
            np.full(len(batch), SHOW, np.int8), np.empty((len(batch), HAND_SIZE), np.int8)
        )
        for at in range(0, len(batch), CHUNK):
            part = np.arange(at, min(at + CHUNK, len(batch)))
            choices = list_choices(take(batch, part))
            scores = self.scores(choices)
            best = best_choices(choices, scores)
            actions.declarations[part[choices.kinds[best] == SURRENDERS]] = SURRENDER
            actions.declarations[part[choices.kinds[best] == DECLARES]] = DECLARE
            # A hand that declares still says what it would show.
            shown = best_choices(choices, np.where(choices.kinds > 0, -np.inf, scores))
            actions.rows[part] = decode(choices.codes[shown])
        return actions

    @torch.inference_mode()
    def scores(self, choices: Choices) -> npt.NDArray[np.float32]:
        """(T,) scores of choices."""
        found = np.empty(len(choices.codes), np.float32)
        rows, device = self.network.row_vectors(), self.network.heads.weight.device
        hand_of = choices.hand_of
        for at in range(0, len(choices), SCORED):
            hands = slice(at, at + SCORED)
            part = slice(choices.starts[at], choices.starts[min(at + SCORED, len(choices))])
            arrays = (
                choices.features[hands], hand_of[part] - at, choices.strengths[part],
                choices.kinds[part],
            )  # fmt: skip
            scores, _ = self.network(*(torch.from_numpy(a).to(device) for a in arrays), rows)
            found[part] = scores.cpu().numpy()
        return found


def best_choices(choices: Choices, scores: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """(H,) index of each hand's best choice, the first of equals."""
    top = np.maximum.reduceat(scores, choices.starts[:-1])
    wins = np.flatnonzero(scores == top[choices.hand_of])
    _, first = np.unique(choices.hand_of[wins], return_index=True)
    best: npt.NDArray[np.int64] = wins[first]
    return best


def take(batch: DecisionBatch, where: npt.NDArray[np.integer]) -> DecisionBatch:
    """Copies of some decisions."""
    return DecisionBatch(
        batch.hands[where], batch.rules, batch.num_players, batch.seats[where],
        batch.naturals[where], batch.can_surrender[where], batch.seeds[where],
        batch.indices[where],
    )  # fmt: skip


def policy_of(stored: Checkpoint, rules: Rules) -> PlacementPolicy:
    """The policy of a checkpoint of kind "ppo".

    Raises:
        CheckpointError: Its tensors do not fit the network that its settings name.
    """
    try:
        width, hand_width = int(stored.config["width"]), int(stored.config["hand_width"])
        network = PlacementNetwork(rules, width, hand_width)
        network.load_state_dict(stored.weights)
        if not all(weights.isfinite().all() for weights in network.state_dict().values()):
            raise ValueError("a weight is no number")
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise CheckpointError(
            f"checkpoint {stored.name!r} does not fit this network: {error}"
        ) from None
    return PlacementPolicy(network.eval(), rules)


def make_ppo(rules: Rules, num_players: int = 2, argument: str = "") -> PlacementPolicy:
    """The policy of a stored run of PPO, `argument` being its path or shipped name.

    Without one, what ships for these rules.

    Raises:
        CheckpointError: None ships, or it cannot be read, or is of other rules or no run of PPO.
    """
    name = argument or shipped_for("ppo", rules, num_players)
    return policy_of(load_kind(name, "ppo", rules), rules)
