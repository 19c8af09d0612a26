"""The one scoring engine: a batch of deals to units, or one showdown to an account of who owes
whom and why.

Everything counts through `settle_deals`; the arithmetic is in `kernels.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cpoker_env import kernels
from cpoker_env.arrangements import (
    ROW_SIZES,
    Arrangement,
    IntArray,
    arrangement_of,
    describe_row,
    parse_arrangement,
    rows_of,
    royalty_title,
)
from cpoker_env.cards import Card, format_card, format_cards, parse_hand
from cpoker_env.errors import ArrangementError, CardError, DeclarationError, ShowdownError
from cpoker_env.naturals import TITLES, natural_bits
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.tables import tables_for

SEAT_NAMES = ("North", "East", "South", "West")
STATUSES = ("normal", "foul", "surrender", "natural")
KINDS = (
    "rows",
    "natural",
    "natural_tie",
    "foul",
    "foul_both",
    "surrender",
    "surrender_both",
    "surrender_vs_foul",
)
SHOW, SURRENDER, DECLARE = range(3)
Units: TypeAlias = int | Fraction


@dataclass(slots=True, eq=False)
class Settled:
    """A batch of settled deals.

    units: (B, N) float64, what each seat won; whole numbers except for shared rows of a pool.
    pairwise: (B, N, N) int32, what the second seat owes the first; all 0 in a pool.
    status: (B, N) int8, index into STATUSES.
    strengths: (B, N, 3) int16 row strengths.
    naturals: (B, N) int8, index into PATTERNS of the declared natural, -1 for none.
    keys: (B, N) int64, comparison keys of declared naturals.
    """

    units: npt.NDArray[np.float64]
    pairwise: npt.NDArray[np.int32]
    status: npt.NDArray[np.int8]
    strengths: npt.NDArray[np.int16]
    naturals: npt.NDArray[np.int8]
    keys: npt.NDArray[np.int64]


def settle_deals(
    hands: IntArray,
    rows: IntArray,
    declarations: IntArray,
    naturals: IntArray,
    rules: Rules,
    can_surrender: npt.NDArray[np.bool_] | None = None,
) -> Settled:
    """Units of a batch of deals; a declaration that is not available shows the rows as placed.

    The values are trusted: hands hold the cards of a deal, naturals are held and in play.

    Args:
        hands: (B, N, 13) int8, each highest first.
        rows: (B, N, 13) int8, the row of each card; wrong sizes or order make a foul.
        declarations: (B, N) int8, 0 show, 1 surrender, 2 natural.
        naturals: (B, N) int8, the natural a seat may declare as an index into PATTERNS, or -1.
        rules: The house rules.
        can_surrender: (B, N) bool; None lets everybody.
    """
    if can_surrender is None:
        can_surrender = np.ones(declarations.shape, np.bool_)
    return settle_checked(
        np.ascontiguousarray(hands, np.int8),
        np.ascontiguousarray(rows, np.int8),
        np.ascontiguousarray(declarations, np.int8),
        np.ascontiguousarray(naturals, np.int8),
        np.ascontiguousarray(can_surrender),
        rules,
    )


def settle_checked(
    hands: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int8],
    declarations: npt.NDArray[np.int8],
    naturals: npt.NDArray[np.int8],
    can_surrender: npt.NDArray[np.bool_],
    rules: Rules,
) -> Settled:
    """As `settle_deals`, of arrays in C order and of these types."""
    batch, seats = declarations.shape
    strengths = np.empty((batch, seats, 3), np.int16)
    status = np.empty((batch, seats), np.int8)
    declared = np.empty((batch, seats), np.int8)
    keys = np.empty((batch, seats), np.int64)
    units = np.empty((batch, seats), np.float64)
    pairwise = np.empty((batch, seats, seats), np.int32)
    tables = tables_for(rules)
    kernels.score_into(
        hands, rows, declarations, naturals, can_surrender, tables.rows, tables.naturals,
        rules.packed, strengths, status, declared, keys, units, pairwise,
    )  # fmt: skip
    return Settled(units, pairwise, status, strengths, declared, keys)


@dataclass(slots=True)
class Pairing:
    """What seat `b` owes seat `a`, and why.

    units: to `a`; negative if `a` pays.
    """

    a: int
    b: int
    units: int
    _words: "_Account" = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return KINDS[self._words.parts(self)[kernels.PART_KIND]]

    @property
    def summary(self) -> str:
        """One line: "West scoops East: 2 x 3 rows, + 3 for trips in front"."""
        return self._words.explain(self)[0]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The steps behind the summary, a line each: who won which row, with what."""
        return self._words.explain(self)[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain types, `units` under the name of the vectors' format."""
        return {
            "a": self.a,
            "b": self.b,
            "points_to_a": self.units,
            "kind": self.kind,
            "summary": self.summary,
            "reasons": list(self.reasons),
        }


@dataclass(slots=True)
class Showdown:
    """A settled showdown of two to four seats.

    units: per seat, whole unless a pool's row is shared; sums to 0.
    pairwise: every pairing that settles, a < b; empty in a pool.
    statuses: per seat, one of STATUSES.
    arrangements: per seat.
    naturals: per seat, the natural declared or None.
    pool: lines that explain a pool; empty otherwise.
    """

    units: tuple[Units, ...]
    pairwise: tuple[Pairing, ...]
    statuses: tuple[str, ...]
    arrangements: tuple[Arrangement, ...]
    naturals: tuple[str | None, ...]
    pool: tuple[str, ...]
    rules: Rules


def settle_showdown(seats: Sequence[Mapping[str, Any]], rules: Rules) -> Showdown:
    """Units, the pairwise account and statuses of one showdown.

    Args:
        seats: Two to four, in the order North, East, South, West. Each gives `front`, `middle`,
            `back` (card texts as a list or a string), or `cards` (13) with a declaration or a
            surrender; optionally `declare` (the name of a natural, or true for the best) and
            `surrender` (bool).
        rules: The house rules.

    Raises:
        CardError: A card that does not exist, lies twice, or a hand without 13 cards.
        ArrangementError: A row of the wrong size, or no rows where some are needed.
        DeclarationError: A natural the hand does not hold or the rules do not pay; a surrender
            where there is none.
        ShowdownError: Not two to four seats, an unknown key, or a bank that is not seated.

    Example:
        >>> north = {"front": "Ks 8h 3d", "middle": "9s 9d 6c 4h 2s", "back": "Qh Qd 5c 5s 7d"}
        >>> east = {"front": "Jc Td 4c", "middle": "Tc Ts 8c 6d 3s", "back": "Jd Jh 7h 7s 2c"}
        >>> settle_showdown([north, east], Rules.preset("western")).units
        (2, -2)
    """
    check_num_seats(len(seats), rules)
    read = [_read_seat(seat, place, rules) for place, seat in enumerate(seats)]
    owner: dict[Card, int] = {}
    for place, (arrangement, _, _) in enumerate(read):
        for card in arrangement.hand:
            if card in owner:
                raise CardError(
                    f"card {format_card(card)!r} twice: at {SEAT_NAMES[owner[card]]} and "
                    f"{SEAT_NAMES[place]}; each of the 52 cards exists once"
                )
            owner[card] = place
    hands = np.array([[arrangement.hand for arrangement, _, _ in read]], np.int8)
    rows = np.array([[rows_of(arrangement) for arrangement, _, _ in read]], np.int8)
    declarations = np.array([[declaration for _, declaration, _ in read]], np.int8)
    naturals = np.array([[natural for _, _, natural in read]], np.int8)
    settled = settle_deals(hands, rows, declarations, naturals, rules)
    return account(settled, 0, tuple(arrangement for arrangement, _, _ in read), rules)


def check_num_seats(num_seats: int, rules: Rules) -> None:
    """Raise unless the rules can seat so many.

    Raises:
        ShowdownError: Not 2..4, or a bank's seat that is not taken.
    """
    is_whole = isinstance(num_seats, int | np.integer) and not isinstance(num_seats, bool)
    if not is_whole or not 2 <= num_seats <= 4:
        raise ShowdownError(f"{num_seats!r} seats: a table has 2 to 4")
    if rules.banker is not None and rules.banker >= num_seats:
        raise ShowdownError(
            f"banker {rules.banker} with {num_seats} seats: name a seat 0..{num_seats - 1}"
        )


def account(
    settled: Settled, deal: int, arrangements: tuple[Arrangement, ...], rules: Rules
) -> Showdown:
    """The readable account of one deal of a settled batch."""
    num_seats = len(arrangements)
    statuses = tuple([STATUSES[status] for status in settled.status[deal].tolist()])
    names = tuple([None if n < 0 else PATTERNS[n] for n in settled.naturals[deal].tolist()])
    told = _Account(arrangements, settled, deal, names, statuses, rules)
    owed = settled.pairwise[deal].tolist()
    pairwise = tuple(
        [
            Pairing(a, b, owed[a][b], told)
            for a in range(num_seats)
            for b in range(a + 1, num_seats)
            if rules.topology == "all_pairs" or rules.banker in (a, b)
        ]
    )
    units = tuple([_exact(value, rules.unit_scale) for value in settled.units[deal].tolist()])
    pool = told.pool(units, statuses) if rules.topology == "pool" else ()
    return Showdown(units, pairwise, statuses, arrangements, names, pool, rules)


def _exact(value: float, scale: int) -> Units:
    if value.is_integer():
        return int(value)
    return Fraction(round(value * scale), scale)


_SEAT_KEYS = ("seat", "front", "middle", "back", "cards", "declare", "surrender")


def _read_seat(seat: Mapping[str, Any], place: int, rules: Rules) -> tuple[Arrangement, int, int]:
    """(arrangement, declaration, natural index or -1) of one seat of a showdown."""
    name = SEAT_NAMES[place]
    if not isinstance(seat, Mapping):
        raise ShowdownError(f"{name}: {seat!r}: give an object with front, middle and back")
    for key in seat:
        if key not in _SEAT_KEYS:
            raise ShowdownError(f"{name}: key {key!r}: the keys are {', '.join(_SEAT_KEYS)}")
    declare, surrender = seat.get("declare"), seat.get("surrender", False)
    if surrender not in (None, False, True):
        raise ShowdownError(f"{name}: surrender {surrender!r}: give true or false")
    try:
        arrangement = _read_cards(seat, bool(declare or surrender))
    except (CardError, ArrangementError) as error:
        raise type(error)(f"{name}: {error}") from None
    if surrender:
        if declare:
            raise DeclarationError(f"{name}: surrenders and declares {declare!r}: choose one")
        if not rules.surrender_allowed:
            raise DeclarationError(
                f"{name}: surrender: these rules have none; set surrender_cost to allow it"
            )
        return arrangement, SURRENDER, -1
    if declare is None or declare is False:
        return arrangement, SHOW, -1
    return arrangement, DECLARE, _read_natural(declare, arrangement.hand, name, rules)


def _read_cards(seat: Mapping[str, Any], is_whole: bool) -> Arrangement:
    rows = [seat.get(row) for row in ("front", "middle", "back")]
    for cards in (*rows, seat.get("cards")):
        if cards is not None and not isinstance(cards, str | list | tuple):
            raise CardError(f"cards {cards!r}: give a list of card texts such as 'As'")
    if all(row is not None for row in rows):
        arrangement = parse_arrangement(*rows)  # type: ignore[arg-type]
        if seat.get("cards") is not None and parse_hand(seat["cards"]) != arrangement.hand:
            raise ArrangementError("cards differ from front, middle and back: leave one out")
        return arrangement
    if any(row is not None for row in rows) or seat.get("cards") is None:
        raise ArrangementError("rows missing: give front, middle and back, or cards")
    hand = parse_hand(seat["cards"])
    if not is_whole:
        raise ArrangementError(
            "cards without rows: give front, middle and back, or declare or surrender"
        )
    return arrangement_of(hand, [2] * 5 + [1] * 5 + [0] * 3)


def _read_natural(declare: object, hand: list[Card], name: str, rules: Rules) -> int:
    in_play = rules.naturals_in_play
    if not in_play:
        raise DeclarationError(
            f"{name}: declares {declare!r}: naturals are off in these rules; set naturals to true"
            if rules.topology != "pool"
            else f"{name}: declares {declare!r}: a pool has no naturals"
        )
    bits, best = natural_bits(np.array([hand], np.int8), rules)
    if declare is True:
        if best[0] < 0:
            raise DeclarationError(f"{name}: {format_cards(hand)} holds no natural: show the rows")
        return int(best[0])
    if declare not in in_play:
        raise DeclarationError(
            f"{name}: declares {declare!r}: the naturals in play are {', '.join(in_play)}"
        )
    pattern = PATTERNS.index(str(declare))
    if not bits[0] >> pattern & 1:
        held = [p for p in in_play if bits[0] >> PATTERNS.index(p) & 1]
        raise DeclarationError(
            f"{name}: declares {declare!r}, which {format_cards(hand)} does not hold: "
            f"it holds {', '.join(held) or 'no natural in play'}"
        )
    return pattern


@dataclass(slots=True, eq=False)
class _Account:
    """Words for the parts a kernel hands back; adds nothing up itself."""

    arrangements: tuple[Arrangement, ...]
    settled: Settled
    deal: int
    naturals: tuple[str | None, ...]
    statuses: tuple[str, ...]
    rules: Rules

    @property
    def strengths(self) -> npt.NDArray[np.int16]:
        """(N, 3) row strengths of the deal."""
        strengths: npt.NDArray[np.int16] = self.settled.strengths[self.deal]
        return strengths

    def parts(self, pairing: Pairing) -> list[int]:
        """What makes up a pairing, in the order of kernels.PART_..."""
        num_seats = len(self.arrangements)
        parts = np.empty((num_seats, num_seats, kernels.NUM_PARTS), np.int64)
        settled, deal = self.settled, self.deal
        kernels.settle_parts_into(
            settled.strengths[deal], settled.status[deal], settled.naturals[deal],
            settled.keys[deal], self.rules.packed, parts,
        )  # fmt: skip
        found: list[int] = parts[pairing.a, pairing.b].tolist()
        return found

    def row(self, seat: int, row: int) -> str:
        return describe_row(self.arrangements[seat][row], int(self.strengths[seat, row]))

    def explain(self, pairing: Pairing) -> tuple[str, tuple[str, ...]]:
        a, b, parts = pairing.a, pairing.b, self.parts(pairing)
        a_wins = pairing.units > 0 or (pairing.units == 0 and not self._owes(a, b))
        winner, loser, sign = (a, b, 1) if a_wins else (b, a, -1)
        if pairing.kind == "rows":
            return self._rows(a, b, parts)
        if pairing.kind == "foul":
            return self._foul(winner, loser, sign, parts)
        return self._price(pairing.kind, a, b, winner, loser, abs(pairing.units)), ()

    def _owes(self, a: int, b: int) -> bool:
        """Whether seat a is the one that pays b, were the price not 0."""
        order = ("surrender", "foul", "normal", "natural")
        return order.index(self.statuses[a]) < order.index(self.statuses[b])

    def _rows(self, a: int, b: int, parts: list[int]) -> tuple[str, tuple[str, ...]]:
        results = parts[kernels.PART_ROW0 : kernels.PART_ROW2 + 1]
        total = parts[kernels.PART_TOTAL]
        lead = total or sum(results)
        first, second, sign = (a, b, 1) if lead >= 0 else (b, a, -1)
        won, lost = results.count(sign), results.count(-sign)
        name, other = SEAT_NAMES[first], SEAT_NAMES[second]
        units = sign * parts[kernels.PART_UNITS]
        multiplier = parts[kernels.PART_MULTIPLIER]
        if won == 3:
            head = f"{name} {'makes a home run over' if multiplier == 3 else 'scoops'} {other}"
        elif won > lost:
            head = f"{name} beats {other} {won} rows to {lost}"
        elif won == lost:
            head = f"{name} and {other} win {won} {'row' if won == 1 else 'rows'} each"
        else:
            head = f"{name} takes {won} {'row' if won == 1 else 'rows'} to {lost} from {other}"
        if self.rules.scoop == "shot_homerun" and multiplier > 1:
            terms = [f"{multiplier} x {units} rows"]
        else:
            terms = [f"{units:+d} for rows"]
        reasons = [self._row_reason(a, b, row, parts) for row in range(3)]
        terms += self._royalty_terms(first, second, sign, parts)
        scoop = sign * parts[kernels.PART_SCOOP]
        if scoop:
            if self.rules.scoop == "shot_homerun":
                title = "a home run" if multiplier == 3 else "a shot"
                reasons.append(f"{title} multiplies the row units by {multiplier}")
            elif self.rules.scoop == "double_all":
                terms.append(f"{scoop:+d} for the scoop (all doubled)")
            else:
                terms.append(f"{scoop:+d} for the scoop")
        overall = sign * parts[kernels.PART_OVERALL]
        if overall:
            terms.append(f"{overall:+d} for the majority")
        return f"{head}: {_join(terms)}", tuple(reasons)

    def _row_reason(self, a: int, b: int, row: int, parts: list[int]) -> str:
        result = parts[kernels.PART_ROW0 + row]
        title = ("front", "middle", "back")[row]
        tied = self.strengths[a, row] == self.strengths[b, row]
        if tied and result:
            bank = SEAT_NAMES[a if result > 0 else b]
            return f"{title}: both {self.row(a, row)}, the tie goes to the bank, {bank}"
        if tied:
            return f"{title}: both {self.row(a, row)}, a tie"
        first, second = (a, b) if result > 0 else (b, a)
        mine, theirs = self.row(first, row), self.row(second, row)
        how = f"beats {theirs}" if mine != theirs else "on the other cards"
        return f"{title}: {SEAT_NAMES[first]}'s {mine} {how}"

    def _royalty_terms(self, first: int, second: int, sign: int, parts: list[int]) -> list[str]:
        terms = []
        for row in range(3):
            royalty = sign * parts[kernels.PART_ROYALTY0 + row]
            if not royalty:
                continue
            earner = first if royalty > 0 else second
            title = royalty_title(row, int(self.strengths[earner, row]))
            terms.append(f"{royalty:+d} for {title} in {_place(row)}")
        return terms

    def _foul(
        self, winner: int, loser: int, sign: int, parts: list[int]
    ) -> tuple[str, tuple[str, ...]]:
        terms = [f"{sign * parts[kernels.PART_PRICE]:+d} for the foul"]
        terms += self._royalty_terms(winner, loser, sign, parts)
        if parts[kernels.PART_SCOOP]:
            terms.append(f"{sign * parts[kernels.PART_SCOOP]:+d} as a scoop")
        if parts[kernels.PART_OVERALL]:
            terms.append(f"{sign * parts[kernels.PART_OVERALL]:+d} for the majority")
        head = f"{SEAT_NAMES[loser]} fouls and pays {SEAT_NAMES[winner]}"
        sizes = tuple(map(len, self.arrangements[loser]))
        if sizes != ROW_SIZES:
            why = f"rows of {sizes[0]}, {sizes[1]} and {sizes[2]} cards: they take 3, 5 and 5"
        else:
            why = f"rows out of order: {' / '.join(self.row(loser, row) for row in range(3))}"
        return f"{head}: {_join(terms)}", (why,)

    def _price(self, kind: str, a: int, b: int, winner: int, loser: int, price: int) -> str:
        first, second = SEAT_NAMES[winner], SEAT_NAMES[loser]
        both = f"{SEAT_NAMES[a]} and {SEAT_NAMES[b]}"
        match kind:
            case "natural":
                title = TITLES[self.naturals[winner] or ""]
                over = self.naturals[loser]
                beaten = f" over {TITLES[over]}" if over else ""
                return f"{first} collects {price} from {second} for {title}{beaten}"
            case "natural_tie":
                return f"{both} both declare {TITLES[self.naturals[a] or '']}: a tie"
            case "foul_both":
                return f"{both} both foul: nothing moves"
            case "surrender_both":
                return f"{both} both surrender: nothing moves"
            case "surrender_vs_foul":
                return f"{both}: a surrender and a foul, nothing moves"
            case _:
                return f"{second} surrenders and pays {first} {price}"

    def pool(self, units: tuple[Units, ...], statuses: tuple[str, ...]) -> tuple[str, ...]:
        live = [seat for seat, status in enumerate(statuses) if status == "normal"]
        if not live:
            return ("nobody shows an ordinary hand: the antes go back",)
        num_seats = len(statuses)
        lines = [f"everybody antes 3; each row pays {num_seats}"]
        sole: list[int | None] = []
        for row in range(3):
            best = max(int(self.strengths[seat, row]) for seat in live)
            takers = [seat for seat in live if self.strengths[seat, row] == best]
            names = " and ".join(SEAT_NAMES[seat] for seat in takers)
            verb = "wins" if len(takers) == 1 else "share"
            title = ("front", "middle", "back")[row]
            lines.append(f"{title}: {names} {verb} with {self.row(takers[0], row)}")
            sole.append(takers[0] if len(takers) == 1 else None)
        if sole[0] is not None and len(set(sole)) == 1:
            lines.append(f"{SEAT_NAMES[sole[0]]} wins all three and takes 3 more from each hand")
        return tuple(lines)


def _place(row: int) -> str:
    return ("front", "the middle", "the back")[row]


def _join(terms: list[str]) -> str:
    """Terms as a sum: the first without its plus sign, the others with a spaced sign."""
    first = terms[0].removeprefix("+")
    rest = [f"{term[0]} {term[1:]}" if term[0] in "+-" else term for term in terms[1:]]
    return ", ".join([first, *rest])
