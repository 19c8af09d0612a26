"""What the shipped networks do with some hands, written to `decisions.json`.

    python tests/store_decisions.py

Only hands whose best option is clearly ahead of the next are kept, so that another machine's
rounding changes none. Run it again after training a network anew, never to make a test pass.
"""

import json
from pathlib import Path

import numpy as np
from cpoker_env.agents.checkpoint import load_checkpoint, shipped_names
from cpoker_env.agents.population import draw_hands, sides_of

from cpoker_env.arrangements import arrangement_of
from cpoker_env.cards import format_cards
from cpoker_env.policy import decisions_for, make_policy
from cpoker_env.scoring import SHOW

STORED = Path(__file__).with_name("decisions.json")
NUM_HANDS = 60
LEAST_LEAD = 0.02
"""Units between the best option and the next."""


def networks():
    """Names of the networks that ship."""
    return [name for name in shipped_names() if name.startswith("neural-")]


def decide(name, hands=None):
    """(hands as text, answers as text, leads) of a shipped network; its usual hands if none."""
    stored = load_checkpoint(name)
    dealt = draw_hands(20_261, NUM_HANDS) if hands is None else hands
    sides = sides_of(stored.rules, len(dealt))
    batch = decisions_for(dealt, stored.rules, stored.config["players"])
    batch.bank[:] = sides
    policy = make_policy(f"neural:{name}", stored.rules, stored.config["players"])
    actions = policy.act(batch, np.random.default_rng(0))
    answers = [
        str(arrangement_of(hand, rows)) if declaration == SHOW else f"declaration {declaration}"
        for hand, rows, declaration in zip(
            dealt.tolist(), actions.rows.tolist(), actions.declarations.tolist(), strict=True
        )
    ]
    ranked = policy.candidates(batch, 2)
    leads = [options[0][2] - options[1][2] if len(options) > 1 else 9.0 for options in ranked]
    return [format_cards(hand) for hand in dealt.tolist()], answers, leads


if __name__ == "__main__":
    found = {
        name: {
            hand: answer
            for hand, answer, lead in zip(*decide(name), strict=True)
            if lead > LEAST_LEAD
        }
        for name in networks()
    }
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
