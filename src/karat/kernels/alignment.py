"""How embeddings of images and of texts, row by row, point the same way; what has no direction is NaN."""

from __future__ import annotations

import numpy as np

from karat.errors import InputError
from karat.kernels.draws import generator
from karat.kernels.features import Array, Doubles, checked, unit


def cosines(a: Array, b: Array, eps: float = 0.0) -> Doubles:
    """a.b / (max(|a|, eps) max(|b|, eps)) of each row."""
    return _cosines(*_rows(a, b), eps)


def clip_score(images: Array, texts: Array) -> Doubles:
    """100 max(cos, 0) of each sample."""
    return 100 * np.maximum(cosines(images, texts), 0.0)


def clip_score_clamped_mean(images: Array, texts: Array) -> float:
    """max(mean of 100 cos, 0): the mean is clamped, not its samples."""
    return float(np.maximum((100 * cosines(images, texts)).mean(), 0.0))


def hessel(images: Array, texts: Array) -> Doubles:
    """CLIPScore, 2.5 max(cos, 0) of each sample. Hessel et al. 2021, arXiv:2104.08718."""
    return 2.5 * np.maximum(cosines(images, texts), 0.0)


def hessel_with_references(images: Array, texts: Array, references: Array) -> Doubles:
    """RefCLIPScore: the harmonic mean of CLIPScore and the largest max(cos, 0) of the text with its references (n, r,
    d), 0 where one of them is 0. Hessel et al. 2021, arXiv:2104.08718."""
    references = np.asarray(references)
    if references.ndim != 3 or not references.shape[1]:
        raise InputError(
            f"References have shape {references.shape}, but (n, r, d) was expected: one or more for each text."
        )
    score = hessel(images, texts)
    nearest = np.maximum(np.max([cosines(texts, one) for one in references.swapaxes(0, 1)], axis=0), 0.0)
    total = score + nearest
    mean: Doubles = 2 * score * nearest / np.where(total == 0, 1.0, total)
    return mean


def directional_similarity(
    first_image: Array, second_image: Array, first_text: Array, second_text: Array, eps: float = 0.0
) -> Doubles:
    """The cosine of the step between two images and that between their texts, of embeddings of length 1; NaN where one
    is no step, and 0 there with the `eps` 1e-8 of published code. Gal et al. 2022, arXiv:2108.00946."""
    first_image, first_text = _rows(first_image, first_text)
    second_image, second_text = _rows(second_image, second_text)
    _rows(first_image, second_image)
    return _cosines(unit(second_image) - unit(first_image), unit(second_text) - unit(first_text), eps)


def r_precision(images: Array, texts: Array, candidates: int = 100, seed: int = 0) -> Doubles:
    """Whether an image's own text is the nearest of `candidates` texts, the others drawn without replacement: 1 or 0,
    and 1 / m where m texts are equally near. Xu et al. 2018, arXiv:1711.10485."""
    images, texts = _rows(images, texts)
    n = len(images)
    if not 2 <= candidates <= n:
        raise InputError(f"{candidates} candidate texts of {n} were asked for: choose from 2 to the number of texts.")
    images, texts = unit(images), unit(texts)
    found = np.empty(n)
    for i, image in enumerate(images):
        others = generator(seed, n, candidates, i).choice(n - 1, candidates - 1, replace=False)
        others += others >= i
        near = (texts[[i, *others]] * image).sum(axis=1)
        nearest = near == near.max()  # nowhere where one is NaN
        found[i] = nearest[0] / nearest.sum() if nearest.any() else np.nan
    return found


def _cosines(a: Array, b: Array, eps: float) -> Doubles:
    a, b = (np.ascontiguousarray(side, np.float64) for side in (a, b))
    of_a, of_b = (np.maximum(np.sqrt((side * side).sum(axis=1)), eps) for side in (a, b))
    with np.errstate(invalid="ignore"):
        found: Doubles = (a * b).sum(axis=1) / (of_a * of_b)
    return found


def _rows(a: Array, b: Array) -> tuple[Array, Array]:
    """Both sides, which have as many rows and as many columns."""
    a, b = checked(a, 1, "embeddings"), checked(b, 1, "embeddings")
    if a.shape != b.shape:
        raise InputError(
            f"Embeddings have the shapes {a.shape} and {b.shape}, but the same were expected: give a row for each "
            "sample, of one model."
        )
    return a, b
