"""All forms of the action, by name.

`structured` and `flat` say everything in one step, `sequential` places a card a step, `candidates`
picks from a list of good arrangements; `cpoker_env.form` says what a form is.
"""

from typing import Any

from cpoker_env.candidates import Candidates
from cpoker_env.errors import ConfigError, OptionError
from cpoker_env.form import Form
from cpoker_env.rules import Rules
from cpoker_env.sequential import Sequential
from cpoker_env.structured import Flat, Structured

FORMS: dict[str, type[Structured] | type[Sequential] | type[Candidates]] = {
    form.name: form for form in (Structured, Flat, Sequential, Candidates)
}


def make_form(
    name: str, rules: Rules, num_players: int, size: int, options: dict[str, Any]
) -> Form:
    """A form by name for `size` learners.

    Raises:
        ConfigError: An unknown form, or a value out of range.
        OptionError: An option it does not take.
    """
    if not isinstance(name, str) or name not in FORMS:
        raise ConfigError(f"form {name!r}: choose one of {', '.join(FORMS)}")
    takes = FORMS[name].options
    for option in options:
        if option not in takes:
            # In Python's own words, by which other libraries tell what they may leave out.
            raise OptionError(
                f"form {name!r} got an unexpected keyword argument {option!r}: "
                f"it takes {', '.join(takes) or 'none'}"
            )
    return FORMS[name](rules, num_players, size, **options)
