"""Files of weights as tensors: read without running any of them, and refused where they are of another network."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from karat.sources.guard import guarded, refusal

EXPECTED = "the weights of a network, as safetensors or as torch saves a state dict,"
COUNTER = "num_batches_tracked"  # of training

State = dict[str, torch.Tensor]


def read_state(path: Path) -> State:
    """The tensors of a file."""
    if not path.is_file():
        raise refusal(path, "is no file", "a file of weights was expected", "check --weights")
    with guarded(path, EXPECTED):
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, dict) or not all(isinstance(one, torch.Tensor) for one in found.values()):
        raise refusal(path, "holds more than tensors", f"{EXPECTED} was expected", "save its state_dict() alone")
    return {str(name): one for name, one in found.items()}


def fill(network: nn.Module, state: State, path: Path, what: str) -> None:
    """Gives a network its weights, all of them and no others.

    what: whose weights they are to be, such as "Inception of 2015".
    """
    own = network.state_dict()
    state = {name: one for name, one in state.items() if not name.endswith(COUNTER)}
    missing, foreign = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing:
        found = f"lacks {len(missing)} of the {len(own)} tensors of {what}, such as {missing[0]}"
    elif foreign:
        found = f"holds {len(foreign)} tensors that {what} has not, such as {foreign[0]}"
    else:
        wrong = [name for name in own if state[name].shape != own[name].shape or not state[name].is_floating_point()]
        if not wrong:
            network.load_state_dict(state)
            return
        found = f"has {wrong[0]} as {_told(state[wrong[0]])} instead of {_told(own[wrong[0]])}"
    raise refusal(path, found, f"the weights of {what} were expected", "see karat weights")


def _told(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
