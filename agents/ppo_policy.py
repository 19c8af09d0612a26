"""The policy that PPO learns: it places a card at a time, the likeliest row each time."""

import numpy as np
import numpy.typing as npt
import torch
from cpoker_env.agents.checkpoint import Checkpoint, load_kind, shipped_for
from cpoker_env.agents.placement import PlacementNetwork, room_index, see_hands

from cpoker_env import kernels
from cpoker_env.arrangements import ROW_SIZES, evaluate
from cpoker_env.cards import HAND_SIZE
from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER
from cpoker_env.tables import tables_for

CHUNK = 2048
"""Hands placed at once."""
_ROOM = np.array(ROW_SIZES, np.int8)


class PlacementPolicy:
    """Plays what its network prefers at every step, and never fouls.

    Rows are limited by their room alone; the few hands that foul so are placed again with rows
    limited to those a legal arrangement can follow, the mask "legal" of the environment.
    """

    def __init__(self, network: PlacementNetwork, rules: Rules) -> None:
        self.network = network
        self.rules = rules

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        parts = [
            self._place(take(batch, np.arange(at, min(at + CHUNK, len(batch)))))
            for at in range(0, len(batch), CHUNK)
        ]
        return Actions(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _place(self, batch: DecisionBatch) -> Actions:
        cards, features = see_hands(batch)
        actions = self._walk(batch, cards, features, only_legal=False)
        _, is_legal = evaluate(batch.hands, actions.rows, self.rules)
        fouls = np.flatnonzero(~is_legal)
        if len(fouls):
            again = self._walk(take(batch, fouls), cards[fouls], features[fouls], only_legal=True)
            actions.rows[fouls] = again.rows
        return actions

    @torch.inference_mode()
    def _walk(
        self, batch: DecisionBatch, cards: npt.NDArray[np.int64],
        features: npt.NDArray[np.float32], only_legal: bool,
    ) -> Actions:  # fmt: skip
        network, size = self.network, len(batch)
        everyone = np.arange(size)
        actions = Actions(np.full(size, SHOW, np.int8), np.full((size, HAND_SIZE), 3, np.int8))
        room = np.tile(_ROOM, (size, 1))
        laid = network.hand_tower(torch.from_numpy(features))
        for step in range(HAND_SIZE):
            card = torch.from_numpy(cards[:, step])
            preferences, _ = network.step(laid, card, torch.from_numpy(room_index(room)))
            liked = preferences.float().numpy()
            open_rows = room > 0
            if only_legal:
                open_rows = self._open_rows(batch, actions.rows, step)
            row = np.where(open_rows, liked[:, :3], -np.inf).argmax(axis=1)
            if step == 0:
                best = liked[everyone, row]
                for offered, place in (
                    (batch.can_surrender, SURRENDER + 2), (batch.naturals >= 0, DECLARE + 2),
                ):  # fmt: skip
                    wins = offered & (liked[:, place] > best)
                    actions.declarations[wins] = place - 2
                    best = np.where(wins, liked[:, place], best)
            actions.rows[:, step] = row
            room[everyone, row] -= 1
            laid = network.lay(laid, card, torch.from_numpy(row))
        return actions

    def _open_rows(
        self, batch: DecisionBatch, rows: npt.NDArray[np.int8], step: int
    ) -> npt.NDArray[np.bool_]:
        reachable = np.empty((len(batch), 3), np.int8)
        tables = tables_for(self.rules)
        kernels.reachable_rows_into(
            batch.hands, rows, np.full(len(batch), step, np.int64), tables.rows, tables.splits,
            self.rules.packed, reachable,
        )  # fmt: skip
        return reachable > 0


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
        network = PlacementNetwork(int(stored.config["width"]), int(stored.config["hand_width"]))
        network.load_state_dict(stored.weights)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
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
