"""Why the best option of a hand is the best, in a sentence or two a player understands."""

from typing import Any, NamedTuple

import numpy as np
from cpoker_env.agents.accounts import (
    BACK,
    MAJORITY,
    OTHERS,
    PARTS,
    ROYALTIES,
    SCOOP,
    Explains,
    FloatArray,
)
from cpoker_env.agents.options import Option, rank_options

from cpoker_env.arrangements import ROW_NAMES, Arrangement, arrangement_of, describe_row
from cpoker_env.cards import Card
from cpoker_env.naturals import TITLES
from cpoker_env.policy import DecisionBatch

LEAST_UNITS = 0.0005
"""Units that are not worth a word."""


class Shown(NamedTuple):
    """An arrangement as a player sees it.

    rows: the cards; names: of the rows, "pair of kings"; units: expected, against one opponent.
    chances: (3,) of each row to win against an opponent that shows, half of the ties with them.
    scoops: (2,) about how often it scoops and is scooped.
    parts: (len(PARTS),) units that add up to `units`.
    """

    rows: Arrangement
    names: tuple[str, ...]
    units: float
    chances: FloatArray
    scoops: FloatArray
    parts: FloatArray


class Explained(NamedTuple):
    """One option: what is done, expected units, and the arrangement if one is shown."""

    label: str
    units: float
    shown: Shown | None

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        record: dict[str, Any] = {"action": self.label, "units": self.units}
        if self.shown is not None:
            record |= {
                "rows": str(self.shown.rows),
                "names": list(self.shown.names),
                "chances": self.shown.chances.tolist(),
                "scoops": float(self.shown.scoops[0]),
                "scooped": float(self.shown.scoops[1]),
                "parts": dict(zip(PARTS, self.shown.parts.tolist(), strict=True)),
            }
        return record


class Explanation(NamedTuple):
    """A hand's options, best first, and why the first is first."""

    options: list[Explained]
    why: str


def explain(policy: Explains, batch: DecisionBatch, k: int) -> list[Explanation]:
    """The `k` best options of each of B hands, and why the best is the best."""
    found = policy.estimate(batch)
    ranked = rank_options(*found, batch.naturals, max(k, 2))
    places = [option.place for options in ranked for option in options if option.place >= 0]
    chosen = np.array(sorted(places), np.int64)
    account = policy.account(batch, found, chosen)
    of_place = {int(place): n for n, place in enumerate(chosen)}
    explanations = []
    for hand, options in zip(batch.hands.tolist(), ranked, strict=True):
        told = []
        for option in options:
            shown = None
            if option.place >= 0:
                n = of_place[option.place]
                rows = arrangement_of(hand, found.options.rows[option.place].tolist())
                strengths = found.options.strengths[option.place].tolist()
                names = tuple(map(describe_row, rows, strengths))
                shown = Shown(rows, names, option.units, *(part[n] for part in account))
            told.append(Explained(option.label, option.units, shown))
        explanations.append(Explanation(told[:k], reason(told)))
    return explanations


def reason(options: list[Explained]) -> str:
    """Why the first of these options, best first, is better than the others.

    They hold the two best arrangements and whatever the hand may declare instead.
    """
    best = options[0]
    arrangements = [option.shown for option in options if option.shown is not None]
    if best.label == "surrender":
        return (
            f"Shown, the best arrangement is worth {arrangements[0].units:+.3f} "
            f"({_row_chances(arrangements[0])}); surrendering costs {-best.units:.3f}."
        )
    if best.shown is None:
        return (
            f"Declared, {_title(best.label)} collects {best.units:+.3f}; shown, the best "
            f"arrangement is worth {arrangements[0].units:+.3f} ({_row_chances(arrangements[0])})."
        )
    sentences = []
    for option in options[1:]:
        if option.label.startswith("declare"):
            sentences.append(
                f"Kept back it is worth {best.units:+.3f}; declared, {_title(option.label)} "
                f"collects {option.units:+.3f}."
            )
        elif option.label == "surrender" and option is options[1]:
            sentences.append(
                f"Shown it is worth {best.units:+.3f}; surrendering costs {-option.units:.3f}."
            )
    if len(arrangements) > 1:
        sentences.append(compare(*arrangements[:2]))
    return " ".join(sentences) or "No other arrangement is as strong in any row."


def compare(best: Shown, other: Shown) -> str:
    """What one arrangement gains over another, and what it gives up for that."""
    change = best.parts - other.parts
    gains: list[str] = []
    costs: list[str] = []
    for part in np.argsort(-np.abs(change), kind="stable"):
        units = float(change[part])
        if abs(units) < LEAST_UNITS:
            continue
        (gains if units > 0 else costs).append(f"{abs(units):.3f} {_clause(part, best, other)}")
    ahead = f"It is worth {best.units - other.units:.3f} more than the next arrangement"
    if not gains:
        return f"{ahead}."
    given_up = f" and gives up {_join(costs)}" if costs else " and gives up nothing"
    return f"{ahead}: it gains {_join(gains)}{given_up}."


def _clause(part: int, best: Shown, other: Shown) -> str:
    if part > BACK:
        return {
            ROYALTIES: "in royalties",
            SCOOP: "in scoops",
            MAJORITY: "by the majority",
            OTHERS: "against hands that do not show",
        }[part]
    points = 100 * float(best.chances[part] - other.chances[part])
    mine, theirs = best.names[part], other.names[part]
    if mine == theirs:
        mine, theirs = f"{'higher' if points > 0 else 'lower'} cards beside {mine}", ""
    against = f", not {theirs}" if theirs else ""
    where = "in front" if part == 0 else f"in the {ROW_NAMES[part]}"
    often = "more" if points > 0 else "less"
    return f"{where} ({mine}{against}, wins {abs(points):.1f} points {often} often)"


def _row_chances(shown: Shown) -> str:
    each = ", ".join(
        f"{name} {100 * chance:.0f} %"
        for name, chance in zip(ROW_NAMES, shown.chances.tolist(), strict=True)
    )
    return f"its rows win {each}"


def _title(label: str) -> str:
    return TITLES[label.removeprefix("declare ")]


def _join(clauses: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))


def option_text(option: Explained) -> str:
    """One line: units, what is done, and how often each row wins and all are won or lost."""
    text = f"{option.units:+.3f} {option.label}"
    if option.shown is None:
        return text
    front, middle, back = (f"{100 * chance:5.1f} %" for chance in option.shown.chances.tolist())
    scoops, scooped = (f"{100 * chance:4.1f} %" for chance in option.shown.scoops.tolist())
    return (
        f"{text} {option.shown.rows}  front {front}  middle {middle}  back {back}"
        f"  scoops {scoops}  scooped {scooped}"
    )


def plain_text(hand: list[Card], option: Option) -> str:
    """One line of an option that a policy values without more: units and what is done."""
    label, rows, units = option
    laid = "" if rows is None else f" {arrangement_of(hand, rows.tolist())}"
    return f"{units:+.3f} {label}{laid}"


def plain_dict(hand: list[Card], option: Option) -> dict[str, Any]:
    """The same in plain types, for JSON."""
    label, rows, units = option
    laid = {} if rows is None else {"rows": str(arrangement_of(hand, rows.tolist()))}
    return {"action": label, "units": units} | laid
