"""The game for OpenSpiel: importing this module registers `python_chinese_poker`.

>>> import pyspiel, cpoker_env.open_spiel
>>> game = pyspiel.load_game("python_chinese_poker(rules=four_two,players=2)")
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import arrangement_of
from cpoker_env.candidates import check_num_candidates, list_candidates, most_units
from cpoker_env.cards import HAND_SIZE, NUM_CARDS, Card, format_card, format_cards
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.extras import check_versions, not_importable
from cpoker_env.naturals import natural_bits
from cpoker_env.rules import NUM_PATTERNS, Rules, read_rules
from cpoker_env.scoring import (
    DECLARE,
    SHOW,
    SURRENDER,
    Settled,
    Showdown,
    account,
    check_num_seats,
    settle_deals,
)

try:
    import pyspiel
except ImportError as error:
    raise not_importable("open_spiel", error) from error
check_versions("open_spiel")

NAME = "python_chinese_poker"
KEPT_HANDS = 4096
"""Hands whose choices a game remembers."""

GAME_TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="13-card Chinese Poker",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=4,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    provides_factored_observation_string=False,
    parameter_specification={"rules": "mandarin", "players": 2, "num_candidates": 32},
)


class Choices(NamedTuple):
    """What a seat may do with its hand.

    hand: (13,) int8, highest first.
    rows: (K, 13) int8, the row of each card of each candidate.
    features: (K, 10) float32, as in `cpoker_env.candidates.Candidates`.
    patterns: (10,) int8, naturals held. natural: the one to declare, -1 for none.
    legal: actions.
    """

    hand: npt.NDArray[np.int8]
    rows: npt.NDArray[np.int8]
    features: npt.NDArray[np.float32]
    patterns: npt.NDArray[np.int8]
    natural: int
    legal: tuple[int, ...]


class ChinesePokerGame(pyspiel.Game):  # type: ignore[misc]
    """13-card Chinese Poker among 2-4 players who choose among good arrangements.

    Chance deals seat by seat, one card at a time, so that its outcomes are exact: 52, then 51 and
    so on, each as likely. The players act in turn but see nothing of each other, as if at once.

    Actions: 0..K-1 the candidate to show, most valuable first, K surrender, K + 1 declare the best
    natural, as in `ChinesePokerCandidates-v0`. Returns: units, as `settle_showdown` counts them.

    Actions that are not legal raise `ActionError`.

    Information states hold the own hand and, once chosen, the own action. As a tensor, in this
    order: `player` (N), `bank` (N, only with a bank), `hand` (52), `naturals` (10), `candidates`
    (K, 10), `chosen` (K + 2, not in observations).

    Parameters:
        rules: A preset's name, or a JSON file of options; default `mandarin`.
        players: 2-4; default 2.
        num_candidates: K, 1..1024; default 32.

    Raises:
        CPokerError: A parameter out of its range, of the class that fits it.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        given = {**GAME_TYPE.parameter_specification, **(params or {})}
        self.rules: Rules = read_rules(given["rules"])
        players, self.num_candidates = given["players"], given["num_candidates"]
        check_num_seats(players, self.rules)
        check_num_candidates(self.num_candidates)
        bound = _most_units(self.rules, players)
        info = pyspiel.GameInfo(
            num_distinct_actions=self.num_candidates + 2,
            max_chance_outcomes=NUM_CARDS,
            num_players=players,
            min_utility=-bound,
            max_utility=bound,
            utility_sum=0.0,
            max_game_length=players,
        )
        super().__init__(GAME_TYPE, info, params or {})
        # Kept here and not by states, which OpenSpiel copies at every turn.
        self.choices = lru_cache(KEPT_HANDS)(self._choices)

    def new_initial_state(self) -> "ChinesePokerState":
        return ChinesePokerState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "Observer":
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        return Observer(self, kind, params)

    def max_chance_nodes_in_history(self) -> int:
        return int(self.num_players()) * HAND_SIZE

    def _choices(self, player: int, hand: tuple[Card, ...]) -> Choices:
        hands = np.array([hand], np.int8)
        k, players = self.num_candidates, self.num_players()
        features, rows, exists = list_candidates(hands, self.rules, players, player, k)
        bits, best = natural_bits(hands, self.rules)
        legal = np.flatnonzero(exists[0]).tolist()
        if self.rules.surrender_allowed:
            legal.append(k)
        if best[0] >= 0:
            legal.append(k + 1)
        patterns = (bits[0] >> np.arange(NUM_PATTERNS) & 1).astype(np.int8)
        arrays = hands[0], rows[0], features[0], patterns
        for array in arrays:  # all states of the deal share them
            array.flags.writeable = False
        return Choices(*arrays, int(best[0]), tuple(legal))


class ChinesePokerState(pyspiel.State):  # type: ignore[misc]
    """A deal under way.

    dealt: cards in the order of the deal, 13 to the first seat, then 13 to the second.
    chosen: the action of each seat that has acted.
    """

    def __init__(self, game: ChinesePokerGame) -> None:
        super().__init__(game)
        self.dealt: list[Card] = []
        self.chosen: list[int] = []

    def current_player(self) -> int:
        num_players = self.num_players()
        if len(self.dealt) < HAND_SIZE * num_players:
            return int(pyspiel.PlayerId.CHANCE)
        if len(self.chosen) < num_players:
            return len(self.chosen)
        return int(pyspiel.PlayerId.TERMINAL)

    def is_terminal(self) -> bool:
        return len(self.chosen) == int(self.num_players())

    def chance_outcomes(self) -> list[tuple[Card, float]]:
        left = sorted(set(range(NUM_CARDS)).difference(self.dealt))
        return [(card, 1 / len(left)) for card in left]

    def returns(self) -> list[float]:
        if not self.is_terminal():
            return [0.0] * self.num_players()
        units: list[float] = self._settle().units[0].tolist()
        return units

    def hand(self, player: int) -> list[Card]:
        """Cards dealt to a seat so far, highest first."""
        return sorted(self.dealt[HAND_SIZE * player : HAND_SIZE * (player + 1)], reverse=True)

    def choices(self, player: int) -> Choices | None:
        """What a seat may do with its hand; None before it has all its cards."""
        hand = self.hand(player)
        if len(hand) < HAND_SIZE:
            return None
        found: Choices = self.get_game().choices(player, tuple(hand))
        return found

    def showdown(self) -> Showdown:
        """Who owes whom and why, at the end of a deal.

        Raises:
            ActionError: The deal is not over.
        """
        if not self.is_terminal():
            raise ActionError("showdown before the end of the deal: apply everybody's actions")
        seats = range(self.num_players())
        laid = tuple(arrangement_of(self.hand(seat), self._rows(seat).tolist()) for seat in seats)
        return account(self._settle(), 0, laid, self.get_game().rules)

    def _legal_actions(self, player: int) -> list[int]:
        choices = self.choices(player)
        return list(choices.legal) if choices else []

    def _apply_action(self, action: int) -> None:
        if self.is_terminal():
            raise ActionError(f"action {action}: the deal is over; take a new initial state")
        if self.is_chance_node():
            if not 0 <= action < NUM_CARDS or action in self.dealt:
                raise ActionError(f"card {action}: deal one of 0..{NUM_CARDS - 1} that is left")
            self.dealt.append(action)
            return
        choices = self.choices(len(self.chosen))
        assert choices, "seats act when all cards are dealt"
        if action not in choices.legal:
            legal = ", ".join(map(str, choices.legal))
            raise ActionError(f"action {action} of seat {len(self.chosen)}: legal are {legal}")
        self.chosen.append(action)

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return f"deal {format_card(action)}"
        return _action_text(action, self.get_game().num_candidates)

    def __str__(self) -> str:
        k = self.get_game().num_candidates
        lines = []
        for seat in range(self.num_players()):
            acted = self.chosen[seat : seat + 1]
            words = [_action_text(action, k) for action in acted]
            lines.append(f"p{seat}: " + ", ".join([format_cards(self.hand(seat)), *words]))
        return "\n".join(lines)

    def _rows(self, player: int) -> npt.NDArray[np.int8]:
        choices = self.choices(player)
        assert choices, "a seat acts on a whole hand"
        action = self.chosen[player]
        # A declaration is paid whatever the rows; as in the environments they are the best.
        rows: npt.NDArray[np.int8] = choices.rows[action if action < len(choices.rows) else 0]
        return rows

    def _settle(self) -> Settled:
        k = self.get_game().num_candidates
        declarations = [{k: SURRENDER, k + 1: DECLARE}.get(action, SHOW) for action in self.chosen]
        seats = range(self.num_players())
        choices = [self.choices(seat) for seat in seats]
        return settle_deals(
            np.array([[each.hand for each in choices if each]]),
            np.array([[self._rows(seat) for seat in seats]]),
            np.array([declarations]),
            np.array([[each.natural for each in choices if each]]),
            self.get_game().rules,
        )


class Observer:
    """What one seat sees, as OpenSpiel's observers have it: a flat tensor with named views."""

    def __init__(self, game: ChinesePokerGame, kind: Any, params: Any) -> None:
        if params:
            raise ConfigError(f"observation parameters {params}: there are none")
        players, k = game.num_players(), game.num_candidates
        shapes: dict[str, tuple[int, ...]] = {"player": (players,)}
        if kind.public_info and game.rules.banker is not None:
            shapes["bank"] = (players,)
        self._is_private = kind.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER
        self._recalls = self._is_private and kind.perfect_recall
        if self._is_private:
            shapes |= {"hand": (NUM_CARDS,), "naturals": (NUM_PATTERNS,), "candidates": (k, 10)}
        if self._recalls:
            shapes["chosen"] = (k + 2,)
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.tensor = np.zeros(sum(sizes), np.float32)
        parts = np.split(self.tensor, np.cumsum(sizes)[:-1])
        self.dict = {
            name: part.reshape(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def set_from(self, state: ChinesePokerState, player: int) -> None:
        """Make `tensor` and `dict` show a state as `player` sees it."""
        self.tensor.fill(0)
        self.dict["player"][player] = 1
        if "bank" in self.dict:
            self.dict["bank"][state.get_game().rules.banker] = 1
        if not self._is_private:
            return
        self.dict["hand"][state.hand(player)] = 1
        choices = state.choices(player)
        if choices is not None:
            self.dict["naturals"][:] = choices.patterns
            self.dict["candidates"][:] = choices.features
        if self._recalls and len(state.chosen) > player:
            self.dict["chosen"][state.chosen[player]] = 1

    def string_from(self, state: ChinesePokerState, player: int) -> str:
        """The same as text."""
        words = [f"p{player}"]
        if self._is_private:
            words.append(format_cards(state.hand(player)))
        if self._recalls and len(state.chosen) > player:
            words.append(_action_text(state.chosen[player], state.get_game().num_candidates))
        return ", ".join(words)


def _action_text(action: int, num_candidates: int) -> str:
    if action < num_candidates:
        return f"show {action}"
    return "surrender" if action == num_candidates else "declare"


def _most_units(rules: Rules, num_players: int) -> float:
    """A bound on what a seat can win or lose in a deal."""
    prices = [rules.natural_value(pattern) for pattern in rules.naturals_in_play]
    prices.append(rules.surrender_cost or 0)
    return max(most_units(rules, num_players), *prices) * (num_players - 1)


if NAME not in pyspiel.registered_names():
    pyspiel.register_game(GAME_TYPE, ChinesePokerGame)
