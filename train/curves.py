"""How often rows win by what they are called, as a picture of three curves."""

import io
from collections.abc import Sequence

from cpoker_env.agents.row_classes import RowClass

from cpoker_env.arrangements import ROW_NAMES

LEAST_SHOWN = 0.0001
"""Share of opponents' rows below which a class is left out."""


def chance_curves(classes: Sequence[Sequence[RowClass]], title: str) -> bytes:
    """A PNG picture of the chance to win of the classes of front, middle and back.

    A line through the classes, weakest first, in a band from the weakest to the strongest row of
    each; bars show how often opponents show them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 15), layout="constrained")
    figure.suptitle(title, parse_math=False)
    for row, axes in enumerate(figure.subplots(3, 1)):
        seen = [one for one in classes[row] if one.shown >= LEAST_SHOWN]
        places = range(len(seen))
        axes.bar(places, [100 * one.shown for one in seen], color="lightgrey", label="shown")
        axes.fill_between(
            places, [100 * one.lowest for one in seen], [100 * one.highest for one in seen],
            alpha=0.3,
        )  # fmt: skip
        axes.plot(places, [100 * one.chance for one in seen], marker=".", label="wins")
        axes.set_xticks(places, [one.name for one in seen], rotation=90, fontsize="x-small")
        axes.set_xlim(-0.5, len(seen) - 0.5)
        axes.set_ylim(0, 100)
        axes.set_yticks(range(0, 101, 10))
        axes.grid(alpha=0.3)
        axes.set_ylabel(f"{ROW_NAMES[row]}, %")
        axes.legend(loc="upper left")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
