"""The game for PettingZoo: its own tests, the units of Gymnasium's environments, hidden cards."""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from cpoker_env.errors import ActionError, CardError, ConfigError, CPokerError
from cpoker_env.policy import Actions
from cpoker_env.rules import Rules
from cpoker_env.table import Table

pettingzoo = pytest.importorskip("pettingzoo")

with warnings.catch_warnings():
    # It loads a game of its own by the way it has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from cpoker_env import parallel  # noqa: E402

HAS_REGISTRY = hasattr(pettingzoo, "register")
FORMS = ("structured", "flat", "sequential", "candidates")
BANK = Rules.preset("italian", topology="banker", banker=1)
POOL = Rules.preset("italian", topology="pool")
ABOUT_DICTS = {
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete",
}
"""What `api_test` warns of with every observation that holds its mask, but for PettingZoo's own
games, which it knows by name."""
ABOUT_ACTIONS = (
    "Action space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete"
)


def sample(env, observations):
    return {
        agent: env.action_space(agent).sample(observations[agent]["action_mask"])
        for agent in env.agents
    }


@pytest.mark.parametrize("kwargs", [{}, {"flatten": True}, {"flatten": True, "mask_in": "info"}])
@pytest.mark.parametrize("form", FORMS)
def test_parallel_tests_of_pettingzoo_are_silent(form, kwargs):
    if form in ("structured", "flat") and "mask_in" not in kwargs and not HAS_REGISTRY:
        pytest.skip("before 1.27 the test takes every mask for that of a Discrete action")
    parallel_api_test(parallel.parallel_env(num_players=3, form=form, **kwargs), num_cycles=30)
    parallel_seed_test(lambda: parallel.parallel_env("western", form=form, **kwargs), 10)


@pytest.mark.parametrize("form", ["sequential", "candidates"])
def test_aec_tests_of_pettingzoo_are_silent(form):
    def make():
        return parallel.env(num_players=3, form=form, flatten=True, mask_in="info")

    api_test(make(), num_cycles=30)
    seed_test(make, num_cycles=10)


@pytest.mark.parametrize("form", FORMS)
def test_aec_tests_pass_with_masks_in_observations(form):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(parallel.env(form=form), num_cycles=30)
        seed_test(lambda: parallel.env(form=form), num_cycles=10)
    known = ABOUT_DICTS if form in ("sequential", "candidates") else ABOUT_DICTS | {ABOUT_ACTIONS}
    assert {str(warning.message) for warning in caught} == known


@pytest.mark.skipif(not HAS_REGISTRY, reason="no registry before 1.27")
def test_registries_have_the_ids_of_gymnasium():
    for name, form in parallel.IDS.items():
        assert gym.spec(name).kwargs.get("form", "structured") == form
        env = pettingzoo.make("parallel", name, rules="western", num_players=3)
        assert env.seats.form.name == form
        assert env.rules == Rules.preset("western")
        turns = pettingzoo.make("aec", name)
        assert isinstance(turns, pettingzoo.AECEnv)
        turns.reset(seed=3)
        assert turns.agents == ["player_0", "player_1"]


class Scripted:
    """Lays what the script has for each seat, in every deal."""

    def __init__(self, declarations, rows):
        self.declarations, self.rows = declarations, rows

    def act(self, batch, rng):
        return Actions(self.declarations[batch.seats], self.rows[batch.seats])


@pytest.mark.parametrize("rules", ["mandarin", "western", BANK, POOL], ids=str)
@pytest.mark.parametrize("num_players", [2, 4])
@pytest.mark.parametrize("form", FORMS)
def test_units_and_observations_equal_gymnasium(form, rules, num_players):
    names = {form: name for name, form in parallel.IDS.items()}
    env = parallel.parallel_env(rules, num_players, form=form)
    for seed in range(4):
        observations, _ = env.reset(seed=seed)
        script = Scripted(np.zeros(4, np.int8), np.zeros((4, 13), np.int8))
        plan, rewards = [], {}
        for agent in env.agents:
            env.action_space(agent).seed(seed)
        while env.agents:
            plan.append(sample(env, observations))
            observations, rewards, ends, _, infos = env.step(plan[-1])
        script.declarations[:num_players] = env.seats.actions.declarations
        script.rows[:num_players] = env.seats.actions.rows
        alone = gym.make(names[form], rules=rules, num_players=num_players, opponents=script)
        seen, info = alone.reset(seed=seed)
        ended, step = False, 0
        while not ended:
            seen, units, ended, _, info = alone.step(plan[step]["player_0"])
            step += 1
        assert units == rewards["player_0"]
        assert list(rewards.values()) == info["units"].tolist()
        assert sum(rewards.values()) == pytest.approx(0)
        assert all(ends.values())
        assert [infos[agent]["status"] for agent in infos] == list(info["statuses"])
        assert env.showdown.arrangements == info["arrangements"]
        if step == len(plan):
            for key, part in observations["player_0"]["observation"].items():
                np.testing.assert_array_equal(part, seen[key])
        told = infos["player_0"].get("invalid_action")
        assert told == info.get("invalid_action")


def test_actions_belong_to_the_agents_that_are_named():
    env = parallel.parallel_env(num_players=3, form="candidates")
    told = []
    for order in ([0, 1, 2], [2, 0, 1]):
        env.reset(seed=4)
        _, rewards, *_, infos = env.step({f"player_{seat}": (0, 0, 32)[seat] for seat in order})
        told.append((rewards, [info["status"] for info in infos.values()]))
    assert told[0] == told[1]
    assert told[0][1] == ["normal", "normal", "surrender"]


@pytest.mark.parametrize("rules", ["mandarin", BANK], ids=str)
def test_later_deals_are_seen_as_if_dealt_alone(rules):
    env = parallel.parallel_env(rules, 3, form="candidates")
    alone = parallel.parallel_env(rules, 3, form="candidates")
    hands = env.table.deal(1, np.arange(120, dtype=np.uint64)).hands
    held = 0
    for index, cards in enumerate(hands):
        seen = env.reset(seed=1 if index == 0 else None)
        assert data_equivalence(seen, alone.reset(options={"hands": list(cards)}))
        held += sum(one["observation"]["naturals"].any() for one in seen[0].values())
    assert held > 5


@pytest.mark.parametrize("form", ["flat", "candidates"])
@pytest.mark.parametrize("num_players", [2, 3])
def test_deals_of_a_seed_follow_each_other(form, num_players):
    env = parallel.parallel_env(BANK, num_players, form=form)
    table, fixed = Table(BANK, num_players), list(range(13))
    for seed, count in ((3, 140), (4, 5), (3, 9)):
        hands = table.deal(seed, np.arange(count, dtype=np.uint64)).hands
        for index in range(count):
            options = {"hands": [fixed]} if index in (1, 2, 63, 127) else None
            observations, _ = env.reset(seed=seed if index == 0 else None, options=options)
            expected = hands[index]
            if options:
                indices = np.array([index], np.uint64)
                expected = table.deal_around([fixed], seed, indices).hands[0]
            for hand, seen in zip(expected, observations.values(), strict=True):
                held = seen["observation"]
                assert held["cards"].tolist() == hand.tolist()
                assert np.flatnonzero(held["hand"]).tolist() == sorted(hand.tolist())
                held["cards"][:] = 0  # is nobody else's


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rules", ["mandarin", BANK], ids=str)
def test_observations_do_not_depend_on_other_hands(form, rules):
    rng = np.random.default_rng(5)
    env = parallel.parallel_env(rules, 4, form=form)
    for _ in range(5):
        deck = rng.permutation(52)
        own, rest = deck[:13], deck[13:]
        for seat in range(4):
            seen = []
            for _ in range(3):
                hands = list(rng.permutation(rest).reshape(3, 13))
                hands.insert(seat, own)
                observations, _ = env.reset(options={"hands": [hand.tolist() for hand in hands]})
                mine = observations[f"player_{seat}"]
                cards = mine["observation"]["cards"].tolist()
                assert cards == sorted(own.tolist(), reverse=True)
                seen.append(pickle.dumps(mine))
            assert seen[0] == seen[1] == seen[2]


def test_steps_of_others_are_not_seen():
    env = parallel.parallel_env(form="sequential", num_players=3)
    seen = []
    for row in range(3):
        observations, _ = env.reset(seed=8)
        observations, *_ = env.step({"player_0": 2, "player_1": row, "player_2": row})
        seen.append(pickle.dumps(observations["player_0"]))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("form", FORMS)
def test_vectors_are_what_gymnasium_flattens(form):
    plain = parallel.parallel_env(BANK, 3, form=form)
    flat = parallel.parallel_env(BANK, 3, form=form, flatten=True)
    dicts, _ = plain.reset(seed=4)
    vectors, _ = flat.reset(seed=4)
    for agent, vector in vectors.items():
        space = plain.observation_space(agent)["observation"]
        expected = gym.spaces.flatten(space, dicts[agent]["observation"])
        np.testing.assert_array_equal(vector["observation"], expected)
        assert flat.observation_space(agent).contains(vector)
        assert plain.observation_space(agent).contains(dicts[agent])


def test_bank_is_told_from_each_seat():
    env = parallel.parallel_env(BANK, 3)
    observations, _ = env.reset(seed=1)
    banks = [seen["observation"]["bank"].tolist() for seen in observations.values()]
    assert banks == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_the_bank_chooses_among_the_candidates_of_its_side():
    here = Rules.preset("italian", topology="banker", banker=0)
    env = parallel.parallel_env(BANK, 3, form="candidates")
    for seed in range(5):
        observations, _ = env.reset(seed=seed)
        for agent, seen in observations.items():
            rules = here if agent == "player_1" else BANK
            alone = gym.make("ChinesePokerCandidates-v0", rules=rules, num_players=3)
            cards = seen["observation"]["cards"]
            expected, _ = alone.reset(seed=1, options={"hands": [cards]})
            for key in ("candidates", "candidate_rows", "candidate_mask"):
                np.testing.assert_array_equal(seen["observation"][key], expected[key])


def test_deals_are_named_by_seed_and_index():
    first, second = (parallel.parallel_env(num_players=4) for _ in range(2))
    first.reset(seed=6)
    first.reset()
    third, _ = first.reset()
    second.reset(seed=6)
    second.step(dict.fromkeys(second.agents, np.zeros(14, np.int64)))
    second.reset()
    other, _ = second.reset()
    vector = gym.make_vec("ChinesePoker-v0", num_envs=1, num_players=4)
    vector.reset(seed=6)
    vector.reset()
    same, _ = vector.reset()
    cards = third["player_0"]["observation"]["cards"]
    np.testing.assert_array_equal(cards, other["player_0"]["observation"]["cards"])
    np.testing.assert_array_equal(cards, same["cards"][0])


def test_a_seat_that_declared_waits_for_the_others():
    env = parallel.parallel_env("mandarin", form="sequential")
    env.reset(seed=2)
    observations, *_ = env.step({"player_0": 3, "player_1": 2})
    for card in range(12):
        assert observations["player_0"]["action_mask"].tolist() == [1, 0, 0, 0, 0]
        row = int(observations["player_1"]["action_mask"].argmax())
        observations, rewards, ends, _, infos = env.step({"player_0": 0, "player_1": row})
        assert ends["player_0"] == ends["player_1"] == (card == 11)
    assert infos["player_0"]["status"] == "surrender"
    assert rewards == {"player_0": -3.0, "player_1": 3.0}
    assert all(seen["action_mask"].any() for seen in observations.values())


def test_waiting_is_never_a_fault():
    env = parallel.parallel_env("mandarin", form="sequential", mask="legal", strict=True)
    for seed in range(5):
        observations, _ = env.reset(seed=seed)
        actions = {"player_0": 3, "player_1": 2}
        while env.agents:
            observations, *_, infos = env.step(actions)
            actions = {
                agent: int(seen["action_mask"].argmax()) for agent, seen in observations.items()
            }
        assert not any("invalid_action" in info for info in infos.values())


def test_faults_and_showdowns_end_with_their_deal():
    env = parallel.parallel_env("basic", form="sequential")
    env.reset(seed=1)
    env.step({"player_0": 3, "player_1": 2})
    for _ in range(12):
        *_, infos = env.step({"player_0": 0, "player_1": 0})
    assert "surrender is not available" in infos["player_0"]["invalid_action"]
    assert env.showdown.statuses == ("foul", "foul")
    env.reset()
    assert env.showdown is None
    for row in (2,) * 5 + (1,) * 5 + (0,) * 3:
        assert env.showdown is None
        *_, infos = env.step({"player_0": row, "player_1": row})
    assert "not available" not in infos["player_0"].get("invalid_action", "")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_returned_is_nobody_elses(form):
    env, other = (parallel.parallel_env(BANK, 3, form=form) for _ in range(2))
    observations, _ = env.reset(seed=6)
    other.reset(seed=6)
    actions = sample(env, observations)
    observations["player_0"]["observation"]["cards"][:] = 0
    observations.clear()
    seen, rewards, *_ = env.step(actions)
    expected, same, *_ = other.step(actions)
    assert (seen.keys(), rewards) == (expected.keys(), same)
    if form == "sequential":
        assert data_equivalence(seen, expected)


def test_each_agent_draws_from_a_space_of_its_own():
    env = parallel.parallel_env(num_players=2)
    one, two = (env.action_space(agent) for agent in env.possible_agents)
    one.seed(1)
    drawn = one.sample().tolist()
    one.seed(1)
    two.seed(2)
    assert one.sample().tolist() == drawn


@pytest.mark.parametrize("form", ["structured", "flat"])
def test_masks_that_seats_share_cannot_be_written(form):
    env = parallel.parallel_env(form=form)
    observations, _ = env.reset(seed=1)
    masks = observations["player_0"]["action_mask"]
    for mask in (masks["declaration"], *masks["placement"]) if form == "structured" else masks:
        with pytest.raises(ValueError, match="read-only"):
            mask[0] = 0


def test_masked_actions_follow_the_documented_rule():
    env = parallel.parallel_env("basic", form="candidates")
    observations, _ = env.reset(seed=1)
    surrender = env.action_space("player_0").n - 2
    assert observations["player_0"]["action_mask"][surrender] == 0
    *_, infos = env.step({"player_0": surrender, "player_1": 0})
    assert "surrender is not available" in infos["player_0"]["invalid_action"]
    assert "invalid_action" not in infos["player_1"]
    strict = parallel.parallel_env("basic", form="candidates", strict=True)
    strict.reset(seed=1)
    with pytest.raises(ActionError, match="player_1: surrender is not available"):
        strict.step({"player_0": 0, "player_1": surrender})
    _, rewards, *_ = strict.step({"player_0": 0, "player_1": 0})
    assert sum(rewards.values()) == 0


@pytest.mark.parametrize("form", FORMS)
def test_copies_go_on_alike_in_mid_deal(form):
    env = parallel.parallel_env(num_players=3, form=form)
    observations, _ = env.reset(seed=12)
    if form == "sequential":
        observations, *_ = env.step(sample(env, observations))
    others = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    while env.agents:
        actions = sample(env, observations)
        observations, *rest, _ = env.step(actions)
        for other in others:
            seen, *same, _ = other.step(actions)
            assert same == rest
            assert data_equivalence(seen, observations)


def test_the_table_is_drawn():
    env = parallel.parallel_env(render_mode="ansi")
    env.reset(options={"hands": ["As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"]})
    assert "player_1" in env.render()
    env.step({agent: np.zeros(14, np.int64) for agent in env.agents})
    assert "North" in env.render()
    turns = parallel.env(render_mode="ansi")
    turns.reset(seed=1)
    assert "player_0" in turns.render()


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"rules": "poker"}, CPokerError), ({"num_players": 5}, CPokerError),
        ({"form": "rows"}, ConfigError), ({"mask": "legal"}, ConfigError),
        ({"mask_in": "both"}, ConfigError), ({"flatten": 1}, ConfigError),
        ({"strict": "no"}, ConfigError), ({"render_mode": "human"}, ActionError),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(kwargs, error):
    with pytest.raises(error):
        parallel.parallel_env(**kwargs)


def test_actions_of_several_agents_are_read_by_themselves():
    env = parallel.parallel_env("four_two", form="candidates")
    env.reset(seed=1)
    with pytest.raises(ActionError, match="action True of player_0"):
        env.step({"player_0": True, "player_1": 0})
    *_, infos = env.step({"player_0": np.uint64(1), "player_1": 0})
    assert "invalid_action" not in infos["player_0"]


def test_bad_calls_are_refused():
    env = parallel.parallel_env(form="candidates")
    with pytest.raises(ActionError, match="call reset"):
        env.step({})
    with pytest.raises(ActionError, match="seed -1"):
        env.reset(seed=-1)
    with pytest.raises(CardError):
        env.reset(options={"hands": ["As"]})
    env.reset(seed=1, options={"anything": 1})
    for actions in ({}, {"player_0": 0}, [0, 0], {"player_0": 0, "player_1": 0, "player_2": 0}):
        with pytest.raises(ActionError, match="give one of each of"):
            env.step(actions)
    for action in (99, -1, 0.5, "a", None, [0, 1]):
        with pytest.raises(ActionError):
            env.step({"player_0": 0, "player_1": action})
    _, rewards, *_ = env.step({"player_0": 0, "player_1": np.int32(0)})
    assert all(isinstance(reward, float) for reward in rewards.values())
    with pytest.raises(ActionError, match="call reset"):
        env.step({"player_0": 0, "player_1": 0})
