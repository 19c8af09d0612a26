"""The forms of an action: spaces, masks, unavailable actions, what the masks promise."""

import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cpoker_env
from cpoker_env.arrangements import NUM_ARRANGEMENTS, evaluate, frontier, rows_at
from cpoker_env.env import ChinesePokerEnv
from cpoker_env.errors import ActionError, ConfigError
from cpoker_env.forms import FORMS
from cpoker_env.policy import decisions_for
from cpoker_env.row_values import row_values
from cpoker_env.rules import Rules

BANK = Rules.preset("italian", topology="banker", banker=1)
BANK_HERE = Rules.preset("italian", topology="banker", banker=0)
POOL = Rules.preset("italian", topology="pool")
LOOSE = Rules.preset("mandarin", order_ties="all_ok", front_middle_prefix="equal")
VARIANTS = [
    ("ChinesePokerFlat-v0", {}),
    ("ChinesePokerSequential-v0", {}),
    ("ChinesePokerSequential-v0", {"mask": "legal"}),
    ("ChinesePokerCandidates-v0", {}),
    ("ChinesePokerCandidates-v0", {"num_candidates": 3}),
]


@pytest.mark.parametrize("rules", ["mandarin", BANK, BANK_HERE, POOL], ids=lambda r: str(r)[:8])
@pytest.mark.parametrize(("env_id", "options"), VARIANTS)
def test_check_env_is_silent(env_id, options, rules):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, rules=rules, num_players=3, **options).unwrapped)


@pytest.mark.parametrize("form", FORMS)
def test_sessions_take_every_form(form):
    env = gym.make("ChinesePokerSession-v0", form=form, max_deals=3, buy_in=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    steps = 0
    while True:
        _, _, terminated, truncated, info = env.step(
            env.action_space.sample(mask=info["action_mask"])
        )
        steps += 1
        if terminated or truncated:
            break
    assert info["deals_played"] == 3
    assert steps >= 3


@pytest.mark.parametrize("form", FORMS)
def test_docstring_tables_match_the_spaces(form):
    env = ChinesePokerEnv(form=form)
    docs = FORMS[form].__doc__ or ""
    rows = dict(re.findall(r"\| `(\w+)` \| (\([\w, ]+\)) \|", docs))
    added = set(env.observation_space) - {"cards", "hand", "naturals"}
    assert set(rows) == added
    for name in added:
        space = env.observation_space[name]
        assert space.shape == eval(rows[name], {"num_candidates": 32}), name
        assert f"| `{name}` | {rows[name]} | {space.dtype} |" in docs


@pytest.mark.parametrize(("env_id", "options"), [("ChinesePoker-v0", {}), *VARIANTS])
def test_masks_reach_through_gymnasium_wrappers(env_id, options):
    plain = gym.make(env_id, rules="western", **options)
    env = gym.wrappers.RecordEpisodeStatistics(
        gym.wrappers.TransformReward(
            gym.wrappers.TimeLimit(gym.make(env_id, rules="western", **options), 50), float
        )
    )
    env.reset(seed=4)
    _, info = plain.reset(seed=4)
    masks = env.get_wrapper_attr("action_masks")()
    if env_id == "ChinesePoker-v0":
        assert masks["declaration"].tolist() == info["action_mask"]["declaration"].tolist()
    elif env_id == "ChinesePokerFlat-v0":
        assert masks.tolist() == np.concatenate(info["action_mask"]).tolist()
        assert len(masks) == sum(env.action_space.nvec)
    else:
        assert masks.tolist() == info["action_mask"].tolist()
        assert len(masks) == env.action_space.n


def play_masked(env, deals, seed):
    """Statuses of the learner over deals of random masked actions."""
    env.action_space.seed(seed)
    env.reset(seed=seed)
    for _ in range(deals):
        _, info = env.reset()
        terminated = False
        while not terminated:
            mask = info["action_mask"]
            mask[3:] = 0
            _, _, terminated, _, info = env.step(env.action_space.sample(mask=mask))
            assert "invalid_action" not in info or "a foul" in info["invalid_action"]
        yield info["statuses"][0]


@pytest.mark.parametrize("rules", ["mandarin", LOOSE], ids=["strict", "loose"])
def test_the_legal_mask_never_leads_to_a_foul(rules):
    legal = gym.make("ChinesePokerSequential-v0", rules=rules, mask="legal", strict=True)
    assert set(play_masked(legal, 150, 1)) == {"normal"}
    capacity = gym.make("ChinesePokerSequential-v0", rules=rules)
    assert set(play_masked(capacity, 150, 1)) == {"normal", "foul"}


ALL = rows_at(np.arange(NUM_ARRANGEMENTS))


@pytest.mark.parametrize("rules", ["mandarin", LOOSE], ids=["strict", "loose"])
def test_the_legal_mask_forbids_exactly_what_only_fouls_follow(rules):
    env = ChinesePokerEnv(form="sequential", mask="legal", rules=rules)
    rng = np.random.default_rng(2)
    forbidden = 0
    for deal in range(8):
        seen, info = env.reset(seed=deal)
        read = env.rules
        _, is_legal = evaluate(np.tile(seen["cards"], (len(ALL), 1)), ALL, read)
        legal = ALL[is_legal]
        for card in range(13):
            can = np.isin([0, 1, 2], legal[:, card])
            assert info["action_mask"][:3].tolist() == can.astype(int).tolist()
            forbidden += int(((seen["room"] > 0) & ~can).sum())
            row = rng.choice(np.flatnonzero(can))
            legal = legal[legal[:, card] == row]
            seen, _, terminated, _, info = env.step(row)
        assert terminated
        assert len(legal) == 1
    assert forbidden > 10


def test_sequential_declares_at_the_first_step_only():
    dragon = "As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s"
    env = ChinesePokerEnv(form="sequential")
    _, info = env.reset(seed=1, options={"hands": [dragon]})
    assert info["action_mask"].tolist() == [1, 1, 1, 1, 1]
    seen, reward, terminated, _, info = env.step(4)
    assert terminated
    assert reward == 13
    assert seen["next_card"].sum() == 0
    assert info["statuses"][0] == "natural"
    env.reset(seed=1, options={"hands": [dragon]})
    seen, _, terminated, _, info = env.step(2)
    assert not terminated
    assert info["action_mask"].tolist() == [1, 1, 1, 0, 0]
    assert seen["room"].tolist() == [3, 5, 4]
    assert seen["rows"].tolist() == [2] + [3] * 12
    assert np.flatnonzero(seen["next_card"]).tolist() == [seen["cards"][1]]
    seen, *_ = env.step(4)  # too late: the card goes to the first row with room
    assert seen["rows"][:2].tolist() == [2, 0]
    for _ in range(11):
        seen, reward, terminated, _, info = env.step(0)
    assert terminated
    assert info["statuses"][0] == "foul"
    assert "no natural to declare" in info["invalid_action"]
    assert "the row is full" in info["invalid_action"]
    assert seen["next_card"].sum() == 0
    assert info["action_mask"][:3].any()


def test_a_late_surrender_places_the_card():
    env = ChinesePokerEnv(form="sequential")
    env.reset(seed=1)
    env.step(2)
    seen, _, terminated, _, _ = env.step(3)
    assert not terminated
    assert seen["rows"][:3].tolist() == [2, 0, 3]
    strict = ChinesePokerEnv(form="sequential", strict=True)
    strict.reset(seed=1)
    strict.step(2)
    with pytest.raises(ActionError, match="surrender is not available"):
        strict.step(3)


def test_a_row_that_is_overfull_has_no_room():
    env = ChinesePokerEnv(form="sequential")
    env.reset(seed=1)
    for place in range(13):
        seen, *_ = env.step(0)
        assert seen["room"].tolist() == [max(2 - place, 0), 5, 5]
        assert env.observation_space.contains(seen)


def test_strict_refuses_a_full_row_and_keeps_the_place():
    env = ChinesePokerEnv(form="sequential", strict=True)
    env.reset(seed=1)
    for _ in range(3):
        env.step(0)
    with pytest.raises(ActionError, match="row is full"):
        env.step(0)
    seen, *_ = env.step(1)
    assert seen["rows"][:5].tolist() == [0, 0, 0, 1, 3]


@pytest.mark.parametrize("rules", ["mandarin", "four_two", BANK, POOL], ids=lambda r: str(r)[:8])
def test_candidates_are_the_best_of_the_frontier(rules):
    env = ChinesePokerEnv(form="candidates", rules=rules, num_candidates=1024)
    short = ChinesePokerEnv(form="candidates", rules=rules, num_candidates=4)
    balanced = cpoker_env.make_policy("balanced", rules)
    for deal in range(20):
        seen, info = env.reset(seed=deal)
        few, _ = short.reset(seed=deal)
        count = int(seen["candidate_mask"].sum())
        whole = frontier(seen["cards"][None], env.rules)
        assert count == min(len(whole.rows), 1024)
        rows = seen["candidate_rows"][:count]
        laid, is_legal = evaluate(np.tile(seen["cards"], (count, 1)), rows, env.rules)
        assert is_legal.all()
        assert set(map(tuple, laid.tolist())) <= set(map(tuple, whole.strengths.tolist()))
        assert len(np.unique(laid, axis=0)) == count
        assert (np.diff(seen["candidates"][:count, 9]) <= 0).all()
        assert (few["candidate_rows"] == seen["candidate_rows"][:4]).all()
        assert (info["action_mask"][:count] == 1).all()
        assert (info["action_mask"][count:1024] == 0).all()
        answer = balanced.act(
            decisions_for(seen["cards"][None], env.rules), np.random.default_rng(0)
        )
        told, _ = evaluate(seen["cards"][None], answer.rows, env.rules)
        assert (told[0] == laid[0]).all()
        np.testing.assert_allclose(seen["candidates"][:count, 0], laid[:, 0] / 454, rtol=1e-6)


def test_a_candidate_that_does_not_exist_shows_the_first():
    env = ChinesePokerEnv(form="candidates", num_candidates=1024)
    seen, info = env.reset(seed=3)
    missing = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, _, _, _, info = env.step(missing)
    assert "no such candidate" in info["invalid_action"]
    first = seen["cards"][seen["candidate_rows"][0] == 2]
    assert info["arrangements"][0].back == tuple(first.tolist())
    strict = ChinesePokerEnv(form="candidates", num_candidates=1024, strict=True)
    strict.reset(seed=3)
    with pytest.raises(ActionError, match="no such candidate"):
        strict.step(missing)


@pytest.mark.parametrize(
    ("form", "action"),
    [
        ("flat", np.zeros(13, int)),
        ("flat", np.full(14, 3)),
        ("flat", "front"),
        ("sequential", 5),
        ("sequential", -1),
        ("sequential", 1.5),
        ("sequential", None),
        ("candidates", 34),
        ("candidates", [0, 1]),
    ],
)
def test_actions_outside_the_space_raise(form, action):
    env = ChinesePokerEnv(form=form)
    env.reset(seed=1)
    with pytest.raises(ActionError):
        env.step(action)


def test_unknown_forms_and_options_raise():
    with pytest.raises(ConfigError, match="choose one of structured, flat"):
        ChinesePokerEnv(form="cards")
    with pytest.raises(ConfigError, match="it takes mask"):
        ChinesePokerEnv(form="sequential", num_candidates=3)


@pytest.mark.parametrize("rules", ["mandarin", BANK, BANK_HERE], ids=["plain", "against", "bank"])
def test_candidate_features_are_the_tables_of_row_values(rules):
    env = ChinesePokerEnv(form="candidates", rules=rules, num_candidates=200, num_players=3)
    bank = env.rules.banker
    tables = row_values(env.rules, 3)[0 if bank is None else 1 if bank == 0 else -1]
    for deal in range(5):
        seen, _ = env.reset(seed=deal)
        count = int(seen["candidate_mask"].sum())
        assert count < 200
        assert not seen["candidates"][count:].any()
        assert not seen["candidate_rows"][count:].any()
        hands = np.tile(seen["cards"], (count, 1))
        laid, _ = evaluate(hands, seen["candidate_rows"][:count], env.rules)
        shown = seen["candidates"][:count]
        for row, strongest in enumerate((454, 7461, 7461)):
            np.testing.assert_allclose(shown[:, row], laid[:, row] / strongest, rtol=1e-6)
            wins, losses = tables.wins[row][laid[:, row]], tables.losses[row][laid[:, row]]
            np.testing.assert_allclose(shown[:, 3 + row], wins, atol=1e-6)
            np.testing.assert_allclose(shown[:, 6 + row], losses, atol=1e-6)
        np.testing.assert_allclose(shown[:, 9], tables.of(laid), rtol=1e-5)


def test_a_tie_is_the_banks_row_in_the_tables():
    sides = row_values(BANK, 2)
    for row in range(3):
        against, with_bank = sides[-1], sides[1]
        never_tied = with_bank.wins[row] == against.wins[row]
        assert (with_bank.wins[row] >= against.wins[row]).all()
        assert not never_tied.all()
        np.testing.assert_allclose(with_bank.wins[row] + with_bank.losses[row], 1)
        np.testing.assert_allclose(against.wins[row] + against.losses[row], 1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint32, np.uint64, np.int64])
def test_candidates_take_every_integer_type(dtype):
    env = ChinesePokerEnv(form="candidates", num_candidates=100)
    rewards = []
    for action in (0, 3, 100):
        env.reset(seed=2)
        rewards.append(env.step(dtype(action))[1])
    again = []
    for action in (0, 3, 100):
        env.reset(seed=2)
        again.append(env.step(action)[1])
    assert rewards == again


def test_a_lost_hand_reopens_its_rows_under_the_legal_mask():
    env = ChinesePokerEnv(form="sequential", mask="legal")
    strict = ChinesePokerEnv(form="sequential", mask="legal", strict=True)
    for deal in range(40):
        seen, info = env.reset(seed=deal)
        strict.reset(seed=deal)
        for _ in range(13):
            mask = info["action_mask"][:3]
            shut = np.flatnonzero((mask == 0) & (seen["room"] > 0))
            if len(shut):
                with pytest.raises(ActionError, match="a foul"):
                    strict.step(shut[0])
                seen, _, _, _, info = env.step(shut[0])
                assert (info["action_mask"][:3] == (seen["room"] > 0)).all()
                return
            row = int(np.flatnonzero(mask)[0])
            seen, _, _, _, info = env.step(row)
            strict.step(row)
    raise AssertionError("no row was ever shut")
