"""Tracks against tracks: which instances are matched frame by frame, and what follows from that for the identities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from karat.kernels.assignment import least_total, most_pairs
from karat.kernels.keypoints import EPS

Array = NDArray[Any]
KEPT = 1000.0  # what a pair that is kept counts more than one that is not: more than any similarities together


@dataclass(frozen=True)
class Scene:
    """Frames (F) that have equally many instances, some on both sides: the places of those, truth (F, T) and pred
    (F, P), and how alike they are, similarity (F, T, P), from 0 to 1."""

    frame: Array
    truth: Array
    pred: Array
    similarity: Array


@dataclass(frozen=True)
class Pairs:
    """Pairs (n) of a true and a predicted instance, in the order of their frames."""

    frame: Array
    truth: Array
    pred: Array
    similarity: Array

    def take(self, index: Array) -> Pairs:
        """The pairs at `index`."""
        return Pairs(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True)
class Tracking:
    """A video of `frames` frames. All instances have a track, a number from 0; `truths` and `preds` count, in time."""

    frames: int
    scenes: Sequence[Scene]
    truth_track: Array
    pred_track: Array
    truths: Array
    preds: Array

    @cached_property
    def truth_length(self) -> Array:
        """The number of instances of each true track."""
        return np.bincount(self.truth_track[self.truths], minlength=1 + self.truth_track.max(initial=-1))

    @cached_property
    def pred_length(self) -> Array:
        """The number of instances of each predicted track."""
        return np.bincount(self.pred_track[self.preds], minlength=1 + self.pred_track.max(initial=-1))

    @cached_property
    def turn(self) -> Array:
        """The number of frames with instances on both sides before each frame."""
        present = np.zeros(self.frames, np.intp)
        for scene in self.scenes:
            present[scene.frame] = 1
        turn: Array = np.cumsum(present) - present
        return turn

    def tracks(self, pairs: Pairs) -> tuple[Array, Array]:
        """The true and the predicted tracks of pairs."""
        return self.truth_track[pairs.truth], self.pred_track[pairs.pred]


def summed(values: Array, at: Array, count: int) -> Array:
    """Sums of values (n) or (n, k) over equal `at`, in their order: float64 (count) or (count, k)."""
    if values.ndim == 1:
        return np.bincount(at, values, count)
    return np.stack([np.bincount(at, column, count) for column in values.T], axis=1)


def near(similarity: Array, threshold: Array | float) -> Array:
    """Whether instances are alike enough to be matched; what rounding alone keeps below the threshold is."""
    alike: Array = similarity >= threshold - EPS
    return alike


def all_near(scenes: Iterable[Scene], threshold: float) -> Pairs:
    """All pairs that are alike enough, an instance in as many as there are."""
    return _join(_chosen(scene, near(scene.similarity, threshold)) for scene in scenes)


def by_frame(scenes: Iterable[Scene], threshold: float, forbid: bool) -> Pairs:
    """In every frame for itself the pairs of the largest total similarity, of those the ones that are alike enough;
    `forbid`: the others have none to begin with."""
    found = []
    for scene in scenes:
        close = near(scene.similarity, threshold)
        pairs = _assigned(np.where(close, scene.similarity, 0.0) if forbid else scene.similarity)
        found.append(_chosen(scene, pairs & close))
    return _join(found)


def followed(video: Tracking, threshold: float, keep: Literal["previous", "established"]) -> Pairs:
    """Matches that last, of pairs that are alike enough.

    previous: those of the frame before (of those with instances on both sides) are kept where they still hold, and
    then the total similarity is the largest. established: a truth keeps the track that it was last matched with,
    however long ago, the first truth of those that want the same; then there are as many pairs as can be, and of those
    the most alike.
    """
    clear, contested = [], []
    for scene in video.scenes:
        close = near(scene.similarity, threshold)
        single = (close.sum(axis=1) <= 1).all(axis=1) & (close.sum(axis=2) <= 1).all(axis=1)
        clear.append(_chosen(scene, close & single[:, None, None]))
        contested += [(int(scene.frame[at]), scene, at) for at in np.flatnonzero(~single)]
    settled, turn = _join(clear), video.turn
    partner, when = np.full((2, len(video.truth_length)), -1)
    late, start = [], 0

    def remember(pairs: Pairs) -> None:
        of_truth, of_pred = video.tracks(pairs)
        partner[of_truth], when[of_truth] = of_pred, turn[pairs.frame]

    for frame, scene, at in sorted(contested, key=lambda one: one[0]):
        stop = int(np.searchsorted(settled.frame, frame))
        remember(settled.take(np.arange(start, stop)))
        start = stop
        of_truth, of_pred = video.truth_track[scene.truth[at]], video.pred_track[scene.pred[at]]
        alike, close = scene.similarity[at], near(scene.similarity[at], threshold)
        held = close & (partner[of_truth][:, None] == of_pred)
        if keep == "previous":
            held &= (when[of_truth] == turn[frame] - 1)[:, None]
            chosen = _assigned(np.where(close, KEPT * held + alike, 0.0)[None])[0] & close
        else:
            chosen = _established(held, close, alike)
        one = Scene(*(getattr(scene, field.name)[[at]] for field in fields(scene)))
        late.append(_chosen(one, chosen[None]))
        remember(late[-1])
    return _join([settled, *late])


def _established(held: Array, close: Array, alike: Array) -> Array:
    """Of one frame (T, P): what is held, each column by the first of its rows, and most pairs of what is left."""
    kept = held & (held.cumsum(axis=0) == 1)
    free = close & ~kept.any(axis=0) & ~kept.any(axis=1)[:, None]
    found: Array = kept | _as_pairs(most_pairs(1 - alike[None], free[None]), alike.shape[1])[0]
    return found


def global_pairs(video: Tracking) -> Pairs:
    """One assignment a frame: the largest total of similarity times the alignment of the two tracks over the video.

    alignment = C / (truth's length + prediction's length - C), C the sum over frames of s_ij / (s_i. + s_.j - s_ij).
    """
    if not video.scenes:
        return _join([])
    width = len(video.pred_length)
    codes, shares, frames = [], [], []
    for scene in video.scenes:
        code = video.truth_track[scene.truth][:, :, None] * width + video.pred_track[scene.pred][:, None]
        codes.append(code.ravel())
        shares.append(_share(scene.similarity).ravel())
        frames.append(np.repeat(scene.frame, code[0].size))
    kinds, code = np.unique(np.concatenate(codes), return_inverse=True)
    in_time = np.argsort(np.concatenate(frames), kind="stable")
    common = summed(np.concatenate(shares)[in_time], code[in_time], len(kinds))
    lengths = video.truth_length[kinds // width] + video.pred_length[kinds % width]
    aligned = np.split((common / (lengths - common))[code], np.cumsum([len(one) for one in codes])[:-1])
    return _join(
        _chosen(scene, _assigned(scene.similarity * one.reshape(scene.similarity.shape)))
        for scene, one in zip(video.scenes, aligned, strict=True)
    )


def _share(similarity: Array) -> Array:
    """Each pair's part (F, T, P) of what is alike to either of it."""
    total = similarity.sum(axis=2, keepdims=True) + similarity.sum(axis=1, keepdims=True) - similarity
    share: Array = np.divide(similarity, total, out=np.zeros_like(similarity), where=total > EPS)
    return share


def associated(video: Tracking, pairs: Pairs, counts: Array) -> tuple[Array, Array, Array]:
    """Of every pair at every threshold where it counts, (n, k): how much the two tracks are one and the same.

    With TPA the frames where these two tracks are matched: TPA / (TPA + FPA + FNA), TPA / (TPA + FNA) and
    TPA / (TPA + FPA); 0 where the pair does not count.
    """
    code, of_truth, of_pred, often = _kinds(video, pairs)
    both = summed(counts, code, len(often))[code] * counts
    true, predicted = video.truth_length[of_truth][code, None], video.pred_length[of_pred][code, None]
    return both / (true + predicted - both), both / true, both / predicted


def turned(video: Tracking, pairs: Pairs) -> tuple[Array, Array]:
    """The matches whose truth was last matched with another predicted track, and which one that was."""
    of_truth, of_pred = video.tracks(pairs)
    order = np.argsort(of_truth, kind="stable")
    again = of_truth[order][1:] == of_truth[order][:-1]
    here = np.flatnonzero(again & (of_pred[order][1:] != of_pred[order][:-1]))
    index, before = order[here + 1], of_pred[order[here]]
    in_time = np.argsort(index)
    return index[in_time], before[in_time]


def resumed(video: Tracking, pairs: Pairs, over: Literal["segments", "gaps"]) -> Array:
    """The matches that take up a true track again after a break.

    segments: any frame with instances on both sides where the track is not matched breaks it, be it there or not.
    gaps: a frame breaks it where it is there and not matched.
    """
    of_truth, _ = video.tracks(pairs)
    place = video.turn[pairs.frame] if over == "segments" else _places(video)[pairs.truth]
    order = np.argsort(of_truth, kind="stable")
    again = of_truth[order][1:] == of_truth[order][:-1]
    return np.sort(order[1:][again & (place[order][1:] > place[order][:-1] + 1)])


def _places(video: Tracking) -> Array:
    """The number of instances of its own track before each true instance; the instances that count are in time."""
    of_truth = video.truth_track[video.truths]
    order = np.argsort(of_truth, kind="stable")
    first = np.searchsorted(of_truth[order], of_truth[order])
    places = np.zeros(len(video.truth_track), np.intp)
    places[video.truths[order]] = np.arange(len(order)) - first
    return places


def of_best_tracks(video: Tracking, pairs: Pairs) -> Array:
    """Which pairs are of tracks that belong together: one to one over the video, so that those are the most pairs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    code, of_truth, of_pred, count = _kinds(video, pairs)
    if not len(count):
        return np.zeros(0, bool)
    row = np.unique(of_truth, return_inverse=True)[1]
    rows, width, most = np.arange(1 + row.max()), len(video.pred_length), 1 + count.max()
    cost = np.concatenate([most - count, np.full(len(rows), most)])  # a truth may stay without a partner
    ends = np.concatenate([row, rows]), np.concatenate([of_pred, width + rows])
    found, partner = min_weight_full_bipartite_matching(coo_array((cost, ends)).tocsr())
    best: Array = partner[np.argsort(found)][row] == of_pred
    return best[code]


def of_main_truth(video: Tracking, pairs: Pairs) -> Array:
    """Which pairs are of the truth that their predicted track is matched with most often, the first of equals."""
    code, of_truth, of_pred, count = _kinds(video, pairs)
    order = np.lexsort((of_truth, -count, of_pred))
    main = np.zeros(len(count), bool)
    main[order[np.unique(of_pred[order], return_index=True)[1]]] = True
    return main[code]


def _kinds(video: Tracking, pairs: Pairs) -> tuple[Array, Array, Array, Array]:
    """For every pair which two tracks it is of, numbered; for every such two the true, the predicted, and how often."""
    of_truth, of_pred = video.tracks(pairs)
    width = max(len(video.pred_length), 1)
    kinds, code, count = np.unique(of_truth * width + of_pred, return_inverse=True, return_counts=True)
    return code, kinds // width, kinds % width, count


def _assigned(score: Array) -> Array:
    """The one-to-one pairs (F, T, P) of the largest total score of each frame."""
    return _as_pairs(least_total(-score), score.shape[2])


def _as_pairs(partner: Array, width: int) -> Array:
    pairs: Array = partner[..., None] == np.arange(width)
    return pairs


def _chosen(scene: Scene, pairs: Array) -> Pairs:
    frame, truth, pred = np.nonzero(pairs)
    return Pairs(scene.frame[frame], scene.truth[frame, truth], scene.pred[frame, pred], scene.similarity[pairs])


def _join(parts: Iterable[Pairs]) -> Pairs:
    none = np.zeros(0, np.intp)
    every = [Pairs(none, none, none, np.zeros(0)), *parts]
    joined = Pairs(*(np.concatenate([getattr(part, field.name) for part in every]) for field in fields(Pairs)))
    return joined.take(np.argsort(joined.frame, kind="stable"))
