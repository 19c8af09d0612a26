"""OpenSpiel's external-sampling MCCFR on the game, with one strategy for all hands.

Hands hardly ever come twice, so regrets belong to a candidate's place in the list, not to the hand:
what is learned is how often to show the best candidate, the second and so on.

    python -m cpoker_env.train.examples.open_spiel_play --iterations 300
"""

from typing import Any

from cpoker_env.open_spiel import NAME

# isort: split
import numpy as np
import numpy.typing as npt
import pyspiel
import tyro
from open_spiel.python.algorithms import external_sampling_mccfr, mccfr

Solver: Any = external_sampling_mccfr.ExternalSamplingSolver
Weights = npt.NDArray[np.float64]


class PlaceSolver(Solver):  # type: ignore[misc]
    """MCCFR with a table by place for each player; for rules where actions are the first n."""

    def _lookup_infostate_info(self, key: str, num_legal: int) -> list[Weights]:
        places = self._game.num_distinct_actions()
        return [part[:num_legal] for part in super()._lookup_infostate_info(key[:2], places)]

    def _add_regret(self, key: str, place: int, amount: float) -> None:
        super()._add_regret(key[:2], place, amount)

    def _add_avstrat(self, key: str, place: int, amount: float) -> None:
        super()._add_avstrat(key[:2], place, amount)

    def weights(self, player: int) -> Weights:
        """(A,) how often a player's average strategy shows each candidate."""
        weights = self._infostates[f"p{player}"][mccfr.AVG_POLICY_INDEX]
        return np.asarray(weights / weights.sum())


def units_against_random(game: Any, weights: Weights, deals: int, seed: int) -> float:
    """Mean units of a first seat that shows places by `weights`, against random play."""
    rng = np.random.default_rng(seed)
    seats = (weights, np.ones_like(weights))
    units = 0.0
    for _ in range(deals):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, chances = map(np.array, zip(*state.chance_outcomes(), strict=True))
            else:
                actions = np.array(state.legal_actions())
                chances = seats[state.current_player()][actions]
            state.apply_action(int(rng.choice(actions, p=chances / chances.sum())))
        units += state.returns()[0]
    return units / deals


def main(iterations: int = 300, deals: int = 1000, places: int = 16, seed: int = 0) -> float:
    """Learn, then play the average strategy against random play; returns what learning won."""
    game = pyspiel.load_game(f"{NAME}(rules=four_two,players=2,num_candidates={places})")
    np.random.seed(seed)  # noqa: NPY002  (the generator the solver draws from)
    solver = PlaceSolver(game)
    for _ in range(iterations):
        solver.iteration()
    weights = solver.weights(0)
    print("how often each place is shown:", np.round(weights[:places], 2).tolist())
    before = units_against_random(game, np.ones_like(weights), deals, seed)
    after = units_against_random(game, weights, deals, seed)
    print(f"units a deal against random play: {before:+.3f} at random, {after:+.3f} learned")
    return after - before


if __name__ == "__main__":
    tyro.cli(main)
