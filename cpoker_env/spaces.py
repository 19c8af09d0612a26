"""Spaces, observations and masks, laid out once for every form of the environment."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

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


def action_space() -> spaces.Dict:
    """Declaration and placement."""
    return spaces.Dict(
        {
            "declaration": spaces.Discrete(3),
            "placement": spaces.MultiDiscrete(np.full(HAND_SIZE, 3)),
        }
    )


def observe(
    hand: npt.NDArray[np.int8], bits: int, rules: Rules, num_players: int, seat: int = 0
) -> dict[str, Any]:
    """Observation of one seat, new arrays each time."""
    held = np.zeros(NUM_CARDS, np.int8)
    held[hand] = 1
    observation: dict[str, Any] = {
        "cards": hand.copy(),
        "hand": held,
        "naturals": (bits >> np.arange(NUM_PATTERNS) & 1).astype(np.int8),
    }
    if rules.topology == "banker":
        bank = np.zeros(num_players, np.int8)
        bank[((rules.banker or 0) - seat) % num_players] = 1
        observation["bank"] = bank
    return observation


def action_mask(can_surrender: bool, has_natural: bool) -> dict[str, Any]:
    """int8 mask in the form `action_space().sample(mask=...)` takes.

    A placement cannot say "five cards a row" card by card, so its mask is all ones.
    """
    declaration = np.array([1, can_surrender, has_natural], np.int8)
    return {
        "declaration": declaration,
        "placement": tuple(np.ones(3, np.int8) for _ in range(HAND_SIZE)),
    }
