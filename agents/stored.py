"""Any stored agent, played as what it is."""

from collections.abc import Callable

from cpoker_env.agents.checkpoint import load_checkpoint
from cpoker_env.agents.equilibrium import make_equilibrium
from cpoker_env.agents.neural import make_neural
from cpoker_env.agents.ppo_policy import make_ppo
from cpoker_env.agents.rllib_policy import make_rllib
from cpoker_env.agents.sb3_policy import make_sb3
from cpoker_env.agents.search import make_search

from cpoker_env.errors import CheckpointError
from cpoker_env.policy import Policy
from cpoker_env.rules import Rules

KINDS: dict[str, Callable[[Rules, int, str], Policy]] = {
    "network": make_neural,
    "ppo": make_ppo,
    "population": make_search,
    "rllib": make_rllib,
    "sb3": make_sb3,
    "tables": make_equilibrium,
}
"""What makes a policy of each kind of checkpoint."""


def make_stored(rules: Rules, num_players: int = 2, argument: str = "") -> Policy:
    """The policy of a checkpoint, `argument` being its path or shipped name.

    Raises:
        CheckpointError: It cannot be read, is of other rules, or of a kind that is not known.
    """
    if not argument:
        raise CheckpointError("checkpoint without a name: write checkpoint:PATH-OR-NAME")
    kind = load_checkpoint(argument).config.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise CheckpointError(
            f"checkpoint {argument!r} is of kind {kind!r}: this version plays {', '.join(KINDS)}"
        )
    return KINDS[kind](rules, num_players, argument)
