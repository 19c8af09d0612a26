"""A hand on the table as a picture: three rows of cards, front on top."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cpoker_env.arrangements import ROW_SIZES
from cpoker_env.cards import RANK_LETTERS, rank_of, suit_of

CARD_WIDTH, CARD_HEIGHT, GAP, TITLE = 54, 76, 8, 26
SUIT_COLOURS = ("#177245", "#1f5fbf", "#c0232c", "#202020")
"""Clubs, diamonds, hearts, spades, as in a four-colour deck."""


def hand_picture(
    hand: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.integer[Any]], title: str
) -> npt.NDArray[np.uint8]:
    """(height, width, 3) uint8 picture of a hand (13,) laid in rows (13,), under a title."""
    from PIL import Image, ImageDraw, ImageFont  # comes with tensorboard

    width = max(ROW_SIZES) * (CARD_WIDTH + GAP) + GAP
    image = Image.new("RGB", (width, TITLE + 3 * (CARD_HEIGHT + GAP) + GAP), "#e9efe9")
    draw = ImageDraw.Draw(image)
    draw.text((GAP, GAP), title, fill="#202020", font=ImageFont.load_default(13))
    for row, size in enumerate(ROW_SIZES):
        top = TITLE + GAP + row * (CARD_HEIGHT + GAP)
        left = (width - size * (CARD_WIDTH + GAP) + GAP) // 2
        for place, card in enumerate(np.asarray(hand)[np.asarray(rows) == row].tolist()):
            _draw_card(draw, left + place * (CARD_WIDTH + GAP), top, card, ImageFont)
    return np.asarray(image, np.uint8)


def _draw_card(draw: Any, left: int, top: int, card: int, fonts: Any) -> None:
    colour = SUIT_COLOURS[suit_of(card)]
    box = (left, top, left + CARD_WIDTH, top + CARD_HEIGHT)
    draw.rounded_rectangle(box, radius=6, fill="white", outline="#707070")
    middle = left + CARD_WIDTH / 2
    letter, font = RANK_LETTERS[rank_of(card)], fonts.load_default(28)
    draw.text((middle, top + 24), letter, fill=colour, font=font, anchor="mm")
    _draw_suit(draw, middle, top + 55, 9, suit_of(card), colour)


def _draw_suit(draw: Any, x: float, y: float, r: float, suit: int, colour: str) -> None:
    """A club, diamond, heart or spade of half size r around (x, y)."""

    def disc(dx: float, dy: float, size: float) -> None:
        draw.ellipse((x + dx - size, y + dy - size, x + dx + size, y + dy + size), fill=colour)

    def shape(*points: tuple[float, float]) -> None:
        draw.polygon([(x + dx * r, y + dy * r) for dx, dy in points], fill=colour)

    half = 0.52 * r
    if suit == 0:
        for dx, dy in ((-0.5, 0.1), (0.5, 0.1), (0.0, -0.6)):
            disc(dx * r, dy * r, half)
    elif suit == 1:
        shape((0, -1.1), (0.8, 0), (0, 1.1), (-0.8, 0))
    else:
        tip = -1.0 if suit == 3 else 1.0
        for dx in (-0.5, 0.5):
            disc(dx * r, -0.35 * tip * r, half)
        shape((-1.0, -0.25 * tip), (1.0, -0.25 * tip), (0.0, tip))
    if suit in (0, 3):
        shape((0, 0), (0.4, 1.1), (-0.4, 1.1))
