"""13-card Chinese Poker for computer play: exact rules, environments, agents.

    >>> import gymnasium as gym, cpoker_env
    >>> env = gym.make("ChinesePoker-v0", rules="mandarin", num_players=4)

Names below load on first use, so that the import is quick and torch stays out of it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register, registry

if TYPE_CHECKING:
    from cpoker_env.cards import format_card, format_cards, parse_card, parse_cards, parse_hand
    from cpoker_env.errors import CPokerError
    from cpoker_env.policy import (
        Actions,
        DecisionBatch,
        Policy,
        decisions_for,
        make_policy,
        register_policy,
    )
    from cpoker_env.rules import PRESETS, Rules
    from cpoker_env.scoring import Pairing, Showdown, settle_showdown

__version__ = "0.1.0"

_HOME = {
    "format_card": "cards",
    "format_cards": "cards",
    "parse_card": "cards",
    "parse_cards": "cards",
    "parse_hand": "cards",
    "CPokerError": "errors",
    "Actions": "policy",
    "DecisionBatch": "policy",
    "Policy": "policy",
    "decisions_for": "policy",
    "make_policy": "policy",
    "register_policy": "policy",
    "PRESETS": "rules",
    "Rules": "rules",
    "Pairing": "scoring",
    "Showdown": "scoring",
    "settle_showdown": "scoring",
}

__all__ = [
    "PRESETS",
    "Actions",
    "CPokerError",
    "DecisionBatch",
    "Pairing",
    "Policy",
    "Rules",
    "Showdown",
    "decisions_for",
    "format_card",
    "format_cards",
    "make_policy",
    "parse_card",
    "parse_cards",
    "parse_hand",
    "register_policy",
    "settle_showdown",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"cpoker_env.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


_ENVIRONMENTS = {
    "ChinesePoker-v0": {},
    "ChinesePokerFlat-v0": {"form": "flat"},
    "ChinesePokerSequential-v0": {"form": "sequential"},
    "ChinesePokerCandidates-v0": {"form": "candidates"},
}
for _id, _kwargs in _ENVIRONMENTS.items():
    if _id not in registry:
        register(
            id=_id,
            entry_point="cpoker_env.env:ChinesePokerEnv",
            vector_entry_point="cpoker_env.vector:ChinesePokerVectorEnv",
            kwargs=_kwargs,
            order_enforce=False,  # the environments say themselves what is missing, and faster
        )
if "ChinesePokerSession-v0" not in registry:
    register(id="ChinesePokerSession-v0", entry_point="cpoker_env.session:ChinesePokerSessionEnv")
