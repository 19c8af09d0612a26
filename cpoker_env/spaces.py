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

_PATTERN_BITS = (np.arange(1 << NUM_PATTERNS)[:, None] >> np.arange(NUM_PATTERNS) & 1).astype(
    np.int8
)


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
        hands: (B, 13) int8, each highest first.
        bits: (B,) int16, bit sets of the naturals held.
        rules: Decide whether there is a bank to see.
        num_players: Seats at each table.
        seat: The seat that sees them; the bank is told from there.
    """
    size = len(hands)
    held = np.zeros((size, NUM_CARDS), np.int8)
    kernels.hand_bits_into(hands, held)
    observation = {"cards": hands.copy(), "hand": held, "naturals": _PATTERN_BITS[bits]}
    if rules.topology == "banker":
        bank = np.zeros((size, num_players), np.int8)
        bank[:, ((rules.banker or 0) - seat) % num_players] = 1
        observation["bank"] = bank
    return observation
