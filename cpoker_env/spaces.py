"""What a learner sees, laid out once for every form of the environment, a batch at a time."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cpoker_env import kernels
from cpoker_env.cards import HAND_SIZE, NUM_CARDS
from cpoker_env.rules import NUM_PATTERNS, Rules

MAX_STACK = 1_000_000.0
"""Bound of a stack in units, in either direction."""


def observation_space(rules: Rules, num_players: int, has_stacks: bool = False) -> spaces.Dict:
    """Space of what one seat sees; see the table in `ChinesePokerEnv`."""
    parts: dict[str, spaces.Space[Any]] = {
        "cards": spaces.Box(0, NUM_CARDS - 1, (HAND_SIZE,), np.int8),
        "hand": spaces.MultiBinary(NUM_CARDS),
        "naturals": spaces.MultiBinary(NUM_PATTERNS),
    }
    if rules.topology == "banker":
        parts["bank"] = spaces.MultiBinary(num_players)
    if has_stacks:
        parts["stacks"] = spaces.Box(-MAX_STACK, MAX_STACK, (num_players,), np.float32)
    return spaces.Dict(parts)


def observe(
    hands: npt.NDArray[np.int8],
    bits: npt.NDArray[np.int16],
    rules: Rules,
    num_players: int,
    seat: int = 0,
) -> dict[str, npt.NDArray[Any]]:
    """Observations of one seat at B tables, new arrays each time.

    Args:
        hands: (B, N, 13) int8 of all seats, each highest first.
        bits: (B, N) int16, bit sets of the naturals held.
        rules: Decide whether there is a bank to see.
        num_players: Seats at each table.
        seat: The seat that sees them; the bank is told from there.
    """
    size = len(hands)
    cards = np.empty((size, HAND_SIZE), np.int8)
    held = np.empty((size, NUM_CARDS), np.int8)
    patterns = np.empty((size, NUM_PATTERNS), np.int8)
    kernels.see_into(hands, bits, seat, cards, held, patterns)
    observation = {"cards": cards, "hand": held, "naturals": patterns}
    if rules.topology == "banker":
        bank = np.zeros((size, num_players), np.int8)
        bank[:, ((rules.banker or 0) - seat) % num_players] = 1
        observation["bank"] = bank
    return observation
