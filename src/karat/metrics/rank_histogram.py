"""Whether the truth is one of the samples, from its rank among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from karat.errors import UsageError
from karat.kernels.ensemble import ranks
from karat.metric import Array, Columns, Metric, Pool, Score, Sums, ratio
from karat.region import Regions


@dataclass(frozen=True)
class RankHistogram(Metric):
    """The rank of the truth among N samples, each of the N + 1 as frequent as any other if the truth could be one of
    them. Full outer ranks mean that the samples are too close together, full inner ones too far apart, a slope a bias.

    pred_samples: (B, N, H, W); truth: fields (B, H, W). A truth that is equal to samples is shared evenly by the ranks
    that it may have. Ranks are laid on `bins` equal parts, so that maps with different numbers of samples add: N + 1
    bins are the ranks themselves. rank_hist is how far the histogram is from flat: half of the summed
    |share - 1 / bins|, the share of pixels in the wrong bin; rank_hist@rank are the shares. Pixels that are NaN in any
    sample or in the truth are left out.
    Hamill 2001, doi:10.1175/1520-0493(2001)129<0550:IORHFV>2.0.CO;2.
    """

    bins: int = 11
    pool: Pool = "sample"

    of_fields: ClassVar = True
    scores: ClassVar = {"rank_hist": Score("lower", (0, 1), 0, "share of pixels in the wrong bin; 0 is flat")}
    parts: ClassVar = {"rank": "share of pixels in each bin (rank_hist), from 0"}
    exempt: ClassVar = {"direction": "samples that are wrong in every direction hold the truth as well"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins < 2:
            raise UsageError(f"{type(self).__name__}.bins is 2 or more, not {self.bins}.")

    def measure(self, pred_samples: Array, truth: Array, regions: Regions) -> Columns:
        lost = np.isnan(pred_samples).any(axis=1) | np.isnan(truth)
        known = regions.where(~lost) if lost.any() else regions
        less, equal = ranks(pred_samples, truth)
        hist = np.zeros((len(truth), len(regions), self.bins))
        for ties in np.flatnonzero(np.bincount(equal.ravel())):
            part = known.where(equal == ties) if equal.any() else known
            count = part.count(less, pred_samples.shape[1] + 1)
            hist += (count[..., None] * self._shares(pred_samples.shape[1] + 1, int(ties))).sum(axis=2)
        return {"hist": hist, "n": known.weight(truth.shape)}

    def _shares(self, ranks: int, ties: int) -> Array:
        """Which part of each rank and the `ties` after it lies in each bin, (ranks, bins): overlaps are integers."""
        low, start = np.arange(ranks)[:, None] * self.bins, np.arange(self.bins) * ranks
        high, stop = low + (ties + 1) * self.bins, start + ranks
        overlap: Array = np.clip(np.minimum(high, stop) - np.maximum(low, start), 0, None)
        return overlap / ((ties + 1) * self.bins)

    def score(self, s: Sums) -> dict[str, Array]:
        shares = ratio(s.hist, s.n[..., None])
        return {
            "rank_hist": np.abs(shares - 1 / self.bins).sum(axis=-1) / 2,
            **{f"rank_hist@rank:{k}": shares[..., k] for k in range(self.bins)},
        }
