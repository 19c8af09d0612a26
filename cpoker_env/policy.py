"""What decides: the batched Policy protocol, the decisions it sees, the registry of names.

A policy is anything with ``act(batch, rng) -> Actions``. Names map to import strings that load on
first use, so the environments never import the agents, nor torch.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import IntArray, check_hands
from cpoker_env.errors import PolicyError
from cpoker_env.naturals import natural_bits
from cpoker_env.rules import Rules


class Actions(NamedTuple):
    """What B seats do.

    declarations: (B,) int8, 0 show, 1 surrender, 2 declare the best natural.
    rows: (B, 13) int8, row (0 front, 1 middle, 2 back) of each card, highest card first; what a
        seat shows if its declaration is not available.
    """

    declarations: npt.NDArray[np.int8]
    rows: npt.NDArray[np.int8]


@dataclass(slots=True, eq=False)
class DecisionBatch:
    """B decisions, each seen from its own seat only.

    hands: (B, 13) int8 cards, highest first.
    rules: the house rules, the same for the batch.
    num_players: seats at each table.
    seats: (B,) int8, the seat that decides.
    naturals: (B,) int8, best natural it may declare as an index into PATTERNS, -1 for none.
    can_surrender: (B,) bool.
    seeds, indices: (B,) uint64, the names of the deals; with the seat they name a random stream
        that is the same however decisions are batched.
    """

    hands: npt.NDArray[np.int8]
    rules: Rules
    num_players: int
    seats: npt.NDArray[np.int8]
    naturals: npt.NDArray[np.int8]
    can_surrender: npt.NDArray[np.bool_]
    seeds: npt.NDArray[np.uint64]
    indices: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.hands)

    @property
    def bank(self) -> npt.NDArray[np.int8]:
        """(B,) int8: 1 where the deciding seat is the bank, -1 where another seat is, else 0."""
        if self.rules.banker is None:
            return np.zeros(len(self), np.int8)
        return np.where(self.seats == self.rules.banker, 1, -1).astype(np.int8)


@runtime_checkable
class Policy(Protocol):
    """Maps decisions to actions, a batch at a time, also when the batch is one."""

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions; `rng` for chance beyond the batch's own streams."""


def decisions_for(
    hands: IntArray,
    rules: Rules,
    num_players: int = 2,
    seats: Sequence[int] | IntArray | None = None,
    seed: int = 0,
) -> DecisionBatch:
    """Decisions for bare hands, as when asking a policy how to set them.

    Decisions of the same seed have the same random streams, in every call: name another seed for
    other draws.

    Args:
        hands: (B, 13) cards in any order; the decisions have each highest first.
        rules: The house rules.
        num_players: Seats at each table, 2-4.
        seats: (B,) the deciding seats; None for seat 0.
        seed: Names the random streams, one a hand.

    Raises:
        CardError: Not B hands of 13 different cards.
        PolicyError: Not 2-4 players.
    """
    if isinstance(num_players, bool) or num_players not in (2, 3, 4):
        raise PolicyError(f"num_players {num_players!r}: a table has 2 to 4")
    rules = Rules.of(rules)
    checked = check_hands(hands)
    _, best = natural_bits(checked, rules)
    size = len(checked)
    deciding = np.zeros(size, np.int8) if seats is None else np.asarray(seats)
    is_whole = deciding.shape == (size,) and deciding.dtype.kind in "iu"
    if not is_whole or not is_within(deciding, num_players - 1):
        raise PolicyError(f"seats {seats!r}: give {size} whole numbers 0..{num_players - 1}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise PolicyError(f"seed {seed!r}: give a whole number 0..2**64 - 1")
    return DecisionBatch(
        checked,
        rules,
        num_players,
        deciding.astype(np.int8),
        best,
        np.full(size, rules.surrender_allowed),
        np.full(size, seed, np.uint64),
        np.arange(size, dtype=np.uint64),
    )


def check_actions(actions: Any, batch: DecisionBatch, name: str = "policy") -> Actions:
    """Actions with the right shapes and ranges.

    Raises:
        PolicyError: Not (B,) declarations 0..2 and (B, 13) rows 0..2.
    """
    try:
        declarations, rows = actions
        declarations, rows = np.asarray(declarations), np.asarray(rows)
    except (TypeError, ValueError):
        raise PolicyError(
            f"{name} answered {type(actions).__name__}: act returns Actions(declarations, rows)"
        ) from None
    size = len(batch)
    if declarations.shape != (size,) or rows.shape != (size, 13):
        raise PolicyError(
            f"{name} answered shapes {declarations.shape} and {rows.shape}: "
            f"return ({size},) and ({size}, 13)"
        )
    for what, part in (("declarations", declarations), ("rows", rows)):
        if part.dtype.kind not in "iu" or not is_within(part, 2):
            raise PolicyError(f"{name} answered {what} outside integers 0..2")
    return Actions(declarations.astype(np.int8, copy=False), rows.astype(np.int8, copy=False))


def is_within(values: IntArray, high: int) -> bool:
    """Whether integers are all in 0..high."""
    if values.size == 1:  # a single decision, where calling a kernel takes longest
        return bool(0 <= values.item() <= high)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return bool(kernels.is_within(values.ravel(), high))


Factory = Callable[..., Policy]
_REGISTRY: dict[str, str | Factory] = {
    "uniform": "cpoker_env.agents.heuristics:Uniform",
    "greedy": "cpoker_env.agents.heuristics:Greedy",
    "product": "cpoker_env.agents.heuristics:Product",
    "balanced": "cpoker_env.agents.balanced:make_balanced",
    "equilibrium": "cpoker_env.agents.equilibrium:make_equilibrium",
    "search": "cpoker_env.agents.search:make_search",
    "neural": "cpoker_env.agents.neural:make_neural",
    "ppo": "cpoker_env.agents.ppo_policy:make_ppo",
    "checkpoint": "cpoker_env.agents.stored:make_stored",
    "sb3": "cpoker_env.agents.sb3_policy:make_sb3",
    "rllib": "cpoker_env.agents.rllib_policy:make_rllib",
    "external": "cpoker_env.agents.external:External",
}
_ARGUMENTS = {
    **dict.fromkeys(("checkpoint", "sb3", "rllib"), ":PATH"), "external": ":COMMAND"
}  # fmt: skip
"""What follows names that mean nothing alone, in messages."""


def register_policy(name: str, factory: str | Factory, overwrite: bool = False) -> None:
    """Make `make_policy(name)` call `factory`, an import string "module:callable" or a callable.

    The factory is called as ``factory(rules=..., num_players=..., **options)``; a name used as
    ``"name:ARGUMENT"`` passes ``argument="ARGUMENT"`` too.

    Raises:
        PolicyError: A name that is empty or holds a colon or a comma, or is taken by something
            else.
    """
    if not name or any(mark in name for mark in ":,"):
        raise PolicyError(f"policy name {name!r}: use a word without ':' or ','")
    if not isinstance(factory, str) and not callable(factory):
        raise PolicyError(f"policy {name!r}: {factory!r} is no factory(rules=..., num_players=...)")
    if not overwrite and _REGISTRY.get(name, factory) != factory:
        raise PolicyError(f"policy name {name!r} is taken: choose another, or overwrite=True")
    _REGISTRY[name] = factory


def policy_names() -> tuple[str, ...]:
    """Names `make_policy` knows."""
    return tuple(_REGISTRY)


def policy_factory(name: str) -> str | Factory:
    """What makes policies of a name: an import string or a callable.

    Raises:
        PolicyError: Unknown name.
    """
    word = str(name).partition(":")[0]
    if word not in _REGISTRY:
        known = ", ".join(word + _ARGUMENTS.get(word, "") for word in _REGISTRY)
        raise PolicyError(f"policy {name!r}: the policies are {known}")
    return _REGISTRY[word]


def make_policy(
    name: str, rules: Rules | str = "mandarin", num_players: int = 2, **options: Any
) -> Policy:
    """A policy by name: "uniform", "greedy", "product", "balanced", "equilibrium",
    "search", "neural", "ppo", "checkpoint:PATH-OR-NAME", "sb3:PATH", "rllib:PATH",
    "external:COMMAND" or one that was registered.

    Args:
        name: The name, with an argument after a colon where the policy takes one.
        rules: House rules, or a preset's name.
        num_players: Seats at the table, 2-4.
        **options: Passed to the factory.

    Raises:
        PolicyError: Unknown name, options the policy does not take, or a COMMAND that cannot run.
        RulesError: Unknown preset.
        CheckpointError: A checkpoint that cannot be used.
    """
    _, colon, argument = str(name).partition(":")
    factory = policy_factory(name)
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(importlib.import_module(module), attribute)
    if colon:
        options["argument"] = argument
    read = Rules.of(rules)
    try:
        return factory(rules=read, num_players=num_players, **options)
    except TypeError as error:
        raise PolicyError(
            f"policy {name!r}: {error}; a factory is called with rules=..., num_players=..."
        ) from error
