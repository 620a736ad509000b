"""Features of sets of images, as networks give them: rows of numbers, or only their mean and covariance."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import InputError, told

from .arrays import npz_slabs, open_npy
from .fingerprint import digest
from .guard import GIB, guarded, refusal
from .records import RecordKind, Source
from .safetensors import safetensors_slabs
from .slab import Slab
from .stream import Array

EXPECTS = "features (n, d) of n images, or their mean mu (d) and covariance sigma (d, d)"
MAX_BYTES = 16 * GIB
NAMES = {
    "features": ("features", "feats", "embeddings", "pool3", "pool_3"),
    "logits": ("logits",),
    "mean": ("mu", "mean"),
    "covariance": ("sigma", "covariance", "cov"),
    "count": ("n", "count", "num_images"),
}
TEXTS = ("network", "ids")


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """The images of one side of a data set.

    features: (n, d), no row where only statistics are known.  logits: (n, classes), likewise.
    mean: (d) and covariance: (d, d), of no size where features are there.  count: of how many images these are, 0
    where that is not said.  network: what computed them, where that is said.
    """

    features: Array
    logits: Array
    mean: Array
    covariance: Array
    count: int = 0
    network: str = ""
    name: str = ""

    @property
    def length(self) -> int:
        """The number of images whose features are there."""
        return max(len(self.features), len(self.logits))

    def select(self, first: int | None, stride: int) -> FeatureSet:
        """The first images, and every `stride` of those."""
        return replace(self, features=self.features[:first:stride], logits=self.logits[:first:stride])

    def digest(self) -> str:
        """sha256 of the content, in hex."""
        state = hashlib.sha256(repr((self.count, self.network)).encode())
        for array in (self.features, self.logits, self.mean, self.covariance):
            state.update(digest(np.ascontiguousarray(array)).encode())
        return state.hexdigest()

    def open(self) -> FeatureSet:
        """Itself."""
        return self


def make_features(name: str, arrays: Mapping[str, Any]) -> FeatureSet:
    """Checked features of arrays by their names."""
    given: dict[str, Array] = {}
    network = str(np.asarray(arrays.get("network", ""))[()])
    for own, value in arrays.items():
        if own in TEXTS:
            continue
        kind = next((kind for kind, names in NAMES.items() if own.lower() in names), None)
        if kind is None or kind in given:
            known = ", ".join(names[0] for names in NAMES.values())
            raise refusal(
                name, f"has an array {told(own)[:40]!r}", f"{known} were expected", "rename it or leave it out"
            )
        given[kind] = numbers(name, own, value, {"mean": 1, "count": 0}.get(kind, 2))
    if ("mean" in given) != ("covariance" in given):
        raise refusal(name, f"has {', '.join(arrays)}", "mu and sigma belong together", "give both")
    if not given.keys() & {"features", "logits", "mean"}:
        raise refusal(name, "has no features", f"{EXPECTS} were expected", "add them")
    mean, covariance = given.get("mean", np.zeros(0)), given.get("covariance", np.zeros((0, 0)))
    if covariance.shape != (len(mean), len(mean)):
        raise refusal(
            name, f"has mu of shape {mean.shape} and sigma of {covariance.shape}", "(d) and (d, d)", "check them"
        )
    features, logits = (given.get(kind, np.zeros((0, 0))) for kind in ("features", "logits"))
    if len(features) and len(mean):
        mean, covariance = np.zeros(0), np.zeros((0, 0))  # what follows from the features
    if len(features) and len(logits) and len(features) != len(logits):
        raise refusal(
            name, f"has {len(features)} features and {len(logits)} logits", "a row an image", "give both of all"
        )
    return FeatureSet(features, logits, mean, covariance, int(given.get("count", np.zeros(()))), network, name)


def numbers(name: str, own: str, value: Any, axes: int) -> Array:
    """A checked array of finite numbers with so many axes."""
    array = np.asarray(value)
    if axes == 0 and array.size == 1:
        array = array.reshape(())
    if array.ndim != axes or array.dtype.kind not in "iuf":
        found = f"is {array.dtype.name} of shape {array.shape}"
        raise refusal(f"{own} of {name}", found, f"numbers with {axes} axes were expected", "convert it")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array.reshape(len(array) if axes else 1, -1)).all(axis=1))[0])
        raise refusal(
            f"{own} of {name}", f"is NaN or infinite in row {row}", "finite numbers were expected", "leave it out"
        )
    return array if array.dtype.kind == "f" and array.dtype.itemsize >= 4 else array.astype(np.float64)


def to_features(value: Any) -> FeatureSet:
    """What a user has in memory: an array (n, d), or a mapping of arrays."""
    if isinstance(value, FeatureSet):
        return value
    return make_features("the features", value if isinstance(value, Mapping) else {"features": value})


@dataclass(frozen=True)
class FeatureFile:
    """Features in a file."""

    path: Path

    @property
    def network(self) -> str:
        """What computed the features, where the file says that."""
        return str(said(self.path, "network", "")[()])

    def digest(self) -> str:
        """sha256 of the file, in hex."""
        return digest(self.path)

    def open(self) -> FeatureSet:
        """The features of the file."""
        suffix = self.path.suffix.lower()
        if suffix == ".npy":
            return make_features(str(self.path), {"features": whole(open_npy(self.path))})
        slabs = npz_slabs(self.path) if suffix == ".npz" else safetensors_slabs(self.path)
        alone = len(slabs) == 1 and not any(own.lower() in names for own in slabs for names in NAMES.values())
        return make_features(
            str(self.path), {"features" if alone else own: whole(announced()) for own, announced in slabs.items()}
        )


def said(path: Path, what: str, nothing: Any) -> Array:
    """The text of that name in a file; of a file that cannot be read nothing: its evaluation says why."""
    if path.suffix.lower() == ".npz":
        with suppress(InputError), guarded(path, EXPECTS):
            announced = npz_slabs(path).get(what)
            if announced is not None:
                return whole(announced())
    return np.asarray(nothing, np.str_)


def whole(slab: Slab) -> Array:
    """All of an array that a file announces."""
    size = slab.dtype.itemsize * int(np.prod(slab.shape, dtype=object))
    if size > MAX_BYTES:
        raise refusal(slab.name, f"has shape {slab.shape}", "16 GiB are read whole", "take fewer images")
    (array,) = slab.read(0)
    return array


def _origin(sources: Iterable[Any]) -> str:
    found = sorted({one.network for one in sources if isinstance(one, FeatureSet | FeatureFile)} - {""})
    return told("+".join(found).replace("|", ";"))  # which parts signatures


def _expand(path: Path) -> Mapping[str, Source]:
    if path.suffix.lower() not in SUFFIXES:
        known = " ".join(sorted(SUFFIXES))
        raise refusal(path, f"has the suffix {path.suffix!r}", f"features are read from {known}", "convert the file")
    return {"": FeatureFile(path)}


SUFFIXES = frozenset({".npy", ".npz", ".safetensors"})
FEATURES = RecordKind("features", EXPECTS, SUFFIXES, _expand, to_features, origin=_origin)
