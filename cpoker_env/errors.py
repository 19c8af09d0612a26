"""Every error this package raises on bad input.

CPokerError
├── CardError           a card or a hand of cards (also ValueError)
├── ArrangementError    rows of the wrong size, or not the hand's cards (also ValueError)
├── DeclarationError    a natural or a surrender the seat may not announce (also ValueError)
├── RulesError          an unknown, malformed or contradictory house rule (also ValueError)
├── ShowdownError       a showdown to score: its seats, its money, its JSON (also ValueError)
├── ActionError         an environment action or option out of its space (also ValueError)
├── PolicyError         a policy name or an answer of a policy (also ValueError)
├── ConfigError         a training or evaluation setting (also ValueError)
│   └── OptionError     a keyword an environment does not take (also TypeError)
├── ExtraError          an optional library that is missing or too old or new (also ImportError)
├── WorkerError         a worker process that died
└── CheckpointError     a stored agent that is missing, damaged or of other rules

A message gives the value, the limit and the fix, in that order.
"""


class CPokerError(Exception):
    """Base of every error raised on purpose by this package."""


class CardError(CPokerError, ValueError):
    """A card that does not exist, a card twice, or a hand of the wrong size."""


class ArrangementError(CPokerError, ValueError):
    """Rows of the wrong size, or rows that do not hold exactly the hand's cards."""


class DeclarationError(CPokerError, ValueError):
    """A natural the hand does not hold or the rules do not pay, or a surrender not on offer."""


class RulesError(CPokerError, ValueError):
    """A house rule with an unknown name, a wrong value, or at odds with another."""


class ShowdownError(CPokerError, ValueError):
    """A showdown that cannot be read: seats, money or JSON."""


class ActionError(CPokerError, ValueError):
    """An action or a reset option outside what the environment accepts."""


class PolicyError(CPokerError, ValueError):
    """An unknown policy name, or a policy that answered out of shape."""


class ConfigError(CPokerError, ValueError):
    """A setting of a training or an evaluation outside its range."""


class OptionError(ConfigError, TypeError):
    """A keyword argument that an environment does not take."""


class ExtraError(CPokerError, ImportError):
    """An optional library that is not installed, or in a version that does not fit."""


class WorkerError(CPokerError):
    """A worker process that died before it was done."""


class CheckpointError(CPokerError):
    """A checkpoint that is missing, damaged, or trained for other rules."""
