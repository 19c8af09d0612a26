"""The native vector environment: equal to the scalar one, Gymnasium's conventions, bad input."""

import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cpoker_env  # noqa: F401
from cpoker_env.errors import ActionError, CardError, ConfigError
from cpoker_env.policy import Actions
from cpoker_env.rules import PATTERNS, PRESETS, Rules
from cpoker_env.scoring import STATUSES

IDS = (
    "ChinesePoker-v0",
    "ChinesePokerFlat-v0",
    "ChinesePokerSequential-v0",
    "ChinesePokerCandidates-v0",
)
MODES = tuple(AutoresetMode)
BANK = Rules.preset("italian", topology="banker", banker=1)
POOL = Rules.preset("italian", topology="pool")


def pair(env_id, num_envs, mode, **kwargs):
    """The native environment and Gymnasium's loop over scalar ones."""
    native = gym.make_vec(env_id, num_envs=num_envs, autoreset_mode=mode, **kwargs)
    scalars = SyncVectorEnv(
        [lambda: gym.make(env_id, **kwargs) for _ in range(num_envs)], autoreset_mode=mode
    )
    return native, scalars


def masked_actions(rng, masks, env_id):
    """Random actions, sometimes masked ones, for both environments."""
    if env_id in ("ChinesePoker-v0", "ChinesePokerFlat-v0"):
        declared = masks["declaration"] if isinstance(masks, dict) else masks[:, 0]
        size = len(declared)
        declarations = np.where(rng.random(size) < 0.6, 0, rng.integers(0, 3, size))
        rows = np.repeat([2, 1, 0], [5, 5, 3])[None].repeat(size, 0)
        swap = rng.integers(0, 13, (size, 2))
        everyone = np.arange(size)
        first, second = rows[everyone, swap[:, 0]], rows[everyone, swap[:, 1]]
        rows[everyone, swap[:, 0]], rows[everyone, swap[:, 1]] = second, first
        rows[rng.random(size) < 0.1, 0] = 0
        if env_id == "ChinesePokerFlat-v0":
            return np.concatenate([declarations[:, None], rows], axis=1)
        return {"declaration": declarations, "placement": rows}
    scores = rng.random(masks.shape) + 10 * masks
    if env_id == "ChinesePokerSequential-v0":
        # Most hands are placed to the end; some end at once, which sets the tables apart.
        scores[:, 3:] -= np.where(rng.random((len(masks), 1)) < 0.3, 0, 10)
    random = rng.integers(0, masks.shape[1], len(masks))
    return np.where(rng.random(len(masks)) < 0.05, random, scores.argmax(axis=1))


def assert_same(one, other, path=""):
    assert set(one) == set(other), path
    for key, value in one.items():
        if isinstance(value, dict):
            assert_same(value, other[key], f"{path}.{key}")
        else:
            np.testing.assert_array_equal(value, other[key], err_msg=f"{path}.{key}")
            assert np.asarray(value).dtype == np.asarray(other[key]).dtype, f"{path}.{key}"


def assert_same_outcome(native, scalar, where):
    """Info of ended deals: arrays of the one, objects a person reads of the other."""
    np.testing.assert_array_equal(native["units"][where], scalar["units"][where])
    np.testing.assert_array_equal(native["_units"], scalar["_units"])
    for i in np.flatnonzero(where):
        assert tuple(STATUSES[s] for s in native["statuses"][i]) == scalar["statuses"][i]
        names = tuple(None if n < 0 else PATTERNS[n] for n in native["naturals"][i])
        assert names == scalar["naturals"][i]
        for pairing in scalar["pairwise"][i]:
            assert native["pairwise"][i, pairing.a, pairing.b] == pairing.units
            assert native["pairwise"][i, pairing.b, pairing.a] == -pairing.units
        for seat, laid in enumerate(scalar["arrangements"][i]):
            for row, cards in enumerate(laid):
                mine = native["hands"][i, seat][native["arrangements"][i, seat] == row]
                assert tuple(mine.tolist()) == cards
        has_text = "invalid_action" in scalar and scalar["_invalid_action"][i]
        assert bool(native["invalid_action"][i]) == bool(has_text)


CASES = [("ChinesePoker-v0", rules, seats) for rules in PRESETS for seats in (2, 3, 4)]
CASES += [(env_id, "mandarin", seats) for env_id in IDS[1:] for seats in (2, 4)]
CASES += [(env_id, rules, 3) for env_id in IDS for rules in (BANK, POOL)]
CASES += [(env_id, "western", 3) for env_id in IDS[1:]]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    ("env_id", "rules", "num_players"),
    CASES,
    ids=[f"{e[12:-3]}-{r if isinstance(r, str) else r.topology}-{n}" for e, r, n in CASES],
)
def test_vector_env_equals_scalar_env(env_id, rules, num_players, mode):
    num_envs, rng = 7, np.random.default_rng(num_players)
    native, scalars = pair(
        env_id, num_envs, mode, rules=rules, num_players=num_players,
        opponents=["uniform", "greedy", "uniform"][: num_players - 1],
    )  # fmt: skip
    assert native.single_observation_space == scalars.single_observation_space
    assert native.single_action_space == scalars.single_action_space
    assert native.observation_space == scalars.observation_space
    assert native.action_space == scalars.action_space
    seen, info = native.reset(seed=11)
    told, scalar_info = scalars.reset(seed=11)
    assert_same(seen, told)
    for _ in range(40 if env_id == "ChinesePokerSequential-v0" else 12):
        masks = info["action_mask"]
        actions = masked_actions(rng, masks, env_id)
        seen, rewards, terminated, truncated, info = native.step(actions)
        told, scalar_rewards, *ends, scalar_info = scalars.step(actions)
        assert_same(seen, told)
        np.testing.assert_array_equal(rewards, scalar_rewards)
        np.testing.assert_array_equal(terminated, ends[0])
        np.testing.assert_array_equal(truncated, ends[1])
        assert seen in native.observation_space
        if mode == AutoresetMode.SAME_STEP and terminated.any():
            assert_same_outcome(info["final_info"], scalar_info["final_info"], terminated)
            np.testing.assert_array_equal(info["_final_obs"], scalar_info["_final_obs"])
            for i in range(num_envs):
                if terminated[i]:
                    assert_same(info["final_obs"][i], scalar_info["final_obs"][i])
                else:
                    assert info["final_obs"][i] is None
        elif mode != AutoresetMode.SAME_STEP and terminated.any():
            assert_same_outcome(info, scalar_info, terminated)
        mine, theirs = info["action_mask"], scalar_info["action_mask"]
        if env_id == "ChinesePoker-v0":
            np.testing.assert_array_equal(mine["declaration"], theirs["declaration"])
        elif env_id == "ChinesePokerFlat-v0":
            stacked = np.array([np.stack(mask) for mask in theirs])
            np.testing.assert_array_equal(mine, stacked)
        else:
            np.testing.assert_array_equal(mine, theirs)
        if mode == AutoresetMode.DISABLED and terminated.any():
            seen, _ = native.reset(options={"reset_mask": terminated})
            told, _ = scalars.reset(options={"reset_mask": terminated})
            assert_same(seen, told)


@pytest.mark.parametrize("env_id", IDS)
def test_same_arrangement_earns_the_same_units_in_every_form(env_id):
    """Each form is led to the arrangement that the structured form is given."""
    size = 40
    plain = gym.make_vec("ChinesePoker-v0", num_envs=size, num_players=3, autoreset_mode="Disabled")
    options = {"num_candidates": 1024} if "Candidates" in env_id else {}
    other = gym.make_vec(env_id, num_envs=size, num_players=3, autoreset_mode="Disabled", **options)
    seen, _ = other.reset(seed=3)
    if env_id == "ChinesePokerCandidates-v0":
        picks = (seen["candidate_mask"].sum(axis=1) - 1) // 2
        rows = seen["candidate_rows"][np.arange(size), picks]
    else:
        rows = np.repeat([2, 1, 0], [5, 5, 3])[None].repeat(size, 0)
    plain.reset(seed=3)
    _, rewards, _, _, info = plain.step({"declaration": np.zeros(size, int), "placement": rows})
    if env_id == "ChinesePokerSequential-v0":
        for card in range(13):
            _, again, ended, _, told = other.step(rows[:, card])
            assert ended.all() == (card == 12)
    elif env_id == "ChinesePokerCandidates-v0":
        _, again, _, _, told = other.step(picks)
    elif env_id == "ChinesePokerFlat-v0":
        _, again, _, _, told = other.step(np.concatenate([np.zeros((size, 1), int), rows], axis=1))
    else:
        _, again, _, _, told = other.step({"declaration": np.zeros(size, int), "placement": rows})
    np.testing.assert_array_equal(again, rewards)
    np.testing.assert_array_equal(told["units"], info["units"])
    np.testing.assert_array_equal(told["arrangements"][:, 0], rows)


def test_autoreset_mode_is_declared():
    for mode in MODES:
        env = gym.make_vec("ChinesePoker-v0", num_envs=2, autoreset_mode=mode.value)
        assert env.metadata["autoreset_mode"] is mode
    assert gym.make_vec("ChinesePoker-v0").metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    with pytest.raises(ConfigError, match="'SameStep'"):
        gym.make_vec("ChinesePoker-v0", autoreset_mode="later")


def test_seeds_name_deals_and_none_goes_on():
    env = gym.make_vec("ChinesePoker-v0", num_envs=3)
    first, _ = env.reset(seed=5)
    listed, _ = env.reset(seed=[5, 6, 7])
    assert_same(first, listed)
    on, _ = env.reset(seed=[5, None, 7])
    assert (on["cards"][[0, 2]] == first["cards"][[0, 2]]).all()
    assert (on["cards"][1] != first["cards"][1]).any()
    again, _ = env.reset(seed=5)
    assert_same(first, again)
    unseeded = gym.make_vec("ChinesePoker-v0", num_envs=3)
    drawn, _ = unseeded.reset()
    assert len(np.unique(drawn["cards"], axis=0)) == 3
    assert (gym.make_vec("ChinesePoker-v0", num_envs=3).reset()[0]["cards"] != drawn["cards"]).any()


def test_observations_given_out_are_the_users_own():
    env = gym.make_vec("ChinesePokerSequential-v0", num_envs=2)
    seen, _ = env.reset(seed=1)
    kept = {key: value.copy() for key, value in seen.items()}
    for value in seen.values():
        value[...] = 0
    again, *_ = env.step(np.zeros(2, int))
    assert (again["cards"] == kept["cards"]).all()
    env.step(np.zeros(2, int))
    assert (again["rows"][:, 1] == 3).all()


def test_final_observations_read_by_environment_and_by_key():
    env = gym.make_vec("ChinesePokerSequential-v0", num_envs=3)
    _, info = env.reset(seed=1)
    surrenders = np.array([3, 0, 3])
    before = env.unwrapped.learners.deals.hands[:, 0].copy()
    *_, info = env.step(surrenders)
    final = info["final_obs"]
    assert final[1] is None
    assert (final["cards"][[0, 2]] == before[[0, 2]]).all()
    assert (final[-1]["cards"] == before[2]).all()
    assert [one["cards"].tolist() for one in final[info["_final_obs"]]] == before[[0, 2]].tolist()


def test_strict_refuses_and_changes_nothing():
    env = gym.make_vec("ChinesePoker-v0", num_envs=2, rules="basic", strict=True)
    seen, _ = env.reset(seed=1)
    rows = np.repeat([2, 1, 0], [5, 5, 3])[None].repeat(2, 0)
    for declarations, placement, says in (
        ([0, 1], rows, "environment 1: surrender is not available"),
        ([0, 0], np.zeros((2, 13), int), "environment 0: a foul"),
    ):
        with pytest.raises(ActionError, match=says):
            env.step({"declaration": np.array(declarations), "placement": placement})
        assert (env.unwrapped.learners.deals.hands[:, 0] == seen["cards"]).all()


@pytest.mark.parametrize(
    "actions",
    [
        None,
        7,
        {},
        {"declaration": [0, 0], "placement": np.zeros((2, 12), int)},
        {"declaration": [0], "placement": np.zeros((2, 13), int)},
        {"declaration": [0, 3], "placement": np.zeros((2, 13), int)},
        {"declaration": [0, -1], "placement": np.zeros((2, 13), int)},
        {"declaration": [0, 0], "placement": np.full((2, 13), 256)},
        {"declaration": [0, 0], "placement": np.zeros((2, 13))},
        {"declaration": [0, "a"], "placement": np.zeros((2, 13), int)},
    ],
)
def test_actions_outside_the_space_raise(actions):
    env = gym.make_vec("ChinesePoker-v0", num_envs=2)
    env.reset(seed=1)
    with pytest.raises(ActionError):
        env.step(actions)


def test_bad_arguments_raise_typed_errors():
    with pytest.raises(ConfigError, match="num_envs 0"):
        gym.make_vec("ChinesePoker-v0", num_envs=0)
    with pytest.raises(ConfigError, match="form 'oblique'"):
        gym.make_vec("ChinesePoker-v0", form="oblique")
    with pytest.raises(ConfigError, match="'structured' got an unexpected keyword argument 'mask'"):
        gym.make_vec("ChinesePoker-v0", mask="legal")
    with pytest.raises(ConfigError, match="mask 'none'"):
        gym.make_vec("ChinesePokerSequential-v0", mask="none")
    with pytest.raises(ConfigError, match="num_candidates 0"):
        gym.make_vec("ChinesePokerCandidates-v0", num_candidates=0)
    env = gym.make_vec("ChinesePoker-v0", num_envs=2)
    rows = {"declaration": np.zeros(2, int), "placement": np.zeros((2, 13), int)}
    with pytest.raises(ActionError, match="environment 0 has no open deal"):
        env.step(rows)
    with pytest.raises(ActionError, match="3 seeds for 2"):
        env.reset(seed=[1, 2, 3])
    env.reset(seed=0)
    for mask in ([True], np.zeros(2, np.bool_), np.ones(2, int)):
        with pytest.raises(ActionError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(CardError):
        env.reset(options={"hands": ["As"]})
    disabled = gym.make_vec("ChinesePoker-v0", num_envs=2, autoreset_mode="Disabled")
    disabled.reset(seed=0)
    disabled.step(rows)
    with pytest.raises(ActionError, match="environment 0 has no open deal"):
        disabled.step(rows)


def test_fixed_hands_are_dealt_to_every_table():
    hand = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"
    env = gym.make_vec("ChinesePoker-v0", num_envs=4, num_players=3)
    seen, _ = env.reset(seed=2, options={"hands": [None, hand]})
    dealt = env.unwrapped.learners.deals.hands
    assert (dealt[:, 1] == dealt[0, 1]).all()
    assert len(np.unique(seen["cards"], axis=0)) == 4
    for table in dealt.reshape(4, -1):
        assert len(np.unique(table)) == 39
    one = gym.make("ChinesePoker-v0", num_players=3)
    for i in range(4):
        alone, _ = one.reset(seed=2 + i, options={"hands": [None, hand]})
        assert (alone["cards"] == seen["cards"][i]).all()


def test_gymnasium_vector_wrappers_and_pictures_work():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make_vec("ChinesePoker-v0", num_envs=3, render_mode="ansi")
        env = gym.wrappers.vector.RecordEpisodeStatistics(env)
        env.reset(seed=1)
        assert all("by suit" in picture for picture in env.render())
        rows = np.repeat([2, 1, 0], [5, 5, 3])[None].repeat(3, 0)
        _, rewards, *_, info = env.step({"declaration": np.zeros(3, int), "placement": rows})
        assert (info["episode"]["r"] == rewards).all()
        assert all("North" in picture for picture in env.render())
        assert env.unwrapped.showdown(1).units[0] == rewards[1]


ROWS = np.repeat([2, 1, 0], [5, 5, 3])
SHOW = {"declaration": np.zeros(2, int), "placement": np.tile(ROWS, (2, 1))}


def test_next_step_keeps_a_deal_that_was_dealt_while_another_ended():
    env = gym.make_vec("ChinesePoker-v0", num_envs=2, autoreset_mode="NextStep")
    env.reset(seed=0)
    env.step(SHOW)
    env.reset(options={"reset_mask": np.array([True, False])})
    seen, _, terminated, _, _ = env.step(SHOW)  # 0 ends, 1 is dealt
    assert terminated.tolist() == [True, False]
    dealt = seen["cards"][1].copy()
    seen, _, terminated, _, info = env.step(SHOW)  # 0 is dealt, 1 plays
    assert terminated.tolist() == [False, True]
    assert (info["hands"][1, 0] == dealt).all()
    assert env.unwrapped.learners.indices.tolist() == [2, 1]


def test_showdown_and_picture_belong_to_the_last_step():
    env = gym.make_vec("ChinesePokerSequential-v0", num_envs=2, render_mode="ansi")
    env.reset(seed=0)
    for card in range(13):
        env.step(np.full(2, ROWS[card]))
    assert env.showdown(1).units
    assert all("North" in picture for picture in env.render())
    env.step(np.full(2, 2))
    with pytest.raises(ActionError, match="ended no deal"):
        env.showdown(1)
    assert all("by suit" in picture for picture in env.render())
    for index in ("0", None, True, 2, -1):
        with pytest.raises(ActionError):
            env.showdown(index)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_what_is_handed_out_is_not_the_tables_own(mode):
    env = gym.make_vec("ChinesePoker-v0", num_envs=2, autoreset_mode=mode)
    env.reset(seed=3)
    *_, info = env.step(SHOW)
    told = info["final_info"] if mode == AutoresetMode.SAME_STEP else info
    units = env.showdown(0).units
    hands = told["hands"].copy()
    env.reset(options={"reset_mask": np.array([False, True])})
    assert (told["hands"] == hands).all()
    for value in told.values():
        if isinstance(value, np.ndarray):
            value[...] = 0
    assert env.showdown(0).units == units
    if mode == AutoresetMode.SAME_STEP:
        assert (info["final_obs"][0]["cards"] == hands[0, 0]).all()


def test_infos_pickle_and_turn_into_lists():
    env = gym.wrappers.vector.DictInfoToList(gym.make_vec("ChinesePoker-v0", num_envs=2))
    env.reset(seed=3)
    *_, infos = env.step(SHOW)
    assert infos[1]["final_obs"]["cards"].shape == (13,)
    assert infos[1]["final_info"]["units"].shape == (2,)
    env = gym.make_vec("ChinesePoker-v0", num_envs=2)
    env.reset(seed=3)
    *_, info = env.step(SHOW)
    again = pickle.loads(pickle.dumps(info))
    assert (again["final_obs"][1]["hand"] == info["final_obs"][1]["hand"]).all()


class Meddler:
    """Writes into everything it is given, or raises."""

    def __init__(self):
        self.raises = False

    def act(self, batch, rng):
        if self.raises:
            raise RuntimeError("no answer")
        batch.hands.sort(axis=1)
        batch.indices += np.uint64(5)
        batch.seeds[:] = 0
        batch.naturals[:] = 0
        rows = np.tile(ROWS[::-1], (len(batch), 1)).astype(np.int8)
        return Actions(np.zeros(len(batch), np.int8), rows)


@pytest.mark.parametrize("num_envs", [1, 2])
def test_a_policy_may_write_into_its_batch(num_envs):
    env = gym.make_vec("ChinesePoker-v0", num_envs=num_envs, opponents=Meddler())
    plain = gym.make_vec("ChinesePoker-v0", num_envs=num_envs)
    env.reset(seed=1)
    plain.reset(seed=1)
    actions = {key: value[:num_envs] for key, value in SHOW.items()}
    for _ in range(3):
        seen, *_, info = env.step(actions)
        other, *_, told = plain.step(actions)
        assert (seen["cards"] == other["cards"]).all()
        assert (info["final_info"]["hands"] == told["final_info"]["hands"]).all()


def test_a_policy_that_raises_leaves_the_hand_as_it_was():
    policy = Meddler()
    env = gym.make_vec("ChinesePokerSequential-v0", num_envs=2, opponents=policy)
    env.reset(seed=1)
    for card in range(12):
        *_, info = env.step(np.full(2, ROWS[card]))
    policy.raises = True
    with pytest.raises(RuntimeError, match="no answer"):
        env.step(np.full(2, ROWS[12]))
    assert (env.action_masks() == info["action_mask"]).all()
    policy.raises = False
    *_, info = env.step(np.full(2, ROWS[12]))
    assert (info["final_info"]["invalid_action"] & 4 == 0).all()  # no row was full
    assert (info["final_info"]["arrangements"][:, 0] == ROWS).all()


@pytest.mark.parametrize(
    "seed",
    [-1, 1.5, "a", True, [1.5, 2], ["a", 1], [True, 1], [[1], [2]], {1: 2, 3: 4}, np.ones((2, 1))],
)
def test_seeds_are_whole_numbers(seed):
    env = gym.make_vec("ChinesePoker-v0", num_envs=2)
    before, _ = env.reset(seed=4)
    with pytest.raises(ActionError):
        env.reset(seed=seed)
    again, _ = env.reset(seed=np.array([4, 5]))
    assert_same(before, again)


def test_generators_put_in_by_hand_name_the_deals():
    cards = []
    for seed in (1, 2, 1):
        env = gym.make("ChinesePoker-v0").unwrapped
        env.np_random = np.random.default_rng(seed)
        cards.append(env.reset()[0]["cards"].tolist())
    assert cards[0] == cards[2] != cards[1]


def test_random_actions_are_legal_in_every_form():
    rng = np.random.default_rng(1)
    for env_id in IDS:
        options = {"mask": "legal"} if "Sequential" in env_id else {}
        env = gym.make_vec(env_id, num_envs=50, strict=True, **options)
        with pytest.raises(ActionError, match="reset"):
            env.legal_actions(rng)
        env.reset(seed=1)
        ended = 0
        while ended < 100:
            actions = env.legal_actions(rng)
            *_, terminated, _, info = env.step(actions)
            if terminated.any():
                ended += terminated.sum()
                status = info["final_info"]["statuses"][terminated, 0]
                assert (status != STATUSES.index("foul")).all()
