"""House rules: one frozen dataclass, seven presets, one flat array for the kernels.

Every option of the game is a field here and nowhere else; the arithmetic behind it is in
``kernels.py``. A new option needs a default that keeps every old score.
"""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cpoker_env.errors import RulesError

PATTERNS: tuple[str, ...] = (
    "pure_dragon",
    "colour_dragon",
    "dragon",
    "all_one_colour",
    "minor",
    "senior",
    "six_pairs",
    "three_flushes",
    "three_straights",
    "no_figure",
)
"""The ten naturals; a pattern's bit and index everywhere is its position here."""

NUM_PATTERNS = len(PATTERNS)
ROYALTY_ROWS = (
    "front_trips",
    "middle_full",
    "middle_quads",
    "back_quads",
    "middle_sf",
    "back_sf",
    "royal_middle",
    "royal_back",
)
POOL_SCALE = 12
"""Kernel units per unit in the pool, where a row may be shared by 2, 3 or 4 seats."""

# Cells of Rules.packed, by name. Naturals take two blocks of NUM_PATTERNS cells after these.
(
    F_SCOOP,
    F_SCOOP_EXTRA,
    F_OVERALL_POINT,
    F_OVERALL_BY_POINTS,
    F_ROYALTIES,
    F_ROYALTY_ADDS,
    F_FRONT_TRIPS,
    F_MIDDLE_FULL,
    F_MIDDLE_QUADS,
    F_BACK_QUADS,
    F_MIDDLE_SF,
    F_BACK_SF,
    F_ROYAL_MIDDLE,
    F_ROYAL_BACK,
    F_NATURAL_COMPARE,
    F_SIX_PAIRS_QUADS,
    F_SIX_PAIRS_TRIPS,
    F_SIX_PAIRS_ODD_CARD,
    F_SURRENDER_COST,
    F_SURRENDER_PAYS_FOUL,
    F_SURRENDER_PAYS_NATURAL,
    F_FOUL_PRICE,
    F_FOUL_ROYALTIES,
    F_HOMERUN_COUNTS,
    F_TOPOLOGY,
    F_BANKER,
    F_WHEEL_SECOND_HIGH,
    F_BACK_MAY_TIE,
    F_MIDDLE_MAY_TIE,
    F_LADDER,
) = range(30)
F_NATURAL_VALUE = F_LADDER + NUM_PATTERNS
PACKED_SIZE = F_NATURAL_VALUE + NUM_PATTERNS

SCOOPS = ("none", "extra", "double_all", "shot_homerun")
ROYALTIES = ("off", "win_only", "protection")
FOUL_ROYALTIES = ("none", "add", "as_rows")
HOMERUN_COUNTS = ("compared_only", "foul_counts", "foul_and_surrender_count")
TOPOLOGIES = ("all_pairs", "banker", "pool")


class FrozenMap(Mapping[str, int]):
    """A small hashable mapping of names to ints; equal to any mapping with the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, int]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> int:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


FLAT_ROYALTIES = FrozenMap(dict(zip(ROYALTY_ROWS[:6], (3, 2, 4, 4, 5, 5), strict=True)))
DOUBLED_ROYALTIES = FrozenMap(dict(zip(ROYALTY_ROWS[:6], (3, 2, 8, 4, 10, 5), strict=True)))
ITALIAN_LADDER = ("six_pairs", "three_straights", "three_flushes", "dragon")
CZECH_LADDER = (
    "three_straights",
    "three_flushes",
    "six_pairs",
    "senior",
    "minor",
    "all_one_colour",
    "dragon",
    "colour_dragon",
    "pure_dragon",
)
ITALIAN_NATURALS = FrozenMap(
    {"six_pairs": 3, "three_straights": 3, "three_flushes": 3, "dragon": 13}
)


def _czech_naturals(
    pure: int, colour: int, dragon: int, others: int, minor_senior: int = 0
) -> FrozenMap:
    values = {"pure_dragon": pure, "colour_dragon": colour}
    values |= {"dragon": dragon, "all_one_colour": dragon}
    if minor_senior:
        values |= {"minor": minor_senior, "senior": minor_senior}
    values |= {"six_pairs": others, "three_flushes": others, "three_straights": others}
    return FrozenMap(values)


@dataclass(frozen=True)
class Rules:
    """House rules of a table. The default is the Mandarin version.

    ``Rules.preset(name)`` gives the named versions of the source texts, ``Rules.preset(name,
    option=value)`` a variation, ``to_json`` and ``from_json`` a round trip. Amounts are units.

    Raises:
        RulesError: An unknown option or value, or options that contradict each other; the
            message names the field.

    Example:
        >>> Rules.preset("italian", overall_point=1).overall_point
        1
    """

    scoop: Literal["none", "extra", "double_all", "shot_homerun"] = "shot_homerun"
    """Reward for winning all three rows of a pairing: nothing, `scoop_extra` more, rows and
    royalties doubled, or row units doubled (tripled in a home run over three opponents)."""
    scoop_extra: int = 0
    """Units added by a scoop; only read with `scoop="extra"`."""
    overall_point: int = 0
    """Units to whoever wins more rows of a pairing."""
    overall_by: Literal["rows", "points"] = "rows"
    """What decides the overall point: rows won, or the pairing's points before it."""
    royalties: Literal["off", "win_only", "protection"] = "win_only"
    """Bonuses of strong rows: none, to a row's winner, or (table less 1) won or lost."""
    royalty_mode: Literal["replace", "add"] = "add"
    """A won row's royalty stands in place of the row's unit, or comes on top of it."""
    royalty_table: Mapping[str, int] = DOUBLED_ROYALTIES
    """Units by row and category: front_trips, middle_full, middle_quads, back_quads, middle_sf,
    back_sf, and optionally royal_middle, royal_back (else as any straight flush)."""
    naturals: bool = True
    """13-card naturals may be declared."""
    natural_values: Mapping[str, int] = _czech_naturals(39, 26, 13, 3, 6)
    """Units each natural collects from every opponent; a pattern not named is not in play."""
    natural_order: tuple[str, ...] = CZECH_LADDER
    """The ladder of naturals, low to high."""
    natural_tiebreak: Literal["rank_only", "compare"] = "rank_only"
    """Two equal naturals tie, or are compared card by card."""
    six_pairs_quads: bool = True
    """Four of a rank count as two pairs of the six."""
    six_pairs_trips: bool = True
    """Five pairs and trips count as six pairs."""
    six_pairs_odd_card: bool = False
    """The odd card decides between equal six pairs; only read with `compare`."""
    surrender_cost: int | None = 3
    """Units a surrendering seat pays each opponent; None: no surrender."""
    surrender_vs_foul: Literal["surrender_pays", "zero"] = "surrender_pays"
    """A surrendered hand opposite a fouled one pays its price, or nothing moves."""
    surrender_vs_natural: Literal["surrender_cost", "natural_value"] = "surrender_cost"
    """What a surrendered hand pays a declared natural."""
    foul: int | Literal["as_rows"] = 6
    """Units a fouled hand pays an ordinary one, or `as_rows`: as three lost rows, scooped."""
    foul_royalties: Literal["none", "add", "as_rows"] = "add"
    """Royalties of the unfouled hand that come with the foul: none, in full on top, or as won
    rows pay them under `royalty_mode`."""
    homerun_counts: Literal["compared_only", "foul_counts", "foul_and_surrender_count"] = (
        "compared_only"
    )
    """Which opponents count as scooped for a home run besides those beaten row by row."""
    topology: Literal["all_pairs", "banker", "pool"] = "all_pairs"
    """Every pair of seats settles, only the bank with each other seat, or best rows win a pool."""
    banker: int | None = None
    """The bank's seat; only with `topology="banker"`."""
    no_figure: Mapping[str, int] | None = None
    """`{"value": units}` puts hands without J, Q, K in play as a natural, below all others unless
    `natural_order` places it."""
    wheel: Literal["low", "second_high"] = "low"
    """Where A-2-3-4-5 stands among the straights."""
    order_ties: Literal["strict", "back_middle_ok", "all_ok"] = "strict"
    """Rows equal to the row before: always a foul, allowed in the back, allowed."""
    front_middle_prefix: Literal["longer_wins", "equal"] = "longer_wins"
    """A front whose cards are matched by the middle's first ones: lower than it, or equal."""

    def __post_init__(self) -> None:
        for name in ("royalty_table", "natural_values", "no_figure"):
            value = getattr(self, name)
            if isinstance(value, Mapping) and not isinstance(value, FrozenMap):
                object.__setattr__(self, name, FrozenMap(value))
        if isinstance(self.natural_order, list):
            object.__setattr__(self, "natural_order", tuple(self.natural_order))
        _validate(self)

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> "Rules":
        """A named version, with options changed by keyword.

        `royalty_table` may name just the entries to change; every other option is replaced whole.

        Raises:
            RulesError: Unknown preset or option, or a value out of range.
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise RulesError(f"rules {name!r}: the presets are {', '.join(PRESETS)}")
        base = PRESETS[name]
        if isinstance(table := overrides.get("royalty_table"), Mapping):
            overrides["royalty_table"] = {**base["royalty_table"], **table}
        return cls.from_dict({**base, **overrides})

    @classmethod
    def of(cls, rules: "Rules | str") -> "Rules":
        """The rules themselves, or those of a preset's name.

        Raises:
            RulesError: Neither.
        """
        if isinstance(rules, Rules):
            return rules
        return cls.preset(rules)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "Rules":
        """Rules of a mapping of options, as `to_dict` writes; `preset` may name the base.

        Raises:
            RulesError: Unknown option, or a value out of range.
        """
        if not isinstance(options, Mapping):
            raise RulesError(f"rules {options!r}: give an object of options")
        options = dict(options)
        if "preset" in options:
            return cls.preset(options.pop("preset"), **options)
        for name in options:
            if name not in OPTIONS:
                raise RulesError(f"option {name!r}: the options are {', '.join(OPTIONS)}")
        return cls(**options)

    @classmethod
    def from_json(cls, text: str) -> "Rules":
        """Rules of a JSON object of options.

        Raises:
            RulesError: Not JSON, or not valid rules.
        """
        try:
            options = json.loads(text)
        except json.JSONDecodeError as error:
            raise RulesError(f"rules: not valid JSON ({error})") from None
        return cls.from_dict(options)

    def to_dict(self) -> dict[str, Any]:
        """Every option by name, in plain JSON types."""
        plain: dict[str, Any] = {}
        for name in OPTIONS:
            value = getattr(self, name)
            if isinstance(value, Mapping):
                value = dict(value)
            plain[name] = list(value) if isinstance(value, tuple) else value
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """The JSON object `from_json` reads."""
        return json.dumps(self.to_dict(), indent=indent)

    @property
    def name(self) -> str:
        """The preset these rules equal, or the nearest preset and the options that differ."""
        mine = self.to_dict()
        best = ""
        fewest: list[str] | None = None
        for preset in PRESETS:
            other = Rules.preset(preset).to_dict()
            changed = [f"{k}={mine[k]}" for k in mine if mine[k] != other[k]]
            if fewest is None or len(changed) < len(fewest):
                best, fewest = preset, changed
        return f"{best}({', '.join(fewest)})" if fewest else best

    @property
    def unit_scale(self) -> int:
        """Kernel units per unit: 12 in the pool, where shares may be fractions, else 1."""
        return POOL_SCALE if self.topology == "pool" else 1

    @property
    def naturals_in_play(self) -> tuple[str, ...]:
        """Naturals a seat may declare, low to high on the ladder; none in the pool."""
        if not self.naturals or self.topology == "pool":
            return ()
        return tuple(p for p in self._ladder if p in self._values)

    @property
    def surrender_allowed(self) -> bool:
        """Whether a seat may surrender at all."""
        return self.surrender_cost is not None

    def natural_value(self, pattern: str) -> int:
        """Units a natural in play collects from each opponent."""
        return self._values[pattern]

    @property
    def _ladder(self) -> tuple[str, ...]:
        if self.no_figure is None or "no_figure" in self.natural_order:
            return self.natural_order
        return ("no_figure", *self.natural_order)

    @property
    def _values(self) -> dict[str, int]:
        values = dict(self.natural_values)
        if self.no_figure is not None:
            values["no_figure"] = self.no_figure["value"]
        return values

    @cached_property
    def reading(self) -> tuple[bool, bool]:
        """What decides the lookup tables: the wheel comes second, the middle may tie the front."""
        return bool(self.packed[F_WHEEL_SECOND_HIGH]), bool(self.packed[F_MIDDLE_MAY_TIE])

    @cached_property
    def packed(self) -> npt.NDArray[np.int64]:
        """(PACKED_SIZE,) int64: the options as the kernels read them, cells named ``F_...``."""
        cells = np.zeros(PACKED_SIZE, np.int64)
        table = dict(self.royalty_table)
        table.setdefault("royal_middle", table["middle_sf"])
        table.setdefault("royal_back", table["back_sf"])
        cells[F_SCOOP] = SCOOPS.index(self.scoop)
        cells[F_SCOOP_EXTRA] = self.scoop_extra
        cells[F_OVERALL_POINT] = self.overall_point
        cells[F_OVERALL_BY_POINTS] = self.overall_by == "points"
        cells[F_ROYALTIES] = ROYALTIES.index(self.royalties)
        cells[F_ROYALTY_ADDS] = self.royalty_mode == "add"
        cells[F_FRONT_TRIPS : F_ROYAL_BACK + 1] = [table[name] for name in ROYALTY_ROWS]
        cells[F_NATURAL_COMPARE] = self.natural_tiebreak == "compare"
        cells[F_SIX_PAIRS_QUADS] = self.six_pairs_quads
        cells[F_SIX_PAIRS_TRIPS] = self.six_pairs_trips
        cells[F_SIX_PAIRS_ODD_CARD] = self.six_pairs_odd_card
        cells[F_SURRENDER_COST] = -1 if self.surrender_cost is None else self.surrender_cost
        cells[F_SURRENDER_PAYS_FOUL] = self.surrender_vs_foul == "surrender_pays"
        cells[F_SURRENDER_PAYS_NATURAL] = self.surrender_vs_natural == "natural_value"
        cells[F_FOUL_PRICE] = -1 if self.foul == "as_rows" else self.foul
        cells[F_FOUL_ROYALTIES] = FOUL_ROYALTIES.index(self.foul_royalties)
        cells[F_HOMERUN_COUNTS] = HOMERUN_COUNTS.index(self.homerun_counts)
        cells[F_TOPOLOGY] = TOPOLOGIES.index(self.topology)
        cells[F_BANKER] = -1 if self.banker is None else self.banker
        cells[F_WHEEL_SECOND_HIGH] = self.wheel == "second_high"
        cells[F_BACK_MAY_TIE] = self.order_ties != "strict"
        cells[F_MIDDLE_MAY_TIE] = self.front_middle_prefix == "longer_wins" or (
            self.order_ties == "all_ok"
        )
        for rung, pattern in enumerate(self.naturals_in_play, start=1):
            cells[F_LADDER + PATTERNS.index(pattern)] = rung
            cells[F_NATURAL_VALUE + PATTERNS.index(pattern)] = self._values[pattern]
        cells.flags.writeable = False
        return cells


def read_rules(name: str) -> Rules:
    """Rules of a preset's name, or of a JSON file of options, as a command line takes them.

    A file holds `{"preset": "western", "foul": 5}`: the options that differ from those of the
    preset, mandarin if it names none.

    Raises:
        RulesError: Neither, or a file that does not hold valid rules.
    """
    if name in PRESETS or not (name.endswith(".json") or os.path.isfile(name)):
        return Rules.preset(name)
    try:
        return Rules.from_json(Path(name).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RulesError(f"{name}: {error.strerror}; give a preset or a JSON file") from None
    except RulesError as error:
        raise RulesError(f"{name}: {error}") from None
    except (RecursionError, ValueError) as error:
        raise RulesError(f"{name}: not rules in JSON ({error})") from None


OPTIONS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Rules))

_CHOICES: dict[str, tuple[str, ...]] = {
    "scoop": SCOOPS,
    "overall_by": ("rows", "points"),
    "royalties": ROYALTIES,
    "royalty_mode": ("replace", "add"),
    "natural_tiebreak": ("rank_only", "compare"),
    "surrender_vs_foul": ("surrender_pays", "zero"),
    "surrender_vs_natural": ("surrender_cost", "natural_value"),
    "foul_royalties": FOUL_ROYALTIES,
    "homerun_counts": HOMERUN_COUNTS,
    "topology": TOPOLOGIES,
    "wheel": ("low", "second_high"),
    "order_ties": ("strict", "back_middle_ok", "all_ok"),
    "front_middle_prefix": ("longer_wins", "equal"),
}
_FLAGS = ("naturals", "six_pairs_quads", "six_pairs_trips", "six_pairs_odd_card")
MAX_UNITS = 1000
"""Largest amount an option may name: sums over a table then stay far inside int32."""


def _validate(rules: Rules) -> None:
    for name, choices in _CHOICES.items():
        value = getattr(rules, name)
        if not isinstance(value, str) or value not in choices:
            raise RulesError(f"{name} {value!r}: choose one of {', '.join(choices)}")
    for name in _FLAGS:
        if not isinstance(getattr(rules, name), bool):
            raise RulesError(f"{name} {getattr(rules, name)!r}: give true or false")
    _check_units("scoop_extra", rules.scoop_extra)
    _check_units("overall_point", rules.overall_point)
    if rules.surrender_cost is not None:
        _check_units("surrender_cost", rules.surrender_cost, or_else="or none for no surrender")
    if rules.foul != "as_rows":
        _check_units("foul", rules.foul, or_else="or 'as_rows'")
    _check_units_map("royalty_table", rules.royalty_table, ROYALTY_ROWS)
    missing = [name for name in ROYALTY_ROWS[:6] if name not in rules.royalty_table]
    if missing:
        raise RulesError(f"royalty_table: no value for {', '.join(missing)}; give all six")
    _validate_naturals(rules)
    if rules.topology == "banker":
        if not _is_int(rules.banker) or not 0 <= rules.banker <= 3:  # type: ignore[operator]
            raise RulesError(
                f"banker {rules.banker!r}: with topology 'banker' name the bank's seat, 0 to 3"
            )
    elif rules.banker is not None:
        raise RulesError(
            f"banker {rules.banker!r} contradicts topology {rules.topology!r}: "
            "a bank needs topology 'banker'"
        )
    if rules.scoop == "extra" and rules.scoop_extra == 0:
        raise RulesError("scoop_extra 0 contradicts scoop 'extra': give 1 or more, or scoop 'none'")


def _validate_naturals(rules: Rules) -> None:
    order = rules.natural_order
    if not isinstance(order, tuple) or any(pattern not in PATTERNS for pattern in order):
        raise RulesError(f"natural_order {order!r}: list patterns among {', '.join(PATTERNS)}")
    if len(set(order)) != len(order):
        raise RulesError(f"natural_order {order!r}: name each pattern once")
    _check_units_map("natural_values", rules.natural_values, PATTERNS[:-1])
    for pattern in rules.natural_values:
        if pattern not in order:
            raise RulesError(
                f"natural_values names {pattern!r}, which natural_order does not rank: "
                "add it to natural_order"
            )
    if rules.naturals and not rules.natural_values and rules.no_figure is None:
        raise RulesError("natural_values is empty, which contradicts naturals true: name one")
    if rules.no_figure is not None:
        _check_units_map("no_figure", rules.no_figure, ("value",))
        if "value" not in rules.no_figure:
            raise RulesError("no_figure {}: write {'value': units} or none")
        if not rules.naturals:
            raise RulesError("no_figure contradicts naturals false: switch naturals on")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_units(name: str, value: object, or_else: str = "") -> None:
    if not _is_int(value) or not 0 <= value <= MAX_UNITS:  # type: ignore[operator]
        raise RulesError(f"{name} {value!r}: give whole units 0..{MAX_UNITS} {or_else}".rstrip())


def _check_units_map(name: str, value: object, keys: tuple[str, ...]) -> None:
    if not isinstance(value, Mapping):
        raise RulesError(f"{name} {value!r}: give an object with keys among {', '.join(keys)}")
    for key, units in value.items():
        if key not in keys:
            raise RulesError(f"{name} key {key!r}: the keys are {', '.join(keys)}")
        _check_units(f"{name}.{key}", units)


_BASIC: dict[str, Any] = {
    "scoop": "none",
    "royalties": "off",
    "royalty_mode": "replace",
    "royalty_table": FLAT_ROYALTIES,
    "naturals": False,
    "natural_values": ITALIAN_NATURALS,
    "natural_order": ITALIAN_LADDER,
    "natural_tiebreak": "compare",
    "surrender_cost": None,
    "foul": "as_rows",
    "foul_royalties": "as_rows",
}
PRESETS: dict[str, dict[str, Any]] = {
    "basic": _BASIC,
    "special": {**_BASIC, "royalties": "win_only", "naturals": True},
    "italian": {
        **_BASIC,
        "royalties": "win_only",
        "scoop": "extra",
        "scoop_extra": 3,
        "naturals": True,
    },
    "western": {
        "scoop": "none",
        "overall_point": 1,
        "royalties": "off",
        "royalty_mode": "replace",
        "royalty_table": FLAT_ROYALTIES,
        "natural_values": _czech_naturals(8, 8, 4, 4),
        "foul": 4,
        "foul_royalties": "none",
    },
    "eastern": {
        "scoop": "none",
        "royalty_mode": "replace",
        "royalty_table": DOUBLED_ROYALTIES,
        "natural_values": _czech_naturals(13, 13, 13, 3),
        "foul": 3,
    },
    "mandarin": {"royalty_table": DOUBLED_ROYALTIES},
    "four_two": {**_BASIC, "overall_point": 1, "foul": 4},
}
"""Options of each version that differ from the defaults. Sources, as in README's rules table:
`basic` and `special` the Danish and Albanian text, `italian` the Italian one, `western`,
`eastern` and `mandarin` the Czech one, `four_two` the scoring of the published near-optimal
strategy (1 a row and 1 for the majority)."""
