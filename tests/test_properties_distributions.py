"""Distances, scores and shares of sets of features against their literal twins."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import distributions as twin
from twins.draw import FEW, MODEST, Array, laid_out, layouts, seeds

from karat.errors import InputError
from karat.kernels import alignment, frechet, manifold, mmd, moments
from karat.kernels import features as kernel_features
from karat.kernels.draws import chosen, shuffled
from karat.kernels.inception_score import inception_score
from karat.kernels.vendi import vendi

counts, widths = st.integers(2, 9), st.integers(1, 5)
kinds = st.sampled_from(["normal", "whole", "far away", "one line", "constant", "steep", "float32"])
near = partial(pytest.approx, rel=1e-9, abs=1e-9)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def features(rng: np.random.Generator, n: int, d: int, kind: str) -> Array:
    """Rows of full rank and of less, close to 0 and far from it."""
    drawn = rng.standard_normal((n, d))
    if kind == "whole":
        return rng.integers(-2, 3, (n, d)).astype(np.float64)
    if kind == "far away":
        return drawn + rng.choice([1e3, -1e4])
    if kind == "one line":
        return drawn[:, :1] * rng.standard_normal(d) + rng.standard_normal(d)
    if kind == "constant":
        return np.where(rng.random(d) < 0.5, drawn, 1.5)
    if kind == "steep":
        return drawn * 10.0 ** -(2 * np.arange(d))
    return drawn.astype(np.float32) if kind == "float32" else drawn


@MODEST
@given(st.integers(1, 9), st.integers(1, 9), widths, kinds, layouts, seeds)
def test_moments_are_those_of_all_rows(n, m, d, kind, layout, seed):
    """Of a set, and of two that are merged."""
    rng = np.random.default_rng(seed)
    rows = features(rng, n + m, d, kind)
    mean, scatter = twin.mean_and_scatter(rows)
    largest = float(np.abs(rows).max()) + 1
    for found in (
        moments.of(laid_out(rows, layout)),
        moments.of(rows[:n]).merge(moments.of(rows[n:])),
    ):
        assert found.n == n + m
        np.testing.assert_array_equal(found.scatter, found.scatter.T)
        np.testing.assert_allclose(found.mean, np.array(mean, float), rtol=1e-14, atol=1e-15 * largest)
        np.testing.assert_allclose(found.scatter, np.array(scatter, float), rtol=1e-13, atol=1e-14 * largest)


@FEW
@given(st.integers(1, 40), st.integers(1, 9), widths, st.integers(1, 9), layouts, seeds)
def test_moments_have_the_same_bits_however_rows_are_parted(n, block, d, parts, layout, seed):
    """Parts of any size, empty ones too."""
    rng = np.random.default_rng(seed)
    rows = features(rng, n, d, "float32")
    edges = [0, *sorted(rng.integers(0, n + 1, parts)), n]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "ROWS", block)
        whole = moments.of(rows)
        parted = moments.fold(laid_out(rows[a:b], layout) for a, b in pairwise(edges))
    assert parted.n == whole.n
    np.testing.assert_array_equal(parted.mean, whole.mean)
    np.testing.assert_array_equal(parted.scatter, whole.scatter)


@MODEST
@given(counts, counts, widths, kinds, kinds, st.sampled_from([0, 1]), layouts, seeds)
def test_frechet_is_the_distance_with_sixty_digits(n, m, d, kind, other, ddof, layout, seed):
    """With more rows than features and with fewer, of every rank: the features know it to the last digits."""
    rng = np.random.default_rng(seed)
    a, b = features(rng, n, d, kind), features(rng, m, d, other)
    found = frechet.distance(laid_out(a, layout), laid_out(b, layout), ddof)
    size = found.mean_term + found.trace_a + found.trace_b
    assert found.raw == pytest.approx(twin.frechet(a, b, ddof), rel=1e-11, abs=1e-12 * size)
    assert found.value == max(found.raw, 0.0)
    again = frechet.distance(b, a, ddof)
    assert again.raw == pytest.approx(found.raw, rel=1e-11, abs=1e-12 * size)


@MODEST
@given(counts, counts, widths, kinds, kinds, seeds)
def test_frechet_of_statistics_is_that_of_features(n, m, d, kind, other, seed):
    """Up to the root of what rounding leaves in a covariance that has not full rank."""
    rng = np.random.default_rng(seed)
    a, b = features(rng, n, d, kind), features(rng, m, d, other)
    found = frechet.distance(a, b)
    size = found.mean_term + found.trace_a + found.trace_b
    kept = frechet.between(*(frechet.of_moments(moments.of(side)) for side in (a, b)))
    assert kept.raw == pytest.approx(found.raw, rel=1e-6, abs=1e-6 * size)
    mixed = frechet.between(frechet.of_features(a), frechet.of_moments(moments.of(b)))
    assert mixed.raw == pytest.approx(found.raw, rel=1e-6, abs=1e-6 * size)


@FEW
@given(counts, widths, kinds, st.sampled_from([1e-6, 1.0, 1e6]), seeds)
def test_equal_sets_have_no_distance(n, d, kind, scale, seed):
    """Nor has a set from its own rows in another order."""
    rng = np.random.default_rng(seed)
    rows = features(rng, n, d, kind) * scale
    size = 1 + np.square(rows).sum()
    for other in (rows, rows[rng.permutation(n)]):
        assert abs(frechet.distance(rows, other).raw) <= 1e-12 * size


@MODEST
@given(counts, counts, widths, kinds, st.booleans(), seeds)
def test_kernel_distances_equal_the_literal_ones(n, m, d, kind, unbiased, seed):
    """Polynomial and Gaussian kernels, blocks of a few rows."""
    rng = np.random.default_rng(seed)
    a, b = (features(rng, count, d, "whole" if kind == "far away" else kind) for count in (n, m))
    degree, gamma = int(rng.integers(1, 5)), rng.choice([None, 0.3])
    pairs = [
        (mmd.Polynomial(degree, gamma, 0.5), twin.polynomial(degree, gamma, 0.5)),
        (mmd.CUBIC, twin.polynomial(3, None, 1.0)),
        (mmd.Gaussian(2.0), twin.gaussian(2.0)),
    ]
    for ours, literal in pairs:
        assert mmd.mmd(a, b, ours, unbiased) == near(twin.mmd(a, b, literal, unbiased), rel=1e-11)


@FEW
@given(st.integers(2, 30), st.integers(2, 30), st.integers(1, 9), seeds)
def test_blocks_of_pairs_add_up(n, m, block, seed):
    """Whatever the number of rows in one."""
    rng = np.random.default_rng(seed)
    a, b = features(rng, n, 3, "normal"), features(rng, m, 3, "normal")
    wanted = mmd.mmd(a, b), mmd.cmmd(a, b)
    with pytest.MonkeyPatch.context() as patch:
        for module in (kernel_features, mmd):
            patch.setattr(module, "BLOCK", block)
        assert (mmd.mmd(a, b), mmd.cmmd(a, b)) == near(wanted, rel=1e-12)


@FEW
@given(st.integers(4, 20), st.integers(4, 20), seeds)
def test_subsets_are_sets(n, m, seed):
    """Each estimate is that of its rows alone."""
    rng = np.random.default_rng(seed)
    a, b = features(rng, n, 3, "normal"), features(rng, m, 3, "normal")
    at_a, at_b = mmd.drawn_subsets(n, m, 6, 4, seed)
    assert at_a.shape == at_b.shape == (6, 4)
    assert all(len(set(row)) == 4 for row in [*at_a.tolist(), *at_b.tolist()])
    found = mmd.of_subsets(a, b, at_a, at_b)
    wanted = [mmd.mmd(a[p], b[t]) for p, t in zip(at_a, at_b, strict=True)]
    assert found.values.tolist() == wanted
    assert found.mean == near(math.fsum(wanted) / 6)
    assert found.std == near(math.sqrt(math.fsum((one - found.mean) ** 2 for one in wanted) / 6))


@MODEST
@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 3), st.integers(1, 11), st.booleans(), seeds)
def test_manifolds_equal_the_literal_ones(n, m, d, k, closed, seed):
    """Whole numbers, most distances of which are equal to others, far from 0 too, with copies on the other side."""
    rng = np.random.default_rng(seed)
    pred, truth = rng.integers(-2, 3, (n, d)), rng.integers(-2, 3, (m, d))
    pred[: n // 3] = truth[rng.integers(0, m, n // 3)]
    far = int(rng.choice([0, 10**6]))
    k = min(k, n - 1, m - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifold, "CELLS", int(rng.integers(1, 200)))
        found = manifold.manifold((pred + far).astype(np.float64), (truth + far).astype(np.float64), k, closed)
    assert asdict(found) == near(twin.manifold(pred, truth, k, closed), rel=1e-14)


@FEW
@given(st.integers(2, 60), st.integers(1, 40), st.integers(1, 5), kinds, seeds)
def test_a_set_is_its_own_manifold(n, d, k, kind, seed):
    """All rows are in their own closed balls, of which each holds k others or more."""
    rows, k = features(np.random.default_rng(seed), n, d, kind), min(k, n - 1)
    found = manifold.manifold(rows, rows.copy(), k, closed=True)
    assert (found.precision, found.recall, found.coverage) == (1, 1, 1)
    assert found.density >= (k + 1) / k - 1e-12


@MODEST
@given(st.integers(1, 9), st.integers(1, 6), st.sampled_from([0.1, 5.0, 300.0]), st.integers(1, 9), layouts, seeds)
def test_inception_scores_equal_the_literal_ones(n, classes, scale, splits, layout, seed):
    """Each part alone, by both rules, of logits that are small and huge."""
    rng = np.random.default_rng(seed)
    logits, splits = scale * rng.standard_normal((n, classes)), min(splits, n)
    order = shuffled(n, seed)
    for rule, edges in (
        ("even", [i * n // splits for i in range(splits + 1)]),
        ("ceil", [*range(0, n, math.ceil(n / splits)), n]),
    ):
        found = inception_score(laid_out(logits, layout), splits, rule, order)
        wanted = [twin.inception_score(logits[order][a:b]) for a, b in pairwise(edges)]
        assert found.values == near(wanted)
        assert found.sizes == tuple(b - a for a, b in pairwise(edges))
        assert found.mean == near(math.fsum(wanted) / len(wanted))
    shifted = logits + 10 * rng.standard_normal((n, 1))
    assert inception_score(shifted, splits).values == near(inception_score(logits, splits).values)


@FEW
@given(st.integers(1, 7), st.integers(1, 7), seeds)
def test_vendi_scores_equal_the_literal_ones(n, d, seed):
    """More samples than features and fewer; some of them copies; any lengths."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d))
    rows[n // 2 :] = rows[rng.integers(0, max(n // 2, 1), n - n // 2)] * rng.uniform(1, 9, (n - n // 2, 1))
    assert vendi(rows) == near(twin.vendi(rows))


@MODEST
@given(st.integers(1, 6), widths, st.sampled_from([0.0, 1e-8]), layouts, seeds)
def test_alignments_equal_the_literal_ones(n, d, eps, layout, seed):
    """Whole numbers, rows of zeros and equal rows among them."""
    rng = np.random.default_rng(seed)
    image, text, second, other = rng.integers(-1, 2, (4, n, d)).astype(np.float32)
    images, texts = laid_out(image, layout), laid_out(text, layout)
    known = [twin.cosine(x, y) for x, y in zip(*map(twin.rows_of, (image, text)), strict=True)]
    approx = partial(pytest.approx, rel=1e-12, abs=1e-15, nan_ok=True)
    clipped = [one if math.isnan(one) else max(one, 0.0) for one in known]
    assert alignment.cosines(images, texts) == approx(known)
    assert alignment.clip_score(images, texts) == approx([100 * one for one in clipped])
    assert alignment.hessel(images, texts) == approx([2.5 * one for one in clipped])
    mean = math.fsum(known) / n
    assert alignment.clip_score_clamped_mean(images, texts) == approx(mean if math.isnan(mean) else max(100 * mean, 0))
    image[~image.any(axis=1)] = text[~text.any(axis=1)] = second[~second.any(axis=1)] = other[~other.any(axis=1)] = 1
    steps = [
        twin.directional((a, b), (s, t), eps)
        for a, b, s, t in zip(*map(twin.rows_of, (image, second, text, other)), strict=True)
    ]
    assert alignment.directional_similarity(image, second, text, other, eps) == approx(steps)


@FEW
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), seeds)
def test_references_are_averaged_harmonically(n, d, r, seed):
    """0 where the image or every reference points away."""
    rng = np.random.default_rng(seed)
    image, text = rng.standard_normal((2, n, d))
    references = rng.standard_normal((n, r, d))
    for i, found in enumerate(alignment.hessel_with_references(image, text, references)):
        score = 2.5 * max(twin.cosine(image[i], text[i]), 0)
        nearest = max(0.0, *(twin.cosine(text[i], one) for one in references[i]))
        assert found == near(2 / (1 / score + 1 / nearest) if score and nearest else 0.0)


@FEW
@given(st.integers(2, 9), st.integers(2, 6), seeds)
def test_r_precision_among_all_texts(n, d, seed):
    """Whether no other is nearer, and the same with draws of fewer where a text is nearest of all."""
    rng = np.random.default_rng(seed)
    images, texts = rng.standard_normal((2, n, d))
    wanted = [twin.own_text_is_nearest(image, i, list(texts)) for i, image in enumerate(images)]
    assert alignment.r_precision(images, texts, n).tolist() == wanted
    fewer = alignment.r_precision(images, texts, 2, seed)
    assert all(found == 1 for found, nearest in zip(fewer, wanted, strict=True) if nearest)
    assert alignment.r_precision(np.ones((n, d)), np.ones((n, d)), n).tolist() == [1 / n] * n


@FEW
@given(st.integers(1, 50), seeds)
def test_draws_depend_on_what_they_are_for(n, seed):
    """Not on other draws."""
    assert sorted(shuffled(n, seed)) == list(range(n))
    first = chosen(n, n // 2, seed, 1)
    chosen(n, n // 2, seed, 2)
    np.testing.assert_array_equal(chosen(n, n // 2, seed, 1), first)
    assert len(set(first.tolist())) == n // 2


@FEW
@given(st.integers(20, 60), st.integers(2, 6), seeds)
def test_the_distance_of_endlessly_many_ends_a_line(n, points, seed):
    """Least squares in 1 / N of the distances at sizes from the least to all."""
    rng = np.random.default_rng(seed)
    pred, truth = features(rng, n, 3, "normal"), features(rng, 40, 3, "normal")
    found = frechet.infinity(pred, truth, 10, points, seed)
    assert found.sizes[0] == 10
    assert found.sizes[-1] == n
    assert len(set(found.sizes)) == points
    assert found.values[-1] == near(frechet.distance(pred, truth).raw)
    slope, value = np.polyfit(1 / np.array(found.sizes), found.values, 1)
    assert (found.value, found.slope) == (near(value, rel=1e-7), near(slope, rel=1e-7))
    assert frechet.infinity(pred, truth, 10, points, seed) == found


@pytest.mark.parametrize("n", [0, 1])
def test_one_row_has_no_spread(n):
    rows = np.zeros((n, 3))
    for call in (frechet.of_features, lambda one: frechet.of_moments(moments.of(one))):
        with pytest.raises(InputError, match="at least 2"):
            call(rows)
