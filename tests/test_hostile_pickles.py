"""Pickles that attack whoever reads them: each is refused in one sentence, from a file and from memory, and nothing of
it happens. All are read in a process of their own, so that a crash is seen."""

import copyreg
import json
import pickle
import random
import resource
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_safe_pickle import PROTOCOLS, RECONSTRUCT, array, same

from karat.errors import InputError
from karat.sources.pickle_machine import OPERATIONS
from karat.sources.safe_pickle import load, loads
from karat.sources.stored import StoredArray

MAX_MEMORY = 200 * 1024  # KiB
MUTATED = 5000
EXTENSION = 240


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def called(module, name, *given):
    """A call of what the file names, as protocol 2 spells it."""
    return b"\x80\x02c%s\n%s\n(" % (module.encode(), name.encode()) + b"".join(given) + b"tR."


def stack_called(module, name, *given):
    return b"\x80\x04" + text(module) + text(name) + b"\x93(" + b"".join(given) + b"tR."


def typed(code, state):
    """A type with a state of its own, and an array of it."""
    built = b"cnumpy\ndtype\n(" + text(code) + b"I0\nI1\ntR(I3\n" + state + b"tb"
    return RECONSTRUCT + b"(I1\n(I1\nt" + built + b"I00\nC\x0812345678tb."


def fields(one):
    """The part of a state that names a field."""
    return b"N(" + text("a") + b"t}" + text("a") + b"(" + one + b"ts"


def buffered(shape, order, data=b"C\x04abcd"):
    return called(
        "numpy._core.numeric", "_frombuffer", data, b"cnumpy\ndtype\n(X\x02\x00\x00\x00u1I0\nI1\ntR", shape, order
    )


def shared(levels):
    """A list of itself twice, twice, ..."""
    value = [0.0]
    for _ in range(levels):
        value = [value, value]
    return pickle.dumps(value)


def attacks(made):
    """Files by what they try; those that run something would make the file `made`."""
    touch, opened = text(f"touch {made}"), text(f"open({str(made)!r}, 'w')")
    whole = pickle.dumps([{"id": 1, "mask": [np.ones((40, 50))] * 2}], 4)
    honest = array((2,), "i1", b"S'\\x01\\x02'\n")
    sizes = b"I-1\nI-1\nI0\n"
    many = b"cnumpy\ndtype\n(" + text("u1") + b"tRq\x010cnumpy.core.numeric\n_frombuffer\nq\x020(h\x00h\x01(K\xfft"
    many += text("C") + b"tq\x030" + b"h\x02h\x03R" * 2000 + b"e."
    huge = b"\x8a\xff" + b"\x7f" * 255 + b"q\x00"
    u1 = b"cnumpy\ndtype\n(" + text("u1") + b"tRI00\nS''\n"
    nothing = array((1_000_000, 0), "O8", b"(l", order="|", state=b"NNNI-1\nI-1\nI63\n")
    objects = b"cnumpy\ndtype\n(" + text("O8") + b"tR"
    return {
        # calls
        "os.system": called("os", "system", touch),
        "posix.system": stack_called("posix", "system", touch),
        "subprocess": called("subprocess", "check_call", b"(" + text("touch") + text(str(made)) + b"l"),
        "eval": called("builtins", "eval", opened),
        "exec in Python 2": called("__builtin__", "execfile", text(str(made))),
        "open": stack_called("builtins", "open", text(str(made)), text("w")),
        "getattr": called("builtins", "getattr", b"cbuiltins\n__import__\n(" + text("os") + b"tR", text("system")),
        "attrgetter": called("operator", "attrgetter", text("system")),
        "partial": called("functools", "partial", b"cos\nsystem\n", touch),
        "importlib": called("importlib", "import_module", text("this")),
        "a name alone": b"cthis\ns\n.",
        "a dotted name": b"\x80\x04" + text("numpy") + text("ndarray.tofile") + b"\x93.",
        "a name as a module": b"\x80\x04" + text("numpy.core.multiarray._reconstruct") + text("__call__") + b"\x93.",
        "codecs": called("_codecs", "encode", text("a"), text("zlib_codec")),
        "codecs, looked up": called("_codecs", "lookup", text("idna")),
        "encode beyond Latin-1": called("_codecs", "encode", text("\u20ac"), text("latin1")),
        "encode with a handler": called("_codecs", "encode", text("\u20ac"), text("latin1"), text("namereplace")),
        "encode a number": called("_codecs", "encode", b"I5\n", text("latin1")),
        "a long text beyond Latin-1": called("_codecs", "encode", text("a" * 300_000 + "\u20ac"), text("latin1")),
        "bytes of a size": called("builtins", "bytes", b"J\xff\xff\xff\x7f"),
        "numpy.load": called("numpy", "load", text(str(made))),
        "numpy.fromfile": called("numpy", "fromfile", text("/dev/zero")),
        "numpy.testing": called("numpy.testing._private.utils", "runstring", opened, b"}"),
        "memmap": called("numpy", "memmap", text(str(made)), text("u1"), text("w+"), b"I0\n", b"(I9\nt"),
        "ndarray, called": called("numpy", "ndarray", b"(J\xff\xff\xff\x7ft"),
        "_reconstruct of another class": called(
            "numpy.core.multiarray", "_reconstruct", b"cnumpy\nrecarray\n(I0\nt" + text("b")
        ),
        "_reconstruct at a size": called(
            "numpy.core.multiarray", "_reconstruct", b"cnumpy\nndarray\n(J\xff\xff\xff\x7ft" + text("b")
        ),
        "torch storage": called("torch._utils", "_rebuild_tensor_v2", b"N"),
        "torch.load": called("torch", "load", text(str(made))),
        "joblib": called("joblib.numpy_pickle", "NumpyArrayWrapper"),
        "a call of a text": b"\x80\x02" + text("os.system") + b"(" + touch + b"tR.",
        "a call with a list": b"\x80\x02cnumpy\ndtype\n]" + text("u1") + b"aR.",
        # objects
        "NEWOBJ": b"\x80\x02csubprocess\nPopen\n(" + touch + b"t\x81.",
        "NEWOBJ of an array": b"\x80\x02cnumpy\nndarray\n((J\xff\xff\xff\x7ftt\x81.",
        "NEWOBJ_EX": b"\x80\x04cnumpy\nndarray\n)}\x92.",
        "OBJ": b"(cos\nsystem\n" + touch + b"o.",
        "INST": b"(" + touch + b"ios\nsystem\n.",
        "BUILD of a name": b"cnumpy\nndarray\n}" + text("tolist") + b"I1\nsb.",
        "BUILD of a list": b"]}b.",
        "EXT1": b"\x80\x02\x82" + bytes([EXTENSION]) + b"(" + touch + b"tR.",
        "EXT2": b"\x80\x02\x83" + struct.pack("<H", EXTENSION) + b"(" + touch + b"tR.",
        "EXT4": b"\x80\x02\x84" + struct.pack("<i", EXTENSION) + b"(" + touch + b"tR.",
        "PERSID": b"Pmodule\n.",
        "BINPERSID": text("module") + b"Q.",
        "NEXT_BUFFER": b"\x80\x05\x97.",
        "READONLY_BUFFER": b"\x80\x05\x96" + bytes(8) + b"\x98.",
        # types and arrays
        "addresses as objects": typed("O8", text("|") + b"NNNI-1\nI-1\nI63\n"),
        "a void type": typed("V8", text("|") + b"NNNI8\nI1\nI0\n"),
        "fields of objects": typed("V8", text("|") + fields(objects + b"I0\n") + b"I8\nI1\nI63\n"),
        "fields out of bounds": typed("u8", text("<") + fields(b"NI99999\n") + sizes),
        "a type of arrays": typed("u8", text("<") + b"(cnumpy\ndtype\n(X\x02\x00\x00\x00u8tR(I9\nttNN" + sizes),
        "metadata": typed("u8", text("<") + b"NNN" + sizes + b"}"),
        "a huge item": typed("u8", text("<") + b"NNNI2000000000\nI-1\nI0\n"),
        "a negative alignment": typed("u8", text("<") + b"NNNI-1\nI-8\nI0\n"),
        "flags of objects": typed("u8", text("<") + b"NNNI-1\nI-1\nI63\n"),
        "no order": typed("u8", text("?") + b"NNN" + sizes),
        "a type by a list": b"cnumpy\ndtype\n(((" + text("a") + text("O") + b"tltR.",
        "a huge text type": array((0,), "U2000000000", b"S''\n"),
        "text beyond Unicode": array((2,), "U1", b"S'" + b"\\xff" * 8 + b"'\n", state=b"NNNI4\nI4\nI8\n"),
        "a huge shape": array((1 << 40,), "f8", b"S''\n"),
        "a negative shape": array((-1, -8), "u1", b"S'12345678'\n"),
        "a shape that overflows": array((1 << 32, 1 << 32), "u1", b"S''\n"),
        "nothing, hugely": array((0, 1 << 62), "u1", b"S''\n"),
        "many axes, each huge": RECONSTRUCT + b"(I1\n(" + huge + b"h\x00" * 300_000 + b"t" + u1 + b"tb.",
        "nothing, as many lists": b"(" + nothing[:-1] * 40 + b"l.",
        "many axes": array((1,) * 65, "u1", b"S'1'\n"),
        "a shape of floats": honest.replace(b"L2L\n", b"F2.0\n"),
        "too few bytes": array((3,), "f8", b"S'1234567812345678'\n"),
        "too many bytes": array((1,), "f8", b"S'1234567812345678'\n"),
        "too few bytes, many": array((70, 70), "f8", b"B" + struct.pack("<I", 39_199) + bytes(39_199)),
        "a wrong order": buffered(b"(I2\nI2\nt", text("Q")),
        "Fortran by a number": honest.replace(b"tbI00\n", b"tbI7\n"),
        "axes twice": buffered(b"(I2\nI2\nt", text("K") + b"(I0\nI0\nt"),
        "axes out of bounds": buffered(b"(I2\nI2\nt", text("K") + b"(I0\nI9\nt"),
        "axes missing": buffered(b"(I2\nI2\nt", text("K") + b"(I0\nt"),
        "axes that are shared": buffered(b"(I4\nt", text("K") + shared(60)[2:-1] + b"\x85"),
        "filled twice": honest[:-1] + b"(I1\n)NI00\nS''\ntb.",
        "an array of numbers": array((1,), "u1", b"I7\n"),
        "an array in itself": RECONSTRUCT + b"p5\n(I1\n(I1\ntcnumpy\ndtype\n(S'O8'\ntRI00\n(g5\nltb.",
        "the same bytes as many arrays": b"\x80\x02](C\xff" + b"a" * 255 + b"q\x000" + many,
        # the memo
        "an index to 2^32": b"\x80\x02]r\xff\xff\xff\xff0j\xfe\xff\xff\xff.",
        "an index of digits": b"]p" + b"9" * 5000 + b"\n.",
        "an unknown index": b"\x80\x02h\x07.",
        "an unknown index in text": b"g-1\n.",
        "a mark in the memo": b"\x80\x04(\x94.",
        # lengths
        "BINUNICODE": b"X\xff\xff\xff\xffabc.",
        "BINUNICODE8": b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",
        "BINBYTES": b"\x80\x03B\xff\xff\xff\xffabc.",
        "BINBYTES8": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"abc.",
        "BYTEARRAY8": b"\x80\x05\x96" + struct.pack("<Q", 1 << 33) + b"abc.",
        "BINSTRING": b"T\xff\xff\xff\x7fabc.",
        "LONG1": b"\x80\x02\x8a\xffabc.",
        "LONG4": b"\x80\x02\x8b\xff\xff\xff\x7fabc.",
        "LONG": b"L" + b"9" * 5000 + b"L\n.",
        "INT": b"I" + b"9" * 1_000_000 + b"\n.",
        "FLOAT without an end": b"F" + b"1" * 1_000_000,
        "UNICODE without an end": b"V" + b"a" * 1_000_000,
        "STRING without an end": b"S'" + b"a" * 1_000_000,
        "FRAME": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
        "FRAME by one": b"\x80\x04\x95" + struct.pack("<Q", 3) + b"N.",
        "a protocol to come": b"\x80\x06N.",
        # texts
        "not UTF-8": b"X" + struct.pack("<I", 300_001) + b"a" * 300_000 + b"\xff.",
        "half an escape": b"V" + b"a" * 300_000 + b"\\u00\n.",
        "a character by its name": b"S'\\N{DIGIT ONE}'\n.",
        "a character by its name, far": b"S'" + b"\\\\" * 131_071 + b"a\\N{DIGIT ONE}'\n.",
        "quotes that differ": b"S'" + b"a" * 5000 + b'"\n.',
        # nesting and keys
        "deep lists": b"]" * 100_000 + b"a" * 99_999 + b".",
        "deep tuples as a key": b"})" + b"\x85" * 100_000 + b"Ns.",
        "deep marks": b"(" * 100_000 + b"t" * 100_000 + b".",
        "a list in itself": b"]q\x00h\x00a.",
        "a dictionary in itself": b"}q\x00K\x01h\x00s.",
        "shared lists": shared(60),
        "a list as a key": b"}]Ns.",
        "an array as a key": b"}" + honest[:-1] + b"Ns.",
        "keys of one hash": b"}(" + b"".join(b"L%dL\nN" % (k * ((1 << 61) - 1)) for k in range(1, 2000)) + b"u.",
        "a key without a value": b"}(Nu.",
        # beginnings and ends
        "two values": whole + whole,
        "more after the end": whole + b"\n",
        "cut off in its head": whole[:40],
        "cut off in an array": whole[: len(whole) // 2],
        "cut off before its end": whole[:-1],
        "an empty stack": b"\x80\x02.",
        "a pop of nothing": b"0.",
        "a pair of one": b"N\x86.",
        "nothing called": b"R.",
        "a mark alone": b"(.",
        "no mark": b"Ne.",
        "compressed": b"\x1f\x8b\x08\x00" + bytes(20),
        "no pickle": b"<html>",
        "nothing": b"",
    }  # fmt: skip


def told(read, *given):
    """The refusal, or what was read instead."""
    try:
        return f"READ {str(read(*given))[:100]}"
    except InputError as error:
        return str(error)


def grown(before):
    """Whether more memory was taken than all may take; a process starts with the peak of the one that made it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > max(MAX_MEMORY, before)


def attack(folder):
    """Reads every file of a folder; what was said of it, by its name."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    copyreg.add_extension("os", "system", EXTENSION)
    modules = set(sys.modules)
    said = {path.stem: [told(load, path), told(loads, path.read_bytes(), path)] for path in sorted(folder.iterdir())}
    print(json.dumps({"said": said, "imported": sorted(set(sys.modules) - modules), "grown": grown(before)}))


def in_a_process(function, folder):
    """What a function of this file printed."""
    code = f"import sys, pathlib, {Path(__file__).stem} as own; own.{function}(pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, folder],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_every_attack_is_refused_and_nothing_happens(tmp_path):
    made, folder = tmp_path / "made", tmp_path / "pickles"
    folder.mkdir()
    names = {}
    for place, (name, data) in enumerate(attacks(made).items()):
        names[f"{place:03}"] = name
        (folder / f"{place:03}.pkl").write_bytes(data)
    found = in_a_process("attack", folder)
    assert len(names) > 100
    assert found["said"].keys() == names.keys()
    for place, both in found["said"].items():
        for message in both:
            assert message.startswith(f"{folder / place}.pkl "), (names[place], message)
            assert message.isprintable(), names[place]
            assert message.count(": ") == 1, (names[place], message)
            assert len(message) < 400 + len(str(folder)), names[place]
    assert not made.exists()
    assert found["imported"] == []
    assert not found["grown"]


def records(dtype):
    """What the specification's files hold, in small; some arrays are left in the file, some are not."""
    numbers = np.random.default_rng(0)
    masks = (numbers.random((3, 30, 48)) * 100).astype(dtype)
    one, other = masks[:2]
    columns = [np.asfortranarray(one) for one in masks]
    return [
        {"id": "1", "subject": "dog", "caption": "a dog \u00fc", "num_bb": 2, "mask": masks},
        {"id": 2, "subject": "dog", "caption": "\U0001f415" * 300, "num_bb": 2, "mask": columns},
        {"id": 3, "subject": "dog", "caption": "a dog", "num_bb": None, "mask": masks.transpose(1, 2, 0)},
        {"id": 4, "subject": "dog", "caption": "a dog", "num_bb": 2, "mask": [one, other, one]},
        {"id": 5, "subject": "dog", "caption": "a dog", "num_bb": 2, "bboxes": [[0.5, 0.25, 1.0, 1.0], np.ones(4)]},
    ]  # fmt: skip


def in_memory(value):
    """The same with all arrays read."""
    if isinstance(value, StoredArray):
        read = value.read()
        assert (read.shape, read.dtype) == (value.shape, value.dtype.newbyteorder("="))
        assert not read.flags.writeable
        return read
    if isinstance(value, list | tuple):
        return type(value)(map(in_memory, value))
    return {key: in_memory(one) for key, one in value.items()} if isinstance(value, dict) else value


def mutated(chance, data, others):
    """A pickle damaged in one to four places."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data) + 1)
        end = place + chance.choice([1, 2, 8, 100, 3000])
        other = chance.choice(others)
        start = chance.randrange(len(other))
        match chance.randrange(7):
            case 0:
                data[place : place + 1] = chance.randbytes(1)
            case 1:
                data[place : place + 1] = bytes([chance.choice(list(OPERATIONS))])
            case 2:
                data[place:place] = other[start : start + end - place]
            case 3:
                data[place:end] = other[start : start + end - place]
            case 4:
                data[place:place] = data[place:end]
            case 5:
                del data[place:end]
            case 6:
                del data[place:]
    return bytes(data)


def read_or_refused(read, *given):
    try:
        return in_memory(read(*given))
    except InputError:
        return InputError


def mutate(folder):
    """Reads mutated pickles from memory, and every third from a file too, which must come to the same."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chance = random.Random(0)
    honest = [pickle.dumps(records(dtype), protocol) for dtype in ("b1", "u1", "f8") for protocol in PROTOCOLS]
    # the head, where most operations are, as often as the whole
    honest += [pickle.dumps(records("b1")[4:], protocol) for protocol in PROTOCOLS]
    path, kept = folder / "a.pkl", 0
    for number in range(MUTATED):
        data = mutated(chance, chance.choice(honest), honest)
        value = read_or_refused(loads, data, path)
        kept += value is not InputError
        if number % 3 == 0:
            path.write_bytes(data)
            assert same(read_or_refused(load, path), value), number
    print(json.dumps({"kept": kept, "grown": grown(before)}))


def test_mutated_pickles_are_refused_or_harmless(tmp_path):
    found = in_a_process("mutate", tmp_path)
    assert 0 < found["kept"] < MUTATED
    assert not found["grown"]


def of_older_numpy(data, protocol):
    """The same with the names that NumPy had before its second version."""
    if protocol < 4:
        return data.replace(b"numpy._core", b"numpy.core")
    older = data
    for module in (b"multiarray", b"numeric"):
        name = b"numpy.core." + module
        older = older.replace(bytes([len(name) + 1]) + b"numpy._core." + module, bytes([len(name)]) + name)
    (frame,) = struct.unpack_from("<Q", data, 3)
    return older[:3] + struct.pack("<Q", frame - (len(data) - len(older))) + older[11:]


@pytest.mark.filterwarnings("ignore:numpy.core")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", ["b1", "u1", "i8", "f4", "f8", ">f8"])
def test_honest_files_as_python_reads_them(tmp_path, dtype, protocol):
    path = tmp_path / "a.pkl"
    data = pickle.dumps(records(dtype), protocol)
    for spelled in (data, of_older_numpy(data, protocol)):
        path.write_bytes(spelled)
        value = load(path)
        assert isinstance(value[0]["mask"], StoredArray)
        assert value[3]["mask"][0] is value[3]["mask"][2]
        assert same(in_memory(value), pickle.loads(spelled))
        assert same(loads(spelled, path), pickle.loads(spelled))
