"""What a hand could do, listed by what it is worth."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import Frontier
from cpoker_env.rules import PATTERNS

Option = tuple[str, npt.NDArray[np.int8] | None, float]
"""What is done ("show", "surrender" or "declare NAME"), rows (13,) if shown, expected units."""


def list_options(
    options: Frontier,
    values: npt.NDArray[np.floating[Any]],
    surrender: npt.NDArray[np.floating[Any]],
    declare: npt.NDArray[np.floating[Any]],
    naturals: npt.NDArray[np.int8],
    k: int,
) -> list[list[Option]]:
    """The `k` best options of each hand, best first.

    Args:
        options: Candidates of H hands, M in all.
        values: (M,) units of showing them.
        surrender: (H,) units of surrendering, NaN where a hand may not.
        declare: (H,) units of declaring, NaN where a hand has nothing to declare.
        naturals: (H,) int8, the best natural of each hand.
        k: How many.
    """
    listed = []
    for h in range(len(options)):
        found: list[Option] = [
            ("show", options.rows[i], float(values[i]))
            for i in range(options.starts[h], options.starts[h + 1])
        ]
        if not np.isnan(surrender[h]):
            found.append(("surrender", None, float(surrender[h])))
        if not np.isnan(declare[h]):
            found.append((f"declare {PATTERNS[naturals[h]]}", None, float(declare[h])))
        listed.append(sorted(found, key=lambda option: -option[2])[:k])
    return listed
