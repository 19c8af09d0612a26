"""The engine against the independent reference, on random showdowns under random house rules.

    python tests/compare_reference.py 1000000 --seed 1

Half of the seats hold rigged cards (naturals, quads, straight flushes, wheels) and rows are laid in
mixed ways, so that every status, kind and option meets every other. Exits 1 at the first
disagreement and prints how to reproduce it.
"""

import argparse
import json
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import reference

from cpoker_env import kernels
from cpoker_env.arrangements import arrangement_of, frontier
from cpoker_env.cards import format_card
from cpoker_env.naturals import natural_bits
from cpoker_env.rules import (
    FOUL_ROYALTIES,
    HOMERUN_COUNTS,
    PATTERNS,
    PRESETS,
    ROYALTIES,
    ROYALTY_ROWS,
    SCOOPS,
    TOPOLOGIES,
    Rules,
)
from cpoker_env.scoring import DECLARE, STATUSES, SURRENDER, Settled, account, settle_deals
from cpoker_env.tables import tables_for

DEALS_PER_RULES = 100
ACCOUNT_EVERY = 20


class DisagreementError(AssertionError):
    """The engine and the reference differ on a showdown."""


def random_rules(rng: np.random.Generator, num_seats: int) -> Rules:
    """Random valid rules: a preset with a random share of its options redrawn."""
    preset = str(rng.choice(list(PRESETS)))
    table = {name: int(rng.integers(0, 12)) for name in ROYALTY_ROWS}
    if rng.random() < 0.5:
        del table["royal_middle"], table["royal_back"]
    order = [str(p) for p in rng.permutation(PATTERNS)]
    if rng.random() < 0.5:
        order.remove("no_figure")
    valued = [p for p in order if p != "no_figure" and rng.random() < 0.8] or ["dragon"]
    topology = str(rng.choice(TOPOLOGIES, p=(0.6, 0.25, 0.15)))
    naturals = bool(rng.random() < 0.85)
    drawn: dict[str, Any] = {
        "scoop": str(rng.choice(SCOOPS)),
        "scoop_extra": int(rng.integers(1, 5)),
        "overall_point": int(rng.integers(0, 3)),
        "overall_by": str(rng.choice(["rows", "points"])),
        "royalties": str(rng.choice(ROYALTIES)),
        "royalty_mode": str(rng.choice(["replace", "add"])),
        "royalty_table": table,
        "natural_tiebreak": str(rng.choice(["rank_only", "compare"])),
        "six_pairs_quads": bool(rng.random() < 0.7),
        "six_pairs_trips": bool(rng.random() < 0.7),
        "six_pairs_odd_card": bool(rng.random() < 0.5),
        "surrender_cost": None if rng.random() < 0.2 else int(rng.integers(0, 6)),
        "surrender_vs_foul": str(rng.choice(["surrender_pays", "zero"])),
        "surrender_vs_natural": str(rng.choice(["surrender_cost", "natural_value"])),
        "foul": "as_rows" if rng.random() < 0.5 else int(rng.integers(0, 9)),
        "foul_royalties": str(rng.choice(FOUL_ROYALTIES)),
        "homerun_counts": str(rng.choice(HOMERUN_COUNTS)),
        "wheel": str(rng.choice(["low", "second_high"])),
        "order_ties": str(rng.choice(["strict", "back_middle_ok", "all_ok"])),
        "front_middle_prefix": str(rng.choice(["longer_wins", "equal"])),
    }
    if rng.random() < 0.1:
        return Rules.preset(preset)
    options = {name: value for name, value in drawn.items() if rng.random() < 0.6}
    if options.get("scoop") == "extra":
        options["scoop_extra"] = drawn["scoop_extra"]
    if rng.random() < 0.6:
        options["natural_order"] = order
        options["natural_values"] = {p: int(rng.integers(0, 40)) for p in valued}
        options["naturals"] = naturals
        if naturals and rng.random() < 0.5:
            options["no_figure"] = {"value": int(rng.integers(0, 9))}
    options["topology"] = topology
    if topology == "banker":
        options["banker"] = int(rng.integers(num_seats))
    return Rules.preset(preset, **options)


def _dragon(rng: np.random.Generator) -> list[int]:
    suits = [[s] for s in range(4)] + [[0, 3], [1, 2], [0, 1, 2, 3]]
    held = suits[int(rng.integers(len(suits)))]
    return [4 * rank + int(rng.choice(held)) for rank in range(13)]


def _one_colour(rng: np.random.Generator) -> list[int]:
    suits = [(0, 3), (1, 2)][int(rng.integers(2))]
    return [int(c) for c in rng.permutation([c for c in range(52) if c & 3 in suits])[:13]]


def _ranks_between(low: int, high: int, rng: np.random.Generator) -> list[int]:
    return [int(c) for c in rng.permutation(np.arange(4 * low, 4 * high + 4))[:13]]


def _pairs(rng: np.random.Generator) -> list[int]:
    shape = [(2,) * 6, (4, 2, 2, 2, 2), (4, 4, 2, 2), (3, 2, 2, 2, 2, 2), (4, 3, 2, 2, 2),
             (4, 4, 4), (3, 3, 2, 2, 2, 1), (4, 4, 3, 2)][int(rng.integers(8))]  # fmt: skip
    ranks = rng.permutation(13)[: len(shape)]
    cards = [
        4 * int(rank) + int(suit)
        for rank, count in zip(ranks, shape, strict=True)
        for suit in rng.permutation(4)[:count]
    ]
    while len(cards) < 13:
        card = int(rng.integers(52))
        if card not in cards:
            cards.append(card)
    return cards


def _flushes(rng: np.random.Generator) -> list[int]:
    shape = [(3, 5, 5), (8, 5), (10, 3), (13,), (5, 5, 3)][int(rng.integers(5))]
    suits = rng.permutation(4)
    return [
        4 * int(rank) + int(suit)
        for suit, count in zip(suits, shape, strict=False)
        for rank in rng.permutation(13)[:count]
    ]


def _straights(rng: np.random.Generator) -> list[int]:
    while True:
        tops = [int(rng.integers(3, 13)), int(rng.integers(3, 13)), int(rng.integers(1, 13))]
        ranks = [(top - i) % 13 for top, n in zip(tops, (5, 5, 3), strict=True) for i in range(n)]
        if max(ranks.count(rank) for rank in ranks) <= 4:
            used: Counter[int] = Counter()
            suits = {rank: rng.permutation(4) for rank in range(13)}
            cards = []
            for rank in ranks:
                cards.append(4 * rank + int(suits[rank][used[rank]]))
                used[rank] += 1
            return cards


def _strong(rng: np.random.Generator) -> list[int]:
    """Straight flushes (royal and steel wheel among them), quads and trips thrown together."""
    suit, top = int(rng.integers(4)), int(rng.choice([12, 12, 3, 3, 5, 8]))
    run = [4 * ((top - i) % 13) + suit for i in range(5)]
    rank = int(rng.integers(13))
    cards = list(dict.fromkeys([*run, *(4 * rank + s for s in range(4))]))
    if rng.random() < 0.5:
        cards = list(dict.fromkeys([*(4 * int(r) + s for r in rng.permutation(13)[:3]
                                     for s in range(4)), *cards]))[:13]  # fmt: skip
    while len(cards) < 13:
        card = int(rng.integers(52))
        if card not in cards:
            cards.append(card)
    return cards


def _giant(rng: np.random.Generator) -> list[int]:
    """Trips and two strong fives, which beat ordinary hands in all rows."""
    ranks = [int(rank) for rank in rng.permutation(np.arange(6, 13))[:4]]
    counts = (3, 4, 4, 2) if rng.random() < 0.5 else (3, 3, 3, 4)
    return [4 * rank + int(s) for rank, n in zip(ranks, counts, strict=True)
            for s in rng.permutation(4)[:n]]  # fmt: skip


def _twin(hand: list[int], deck: list[int], rng: np.random.Generator) -> list[int]:
    """Cards of the ranks of another hand, at times but for its odd ones: ties and near ties."""
    ranks = [card >> 2 for card in hand]
    if rng.random() < 0.5:
        ranks = [rank for rank in ranks if ranks.count(rank) % 2 == 0]
    twin: list[int] = []
    for rank in ranks:
        twin += [card for card in deck if card >> 2 == rank and card not in twin][:1]
    return twin


_RIGGED = (
    _dragon,
    _one_colour,
    lambda rng: _ranks_between(0, 7, rng),
    lambda rng: _ranks_between(8, 12, rng),
    lambda rng: [c for c in _ranks_between(0, 12, rng) if not 9 <= c >> 2 <= 11],
    _pairs,
    _flushes,
    _straights,
    _strong,
)


def random_hands(rng: np.random.Generator, num_seats: int) -> list[list[int]]:
    """Hands of one deal; a seat whose rigged cards clash with an earlier seat's is topped up."""
    deck: list[int] = [int(card) for card in rng.permutation(52)]
    hands: list[list[int]] = []
    giant = int(rng.integers(num_seats)) if rng.random() < 0.2 else -1
    are_twins = giant < 0 and rng.random() < 0.12
    for seat in range(num_seats):
        wish: list[int] = []
        if seat == giant:
            wish = _giant(rng)
        elif are_twins and seat == 0:
            wish = [4 * int(rank) + int(s) for rank in rng.permutation(13)[:6]
                    for s in rng.permutation(4)[:2]]  # fmt: skip
        elif hands and giant < 0 and (are_twins or rng.random() < 0.15):
            wish = _twin(hands[-1], deck, rng)
        elif giant < 0 and rng.random() < 0.5:
            wish = _RIGGED[int(rng.integers(len(_RIGGED)))](rng)
        hand = [card for card in dict.fromkeys(wish) if card in deck][:13]
        deck = [card for card in deck if card not in hand]
        fill = 13 - len(hand)
        hand, deck = hand + deck[:fill], deck[fill:]
        hands.append(sorted(hand, reverse=True))
    return hands


def lay_rows(hands: np.ndarray, rules: Rules, rng: np.random.Generator) -> np.ndarray:
    """(M, 13) int8 rows: greedy, uniformly legal, from the frontier, nearly legal, or any split."""
    size = len(hands)
    tables = tables_for(rules)
    laid = np.empty((5, size, 13), np.int8)
    kernels.greedy_into(hands, tables.rows, tables.splits, rules.packed, laid[0])
    kernels.uniform_into(
        hands, rng.integers(2**63, size=size).astype(np.uint64), np.zeros(size, np.uint64),
        np.ones(size, np.int64), tables.rows, tables.splits, rules.packed, laid[1],
    )  # fmt: skip
    laid[2] = rng.permuted(np.tile(np.repeat([0, 1, 2], [3, 5, 5]), (size, 1)), axis=1)
    chosen = rng.choice(5, size=size, p=(0.3, 0.15, 0.2, 0.25, 0.1))
    of_best = np.flatnonzero(chosen >= 3)
    best = frontier(hands[of_best], rules)
    laid[3:, of_best] = best.rows[rng.integers(best.starts[:-1], best.starts[1:])]
    for m in of_best:
        rows = laid[4, m]
        if rng.random() < 0.5:  # middle and back change places
            rows[:] = np.array([0, 2, 1])[rows]
        else:  # two cards change places
            one, other = rng.permutation(13)[:2]
            rows[one], rows[other] = rows[other], rows[one]
    return laid[chosen, np.arange(size)]


def compare(num_deals: int, seed: int, progress: bool = False) -> dict[str, Counter[str]]:
    """Settle `num_deals` random showdowns twice.

    Returns:
        Counts of seats by "status", pairings by "kind", showdowns by "topology" and by "extra"
        ("home run", "front tie", ...), and of "rules" drawn, by preset or changed.

    Raises:
        DisagreementError: With the showdown that reproduces it.
    """
    rng = np.random.default_rng(seed)
    counts: dict[str, Counter[str]] = {
        k: Counter() for k in ("status", "kind", "topology", "extra", "rules")
    }
    done = 0
    while done < num_deals:
        size = min(DEALS_PER_RULES, num_deals - done)
        _compare_batch(size, rng, counts)
        if progress and (done + size) * 10 // num_deals > done * 10 // num_deals:
            print(f"{done + size:,} showdowns agree", flush=True)
        done += size
    return counts


def _compare_batch(size: int, rng: np.random.Generator, counts: dict[str, Counter[str]]) -> None:
    num_seats = int(rng.integers(2, 5))
    rules = random_rules(rng, num_seats)
    options = rules.to_dict()
    hands = np.array([random_hands(rng, num_seats) for _ in range(size)], np.int8)
    flat = hands.reshape(-1, 13)
    rows = lay_rows(flat, rules, rng).reshape(hands.shape)
    bits, _ = natural_bits(flat, rules)
    surrender_share = float(rng.choice([0.05, 0.3]))
    in_play = [PATTERNS.index(p) for p in rules.naturals_in_play]
    declarations = np.zeros(flat.shape[0], np.int8)
    naturals = np.full(flat.shape[0], -1, np.int8)
    for m in range(len(flat)):
        held = [p for p in in_play if bits[m] >> p & 1]
        if held and rng.random() < 0.7:
            declarations[m], naturals[m] = DECLARE, int(rng.choice(held))
        elif rules.surrender_allowed and rng.random() < surrender_share:
            declarations[m] = SURRENDER
    shape = (size, num_seats)
    settled = settle_deals(hands, rows, declarations.reshape(shape), naturals.reshape(shape), rules)
    for deal in range(size):
        arrangements = tuple(
            arrangement_of(hands[deal, s].tolist(), rows[deal, s].tolist())
            for s in range(num_seats)
        )
        seats = [
            {
                **{
                    name: [format_card(card) for card in row]
                    for name, row in zip(("front", "middle", "back"), laid, strict=True)
                },
                "declare": PATTERNS[naturals[m]] if declarations[m] == DECLARE else None,
                "surrender": bool(declarations[m] == SURRENDER),
            }
            for m, laid in enumerate(arrangements, start=deal * num_seats)
        ]
        expected = reference.score(seats, options)
        found = {
            "points": [float(units) for units in settled.units[deal]],
            "status": [STATUSES[status] for status in settled.status[deal]],
        }
        expected_points = [float(units) for units in expected["points"]]
        agrees = (
            np.allclose(found["points"], expected_points, rtol=0, atol=1e-9)
            and found["status"] == expected["status"]
        )
        if agrees and deal % ACCOUNT_EVERY == 0:
            told = account(settled, deal, arrangements, rules)
            found["pairwise"] = [
                {"a": p.a, "b": p.b, "points_to_a": p.units, "kind": p.kind} for p in told.pairwise
            ]
            agrees = found["pairwise"] == expected["pairwise"]
            agrees &= list(told.units) == list(expected["points"])
            agrees &= all(pairing.summary for pairing in told.pairwise)
        if not agrees:
            raise DisagreementError(
                f"engine {found}\nreference {expected}\nrules {json.dumps(options)}\n"
                f"seats {json.dumps(seats)}"
            )
        counts["status"].update(expected["status"])
        counts["kind"].update(pairing["kind"] for pairing in expected["pairwise"])
        counts["topology"][rules.topology] += 1
        _count_extras(seats, options, counts["extra"])
    _count_ties(settled, counts["extra"])
    counts["rules"]["preset" if rules.name in PRESETS else "changed"] += 1


def _count_extras(
    seats: list[dict[str, Any]], options: dict[str, Any], counts: Counter[str]
) -> None:
    if options["scoop"] == "shot_homerun" and len(seats) == 4:
        table = [reference._read_seat(place, seat, options) for place, seat in enumerate(seats)]
        counts["home run"] += any(reference._makes_homerun(seat, table, options) for seat in table)


def _count_ties(settled: Settled, counts: Counter[str]) -> None:
    is_normal = settled.status == STATUSES.index("normal")
    for row, title in enumerate(("front tie", "middle tie", "back tie")):
        # Other hands get numbers of their own below 0.
        own = np.where(is_normal, settled.strengths[:, :, row], -1 - np.arange(is_normal.shape[1]))
        ordered = np.sort(own.astype(np.int64), axis=1)
        counts[title] += int((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).sum())


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("deals", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.perf_counter()
    try:
        counts = compare(arguments.deals, arguments.seed, progress=True)
    except DisagreementError as error:
        print(error, file=sys.stderr)
        return 1
    for title, counter in counts.items():
        print(f"by {title}: " + ", ".join(f"{k} {n:,}" for k, n in counter.most_common()))
    print(f"{arguments.deals:,} showdowns agree, {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
