"""Other packages measured beside this one, in the same run and on the same work.

Each is imported when asked for; one that is missing, or that breaks, is reported as such.
"""

import importlib
import importlib.metadata
import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cpoker_env.train.adapter_costs import ADAPTERS, STEPPED, Stepped, dummy
from cpoker_env.train.costs import COSTS, SEED, Setup, drawn_rows, hands_of
from cpoker_env.train.timing import Timing, Work, measure

from cpoker_env.arrangements import evaluate
from cpoker_env.cards import Card, format_card
from cpoker_env.rules import Rules

Evaluator = tuple[Callable[[Card], Any], Callable[[list[Any]], int], int]
"""A card as the package takes it, the score of five, and 1 if higher is stronger, else -1."""
Play = Callable[[], None]
"""One complete game."""
BY_NAME = {cost.name: cost for cost in (*COSTS, *ADAPTERS)}
"""What peers are held against."""


@dataclass(frozen=True)
class Peer:
    """A package that does comparable work.

    name: of the row. pip: what to install. module: what must be importable. against: the cost of
    ours on the same work. make: from the draws of random choices, one to play or evaluate with.
    prepare: instead of `make`, what to time at a setup.
    """

    name: str
    pip: str
    module: str
    what: str
    against: str
    make: Callable[..., Any] | None = None
    prepare: Callable[[Setup], Work] | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the package can be found; it is not imported."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        """Of the installed distribution."""
        return importlib.metadata.version(self.pip.partition("[")[0])


def _phevaluator() -> Evaluator:
    module: Any = importlib.import_module("phevaluator")
    return int, lambda cards: module.evaluate_cards(*cards), -1


def _eval7() -> Evaluator:
    module: Any = importlib.import_module("eval7")
    return lambda card: module.Card(format_card(card)), module.evaluate, 1


def _treys() -> Evaluator:
    module: Any = importlib.import_module("treys")
    evaluator = module.Evaluator()
    return (
        lambda card: module.Card.new(format_card(card)),
        lambda cards: evaluator.evaluate([], cards),
        -1,
    )


def _pokerkit() -> Evaluator:
    module: Any = importlib.import_module("pokerkit")
    lookup = module.StandardLookup()
    return (
        lambda card: next(module.Card.parse(format_card(card))),
        lambda cards: lookup.get_entry(cards).index,
        1,
    )


def _rlcard(draws: Iterator[float]) -> Play:
    module: Any = importlib.import_module("rlcard")
    env = module.make("limit-holdem", config={"seed": SEED})

    def play() -> None:
        state, _ = env.reset()
        while not env.is_over():
            state, _ = env.step(_pick(list(state["legal_actions"]), draws))

    return play


def _open_spiel(draws: Iterator[float]) -> Play:
    module: Any = importlib.import_module("pyspiel")
    game = module.load_game("leduc_poker")

    def play() -> None:
        state = game.new_initial_state()
        while not state.is_terminal():
            # All cards that may come next are equally likely, so chance draws as players do.
            state.apply_action(_pick(state.legal_actions(), draws))

    return play


def _open_spiel_rl(draws: Iterator[float]) -> Play:
    module: Any = importlib.import_module("open_spiel.python.rl_environment")
    env = module.Environment("leduc_poker")
    env.seed(SEED)

    def play() -> None:
        step = env.reset()
        while not step.last():
            player = step.observations["current_player"]
            step = env.step([_pick(step.observations["legal_actions"][player], draws)])

    return play


def _pettingzoo(draws: Iterator[float]) -> Play:
    module: Any = importlib.import_module("pettingzoo.classic.texas_holdem_v4")
    env = module.env()
    env.reset(seed=SEED)

    def play() -> None:
        env.reset()
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            over = terminated or truncated
            env.step(
                None if over else _pick(np.flatnonzero(observation["action_mask"]).tolist(), draws)
            )

    return play


def _pick(legal: Sequence[int], draws: Iterator[float]) -> int:
    return legal[int(next(draws) * len(legal))]


def _dummy_peer(stepped: Stepped) -> Peer:
    """Stable-Baselines3's own way to step several of our environments."""
    return Peer(
        f"sb3-dummy-{stepped.key}", "stable-baselines3", "stable_baselines3",
        f"DummyVecEnv, {stepped.title}", f"sb3-{stepped.key}",
        prepare=partial(dummy, stepped),
    )  # fmt: skip


PEERS = (
    Peer("phevaluator", "phevaluator", "phevaluator", "five-card rows", "evaluate", _phevaluator),
    Peer("eval7", "eval7", "eval7", "five-card rows", "evaluate", _eval7),
    Peer("treys", "treys", "treys", "five-card rows", "evaluate", _treys),
    Peer("pokerkit", "pokerkit", "pokerkit", "five-card rows", "evaluate", _pokerkit),
    Peer("rlcard", "rlcard", "rlcard", "limit hold'em games", "scalar-uniform", _rlcard),
    Peer("open_spiel", "open_spiel", "pyspiel", "Leduc games, states", "scalar-uniform",
         _open_spiel),
    Peer("open_spiel-rl", "open_spiel", "pyspiel", "Leduc games, rl_environment",
         "scalar-uniform", _open_spiel_rl),
    Peer("pettingzoo", "pettingzoo[classic]", "pettingzoo", "limit hold'em games",
         "parallel", _pettingzoo),
    *map(_dummy_peer, STEPPED),
)  # fmt: skip


def compare(
    peers: Sequence[Peer], batch: int, repeats: int, seconds: float
) -> list[dict[str, Any]]:
    """A record of each peer, ours and theirs timed in turns.

    Evaluators get the same five cards as ours, converted beforehand, one call a row, which is all
    they offer; ours evaluates the batch in one call. Game libraries play whole games with random
    legal actions from one environment, as ours does through gym.make, beside PettingZoo through
    `parallel_env`. Adapters step the same environments with the same actions as the library does
    by itself.

    Args:
        peers: Which.
        batch: Hands whose middle and back rows are evaluated.
        repeats, seconds: As in `timing.measure`.

    Returns:
        Per peer its name, package, version, work and status: "missing", "failed" with an error, or
        "measured" with its time, ours, their ratio, and for evaluators whether both order all rows
        of the sample alike.
    """
    installed = [peer for peer in peers if peer.is_installed]
    ours = list(dict.fromkeys(peer.against for peer in installed))
    # The evaluators rank A-2-3-4-5 as the lowest straight, as these rules do.
    rules = Rules.preset("four_two")
    same_order: dict[str, bool] = {}
    sizes = {name: batch if name == "evaluate" else BY_NAME[name].batch for name in ours}
    timings = measure(
        [partial(BY_NAME[name].prepare, Setup(rules, sizes[name], 2)) for name in ours]
        + [partial(_prepare, peer, Setup(rules, batch, 2), same_order) for peer in installed],
        repeats, seconds,
    )  # fmt: skip
    ours_by_name = dict(zip(ours, timings, strict=False))
    theirs = dict(zip([p.name for p in installed], timings[len(ours) :], strict=True))
    return [
        _record(peer, theirs.get(peer.name), ours_by_name.get(peer.against), same_order)
        for peer in peers
    ]


def _prepare(peer: Peer, setup: Setup, same_order: dict[str, bool]) -> Work:
    if peer.prepare is not None:
        return peer.prepare(setup)
    assert peer.make is not None
    if peer.against == "evaluate":
        encode, score, sign = peer.make()
        cards, strengths = five_card_rows(setup)
        encoded = [[encode(card) for card in row] for row in cards.tolist()]
        scores = np.array([sign * score(row) for row in encoded])
        same_order[peer.name] = is_same_order(strengths, scores)
        return Work(len(encoded), lambda: [score(row) for row in encoded])
    draws = itertools.cycle(np.random.default_rng(SEED).random(65521).tolist())
    play: Play = peer.make(draws)
    return Work(1, play)


def five_card_rows(setup: Setup) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int16]]:
    """(2 * batch, 5) int8 cards and (2 * batch,) int16 strengths of drawn middle and back rows."""
    hands = hands_of(setup)
    rows = drawn_rows(hands, setup)
    strengths, _ = evaluate(hands, rows, setup.rules)
    cards = np.concatenate([hands[rows == row].reshape(-1, 5) for row in (1, 2)])
    return cards, np.concatenate([strengths[:, 1], strengths[:, 2]])


def is_same_order(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Whether two scores order all items alike, ties included."""
    places_a, places_b = (np.unique(score, return_inverse=True)[1] for score in (a, b))
    return bool(np.array_equal(places_a, places_b))


def _record(
    peer: Peer, timing: Timing | None, ours: Timing | None, same_order: dict[str, bool]
) -> dict[str, Any]:
    record: dict[str, Any] = {"name": peer.name, "pip": peer.pip, "what": peer.what}
    if timing is None or ours is None:
        return record | {"status": "missing"}
    record |= {"version": peer.version, "against": peer.against}
    if timing.error or ours.error:
        return record | {"status": "failed", "error": timing.error or f"ours: {ours.error}"}
    record |= {"status": "measured", **timing.to_dict(), "ours_cpu_seconds": ours.seconds}
    record["ratio"] = timing.seconds / ours.seconds
    if peer.name in same_order:
        record["same_order"] = same_order[peer.name]
    return record
