"""Blur filters against one pixel after the other, and the cache of what they return."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import blur as twin
from twins.draw import FEW, Array, laid_out, layouts, seeds

from karat.cache import FrameCache
from karat.errors import InputError, UsageError
from karat.kernels.blur import STRENGTHS, Bilateral, Box, Filter, Gaussian, Median, blur_filter

shapes = st.tuples(st.integers(1, 8), st.integers(1, 8)).flatmap(lambda s: st.sampled_from([s, (*s, 3)]))
odd_sizes = st.sampled_from([1, 3, 5, 7])


def frame_of(seed: int, shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@FEW
@given(shapes, odd_sizes, layouts, seeds)
def test_box_and_median_are_exact(shape, size, layout, seed):
    """Odd windows have no ties to round, so bytes are equal; also where the window is larger than the frame."""
    frame = laid_out(frame_of(seed, shape), layout)
    np.testing.assert_array_equal(Box(size).frame(frame), np.rint(twin.box(frame, size)))
    np.testing.assert_array_equal(Median(size).frame(frame), twin.median(frame, size))


@FEW
@given(shapes, odd_sizes, st.sampled_from([0.5, 1.5, 12.5]), st.sampled_from(["float32", "float64", "uint8"]), seeds)
def test_gaussian_is_its_formula(shape, size, sigma, dtype, seed):
    """Floats to their precision. OpenCV blurs bytes with weights in units of 2^-8, so a byte may be one level off."""
    frame = frame_of(seed, shape).astype(dtype)
    expected = twin.gaussian(frame, size, sigma)
    found = Gaussian(size, sigma).frame(frame)
    assert found.dtype == frame.dtype
    if dtype == "uint8":
        assert np.abs(found - np.rint(expected)).max() <= 1
    else:
        tolerance = 1e-4 if dtype == "float32" else 1e-10
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_bilateral_is_its_formula():
    """At most one level off, and equal in 99 of 100 bytes.

    OpenCV tabulates the colour weights in float32 and adds in float32, in another order on every machine: a mean within
    some 1e-5 of a half is rounded to the other side.
    """
    total = equal = 0

    @FEW
    @given(
        shapes,
        st.sampled_from([3, 5, 6, 9]),
        st.sampled_from([10.0, 75.0, 150.0]),
        st.sampled_from([1.0, 3.0, 100.0]),
        seeds,
    )
    def check(shape, size, sigma_color, sigma_space, seed):
        nonlocal total, equal
        frame = frame_of(seed, shape)
        found = Bilateral(size, sigma_color, sigma_space).frame(frame)
        gap = np.abs(found - np.rint(twin.bilateral(frame, size, sigma_color, sigma_space)))
        assert found.dtype == np.uint8
        assert gap.max() <= 1
        total, equal = total + gap.size, equal + int((gap == 0).sum())

    check()
    assert equal >= 0.99 * total


def test_the_reference_preset_has_a_disc_of_709_pixels():
    """Bilateral 30/150/100 has radius 15: what is outside that disc changes nothing, and what is inside adds up."""
    assert blur_filter("bilateral", "medium", None, None) == Bilateral(30, 150.0, 100.0)
    rows, columns = np.mgrid[-20:21, -20:21]
    disc = rows**2 + columns**2 <= 15**2
    assert disc.sum() == 709
    frame = frame_of(0, (41, 41, 3))
    other = np.where(disc[..., None], frame, frame_of(1, frame.shape))
    centre, same = (Bilateral(30, 150.0, 100.0).frame(one)[20, 20] for one in (frame, other))
    np.testing.assert_array_equal(centre, same)
    assert np.abs(centre - twin.bilateral_at(frame, 20, 20, 30, 150.0, 100.0)).max() <= 1


@FEW
@given(st.integers(0, 3), shapes, seeds)
def test_a_clip_is_filtered_frame_by_frame(count, shape, seed):
    """Frames do not see each other; none in, none out."""
    frames = frame_of(seed, (count, *shape))
    for blur in (Box(3), Median(3), Gaussian(3, 1.0), Bilateral(5, 50.0, 50.0)):
        found = blur(frames)
        assert found.shape == frames.shape
        for one, frame in zip(found, frames, strict=True):
            np.testing.assert_array_equal(one, blur.frame(frame))


@pytest.mark.parametrize("kind", STRENGTHS)
def test_presets_and_what_replaces_them(kind):
    """Sizes and sigmas replace a preset's; those that are no blur are refused."""
    for strength, (size, sigmas) in STRENGTHS[kind].items():
        assert blur_filter(kind, strength, None, None) == blur_filter(kind, "low", size, sigmas)
        for wrong in (0, -1, -3):
            with pytest.raises(UsageError):
                blur_filter(kind, strength, wrong, None)
        with pytest.raises(UsageError):
            blur_filter(kind, strength, None, (*sigmas, 1.0))
        if sigmas:
            with pytest.raises(UsageError):
                blur_filter(kind, strength, None, (0.0,) * len(sigmas))
        if kind != "bilateral":
            with pytest.raises(UsageError):
                blur_filter(kind, strength, 4, None)


@pytest.mark.parametrize("blur", [Median(3), Bilateral(3, 9.0, 9.0)])
@pytest.mark.parametrize("dtype", ["float32", "uint16", "bool", "int64"])
def test_filters_of_bytes_refuse_others(blur, dtype):
    """A refusal in words, not OpenCV's."""
    with pytest.raises(InputError, match="uint8"):
        blur.frame(np.zeros((4, 4), dtype))


BLUR = Bilateral(5, 60.0, 60.0)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.png"))


@FEW
@given(st.sampled_from([(1, 1), (7, 5), (6, 4, 3), (1, 1, 3), (5, 6, 4)]), st.integers(0, 3), layouts, seeds)
def test_a_cache_changes_no_byte(shape, count, layout, seed):
    """Cold, warm, by another cache object, and from any memory layout; floats pass through."""
    blur: Filter = BLUR if shape[-1] != 4 or len(shape) == 2 else Box(3)
    frames = laid_out(frame_of(seed, (count, *shape)), layout)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            np.testing.assert_array_equal(FrameCache(Path(folder), 10**6).apply(blur, frames), blur(frames))
        assert len(kept(Path(folder))) == len({frame.tobytes() for frame in frames})
        floats = frames.astype(np.float32)
        np.testing.assert_array_equal(FrameCache(Path(folder), 0).apply(Box(3), floats), Box(3)(floats))


@FEW
@given(st.sampled_from(["truncated", "flipped", "noise", "empty"]), st.floats(0, 0.999), st.integers(1, 255), seeds)
def test_a_damaged_file_is_computed_again(damage, place, flip, seed):
    """Cut short, one byte changed, something else altogether: the frame is right, and right the next time."""
    frames = frame_of(seed, (1, 6, 7, 3))
    with tempfile.TemporaryDirectory() as folder:
        cache = FrameCache(Path(folder), 10**6)
        cache.apply(BLUR, frames)
        (file,) = kept(cache.folder)
        good = file.read_bytes()
        at = int(place * len(good))
        damaged = {
            "truncated": good[:at],
            "flipped": good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :],
            "noise": np.random.default_rng(seed).bytes(200),
            "empty": b"",
        }
        file.write_bytes(damaged[damage])
        for _ in range(2):
            np.testing.assert_array_equal(cache.apply(BLUR, frames), BLUR(frames))


@pytest.mark.parametrize("foreign", [(3, 4, 3), (6, 7), (7, 6, 3), (6, 7, 4)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_file_of_another_shape_is_computed_again(tmp_path, foreign, dtype):
    """A whole picture, but not this one."""
    frames, cache = frame_of(0, (1, 6, 7, 3)), FrameCache(tmp_path, 10**6)
    cache.apply(BLUR, frames)
    (file,) = kept(tmp_path)
    good = file.read_bytes()
    file.write_bytes(cv2.imencode(".png", np.zeros(foreign, dtype))[1].tobytes())
    np.testing.assert_array_equal(cache.apply(BLUR, frames), BLUR(frames))
    assert file.read_bytes() == good


def test_a_folder_that_cannot_be_used_costs_only_the_shortcut(tmp_path):
    """A file where the folder should be, a folder where a file should be."""
    frames = frame_of(1, (2, 6, 7, 3))
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    np.testing.assert_array_equal(FrameCache(blocked, 10**6).apply(BLUR, frames), BLUR(frames))
    cache = FrameCache(tmp_path / "frames", 10**6)
    cache.apply(BLUR, frames)
    for file in kept(cache.folder):
        file.unlink()
        file.mkdir()
    np.testing.assert_array_equal(cache.apply(BLUR, frames), BLUR(frames))


@FEW
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.floats(0, 1.2), seeds)
def test_trim_keeps_the_limit_and_the_latest(sides, share, seed):
    """No more bytes than allowed remain, and none that was used before one that went."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        full = FrameCache(Path(folder), 10**9)
        for n, side in enumerate(sides):
            full.apply(Box(3), rng.integers(0, 256, (1, side, side, 3)).astype(np.uint8))
            for file in kept(full.folder):
                if file.stat().st_mtime > 10**6:
                    os.utime(file, (n, n))
        full.trim()
        before = {file: (file.stat().st_mtime, file.stat().st_size) for file in kept(full.folder)}
        assert len(before) == len(sides)
        limit = int(share * sum(size for _, size in before.values()))
        FrameCache(full.folder, limit).trim()
        left = set(kept(full.folder))
        assert sum(before[file][1] for file in left) <= limit
        gone = set(before) - left
        assert all(before[a][0] < before[b][0] for a in gone for b in left)
        if gone:
            latest = max(gone, key=lambda file: before[file][0])
            assert sum(before[file][1] for file in left | {latest}) > limit


def test_threads_may_share_a_cache(tmp_path):
    """Many threads, the same frames in other orders: the same bytes, and whole files in the end."""
    frames = frame_of(2, (12, 16, 17, 3))
    expected, cache = BLUR(frames), FrameCache(tmp_path, 10**6)

    def work(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(len(frames))
        return bool(np.array_equal(cache.apply(BLUR, frames[order]), expected[order]))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(24)))
    assert len(kept(tmp_path)) == len(frames)
    assert len([file for file in tmp_path.rglob("*") if file.is_file()]) == len(frames)
