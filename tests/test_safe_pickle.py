"""Pickles: every plain value and array as Python's own unpickler reads it, and nothing that a file names is touched."""

import gzip
import os
import pickle
import struct
import sys
import tracemalloc
from collections import OrderedDict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from karat.errors import InputError
from karat.sources.safe_pickle import load, loads
from karat.sources.stored import StoredArray

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
MIB = 1 << 20


def same(one, other):
    """Whether two values are of the same types and content, NaN being itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        other = other.astype(other.dtype.newbyteorder("="))
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return one == other or (one != one and other != other)


def refused(data, *words, names=None, memory=16 * MIB):
    """The one line of the refusal, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            loads(data, "a.pkl", names)
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert message.startswith("a.pkl ")
    assert message.isprintable()
    assert len(message) < 500
    for word in words:
        assert word in message, message
    return message


NUMBERS = [
    np.bool_,
    *(np.dtype(f"{order}{code}") for order in "<>" for code in ("i2", "u4", "i8", "f2", "f4", "f8", "c16")),
]
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.sampled_from(NUMBERS).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=3))
    )
    | st.sampled_from([np.float64(0.5), np.int64(-3), np.bool_(True), np.str_("ä"), np.float32(np.nan)]),
    lambda inside: (
        st.lists(inside, max_size=4)
        | st.lists(inside, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-9, 9), inside, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(value=PLAIN, protocol=st.sampled_from(PROTOCOLS))
def test_plain_values_and_arrays_as_python_reads_them(value, protocol):
    data = pickle.dumps(value, protocol)
    assert same(loads(data, "a.pkl"), pickle.loads(data))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(12)[::2],
        np.arange(6, dtype=">f4"),
        np.array(["nose", "tail ü"]),
        np.array([b"a", b"bcd"]),
        np.array("text"),
        np.array(2.5),
        np.zeros((0, 3), np.uint8),
        np.array(["", ""]),
        np.ones((200, 300)),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_of_every_layout(array, protocol):
    read = loads(pickle.dumps(array, protocol), "a.pkl")
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_objects_are_nested_lists(protocol):
    pairs = np.empty((2, 2), object)
    pairs[:] = [[1, "a"], [None, {"x": np.arange(2)}]]
    for array in (pairs, np.asfortranarray(pairs)):
        (one, two), (three, four) = loads(pickle.dumps(array, protocol), "a.pkl")
        assert (one, two, three) == (1, "a", None)
        np.testing.assert_array_equal(four["x"], [0, 1])
    assert loads(pickle.dumps(np.array({"a": 1}, object), protocol), "a.pkl") == {"a": 1}
    assert loads(pickle.dumps(np.array(None, object), protocol), "a.pkl") is None
    assert loads(pickle.dumps(np.zeros((2, 0), object), protocol), "a.pkl") == [[], []]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_types_and_shared_values(protocol):
    shared = [1.5]
    value = {"type": np.dtype("<f8"), "a": shared, "b": (shared, shared)}
    read = loads(pickle.dumps(value, protocol), "a.pkl")
    assert read == value
    assert read["a"] is read["b"][0]


def test_the_names_that_numpy_had_before_its_second_version():
    data = pickle.dumps({"a": np.arange(3), "b": np.float64(2)}, 2)
    assert b"numpy._core" in data
    read = loads(data.replace(b"numpy._core", b"numpy.core"), "a.pkl")
    assert read["a"].tolist() == [0, 1, 2]
    assert read["b"] == 2


def test_arrays_that_python_2_wrote():
    """Its texts are bytes, read as Latin-1, and so is the content of arrays."""
    data = (
        b"\x80\x02}q\x00U\x01xq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04U\x01bq\x05"
        b"\x87q\x06Rq\x07(K\x01K\x02\x85q\x08cnumpy\ndtype\nq\tU\x02f8q\nK\x00K\x01\x87q\x0bRq\x0c(K\x03U\x01<q\rNNNJ\xff"
        b"\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0eb\x89U\x10" + struct.pack("<2d", 0.5, -2.0) + b"q\x0ftq\x10bs."
    )
    assert loads(data, "a.pkl")["x"].tolist() == [0.5, -2.0]
    assert loads(b"(S'a\\xe4\\n'\nI01\nI00\nI7\nL8L\nF1.5\nt.", "a.pkl") == ("a\xe4\n", True, False, 7, 8, 1.5)


class PointArray(np.ndarray):
    """As old SLEAP files name it."""


class Skeleton:
    """An object that nobody needs."""

    def __init__(self):
        self.nodes = [1, 2]


NAMES = {(__name__, "PointArray"): "array", (__name__, "Skeleton"): "nothing"}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_names_that_stand_for_arrays_or_for_nothing(protocol):
    value = {"points": np.arange(4.0).view(PointArray), "of": Skeleton(), "n": 2}
    data = pickle.dumps(value, protocol)
    read = loads(data, "a.pkl", NAMES)
    assert type(read["points"]) is np.ndarray
    assert read["points"].tolist() == [0, 1, 2, 3]
    assert (read["of"], read["n"]) == (None, 2)
    refused(data, f"asks for {__name__}.PointArray")


class Calls:
    """Unpickling this calls a function."""

    def __init__(self, function, *given):
        self.call = function, given

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "call",
    [
        (os.system, "touch {0}"),
        (os.mkdir, "{0}"),
        (eval, "open({0!r}, 'w')"),
        (exec, "open({0!r}, 'w')"),
        (getattr, "{0}", "x"),
    ],
    ids=["system", "mkdir", "eval", "exec", "getattr"],
)
def test_nothing_is_called(tmp_path, call, protocol):
    function, *given = call
    made = tmp_path / "made"
    bomb = Calls(function, *(one.format(str(made)) for one in given))
    for value in (bomb, [bomb], {"a": (1, bomb)}, np.array([bomb], object), np.array({"metrics": bomb}, object)):
        refused(pickle.dumps(value, protocol), "asks for ")
    assert not made.exists()


def test_no_module_is_imported():
    sys.modules.pop("this", None)
    refused(b"cthis\ns\n.", "this.s")
    refused(b"\x80\x04\x8c\x04this\x8c\x01s\x93.", "this.s")
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset({1}),
        OrderedDict(a=1),
        1j,
        np.datetime64("2020"),
        np.ma.masked_array([1], [True]),
        np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
        np.rec.array([(1, 2.0)]),
        np.random.default_rng(0),
        slice(1),
        np.longdouble(1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_neither_plain_nor_an_array(value):
    refused(pickle.dumps(value), "plain values and arrays")


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"


def array(shape, code, data, order="<", state=b"NNNI-1\nI-1\nI0\n"):
    """An array spelled by hand in protocol 0, so that anything may be declared."""
    sides = b"".join(b"L%dL\n" % side for side in shape)
    return (
        RECONSTRUCT
        + b"(I1\n("
        + sides
        + b"tcnumpy\ndtype\n(S'"
        + code.encode()
        + b"'\nI0\nI1\ntR(I3\nS'"
        + order.encode()
        + b"'\n"
        + state
        + b"tbI00\n"
        + data
        + b"tb."
    )


def test_an_array_by_hand():
    assert loads(array((2,), "i1", b"S'\\x01\\x02'\n"), "a.pkl").tolist() == [1, 2]


@pytest.mark.parametrize(
    "data",
    [
        array((1 << 40,), "f8", b"S''\n"),
        array((1 << 62, 4), "f8", b"S''\n"),
        array((0, 1 << 40), "f8", b"S''\n"),
        array((1 << 40,), "U0", b"S''\n", state=b"NNNI0\nI4\nI8\n"),
        array((1 << 40, 0), "O8", b"(l", state=b"NNNI-1\nI-1\nI63\n"),
        array((-1,), "f8", b"S''\n"),
        array((1,) * 70, "i1", b"S'a'\n"),
        array((2,), "f8", b"S'12345678'\n"),
        array((1,), "O8", b"S'12345678'\n", state=b"NNNI-1\nI-1\nI63\n"),
        array((2,), "O8", b"(I1\nl", state=b"NNNI-1\nI-1\nI63\n"),
        array((1,), "V8", b"S'12345678'\n"),
        array((1,), "f8, f8", b"S'12345678'\n"),
        array((1,), "M8", b"S'12345678'\n"),
        array((1,), "U9999999999", b"S'12345678'\n"),
        array((1,), "f8", b"S'12345678'\n", order="x"),
        array((1,), "f8", b"S'12345678'\n", state=b"N(S'a'\nt(dI-1\nI-1\nI0\n"),
        array((1,), "f8", b"S'12345678'\n", state=b"(S'f8'\nI4\ntNNI-1\nI-1\nI0\n"),
        array((2,), "U1", b"S'" + b"\\xff" * 8 + b"'\n", state=b"NNNI4\nI4\nI8\n"),
        array((1,), "f8", b"I5\n"),
        RECONSTRUCT + b".",
        RECONSTRUCT + b"(l.",
        b"cnumpy\nndarray\n(I9\ntR.",
        b"cnumpy\ndtype\n.",
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O8'\ntRI1\ntR.",
        b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'f8'\ntRS'1'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(L%dL\ntS'b'\ntR." % (1 << 40),
        b"c_codecs\nencode\n(Va\nVidna\ntR.",
        b"c_codecs\nencode\n(Va\nVzlib_codec\ntR.",
        b"cnumpy.core.numeric\n_frombuffer\n(Va\nVi1\n(I1\ntVC\ntR.",
        b"cbuiltins\nbytes\n(I999999999\ntR.",
    ],
)  # fmt: skip
def test_forged_arrays(data):
    refused(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b".", b"\x80", b"\x80\x09N.", b"garbage", b"\x80\x04", b"N", b"N..", b"NN.", b"N.N.", b"(.", b"t.",
        b"0.", b"1.", b"((1.", b"I1", b"Ix\n.", b"I" + b"9" * 5000 + b"\n.", b"L" + b"9" * 9999 + b"L\n.", b"Fx\n.",
        b"V\\ud8\n.", b"S\n.", b"h\x00.", b"g9\n.", b"p0\n.", b"(p0\n.", b"T\xff\xff\xff\xffa.",
        b"X\xff\xff\xff\x7fa.", b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffa.", b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x95\xff", b"]Na", b"NNa.", b"N(Nu.", b"}(Nu.", b"}]Ns.", b"}(Ntns.", b"\x85.", b"\x87.", b"a.", b"s.",
        b"NR.", b"N)R.", b"Nb.", b"NNb.", b"c\n\n.", b"cos\n", b"cos\nsystem", b"\x93.", b"NN\x93.", b"NN\x81.",
        b"P0\n.", b"NQ.", b"\x82\x01.", b"\x83\x01\x00.", b"(ios\nsystem\n.", b"(cos\nsystem\no.", b"\x8f.", b"\x97.",
        b"2.",
        b"}L%dL\nNs." % (1 << 70),
    ],
)  # fmt: skip
def test_broken_and_forged_operations(data):
    refused(data)


def test_an_index_in_the_memo_takes_no_memory():
    assert loads(b"\x80\x04Nr\xff\xff\xff\x0f.", "a.pkl") is None


def test_keys_are_flat():
    """Python ends with a fault of segmentation here."""
    refused(b"\x80\x04})" + b"\x85" * 50_000 + b"Ns.", "keys", memory=64 * MIB)
    refused(pickle.dumps({(1, 2): 3}), "keys")


@pytest.mark.parametrize("depth", [101, 10_000])
@pytest.mark.parametrize(
    ("start", "end"),
    [(b"]", b"a"), (b"(", b"t"), (b"}U\x01a", b"s"), (b"](", b"e")],
    ids=["list", "tuple", "dict", "many"],
)
def test_nesting_is_bounded(start, end, depth):
    assert loads(start * 99 + b"N" + end * 99 + b".", "a.pkl")
    refused(start * depth + b"N" + end * depth + b".", "100 levels", memory=256 * MIB)


def test_what_contains_itself():
    itself = []
    itself.append(itself)
    deeper = {"a": [1]}
    deeper["a"].append((deeper,))
    for value in (itself, deeper):
        refused(pickle.dumps(value), "itself")


def test_shared_values_do_not_explode():
    value = [0.0]
    for _ in range(60):
        value = [value, value]
    refused(pickle.dumps(value), "expands")
    for _ in range(10):
        value = {"a": value, "b": value}
    refused(pickle.dumps(value), "expands")


def test_the_same_bytes_do_not_make_many_arrays():
    text = b"U\xff" + b"a" * 255
    start = b"\x80\x02](" + text + b"q\x000"
    encode = b"c_codecs\nencode\nq\x01h\x00X\x06\x00\x00\x00latin1\x86q\x02R0"
    refused(start + encode + b"h\x01h\x02R" * 1000 + b"e.", "same bytes")


def test_too_many_steps(monkeypatch):
    monkeypatch.setattr("karat.sources.pickle_machine.MAX_STEPS", 1000)
    assert loads(pickle.dumps(list(range(300))), "a.pkl") == list(range(300))
    refused(pickle.dumps(list(range(2000))), "1000 steps")


@settings(deadline=None)
@given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 10_000), max_size=5))
def test_damage_is_refused_or_harmless(data, places):
    whole = bytearray(
        pickle.dumps({"a": np.arange(5), "b": [1.5, "x", None], "c": np.array(["ä"]), "d": (True, b"y")}, 4)
    )
    for place, value in zip(places, data, strict=False):
        whole[place % len(whole)] = value
    for forged in (bytes(whole), data, bytes(whole[: len(data) * 2])):
        with suppress(InputError):
            loads(forged, "a.pkl")


# --- files


def written(path, data):
    path.write_bytes(data)
    return path


def unread(path, *words):
    """The one line of the refusal of a file."""
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).isprintable()
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_long_in_a_file_is_read_as_it_lies(tmp_path, protocol):
    """Texts and bytes come out whole, and so do arrays of texts and of objects, keys and scalars."""
    texts = ["\u00e9" * 300_000, "a\\u0041\\\n\0'" * 40_000, "\U0001f415\ud800" * 100_000, "\\" * 300_001]
    value = {"texts": texts, "bytes": bytes(range(256)) * 2000, "key" * 1000: 1, "scalar": np.str_("ab" * 1000)}
    value |= {"names": np.array([["nose"] * 300, ["tail"] * 300]), "short": np.arange(5), "of": np.dtype("f4")}
    data = pickle.dumps(value, protocol)
    assert same(load(written(tmp_path / "a.pkl", data)), loads(data, "a.pkl"))
    objects = pickle.dumps(np.array(["a" * 2000, None], object), protocol)
    assert load(written(tmp_path / "a.pkl", objects)) == ["a" * 2000, None]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_texts_are_the_same_wherever_they_are_cut(tmp_path, monkeypatch, protocol, piece):
    value = [
        "\u00e9\u20ac\U0001f415\ud83d\udc15\ud800a\\u0041\\\\n\n\0'" * 2,
        np.arange(250, 280).reshape(5, 6),
        b"ab\xff" * 20,
    ]
    monkeypatch.setattr("karat.sources.stored.PIECE", piece)
    monkeypatch.setattr("karat.sources.stored.WINDOW", 64)
    for module in ("stored", "pickle_machine"):
        monkeypatch.setattr(f"karat.sources.{module}.MAX_LEFT", 30)
    text, array, binary = load(written(tmp_path / "a.pkl", pickle.dumps(value, protocol)))
    assert (text, binary) == (value[0], value[2])
    assert same(array.read(), value[1])
    spelled = b"S'" + rb"C:\\News\'\x00\xff\n\r\t\\\\" * 3 + b"'\n."
    assert load(written(tmp_path / "a.pkl", spelled)) == "C:\\News'\0\xff\n\r\t\\\\" * 3


def test_a_file_of_many_gigabytes_is_opened_in_little_memory(tmp_path):
    shape, path = (5000, 2000, 1000), tmp_path / "a.pkl"
    head, tail = pickle.dumps({"masks": np.full(2000, 7, np.uint8)}, 3).split(b"\x07" * 2000)
    sides = b"K\x01" + b"".join(b"J" + struct.pack("<i", side) for side in shape) + b"\x87"
    head = head.replace(b"K\x01M\xd0\x07\x85", sides).replace(b"B\xd0\x07\x00\x00", b"\x8e" + struct.pack("<Q", 10**10))
    with path.open("wb") as file:
        file.write(head)
        file.seek(10**10, os.SEEK_CUR)
        file.write(tail)
    tracemalloc.start()
    try:
        masks = load(path)["masks"]
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert (masks.shape, masks.dtype) == (shape, np.uint8)


def test_a_file_that_changed_is_refused(tmp_path):
    path = written(tmp_path / "a.pkl", pickle.dumps([np.zeros((50, 50)), np.arange(3)]))
    stored, read = load(path)
    assert isinstance(stored, StoredArray)
    assert read.tolist() == [0, 1, 2]
    assert not stored.read().any()
    written(path, path.read_bytes() + b"more")
    with pytest.raises(InputError, match="has changed since it was opened"):
        stored.read()
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        stored.read()


def test_truth_is_0_or_1_whatever_a_file_holds(tmp_path):
    data = pickle.dumps(np.ones(2000, bool), 4).replace(b"\x01" * 2000, b"\x02\x01\x00\xff" * 500)
    expected = np.array([True, True, False, True] * 500)
    for read in (loads(data, "a.pkl"), load(written(tmp_path / "a.pkl", data)).read()):
        assert same(read, expected)


def test_files_that_are_no_pickles(tmp_path):
    unread(tmp_path, "is no file")
    unread(tmp_path / "none.pkl", "is no file")
    unread(written(tmp_path / "a.pkl", b""), "0 bytes")
    unread(written(tmp_path / "a.pkl", gzip.compress(pickle.dumps([1]))), "gunzip it")


def test_a_file_is_held_within_bounds(tmp_path, monkeypatch):
    path = written(tmp_path / "a.pkl", pickle.dumps([[b"a" * 800] * 2, b"b" * 800, [], "c" * 1500], 4))
    assert len(load(path)) == 4
    for bound, most, word in (
        ("stored.MAX_TAKEN", 3000, "3000 bytes besides its arrays"),
        ("pickle_machine.MAX_STEPS_IN_FILE", 9, "9 steps"),
        ("safe_pickle.MAX_PARTS_IN_FILE", 3, "over 3 lists"),
        ("safe_pickle.MAX_FILE", 3000, "bytes"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"karat.sources.{bound}", most)
            unread(path, word)
