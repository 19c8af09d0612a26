"""The environments for TorchRL, masks included.

>>> from cpoker_env.torchrl import make_env
>>> env = make_env("candidates", num_envs=64, rules="four_two")
"""

from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import cpoker_env  # noqa: F401  (registers the environments)
from cpoker_env.errors import ConfigError
from cpoker_env.extras import check_versions, not_importable

try:
    from torchrl.data import Binary, Composite
    from torchrl.envs import ActionMask, Compose, GymWrapper, InitTracker, TransformedEnv
    from torchrl.envs.gym_like import BaseInfoDictReader
except ImportError as error:
    raise not_importable("torchrl", error) from error
check_versions("torchrl")

FORMS = {"sequential": "ChinesePokerSequential-v0", "candidates": "ChinesePokerCandidates-v0"}


def make_env(form: str = "candidates", num_envs: int = 64, **options: Any) -> Any:
    """A batch of tables for TorchRL's collectors, rollouts and losses.

    The batch size is (num_envs,). Observations lie under their Gymnasium keys, the mask under
    `action_mask`, bool; the action is an index. Random actions keep to the mask, and `is_init`
    marks first steps. `set_seed(s)` names the deals as `reset(seed=s)` does and deals number 0; the
    first reset after it deals number 1.

    Args:
        form: `sequential` or `candidates`, the forms whose action is one index.
        num_envs: How many tables.
        **options: As for `gym.make_vec`: rules, num_players, opponents, num_candidates, ...

    Raises:
        ConfigError: Another form, or an option for autoreset, which is TorchRL's to do.
        CPokerError: An option out of its range, of the class that fits it.
    """
    if not isinstance(form, str) or form not in FORMS:
        raise ConfigError(f"form {form!r}: TorchRL masks {' and '.join(FORMS)}")
    if "autoreset_mode" in options:
        raise ConfigError("autoreset_mode: TorchRL resets the tables itself, leave it out")
    tables = gym.make_vec(
        FORMS[form], num_envs=num_envs, autoreset_mode=AutoresetMode.DISABLED, **options
    )
    return mask_actions(GymWrapper(tables, categorical_action_encoding=True))


def mask_actions(env: Any) -> Any:
    """A GymWrapper or GymEnv of ours as a TransformedEnv that reads and keeps to the mask.

    Args:
        env: Around one table, or a batch with `autoreset_mode="Disabled"`, of the sequential or
            the candidates form.

    Raises:
        ConfigError: Actions that are not one index each.
    """
    space = getattr(env, "single_action_space", None) or env.action_space
    if not isinstance(space, spaces.Discrete):
        raise ConfigError(f"action space {space}: TorchRL masks {' and '.join(FORMS)}")
    env.set_info_dict_reader(_MaskReader((*env.batch_size, int(space.n)), env.batch_size))
    return TransformedEnv(env, Compose(ActionMask(), InitTracker()))


class _MaskReader(BaseInfoDictReader):  # type: ignore[misc]
    """Copies `info["action_mask"]` next to the observations, as bool."""

    def __init__(self, shape: tuple[int, ...], batch_size: torch.Size) -> None:
        mask = Binary(n=shape[-1], shape=shape, dtype=torch.bool)
        self._spec = Composite({"action_mask": mask}, shape=batch_size)

    @property
    def info_spec(self) -> Any:
        return self._spec

    def __call__(self, info_dict: dict[str, Any], tensordict: Any) -> Any:
        mask = torch.as_tensor(info_dict["action_mask"]).bool()
        return tensordict.set("action_mask", mask)
