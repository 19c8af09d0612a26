"""What best responses gain on hands, by the values of everything the hands could do.

Choosing the best of many options on a sample flatters it. The *lower* figure chooses on one half of
the opponents and is valued on the other, both ways: its expectation is at most the truth (but for
alternate members of a crowd in order being a little alike), and with few opponents it can even be
negative. The *upper* figure chooses and is valued on all of them: its expectation is at least the
truth, unless the rules pay some row more than a stronger one (see
`exploitability.weaker_rows_pay`): then an arrangement beaten in all rows may be best, and it is not
considered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.population import FloatArray, IntArray, Plays, Responses
from cpoker_env.train.keep import pack, unpack

from cpoker_env.rules import Rules
from cpoker_env.scoring import DECLARE, STATUSES, SURRENDER

_NORMAL, _FOUL, _SURRENDER, _NATURAL = range(len(STATUSES))
_ALL_BACK = 2
"""Row of every card of a hand that fouls on purpose."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Gains:
    """What best responses gain on H hands, units per deal and opponent.

    lower, upper: (H,) see above. own: (H,) units of the policy's own choices.
    differs: (H,) bool, whether the best response by all opponents wins more than the policy.
    num_opponents: (H,) int64.
    own_rows, own_status, best_rows, best_status: (H, 13) int8 and (H,) int8 index into STATUSES,
        what the policy and the best response by all opponents play; the policy's rows are zeros
        where they are not known, a foul on purpose has all cards in the back.
    deviation: standard deviation of what the policy wins from one opponent in a deal when
        everybody plays it, nan if not measured; in a pool, of a deal's units by its opponents.
    """

    lower: FloatArray
    upper: FloatArray
    own: FloatArray
    differs: npt.NDArray[np.bool_]
    num_opponents: npt.NDArray[np.int64]
    own_rows: npt.NDArray[np.int8]
    own_status: npt.NDArray[np.int8]
    best_rows: npt.NDArray[np.int8]
    best_status: npt.NDArray[np.int8]
    deviation: float = float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the deviation aside."""
        return {name: pack(getattr(self, name)) for name in _PER_HAND}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Gains":
        """What `to_dict` told."""
        arrays: dict[str, Any] = {name: unpack(record[name]) for name in _PER_HAND}
        return cls(**arrays)


_PER_HAND = [field.name for field in fields(Gains) if field.name != "deviation"]


def gains_of(found: Responses, plays: Plays, rules: Rules) -> Gains:
    """What best responses gain over the policy's own plays of some hands.

    Args:
        found: Values of the hands' options, `extra` being `plays`.
        plays: How the policy plays the hands.
        rules: The house rules.
    """
    lower = np.zeros(len(plays.status))
    for half in range(2):
        chosen, status = _best(found, half, plays, rules)
        other = 1 - half
        gain = _value(found, other, chosen, status) - found.value_of_extra(other, plays)
        lower += gain / 2
    mean = found.mean()
    chosen, status = _best(mean, 0, plays, rules)
    own = mean.value_of_extra(0, plays)
    upper = _value(mean, 0, chosen, status) - own
    # Options worth the same may differ by rounding.
    differs = upper > _ROUNDING
    last = found.options.starts[1:] - 1
    best_rows = found.options.rows[chosen]
    best_rows[(status == _FOUL) & (chosen != last)] = _ALL_BACK
    return Gains(
        lower, np.where(differs, upper, 0), own, differs, found.met.sum(axis=0),
        found.options.rows[last], plays.status.copy(), best_rows, status,
    )  # fmt: skip


def _best(
    found: Responses, half: int, plays: Plays, rules: Rules
) -> tuple[IntArray, npt.NDArray[np.int8]]:
    """(candidate, status) of the best response of each hand by one half."""
    chosen, declarations = found.best(half, rules)
    status = np.full(len(chosen), _NORMAL, np.int8)
    status[declarations == SURRENDER] = _SURRENDER
    status[declarations == DECLARE] = _NATURAL
    is_extra = chosen == found.options.starts[1:] - 1
    status[(status == _NORMAL) & is_extra & (plays.status == _FOUL)] = _FOUL
    status[found.foul[half] > found.value_of(half, chosen, declarations) + _ROUNDING] = _FOUL
    return chosen, status


def _value(found: Responses, half: int, chosen: IntArray, status: IntArray) -> FloatArray:
    """(H,) units of these choices by one half."""
    by_status = (
        found.values[half][chosen], found.foul[half], found.surrender[half], found.declare[half],
    )  # fmt: skip
    value: FloatArray = np.choose(status, by_status)
    return value


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval, 1.96 standard errors over hands."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:.5f} ± {self.half_width:.5f}"


def interval(values: FloatArray) -> Interval:
    """Mean and interval of independent values."""
    return Interval(float(values.mean()), float(1.96 * values.std() / np.sqrt(len(values))))


def join_gains(parts: list[Gains]) -> Gains:
    """The gains of several batches of hands as one."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_HAND
    }
    return Gains(**joined)
