"""Pickles: every plain value and array as Python's own unpickler reads it, and nothing that a file names is touched."""

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
from karat.sources.safe_pickle import loads

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
        array((1 << 40,), "U0", b"S''\n"),
        array((1 << 40, 0), "O8", b"(l"),
        array((-1,), "f8", b"S''\n"),
        array((1,) * 70, "i1", b"S'a'\n"),
        array((2,), "f8", b"S'12345678'\n"),
        array((1,), "O8", b"S'12345678'\n"),
        array((2,), "O8", b"(I1\nl"),
        array((1,), "V8", b"S'12345678'\n"),
        array((1,), "f8, f8", b"S'12345678'\n"),
        array((1,), "M8", b"S'12345678'\n"),
        array((1,), "U9999999999", b"S'12345678'\n"),
        array((1,), "f8", b"S'12345678'\n", order="x"),
        array((1,), "f8", b"S'12345678'\n", state=b"N(S'a'\nt(dI-1\nI-1\nI0\n"),
        array((1,), "f8", b"S'12345678'\n", state=b"(S'f8'\nI4\ntNNI-1\nI-1\nI0\n"),
        array((2,), "U1", b"S'" + b"\\xff" * 8 + b"'\n"),
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
