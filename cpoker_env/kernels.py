"""The compiled core: deal, evaluate, find naturals, settle, enumerate.

All njit functions of the project are in this one file, because numba's on-disk cache does not
notice a change in another file and freezes module globals; so tables and rules come in as
arguments. The cells of `Rules.packed` and the constants of `tables.py` are frozen all the same:
whoever changes those touches this file too. Kernels trust their input: every check is at the public
edge. Everything that scores is integer and exact.

In this order: randomness and dealing, strengths and the order of rows, naturals, settling, the
arrangements of a hand, their values, values against a population, what a learner sees.

Shapes: B deals, N seats, M arrangements, 13 cards of a hand sorted highest first. An arrangement is
a hand plus `rows`, (13,) int8 in 0 front, 1 middle, 2 back, the row of each card.
"""

# numba's decorators are untyped
# mypy: disable-error-code="misc, no-untyped-def, no-untyped-call"

import contextlib
import sys
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from cpoker_env.rules import (
    F_BACK_MAY_TIE,
    F_BACK_QUADS,
    F_BACK_SF,
    F_BANKER,
    F_FOUL_PRICE,
    F_FOUL_ROYALTIES,
    F_FRONT_TRIPS,
    F_HOMERUN_COUNTS,
    F_LADDER,
    F_MIDDLE_FULL,
    F_MIDDLE_QUADS,
    F_MIDDLE_SF,
    F_NATURAL_COMPARE,
    F_NATURAL_VALUE,
    F_OVERALL_BY_POINTS,
    F_OVERALL_POINT,
    F_ROYAL_BACK,
    F_ROYAL_MIDDLE,
    F_ROYALTIES,
    F_ROYALTY_ADDS,
    F_SCOOP,
    F_SCOOP_EXTRA,
    F_SIX_PAIRS_ODD_CARD,
    F_SIX_PAIRS_QUADS,
    F_SIX_PAIRS_TRIPS,
    F_SURRENDER_COST,
    F_SURRENDER_PAYS_FOUL,
    F_SURRENDER_PAYS_NATURAL,
    F_TOPOLOGY,
    NUM_PATTERNS,
    POOL_SCALE,
)
from cpoker_env.tables import (
    FRONT_TRIPS,
    FULL_HOUSE,
    NUM_FRONTS,
    NUM_SPLITS,
    NUM_STRENGTHS,
    QUADS,
    ROYAL_FLUSH,
    STRAIGHT_FLUSH,
)

# Statuses of a seat at showdown.
NORMAL, FOUL, SURRENDER, NATURAL = range(4)

# Kinds of a pairing.
(
    KIND_ROWS,
    KIND_NATURAL,
    KIND_NATURAL_TIE,
    KIND_FOUL,
    KIND_FOUL_BOTH,
    KIND_SURRENDER,
    KIND_SURRENDER_BOTH,
    KIND_SURRENDER_VS_FOUL,
) = range(8)

# Parts of a pairing, each in units to its first seat; PART_ROW0.. are row results -1, 0, 1.
(
    PART_KIND,
    PART_TOTAL,
    PART_ROW0,
    PART_ROW1,
    PART_ROW2,
    PART_UNITS,
    PART_ROYALTY0,
    PART_ROYALTY1,
    PART_ROYALTY2,
    PART_SCOOP,
    PART_OVERALL,
    PART_PRICE,
    PART_MULTIPLIER,
) = range(13)
NUM_PARTS = 13

_SIX_PAIRS, _THREE_FLUSHES, _THREE_STRAIGHTS = 6, 7, 8
_FIGURES = 0b0111000000000
"""Set of ranks of jack, queen and king."""
_EACH_RANK = 0o1111111111111
_PAIRS_OF_RANKS = 3 * _EACH_RANK
"""Masks of 13 counts of three bits each: their lowest bits, their two lower bits."""
_MULTIPLES_OF_5 = 1 | 1 << 5 | 1 << 10
_NUM_UNORDERED = NUM_FRONTS * NUM_SPLITS
"""Ways to choose a front and split the rest into two fives in no order."""

_ROW_SIZES = 3 | 5 << 4 | 5 << 8

_PHILOX_M0, _PHILOX_M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_PHILOX_W0, _PHILOX_W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW32 = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)
_ONE = np.uint64(1)

_BIT_MODULUS = np.uint64(53)
_CARD_OF_BIT = np.zeros(53, np.int8)
"""Card by its bit of a 52-bit set modulo 53, of which 2 is a primitive root."""
_CARD_OF_BIT[[pow(2, card, 53) for card in range(52)]] = np.arange(52)


def _announce_compiling():
    """Have standard error told, once a process, when kernels are compiled; loading is silent."""
    from numba.core import event

    class Notice(event.Listener):
        is_given = False

        def notify(self, event):
            # Whatever goes wrong here, numba must go on.
            with contextlib.suppress(Exception):
                super().notify(event)

        def on_start(self, event):
            if not self.is_given and event.data["dispatcher"].py_func.__module__ == __name__:
                self.is_given = True
                text = "cpoker-env: compiling kernels not used before; later starts load them"
                print(text, file=sys.stderr, flush=True)

        def on_end(self, event):
            pass

    event.register("numba:compile", Notice())


with contextlib.suppress(Exception):
    _announce_compiling()


@njit(cache=True)
def philox(key, c0, c1, c2, c3):
    """Philox 4x32-10 of Random123: four 32-bit words (as uint64) of a 64-bit key and a counter."""
    k0 = key & _LOW32
    k1 = key >> _S32
    for _ in range(10):
        product0 = _PHILOX_M0 * c0
        product1 = _PHILOX_M1 * c2
        c0, c1, c2, c3 = (
            (product1 >> _S32) ^ c1 ^ k0,
            product1 & _LOW32,
            (product0 >> _S32) ^ c3 ^ k1,
            product0 & _LOW32,
        )
        k0 = (k0 + _PHILOX_W0) & _LOW32
        k1 = (k1 + _PHILOX_W1) & _LOW32
    return c0, c1, c2, c3


@njit(cache=True, forceinline=True)
def _bounded(words, state, key, index, stream, bound):
    """Unbiased int below `bound`; `words` (4,) and `state` (1,) buffer the sequence in place."""
    limit = np.uint64(bound)
    while True:
        position = state[0]
        lane = position & 3
        if lane == 0:
            words[0], words[1], words[2], words[3] = philox(
                key, index & _LOW32, index >> _S32, np.uint64(position >> 2), np.uint64(stream)
            )
        state[0] = position + 1
        product = words[lane] * limit
        low = product & _LOW32
        if low >= limit or low >= (np.uint64(0x100000000) - limit) % limit:
            return np.int64(product >> _S32)


@njit(cache=True)
def _draw_words(key, index, num_blocks, words):
    """Fill words (4, num_blocks) uint64: lane and number of the first Philox blocks of a deal."""
    low, high = index & _LOW32, index >> _S32
    for block in range(num_blocks):
        word0, word1, word2, word3 = philox(key, low, high, np.uint64(block), np.uint64(0))
        words[0, block] = word0
        words[1, block] = word1
        words[2, block] = word2
        words[3, block] = word3


@njit(cache=True)
def _read_picks(words, num_cards, picks):
    """Fill picks (52,) uint64: card i of a deal changes places with card picks[i] of the deck.

    Returns 0, or another number if a word may be one of those that `_bounded` passes over to stay
    unbiased: about once in three million deals.
    """
    doubtful = np.uint64(0)
    for block in range((num_cards + 3) >> 2):
        for lane in range(4):
            place = 4 * block + lane
            left = np.uint64(52 - place)
            product = words[lane, block] * left
            picks[place] = np.uint64(place) + (product >> _S32)
            doubtful |= np.uint64(product & _LOW32 < left)
    return doubtful


@njit(cache=True)
def _draw_picks_exactly(key, index, num_cards, picks):
    """As `_read_picks`, a word at a time."""
    words = np.empty(4, np.uint64)
    state = np.zeros(1, np.int64)
    for place in range(num_cards):
        picks[place] = place + _bounded(words, state, key, index, np.int64(0), 52 - place)


@njit(cache=True, nogil=True)
def deal_into(keys, indices, hands):
    """Deal number `indices[b]` of seed `keys[b]`, into hands (B, N, 13) int8, highest first.

    Seat s holds the same cards whatever N is.
    """
    num_seats = hands.shape[1]
    # Whole groups of eight blocks fill vector registers, which is quicker than a few less.
    num_blocks = 8 if num_seats <= 2 else 16
    deck = np.empty(52, np.int8)
    words = np.empty((4, 16), np.uint64)
    picks = np.empty(52, np.uint64)
    for b in range(hands.shape[0]):
        _draw_words(keys[b], indices[b], num_blocks, words)
        if _read_picks(words, 13 * num_seats, picks):
            _draw_picks_exactly(keys[b], indices[b], 13 * num_seats, picks)
        for card in range(52):
            deck[card] = card
        for seat in range(num_seats):
            held = np.uint64(0)
            for i in range(13):
                pick = picks[13 * seat + i]
                card = deck[pick]
                deck[pick] = deck[13 * seat + i]
                held |= _ONE << np.uint64(card)
            for place in range(13):
                rest = held & (held - _ONE)
                hands[b, seat, 12 - place] = _CARD_OF_BIT[(held ^ rest) % _BIT_MODULUS]
                held = rest


@njit(cache=True, nogil=True)
def deal_rest_into(keys, indices, rest, hands):
    """As `deal_into`, of the cards rest (R,) int8 alone: with all 52, ascending, the same hands."""
    deck = np.empty_like(rest)
    words = np.empty(4, np.uint64)
    state = np.empty(1, np.int64)
    for b in range(hands.shape[0]):
        deck[:] = rest
        state[0] = 0
        for seat in range(hands.shape[1]):
            held = np.uint64(0)
            for place in range(13 * seat, 13 * seat + 13):
                left = rest.shape[0] - place
                pick = place + _bounded(words, state, keys[b], indices[b], np.int64(0), left)
                held |= _ONE << np.uint64(deck[pick])
                deck[pick] = deck[place]
            place = 0
            for card in range(51, -1, -1):
                if held >> np.uint64(card) & _ONE:
                    hands[b, seat, place] = card
                    place += 1


@njit(cache=True)
def _has_row_sizes(rows, m):
    """Whether arrangement m has three, five and five cards."""
    sizes = np.int64(0)
    for i in range(13):
        sizes += 1 << 4 * np.int64(rows[m, i])
    return sizes == _ROW_SIZES


@njit(cache=True, forceinline=True)
def row_strengths(hands, rows, m, offset, fives, fronts):
    """(front, middle, back) strengths of arrangement m of rows of the right sizes.

    Nothing branches on a row, which no processor can foresee: the rows lie side by side in each
    number, cards so far in four bits, indices in 16 bits, suits not all of a row is of in four.
    """
    taken = index = mixed = np.int64(0)
    for i in range(13):
        card = np.int64(hands[m, i])
        row = np.int64(rows[m, i])
        index += offset[taken >> 4 * row & 15, card >> 2 & 15] << 16 * row
        mixed |= (15 ^ 1 << (card & 3)) << 4 * row
        taken += 1 << 4 * row
    front = np.int64(fronts[index & 0xFFFF])
    middle = np.int64(fives[np.int64(mixed >> 4 & 15 != 15), index >> 16 & 0xFFFF])
    back = np.int64(fives[np.int64(mixed >> 8 & 15 != 15), index >> 32 & 0xFFFF])
    return front, middle, back


@njit(cache=True, forceinline=True)
def _in_order(front, middle, back, min_middle, back_may_tie):
    return middle >= min_middle[front] and (back > middle or (back == middle and back_may_tie))


@njit(cache=True, nogil=True)
def evaluate_into(hands, rows, row_tables, rules, strengths, is_legal):
    """Row strengths (M, 3) int16 and legality (M,) bool of arrangements (M, 13)."""
    offset, fives, fronts, min_middle = row_tables
    back_may_tie = rules[F_BACK_MAY_TIE] == 1
    for m in range(hands.shape[0]):
        front = middle = back = np.int64(0)
        sized = _has_row_sizes(rows, m)
        if sized:
            front, middle, back = row_strengths(hands, rows, m, offset, fives, fronts)
        strengths[m, 0] = front
        strengths[m, 1] = middle
        strengths[m, 2] = back
        is_legal[m] = sized and _in_order(front, middle, back, min_middle, back_may_tie)


@njit(cache=True, forceinline=True)
def natural_bits(hands, m, straights, straights_ranks, quads_may_pair, trips_may_pair):
    """Bit set of the patterns hand m holds, bit = position in PATTERNS, in play or not."""
    ranks = np.int64(0)
    counts = np.int64(0)
    suit_counts = np.int64(0)
    for i in range(13):
        card = np.int64(hands[m, i])
        ranks |= 1 << (card >> 2)
        counts += 1 << (3 * (card >> 2))
        suit_counts += 1 << (4 * (card & 3))
    highest, lowest = hands[m, 0] >> 2, hands[m, 12] >> 2
    bits = 0
    reds = (suit_counts >> 4 & 15) + (suit_counts >> 8 & 15)
    if reds == 0 or reds == 13:
        bits |= 1 << 3
    if ranks == 0x1FFF:
        bits |= 1 << 2
        if bits & 1 << 3:
            bits |= 1 << 1
        # 13 in four bits: all set but one
        if suit_counts & (suit_counts >> 2) & (suit_counts >> 3) & 0x1111:
            bits |= 1
    if highest <= 7:
        bits |= 1 << 4
    if lowest >= 8:
        bits |= 1 << 5
    if ranks & _FIGURES == 0:
        bits |= 1 << 9
    if _holds_six_pairs(counts, quads_may_pair, trips_may_pair):
        bits |= 1 << _SIX_PAIRS
    if _holds_three_flushes(suit_counts):
        bits |= 1 << _THREE_FLUSHES
    if straights_ranks[ranks] and _straights_place(counts, straights) >= 0:
        bits |= 1 << _THREE_STRAIGHTS
    return bits


@njit(cache=True)
def _holds_six_pairs(counts, quads_may_pair, trips_may_pair):
    """Whether counts, three bits a rank, hold six pairs; quads are two, trips one and a card."""
    # 8 leaves 1 modulo 7, so the remainder adds up the ranks; a hand has no more than six pairs.
    has_pairs = (counts >> 1 & _PAIRS_OF_RANKS) % 7 == 6
    has_quads = counts & (_EACH_RANK << 2) != 0
    has_trips = counts & (counts >> 1) & _EACH_RANK != 0
    return has_pairs and (quads_may_pair or not has_quads) and (trips_may_pair or not has_trips)


@njit(cache=True)
def _holds_three_flushes(suit_counts):
    """Suits can hold 3 + 5 + 5 only as sums of those: one suit's count lacks 0 or 3 of a 5s."""
    with_front = 0
    for suit in range(4):
        count = (suit_counts >> (4 * suit)) & 15
        if _MULTIPLES_OF_5 >> count & 1 == 0:
            with_front += 1 if _MULTIPLES_OF_5 << 3 >> count & 1 else 4
    return with_front == 1


@njit(cache=True)
def _straights_place(counts, straights):
    place = np.searchsorted(straights, counts)
    if place < straights.shape[0] and straights[place] == counts:
        return place
    return -1


@njit(cache=True)
def best_pattern(bits, rules):
    """Highest pattern on the ladder among `bits` that is in play, or -1."""
    best = -1
    rung = 0
    for pattern in range(NUM_PATTERNS):
        if bits >> pattern & 1 and rules[F_LADDER + pattern] > rung:
            rung = rules[F_LADDER + pattern]
            best = pattern
    return best


@njit(cache=True, nogil=True)
def naturals_into(hands, natural_tables, rules, bits, best):
    """Patterns held (M,) int16 and the best in play (M,) int8, -1 for none, of hands (M, 13)."""
    straights, _, straights_ranks = natural_tables
    quads_may_pair = rules[F_SIX_PAIRS_QUADS] == 1
    trips_may_pair = rules[F_SIX_PAIRS_TRIPS] == 1
    for m in range(hands.shape[0]):
        held = natural_bits(hands, m, straights, straights_ranks, quads_may_pair, trips_may_pair)
        bits[m] = held
        best[m] = -1
        if held:
            best[m] = best_pattern(held, rules)


@njit(cache=True, nogil=True)
def deal_tables_into(keys, indices, natural_tables, rules, hands, bits, best):
    """`deal_into` hands (B, N, 13), and their naturals as `naturals_into` has them, (B, N) each."""
    deal_into(keys, indices, hands)
    naturals_into(
        hands.reshape(bits.size, 13), natural_tables, rules, bits.reshape(bits.size),
        best.reshape(bits.size),
    )  # fmt: skip


@njit(cache=True)
def natural_key(hand, pattern, natural_tables, rules):
    """Number by which two hands declaring the same pattern compare; equal means tied."""
    if rules[F_NATURAL_COMPARE] == 0:
        return np.int64(0)
    if pattern == _SIX_PAIRS:
        return _six_pairs_key(hand, rules)
    if pattern == _THREE_STRAIGHTS:
        counts = np.int64(0)
        for i in range(13):
            counts += np.int64(1) << (3 * (hand[i] >> 2))
        straights, straights_key, _ = natural_tables
        return straights_key[_straights_place(counts, straights)]
    if pattern == _THREE_FLUSHES:
        return _three_flushes_key(hand)
    return np.int64(0)


@njit(cache=True, nogil=True)
def natural_keys_into(hands, patterns, natural_tables, rules, keys):
    """`natural_key` of hands (M, 13) that declare patterns (M,), 0 where that is -1."""
    for m in range(hands.shape[0]):
        keys[m] = 0
        if patterns[m] >= 0:
            keys[m] = natural_key(hands[m], patterns[m], natural_tables, rules)


@njit(cache=True)
def _six_pairs_key(hand, rules):
    """Ranks of the six pairs from the top, quads twice, then the odd card's where it counts."""
    key = np.int64(0)
    odd = np.int64(0)
    i = 0
    while i < 13:
        if i < 12 and hand[i] >> 2 == hand[i + 1] >> 2:
            key = key * 16 + (hand[i] >> 2)
            i += 2
        else:
            odd = np.int64(hand[i] >> 2)
            i += 1
    return key * 16 + (odd if rules[F_SIX_PAIRS_ODD_CARD] == 1 else 0)


@njit(cache=True)
def _three_flushes_key(hand):
    """Ranks of back, middle, front, high cards first, of the split with the best back.

    The suit that gives the front keeps its lowest cards for it; its other cards, and those of any
    other suit, form the fives from the top.
    """
    counts = np.zeros(4, np.int64)
    for i in range(13):
        counts[hand[i] & 3] += 1
    fives = np.zeros(2, np.int64)
    num_fives = 0
    front = np.int64(0)
    for suit in range(4):
        taken = 0
        ranks = np.int64(0)
        for i in range(13):
            if hand[i] & 3 != suit:
                continue
            ranks = ranks * 16 + (hand[i] >> 2)
            taken += 1
            if taken % 5 == 0:
                fives[num_fives] = ranks
                num_fives += 1
                ranks = np.int64(0)
        if taken % 5 == 3:
            front = ranks
    back, middle = max(fives[0], fives[1]), min(fives[0], fives[1])
    return (back << 32) | (middle << 12) | front


@njit(cache=True)
def front_royalty(strength, rules):
    """Table value of a front."""
    return rules[F_FRONT_TRIPS] if strength >= FRONT_TRIPS else 0


@njit(cache=True)
def middle_royalty(strength, rules):
    """Table value of a middle."""
    if strength < FULL_HOUSE:
        return 0
    if strength < QUADS:
        return rules[F_MIDDLE_FULL]
    if strength < STRAIGHT_FLUSH:
        return rules[F_MIDDLE_QUADS]
    return rules[F_MIDDLE_SF] if strength < ROYAL_FLUSH else rules[F_ROYAL_MIDDLE]


@njit(cache=True)
def back_royalty(strength, rules):
    """Table value of a back."""
    if strength < QUADS:
        return 0
    if strength < STRAIGHT_FLUSH:
        return rules[F_BACK_QUADS]
    return rules[F_BACK_SF] if strength < ROYAL_FLUSH else rules[F_ROYAL_BACK]


@njit(cache=True)
def _row_gain(royalty, rules):
    """(plain units, royalty units) a row takes when it wins, and the royalty it takes anyway."""
    mode = rules[F_ROYALTIES]
    zero = np.int64(0)
    if mode == 0 or royalty == 0:
        return zero + 1, zero, zero
    if mode == 2:
        return zero + 1, zero, royalty - 1
    return rules[F_ROYALTY_ADDS], royalty, zero


@njit(cache=True)
def row_result(result, royalty_a, royalty_b, rules):
    """(plain units, royalty units) to the first seat of one compared row, scoop aside.

    `result` is 1, 0 or -1 for a row won, tied or lost; royalties are table values.
    """
    plain_a, prize_a, kept_a = _row_gain(royalty_a, rules)
    plain_b, prize_b, kept_b = _row_gain(royalty_b, rules)
    plain, prize = (plain_a, prize_a) if result > 0 else (plain_b, prize_b)
    return result * plain, result * prize + kept_a - kept_b


@njit(cache=True)
def _sign(a, b, bank):
    """1, 0, -1 for a above, equal, below b; equal goes to the bank (1: first seat, -1: second)."""
    return 1 if a > b else -1 if a < b else bank


@njit(cache=True)
def _rows_parts(a, b, bank, homerun, rules):
    """Parts of a pairing of two ordinary hands; `homerun` 1 or -1 names who makes one."""
    row0 = _sign(a[0], b[0], bank)
    row1 = _sign(a[1], b[1], bank)
    row2 = _sign(a[2], b[2], bank)
    units0, royalty0 = row_result(
        row0, front_royalty(a[0], rules), front_royalty(b[0], rules), rules
    )
    units1, royalty1 = row_result(
        row1, middle_royalty(a[1], rules), middle_royalty(b[1], rules), rules
    )
    units2, royalty2 = row_result(row2, back_royalty(a[2], rules), back_royalty(b[2], rules), rules)
    units = units0 + units1 + units2
    royalties = royalty0 + royalty1 + royalty2
    rows = row0 + row1 + row2
    scoop, multiplier = _scoop_part(rows, units, royalties, homerun, rules)
    overall = _overall_part(rows, units + royalties + scoop, rules)
    total = units + royalties + scoop + overall
    return total, row0, row1, row2, units, royalty0, royalty1, royalty2, scoop, overall, multiplier


@njit(cache=True)
def _scoop_part(rows, units, royalties, homerun, rules):
    """(units added by a scoop, multiplier of the plain units) when one seat won all three rows."""
    mode = rules[F_SCOOP]
    is_scoop = 1 if rows * rows == 9 else 0
    if mode == 0:
        return 0 * rows, 1
    if mode == 1:
        return is_scoop * rules[F_SCOOP_EXTRA] * (1 if rows > 0 else -1), 1
    if mode == 2:
        return is_scoop * (units + royalties), 1 + is_scoop
    more = is_scoop * (2 if homerun != 0 else 1)
    return more * units, 1 + more


@njit(cache=True)
def _overall_part(rows, points, rules):
    """Units for the majority: of rows, or of the points the pairing moved so far."""
    leader = points if rules[F_OVERALL_BY_POINTS] == 1 else rows
    return rules[F_OVERALL_POINT] * (1 if leader > 0 else -1 if leader < 0 else 0)


@njit(cache=True)
def _foul_price(strengths, rules):
    """(plain, royalty0..2, scoop, overall) units an ordinary hand takes from a fouled one."""
    as_rows = rules[F_FOUL_PRICE] < 0
    base = np.int64(3) if as_rows else rules[F_FOUL_PRICE]
    royalty0 = _foul_royalty(front_royalty(strengths[0], rules), rules)
    royalty1 = _foul_royalty(middle_royalty(strengths[1], rules), rules)
    royalty2 = _foul_royalty(back_royalty(strengths[2], rules), rules)
    scoop = 0 * base
    overall = 0 * base
    if rules[F_FOUL_ROYALTIES] == 2 and rules[F_ROYALTIES] == 1 and rules[F_ROYALTY_ADDS] == 0:
        base -= (royalty0 > 0) + (royalty1 > 0) + (royalty2 > 0)
    if as_rows:
        scoop, _ = _scoop_part(
            np.int64(3), base, royalty0 + royalty1 + royalty2, np.int64(0), rules
        )
        overall += rules[F_OVERALL_POINT]
    return base, royalty0, royalty1, royalty2, scoop, overall


@njit(cache=True)
def _foul_royalty(royalty, rules):
    mode = rules[F_ROYALTIES]
    if mode == 0 or rules[F_FOUL_ROYALTIES] == 0:
        return 0 * royalty
    return max(royalty - 1, 0) if mode == 2 else royalty


@njit(cache=True)
def _pair_parts(a, b, strengths, status, naturals, keys, bank, homerun, rules):
    """Parts of the pairing of seats a and b of one deal, in units to a, in the order of PART_...

    strengths (N, 3), status (N,), naturals (N,) pattern or -1, keys (N,) natural keys.
    """
    status_a, status_b = status[a], status[b]
    zero = np.int64(0)
    if status_a == NORMAL and status_b == NORMAL:
        total, r0, r1, r2, units, y0, y1, y2, scoop, overall, multiplier = _rows_parts(
            strengths[a], strengths[b], bank, homerun, rules
        )
        return (
            KIND_ROWS, total, r0, r1, r2, units, y0, y1, y2, scoop, overall, zero, multiplier,
        )  # fmt: skip
    if status_a == SURRENDER or status_b == SURRENDER:
        kind, price = _surrender_price(a, b, status, naturals, rules)
    elif status_a == NATURAL or status_b == NATURAL:
        kind, price = _natural_price(a, b, status, naturals, keys, rules)
    elif status_a == FOUL and status_b == FOUL:
        kind, price = KIND_FOUL_BOTH, zero
    else:
        sign = 1 if status_b == FOUL else -1
        base, y0, y1, y2, scoop, overall = _foul_price(
            strengths[a if status_b == FOUL else b], rules
        )
        total = sign * (base + y0 + y1 + y2 + scoop + overall)
        return (
            KIND_FOUL, total, 0, 0, 0, zero, sign * y0, sign * y1, sign * y2,
            sign * scoop, sign * overall, sign * base, 1,
        )  # fmt: skip
    return kind, price, 0, 0, 0, zero, zero, zero, zero, zero, zero, price, 1


@njit(cache=True)
def _surrender_price(a, b, status, naturals, rules):
    if status[a] == SURRENDER and status[b] == SURRENDER:
        return KIND_SURRENDER_BOTH, np.int64(0)
    taker = b if status[a] == SURRENDER else a
    sign = 1 if taker == a else -1
    if status[taker] == FOUL and rules[F_SURRENDER_PAYS_FOUL] == 0:
        return KIND_SURRENDER_VS_FOUL, np.int64(0)
    if status[taker] == NATURAL and rules[F_SURRENDER_PAYS_NATURAL] == 1:
        return KIND_SURRENDER, sign * rules[F_NATURAL_VALUE + naturals[taker]]
    return KIND_SURRENDER, sign * rules[F_SURRENDER_COST]


@njit(cache=True)
def _natural_price(a, b, status, naturals, keys, rules):
    if status[a] != NATURAL:
        return KIND_NATURAL, -rules[F_NATURAL_VALUE + naturals[b]]
    if status[b] != NATURAL:
        return KIND_NATURAL, rules[F_NATURAL_VALUE + naturals[a]]
    tie = np.int64(0)
    higher = _sign(rules[F_LADDER + naturals[a]], rules[F_LADDER + naturals[b]], tie)
    if higher == 0:
        higher = _sign(keys[a], keys[b], tie)
    if higher == 0:
        return KIND_NATURAL_TIE, np.int64(0)
    winner = a if higher > 0 else b
    return KIND_NATURAL, higher * rules[F_NATURAL_VALUE + naturals[winner]]


@njit(cache=True)
def _homerun_seat(strengths, status, rules):
    """Seat that scoops all three opponents it meets, or -1."""
    if rules[F_SCOOP] != 3 or status.shape[0] != 4:
        return -1
    for seat in range(4):
        if status[seat] != NORMAL:
            continue
        bank = _bank_of(seat, np.int64(-1), rules)
        if rules[F_TOPOLOGY] == 1 and bank == 0:
            continue
        made = True
        for other in range(4):
            if other == seat:
                continue
            if status[other] == NORMAL:
                for row in range(3):
                    made &= _sign(strengths[seat, row], strengths[other, row], bank) == 1
            elif status[other] == FOUL:
                made &= rules[F_HOMERUN_COUNTS] >= 1
            elif status[other] == SURRENDER:
                made &= rules[F_HOMERUN_COUNTS] == 2
            else:
                made = False
            if not made:
                break
        if made:
            return seat
    return -1


@njit(cache=True)
def _bank_of(a, b, rules):
    """1 if seat a is the bank, -1 if seat b is, else 0."""
    if rules[F_TOPOLOGY] != 1:
        return 0
    return 1 if rules[F_BANKER] == a else -1 if rules[F_BANKER] == b else 0


@njit(cache=True)
def _settle_pool(strengths, status, units):
    """Pool: ante 3, each row pays N, shared by its best ordinary hands; times POOL_SCALE."""
    num_seats = status.shape[0]
    num_normal = 0
    for seat in range(num_seats):
        num_normal += status[seat] == NORMAL
        units[seat] = 0
    if num_normal == 0:
        return
    for seat in range(num_seats):
        units[seat] = -3 * POOL_SCALE
    # bit sets of seats: those that won every row alone so far, and those that share a row
    sweepers = np.int64(15)
    for row in range(3):
        best = -1
        takers = shared = np.int64(0)
        for seat in range(num_seats):
            if status[seat] != NORMAL or strengths[seat, row] < best:
                continue
            if strengths[seat, row] > best:
                best = strengths[seat, row]
                takers = shared = np.int64(0)
            takers |= 1 << seat
            shared += 1
        for seat in range(num_seats):
            if takers >> seat & 1:
                units[seat] += num_seats * POOL_SCALE // shared
        sweepers &= takers if shared == 1 else 0
    if sweepers:
        for seat in range(num_seats):
            if sweepers >> seat & 1:
                units[seat] += 3 * POOL_SCALE * (num_normal - 1)
            elif status[seat] == NORMAL:
                units[seat] -= 3 * POOL_SCALE


_S_STRENGTH, _S_GAIN, _S_KEPT, _S_UNITS = 0, 3, 6, 7
"""Columns of the scratch of `_settle_rows`: strengths and gains of three rows, then one each."""


@njit(cache=True, forceinline=True)
def _fill_seat(seats, seat, front, middle, back, rules):
    """Fill a line of the scratch of `_settle_rows`."""
    plain0, prize0, kept0 = _row_gain(front_royalty(front, rules), rules)
    plain1, prize1, kept1 = _row_gain(middle_royalty(middle, rules), rules)
    plain2, prize2, kept2 = _row_gain(back_royalty(back, rules), rules)
    seats[seat, _S_STRENGTH] = front
    seats[seat, _S_STRENGTH + 1] = middle
    seats[seat, _S_STRENGTH + 2] = back
    seats[seat, _S_GAIN] = plain0 + 8 * prize0
    seats[seat, _S_GAIN + 1] = plain1 + 8 * prize1
    seats[seat, _S_GAIN + 2] = plain2 + 8 * prize2
    seats[seat, _S_KEPT] = kept0 + kept1 + kept2
    seats[seat, _S_UNITS] = 0


@njit(cache=True, forceinline=True)
def _rows_total(seats, a, b, bank, homerun, rules):
    """(units, rows won less rows lost) of seat a against seat b, as `_rows_parts` has them.

    Rows are won and lost at random, so the winner's gain is looked up, not branched on.
    """
    rows = gains = np.int64(0)
    for row in range(3):
        result = _sign(seats[a, row], seats[b, row], bank)
        rows += result
        gains += result * seats[a if result > 0 else b, _S_GAIN + row]
    plain = ((gains + 4) & 7) - 4
    royalties = ((gains - plain) >> 3) + seats[a, _S_KEPT] - seats[b, _S_KEPT]
    scoop, _ = _scoop_part(rows, plain, royalties, homerun, rules)
    points = plain + royalties + scoop
    return points + _overall_part(rows, points, rules), rows


@njit(cache=True)
def _settle_rows(strengths, status, rules, seats, units, pairs):
    """Settle the deals where all seats show ordinary hands: units (B, N) and pairs (N, N).

    What a row takes when it wins is read once a seat, not once a pairing, into seats (4, 8) int64
    of scratch: a gain holds plain units in its lowest three bits, royalty units above them, so
    that both add up at once. All deals share pairs (1, N, N), or each has its own.
    """
    num_seats = status.shape[1]
    is_banked = rules[F_TOPOLOGY] == 1
    runs_home = rules[F_SCOOP] == 3 and num_seats == 4
    for deal in range(status.shape[0]):
        if _is_special(status, deal):
            continue
        at = deal if pairs.shape[0] > 1 else 0
        for seat in range(num_seats):
            _fill_seat(
                seats, seat, strengths[deal, seat, 0], strengths[deal, seat, 1],
                strengths[deal, seat, 2], rules,
            )  # fmt: skip
        # four bits a seat count its scoops
        scoops = np.int64(0)
        for b in range(num_seats):
            for a in range(b):
                bank = _bank_of(a, b, rules)
                if is_banked and bank == 0:
                    continue
                total, rows = _rows_total(seats, a, b, bank, np.int64(0), rules)
                scoops += (1 if rows * rows == 9 else 0) << 4 * (a if rows > 0 else b)
                seats[a, _S_UNITS] += total
                seats[b, _S_UNITS] -= total
                pairs[at, a, b] = total
                pairs[at, b, a] = -total
        runner = _seat_of_three(scoops) if runs_home else -1
        if runner >= 0:
            for other in range(num_seats):
                if other == runner:
                    continue
                bank = _bank_of(runner, other, rules)
                total, _ = _rows_total(seats, runner, other, bank, np.int64(1), rules)
                more = total - pairs[at, runner, other]
                seats[runner, _S_UNITS] += more
                seats[other, _S_UNITS] -= more
                pairs[at, runner, other] = total
                pairs[at, other, runner] = -total
        for seat in range(num_seats):
            units[deal, seat] = seats[seat, _S_UNITS]


@njit(cache=True)
def _seat_of_three(counts):
    """Seat whose four bits of `counts` hold 3, or -1."""
    for seat in range(4):
        if counts >> 4 * seat & 15 == 3:
            return seat
    return -1


@njit(cache=True)
def _is_special(status, deal):
    """Whether a seat of a deal shows no ordinary hand."""
    found = 0
    for seat in range(status.shape[1]):
        found |= status[deal, seat]
    return found != NORMAL


@njit(cache=True)
def _settle_pairs(strengths, status, naturals, keys, rules, pairs):
    """Fill pairs (N, N) whatever the seats show."""
    num_seats = status.shape[0]
    runner = _homerun_seat(strengths, status, rules)
    for a in range(num_seats - 1):
        for b in range(a + 1, num_seats):
            bank = _bank_of(a, b, rules)
            if rules[F_TOPOLOGY] == 1 and bank == 0:
                pairs[a, b] = pairs[b, a] = 0
                continue
            homerun = 1 if runner == a else -1 if runner == b else 0
            parts = _pair_parts(a, b, strengths, status, naturals, keys, bank, homerun, rules)
            pairs[a, b] = parts[PART_TOTAL]
            pairs[b, a] = -parts[PART_TOTAL]


@njit(cache=True)
def _settle_special(strengths, status, naturals, keys, rules, units, pairs):
    """Settle the deals `_settle_rows` leaves out, or those of a pool."""
    num_seats = status.shape[1]
    for deal in range(status.shape[0]):
        if rules[F_TOPOLOGY] == 2:
            _settle_pool(strengths[deal], status[deal], units[deal])
            continue
        if not _is_special(status, deal):
            continue
        at = deal if pairs.shape[0] > 1 else 0
        _settle_pairs(strengths[deal], status[deal], naturals[deal], keys[deal], rules, pairs[at])
        for seat in range(num_seats):
            total = 0
            for other in range(num_seats):
                total += pairs[at, seat, other]
            units[deal, seat] = total


@njit(cache=True, nogil=True)
def settle_pairs_into(strengths, status, naturals, keys, rules, units, pairs):
    """`settle_into` and the pairings: pairs (B, N, N) int32, what column b owes row a.

    0 where no pairing is held: with oneself, between seats without the bank, all of a pool.
    """
    pairs[:] = 0
    if rules[F_TOPOLOGY] != 2:
        _settle_rows(strengths, status, rules, np.empty((4, 8), np.int64), units, pairs)
    _settle_special(strengths, status, naturals, keys, rules, units, pairs)


@njit(cache=True, nogil=True)
def settle_into(strengths, status, naturals, keys, rules, units):
    """Kernel units (B, N) int32 of settled deals.

    strengths (B, N, 3), status (B, N), naturals (B, N) declared pattern or -1, keys (B, N).
    """
    pairs = np.empty((1, units.shape[1], units.shape[1]), np.int32)
    settle_pairs_into(strengths, status, naturals, keys, rules, units, pairs)


@njit(cache=True)
def settle_parts_into(strengths, status, naturals, keys, rules, parts):
    """Parts (N, N, NUM_PARTS) of every pairing a < b of one deal; kind -1 where none is held."""
    num_seats = status.shape[0]
    parts[:] = 0
    parts[:, :, PART_KIND] = -1
    if rules[F_TOPOLOGY] == 2:
        return
    runner = _homerun_seat(strengths, status, rules)
    for a in range(num_seats - 1):
        for b in range(a + 1, num_seats):
            bank = _bank_of(a, b, rules)
            if rules[F_TOPOLOGY] == 1 and bank == 0:
                continue
            homerun = 1 if runner == a else -1 if runner == b else 0
            found = _pair_parts(a, b, strengths, status, naturals, keys, bank, homerun, rules)
            for place, part in enumerate(found):
                parts[a, b, place] = part


@njit(cache=True, nogil=True)
def resolve_into(
    hands, rows, declarations, naturals, can_surrender, row_tables, natural_tables, rules,
    strengths, status, declared, keys,
):  # fmt: skip
    """From actions to what is settled, for M seats; a declaration not available shows the rows.

    declarations (M,) 0 show, 1 surrender, 2 natural; naturals (M,) the one to declare or -1;
    can_surrender (M,) bool. Fills strengths (M, 3), status (M,), declared (M,) pattern or -1,
    keys (M,).
    """
    offset, fives, fronts, min_middle = row_tables
    back_may_tie = rules[F_BACK_MAY_TIE] == 1
    for m in range(hands.shape[0]):
        keys[m] = 0
        declared[m] = -1
        front = middle = back = np.int64(0)
        sized = _has_row_sizes(rows, m)
        if sized:
            front, middle, back = row_strengths(hands, rows, m, offset, fives, fronts)
        strengths[m, 0], strengths[m, 1], strengths[m, 2] = front, middle, back
        if declarations[m] == 1 and can_surrender[m]:
            status[m] = SURRENDER
        elif declarations[m] == 2 and naturals[m] >= 0:
            status[m] = NATURAL
            declared[m] = naturals[m]
            keys[m] = natural_key(hands[m], naturals[m], natural_tables, rules)
        elif sized and _in_order(front, middle, back, min_middle, back_may_tie):
            status[m] = NORMAL
        else:
            status[m] = FOUL


@njit(cache=True, nogil=True)
def score_into(
    hands, rows, declarations, naturals, can_surrender, row_tables, natural_tables, rules,
    strengths, status, declared, keys, units, pairs,
):  # fmt: skip
    """From actions to units: `resolve_into` for all seats (B, N), then `settle_pairs_into`.

    units (B, N) float64 are in the rules' own scale.
    """
    seats = status.size
    kernel_units = np.empty(status.shape, np.int32)
    resolve_into(
        hands.reshape(seats, 13), rows.reshape(seats, 13), declarations.reshape(seats),
        naturals.reshape(seats), can_surrender.reshape(seats), row_tables, natural_tables, rules,
        strengths.reshape(seats, 3), status.reshape(seats), declared.reshape(seats),
        keys.reshape(seats),
    )  # fmt: skip
    settle_pairs_into(strengths, status, declared, keys, rules, kernel_units, pairs)
    scale = POOL_SCALE if rules[F_TOPOLOGY] == 2 else 1
    for b in range(units.shape[0]):
        for seat in range(units.shape[1]):
            units[b, seat] = kernel_units[b, seat] / scale


_ALL_CARDS = 0x1FFF
_STRENGTH_SHIFT = 13
"""Sort keys of fives: the strength above this bit, the 13-bit mask below it."""
MAX_FRONTIER = 286 * 126
"""Largest frontier that could exist: one arrangement for every front and split."""


class SearchTables(NamedTuple):
    """What the search of arrangements reads, as `RowTables` and `SplitTables` describe it."""

    offset: np.ndarray
    fives: np.ndarray
    front: np.ndarray
    min_middle: np.ndarray
    front_masks: np.ndarray
    five_masks: np.ndarray
    remainders: np.ndarray


@njit(cache=True)
def _search_tables(row_tables, split_tables):
    offset, fives, front, min_middle = row_tables
    front_masks, five_masks, _, _, _, remainders = split_tables
    return SearchTables(offset, fives, front, min_middle, front_masks, five_masks, remainders)


class Scratch(NamedTuple):
    """Work arrays of one thread for the kernels that search the arrangements of a hand.

    A hand is laid out in *places*: ranks high to low and, within a rank, cards of suits too short
    for a flush first. `laid` (3, 13): rank of each place; place of each card of the hand; places of
    one suit.
    suits: (4,) mask of the places of each suit.
    triples: (2, 286), index shares of three cards as the end of a five and as a front.
    fives: (8192,) int16 strength by mask, -1 if the mask is no five.
    keys, spare: (1288,) int32, distinct backs strongest first, as strength and mask.
    counts: (287,) int32 for counting sorts.
    fronts: (5, 286) int32, distinct fronts strongest first: mask, strength, lowest legal middle,
        cover, first position of the same strength. Cover is the best middle found over a front at
        least this strong, or one less than the lowest legal middle if that is more.
    found: (3, room) int32, arrangements found: back mask, front position, middle.
    """

    laid: np.ndarray
    suits: np.ndarray
    triples: np.ndarray
    fives: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    counts: np.ndarray
    fronts: np.ndarray
    found: np.ndarray


@njit(cache=True)
def _new_scratch(room):
    return Scratch(
        np.empty((3, 13), np.int64),
        np.empty(4, np.int64),
        np.empty((2, 286), np.int64),
        np.full(1 << 13, -1, np.int16),
        np.empty(1288, np.int32),
        np.empty(1288, np.int32),
        np.empty(287, np.int32),
        np.empty((5, 286), np.int32),
        np.empty((3, room), np.int32),
    )


@njit(cache=True)
def _lay_out(hand, scratch):
    """Fill `laid` and `suits`; bit i of what comes back: places i and i + 1 are interchangeable."""
    laid, suits = scratch.laid, scratch.suits
    lengths = np.int64(0)
    for i in range(13):
        lengths += np.int64(1) << (4 * (hand[i] & 3))
    suits[:] = 0
    links = np.int64(0)
    place = start = 0
    while start < 13:
        rank = hand[start] >> 2
        end = start + 1
        while end < 13 and hand[end] >> 2 == rank:
            end += 1
        for flushing in range(2):
            first = True
            for i in range(start, end):
                suit = np.int64(hand[i] & 3)
                if ((lengths >> (4 * suit)) & 15 >= 5) != (flushing == 1):
                    continue
                laid[0, place] = rank
                laid[1, i] = place
                suits[suit] |= np.int64(1) << place
                if flushing == 0 and not first:
                    links |= np.int64(1) << (place - 1)
                first = False
                place += 1
        start = end
    return links


@njit(cache=True)
def _fill_fives(tables, scratch):
    """Fill `triples` and `fives` of the hand laid out."""
    offset, plain, masks = tables.offset, tables.fives[0], tables.front_masks
    ranks, triples, fives = scratch.laid[0], scratch.triples, scratch.fives
    place = 0
    for i in range(11):
        tail_i = offset[2, ranks[i]]
        front_i = offset[0, ranks[i]]
        for j in range(i + 1, 12):
            tail_j = tail_i + offset[3, ranks[j]]
            front_j = front_i + offset[1, ranks[j]]
            for k in range(j + 1, 13):
                triples[0, place] = tail_j + offset[4, ranks[k]]
                triples[1, place] = front_j + offset[2, ranks[k]]
                place += 1
    # Triples of the places after j are the last ones in lexicographic order.
    for j in range(1, 10):
        left = 12 - j
        tail = 286 - left * (left - 1) * (left - 2) // 6
        index_j = offset[1, ranks[j]]
        for i in range(j):
            index = offset[0, ranks[i]] + index_j
            pair = 1 << i | 1 << j
            for t in range(tail, 286):
                fives[(pair | masks[t]) & _ALL_CARDS] = plain[(index + triples[0, t]) & _ALL_CARDS]
    for suit in range(4):
        _fill_flushes(scratch.suits[suit], tables, scratch)


@njit(cache=True)
def _fill_flushes(held, tables, scratch):
    """Correct `fives` for those within the mask `held`, cards of one suit, if there are any."""
    count = 0
    places = scratch.laid[2]
    for place in range(13):
        if held >> place & 1:
            places[count] = place
            count += 1
    if count < 5:
        return
    ranks, offset, fives = scratch.laid[0], tables.offset, scratch.fives
    for i in range(count - 4):
        index_i = offset[0, ranks[places[i]]]
        for j in range(i + 1, count - 3):
            index_j = index_i + offset[1, ranks[places[j]]]
            mask_j = 1 << places[i] | 1 << places[j]
            for k in range(j + 1, count - 2):
                index_k = index_j + offset[2, ranks[places[k]]]
                mask_k = mask_j | 1 << places[k]
                for m in range(k + 1, count - 1):
                    index_m = index_k + offset[3, ranks[places[m]]]
                    mask_m = mask_k | 1 << places[m]
                    for n in range(m + 1, count):
                        index = index_m + offset[4, ranks[places[n]]]
                        fives[mask_m | 1 << places[n]] = tables.fives[1][index]


@njit(cache=True)
def _sort_backs(links, tables, scratch):
    """Fill `keys` with the backs that take interchangeable cards from the left; their number."""
    masks, fives = tables.five_masks, scratch.fives
    keys, spare = scratch.keys, scratch.spare
    size = 0
    for place in range(1287):
        mask = np.int64(masks[place])
        keys[size] = np.int64(fives[mask & _ALL_CARDS]) << _STRENGTH_SHIFT | mask
        # Overwritten unless it counts: a branch here would be mispredicted every other time.
        size += (mask >> 1) & links & ~mask == 0
    _sort_by_digit(keys[:size], spare[:size], scratch.counts[:128], _STRENGTH_SHIFT)
    _sort_by_digit(spare[:size], keys[:size], scratch.counts[:128], _STRENGTH_SHIFT + 7)
    return size


@njit(cache=True)
def _sort_by_digit(keys, sorted_keys, counts, shift):
    """Stable descending sort of keys by one digit, which has `counts.size` values."""
    base = counts.size - 1
    counts[:] = 0
    for i in range(keys.size):
        counts[base - ((keys[i] >> shift) & base)] += 1
    total = np.int32(0)
    for digit in range(counts.size):
        count = counts[digit]
        counts[digit] = total
        total += count
    for i in range(keys.size):
        digit = base - ((keys[i] >> shift) & base)
        at = counts[digit]
        sorted_keys[at] = keys[i]
        counts[digit] = at + 1


@njit(cache=True)
def _sort_fronts(links, tables, scratch):
    """Fill `fronts` with those that take interchangeable cards from the right; their number."""
    masks, shares = tables.front_masks, scratch.triples[1]
    fronts, spare, counts = scratch.fronts, scratch.spare, scratch.counts[:32]
    size = 0
    for t in range(286):
        mask = np.int64(masks[t])
        spare[size] = np.int64(tables.front[shares[t]]) << _STRENGTH_SHIFT | mask
        size += mask & links & ~(mask >> 1) == 0
    unsorted, half_sorted = spare[:size], spare[286 : 286 + size]
    _sort_by_digit(unsorted, half_sorted, counts, _STRENGTH_SHIFT)
    _sort_by_digit(half_sorted, unsorted, counts, _STRENGTH_SHIFT + 5)
    for position in range(size):
        strength = np.int64(spare[position] >> _STRENGTH_SHIFT)
        fronts[0, position] = spare[position] & _ALL_CARDS
        fronts[1, position] = strength
        lowest = tables.min_middle[strength]
        fronts[2, position] = lowest
        fronts[3, position] = lowest - 1
        same = position > 0 and fronts[1, position - 1] == strength
        fronts[4, position] = fronts[4, position - 1] if same else position
    return size


@njit(cache=True)
def _raise_cover(cover, middle):
    for position in range(cover.size):
        cover[position] = max(cover[position], middle)


@njit(cache=True)
def _search_frontier(hand, tables, rules, scratch):
    """Fill `fronts` and `found` with the frontier of a hand; how many arrangements it has.

    Backs are walked from the strongest, so an arrangement is dominated exactly if `cover` says so:
    by one found before, or by one of a back as strong. Of interchangeable cards the back takes
    those on the left, the front those on the right, so each distinct arrangement is met once.
    """
    links = _lay_out(hand, scratch)
    _fill_fives(tables, scratch)
    num_backs = _sort_backs(links, tables, scratch)
    num_fronts = _sort_fronts(links, tables, scratch)
    keys, fives, found = scratch.keys, scratch.fives, scratch.found
    masks, lowest, cover = scratch.fronts[0], scratch.fronts[2], scratch.fronts[3]
    head = scratch.fronts[4]
    may_tie = rules[F_BACK_MAY_TIE] == 1
    num_found = 0
    first, last = 0, num_fronts
    start = 0
    while start < num_backs:
        back = keys[start] >> _STRENGTH_SHIFT
        end = start + 1
        while end < num_backs and keys[end] >> _STRENGTH_SHIFT == back:
            end += 1
        # The strongest middle that may stand before this back, or before any weaker one.
        top = back if may_tie else keys[end] >> _STRENGTH_SHIFT if end < num_backs else -1
        while first < last and lowest[first] > top:
            first += 1
        while last > first and cover[last - 1] >= top:
            last -= 1
        if first == last:
            break
        group = num_found
        live, live_cover = masks[first:last], cover[first:last]
        for place in range(start, end):
            mask = keys[place] & _ALL_CARDS
            rest = _ALL_CARDS ^ mask
            for position in range(live.size):
                # A front that shares a card with the back leaves a mask that is no five.
                middle = fives[(rest ^ live[position]) & _ALL_CARDS]
                if live_cover[position] < middle <= top:
                    found[0, num_found] = mask
                    found[1, num_found] = first + position
                    found[2, num_found] = middle
                    num_found += 1
                    _raise_cover(cover[head[first + position] : last], middle)
        kept = group
        for i in range(group, num_found):
            position, middle = found[1, i], found[2, i]
            before = head[position] - 1
            beaten = before >= 0 and cover[before] >= max(middle, lowest[before])
            if cover[position] == middle and not beaten:
                for part in range(3):
                    found[part, kept] = found[part, i]
                kept += 1
        num_found = kept
        start = end
    return num_found


@njit(cache=True)
def _write_rows(front_mask, back_mask, place_of, rows):
    for i in range(13):
        place = place_of[i]
        rows[i] = 1 - (front_mask >> place & 1) + (back_mask >> place & 1)


@njit(cache=True, nogil=True)
def frontier_into(hands, first, row_tables, split_tables, rules, starts, strengths, rows):
    """Frontiers of hands[first:] into ragged arrays, until the room in `strengths` may run out.

    starts (H + 1,) int64 gets the bounds, counted from starts[first]; strengths (room, 3) int16 and
    rows (room, 13) int8 the arrangements, front descending then middle ascending. Returns how many
    hands are done so far.
    """
    tables = _search_tables(row_tables, split_tables)
    scratch = _new_scratch(MAX_FRONTIER)
    found, counts, fives = scratch.found, scratch.counts, scratch.fives
    base = starts[first]
    for h in range(first, hands.shape[0]):
        num_found = _search_frontier(hands[h], tables, rules, scratch)
        start = starts[h] - base
        if start + num_found > strengths.shape[0]:
            return h
        # Of a front the middles were found in ascending order, so sorting by front is enough.
        counts[:287] = 0
        head = scratch.fronts[4]
        for i in range(num_found):
            counts[head[found[1, i]]] += 1
        total = np.int32(0)
        for position in range(286):
            counts[position], total = total, total + counts[position]
        for i in range(num_found):
            mask, position, middle = found[0, i], found[1, i], found[2, i]
            at = start + counts[head[position]]
            counts[head[position]] += 1
            strengths[at, 0] = scratch.fronts[1, position]
            strengths[at, 1] = middle
            strengths[at, 2] = fives[mask]
            _write_rows(scratch.fronts[0, position], mask, scratch.laid[1], rows[at])
        starts[h + 1] = starts[h] + num_found
    return hands.shape[0]


@njit(cache=True, nogil=True)
def greedy_into(hands, row_tables, split_tables, rules, rows):
    """Arrangement with the best back, then middle, then front, of hands (M, 13), into rows.

    Backs are tried from the strongest; the first strength that leaves a legal rest is the answer.
    Of equal strengths the first in table order is laid, so no card changes its place here.
    """
    tables = _search_tables(row_tables, split_tables)
    scratch = _new_scratch(0)
    front_masks, masks, fives = tables.front_masks, tables.five_masks, scratch.fives
    remainders = tables.remainders
    may_tie = rules[F_BACK_MAY_TIE] == 1
    for h in range(hands.shape[0]):
        scratch.suits[:] = 0
        for i in range(13):
            scratch.laid[0, i] = hands[h, i] >> 2
            scratch.laid[1, i] = i
            scratch.suits[hands[h, i] & 3] |= 1 << i
        _fill_fives(tables, scratch)
        back = NUM_STRENGTHS
        best = np.int64(-1)
        back_mask = front_mask = np.int64(0)
        while best < 0:
            back = _strongest_below(fives, back)
            top = back if may_tie else back - 1
            for place in range(1287):
                mask = np.int64(masks[place])
                if fives[mask & _ALL_CARDS] != back:
                    continue
                for rest in range(56):
                    x, t = remainders[place, rest, 0], remainders[place, rest, 1]
                    middle = np.int64(fives[np.int64(masks[x]) & _ALL_CARDS])
                    front = np.int64(tables.front[scratch.triples[1, t]])
                    score = middle << 9 | front
                    if best < score and tables.min_middle[front] <= middle <= top:
                        best = score
                        back_mask, front_mask = mask, np.int64(front_masks[t])
        _write_rows(front_mask, back_mask, scratch.laid[1], rows[h])


@njit(cache=True)
def _strongest_below(fives, bound):
    strongest = np.int16(-1)
    for mask in range(fives.size):
        strength = fives[mask]
        strongest = max(strongest, strength if strength < bound else np.int16(-1))
    return np.int64(strongest)


@njit(cache=True)
def sort_hands_into(hands, sorted_hands):
    """Hands (H, 13) int8 of cards 0..51, each highest first; returns the first hand that holds a
    card twice, or -1.
    """
    for h in range(hands.shape[0]):
        ordered = sorted_hands[h]
        for i in range(13):
            card = hands[h, i]
            place = i
            while place > 0 and ordered[place - 1] < card:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = card
            if place > 0 and ordered[place - 1] == card:
                return h
    return -1


class Worth(NamedTuple):
    """A value function of row strengths, as `best_into` reads it.

    front (455, 5), middle and back (7462, 5) float64: units of the row, chance to win it, chance to
    lose it, share of a scoop's prize, share of the price of being scooped. Chances are multiples
    of 2**-16, so that sums of products of three are exact.
    front_peaks (455,), middle_peaks (7462,) float64: most units of any strength up to this one.
    majority: units for more rows won than lost, and lost the other way round.
    joint_limit: no less than scoop and majority can bring.
    has_joint: whether they are there at all.
    is_monotone: whether no stronger row is ever worth less.
    """

    front: np.ndarray
    middle: np.ndarray
    back: np.ndarray
    front_peaks: np.ndarray
    middle_peaks: np.ndarray
    majority: float
    joint_limit: float
    has_joint: bool
    is_monotone: bool


@njit(cache=True)
def _worth_of(front, middle, back, worth):
    total = worth.front[front, 0] + worth.middle[middle, 0] + worth.back[back, 0]
    if worth.has_joint:
        total += _joint_of(worth.front[front], worth.middle[middle], worth.back[back], worth)
    return total


@njit(cache=True)
def _joint_of(front, middle, back, worth):
    """Units of scoop and majority if rows are won and lost independently.

    With r the results -1, 0, 1 of the rows, the sign of their sum is the polynomial
    sum r_i - (sum r_i r_j^2) / 2 + (sum r_i r_j^2 r_k^2 - r_0 r_1 r_2) / 2; d and e are the means
    of r and r^2.
    """
    win0, win1, win2 = front[1], middle[1], back[1]
    lose0, lose1, lose2 = front[2], middle[2], back[2]
    scoop = win0 * win1 * win2 * (front[3] + middle[3] + back[3])
    scooped = lose0 * lose1 * lose2 * (front[4] + middle[4] + back[4])
    d0, d1, d2 = win0 - lose0, win1 - lose1, win2 - lose2
    e0, e1, e2 = win0 + lose0, win1 + lose1, win2 + lose2
    pairs = d0 * (e1 + e2) + d1 * (e0 + e2) + d2 * (e0 + e1)
    triples = d0 * e1 * e2 + d1 * e0 * e2 + d2 * e0 * e1 - d0 * d1 * d2
    sign = d0 + d1 + d2 - 0.5 * pairs + 0.5 * triples
    return scoop - scooped + worth.majority * sign


@njit(cache=True, nogil=True)
def worth_into(strengths, worth, values):
    """Values (M,) float64 of arrangements (M, 3)."""
    for m in range(strengths.shape[0]):
        values[m] = _worth_of(strengths[m, 0], strengths[m, 1], strengths[m, 2], worth)


@njit(cache=True, nogil=True)
def best_into(hands, row_tables, split_tables, rules, worth, rows, strengths, values):
    """Most valuable legal arrangement of hands (H, 13), as rows, strengths (H, 3) and values (H,).

    Of equal values the highest back, then middle, then front; of equal strengths the first found.
    """
    tables = _search_tables(row_tables, split_tables)
    scratch = _new_scratch(0)
    for h in range(hands.shape[0]):
        _search_best(hands[h], tables, rules, worth, scratch, rows[h], strengths[h], values[h:])


@njit(cache=True)
def _search_best(hand, tables, rules, worth, scratch, rows, laid, value):
    """The walk of `_search_frontier`, with a bound on what is left.

    If the value is monotone, arrangements that are dominated and fronts too weak to reach the best
    value are passed over for good; else single backs and arrangements are.
    """
    links = _lay_out(hand, scratch)
    _fill_fives(tables, scratch)
    num_backs = _sort_backs(links, tables, scratch)
    num_fronts = _sort_fronts(links, tables, scratch)
    keys, fives = scratch.keys, scratch.fives
    masks, strengths = scratch.fronts[0], scratch.fronts[1]
    lowest, cover, head = scratch.fronts[2], scratch.fronts[3], scratch.fronts[4]
    may_tie = rules[F_BACK_MAY_TIE] == 1
    best = -np.inf
    laid[2] = -1
    best_mask = best_front = np.int64(0)
    first, last = 0, num_fronts
    start = 0
    while start < num_backs:
        back = np.int64(keys[start] >> _STRENGTH_SHIFT)
        end = start + 1
        while end < num_backs and keys[end] >> _STRENGTH_SHIFT == back:
            end += 1
        top = back if may_tie else keys[end] >> _STRENGTH_SHIFT if end < num_backs else -1
        while first < last and lowest[first] > top:
            first += 1
        while last > first and cover[last - 1] >= top:
            last -= 1
        if worth.is_monotone:
            # Over weaker fronts, not even the strongest middle would do.
            limit = np.int64(top)
            while last > first:
                if _worth_of(np.int64(strengths[last - 1]), limit, back, worth) > best:
                    break
                last -= 1
        if first == last:
            break
        if not worth.is_monotone:
            units = worth.front_peaks[strengths[first]] + worth.middle_peaks[top]
            if units + worth.back[back, 0] + worth.joint_limit <= best:
                start = end
                continue
        live, live_cover = masks[first:last], cover[first:last]
        for place in range(start, end):
            mask = keys[place] & _ALL_CARDS
            rest = _ALL_CARDS ^ mask
            for position in range(live.size):
                middle = np.int64(fives[(rest ^ live[position]) & _ALL_CARDS])
                if live_cover[position] < middle <= top:
                    front = np.int64(strengths[first + position])
                    if worth.is_monotone:
                        _raise_cover(cover[head[first + position] : last], middle)
                    else:
                        units = worth.front[front, 0] + worth.middle[middle, 0]
                        if units + worth.back[back, 0] + worth.joint_limit < best:
                            continue
                    found = _worth_of(front, middle, back, worth)
                    if found < best or (
                        found == best and (laid[2] > back or (laid[1], laid[0]) >= (middle, front))
                    ):
                        continue
                    best = found
                    laid[0], laid[1], laid[2] = front, middle, back
                    best_mask, best_front = np.int64(mask), np.int64(live[position])
        start = end
    value[0] = best
    _write_rows(best_front, best_mask, scratch.laid[1], rows)


@njit(cache=True)
def select_into(starts, strengths, rows, values, k, top_rows, top_strengths, top_values, counts):
    """The k most valuable of each hand's arrangements starts[h]:starts[h + 1], by insertion.

    Of equal values the stronger back, then middle, comes first. Fills (H, k, ...) arrays up to
    counts (H,).
    """
    order = np.empty(k, np.int64)
    for h in range(starts.shape[0] - 1):
        size = 0
        for m in range(starts[h], starts[h + 1]):
            place = size
            while place > 0 and _precedes(m, order[place - 1], strengths, values):
                place -= 1
            if place == k:
                continue
            size = min(size + 1, k)
            for at in range(size - 1, place, -1):
                order[at] = order[at - 1]
            order[place] = m
        for place in range(size):
            top_rows[h, place] = rows[order[place]]
            top_strengths[h, place] = strengths[order[place]]
            top_values[h, place] = values[order[place]]
        counts[h] = size


@njit(cache=True)
def _precedes(m, other, strengths, values):
    if values[m] != values[other]:
        return values[m] > values[other]
    if strengths[m, 2] != strengths[other, 2]:
        return strengths[m, 2] > strengths[other, 2]
    return strengths[m, 1] > strengths[other, 1]


@njit(cache=True, forceinline=True)
def _strength_of_five(hands, m, five_cards, place, offset, fives):
    """Strength of the five of hand m at this place of tables.five_cards."""
    index = mixed = np.int64(0)
    for i in range(5):
        card = np.int64(hands[m, five_cards[place, i]])
        index += offset[i, card >> 2 & 15]
        mixed |= 15 ^ 1 << (card & 3)
    return fives[np.int64(mixed != 15), index]


@njit(cache=True, forceinline=True)
def _strength_of_front(hands, m, front_cards, place, offset, fronts):
    """Strength of the front of hand m at this place of tables.front_cards."""
    index = np.int64(0)
    for i in range(3):
        index += offset[i, np.int64(hands[m, front_cards[place, i]]) >> 2 & 15]
    return fronts[index]


@njit(cache=True)
def _holds_equal_fives(hands, m):
    """Whether hand m has the five pairs of like ranks that two rows of one strength take."""
    counts = np.int64(0)
    for i in range(13):
        counts += 1 << 3 * (np.int64(hands[m, i]) >> 2)
    return (counts >> 1 & _PAIRS_OF_RANKS) % 7 >= 5


@njit(cache=True, nogil=True)
def uniform_into(hands, keys, indices, streams, row_tables, split_tables, rules, rows):
    """A uniformly drawn legal arrangement of each hand (M, 13), by rejection, into rows.

    A front and an unordered split of the rest are drawn, the stronger five is the back: every
    legal arrangement comes of one such draw. Where equal fives are legal they stand for two
    arrangements, so a hand that may hold them draws the order of the fives too.
    The draw of hand m is a function of (keys[m], indices[m], streams[m]) alone.
    """
    offset, fives, fronts, min_middle = row_tables
    _, _, front_cards, five_cards, splits, _ = split_tables
    back_may_tie = rules[F_BACK_MAY_TIE] == 1
    words = np.empty(4, np.uint64)
    state = np.zeros(1, np.int64)
    for m in range(hands.shape[0]):
        state[0] = 0
        is_ordered = back_may_tie and _holds_equal_fives(hands, m)
        bound = _NUM_UNORDERED * 2 if is_ordered else _NUM_UNORDERED
        front = middle = np.int64(0)
        is_legal = False
        while not is_legal:
            drawn = _bounded(words, state, keys[m], indices[m], streams[m], bound)
            is_swapped = drawn >= _NUM_UNORDERED
            drawn -= _NUM_UNORDERED if is_swapped else 0
            front = drawn // NUM_SPLITS
            x = np.int64(splits[front, drawn % NUM_SPLITS, 0])
            y = np.int64(splits[front, drawn % NUM_SPLITS, 1])
            strength_x = _strength_of_five(hands, m, five_cards, x, offset, fives)
            strength_y = _strength_of_five(hands, m, five_cards, y, offset, fives)
            lowest = min_middle[_strength_of_front(hands, m, front_cards, front, offset, fronts)]
            is_swapped |= not is_ordered and strength_x > strength_y
            middle = y if is_swapped else x
            lower = strength_y if is_swapped else strength_x
            upper = strength_x if is_swapped else strength_y
            is_legal = lower >= lowest and (upper > lower or (upper == lower and is_ordered))
        for i in range(13):
            rows[m, i] = 2
        for i in range(3):
            rows[m, front_cards[front, i]] = 0
        for i in range(5):
            rows[m, five_cards[middle, i]] = 1


@njit(cache=True, nogil=True)
def row_values_into(histogram, row, bank, rules, values, wins, losses):
    """What each strength of one row is worth against a random row drawn from `histogram`.

    histogram (S,) float64 sums to 1; `bank` 1 or -1 if the row's owner or its opponent takes ties.
    Fills values, wins, losses (S,) float64: expected units (royalties included, scoop aside),
    chances to win and to lose the row.
    """
    size = histogram.shape[0]
    won, kept = np.empty(size), np.empty(size)
    lost_above = kept_by_all = win = 0.0
    loss = 1.0
    for s in range(size):
        royalty = (
            front_royalty(s, rules) if row == 0
            else middle_royalty(s, rules) if row == 1
            else back_royalty(s, rules)
        )  # fmt: skip
        plain, prize, kept_s = _row_gain(royalty, rules)
        won[s], kept[s] = plain + prize, kept_s
        lost_above += histogram[s] * won[s]
        kept_by_all += histogram[s] * kept[s]
    for s in range(size):
        same = histogram[s]
        loss -= same
        lost_above -= same * won[s]
        values[s] = win * won[s] - lost_above + kept[s] - kept_by_all + bank * same * won[s]
        wins[s] = win + same * (bank > 0)
        losses[s] = max(loss, 0.0) + same * (bank < 0)
        win += same


@njit(cache=True, nogil=True)
def independent_values_into(strengths, values, wins, losses, rules, out):
    """Expected units to arrangements (M, 3) against one opponent whose rows are independent.

    values, wins, losses: per row, as `row_values_into` fills them. Scoop and overall point are
    added from the chances of all 27 row results: the way that is right for every rule, also where
    the points of a pairing decide the overall point. Not for the pool.
    """
    chance = np.empty((3, 3), np.float64)
    for m in range(strengths.shape[0]):
        front, middle, back = strengths[m, 0], strengths[m, 1], strengths[m, 2]
        for row in range(3):
            place = front if row == 0 else middle if row == 1 else back
            chance[row, 0] = losses[row][place]
            chance[row, 2] = wins[row][place]
            chance[row, 1] = 1.0 - chance[row, 0] - chance[row, 2]
        total = values[0][front] + values[1][middle] + values[2][back]
        mine0 = front_royalty(front, rules)
        mine1 = middle_royalty(middle, rules)
        mine2 = back_royalty(back, rules)
        for r0 in range(-1, 2):
            units0, royalty0 = row_result(r0, mine0, 0 * mine0, rules)
            for r1 in range(-1, 2):
                units1, royalty1 = row_result(r1, mine1, 0 * mine1, rules)
                for r2 in range(-1, 2):
                    weight = chance[0, r0 + 1] * chance[1, r1 + 1] * chance[2, r2 + 1]
                    units2, royalty2 = row_result(r2, mine2, 0 * mine2, rules)
                    units = units0 + units1 + units2
                    royalties = royalty0 + royalty1 + royalty2
                    rows = r0 + r1 + r2
                    scoop, _ = _scoop_part(rows, units, royalties, 0, rules)
                    by_points = rules[F_OVERALL_BY_POINTS] == 1
                    leader = units + royalties + scoop if by_points else rows
                    total += weight * (scoop + rules[F_OVERALL_POINT] * _sign(leader, 0, 0))
        out[m] = total


@njit(cache=True)
def scoop_shares_into(rules, prizes, prices):
    """What each strength of a row adds to a scoop made (`prizes`) and suffered (`prices`).

    Per row (S,) float64 units; the opponent's royalties are left out.
    """
    for row in range(3):
        # A scoop's part is linear in units and royalties but for a constant, counted once.
        shared = 0 if row == 0 else _scoop_part(3, 0, 0, 0, rules)[0]
        for s in range(prizes[row].shape[0]):
            mine = (
                front_royalty(s, rules) if row == 0
                else middle_royalty(s, rules) if row == 1
                else back_royalty(s, rules)
            )  # fmt: skip
            won, royalty_won = row_result(1, mine, 0 * mine, rules)
            lost, royalty_lost = row_result(-1, mine, 0 * mine, rules)
            prizes[row][s] = _scoop_part(3, won, royalty_won, 0, rules)[0] - shared
            prices[row][s] = -_scoop_part(-3, lost, royalty_lost, 0, rules)[0] - shared


@njit(cache=True, nogil=True)
def population_values_into(
    hands, starts, candidates, naturals, bank,
    pool_masks, pool_bank, pool_strengths, pool_status, pool_naturals, pool_keys, max_opponents,
    natural_tables, rules, values, surrender_values, declare_values, num_opponents,
):  # fmt: skip
    """Exact mean units of every option of hands against those of a population that could sit there.

    For hand h the opponents are the first `max_opponents` population hands that share no card with
    it and sit on the other side of the bank, from a start that moves with h; each pairing is
    settled exactly (home runs aside, and the pool as two seats play it).

    hands (H, 13), starts (H + 1,), candidates (M, 3) strengths, naturals (H,) best pattern or -1,
    bank (H,) 1, 0, -1; population: masks (P,) uint64, bank (P,), strengths (P, 3), status,
    naturals, keys (P,).
    Fills values (M,), surrender_values, declare_values (H,) float32 and num_opponents (H,) int32.
    """
    size = pool_masks.shape[0]
    chosen = np.empty(max_opponents, np.int64)
    strengths = np.empty((2, 3), np.int16)
    status = np.empty(2, np.int8)
    patterns = np.empty(2, np.int8)
    keys = np.empty(2, np.int64)
    units = np.empty(2, np.int32)
    for h in range(hands.shape[0]):
        mask = np.uint64(0)
        for i in range(13):
            mask |= np.uint64(1) << np.uint64(hands[h, i])
        found = 0
        first = np.int64(philox(mask, np.uint64(h), _LOW32, _LOW32, _LOW32)[0]) % size
        for step in range(size):
            p = first + step
            if p >= size:
                p -= size
            if pool_masks[p] & mask == 0 and pool_bank[p] == -bank[h]:
                chosen[found] = p
                found += 1
                if found == max_opponents:
                    break
        num_opponents[h] = found
        patterns[0] = naturals[h]
        keys[0] = (
            natural_key(hands[h], naturals[h], natural_tables, rules) if naturals[h] >= 0 else 0
        )
        # Options: the candidates, then surrender, then the natural.
        num_candidates = starts[h + 1] - starts[h]
        for option in range(num_candidates + 2):
            is_declared = option == num_candidates + 1
            if option < num_candidates:
                strengths[0] = candidates[starts[h] + option]
                status[0] = NORMAL
            elif is_declared:
                status[0] = NATURAL
            else:
                status[0] = SURRENDER
            total = np.int64(0)
            if not is_declared or naturals[h] >= 0:
                for place in range(found):
                    p = chosen[place]
                    if rules[F_TOPOLOGY] != 2 and status[0] == NORMAL and pool_status[p] == NORMAL:
                        total += _rows_parts(strengths[0], pool_strengths[p], bank[h], 0, rules)[0]
                        continue
                    strengths[1] = pool_strengths[p]
                    status[1], patterns[1], keys[1] = pool_status[p], pool_naturals[p], pool_keys[p]
                    if rules[F_TOPOLOGY] == 2:
                        _settle_pool(strengths, status, units)
                        total += units[0]
                    else:
                        total += _pair_parts(
                            0, 1, strengths, status, patterns, keys, bank[h], 0, rules
                        )[PART_TOTAL]
            mean = total / max(found, 1)
            if rules[F_TOPOLOGY] == 2:
                mean /= POOL_SCALE
            if option < num_candidates:
                values[starts[h] + option] = mean
            elif is_declared:
                declare_values[h] = mean
            else:
                surrender_values[h] = mean


@njit(cache=True, nogil=True)
def hand_inputs_into(hands, banks, inputs):
    """What a network is told of hands (H, 13): inputs (H, 109) float32, the same for renamed suits.

    Suits come in an order of their own, the longest first, of equal ones that with the higher
    cards. 52 cards by rank and suit; 52 whether a rank is held at least once to four times; the
    suits' lengths / 4; the side of the bank (H,).
    """
    ranks, keys = np.empty(13, np.int64), np.empty(4, np.int64)
    place = np.empty(4, np.int64)
    for h in range(hands.shape[0]):
        ranks[:] = 0
        keys[:] = 0
        inputs[h, :] = 0.0
        for i in range(13):
            ranks[hands[h, i] >> 2] += 1
            keys[hands[h, i] & 3] += (1 << 13) + (1 << (hands[h, i] >> 2))
        for suit in range(4):
            place[suit] = 0
            for other in range(4):
                comes_first = keys[other] > keys[suit] or (
                    keys[other] == keys[suit] and other < suit
                )
                place[suit] += comes_first
            inputs[h, 104 + place[suit]] = (keys[suit] >> 13) / 4
        for i in range(13):
            inputs[h, (hands[h, i] & ~3) + place[hands[h, i] & 3]] = 1.0
        for rank in range(13):
            for count in range(ranks[rank]):
                inputs[h, 52 + 4 * rank + count] = 1.0
        inputs[h, 108] = banks[h]


@njit(cache=True, nogil=True)
def network_values_into(
    starts, strengths, sides, hidden, fronts, middles, backs, weights, levels, values
):
    """Add to values (M,) float64 of candidates (M, 3) what a network corrects them by.

    The correction is levels (H,) plus weights (W,) times a hidden layer of W units, a power of two.
    To that a hand brings hidden (H, W), and each row its part by side of the bank and strength:
    fronts (S, 455, W), middles and backs (S, 7462, W), all float32; sides (H,) say which. starts
    (H + 1,).
    """
    width = weights.shape[0]
    zero = np.float32(0)
    layer = np.empty(width, np.float32)
    for h in range(hidden.shape[0]):
        mine, side = hidden[h], sides[h]
        for m in range(starts[h], starts[h + 1]):
            front = fronts[side, strengths[m, 0]]
            middle = middles[side, strengths[m, 1]]
            back = backs[side, strengths[m, 2]]
            for unit in range(width):
                signal = mine[unit] + front[unit] + middle[unit] + back[unit]
                layer[unit] = (signal if signal > zero else zero) * weights[unit]
            # Halves are added, not one unit after the other: that compiles to vector instructions.
            half = width
            while half > 1:
                half //= 2
                for unit in range(half):
                    layer[unit] += layer[unit + half]
            values[m] += levels[h] + layer[0]


class ChanceTables(NamedTuple):
    """What rows are worth and how own cards change that, as `corrected_into` reads it.

    worth: value of rows that are won independently of each other and of the hand.
    gains: (3, S) units that move from loser to winner with one more row won.
    places: (3, S) float64 place of a strength among the K knots of its row.
    coefficients: (3, K, F) what each feature of the hand adds to the chance to win at a knot.
    shared: (F,) units that each feature adds whatever is shown.
    scoops: (2, 3) units for the first three powers of the chance to scoop, and to be scooped.
    """

    worth: Worth
    gains: np.ndarray
    places: np.ndarray
    coefficients: np.ndarray
    shared: np.ndarray
    scoops: np.ndarray


NUM_FEATURES = 27
"""One, thirteen ranks, three suits and ten straights."""


@njit(cache=True, nogil=True)
def features_into(hands, features):
    """Features (H, NUM_FEATURES) float64 of hands: what they leave to the others.

    The constant 1, how many of each rank they hold more than one, the lengths of their three
    longest suits and how many ranks of each straight, as differences from usual hands.
    """
    ranks = np.empty(14, np.int64)
    suits = np.empty(4, np.int64)
    for h in range(hands.shape[0]):
        ranks[:] = 0
        suits[:] = 0
        for i in range(13):
            ranks[(hands[h, i] >> 2) + 1] += 1
            suits[hands[h, i] & 3] += 1
        ranks[0] = ranks[13]
        suits.sort()
        features[h, 0] = 1.0
        for rank in range(13):
            features[h, 1 + rank] = ranks[rank + 1] - 1.0
        features[h, 14] = 0.5 * (suits[3] - 5)
        features[h, 15] = 0.5 * (suits[2] - 4)
        features[h, 16] = 0.5 * (suits[1] - 3)
        for low in range(10):
            held = 0
            for rank in range(low, low + 5):
                held += ranks[rank] > 0
            features[h, 17 + low] = 0.3 * (held - 3)


@njit(cache=True)
def _lay_effects(features, tables, effects):
    """Fill effects (3, K): what a hand's own cards add to its chance to win, at each knot."""
    coefficients = tables.coefficients
    for row in range(3):
        for knot in range(coefficients.shape[1]):
            effect = 0.0
            for i in range(NUM_FEATURES):
                effect += coefficients[row, knot, i] * features[i]
            effects[row, knot] = effect


@njit(cache=True, forceinline=True)
def _knot_of(place, num_knots):
    """(knot below, share of the knot above) of a place among knots."""
    knot = min(np.int64(place), num_knots - 2)
    return knot, place - knot


@njit(cache=True)
def _take_rows(strengths, tables, rows):
    """Copy to rows (3, 5) what the tables say of three strengths."""
    rows[0] = tables.worth.front[strengths[0]]
    rows[1] = tables.worth.middle[strengths[1]]
    rows[2] = tables.worth.back[strengths[2]]


@njit(cache=True)
def _correct_rows(strengths, tables, effects, rows):
    """Move chances of rows (3, 5) by what the hand's own cards do; returns the units that adds."""
    added = 0.0
    for row in range(3):
        knot, share = _knot_of(tables.places[row, strengths[row]], effects.shape[1])
        effect = effects[row, knot] * (1.0 - share) + effects[row, knot + 1] * share
        rows[row, 1] += effect
        rows[row, 2] -= effect
        added += effect * tables.gains[row, strengths[row]]
    return added


@njit(cache=True, nogil=True)
def corrected_into(starts, strengths, features, tables, values):
    """Values (M,) of arrangements (M, 3) of hands of features (H, F), own cards considered."""
    effects = np.empty(tables.coefficients.shape[:2])
    rows = np.empty((3, 5))
    for h in range(starts.size - 1):
        _lay_effects(features[h], tables, effects)
        shared = 0.0
        for i in range(NUM_FEATURES):
            shared += tables.shared[i] * features[h, i]
        for m in range(starts[h], starts[h + 1]):
            _take_rows(strengths[m], tables, rows)
            total = shared + rows[0, 0] + rows[1, 0] + rows[2, 0]
            won, lost = _scoop_chances(rows)
            for power in range(3):
                total += tables.scoops[0, power] * won ** (power + 1)
                total += tables.scoops[1, power] * lost ** (power + 1)
            total += _correct_rows(strengths[m], tables, effects, rows)
            if tables.worth.has_joint:
                total += _joint_of(rows[0], rows[1], rows[2], tables.worth)
            values[m] = total


@njit(cache=True, forceinline=True)
def _scoop_chances(rows):
    return rows[0, 1] * rows[1, 1] * rows[2, 1], rows[0, 2] * rows[1, 2] * rows[2, 2]


@njit(cache=True)
def _slopes_into(rows, strengths, tables, slopes):
    """What one more chance to win each row, instead of to lose it, adds to the value; (3,)."""
    prize = rows[0, 3] + rows[1, 3] + rows[2, 3]
    price = rows[0, 4] + rows[1, 4] + rows[2, 4]
    for row in range(3):
        j, k = (row + 1) % 3, (row + 2) % 3
        tied = (1.0 - rows[j, 1] - rows[j, 2]) * (1.0 - rows[k, 1] - rows[k, 2])
        margins = (rows[j, 1] - rows[j, 2]) * (rows[k, 1] - rows[k, 2])
        slopes[row] = (
            tables.gains[row, strengths[row]]
            + rows[j, 1] * rows[k, 1] * prize
            + rows[j, 2] * rows[k, 2] * price
            + tables.worth.majority * (1.0 + tied - margins)
        )


@njit(cache=True, nogil=True)
def add_equations_into(
    starts, strengths, features, targets, weights, least, tables, matrix, vector
):
    """Add the normal equations of the unknowns of `tables` to matrix (D, D) and vector (D,).

    Unknowns in order: coefficients (3, K, F), shared (F,), scoops (2, 3). The model is linear
    around the tables without them, which hold zeros there. targets (M,) values, weights (M,);
    those below `least` are passed over. Only the lower triangle is filled.
    """
    num_knots = tables.coefficients.shape[1]
    shared_at = 3 * num_knots * NUM_FEATURES
    size = 6 * NUM_FEATURES + NUM_FEATURES + 6
    where = np.empty(size, np.int64)
    x = np.empty(size)
    rows = np.empty((3, 5))
    slopes = np.empty(3)
    for h in range(starts.size - 1):
        for m in range(starts[h], starts[h + 1]):
            if weights[m] < least:
                continue
            _take_rows(strengths[m], tables, rows)
            _slopes_into(rows, strengths[m], tables, slopes)
            at = 0
            for row in range(3):
                knot, share = _knot_of(tables.places[row, strengths[m, row]], num_knots)
                first = (row * num_knots + knot) * NUM_FEATURES
                for i in range(2 * NUM_FEATURES):
                    part = 1.0 - share if i < NUM_FEATURES else share
                    where[at] = first + i
                    x[at] = slopes[row] * part * features[h, i % NUM_FEATURES]
                    at += 1
            for i in range(NUM_FEATURES):
                where[at] = shared_at + i
                x[at] = features[h, i]
                at += 1
            won, lost = _scoop_chances(rows)
            for power in range(3):
                where[at + power] = shared_at + NUM_FEATURES + power
                where[at + 3 + power] = shared_at + NUM_FEATURES + 3 + power
                x[at + power], x[at + 3 + power] = won ** (power + 1), lost ** (power + 1)
            base = rows[0, 0] + rows[1, 0] + rows[2, 0]
            if tables.worth.has_joint:
                base += _joint_of(rows[0], rows[1], rows[2], tables.worth)
            error = targets[m] - base
            for i in range(size):
                scaled = weights[m] * x[i]
                if scaled == 0.0:
                    continue
                vector[where[i]] += scaled * error
                line = matrix[where[i]]
                for j in range(i + 1):
                    line[where[j]] += scaled * x[j]


@intrinsic
def _ctpop(typingctx, x):
    def build(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build


# What is overloaded stands for itself where nothing is compiled.
def _num_ones(x):
    """How many bits of a uint64 are set."""
    return np.uint64(int(x).bit_count())


def _next_bit(x):
    """Place of the lowest bit set of a uint64, any if there is none, and x without that bit."""
    lowest = int(x) & -int(x)
    return lowest.bit_length() - 1, np.uint64(int(x) ^ lowest)


@overload(_num_ones)
def _overload_num_ones(x):
    return lambda x: _ctpop(x)  # type: ignore[call-arg]


@overload(_next_bit)
def _overload_next_bit(x):
    return lambda x: (np.int64(_num_ones(~x & (x - _ONE))), x & (x - _ONE))


_BLOCK = 2048
"""Opponents met at once."""
_BLOCK_WORDS = _BLOCK // 64
_COUNTED = 1 << 40
"""One opponent in `Meeting.tallies`; what many opponents gain stays below."""
_NUM_KINDS = NATURAL + NUM_PATTERNS


class Meeting(NamedTuple):
    """Scratch of `responses_into` for hands of at most M candidates and L opponents.

    The strengths that the candidates have in a row cut all strengths into steps: 2 c holds those
    between cuts c - 1 and c in ascending order, 2 c + 1 cut c itself, the last one those above all.
    K opponents make a block.

    steps: (3, 7462) uint16, the step of each strength.
    cuts: (3, M) int16 strengths, and num_cuts (3,).
    prizes: (M,) int64, units that a scoop adds to each candidate.
    specials: (L,) int32, the opponents of a half that show no ordinary hand.
    kinds: (13,) int64, how many of a half have each status, naturals each pattern.
    block: (3, K) int16, row strengths of ordinary opponents.
    seats: (K + 1, 8) int64, as `_settle_rows` has them.
    runs: (K,) int64, chance of each of a block to make a home run of a scoop, in 256ths.
    won: (M,) int64, opponents of a half that each candidate scoops.
    their_prizes: (K,) int64, units that a scoop adds to each of a block.
    lost: (K / 64,) uint64, a set of a block.
    digits: (16, K / 64) uint64, which of a block have each binary digit in their prize, beyond the
        least of all.
    passed: (3, 2 M + 1, K / 64) uint64, which of a block are in a step or below.
    tallies: (3, 2 M + 1) int64, how many of a half are in a step, times 2**40, and their gains.
    values: (3, M) int64, units of a row by cut, scoop and overall point aside.
    """

    steps: np.ndarray
    cuts: np.ndarray
    num_cuts: np.ndarray
    prizes: np.ndarray
    specials: np.ndarray
    kinds: np.ndarray
    block: np.ndarray
    seats: np.ndarray
    runs: np.ndarray
    won: np.ndarray
    their_prizes: np.ndarray
    lost: np.ndarray
    digits: np.ndarray
    passed: np.ndarray
    tallies: np.ndarray
    values: np.ndarray


@njit(cache=True)
def _new_meeting(room, limit):
    return Meeting(
        np.empty((3, 7462), np.uint16),
        np.empty((3, room), np.int16),
        np.empty(3, np.int64),
        np.empty(room, np.int64),
        np.empty(limit + 1, np.int32),
        np.empty(_NUM_KINDS, np.int64),
        np.empty((3, _BLOCK), np.int16),
        np.empty((_BLOCK + 1, 8), np.int64),
        np.empty(_BLOCK, np.int64),
        np.empty(room, np.int64),
        np.empty(_BLOCK, np.int64),
        np.empty(_BLOCK_WORDS, np.uint64),
        np.empty((16, _BLOCK_WORDS), np.uint64),
        np.empty((3, 2 * room + 1, _BLOCK_WORDS), np.uint64),
        np.empty((3, 2 * room + 1), np.int64),
        np.empty((3, room), np.int64),
    )


class Pair(NamedTuple):
    """Two seats to settle: strengths (2, 3), the others and `units` of a pool (2,)."""

    strengths: np.ndarray
    status: np.ndarray
    naturals: np.ndarray
    keys: np.ndarray
    units: np.ndarray


@njit(cache=True)
def _new_pair():
    return Pair(
        np.zeros((2, 3), np.int16),
        np.zeros(2, np.int8),
        np.full(2, -1, np.int8),
        np.zeros(2, np.int64),
        np.zeros(2, np.int32),
    )


@njit(cache=True)
def _price_of(pair, bank, rules):
    """Units to the first of two seats."""
    if rules[F_TOPOLOGY] == 2:
        _settle_pool(pair.strengths, pair.status, pair.units)
        return pair.units[0] / POOL_SCALE
    parts = _pair_parts(0, 1, pair.strengths, pair.status, pair.naturals, pair.keys, bank, 0, rules)
    return np.float64(parts[PART_TOTAL])


@njit(cache=True)
def _table_royalty(row, strength, rules):
    if row == 0:
        return front_royalty(strength, rules)
    return middle_royalty(strength, rules) if row == 1 else back_royalty(strength, rules)


@njit(cache=True)
def gains_into(rules, gains, kept):
    """What a row of each strength gains when it wins, and has in any case; (3, 7462) int64 each."""
    is_pool = rules[F_TOPOLOGY] == 2
    for row in range(3):
        for strength in range(455 if row == 0 else 7462):
            royalty = 0 if is_pool else _table_royalty(row, strength, rules)
            plain, prize, always = _row_gain(royalty, rules)
            gains[row, strength] = plain + prize
            kept[row, strength] = always


@njit(cache=True)
def _scoop_prize(front, middle, back, rules):
    """What winning all three rows adds, home runs aside, where royalties are paid to winners."""
    if rules[F_TOPOLOGY] == 2:
        return np.int64(3)
    plain0, royalty0, _ = _row_gain(front_royalty(front, rules), rules)
    plain1, royalty1, _ = _row_gain(middle_royalty(middle, rules), rules)
    plain2, royalty2, _ = _row_gain(back_royalty(back, rules), rules)
    units, royalties = plain0 + plain1 + plain2, royalty0 + royalty1 + royalty2
    return np.int64(_scoop_part(3, units, royalties, 0, rules)[0])


@njit(cache=True)
def _plain_units(front, middle, back, rules):
    """Plain units that a winner of all three rows takes, which a home run counts once more."""
    plain0, _, _ = _row_gain(front_royalty(front, rules), rules)
    plain1, _, _ = _row_gain(middle_royalty(middle, rules), rules)
    plain2, _, _ = _row_gain(back_royalty(back, rules), rules)
    return np.int64(plain0 + plain1 + plain2)


@njit(cache=True)
def _is_separable(rules):
    """Whether a pairing's units are a sum over rows, a scoop of the winner's and an overall point
    that rows decide.
    """
    # Without royalties points and rows agree.
    by_points = rules[F_OVERALL_BY_POINTS] == 1 and rules[F_ROYALTIES] != 0
    by_points = by_points and rules[F_OVERALL_POINT] != 0
    both_royalties = rules[F_SCOOP] == 2 and rules[F_ROYALTIES] == 2
    return rules[F_TOPOLOGY] == 2 or not (by_points or both_royalties)


@njit(cache=True)
def _find_disjoint(hand, across, holders, rest, words, found, limit, chosen):
    """Add to chosen[found:] the members of set `across` (W,) that hold no card of `hand`, in order.

    Returns how many `chosen` has then, `limit` at most; it has room for 68 more. rest and words
    (W,) are scratch.
    """
    card = hand[12]
    for w in range(across.size):
        rest[w] = across[w] & ~holders[card, w]
    for i in range(0, 12, 4):
        a, b, c, d = hand[i], hand[i + 1], hand[i + 2], hand[i + 3]
        for w in range(across.size):
            rest[w] &= ~(holders[a, w] | holders[b, w] | holders[c, w] | holders[d, w])
    # Most words are empty and most others have a few bits, so branching on each would be slow.
    num = 0
    for w in range(across.size):
        words[num] = w
        num += rest[w] != 0
    for at in range(num):
        w = words[at]
        word = rest[w]
        end = found + np.int64(_num_ones(word))
        while found < end:
            for i in range(4):
                place, word = _next_bit(word)
                chosen[found + i] = 64 * w + place
            found += 4
        found = end
        if found >= limit:
            return limit
    return found


@njit(cache=True)
def _cut_strengths(candidates, meeting):
    """Fill steps, cuts and num_cuts for candidates (M, 3)."""
    steps, cuts = meeting.steps, meeting.cuts
    held = np.empty(117, np.uint64)
    for row in range(3):
        held[:] = 0
        for m in range(candidates.shape[0]):
            strength = np.int64(candidates[m, row])
            held[strength >> 6] |= _ONE << np.uint64(strength & 63)
        cut = above = 0
        for w in range(117):
            word = held[w]
            while word != 0:
                place, word = _next_bit(word)
                strength = 64 * w + place
                steps[row, above:strength] = 2 * cut
                steps[row, strength] = 2 * cut + 1
                cuts[row, cut] = strength
                above = strength + 1
                cut += 1
        steps[row, above:] = 2 * cut
        meeting.num_cuts[row] = cut


@njit(cache=True)
def _fill_block(place, chosen, found, strengths, status, runs, num_special, meeting):
    """Put the ordinary hands among every other one of `chosen` into block, others into specials.

    Returns how many the block has, how many specials there are now, and the place to go on from.
    """
    block, specials = meeting.block, meeting.specials
    num = 0
    while place < found and num < _BLOCK:
        p = chosen[place]
        block[0, num] = strengths[p, 0]
        block[1, num] = strengths[p, 1]
        block[2, num] = strengths[p, 2]
        if runs.size:
            meeting.runs[num] = runs[p]
        specials[num_special] = p
        num += status[p] == NORMAL
        num_special += status[p] != NORMAL
        place += 2
    return num, num_special, place


@njit(cache=True)
def _pass_block(row, num, has_sets, gains, meeting):
    """Add the `num` opponents of a block to tallies of a row, and fill passed."""
    steps, block, passed, tallies = meeting.steps, meeting.block, meeting.passed, meeting.tallies
    last = 2 * meeting.num_cuts[row]
    if has_sets:
        passed[row, :last] = 0
    for k in range(num):
        strength = block[row, k]
        step = steps[row, strength]
        tallies[row, step] += gains[row, strength] + _COUNTED
        if has_sets:
            passed[row, step, k >> 6] |= _ONE << np.uint64(k & 63)
    if has_sets:
        for step in range(1, last):
            for w in range(_BLOCK_WORDS):
                passed[row, step, w] |= passed[row, step - 1, w]


@njit(cache=True)
def _value_rows(bank, gains, kept, kept_by_them, meeting):
    """Fill values from tallies; kept_by_them (3,) is what all opponents keep."""
    tallies, cuts, values = meeting.tallies, meeting.cuts, meeting.values
    for row in range(3):
        above = np.int64(0)
        for step in range(2 * meeting.num_cuts[row] + 1):
            above += tallies[row, step]
        num = above // _COUNTED
        below = np.int64(0)
        for cut in range(meeting.num_cuts[row]):
            tied = tallies[row, 2 * cut + 1]
            below += tallies[row, 2 * cut]
            above -= tallies[row, 2 * cut] + tied
            won = (below + (tied if bank == 1 else 0)) // _COUNTED
            lost = (above + (tied if bank == -1 else 0)) % _COUNTED
            strength = cuts[row, cut]
            keeps = num * kept[row, strength] - kept_by_them[row]
            values[row, cut] = won * gains[row, strength] - lost + keeps
            below += tied


@njit(cache=True)
def _meet_ordinary(
    candidates, half, chosen, found, strengths, status, runs, bank, rules, gains, kept, meeting,
    totals,
):  # fmt: skip
    """Add to totals (M,) the units of candidates (M, 3) against the ordinary hands of a half.

    Returns how many others there are, which fill specials.
    """
    block, steps, values = meeting.block, meeting.steps, meeting.values
    is_separable = _is_separable(rules)
    is_pool = rules[F_TOPOLOGY] == 2
    has_scoop = is_pool or rules[F_SCOOP] != 0
    has_point = not is_pool and rules[F_OVERALL_POINT] != 0
    kept_by_them = np.zeros(3, np.int64)
    may_run = runs.size > 0 and bank != 1
    meeting.tallies[:] = 0
    meeting.won[:] = 0
    num_special = np.int64(0)
    place = half
    while place < found:
        num, num_special, place = _fill_block(
            place, chosen, found, strengths, status, runs, num_special, meeting
        )
        if not is_separable:
            _meet_one_by_one(candidates, num, bank, rules, meeting, totals)
            continue
        for row in range(3):
            _pass_block(row, num, has_scoop or has_point, gains, meeting)
            if rules[F_ROYALTIES] == 2:
                for k in range(num):
                    kept_by_them[row] += kept[row, block[row, k]]
        if has_scoop:
            _meet_scoops(candidates, num, bank, may_run, rules, meeting, totals)
        if has_point:
            _meet_majorities(candidates, num, bank, rules, meeting, totals)
    if is_separable:
        _value_rows(bank, gains, kept, kept_by_them, meeting)
        for m in range(candidates.shape[0]):
            for row in range(3):
                totals[m] += values[row, steps[row, candidates[m, row]] >> 1]
    return num_special


@njit(cache=True)
def _meet_one_by_one(candidates, num, bank, rules, meeting, totals):
    """Add to totals (M,) all units of candidates (M, 3) against a block, pairing by pairing."""
    block, seats = meeting.block, meeting.seats
    for k in range(num):
        _fill_seat(seats, k + 1, block[0, k], block[1, k], block[2, k], rules)
    for m in range(candidates.shape[0]):
        _fill_seat(seats, 0, candidates[m, 0], candidates[m, 1], candidates[m, 2], rules)
        total = np.int64(0)
        for k in range(num):
            total += _rows_total(seats, 0, k + 1, bank, 0, rules)[0]
        totals[m] += total


@njit(cache=True)
def _meet_scoops(candidates, num, bank, may_run, rules, meeting, totals):
    """Add to totals (M,) what scoops move between candidates (M, 3) and a block.

    `may_run`: the block's scoops may be part of home runs.
    """
    steps, passed, lost, digits = meeting.steps, meeting.passed, meeting.lost, meeting.digits
    words = (num + 63) >> 6
    least, num_digits = _fill_digits(num, may_run, rules, meeting)
    scale = 1.0 / 256 if may_run else 1.0
    # Ties are beaten by the bank, and beat who plays against it.
    below, upto = -1 if bank != 1 else 0, -1 if bank == -1 else 0
    for m in range(candidates.shape[0]):
        i = np.int64(steps[0, candidates[m, 0]])
        j = np.int64(steps[1, candidates[m, 1]])
        k = np.int64(steps[2, candidates[m, 2]])
        num_won = num_unlost = np.uint64(0)
        for w in range(words):
            num_won += _num_ones(
                passed[0, i + below, w] & passed[1, j + below, w] & passed[2, k + below, w]
            )
            unlost = passed[0, i + upto, w] | passed[1, j + upto, w] | passed[2, k + upto, w]
            num_unlost += _num_ones(unlost)
            lost[w] = ~unlost
        meeting.won[m] += np.int64(num_won)
        owed = (num - np.int64(num_unlost)) * least
        for digit in range(num_digits):
            ones = np.uint64(0)
            for w in range(words):
                ones += _num_ones(lost[w] & digits[digit, w])
            owed += np.int64(ones) << digit
        totals[m] += np.int64(num_won) * meeting.prizes[m] - owed * scale


@njit(cache=True)
def _fill_digits(num, may_run, rules, meeting):
    """Fill prizes and digits for a block, in 256ths of a unit where home runs may be made.

    Returns the least prize, and how many digits others have beyond it.
    """
    block, digits = meeting.block, meeting.digits
    # A plain scoop is worth the same to every winner, unless royalties stand for units or count.
    replaces = rules[F_ROYALTIES] == 1 and rules[F_ROYALTY_ADDS] == 0
    varies = may_run or rules[F_SCOOP] == 2 or (rules[F_SCOOP] == 3 and replaces)
    if rules[F_TOPOLOGY] == 2 or not varies:
        return _scoop_prize(0, 0, 0, rules), 0
    theirs = meeting.their_prizes
    for k in range(num):
        theirs[k] = _scoop_prize(block[0, k], block[1, k], block[2, k], rules)
        if may_run:
            plain = _plain_units(block[0, k], block[1, k], block[2, k], rules)
            theirs[k] = 256 * theirs[k] + plain * meeting.runs[k]
    least = theirs[:num].min() if num > 0 else np.int64(0)
    digits[:] = 0
    num_digits = 0
    for k in range(num):
        digit = 0
        while (theirs[k] - least) >> digit != 0:
            bit = np.uint64((theirs[k] - least) >> digit & 1)
            digits[digit, k >> 6] |= bit << np.uint64(k & 63)
            digit += 1
        num_digits = max(num_digits, digit)
    return least, num_digits


@njit(cache=True)
def _meet_majorities(candidates, num, bank, rules, meeting, totals):
    """Add to totals (M,) the overall points of candidates (M, 3) against a block."""
    steps, passed = meeting.steps, meeting.passed
    words = (num + 63) >> 6
    below, upto = -1 if bank != 1 else 0, -1 if bank == -1 else 0
    for m in range(candidates.shape[0]):
        i = np.int64(steps[0, candidates[m, 0]])
        j = np.int64(steps[1, candidates[m, 1]])
        k = np.int64(steps[2, candidates[m, 2]])
        ahead = not_behind = np.uint64(0)
        for w in range(words):
            # sets of those beaten in each row, then of those not lost to
            a, b, c = passed[0, i + below, w], passed[1, j + below, w], passed[2, k + below, w]
            d, e, f = passed[0, i + upto, w], passed[1, j + upto, w], passed[2, k + upto, w]
            any_won, none_lost = a | b | c, d & e & f
            ahead += _num_ones((a & b) | (c & (a | b)) | (any_won & none_lost))
            not_behind += _num_ones(((d & e) | (f & (d | e))) & (any_won | none_lost))
        margin = np.int64(ahead) + np.int64(not_behind) - num
        totals[m] += margin * rules[F_OVERALL_POINT]


@njit(cache=True)
def _meet_special(candidates, num, met, status, declared, keys, bank, rules, meeting, pair, totals):
    """Add to totals (M,) the units of candidates (M, 3) against `num` specials.

    Returns the units of giving up and of declaring against all `met` of a half; the seat that
    meets them is the first of `pair`.
    """
    kinds, specials = meeting.kinds, meeting.specials
    kinds[:] = 0
    kinds[NORMAL] = met - num
    for place in range(num):
        p = specials[place]
        kinds[status[p] + (declared[p] if status[p] == NATURAL else 0)] += 1
    give_up = declare = shared = 0.0
    declares = pair.naturals[0] >= 0
    for kind in range(_NUM_KINDS):
        if kinds[kind] == 0:
            continue
        pair.status[1] = min(kind, NATURAL)
        pair.naturals[1] = kind - NATURAL if kind >= NATURAL else -1
        pair.status[0] = SURRENDER
        give_up += kinds[kind] * _price_of(pair, bank, rules)
        if declares and kind < NATURAL:
            pair.status[0] = NATURAL
            declare += kinds[kind] * _price_of(pair, bank, rules)
        pair.status[0] = NORMAL
        if kind == FOUL:
            for m in range(candidates.shape[0]):
                pair.strengths[0] = candidates[m]
                totals[m] += kinds[kind] * _price_of(pair, bank, rules)
        elif kind != NORMAL:
            # Who surrenders or declares pays or collects the same whatever is shown.
            shared += kinds[kind] * _price_of(pair, bank, rules)
    for m in range(candidates.shape[0]):
        totals[m] += shared
    if declares:
        pair.status[:] = NATURAL
        for place in range(num):
            p = specials[place]
            if status[p] == NATURAL:
                pair.naturals[1], pair.keys[1] = declared[p], keys[p]
                declare += _price_of(pair, bank, rules)
    return give_up, declare


@njit(cache=True)
def _foul_against(half, chosen, found, strengths, status, declared, keys, bank, rules, pair):
    """Units of a foul against all of a half."""
    is_pool = rules[F_TOPOLOGY] == 2
    pair.status[0] = FOUL
    total = 0.0
    num_plain = 0
    for place in range(half, found, 2):
        p = chosen[place]
        if status[p] == NORMAL and not is_pool and not _has_royalty(strengths[p], rules):
            num_plain += 1
            continue
        pair.strengths[1] = strengths[p]
        pair.status[1], pair.naturals[1], pair.keys[1] = status[p], declared[p], keys[p]
        total += _price_of(pair, bank, rules)
    if num_plain:
        pair.strengths[1] = 0
        pair.status[1] = NORMAL
        total += num_plain * _price_of(pair, bank, rules)
    return total


@njit(cache=True)
def _has_royalty(strengths, rules):
    front, middle = front_royalty(strengths[0], rules), middle_royalty(strengths[1], rules)
    return front > 0 or middle > 0 or back_royalty(strengths[2], rules) > 0


@njit(cache=True, nogil=True)
def responses_into(
    relabelled, starts, candidates, last_fouls, naturals, natural_keys, bank,
    holders, sides, strengths, status, declared, keys, runs,
    rules, gains, kept, limit, values_fouls,
    values, surrender_values, declare_values, scoops, foul_values, num_opponents,
):  # fmt: skip
    """Exact mean units of every option of hands against the population that could sit there.

    A hand meets the population hands that share no card with it and sit on the other side of the
    bank, once for each relabelling of its suits; every other one found goes to the second half.
    Each pairing is settled exactly; a pool as two seats play it. Home runs count where runs (P,)
    uint8, the chance of each hand to make one of a scoop in 256ths, is not empty: as if opponents
    were independent of each other.

    relabelled (H, R, 13) int8 cards, starts (H + 1,), candidates (M, 3) strengths, last_fouls
    (H,) bool whether a hand's last candidate is a foul, naturals (H,) pattern or -1, natural_keys
    (H,), bank (H,) 1, 0, -1. Population of P hands, in sets of W = P / 64 words: holders (52, W)
    uint64 of each card, sides (3, W) of bank -1, 0, 1; strengths (P, 3), status, declared, keys
    (P,). gains and kept are those of `gains_into`. At most `limit` are met.
    Fills values (2, M), surrender_values, declare_values, num_opponents (2, H), scoops (2, M) with
    the share of opponents that each candidate scoops, and foul_values (2, H) if `values_fouls`.
    """
    longest = np.int64(0)
    for h in range(relabelled.shape[0]):
        longest = max(longest, starts[h + 1] - starts[h])
    meeting = _new_meeting(longest, limit)
    pair = _new_pair()
    chosen = np.empty(limit + 68, np.int32)
    rest, words = np.empty(sides.shape[1], np.uint64), np.empty(sides.shape[1], np.int32)
    for h in range(relabelled.shape[0]):
        found = np.int64(0)
        for relabelling in range(relabelled.shape[1]):
            found = _find_disjoint(
                relabelled[h, relabelling], sides[1 - bank[h]], holders, rest, words, found,
                limit, chosen,
            )  # fmt: skip
        mine = candidates[starts[h] : starts[h + 1]]
        _cut_strengths(mine, meeting)
        for m in range(mine.shape[0]):
            meeting.prizes[m] = _scoop_prize(mine[m, 0], mine[m, 1], mine[m, 2], rules)
        pair.naturals[0], pair.keys[0] = naturals[h], natural_keys[h]
        for half in range(2):
            totals = values[half, starts[h] : starts[h + 1]]
            totals[:] = 0.0
            num_special = _meet_ordinary(
                mine, half, chosen, found, strengths, status, runs, bank[h], rules, gains, kept,
                meeting, totals,
            )  # fmt: skip
            met = (found + 1 - half) // 2
            give_up, declare = _meet_special(
                mine, num_special, met, status, declared, keys, bank[h], rules, meeting, pair,
                totals,
            )  # fmt: skip
            scale = 1.0 / (met if met > 0 else 1)
            for m in range(mine.shape[0]):
                totals[m] *= scale
                share = meeting.won[m] * scale
                scoops[half, starts[h] + m] = share
                if runs.size and bank[h] != -1:
                    plain = _plain_units(mine[m, 0], mine[m, 1], mine[m, 2], rules)
                    totals[m] += plain * share**3
            if values_fouls:
                foul_values[half, h] = scale * _foul_against(
                    half, chosen, found, strengths, status, declared, keys, bank[h], rules, pair
                )
                if last_fouls[h]:
                    totals[mine.shape[0] - 1] = foul_values[half, h]
            surrender_values[half, h] = give_up * scale
            declare_values[half, h] = declare * scale
            num_opponents[half, h] = met


@njit(cache=True)
def _homerun_units(seat, strengths, status, rules):
    """What a home run adds to a seat's units of one deal, taken from it if another seat makes it.

    strengths (4, 3), status (4,).
    """
    total = np.int64(0)
    runner = _homerun_seat(strengths, status, rules)
    if runner < 0 or status[seat] != NORMAL:
        return total
    homerun = 1 if runner == seat else -1
    for other in range(status.shape[0]):
        if other == seat or status[other] != NORMAL or (homerun < 0 and other != runner):
            continue
        bank = _bank_of(seat, other, rules)
        total += _rows_parts(strengths[seat], strengths[other], bank, homerun, rules)[0]
        total -= _rows_parts(strengths[seat], strengths[other], bank, 0, rules)[0]
    return total


@njit(cache=True)
def _table_units(my_status, seat, strengths, status, rules, pool_units):
    """Units of a seat that pairings alone do not tell: all of a pool, else those of home runs."""
    status[seat] = my_status
    if rules[F_TOPOLOGY] == 2:
        _settle_pool(strengths, status, pool_units)
        return np.int64(pool_units[seat])
    return _homerun_units(seat, strengths, status, rules)


@njit(cache=True, nogil=True)
def table_units_into(
    seats, starts, candidates, last_fouls, naturals, strengths, status, rules, values,
    surrender_values, declare_values, foul_values,
):  # fmt: skip
    """Mean units of every option of hands over full tables: all of a pool, else what home runs add.

    Units are those of the whole deal; every other table goes to the second half.

    seats (H,) where each hand sits, starts (H + 1,), candidates (M, 3) strengths, last_fouls (H,)
    bool whether a hand's last candidate is a foul, naturals (H,) pattern or -1; strengths
    (H, T, N, 3) and status (H, T, N) of T tables of each hand, whatever is in its own seat.
    Fills values (2, M), surrender_values, declare_values, foul_values (2, H).
    """
    num_tables, num_seats = status.shape[1], status.shape[2]
    shown = np.empty((num_seats, 3), np.int16)
    shown_status = np.empty(num_seats, np.int8)
    pool_units = np.empty(num_seats, np.int32)
    values[:] = 0.0
    surrender_values[:] = 0.0
    declare_values[:] = 0.0
    foul_values[:] = 0.0
    for h in range(seats.shape[0]):
        seat, first, end = seats[h], starts[h], starts[h + 1]
        for table in range(num_tables):
            half = table & 1
            shown[:] = strengths[h, table]
            shown_status[:] = status[h, table]
            for m in range(first, end):
                for row in range(3):
                    shown[seat, row] = candidates[m, row]
                units = _table_units(NORMAL, seat, shown, shown_status, rules, pool_units)
                values[half, m] += units
            units = _table_units(SURRENDER, seat, shown, shown_status, rules, pool_units)
            surrender_values[half, h] += units
            units = _table_units(FOUL, seat, shown, shown_status, rules, pool_units)
            foul_values[half, h] += units
            if naturals[h] >= 0:
                units = _table_units(NATURAL, seat, shown, shown_status, rules, pool_units)
                declare_values[half, h] += units
        for half in range(2):
            scale = 1.0 / max((num_tables + 1 - half) // 2, 1)
            if rules[F_TOPOLOGY] == 2:
                scale /= POOL_SCALE
            surrender_values[half, h] *= scale
            declare_values[half, h] *= scale
            foul_values[half, h] *= scale
            for m in range(first, end):
                values[half, m] *= scale
            if last_fouls[h]:
                values[half, end - 1] = foul_values[half, h]


@njit(cache=True)
def is_within(values, high):
    """Whether integers (M,) are all in 0..high."""
    outside = np.int64(0)
    for i in range(values.shape[0]):
        outside |= np.int64(values[i] < 0) | np.int64(values[i] > high)
    return outside == 0


@njit(cache=True)
def lay_into(hands, rows, laid, starts):
    """Cards of hands (N, 13) in the order of their rows, laid (N, 13); starts (N, 2) of the last
    two rows.
    """
    for seat in range(hands.shape[0]):
        place = 0
        for row in range(3):
            if row > 0:
                starts[seat, row - 1] = place
            for i in range(13):
                if rows[seat, i] == row:
                    laid[seat, place] = hands[seat, i]
                    place += 1


@njit(cache=True, nogil=True)
def available_into(can_surrender, naturals, seat, available):
    """Declarations (B, 3) one seat has: to show always; of can_surrender, naturals (B, N)."""
    for b in range(available.shape[0]):
        available[b, 0] = 1
        available[b, 1] = can_surrender[b, seat]
        available[b, 2] = naturals[b, seat] >= 0


@njit(cache=True, nogil=True)
def missing_into(declarations, available, no_surrender, no_natural, problems):
    """Set the bit of each of declarations (B,) that is not among available (B, 3)."""
    for b in range(problems.shape[0]):
        said = declarations[b]
        if said != 0 and available[b, said] == 0:
            problems[b] = no_surrender if said == 1 else no_natural


@njit(cache=True, nogil=True)
def open_rows_into(room, reachable, open_rows):
    """Rows (B, 3) a card may go to: reachable ones with room, else any with room, else all."""
    for b in range(room.shape[0]):
        with_room, open_ones = 0, 0
        for row in range(3):
            has_room = room[b, row] > 0
            open_rows[b, row] = has_room and reachable[b, row] != 0
            with_room += has_room
            open_ones += open_rows[b, row]
        if open_ones == 0:
            for row in range(3):
                open_rows[b, row] = with_room == 0 or room[b, row] > 0


@njit(cache=True, nogil=True)
def step_masks_into(open_rows, available, at, masks):
    """Masks (B, 5) of a step: open rows (B, 3), and at the first what may be declared (B, 3)."""
    for b in range(at.shape[0]):
        for row in range(3):
            masks[b, row] = open_rows[b, row]
        for said in range(1, 3):
            masks[b, 2 + said] = available[b, said] if at[b] == 0 else 0


@njit(cache=True, nogil=True)
def step_problems_into(actions, masks, room, bits, problems):
    """What is wrong with actions (B,) 0..4; bits (4,): of either declaration, no room, a foul."""
    for b in range(actions.shape[0]):
        action = actions[b]
        problems[b] = 0
        if action >= 3:
            if masks[b, action] == 0:
                problems[b] = bits[action - 3]
        elif room[b, action] <= 0:
            problems[b] = bits[2]
        elif masks[b, action] == 0:
            problems[b] = bits[3]


@njit(cache=True, nogil=True)
def place_into(actions, problems, active, rows, room, at, finished, declarations, shown):
    """Carry out actions (B,) 0..4 of the active hands: a row for the next card, or a declaration.

    rows (B, 13), room (B, 3) and at (B,) go on; finished, declarations (B,) and shown (B, 13) say
    what became of the hands. A declaration with a problem puts the card into a row with room.
    """
    for b in range(actions.shape[0]):
        finished[b] = False
        declarations[b] = 0
        action = actions[b]
        declares = active[b] and action >= 3 and problems[b] == 0
        if declares:
            finished[b] = True
            declarations[b] = action - 2
            at[b] = 13
        elif active[b] and at[b] < 13:
            row = action
            if action >= 3:
                row = 0
                while row < 2 and room[b, row] <= 0:
                    row += 1
            rows[b, at[b]] = row
            room[b, row] -= 1
            at[b] += 1
            finished[b] = at[b] == 13
        for card in range(13):
            # Rows that stand for a hand nobody has to look at, from back to front.
            shown[b, card] = (2 - card // 5) if declares else rows[b, card]


@njit(cache=True, nogil=True)
def see_next_into(hands, at, next_card):
    """One bit of (B, 52) for the card of hands (B, 13) to place next; none after the last."""
    for b in range(at.shape[0]):
        for card in range(52):
            next_card[b, card] = 0
        if at[b] < 13:
            next_card[b, hands[b, at[b]]] = 1


@njit(cache=True, nogil=True)
def see_into(hands, bits, seat, cards, held, patterns):
    """What one seat sees of deals: its hand of hands (B, N, 13) and naturals of bits (B, N).

    Fills cards (B, 13), held (B, 52) and patterns (B, P) int8, the latter two as ones and zeros.
    """
    for b in range(hands.shape[0]):
        for card in range(52):
            held[b, card] = 0
        for i in range(13):
            card = hands[b, seat, i]
            cards[b, i] = card
            held[b, card] = 1
        for pattern in range(patterns.shape[1]):
            patterns[b, pattern] = bits[b, seat] >> pattern & 1


@njit(cache=True, nogil=True)
def reachable_rows_into(hands, rows, at, row_tables, split_tables, rules, reachable):
    """For the next card of hands (B, 13): may it lie in each row and a legal arrangement follow?

    rows (B, 13) hold the rows of the first at[b] cards; reachable (B, 3) int8 gets ones and zeros.
    """
    placed = np.empty(3, np.int64)
    for b in range(hands.shape[0]):
        reachable[b] = 0
        if at[b] == 13:
            continue
        for row in range(3):
            placed[:] = 0
            placed[row] = 1 << at[b]
            room = 3 if row == 0 else 5
            for i in range(at[b]):
                placed[rows[b, i]] |= 1 << i
                room -= rows[b, i] == row
            if room > 0:
                reachable[b, row] = _is_reachable(
                    hands, b, placed, at[b] + 1, row_tables, split_tables, rules
                )


@njit(cache=True)
def _is_reachable(hands, b, placed, num_placed, row_tables, split_tables, rules):
    """Whether a legal arrangement of hand b agrees with the masks `placed` (3,) of first cards."""
    known = (1 << num_placed) - 1
    back_may_tie = rules[F_BACK_MAY_TIE] == 1
    offset, fives, fronts, min_middle = row_tables
    front_masks, masks, front_cards, five_cards, _, remainders = split_tables
    for place in range(masks.shape[0]):
        if masks[place] & known != placed[2]:
            continue
        back = _strength_of_five(hands, b, five_cards, place, offset, fives)
        for split in range(remainders.shape[1]):
            five = remainders[place, split, 0]
            three = remainders[place, split, 1]
            if masks[five] & known == placed[1] and front_masks[three] & known == placed[0]:
                middle = _strength_of_five(hands, b, five_cards, five, offset, fives)
                front = _strength_of_front(hands, b, front_cards, three, offset, fronts)
                if _in_order(front, middle, back, min_middle, back_may_tie):
                    return True
    return False
