"""Structural similarity of fields on the scale that models are trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from karat.errors import UsageError
from karat.kernels.pixels import Stretched
from karat.metric import Derived, Score
from karat.metrics.ssim import SSIM


@dataclass(frozen=True)
class NormalizedSSIM(SSIM):
    """SSIM of fields whose `scale` is brought to [-1, 1], a range of 2: its luminance term is another one there, since
    it asks for the means themselves.

    pred, truth: fields (B, H, W). Everything else as SSIM.
    """

    scale: tuple[float, float] = (-186.0, -47.0)
    data_range: float = 2.0

    of_fields: ClassVar = True
    scores: ClassVar = {"ssim@normalized": Score("higher", (-1, 1), 1, "on a scale from -1 to 1")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.scale[0] < self.scale[1]:
            raise UsageError(f"NormalizedSSIM.scale runs from the smaller to the larger number, not {self.scale}.")

    def inputs(self) -> dict[str, Derived]:
        return {side: Derived(side, Stretched(*self.scale)) for side in ("pred", "truth")}
