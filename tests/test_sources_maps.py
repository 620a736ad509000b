"""Maps and stacks of maps: what is written in a format is read back, has an id, and stands for its unit."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zipfile
from fractions import Fraction

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sources import write_png, write_safetensors
from twins.draw import FEW, seeds

from karat import evaluate
from karat.errors import InputError, UsageError
from karat.feed import in_units
from karat.sources import collect, digest, open_stream
from karat.suite import Reading

RNG = np.random.default_rng(5)
MAPS = RNG.uniform(-150, -50, (3, 12, 14))
NEAR = MAPS + RNG.normal(0, 3, MAPS.shape)
BYTES = RNG.integers(0, 256, (3, 12, 14)).astype(np.uint8)
MASK = RNG.random(MAPS.shape) < 0.2
DTYPES = ("float64", "float32", "float16", ">f4", ">f8", "int16", ">i2", "int64", "uint8", "uint16", "bool")
TENSORS = {"f8": "F64", "f4": "F32", "f2": "F16", "i2": "I16", "i8": "I64", "u1": "U8", "u2": "U16", "b1": "BOOL"}


def maps(source, kind="field"):
    """Every map of a field, by id."""
    found = {}
    for name, one in collect(source, kind).items():
        with open_stream(one, kind) as stream:
            (found[name],) = stream
    return found


def save(path, array, how):
    if how == "npy":
        np.save(path.with_suffix(".npy"), array)
    elif how == "fortran":
        np.save(path.with_suffix(".npy"), np.asfortranarray(array))
    elif how in ("npz", "packed"):
        (np.savez if how == "npz" else np.savez_compressed)(path.with_suffix(".npz"), map=array)
    else:
        plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        entry = {"dtype": TENSORS[plain.dtype.str[1:]], "shape": plain.shape, "data_offsets": [0, plain.nbytes]}
        write_safetensors(path.with_suffix(".safetensors"), {"map": entry}, plain.tobytes())
        return path.with_suffix(".safetensors")
    return path.with_suffix(".npz" if how in ("npz", "packed") else ".npy")


def pictures(folder, arrays, suffix=".png"):
    folder.mkdir()
    for name, array in arrays.items():
        assert cv2.imwrite(str(folder / f"{name}{suffix}"), array)
    return folder


def run(pred=NEAR, truth=MAPS, **more):
    return evaluate("radiomap", pred=pred, truth=truth, **{"cache": False, "workers": 1, **more})


def values(result):
    return {name: value.value for name, value in result.scores.items()}


def reasons(result):
    return {failure.sample: failure.reason for failure in result.failures}


# --- stacks


@pytest.mark.parametrize("how", ["npy", "fortran", "npz", "packed", "safetensors"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_of_every_type(tmp_path, how, dtype):
    """Each map is a sample, whose content is that of the same array in memory."""
    wanted = (MASK if dtype == "bool" else MAPS if "f" in dtype else np.abs(MAPS)).astype(dtype)
    path = save(tmp_path / "stack", wanted, how)
    found = maps(path)
    assert list(found) == ["0000", "0001", "0002"]
    for one, array in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(one, array)
        assert one.dtype == np.dtype(dtype).newbyteorder("=")
    for own, other in zip(collect(path, "field").values(), wanted, strict=True):
        native = other.astype(other.dtype.newbyteorder("="))
        assert own.digest() == digest(np.ascontiguousarray(native))


@pytest.mark.parametrize("how", ["npy", "fortran", "packed", "safetensors"])
def test_stacks_score_as_their_maps(tmp_path, how):
    """A stack, a file a map, an array, a list and a mapping."""
    wanted = values(run(observed=MASK))
    assert wanted["n_pixels"] == MAPS.size
    sides = {"pred": NEAR, "truth": MAPS, "observed": MASK}
    stacks = {name: save(tmp_path / name, array, how) for name, array in sides.items()}
    assert values(run(**stacks)) == wanted
    folders = {name: tmp_path / f"{name}s" for name in sides}
    for name, folder in folders.items():
        folder.mkdir()
        for index, one in enumerate(sides[name]):
            save(folder / f"map_{index}", one, how)
    assert values(run(**folders)) == wanted
    assert values(run(**{name: list(array) for name, array in sides.items()})) == wanted
    assert values(run(**{name: dict(zip("abc", array, strict=True)) for name, array in sides.items()})) == wanted
    assert values(run(**{name: {f"s/{i}": stacks[name] for i in "x"} for name in sides})) == wanted


def test_ids_of_stacks(tmp_path):
    """Numbers; below the file's id among other files; none of a stack of one, nor of a map."""
    np.save(tmp_path / "many.npy", np.zeros((12345, 1, 2), np.uint8))
    assert list(collect(tmp_path / "many.npy", "field"))[::12344] == ["00000", "12344"]
    folder = tmp_path / "f"
    (folder / "below").mkdir(parents=True)
    save(folder / "a", MAPS[:2], "npy")
    save(folder / "below" / "b", MAPS[:2], "npz")
    save(folder / "one", MAPS[:1], "npy")
    save(folder / "map", MAPS[0], "npz")
    assert list(collect(folder, "field")) == ["a/0000", "a/0001", "below/b/0000", "below/b/0001", "map", "one"]
    assert list(collect(folder / "below", "field", r"b/00(\d+)$")) == ["00", "01"]
    assert list(collect(folder / "a.npy", "field")) == ["0000", "0001"]
    assert list(collect(folder / "one.npy", "field")) == ["0000"]
    assert list(collect(folder / "map.npz", "field")) == ["map"]


def test_maps_of_one_channel(tmp_path):
    """(n, 1, H, W), as networks give them: in files, in folders and in memory."""
    wanted = values(run())
    for how in ("npy", "packed"):
        path = save(tmp_path / how, NEAR[:, None], how)
        assert values(run(pred=path)) == wanted
    assert values(run(pred=NEAR[:, None])) == wanted
    folder = tmp_path / "folder"
    folder.mkdir()
    for index, one in enumerate(NEAR):
        save(folder / f"m{index}", one[None, None] if index else one[None], "npy")
    assert values(run(pred=folder, truth={f"m{index}": one for index, one in enumerate(MAPS)})) == wanted
    with pytest.raises(InputError, match="one axis more for several samples"):
        run(pred=np.repeat(NEAR[:, None], 2, axis=1))
    save(tmp_path / "two", np.repeat(NEAR[:, None], 2, axis=1), "npy")
    result = run(pred={"0000": tmp_path / "two.npy"})
    assert "(3, 2, 12, 14)" in reasons(result)["0000"]


def test_one_file_with_everything(tmp_path):
    """Each field takes its own array, whatever else is there."""
    sides = {"target": MAPS, "pred": NEAR, "mask": MASK, "building": BYTES, "png": BYTES, "std": np.ones(MAPS.shape)}
    np.savez(tmp_path / "all.npz", **sides)
    path = tmp_path / "all.npz"
    found = run(path, path, observed=path, building=path, free="value>99", pred_std=path)
    wanted = run(observed=MASK, building=BYTES, free="value>99", pred_std=sides["std"])
    assert values(found) == pytest.approx(values(wanted), nan_ok=True, rel=1e-15)
    np.savez(tmp_path / "a.npz", pred=NEAR[0], target=MAPS[0])
    np.savez(tmp_path / "b.npz", truth=MAPS[0], mask=MASK[0])
    assert values(run(tmp_path / "a.npz", tmp_path / "a.npz"))["rmse"] == values(run(NEAR[0], MAPS[0]))["rmse"]
    with pytest.raises(InputError, match=r"holds 2 arrays \('mask', 'truth'\).*'pred' or 'prediction'"):
        run(tmp_path / "b.npz", tmp_path / "a.npz")


def test_stacks_of_other_lengths(tmp_path):
    """A map without a prediction fails by itself, a prediction without a truth is left out and told."""
    short, whole = save(tmp_path / "short", NEAR[:2], "npy"), save(tmp_path / "whole", MAPS, "npy")
    result = run(short, whole)
    assert reasons(result) == {"0002": "no pred was found for this sample: add a file of its name."}
    assert (result.scores["rmse"].n, result.scores["rmse"].failed) == (2, 1)
    assert result.scores["rmse"].value == pytest.approx(np.mean(np.sqrt(((NEAR - MAPS)[:2] ** 2).mean(axis=(1, 2)))))
    result = run(whole, short)
    assert not result.failures
    assert any("1 pred without a truth left out, the first is '0002'" in note for note in result.notes)
    result = run(whole, whole, observed=save(tmp_path / "one", MASK[:1], "npy"))
    assert set(reasons(result)) == {"0001", "0002"}


def test_one_damaged_file_costs_one_map(tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    for index, name in enumerate("abc"):
        save(folder / name, NEAR[index], "npz")
    data = (folder / "b.npz").read_bytes()
    (folder / "b.npz").write_bytes(data[: len(data) // 2])
    result = run(folder, dict(zip("abc", MAPS, strict=True)))
    assert list(reasons(result)) == ["b"]
    assert "b.npz" in reasons(result)["b"]
    assert str(tmp_path) not in reasons(result)["b"]
    assert result.scores["rmse"].n == 2


# --- hostile stacks


def refused(source, *words, kind="field"):
    """One printable line, in little memory."""

    def read():
        for one in collect(source, kind).values():
            list(open_stream(one, kind))

    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        read()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    message = str(caught.value)
    assert message.isprintable()
    assert most < 64 << 20
    for word in words:
        assert word in message
    return message


def header(shape, descr="|u1", fortran=False):
    """The start of a .npy of that shape, without its data."""
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("how", ["npy", "fortran", "packed", "safetensors"])
def test_truncated_stacks(tmp_path, how, share):
    path = save(tmp_path / "stack", MAPS, how)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(path, path.name)


@pytest.mark.parametrize(
    "shape, words",
    [
        ((0, 4, 5), ("(0, 4, 5)", "1 to 1000000 samples")),
        ((3, 0, 5), ("(3, 0, 5)",)),
        ((10**15, 0, 5), ("samples that have pixels",)),
        ((10**9, 4, 5), ("declares shape", "bytes")),
        ((2, 10**6, 10**6), ("declares shape", "bytes")),
        ((-1, 4, 5), ("declares shape",)),
        ((2, 3, 4, 5), ("(2, 3, 4, 5)", "a map (H, W)")),
        ((), ("()", "a map (H, W)")),
        ((5,), ("(5,)", "a map (H, W)")),
        ((4, 0), ("(4, 0)", "a map (H, W)")),
    ],
)
def test_forged_shapes(tmp_path, shape, words):
    """In a .npy and in an archive; nothing is allocated for what is not there."""
    size = int(np.prod(shape, dtype=object)) if 0 <= np.prod(shape, dtype=object) < 10**6 else 100
    (tmp_path / "a.npy").write_bytes(header(shape) + bytes(size))
    refused(tmp_path / "a.npy", *words)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("map.npy", header(shape) + bytes(size))
    refused(tmp_path / "a.npz", *words)


def test_too_many_maps(tmp_path):
    (tmp_path / "a.npy").write_bytes(header((1_000_001, 1, 1)) + bytes(1_000_001))
    refused(tmp_path / "a.npy", "1 to 1000000 samples")


@pytest.mark.parametrize(
    "shape, fortran, said",
    [((2, 30_000, 30_000), True, "1 GB is read whole"), ((2, 40_000, 40_000), False, "at most 1 GiB")],
)
def test_maps_that_are_too_large(tmp_path, shape, fortran, said):
    """In files that are mostly holes; in Fortran order all maps are read to reach one."""
    with (tmp_path / "a.npy").open("wb") as file:
        file.write(header(shape, fortran=fortran))
        file.truncate(file.tell() + int(np.prod(shape)))
    refused(tmp_path / "a.npy", said)
    failed = reasons(run(tmp_path / "a.npy", BYTES[:2]))["0001"]
    assert said in failed
    assert failed.startswith("a.npy ")
    if not fortran:
        with (tmp_path / "b.npy").open("wb") as file:
            file.write(header(shape[1:]))
            file.truncate(file.tell() + int(np.prod(shape[1:])))
        refused(tmp_path / "b.npy", said)


@pytest.mark.parametrize(
    "array, said",
    [
        (np.zeros((2, 4, 5), complex), "complex128, but real numbers"),
        (np.zeros((2, 4, 5), "U3"), "real numbers"),
        (np.zeros((2, 4, 5), "M8[s]"), "real numbers"),
        (np.zeros((2, 4), [("a", "f4")]), "real numbers"),
    ],
)
def test_types_that_are_no_numbers(tmp_path, array, said):
    np.save(tmp_path / "a.npy", array)
    refused(tmp_path / "a.npy", said)


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[[print, None]]], object))
    refused(tmp_path / "a.npy", "never unpickled")


def test_bytes_that_are_no_booleans(tmp_path):
    """Whatever is not 0 is true."""
    (tmp_path / "a.npy").write_bytes(header((1, 1, 4), "|b1") + bytes([0, 1, 2, 255]))
    assert maps(tmp_path / "a.npy")["0000"].view(np.uint8).tolist() == [[0, 1, 1, 1]]


def test_forged_safetensors(tmp_path):
    path = tmp_path / "a.safetensors"
    for shape, offsets, data in (((2, 4, 5), [0, 10], 10), ((2, 4, 5), [0, 40], 10), ((0, 4, 5), [0, 0], 0)):
        write_safetensors(path, {"map": {"dtype": "U8", "shape": shape, "data_offsets": offsets}}, bytes(data))
        refused(path, "a.safetensors")


# --- pictures


@pytest.mark.parametrize("suffix", [".png", ".tif", ".tiff", ".PNG"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_pictures(tmp_path, suffix, dtype):
    """The stored numbers, or with a scale what the ends of the type stand for."""
    deep = BYTES if dtype == "uint8" else BYTES.astype(np.uint16) * 257
    folder = pictures(tmp_path / "p", dict(zip("abc", deep, strict=True)), suffix)
    found = maps(folder)
    assert list(found) == ["a", "b", "c"]
    for one, array in zip(found.values(), deep, strict=True):
        np.testing.assert_array_equal(one, array)
        assert one.dtype == dtype
    dbm = {name: one / 255 * 139 - 186 for name, one in zip("abc", BYTES.astype(float), strict=True)}
    result = run(folder, dbm, scale=(-186, -47), units="dBm")
    assert result.scores["rmse"].value == pytest.approx(0, abs=1e-12)
    assert not any("whole numbers" in note for note in result.notes)


def test_pictures_without_a_scale_are_told(tmp_path):
    """They count as they are."""
    folder = pictures(tmp_path / "p", dict(zip("abc", BYTES, strict=True)))
    result = run(folder, dict(zip("abc", BYTES.astype(float) + 2, strict=True)))
    assert result.scores["rmse"].value == 2
    assert "pred of 3 samples: whole numbers as they are; pass --scale if they have one." in result.notes


def test_a_floating_tiff(tmp_path):
    folder = pictures(tmp_path / "p", dict(zip("abc", NEAR.astype(np.float32), strict=True)), ".tiff")
    wanted = run(NEAR.astype(np.float32)).scores["rmse"].value
    assert run(folder, dict(zip("abc", MAPS, strict=True))).scores["rmse"].value == wanted


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_grey_of_few_bits_is_as_bright(tmp_path, depth):
    """Of a field the brightest is the brightest, however many levels there are; of masks it is 1."""
    levels = (1 << depth) - 1
    numbers = np.array([[0, levels] * 8, [levels, 0] * 8, [levels // 3] * 16])
    if depth < 8:
        per = 8 // depth
        rows = sum(numbers[:, i::per] << (8 - depth * (i + 1)) for i in range(per)).astype(np.uint8)
    else:
        rows = np.stack(
            [np.frombuffer(row.astype(">u2" if depth == 16 else np.uint8).tobytes(), np.uint8) for row in numbers]
        )
    write_png(tmp_path / "a.png", rows, depth, 0, [0, 0, 0])
    result = run({"a": tmp_path / "a.png"}, {"a": numbers / levels * 100.0}, scale=(0, 100))
    assert result.scores["mae"].value == pytest.approx(0, abs=1e-12)
    mask = maps(tmp_path / "a.png", "plain")["a"]
    np.testing.assert_array_equal(mask != 0, numbers != 0)


def test_grey_in_colours(tmp_path):
    """Three equal channels, and an opaque fourth, are one; colours are none."""
    grey = np.repeat(BYTES[0][..., None], 3, axis=2)
    opaque = np.concatenate([grey, np.full_like(grey[..., :1], 255)], axis=2)
    color = grey.copy()
    color[3, 4, 0] ^= 1
    folder = pictures(tmp_path / "p", {"grey": grey, "opaque": opaque, "color": color})
    truth = dict.fromkeys(("grey", "opaque", "color"), BYTES[0])
    result = run(folder, truth)
    assert list(reasons(result)) == ["color"]
    assert "has colours or transparency, but one value a pixel was expected" in reasons(result)["color"]
    assert (result.scores["rmse"].value, result.scores["rmse"].n) == (0, 2)


def test_pages_are_no_map(tmp_path):
    assert cv2.imwritemulti(str(tmp_path / "a.tif"), list(BYTES))
    refused(tmp_path / "a.tif", "has 3 pages, but a map is one")


def test_a_folder_of_other_things(tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "readme.txt").write_text("no map")
    refused(folder, "holds nothing that field are read from")
    refused(tmp_path / "none", "does not exist")
    (tmp_path / "a.jpg").write_bytes(b"")
    refused(tmp_path / "a.jpg", "has the suffix '.jpg'")


# --- units


numbers = st.sampled_from([-186.0, -47.0, -1.0, 0.0, 0.1, 1.0, 2.5, 255.0, 1e6])


@FEW
@given(st.sets(numbers, min_size=2, max_size=2), st.sets(numbers, min_size=2, max_size=2), seeds)
def test_units_are_exact(stored, scale, seed):
    """(x - a) (d - c) / (b - a) + c; ends become ends; a standard deviation is stretched alone."""
    (a, b), (c, d) = sorted(stored), sorted(scale)
    reading = Reading(stored=(a, b), scale=(c, d))
    drawn = np.random.default_rng(seed).uniform(a, b, 5)
    values = np.concatenate([[a, b], drawn])
    found, spread = in_units(values, reading, False, "x"), in_units(values, reading, True, "x")
    for x, one, wide in zip(values.tolist(), found.tolist(), spread.tolist(), strict=True):
        stretch = (Fraction(d) - Fraction(c)) / (Fraction(b) - Fraction(a))
        wanted = (Fraction(x) - Fraction(a)) * stretch + Fraction(c)
        assert one == pytest.approx(float(wanted), rel=1e-12, abs=1e-12 * max(abs(c), abs(d)))
        assert wide == pytest.approx(float(Fraction(x) * stretch), rel=1e-12)
    if all(float(end).is_integer() for end in (a, b, c, d)):
        assert found[:2].tolist() == [c, d]


def test_what_stands_in_which_range():
    """Pictures in their type's, floats on the scale already, other integers in none that could be known."""
    dbm = {"scale": (-186, -47)}
    assert in_units(np.array([0, 255], np.uint8), Reading(**dbm), False, "x").tolist() == [-186, -47]
    assert in_units(np.array([0, 65535], np.uint16), Reading(**dbm), False, "x").tolist() == [-186, -47]
    assert in_units(np.array([0, 255], np.uint16), Reading(stored=(0, 255), **dbm), False, "x").tolist() == [-186, -47]
    assert in_units(np.array([-60.5]), Reading(**dbm), False, "x").tolist() == [-60.5]
    assert in_units(np.array([-1.0, 1]), Reading(stored=(-1, 1), **dbm), False, "x").tolist() == [-186, -47]
    assert in_units(np.array([0, 255], np.uint8), Reading(stored=(-1, 1), **dbm), False, "x").tolist() == [-186, -47]
    assert in_units(np.array([7], np.int16), Reading(), False, "x").dtype == np.int16
    for dtype in (np.int16, np.int64, np.uint32, np.bool_):
        with pytest.raises(InputError, match=r"holds .*: say what range it is stored in with --from"):
            in_units(np.zeros(2, dtype), Reading(**dbm), False, "x")
        assert in_units(np.zeros(2, dtype), Reading(stored=(0, 9), **dbm), False, "x").tolist() == [-186, -186]


def test_every_field_in_one_unit(tmp_path):
    """True maps as pictures, predictions from -1 to 1: the same scores as in dBm, intervals of uncertainty included."""
    sides = {"pred": MAPS + 2.0, "pred_std": RNG.uniform(1, 4, MAPS.shape), "truth": BYTES / 255 * 139.0 - 186}
    wanted = run(**sides, observed=MASK, scale=(-186, -47), units="dBm")
    unit = {"pred": (sides["pred"] + 186) / 69.5 - 1, "pred_std": sides["pred_std"] / 69.5}
    folder = pictures(tmp_path / "t", {f"{i:04d}": one for i, one in enumerate(BYTES)})
    found = run(**unit, truth=folder, observed=MASK, scale=(-186, -47), stored=(-1, 1), units="dBm")
    assert values(found) == pytest.approx(values(wanted), rel=1e-9, nan_ok=True)
    assert found.signature.split("|n:")[0] != wanted.signature.split("|n:")[0]
    assert "scale:(-186.0, -47.0)" in found.signature or "scale:(-186, -47)" in found.signature
    other = run(**unit, truth=folder, observed=MASK, scale=(-146, -7), stored=(-1, 1))
    for name in ("rmse", "nmse", "psnr", "mae@normalized", "crps"):
        assert other.scores[name].value == pytest.approx(found.scores[name].value, rel=1e-9)


def test_the_width_of_the_scale_is_the_range():
    """Of PSNR, SSIM and the normalised errors, unless another one is set."""
    scale = {"scale": (0, 100), "stored": (-1, 1)}
    pred, truth = np.full((1, 9, 9), 0.5), np.full((1, 9, 9), 0.4)
    found = values(run(pred, truth, **scale))
    assert found["rmse"] == pytest.approx(5)
    assert found["psnr"] == pytest.approx(20 * np.log10(100 / 5))
    assert found["rmse@normalized"] == pytest.approx(0.1)
    assert values(run(pred, truth, **scale, settings={"psnr.data_range": 50}))["psnr"] == pytest.approx(20)


@pytest.mark.parametrize("more", [{"stored": (0, 1)}, {"scale": (1, 0)}, {"scale": (0, np.inf)}, {"scale": (3, 3)}])
def test_ranges_that_are_none(more):
    with pytest.raises(UsageError):
        run(**more)


def test_the_signature_has_the_units():
    lines = {
        json.dumps(more): run(**more).signature
        for more in ({}, {"units": "dBm"}, {"scale": (-186, -47)}, {"scale": (-186, -47), "stored": (-1, 1)})
    }
    assert len(set(lines.values())) == len(lines)
