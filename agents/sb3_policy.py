"""The policy of a model that Stable-Baselines3 trained; the library itself is not needed to play.

`cpoker_env.sb3.save_policy` writes it: dense layers as safetensors, the rest as JSON.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from cpoker_env.agents.checkpoint import load_kind, stamp_of
from cpoker_env.agents.dense import network_of

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import Rules
from cpoker_env.seats import Seats, look_at

KIND = "sb3"
PLAYABLE_FORMS = ("flat", "sequential", "candidates")
CHUNK = 4096
"""Hands decided at once."""


class SB3Policy:
    """Takes the most probable action that the mask allows, card by card in the sequential form.

    In the flat form every part of the action is the most probable one by itself, as there, so that
    rows can come out with a wrong number of cards.
    """

    def __init__(
        self, network: torch.nn.Module, rules: Rules, form: str, form_options: dict[str, Any]
    ) -> None:
        self.network = network
        self.rules = rules
        self.form = form
        self.form_options = form_options

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions."""
        parts = [self._act(batch, start) for start in range(0, len(batch), CHUNK)]
        if not parts:
            return Actions(np.zeros(0, np.int8), np.zeros((0, 13), np.int8))
        return Actions(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _act(self, batch: DecisionBatch, start: int) -> Actions:
        at = slice(start, start + CHUNK)
        part = DecisionBatch(
            batch.hands[at], batch.rules, batch.num_players, batch.seats[at],
            batch.naturals[at], batch.can_surrender[at], batch.seeds[at], batch.indices[at],
        )  # fmt: skip
        size = len(part)
        seats = Seats(batch.rules, batch.num_players, size, self.form, self.form_options)
        seats.begin(look_at(part))
        while not seats.is_done:
            observation = seats.observe()
            flat = [observation[key].reshape(size, -1) for key in sorted(observation)]
            inputs = torch.from_numpy(np.concatenate(flat, axis=1, dtype=np.float32))
            masks = seats.masks()
            with torch.inference_mode():
                scores = self.network(inputs).numpy().reshape(masks.shape)
            seats.step(seats.form.read(np.where(masks, scores, -np.inf).argmax(axis=-1)))
        return seats.actions


def policy_shape(
    rules: Rules, num_players: int, form: str, form_options: dict[str, Any]
) -> tuple[int, int]:
    """Inputs, a form's observations end to end, and outputs, scores of its actions, of a network.

    Raises:
        ConfigError: An unknown form or option.
    """
    seats = Seats(rules, num_players, 1, form, form_options)
    inputs = sum(int(np.prod(part.shape or ())) for part in seats.observation_space.spaces.values())
    actions: Any = seats.form.action_space
    return inputs, int(actions.nvec.sum() if hasattr(actions, "nvec") else actions.n)


def make_sb3(rules: Rules, num_players: int = 2, argument: str = "") -> SB3Policy:
    """The policy that `save_policy` wrote to the path `argument`.

    Raises:
        CheckpointError: None given, it cannot be read, is of another kind, of other rules, of
            another number of seats where the observations tell them, or does not fit itself.
    """
    if not argument:
        raise CheckpointError("sb3 without a name: write sb3:PATH, of cpoker_env.sb3.save_policy")
    if argument.endswith(".zip"):
        raise CheckpointError(
            f"sb3:{argument}: a .zip holds pickles, which are not read; write the model with "
            "cpoker_env.sb3.save_policy(model, PATH) and play sb3:PATH"
        )
    return load_dense(KIND, rules, num_players, argument)


def load_dense(kind: str, rules: Rules, num_players: int, name: str) -> SB3Policy:
    """The policy of a checkpoint of dense layers, of this kind and these rules.

    Raises:
        CheckpointError: As `make_sb3`.
    """
    return _load(kind, rules, num_players, name, stamp_of(name))


@lru_cache(maxsize=16)
def _load(kind: str, rules: Rules, num_players: int, name: str, stamp: str | None) -> SB3Policy:
    stored = load_kind(name, kind, rules)
    config = stored.config
    try:
        form, options = str(config["form"]), dict(config["form_options"])
        if form not in PLAYABLE_FORMS:
            raise ValueError(f"form {form!r}")
        if rules.topology != "all_pairs" and config["num_players"] != num_players:
            raise CheckpointError(
                f"{kind}:{name} learned with {config['num_players']} players, which it sees under "
                f"the rules {rules.name}: play it with as many, not {num_players}"
            )
        network = network_of(stored.weights, config["num_layers"], config["activation"])
        inputs, outputs = policy_shape(rules, num_players, form, options)
        with torch.inference_mode():
            num_scores = network(torch.zeros(1, inputs)).shape[1]
        if num_scores != outputs:
            raise ValueError(f"{num_scores} outputs for the {outputs} choices of {form!r}")
    except (KeyError, TypeError, ValueError, RuntimeError, ConfigError) as error:
        raise CheckpointError(f"{kind}:{name} does not fit its network: {error}") from None
    return SB3Policy(network, rules, form, options)
