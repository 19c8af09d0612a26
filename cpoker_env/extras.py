"""Optional libraries: which versions fit, and what to install if none is there."""

import re
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from cpoker_env.errors import ExtraError


class Library(NamedTuple):
    """A library an adapter needs, by its name on the package index.

    from_version: the oldest that fits. below: the first that does not.
    """

    name: str
    from_version: str
    below: str

    @property
    def requirement(self) -> str:
        """As an installer takes it, ``"torchrl>=0.14,<0.15"``."""
        return f"{self.name}>={self.from_version},<{self.below}"


EXTRAS: dict[str, tuple[Library, ...]] = {
    "open_spiel": (Library("open_spiel", "1.6", "2.1"),),
    "pettingzoo": (Library("pettingzoo", "1.25", "1.28"),),
    "ray": (Library("ray", "2.60", "2.61"),),
    "rllib": (Library("ray", "2.60", "2.61"), Library("pettingzoo", "1.25", "1.28")),
    "sb3": (
        Library("stable-baselines3", "2.7", "2.10"),
        Library("sb3-contrib", "2.7", "2.10"),
    ),
    "torchrl": (Library("torchrl", "0.13", "0.15"),),
}
"""Libraries of each extra, in the versions its adapter was run with."""
_MODULES = {"pettingzoo": "parallel", "ray": "train.cluster"}
"""What needs an extra and is not named as it."""


def check_versions(extra: str) -> None:
    """Refuse versions of an extra's libraries that its adapter was not written for.

    A library that was built from source and carries no version passes.

    Raises:
        ExtraError: A version out of range.
    """
    for library in EXTRAS[extra]:
        try:
            found = version(library.name)
        except PackageNotFoundError:
            continue
        if not _numbers(library.from_version) <= _numbers(found) < _numbers(library.below):
            raise ExtraError(
                f"{library.name} {found}: {_module(extra)} takes {library.requirement}; "
                f"{_install(extra)}"
            )


def not_importable(extra: str, error: ImportError) -> ExtraError:
    """Why an extra's library could not be imported: the wrong version, or none at all."""
    try:
        check_versions(extra)
    except ExtraError as unfit:
        return unfit
    names = " and ".join(library.name for library in EXTRAS[extra])
    return ExtraError(f"{_module(extra)} needs {names} ({error}): {_install(extra)}")


def _module(extra: str) -> str:
    return f"cpoker_env.{_MODULES.get(extra, extra)}"


def extra_name(extra: str) -> str:
    """An extra as installers spell it; pip before 23.3 passes over one with an underscore."""
    return extra.replace("_", "-")


def _install(extra: str) -> str:
    return f'pip install "cpoker-env[{extra_name(extra)}]"'


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, ``(2, 0, 1)`` of ``"2.0.1rc1"``."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found.group().split("."))) if found else ()
