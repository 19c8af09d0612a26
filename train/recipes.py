"""How another process makes a policy: by its name and where its factory is."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from cpoker_env.agents.checkpoint import stamp_of
from cpoker_env.agents.external import External, Failures

from cpoker_env.errors import CheckpointError, ConfigError
from cpoker_env.policy import Policy, make_policy, policy_factory, register_policy
from cpoker_env.rules import Rules


@dataclass(frozen=True)
class Recipe:
    """What makes a policy.

    name: as make_policy takes it. timeout: seconds that an external program has for a line.
    factory: the import string behind the name, None if it is no import string.
    stamp: of the checkpoint it names, if it does, see `stamp_of`.
    """

    name: str
    rules: Rules
    num_players: int
    timeout: float
    factory: str | None
    stamp: str | None = None

    def make(self) -> Policy:
        """The policy.

        Raises:
            PolicyError, CheckpointError: It cannot be made, or its checkpoint is another by now.
        """
        word = self.name.partition(":")[0]
        if self.factory is not None:
            register_policy(word, self.factory, overwrite=True)
        options = {"timeout": self.timeout} if word == "external" else {}
        policy = make_policy(self.name, self.rules, self.num_players, **options)
        if self.stamp != _stamp(self.name):
            raise CheckpointError(
                f"{self.name}: its files differ from those the run began with; begin anew, with "
                "the same files on every machine"
            )
        return policy

    @property
    def identity(self) -> list[Any]:
        """What tells it from others of the same rules and seats."""
        return [self.name, self.timeout, self.factory, self.stamp]


def _stamp(name: str) -> str | None:
    return stamp_of(name.partition(":")[2])


def recipe_of(name: str, rules: Rules, num_players: int, timeout: float = 10.0) -> Recipe:
    """The recipe of a policy with a name.

    Raises:
        PolicyError: Unknown name.
    """
    factory = policy_factory(name)
    string = factory if isinstance(factory, str) else None
    return Recipe(name, rules, num_players, timeout, string, _stamp(name))


def check_portable(agent: str, recipe: Recipe | None, option: str) -> Recipe:
    """The recipe, from which any process makes the policy, as an option needs it.

    Raises:
        ConfigError: The policy is an object, or its factory is.
    """
    if recipe is None or recipe.factory is None:
        raise ConfigError(
            f"{option} with the agent {agent!r}, which is no import string: leave it out, or "
            "register the policy as 'module:factory' and name it"
        )
    return recipe


@cache
def made(recipe: Recipe) -> Policy:
    """The policy of a recipe, made once in this process."""
    return recipe.make()


def count_failures(policy: Policy) -> Failures:
    """What will go wrong with a policy from now on, if it is a program."""
    failures = Failures()
    if isinstance(policy, External):
        policy.failures = failures
    return failures
