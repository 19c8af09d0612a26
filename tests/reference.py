"""Slow, plain scorer of 13-card closed Chinese poker, the judge of the fast kernels.

Written from the rules text alone and importing nothing of the project, so that a mistake in the
kernels is not repeated here. Input is trusted: cards are valid, a declared natural is held.

Cards are text such as "As" or "Td". A hand's rank is a tuple that compares as the hand does:
(category, ranks in order of weight); three-card rows use the categories of five-card rows.
Points are counted pair by pair (`score`), or by row from a pool (`_score_pool`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

Options = dict[str, Any]
Rank = tuple[int, ...]

HIGH_CARD, PAIR, TWO_PAIRS, TRIPS, STRAIGHT, FLUSH, FULL_HOUSE, QUADS, STRAIGHT_FLUSH = range(9)
RANK_OF = {text: rank for rank, text in enumerate("23456789TJQKA", start=2)}
ACE = 14
# Straights are ranked by their top card. Ace high is one above the ace itself, which leaves 14
# for A-2-3-4-5 (and A-2-3) where the house ranks it second highest.
ACE_HIGH_TOP, SECOND_HIGH_TOP = 15, 14

TABLE_ROWS = ["front_trips", "middle_full", "middle_quads", "back_quads", "middle_sf", "back_sf"]
FLAT_TABLE = dict(zip(TABLE_ROWS, (3, 2, 4, 4, 5, 5), strict=True))
DOUBLED_TABLE = dict(zip(TABLE_ROWS, (3, 2, 8, 4, 10, 5), strict=True))

# Naturals low to high. Minor and senior stand between these two, but only Mandarin pays them.
LOW_NATURALS = ["three_straights", "three_flushes", "six_pairs"]
HIGH_NATURALS = ["all_one_colour", "dragon", "colour_dragon", "pure_dragon"]
PAID_NATURALS = LOW_NATURALS + HIGH_NATURALS
WESTERN_VALUES = dict(zip(PAID_NATURALS, (4, 4, 4, 4, 4, 8, 8), strict=True))
EASTERN_VALUES = dict(zip(PAID_NATURALS, (3, 3, 3, 13, 13, 13, 13), strict=True))
MANDARIN_VALUES = dict(zip(PAID_NATURALS, (3, 3, 3, 13, 13, 26, 39), strict=True))
MANDARIN_VALUES |= {"minor": 6, "senior": 6}

BASIC: Options = {
    "wheel": "low",
    "order_ties": "strict",
    "front_middle_prefix": "longer_wins",
    "royalties": "off",
    "royalty_mode": "replace",
    "royalty_table": FLAT_TABLE,
    "scoop": "none",
    "scoop_extra": 3,
    "overall_point": 0,
    "overall_by": "rows",
    "naturals": False,
    "natural_values": {"six_pairs": 3, "three_straights": 3, "three_flushes": 3, "dragon": 13},
    "natural_order": ["six_pairs", "three_straights", "three_flushes", "dragon"],
    "natural_tiebreak": "compare",
    "six_pairs_quads": True,
    "six_pairs_trips": True,
    "six_pairs_odd_card": False,
    "surrender_cost": None,
    "surrender_vs_foul": "surrender_pays",
    "surrender_vs_natural": "surrender_cost",
    "foul": "as_rows",
    "foul_royalties": "as_rows",
    "homerun_counts": "compared_only",
    "topology": "all_pairs",
    "banker": None,
    "no_figure": None,
}
WESTERN: Options = {
    **BASIC,
    "overall_point": 1,
    "naturals": True,
    "natural_values": WESTERN_VALUES,
    "natural_order": [*LOW_NATURALS, "senior", "minor", *HIGH_NATURALS],
    "natural_tiebreak": "rank_only",
    "surrender_cost": 3,
    "foul": 4,
    "foul_royalties": "none",
}
EASTERN: Options = {
    **WESTERN,
    "royalties": "win_only",
    "royalty_table": DOUBLED_TABLE,
    "overall_point": 0,
    "natural_values": EASTERN_VALUES,
    "foul": 3,
    "foul_royalties": "add",
}
MANDARIN: Options = {
    **EASTERN,
    "royalty_mode": "add",
    "scoop": "shot_homerun",
    "natural_values": MANDARIN_VALUES,
    "foul": 6,
}
PRESETS: dict[str, Options] = {
    "basic": BASIC,
    "special": {**BASIC, "royalties": "win_only", "naturals": True},
    "italian": {**BASIC, "royalties": "win_only", "scoop": "extra", "naturals": True},
    "western": WESTERN,
    "eastern": EASTERN,
    "mandarin": MANDARIN,
    "four_two": {**BASIC, "overall_point": 1, "foul": 4},
}


def rank_five(cards: Sequence[str], options: Options) -> Rank:
    """Rank of a five-card row; `wheel` places A-2-3-4-5."""
    groups = _groups(cards)
    ranks = tuple(rank for _, rank in groups)
    counts = tuple(count for count, _ in groups)
    top = _straight_windows(5, options["wheel"]).get(ranks)
    is_flush = len({card[1] for card in cards}) == 1
    if top is not None:
        return (STRAIGHT_FLUSH if is_flush else STRAIGHT, top)
    if is_flush:
        return (FLUSH, *ranks)
    categories = {
        (4, 1): QUADS,
        (3, 2): FULL_HOUSE,
        (3, 1, 1): TRIPS,
        (2, 2, 1): TWO_PAIRS,
        (2, 1, 1, 1): PAIR,
        (1, 1, 1, 1, 1): HIGH_CARD,
    }
    return (categories[counts], *ranks)


def rank_three(cards: Sequence[str]) -> Rank:
    """Rank of a front: trips, pair or high card; straights and flushes do not count."""
    groups = _groups(cards)
    category = {3: TRIPS, 2: PAIR, 1: HIGH_CARD}[groups[0][0]]
    return (category, *(rank for _, rank in groups))


def _ranks(cards: Iterable[str]) -> list[int]:
    return [RANK_OF[card[0]] for card in cards]


def _groups(cards: Iterable[str]) -> list[tuple[int, int]]:
    """(count, rank) of every rank in the cards, most weighty first."""
    counts: dict[int, int] = {}
    for rank in _ranks(cards):
        counts[rank] = counts.get(rank, 0) + 1
    return sorted(((count, rank) for rank, count in counts.items()), reverse=True)


@cache
def _straight_windows(size: int, wheel: str) -> dict[Rank, int]:
    """The straights of `size` different ranks, each high to low, with the top they rank by."""
    windows = {
        tuple(range(top, top - size, -1)): ACE_HIGH_TOP if top == ACE else top
        for top in range(size + 1, ACE + 1)
    }
    ace_low = (ACE, *range(size, 1, -1))
    windows[ace_low] = size if wheel == "low" else SECOND_HIGH_TOP
    return windows


def is_foul(
    front: Sequence[str], middle: Sequence[str], back: Sequence[str], options: Options
) -> bool:
    """Whether the rows are out of order: each must beat the one before it."""
    ranks = (rank_three(front), rank_five(middle, options), rank_five(back, options))
    return _is_out_of_order(ranks, options)


def _is_out_of_order(ranks: tuple[Rank, Rank, Rank], options: Options) -> bool:
    front, middle, back = ranks
    # Where the front is a prefix of the middle, the longer tuple compares higher.
    compared = len(front) if options["front_middle_prefix"] == "equal" else len(middle)
    middle_is_fine = middle[:compared] > front
    back_is_fine = back > middle
    if options["order_ties"] == "all_ok":
        middle_is_fine = middle[:compared] >= front
    if options["order_ties"] in ("all_ok", "back_middle_ok"):
        back_is_fine = back >= middle
    return not (middle_is_fine and back_is_fine)


def natural_patterns(cards: Sequence[str], options: Options = BASIC) -> set[str]:
    """Every natural the 13 cards hold, whether or not the house pays for it."""
    wheel = options["wheel"]
    ranks = set(_ranks(cards))
    suits = {card[1] for card in cards}
    is_one_colour = suits <= set("cs") or suits <= set("dh")
    is_dragon = len(ranks) == 13
    holds = {
        "pure_dragon": is_dragon and len(suits) == 1,
        "colour_dragon": is_dragon and is_one_colour,
        "dragon": is_dragon,
        "all_one_colour": is_one_colour,
        "minor": max(ranks) <= 9,
        "senior": min(ranks) >= 10,
        "six_pairs": _is_six_pairs(cards, options),
        "three_flushes": any(True for _ in _flush_splits(cards, (5, 5, 3))),
        "three_straights": any(True for _ in _straight_splits(_ranks(cards), (5, 5, 3), wheel)),
        "no_figure": not ranks & {RANK_OF[text] for text in "JQK"},
    }
    return {name for name, is_held in holds.items() if is_held}


def best_natural(cards: Sequence[str], options: Options) -> str | None:
    """The highest natural of the house's ladder that the 13 cards hold, if any."""
    if not options["naturals"] or options["topology"] == "pool":
        return None
    held = natural_patterns(cards, options)
    return next((name for name in reversed(_naturals_in_play(options)) if name in held), None)


def _naturals_in_play(options: Options) -> dict[str, int]:
    """Name and value of the naturals the house pays, in ladder order, low to high."""
    order, values = list(options["natural_order"]), dict(options["natural_values"])
    values.pop("no_figure", None)
    if options["no_figure"] is not None:
        values["no_figure"] = options["no_figure"]["value"]
        if "no_figure" not in order:
            order.insert(0, "no_figure")
    return {name: values[name] for name in order if name in values}


def _natural_key(name: str, cards: Sequence[str], options: Options) -> tuple[Any, ...]:
    """What two equal naturals are compared by; () where they always tie."""
    if name == "six_pairs":
        groups = _groups(cards)
        # Quads are two equal pairs; the one rank of odd count holds the odd card.
        pairs = sorted((rank for count, rank in groups for _ in range(count // 2)), reverse=True)
        odd_card = [rank for count, rank in groups if count % 2 == 1]
        return (pairs, odd_card) if options["six_pairs_odd_card"] else (pairs,)
    if name == "three_flushes":
        return max(_flush_splits(cards, (5, 5, 3)))
    if name == "three_straights":
        return max(_straight_splits(_ranks(cards), (5, 5, 3), options["wheel"]))
    return ()


def _is_six_pairs(cards: Sequence[str], options: Options) -> bool:
    counts = [count for count, _ in _groups(cards)]
    if 4 in counts and not options["six_pairs_quads"]:
        return False
    if 3 in counts and not options["six_pairs_trips"]:
        return False
    return sum(count // 2 for count in counts) == 6


def _flush_splits(cards: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[Rank, ...]]:
    """The ranks, row by row, of every way to part the cards into flushes of the given sizes."""
    if not sizes:
        yield ()
        return
    for suit in "cdhs":
        of_suit = [card for card in cards if card[1] == suit]
        for row in combinations(of_suit, sizes[0]):
            rest = [card for card in cards if card not in row]
            row_ranks = tuple(sorted(_ranks(row), reverse=True))
            for later_rows in _flush_splits(rest, sizes[1:]):
                yield (row_ranks, *later_rows)


def _straight_splits(ranks: list[int], sizes: Sequence[int], wheel: str) -> Iterator[Rank]:
    """The tops, row by row, of every way to part the ranks into straights of the given sizes."""
    if not sizes:
        yield ()
        return
    for window, top in _straight_windows(sizes[0], wheel).items():
        if set(window) <= set(ranks):
            rest = list(ranks)
            for rank in window:
                rest.remove(rank)
            for later_tops in _straight_splits(rest, sizes[1:], wheel):
                yield (top, *later_tops)


@dataclass
class _Seat:
    """A seat at showdown; `ranks` and `royalties` (front, middle, back) only when normal."""

    index: int
    status: str
    cards: list[str]
    natural: str = ""
    ranks: tuple[Rank, ...] = ()
    royalties: tuple[int, ...] = ()


def _read_seat(index: int, seat: dict[str, Any], options: Options) -> _Seat:
    cards = seat.get("cards") or [*seat["front"], *seat["middle"], *seat["back"]]
    if seat.get("surrender"):
        return _Seat(index, "surrender", cards)
    if seat.get("declare") and options["topology"] != "pool":
        return _Seat(index, "natural", cards, natural=seat["declare"])
    middle, back = rank_five(seat["middle"], options), rank_five(seat["back"], options)
    ranks = (rank_three(seat["front"]), middle, back)
    if _is_out_of_order(ranks, options):
        return _Seat(index, "foul", cards)
    return _Seat(index, "normal", cards, ranks=ranks, royalties=_royalties(ranks, options))


def _royalties(ranks: Sequence[Rank], options: Options) -> tuple[int, ...]:
    """What the table says for (front, middle, back); 0 for a row without a royalty."""
    if options["royalties"] == "off":
        return (0, 0, 0)
    table = options["royalty_table"]
    front = table["front_trips"] if ranks[0][0] == TRIPS else 0
    return (front, _royalty("middle", ranks[1], table), _royalty("back", ranks[2], table))


def _royalty(row: str, rank: Rank, table: dict[str, int]) -> int:
    if rank[0] == FULL_HOUSE and row == "middle":
        return table["middle_full"]
    if rank[0] == QUADS:
        return table[f"{row}_quads"]
    if rank[0] == STRAIGHT_FLUSH and rank[1] == ACE_HIGH_TOP:
        return table.get(f"royal_{row}", table[f"{row}_sf"])
    return table[f"{row}_sf"] if rank[0] == STRAIGHT_FLUSH else 0


def score(seats: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    """Points (they sum to 0), statuses and pair results of one showdown.

    Seats, options and result are in the form of the scored showdowns; a shared pool row makes
    points a Fraction, `pairwise` runs in seat order with a < b and is empty for a pool.
    """
    table = [_read_seat(index, seat, options) for index, seat in enumerate(seats)]
    status = [seat.status for seat in table]
    if options["topology"] == "pool":
        return {"points": _score_pool(table), "status": status, "pairwise": []}
    homerun_seats = {seat.index for seat in table if _makes_homerun(seat, table, options)}
    points = [0] * len(table)
    pairwise = []
    for a, b in combinations(table, 2):
        if not _meet(a, b, options):
            continue
        points_to_a, kind = _score_pair(a, b, homerun_seats, options)
        points[a.index] += points_to_a
        points[b.index] -= points_to_a
        pairwise.append({"a": a.index, "b": b.index, "points_to_a": points_to_a, "kind": kind})
    return {"points": points, "status": status, "pairwise": pairwise}


def _meet(a: _Seat, b: _Seat, options: Options) -> bool:
    return options["topology"] != "banker" or options["banker"] in (a.index, b.index)


def _makes_homerun(seat: _Seat, table: list[_Seat], options: Options) -> bool:
    """Whether the seat beats three opponents in all rows (a tripled shot)."""
    opponents = [other for other in table if other is not seat and _meet(seat, other, options)]
    if options["scoop"] != "shot_homerun" or seat.status != "normal" or len(opponents) != 3:
        return False
    counted = {"foul_counts": ["foul"], "foul_and_surrender_count": ["foul", "surrender"]}
    also_beaten = counted.get(options["homerun_counts"], [])
    return all(
        other.status in also_beaten
        or (other.status == "normal" and _compare_rows(seat, other, options) == [1, 1, 1])
        for other in opponents
    )


def _score_pair(a: _Seat, b: _Seat, homerun_seats: set[int], options: Options) -> tuple[int, str]:
    """Points that b pays a, and the kind of meeting it was."""
    order = ["normal", "natural", "foul", "surrender"]
    if order.index(a.status) > order.index(b.status):
        points_to_b, kind = _score_pair(b, a, homerun_seats, options)
        return -points_to_b, kind
    values = _naturals_in_play(options)
    match a.status, b.status:
        case "normal", "normal":
            return _score_rows(a, b, homerun_seats, options), "rows"
        case "normal", "natural":
            return -values[b.natural], "natural"
        case "normal", "foul":
            return _foul_price(a, options), "foul"
        case "natural", "natural":
            winner = _better_natural(a, b, options)
            if winner is None:
                return 0, "natural_tie"
            value = values[winner.natural]
            return (value if winner is a else -value), "natural"
        case "natural", "foul":
            return values[a.natural], "natural"
        case "natural", "surrender" if options["surrender_vs_natural"] == "natural_value":
            return values[a.natural], "surrender"
        case "foul", "foul":
            return 0, "foul_both"
        case "foul", "surrender" if options["surrender_vs_foul"] == "zero":
            return 0, "surrender_vs_foul"
        case "surrender", "surrender":
            return 0, "surrender_both"
        case _:
            return options["surrender_cost"], "surrender"


def _better_natural(a: _Seat, b: _Seat, options: Options) -> _Seat | None:
    """Whichever natural stands higher, by ladder and then by cards; None for a tie."""
    if a.natural != b.natural:
        ladder = list(_naturals_in_play(options))
        return a if ladder.index(a.natural) > ladder.index(b.natural) else b
    if options["natural_tiebreak"] == "rank_only":
        return None
    key_a, key_b = (_natural_key(seat.natural, seat.cards, options) for seat in (a, b))
    return None if key_a == key_b else a if key_a > key_b else b


def _compare_rows(a: _Seat, b: _Seat, options: Options) -> list[int]:
    """Per row 1 where a wins, -1 where b wins, 0 for a tie; the bank wins its ties."""
    tie = 0
    if options["topology"] == "banker":
        tie = 1 if a.index == options["banker"] else -1
    return [
        (rank_a > rank_b) - (rank_a < rank_b) or tie
        for rank_a, rank_b in zip(a.ranks, b.ranks, strict=True)
    ]


def _score_rows(a: _Seat, b: _Seat, homerun_seats: set[int], options: Options) -> int:
    """Points that b pays a when both are normal hands."""
    results = _compare_rows(a, b, options)
    units = royalties = 0
    for row, result in enumerate(results):
        winner = a if result > 0 else b
        royalty = winner.royalties[row] if options["royalties"] == "win_only" else 0
        royalties += result * royalty
        if not royalty or options["royalty_mode"] == "add":
            units += result
    if options["royalties"] == "protection":
        royalties = _protection(a) - _protection(b)
    scooper = 1 if results == [1, 1, 1] else -1 if results == [-1, -1, -1] else 0
    multiple = 3 if (a if scooper > 0 else b).index in homerun_seats else 2
    points = _add_scoop(units, royalties, scooper, multiple, options)
    lead = points if options["overall_by"] == "points" else sum(results)
    return points + int(options["overall_point"]) * ((lead > 0) - (lead < 0))


def _protection(seat: _Seat) -> int:
    """What each ordinary opponent pays for the seat's royalties, won or lost."""
    return sum(max(royalty - 1, 0) for royalty in seat.royalties)


def _add_scoop(units: int, royalties: int, scooper: int, multiple: int, options: Options) -> int:
    """Units and royalties together, and the scoop for `scooper` (1, -1, or 0 for nobody)."""
    if scooper and options["scoop"] == "extra":
        return units + royalties + scooper * int(options["scoop_extra"])
    if scooper and options["scoop"] == "double_all":
        return 2 * (units + royalties)
    if scooper and options["scoop"] == "shot_homerun":
        return multiple * units + royalties
    return units + royalties


def _foul_price(winner: _Seat, options: Options) -> int:
    """What a fouled hand pays a normal one."""
    units, royalties = 3, 0
    if options["foul_royalties"] != "none":
        if options["royalties"] == "protection":
            royalties = _protection(winner)
        else:
            royalties = sum(winner.royalties)
            if options["foul_royalties"] == "as_rows" and options["royalty_mode"] == "replace":
                units = winner.royalties.count(0)
    if options["foul"] == "as_rows":
        return _add_scoop(units, royalties, 1, 2, options) + int(options["overall_point"])
    # A fixed price stands for the three units, those that a royalty replaces come off it.
    return int(options["foul"]) - (3 - units) + royalties


def _score_pool(table: list[_Seat]) -> list[int | Fraction]:
    """Points per seat: 3 paid in, each row's best hands share as many as there are seats."""
    normal = [seat for seat in table if seat.status == "normal"]
    if not normal:
        return [0] * len(table)
    points = [Fraction(-3)] * len(table)
    winners_of_rows = []
    for row in range(3):
        best = max(seat.ranks[row] for seat in normal)
        winners = [seat.index for seat in normal if seat.ranks[row] == best]
        winners_of_rows.append(winners)
        for index in winners:
            points[index] += Fraction(len(table), len(winners))
    if all(winners == [winners_of_rows[0][0]] for winners in winners_of_rows):
        for seat in normal:
            points[seat.index] -= 3
        points[winners_of_rows[0][0]] += 3 * len(normal)
    return [int(value) if value.denominator == 1 else value for value in points]
