"""Structural similarity of what a blur leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from karat.kernels.blur import Kind, Strength, blur_filter
from karat.metric import Derived, Score
from karat.metrics.ssim import SSIM


@dataclass(frozen=True)
class BlurSSIM(SSIM):
    """SSIM of prediction and truth after the same blur: fidelity to what a blurred control signal says.

    pred, truth: uint8 frames (B, H, W, 3). `blur` and `strength` name a preset, `blur_size` and `blur_sigmas`
    (bilateral: colour, space) replace its numbers. Mean over frames, then videos; everything else as SSIM.
    Cosmos-Transfer1 2025, arXiv:2503.14492; blur: Tomasi & Manduchi 1998, doi:10.1109/ICCV.1998.710815.
    """

    blur: Kind = "bilateral"
    strength: Strength = "medium"
    blur_size: int | None = None
    blur_sigmas: tuple[float, ...] | None = None

    scores: ClassVar = {"blur_ssim": Score("higher", (-1, 1), 1, "mean SSIM of the blurred frames")}

    def inputs(self) -> dict[str, Derived]:
        blur = blur_filter(self.blur, self.strength, self.blur_size, self.blur_sigmas)
        plain = super().inputs()
        return {side: Derived(plain.get(side, side), blur) for side in ("pred", "truth")}
