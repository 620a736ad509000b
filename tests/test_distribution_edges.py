"""Sets of features at the edges of what has a distance: closed forms, threads, sizes, and inputs that nobody meant."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from karat.errors import InputError
from karat.kernels import alignment, blas, frechet, manifold, mmd, moments
from karat.kernels.inception_score import inception_score
from karat.kernels.vendi import vendi

Array = NDArray[Any]


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def drawn(n: int, d: int, seed: int = 0) -> Array:
    """Features like those of a network."""
    return np.abs(np.random.default_rng(seed).standard_normal((n, d))) / np.sqrt(1 + np.arange(d))


def covariance(values: Array, seed: int = 0) -> Array:
    """With these eigenvalues, in directions of chance."""
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    square = (basis * values) @ basis.T
    return (square + square.T) / 2


def by_sqrtm(a: Array, b: Array) -> float:
    """The published way."""
    from scipy.linalg import sqrtm

    s, t = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = np.trace(sqrtm(s @ t)).real
    return float(np.square(a.mean(axis=0) - b.mean(axis=0)).sum() + np.trace(s) + np.trace(t) - 2 * root)


@pytest.mark.parametrize(
    ("n", "m", "route"),
    [
        (900, 700, "cholesky"),
        (40, 30, "features"),
        (40, 700, "features"),
        (64, 64, "features"),
        (65, 66, "cholesky"),
    ],
)
def test_the_route_that_fits(n: int, m: int, route: str) -> None:
    a, b = drawn(n, 64), 1.1 * drawn(m, 64, 1)
    found = frechet.distance(a, b)
    assert found.route == route
    assert found.value == pytest.approx(by_sqrtm(a, b), rel=1e-10 if n > 65 < m else 1e-5)


def test_steep_covariances_take_singular_values() -> None:
    values = np.geomspace(1, 1e-12, 50)
    a, b = (frechet.of_statistics(np.zeros(50), covariance(scale * values)) for scale in (1.0, 4.0))
    found = frechet.between(a, b)
    assert found.route == "cholesky, singular values"
    assert found.raw == pytest.approx(values.sum(), rel=1e-12)  # (sqrt(4 v) - sqrt(v))^2


def test_rank_that_rows_have_not() -> None:
    """More rows than features, of which some depend on others: the rows are as exact as where they are few."""
    few, more = drawn(900, 20), drawn(800, 20, 1)
    mix = np.random.default_rng(2).standard_normal((20, 64))
    found = frechet.distance(few @ mix, more @ mix)
    assert found.route == "features"
    side, other = (frechet.of_features(x @ mix) for x in (few, more))
    low = frechet.between(*(frechet.Side(s.mean, s.root[:, :20], s.trace, "features") for s in _thin(few, more, mix)))
    assert frechet.between(side, other).raw == pytest.approx(low.raw, rel=1e-11)


def _thin(few: Array, more: Array, mix: Array) -> list[frechet.Side]:
    """Sides with a root of 20 columns: that of the factors, mixed."""
    roots = [(np.linalg.cholesky(np.cov(x, rowvar=False)).T @ mix).T for x in (few, more)]
    return [
        frechet.Side((x @ mix).mean(axis=0), root, float(np.square(root).sum()), "features")
        for x, root in zip((few, more), roots, strict=True)
    ]


def test_orthogonal_supports_share_nothing() -> None:
    values = np.concatenate([np.linspace(1, 2, 12), np.zeros(12)])
    a, b = covariance(values), covariance(values[::-1])
    found = frechet.between(*(frechet.of_statistics(np.zeros(24), one) for one in (a, b)))
    assert found.route == "eigenvectors"
    assert found.raw == pytest.approx(2 * values.sum(), rel=1e-12)


def test_the_number_of_rows_tells_the_rank_of_rounded_statistics() -> None:
    """Kept in float32, what should be 0 is not."""
    a, b = drawn(40, 100), drawn(30, 100, 1)
    kept = [moments.of(side) for side in (a, b)]
    rounded = [(one.mean, one.covariance().astype(np.float32), one.n) for one in kept]
    wanted = frechet.distance(a, b).value
    known = frechet.between(*(frechet.of_statistics(*one) for one in rounded)).value
    unknown = frechet.between(*(frechet.of_statistics(*one[:2]) for one in rounded)).value
    assert abs(known - wanted) < 1e-5 * wanted < abs(unknown - wanted)


def test_constant_features_and_single_points() -> None:
    rows = drawn(50, 6)
    rows[:, [1, 4]] = 2.0
    assert abs(frechet.distance(rows, rows).raw) < 1e-12
    other = drawn(40, 6, 1)
    of_others = [0, 2, 3, 5]  # what is constant on one side adds its mean and the variance of the other
    found = frechet.distance(rows, other)
    assert found.trace_root == pytest.approx(frechet.distance(rows[:, of_others], other[:, of_others]).trace_root)
    assert frechet.distance(np.ones((9, 3)), np.zeros((2, 3))).value == 3
    assert frechet.distance(np.zeros((9, 1)), np.zeros((5, 1))).value == 0
    assert frechet.between(*[frechet.of_statistics(np.zeros(2), np.zeros((2, 2)))] * 2).value == 0


def test_many_rows_equal_sets_and_far_means() -> None:
    """Above a block of rows; a mean a million deviations away cancels nothing."""
    rows = np.random.default_rng(0).standard_normal((9000, 24))
    assert abs(frechet.distance(rows, rows).raw) < 1e-9
    assert frechet.distance(rows + 1e6, rows[:2000] + 1e6).raw == pytest.approx(
        frechet.distance(rows, rows[:2000]).raw, rel=1e-6
    )
    parted = moments.fold(np.split(rows, [1, 700, 4097, 8100]))
    np.testing.assert_array_equal(parted.scatter, moments.of(rows).scatter)
    np.testing.assert_allclose(parted.covariance(), np.cov(rows, rowvar=False), rtol=1e-12, atol=1e-14)


def test_parts_may_come_in_one_buffer() -> None:
    rows, buffer = drawn(90, 5), np.empty((30, 5))

    def parts() -> Iterator[Array]:
        for start in range(0, 90, 30):
            buffer[:] = rows[start : start + 30]
            yield buffer

    np.testing.assert_array_equal(moments.fold(parts()).scatter, moments.of(rows).scatter)


def test_more_samples_of_one_distribution_are_nearer_to_it() -> None:
    """The distance falls as 1 / N, and its line ends near 0; the unbiased kernel distance is around it."""
    pred, truth = drawn(4000, 32), drawn(20000, 32, 1)
    found = frechet.infinity(pred, truth, 500)
    assert len(found.values) == 15
    assert found.values[-1] < 0.25 * found.values[0]
    assert abs(found.value) < 0.3 * found.values[-1]
    subsets = mmd.of_subsets(pred, truth, *mmd.drawn_subsets(4000, 20000, 50, 200))
    assert abs(subsets.mean) < 3 * subsets.std / np.sqrt(50)


def test_manifolds_of_many_rows_are_those_of_all_distances() -> None:
    from scipy.spatial.distance import cdist

    pred, truth = drawn(700, 48), drawn(900, 48, 1)
    reach_p, reach_t = (np.sort(cdist(x, x), axis=1)[:, 5] for x in (pred, truth))
    apart = cdist(truth, pred)
    found = manifold.manifold(pred, truth)
    near = apart < reach_t[:, None]
    assert found.precision == near.any(axis=0).mean()
    assert found.coverage == near.any(axis=1).mean()
    assert found.recall == (apart < reach_p).any(axis=1).mean()
    assert found.density == pytest.approx(near.sum() / (5 * 700))


def test_copies_in_all_directions() -> None:
    """All in one place: open balls are empty, closed ones hold all."""
    same = np.full((7, 3), 0.1)
    assert manifold.manifold(same, same, 2) == manifold.Manifold(0, 0, 0, 0)
    assert manifold.manifold(same, same, 2, closed=True) == manifold.Manifold(1, 1, 3.5, 1)


def test_scores_at_their_ends() -> None:
    assert inception_score(np.eye(10) * 800, 1).mean == pytest.approx(10)
    assert inception_score(np.tile([200.0, -200, 0], (9, 1)), 3).values.tolist() == [1, 1, 1]
    assert np.isnan(inception_score(np.eye(3), 1).std(ddof=1))
    assert inception_score(np.eye(3), 1).std() == 0
    assert vendi(np.eye(8)) == pytest.approx(8)
    assert vendi(np.ones((8, 3))) == pytest.approx(1)
    assert mmd.cmmd(drawn(30, 8), drawn(30, 8)) == pytest.approx(0, abs=1e-12)
    assert mmd.cmmd(-drawn(30, 8), drawn(30, 8)) > 10


def test_no_direction_is_no_alignment() -> None:
    zero, one = np.zeros((1, 2)), np.ones((1, 2))
    both = np.concatenate([zero, one])
    for found in (alignment.cosines(zero, one), alignment.clip_score(zero, one), alignment.r_precision(both, both, 2)):
        assert np.isnan(found).all()
    assert alignment.cosines(zero, one, 1e-8).tolist() == [0]
    assert np.isnan(alignment.directional_similarity(one, one, one, -one)[0])
    assert alignment.directional_similarity(one, one, one, -one, 1e-8).tolist() == [0]


EVERY: dict[str, Callable[[Array, Array], object]] = {
    "frechet": frechet.distance,
    "moments": lambda a, _: moments.of(a).covariance(),
    "infinity": lambda a, b: frechet.infinity(a, b, 2, 2),
    "mmd": mmd.mmd,
    "cmmd": mmd.cmmd,
    "subsets": lambda a, b: mmd.of_subsets(a, b, *mmd.drawn_subsets(6, 6, 1, 2)),
    "manifold": lambda a, b: manifold.manifold(a, b, 1),
    "inception score": lambda a, _: inception_score(a, 1),
    "vendi": lambda a, _: vendi(a),
    "cosines": alignment.cosines,
    "directions": lambda a, b: alignment.directional_similarity(a, b, b, a),
    "references": lambda a, b: alignment.hessel_with_references(a, b, b[:, None]),
    "r-precision": lambda a, b: alignment.r_precision(a, b, 2),
}
EACH = pytest.mark.parametrize("call", EVERY.values(), ids=list(EVERY))


@EACH
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_the_first_row_that_cannot_be_used_is_named(call: Callable[..., object], value: float) -> None:
    rows = drawn(6, 4)
    rows[4, 1] = rows[5, 0] = value
    with pytest.raises(InputError, match=r"Row 4 of the .* (NaN|1e40)"):
        call(rows, drawn(6, 4, 1))


@EACH
@pytest.mark.parametrize(
    "rows",
    [
        np.ones(6),
        np.ones((6, 2, 2)),
        np.ones((6, 0)),
        np.ones((6, 4), complex),
        np.ones((6, 4), bool),
        np.full((6, 4), "1"),
        np.full((6, 4), None),
        np.float64(1),
    ],
    ids=lambda rows: f"{rows.shape} {rows.dtype}",
)
def test_what_is_no_row_of_numbers_is_refused(call: Callable[..., object], rows: Array) -> None:
    with pytest.raises(InputError, match="expected"):
        call(rows, drawn(6, 4))


@EACH
def test_no_rows_are_refused(call: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"(0|no) (rows|predictions)"):
        call(np.ones((0, 4)), np.ones((0, 4)))


@pytest.mark.parametrize("name", ["frechet", "mmd", "cmmd", "manifold", "cosines", "directions", "r-precision"])
def test_sides_of_other_networks_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"one (layer|model)"):
        EVERY[name](drawn(6, 4), drawn(6, 5))


@EACH
def test_nothing_given_is_changed(call: Callable[..., object]) -> None:
    """Nor need it be writable."""
    a, b = (drawn(6, 4, seed).astype(np.float32) for seed in (0, 1))
    held = a.copy(), b.copy()
    for side in (a, b):
        side.flags.writeable = False
    call(a, b)
    np.testing.assert_array_equal([a, b], held)


@pytest.mark.parametrize(
    "call",
    [
        lambda: frechet.of_statistics(np.zeros(3), np.eye(2)),
        lambda: frechet.of_statistics(np.zeros((3, 3)), np.eye(3)),
        lambda: frechet.of_statistics(np.full(3, np.nan), np.eye(3)),
        lambda: frechet.of_statistics(np.zeros(3), np.full((3, 3), np.inf)),
        lambda: frechet.of_statistics(np.zeros(3), np.triu(np.ones((3, 3)))),
        lambda: frechet.of_statistics(np.zeros(3), -np.eye(3)),
        lambda: frechet.of_statistics(np.zeros(2), np.array([[1.0, 2], [2, 1]])),
        lambda: frechet.of_statistics(np.zeros(3), np.eye(3), 1),
        lambda: frechet.of_statistics(np.zeros(0), np.zeros((0, 0))),
        lambda: frechet.between(*(frechet.of_statistics(np.zeros(d), np.eye(d)) for d in (2, 3))),
        lambda: moments.fold([]),
        lambda: moments.fold([np.ones((2, 3)), np.ones((2, 4))]),
        lambda: frechet.infinity(drawn(20, 2), drawn(20, 2), 15, 10),
        lambda: frechet.infinity(drawn(20, 2), drawn(20, 2), 1, 5),
        lambda: frechet.infinity(drawn(20, 2), drawn(20, 2), 5, 1),
        lambda: mmd.drawn_subsets(10, 5, 3, 6),
        lambda: mmd.drawn_subsets(10, 5, 0, 3),
        lambda: mmd.cmmd(np.zeros((3, 2)), np.ones((3, 2))),
        lambda: vendi(np.zeros((3, 2))),
        lambda: manifold.manifold(drawn(5, 2), drawn(9, 2), 5),
        lambda: manifold.manifold(drawn(5, 2), drawn(9, 2), 0),
        lambda: inception_score(drawn(5, 2), 6),
        lambda: inception_score(drawn(5, 2), 0),
        lambda: alignment.cosines(drawn(5, 2), drawn(6, 2)),
        lambda: alignment.hessel_with_references(drawn(5, 2), drawn(5, 2), drawn(5, 2)),
        lambda: alignment.r_precision(drawn(5, 2), drawn(5, 2), 6),
        lambda: alignment.r_precision(drawn(5, 2), drawn(5, 2), 1),
    ],
)
def test_what_has_no_answer_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()


SCRIPT = """
import numpy as np
from karat.kernels import frechet, manifold, mmd, moments
from karat.kernels.vendi import vendi
rng = np.random.default_rng(0)
for n, m, d in ((300, 310, 129), (1500, 1100, 257), (90, 400, 300)):
    a, b = rng.standard_normal((n, d)), rng.standard_normal((m, d)) / np.sqrt(1 + np.arange(d))
    kept = frechet.between(*(frechet.of_moments(moments.of(side)) for side in (a, b)))
    found = [frechet.distance(a, b).raw, kept.raw, mmd.mmd(a, b), mmd.cmmd(a, b), vendi(a), vendi(b)]
    print([one.hex() for one in found], manifold.manifold(a, b))
"""


def test_the_number_of_threads_changes_no_bit() -> None:
    """Of NumPy's and SciPy's linear algebra."""
    said = set()
    for threads in ("1", "2", "5"):
        env = os.environ | {"OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
    assert "0x" in said.pop()


def test_threads_are_given_back() -> None:
    """When the last one leaves, an error too; several may be inside."""
    libraries = blas._libraries()
    before = [get() for get, _ in libraries]
    with blas.one_thread(), blas.one_thread():
        assert [get() for get, _ in libraries] == [1] * len(before)
    with pytest.raises(np.linalg.LinAlgError), blas.one_thread():
        np.linalg.cholesky(-np.eye(2))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: frechet.distance(drawn(90, 60, seed), drawn(80, 60)).raw, [1] * 12))
    assert len(set(found)) == 1
    assert [get() for get, _ in libraries] == before
