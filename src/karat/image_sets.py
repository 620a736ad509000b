"""Metrics of generated images that are updated batch by batch, and the functions of the same names."""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from karat.errors import InputError, UsageError, counted, told
from karat.given import captions_of, ids_of, images_of
from karat.kernels import alignment, frechet
from karat.kernels.draws import shuffled
from karat.kernels.inception_score import inception_score as score_of_logits
from karat.networks.load import feature_network
from karat.sources.stream import Array

CLIP = "openai/clip-vit-large-patch14"
Ids = Iterable[Any] | None
Rows = dict[str, dict[int | str, Array]]  # of each side; those without ids are numbered


class ImageSets:
    """The features of images that come in batches: a row a sample on each side, the same for any batch size.

    Of samples with one id on one side the first counts; without ids each is a sample. Rows are put in order before
    they are scored: those without ids as they came, then the others by their ids.
    """

    sides: ClassVar[tuple[str, ...]] = ("images",)

    def __init__(self, network: Any) -> None:
        self.network = network
        self._identity = f"{type(self).__name__} by {told(network.identity)}"
        self._rows: Rows = {side: {} for side in self.sides}
        self._unnamed = dict.fromkeys(self.sides, 0)

    def reset(self) -> None:
        """Forget all samples."""
        self._forget(self.sides)

    def merge(self, other: ImageSets) -> None:
        """Add the samples of another of this kind; those of its without ids follow the own ones."""
        if other._identity != self._identity:
            raise UsageError(f"{self._identity} and {other._identity} cannot be merged: their features differ.")
        for side, rows in other._rows.items():
            shift = self._unnamed[side]
            for key, row in list(rows.items()):
                self._rows[side].setdefault(key if isinstance(key, str) else key + shift, row)
            self._unnamed[side] += other._unnamed[side]

    def gather(self) -> Self:
        """One with the samples of all processes of torch.distributed, by rank; the same in every process."""
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return self
        others: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(others, (self._identity, self._rows, self._unnamed))
        everything = self._empty()
        for identity, rows, unnamed in others:
            one = self._empty()
            one._identity, one._rows, one._unnamed = identity, rows, unnamed
            everything.merge(one)
        return everything

    @property
    def counts(self) -> dict[str, int]:
        """How many samples there are on each side."""
        return {side: len(rows) for side, rows in self._rows.items()}

    def _empty(self) -> Self:
        empty = copy.copy(self)
        empty._rows, empty._unnamed = {side: {} for side in self.sides}, dict.fromkeys(self.sides, 0)
        return empty

    def _forget(self, sides: Iterable[str]) -> None:
        for side in sides:
            self._rows[side], self._unnamed[side] = {}, 0

    def _add(self, side: str, count: int, ids: Ids, rows_of: Callable[[list[int]], Array]) -> None:
        """Keep the rows of those of `count` samples that are new; `rows_of` gives them, by their places."""
        first = self._unnamed[side]
        named = ids_of(ids, count)
        keys: Sequence[int | str] = range(first, first + count) if named is None else named
        new: dict[int | str, int] = {}
        for place, key in enumerate(keys):
            if key not in self._rows[side]:
                new.setdefault(key, place)
        rows = rows_of(list(new.values())) if new else ()
        self._rows[side].update(zip(new, rows, strict=True))
        self._unnamed[side] += count if named is None else 0

    def _ordered(self, side: str) -> Array:
        """The rows of a side: by number those without ids, then by id."""
        rows = self._rows[side]
        if not rows:
            raise InputError(f"{type(self).__name__} has no {side} yet: update it first.")
        return np.stack([rows[key] for key in sorted(rows, key=lambda key: (isinstance(key, str), key))])


class FrechetInceptionDistance(ImageSets):
    """FID of generated and of real images, by the tap `feature` (64, 192, 768, 2048) of Inception.

    network: another one, as `karat embed` takes it, or one that is loaded already (`other.network`); then `feature`
    and `resize` are of no meaning. reset() keeps the real images where `reset_real_features` is False.
    """

    sides = ("generated", "real")

    def __init__(
        self,
        feature: int | str = 2048,
        reset_real_features: bool = True,
        normalize: bool = False,
        network: Any = "inception",
        weights: str | Path | None = None,
        device: str | None = None,
        resize: str = "tf1",
    ) -> None:
        super().__init__(_network(network, weights, device, str(feature), resize))
        self.reset_real_features, self.normalize = reset_real_features, normalize

    def reset(self) -> None:
        """Forget the images, the real ones only with `reset_real_features`."""
        self._forget(self.sides if self.reset_real_features else ("generated",))

    def update(self, imgs: Any, real: bool, ids: Ids = None) -> None:
        """Add images (N, 3, H, W), bytes or with `normalize` numbers in 0..1, or a list of images of PIL."""
        images = images_of(imgs, self.normalize)
        self._add("real" if real else "generated", len(images), ids, lambda places: self._features(images, places))

    def compute(self) -> float:
        """The distance."""
        few = {side: count for side, count in self.counts.items() if count < 2}
        if few:
            found = " and ".join(counted(count, f"{side} image") for side, count in few.items())
            raise InputError(f"FID has {found}, but at least 2 of each are needed: update it with more.")
        generated, real = self._ordered("generated"), self._ordered("real")
        width = generated.shape[1]
        if min(len(generated), len(real)) <= width:
            warnings.warn(
                f"FID of {len(generated)} generated and {len(real)} real images by {width} features is far too large: "
                "its bias falls with 1 / n.",
                stacklevel=2,
            )
        return frechet.distance(generated, real).value

    def _features(self, images: Array, places: list[int]) -> Array:
        rows: Array = self.network.features(images[places])
        return rows


class ImageInceptionScore(ImageSets):
    """The Inception Score of images: shuffled by `seed` (None: in order) and cut into `splits` parts.

    The same of logits is karat.InceptionScore. network: another one that gives logits, or one that is loaded already.
    """

    def __init__(
        self,
        splits: int = 10,
        normalize: bool = False,
        seed: int | None = 0,
        network: Any = "inception",
        weights: str | Path | None = None,
        device: str | None = None,
        resize: str = "tf1",
    ) -> None:
        if splits < 1 or (seed is not None and seed < 0):
            raise UsageError("The Inception Score takes at least 1 split, and a seed of at least 0, or None.")
        super().__init__(_network(network, weights, device, "logits_unbiased", resize))
        self.splits, self.normalize, self.seed = splits, normalize, seed

    def update(self, imgs: Any, ids: Ids = None) -> None:
        """Add images (N, 3, H, W), bytes or with `normalize` numbers in 0..1, or a list of images of PIL."""
        images = images_of(imgs, self.normalize)
        self._add("images", len(images), ids, lambda places: self.network.features(images[places]))

    def compute(self) -> tuple[float, float]:
        """Mean and standard deviation (ddof 0) over the parts."""
        logits = self._ordered("images")
        order = None if self.seed is None else shuffled(len(logits), self.seed)
        found = score_of_logits(logits, self.splits, order=order)
        return found.mean, found.std()


class OfCaptions(ImageSets):
    """What is said of images and their captions by a CLIP: the mean over samples of `score`, of their embeddings."""

    score: ClassVar[Callable[..., Array]]

    def __init__(self, model_name_or_path: Any = CLIP, normalize: bool = False, device: str | None = None) -> None:
        network = _network(model_name_or_path, None, device)
        if not hasattr(network, "texts"):
            raise UsageError(f"The network {told(network.name)} reads no captions: choose a CLIP.")
        super().__init__(network)
        self.normalize = normalize

    def compute(self) -> float:
        """The mean over the samples; those of which nothing can be said are left out, with a warning."""
        rows = self._ordered("images")
        scores = self.score(*rows.reshape(len(rows), -1, self.network.dims).swapaxes(0, 1))
        said = scores[~np.isnan(scores)]
        if len(said) < len(scores):
            warnings.warn(
                f"{counted(len(scores) - len(said), 'sample')} of {len(scores)} without a direction left out.",
                stacklevel=2,
            )
        return math.fsum(said) / len(said) if len(said) else math.nan

    def _keep(self, images: list[Array], captions: Mapping[str, Any], ids: Ids) -> None:
        """Adds samples, of each the embeddings of all its images and then of all its captions in one row."""
        counts = {len(one) for one in images}
        if len(counts) > 1:
            raise UsageError(f"There are {' and '.join(str(len(one)) for one in images)} images: give as many of each.")
        (count,) = counts
        listed = [captions_of(one, count, what) for what, one in captions.items()]
        self._add("images", count, ids, lambda places: self._embedded(images, listed, places))

    def _embedded(self, images: list[Array], captions: list[list[str]], places: list[int]) -> Array:
        texts = [self.network.texts([one[place] for place in places]) for one in captions]
        long = sum(int(one.truncated.sum()) for one in texts)
        if long:
            warnings.warn(
                f"{counted(long, 'caption')} longer than the network reads: the last words are left out.", stacklevel=5
            )
        return np.concatenate(
            [*(self.network.features(one[places]) for one in images), *(one.features for one in texts)], axis=1
        )


class ClipScore(OfCaptions):
    """The mean of 100 max(cos, 0) of an image and its caption by a CLIP, which is a folder, or a name of the hub or
    such as clip_vit_b_16, or one that is loaded already (`other.network`)."""

    score = staticmethod(alignment.clip_score)

    def update(self, image: Any, text: Any, ids: Ids = None) -> None:
        """Add an image (3, H, W) with its caption, or images (N, 3, H, W) with a list of N."""
        self._keep([images_of(image, self.normalize)], {"captions": text}, ids)


class ClipDirectionalSimilarity(OfCaptions):
    """The mean cosine of the step from an original image to its generated one, and of that between their captions.

    Its networks are those of ClipScore. Without a step, from an image or a caption to itself, there is no direction.
    """

    score = staticmethod(alignment.directional_similarity)

    def update(
        self, original_image: Any, generated_image: Any, original_caption: Any, modified_caption: Any, ids: Ids = None
    ) -> None:
        """Add two images (3, H, W) with their captions, or two times N images with two lists of N."""
        both = [
            images_of(one, self.normalize, what)
            for one, what in ((original_image, "original images"), (generated_image, "generated images"))
        ]
        self._keep(both, {"original captions": original_caption, "modified captions": modified_caption}, ids)


def fid(imgs_dist1: Any, imgs_dist2: Any, feature: int | str = 2048, **parameters: Any) -> float:
    """FID of generated and of real images, with the parameters of karat.FrechetInceptionDistance."""
    metric = FrechetInceptionDistance(feature, **parameters)
    metric.update(imgs_dist1, real=False)
    metric.update(imgs_dist2, real=True)
    return metric.compute()


def inception_score(imgs: Any, splits: int = 10, **parameters: Any) -> tuple[float, float]:
    """Mean and deviation of the Inception Score, with the parameters of karat.ImageInceptionScore."""
    metric = ImageInceptionScore(splits, **parameters)
    metric.update(imgs)
    return metric.compute()


def clip_score(images: Any, text: Any, model_name_or_path: Any = CLIP, **parameters: Any) -> float:
    """The CLIP score of images and their captions, with the parameters of karat.ClipScore."""
    metric = ClipScore(model_name_or_path, **parameters)
    metric.update(images, text)
    return metric.compute()


def clip_directional_similarity(
    original_image: Any,
    generated_image: Any,
    original_caption: Any,
    modified_caption: Any,
    model_name_or_path: Any = CLIP,
    **parameters: Any,
) -> float:
    """The directional similarity of edits, with the parameters of karat.ClipDirectionalSimilarity."""
    metric = ClipDirectionalSimilarity(model_name_or_path, **parameters)
    metric.update(original_image, generated_image, original_caption, modified_caption)
    return metric.compute()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (fid, inception_score, clip_score, clip_directional_similarity)
}


def _network(given: Any, weights: str | Path | None, device: str | None, tap: str = "2048", resize: str = "tf1") -> Any:
    """A network by what names it; one that is loaded already stays."""
    if all(hasattr(given, part) for part in ("features", "identity", "dims")):
        return given
    name = given if callable(given) else str(given)
    return feature_network(name, Path(weights) if weights else None, device, taps=(tap,), resize=resize)
