"""A network by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from karat.errors import UsageError, told

from .known import CLIPS, KNOWN, located, published
from .weights import require

NAMES = [name for name in KNOWN if not name.startswith("lpips")]

if TYPE_CHECKING:
    from .custom import Function
    from .features import FeatureNetwork, Precision
    from .lpips import Lpips


def feature_network(
    name: str | Function = "inception",
    weights: Path | None = None,
    device: str | None = None,
    precision: Precision = "float32",
    batch: int = 32,
    taps: Sequence[str] = ("2048",),
    resize: str = "tf1",
) -> FeatureNetwork:
    """A network: inception, efficientnet-lite0, dinov2, a CLIP by its short name, another of transformers by id or
    folder, a function of images or the `module:path` of one.

    weights: a file or folder in the place of those that are found.  taps, resize: of Inception.
    """
    require(f"The network {name}")
    from .features import Way

    way = Way(device, precision, batch)
    if name == "inception":
        from .inception import Inception

        return Inception(located(name, weights), way, taps, resize)
    if name == "efficientnet-lite0":
        from .efficientnet_lite import EfficientNet

        return EfficientNet(located(name, weights), way)
    if callable(name) or (":" in name and not Path(name).exists()):
        from .custom import Custom

        return Custom(name, way)
    if weights is None and name not in KNOWN and "/" not in name and not Path(name).is_dir():
        raise UsageError(
            f"There is no network {told(name)!r}: choose {', '.join(NAMES)}, OWNER/NAME of a repository, a folder, or "
            "module:path of a function."
        )
    found = published(name, weights)
    if found.model_type == "dinov2":
        from .dinov2 import Dinov2

        return Dinov2(found, way)
    from .clip import Clip

    return Clip(found, way)


def reads_texts(network: str | Function, weights: str | Path | None = None) -> bool:
    """Whether a network of that name has embeddings of texts too, once its weights are here."""
    if callable(network) or network in KNOWN:
        return network in CLIPS
    if ":" in network and not Path(network).exists():
        return False
    from .clip import KINDS

    return published(network, None if weights is None else Path(weights)).model_type in KINDS


def lpips(
    trunk: str = "alex",
    weights: Path | None = None,
    device: str | None = None,
    precision: Precision = "float32",
    batch: int = 32,
) -> Lpips:
    """LPIPS with that trunk."""
    require("LPIPS")
    from .features import Way
    from .lpips import Lpips

    return Lpips(located(f"lpips-{trunk}", weights), Way(device, precision, batch), trunk)
