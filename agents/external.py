"""`external:COMMAND`: a program in any language takes a seat.

The program is started once and reads hands from its standard input, one a line, 13 cards, highest
first: `As Kd Qc Jh Ts 9s 8c 7s 6h 5s 4s 3c 2s`. For each it prints one line, in the same order, as
`cpoker arrange` does:

    4s 3c 2s|9s 8c 7s 6h 5s|As Kd Qc Jh Ts     front, middle and back, cards in any order
    surrender
    declare dragon 4s 3c 2s|9s 8c 7s 6h 5s|As Kd Qc Jh Ts

Lines that are empty or start with # are passed over. House rules are in the environment variable
CPOKER_RULES as JSON, the number of seats in CPOKER_PLAYERS. Up to WINDOW hands wait in its input at
a time, so it may answer one by one or many at once, but it must flush its output: a program that
does not is found out by its silence, is then told the end of its input after every WINDOW hands,
and started again.

Nothing it does ends a run. What went wrong is counted in `External.failures`, with the first lines:

| reason | what | what the seat plays |
|---|---|---|
| crash | it ended, or closed its output, before it answered | a foul |
| hang | no line in `timeout` seconds | a foul |
| rubbish | a line that is none of the three above | a foul |
| cards | rows that do not hold exactly the hand's cards | a foul |
| foul | rows of wrong sizes or out of order | the foul |
| declaration | a natural that is not the hand's best in play | the rows, as placed |
| surrender | where the rules or the table have none | a foul |
| given up | it failed too often | a foul |

After a crash or a hang, which is put down to the first hand without an answer, it is started again
and asked the hands that follow; it is given up for good after `restarts` of these, or after
MOST_IN_A_ROW of them without an answer in between.
"""

import json
import os
import shlex
import shutil
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from cpoker_env.agents.program import Program

from cpoker_env.arrangements import evaluate
from cpoker_env.cards import HAND_SIZE, format_cards, parse_card
from cpoker_env.errors import CardError, PolicyError
from cpoker_env.policy import Actions, DecisionBatch
from cpoker_env.rules import PATTERNS, Rules
from cpoker_env.scoring import DECLARE, SHOW, SURRENDER

WINDOW = 64
"""Hands without an answer that a program has at a time; they fit into any pipe."""
MOST_IN_A_ROW = 3
"""Crashes and hangs without an answer in between after which a program is given up."""
NUM_KEPT = 3
"""Failures that are kept for each reason, the first ones."""
LONGEST_SHOWN = 100
"""Characters of an answer that are kept with them."""


class Failure(NamedTuple):
    """A hand that went wrong: the reason, the hand's cards, what the program said or did."""

    reason: str
    hand: str
    said: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.hand} -> {self.said}"


@dataclass
class Failures:
    """What went wrong: how many hands by reason, and the first hands of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    first: list[Failure] = field(default_factory=list)

    def add(self, failure: Failure) -> None:
        """Count one."""
        self.counts[failure.reason] += 1
        self._keep(failure)

    def extend(self, later: "Failures") -> None:
        """Count those of later hands too."""
        self.counts.update(later.counts)
        for failure in later.first:
            self._keep(failure)

    def to_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "first": [failure._asdict() for failure in self.first],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Failures":
        """What `to_dict` told."""
        return cls(Counter(record["counts"]), [Failure(**first) for first in record["first"]])

    def _keep(self, failure: Failure) -> None:
        if sum(failure.reason == kept.reason for kept in self.first) < NUM_KEPT:
            self.first.append(failure)


class External:
    """Plays what a program prints.

    Args:
        rules: The house rules, passed on to the program.
        num_players: Seats at the table, passed on.
        argument: The command line, split as a shell does; no shell runs it.
        timeout: Seconds it may take for a line.
        startup: Seconds for its first line after each start, where that is more.
        restarts: Crashes and hangs after which it is given up.

    Raises:
        PolicyError: No command, one that cannot be found, or a number out of range.
    """

    def __init__(
        self,
        rules: Rules,
        num_players: int = 2,
        argument: str = "",
        timeout: float = 10.0,
        startup: float = 60.0,
        restarts: int = 20,
    ) -> None:
        for name, value, least in (("timeout", timeout, 0.001), ("startup", startup, 0)):
            if not isinstance(value, int | float) or not least <= value < 1e6:
                raise PolicyError(f"{name} {value!r}: give seconds from {least} to a million")
        if not isinstance(restarts, int) or restarts < 0:
            raise PolicyError(f"restarts {restarts!r}: give a whole number from 0 on")
        self.rules = rules
        self.failures = Failures()
        self._words = _read_command(argument)
        self._environment = {
            **os.environ,
            "CPOKER_RULES": json.dumps(rules.to_dict()),
            "CPOKER_PLAYERS": str(num_players),
        }
        self._timeout, self._startup, self._restarts = timeout, max(startup, timeout), restarts
        self._program: Program | None = None
        self._is_buffering = False
        self._num_failed = self._num_in_a_row = 0
        self._lock = threading.Lock()

    def act(self, batch: DecisionBatch, rng: np.random.Generator) -> Actions:
        """Actions for B decisions; threads take turns."""
        texts = [format_cards(hand) for hand in batch.hands.tolist()]
        with self._lock:
            answers = self._ask_all(texts)
            readings = [self._read_answer(answer, batch, i) for i, answer in enumerate(answers)]
            declarations = np.array([reading.declaration for reading in readings], np.int8)
            rows = np.array([reading.rows for reading in readings], np.int8).reshape(-1, 13)
            _, is_legal = evaluate(batch.hands, rows, self.rules)
            for text, answer, reading, legal in zip(
                texts, answers, readings, is_legal | (declarations != SHOW), strict=True
            ):
                if isinstance(answer, Failure):
                    self.failures.add(answer)
                elif reading.problem or not legal:
                    said = repr(answer[:LONGEST_SHOWN])
                    self.failures.add(Failure(reading.problem or "foul", text, said))
        return Actions(declarations, rows)

    def close(self) -> None:
        """End the program; it starts again when it is asked again."""
        with self._lock:
            if self._program is not None:
                self._program.stop(grace=1.0)
                self._program = None

    def _ask_all(self, texts: Sequence[str]) -> list[str | Failure]:
        answers: list[str | Failure] = []
        while len(answers) < len(texts):
            if self._num_failed > self._restarts or self._num_in_a_row >= MOST_IN_A_ROW:
                said = f"failed {self._num_failed} times, {self._num_in_a_row} in a row"
                answers += [Failure("given up", text, said) for text in texts[len(answers) :]]
            else:
                answers += self._ask(texts[len(answers) : len(answers) + WINDOW])
        return answers

    def _ask(self, texts: Sequence[str]) -> list[str | Failure]:
        """Answers to some hands, up to the first that gets none."""
        answers: list[str | Failure] = []
        # Kept for the next hands only if it answers all of these: else it would be out of step.
        program, self._program = self._program, None
        try:
            if program is None or not program.is_own:
                program = Program(self._words, self._environment)
            program.send(texts)
            if self._is_buffering:
                program.end_input()
            while len(answers) < len(texts):
                answers.append(self._read_line(program))
                self._num_in_a_row = 0
            if program.is_input_ended:
                program.stop(grace=1.0)
            else:
                self._program = program
        except TimeoutError:
            said = f"no line in time, {program.stop() if program else ''}"
            answers.append(self._failed("hang", texts[len(answers)], said))
        except (OSError, EOFError) as error:
            said = program.stop(grace=1.0) if program else str(error)
            answers.append(self._failed("crash", texts[len(answers)], said))
        except BaseException:
            if program is not None:
                program.stop()
            raise
        return answers

    def _failed(self, reason: str, text: str, said: str) -> Failure:
        self._num_failed += 1
        self._num_in_a_row += 1
        return Failure(reason, text, said)

    def _read_line(self, program: Program) -> str:
        try:
            return program.read(self._timeout if program.num_answers else self._startup)
        except TimeoutError:
            if program.is_input_ended:
                raise
        # What it has said may lie in its buffer, which it empties when its input ends.
        program.end_input()
        line = program.read(self._timeout)
        self._is_buffering = True
        return line

    def _read_answer(self, answer: str | Failure, batch: DecisionBatch, i: int) -> "_Reading":
        """What an answer to hand i of a batch plays."""
        if isinstance(answer, Failure):
            return _Reading()
        text = answer.lower()
        if text == "surrender":
            return _Reading(SURRENDER) if batch.can_surrender[i] else _Reading(problem="surrender")
        natural = None
        if text.startswith("declare "):
            natural, _, text = text.removeprefix("declare ").strip().partition(" ")
            if natural not in PATTERNS:
                return _Reading(problem="rubbish")
        try:
            laid = [
                [parse_card(word) for word in row.replace(",", " ").split()]
                for row in text.split("|")
            ]
        except CardError:
            return _Reading(problem="rubbish")
        if len(laid) != 3:
            return _Reading(problem="rubbish")
        row_of = {card: row for row, cards in enumerate(laid) for card in cards}
        hand = batch.hands[i].tolist()
        if sum(map(len, laid)) != len(hand) or set(row_of) != set(hand):
            return _Reading(problem="cards")
        rows = tuple(row_of[card] for card in hand)
        if natural is None:
            return _Reading(SHOW, rows)
        if batch.naturals[i] < 0 or natural != PATTERNS[batch.naturals[i]]:
            return _Reading(SHOW, rows, "declaration")
        return _Reading(DECLARE, rows)


class _Reading(NamedTuple):
    declaration: int = SHOW
    rows: tuple[int, ...] = (0,) * HAND_SIZE  # all in front, a foul
    problem: str = ""


def _read_command(argument: str) -> list[str]:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise PolicyError(f"external:{argument}: {error}; quote as in a shell") from None
    if not words:
        raise PolicyError("external without a program: write external:COMMAND")
    if shutil.which(words[0]) is None:
        raise PolicyError(
            f"external:{argument}: {words[0]!r} is no program on the PATH nor an executable file; "
            "give its path, or its interpreter first, as in external:python3 bot.py"
        )
    return words
