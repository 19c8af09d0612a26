"""Tables of `equilibrium` fitted in seconds to a small population, for tests."""

from functools import cache

import torch
from cpoker_env.agents.chances import side_of
from cpoker_env.agents.equilibrium import Equilibrium
from cpoker_env.agents.population import Population, draw_hands, gather, sides_of
from cpoker_env.train import tables
from cpoker_env.train.exploitability import play_hands

from cpoker_env.policy import make_policy
from cpoker_env.rules import Rules

CONFIG = tables.Config(hands=2500, knots=8)


@cache
def crowd(preset: str) -> Population:
    """Hands as `balanced` plays them."""
    rules = Rules.preset(preset)
    hands = draw_hands(3, 20_000)
    sides = sides_of(rules, len(hands))
    plays = play_hands(make_policy("balanced", rules), hands, sides, rules, 2, 2)
    return gather(hands, plays, sides)


@cache
def tensors(preset: str) -> dict[str, torch.Tensor]:
    """What a fit to them stores."""
    return tables.fit(crowd(preset), Rules.preset(preset), CONFIG)


def equilibrium(preset: str) -> Equilibrium:
    """The policy of these tables."""
    arrays = {name: tensor.numpy() for name, tensor in tensors(preset).items()}
    return Equilibrium(Rules.preset(preset), {0: side_of(arrays, 0, "small")})
