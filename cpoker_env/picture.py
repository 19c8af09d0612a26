"""A table as a picture, for render mode "rgb_array": a line of cards a seat."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from cpoker_env.cards import HAND_SIZE, Card, format_card, suit_of
from cpoker_env.render import units_text
from cpoker_env.scoring import SEAT_NAMES, Showdown

CARD_WIDTH, CARD_HEIGHT, GAP, LABEL_WIDTH = 30, 42, 6, 150
WIDTH = LABEL_WIDTH + HAND_SIZE * (CARD_WIDTH + GAP) + 4 * GAP
FELT, PAPER, BACK, INK = "#1f5c3a", "#ffffff", "#7a2e2e", "#ffffff"
SUIT_COLOURS = ("#1b7f2a", "#1f4fbf", "#c0202a", "#111111")
"""Clubs, diamonds, hearts, spades, as told apart by colour alone."""


def hand_picture(hand: Sequence[Card], num_players: int) -> npt.NDArray[np.uint8]:
    """(H, W, 3) uint8: the hand of the first seat, the other seats face down."""
    hidden: list[Sequence[Card | None]] = [[None] * HAND_SIZE]
    return _draw([[sorted(hand, reverse=True)], *[hidden] * (num_players - 1)], SEAT_NAMES)


def showdown_picture(showdown: Showdown) -> npt.NDArray[np.uint8]:
    """(H, W, 3) uint8 of the size of `hand_picture`: rows, units and what became of each seat."""
    labels = [
        f"{SEAT_NAMES[seat]} {units_text(showdown.units[seat])}\n{status}"
        for seat, status in enumerate(showdown.statuses)
    ]
    return _draw(showdown.arrangements, labels)


def _draw(
    seats: Sequence[Sequence[Sequence[Card | None]]], labels: Sequence[str]
) -> npt.NDArray[np.uint8]:
    image = Image.new("RGB", (WIDTH, GAP + len(seats) * (CARD_HEIGHT + GAP)), FELT)
    pen: Any = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=16)
    for seat, groups in enumerate(seats):
        left, top = LABEL_WIDTH, GAP + seat * (CARD_HEIGHT + GAP)
        pen.multiline_text((GAP, top + 2), labels[seat], fill=INK, font=font)
        for group in groups:
            for card in group:
                box = (left, top, left + CARD_WIDTH, top + CARD_HEIGHT)
                pen.rounded_rectangle(box, radius=4, fill=BACK if card is None else PAPER)
                if card is not None:
                    colour = SUIT_COLOURS[suit_of(card)]
                    middle = (left + CARD_WIDTH / 2, top + CARD_HEIGHT / 2)
                    pen.text(middle, format_card(card), fill=colour, font=font, anchor="mm")
                left += CARD_WIDTH + GAP
            left += 2 * GAP
    return np.array(image, np.uint8)
