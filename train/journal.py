"""What a run shows while it trains: a progress bar, TensorBoard's charts, two hands as pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cpoker_env.agents.neural import NeuralPolicy
from cpoker_env.agents.options import choose
from cpoker_env.agents.population import draw_hands
from cpoker_env.train.evaluate import duel
from cpoker_env.train.exploitability import measure
from cpoker_env.train.gains import interval
from cpoker_env.train.pictures import hand_picture
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.scoring import SHOW, SURRENDER

DEALS = 500
"""Deals of a short match against greedy."""
HANDS, SAMPLES, TABLES = 1000, 2000, 20
"""Hands whose best responses are found, opponents each of them meets, whole tables around it."""
EXAMINED = 3_000_003
"""Added to the seed for what is examined, so that no round trains on it."""


class Journal:
    """The record of a run in its folder; silent where another process keeps it."""

    def __init__(self, folder: Path, num_rounds: int, done: int, writes: bool) -> None:
        self.folder = folder
        self.num_rounds = num_rounds
        self.done = done
        self.writes = writes
        self._writer: Any = None
        columns = (
            TextColumn("{task.description}"), BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("loss {task.fields[loss]:.4f}  v greedy {task.fields[greedy]}  "
                       "exploitability {task.fields[weakness]}"),
            TextColumn("{task.fields[speed]:,.0f} deals/s"),
            TimeElapsedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        self._progress = Progress(*columns, console=Console(stderr=True), disable=not writes)
        self._task = self._progress.add_task(
            "rounds",
            total=num_rounds,
            completed=done,
            loss=0.0,
            greedy="?",
            weakness="?",
            speed=0.0,
        )

    def __enter__(self) -> "Journal":
        if self.writes:
            from torch.utils.tensorboard import SummaryWriter  # heavy, and only a run needs it

            self._writer = SummaryWriter(str(self.folder), purge_step=self.done + 1)
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._progress.stop()
        if self._writer is not None:
            self._writer.close()
        if self.writes and kind in (KeyboardInterrupt, SystemExit):
            Console(stderr=True).print(
                f"stopped after round {self.done}: the same command with --resume goes on"
            )

    def say(self, text: str) -> None:
        """A line for people."""
        if self.writes:
            Console().print(text)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Chart a round's numbers and move the bar."""
        if self._writer is None:
            return
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)
        shown: dict[str, Any] = {"loss": scalars["losses/value"], "speed": scalars["charts/SPS"]}
        if "eval/units_vs_greedy" in scalars:
            shown["greedy"] = f"{scalars['eval/units_vs_greedy']:+.2f}"
            shown["weakness"] = f"{scalars['eval/exploitability']:.4f}"
        self._progress.update(self._task, completed=step, **shown)
        self.done = step
        if not self._progress.console.is_terminal and step % max(1, self.num_rounds // 10) == 0:
            # A bar that nobody sees is drawn at the end only.
            fields = self._progress.tasks[self._task].fields
            self._progress.console.print(
                f"round {step} of {self.num_rounds}: loss {fields['loss']:.4f}, v greedy "
                f"{fields['greedy']}, exploitability {fields['weakness']}, "
                f"{fields['speed']:,.0f} deals/s",
                highlight=False, soft_wrap=True,
            )  # fmt: skip

    def examine(
        self, policy: NeuralPolicy, players: int, seed: int, step: int, threads: int
    ) -> dict[str, float]:
        """Measure a policy a little, draw two hands as it plays them; scalars to chart."""
        rules = policy.rules
        greedy = make_policy("greedy", rules, players)
        match = duel(policy, greedy, rules, players, DEALS, seed + EXAMINED)
        _, gains = measure(
            policy, rules, players, HANDS, SAMPLES, seed + EXAMINED, threads, num_tables=TABLES
        )
        for place, picture in enumerate(_pictures(policy, players, seed + EXAMINED)):
            self._writer.add_image(f"hands/{place}", picture, step, dataformats="HWC")
        upper = interval(gains.upper)
        return {
            "eval/units_vs_greedy": match.units,
            "eval/units_vs_greedy_95": match.half_width,
            "eval/exploitability": upper.mean,
            "eval/exploitability_95": upper.half_width,
            "eval/exploitability_lower": interval(gains.lower).mean,
        }


def _pictures(policy: NeuralPolicy, players: int, seed: int) -> list[npt.NDArray[np.uint8]]:
    """The same two hands each time."""
    batch = decisions_for(draw_hands(seed, 2), policy.rules, players)
    found = policy.estimate(batch)
    best, declarations = choose(found)
    pictures = []
    for hand in range(2):
        worth = (found.values[best[hand]], found.surrender[hand], found.declare[hand])
        verb = {SHOW: "shows", SURRENDER: "surrenders"}.get(declarations[hand], "declares")
        title = f"{verb}, worth {worth[declarations[hand]]:+.2f} units"
        pictures.append(hand_picture(batch.hands[hand], found.options.rows[best[hand]], title))
    return pictures
