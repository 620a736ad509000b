"""Weights of networks: where they are found, and what tells them apart."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from karat.errors import InputError, UsageError, told
from karat.sources.fingerprint import digest
from karat.sources.guard import MIB, guarded, read_bounded, refusal

REVISION = "main"
CONFIG = "config.json"
SETTINGS = ("*.json", "*.txt")
FORMATS = ("model*.safetensors", "pytorch_model*.bin")  # best first
NEEDED = f"{CONFIG}, the other {' and '.join(SETTINGS)}, and {' or '.join(FORMATS)}"
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
PIECES = "spiece.model"  # the words of SigLIP
VOCABULARIES = (("tokenizer.json",), ("vocab.json", "merges.txt"), ("vocab.txt",), (PIECES,))  # one of them is enough
DIGITS = 16


@dataclass(frozen=True)
class Weights:
    """A folder as `save_pretrained` writes it: settings, and the weights in one file or in several.

    name: what it is called in signatures.
    """

    name: str
    folder: Path

    @cached_property
    def files(self) -> list[Path]:
        """Those of the best format that is there."""
        return next((found for found in (self._matching(one) for one in FORMATS) if found), [])

    @property
    def safe(self) -> bool:
        """Whether they are safetensors, which no unpickling is needed for."""
        return self.files[0].suffix == ".safetensors"

    @property
    def whole(self) -> bool:
        return (self.folder / CONFIG).is_file() and bool(self.files)

    @property
    def model_type(self) -> str:
        """What transformers calls the architecture."""
        path = self.folder / CONFIG
        with guarded(path, "the settings of a network"):
            return str(json.loads(read_bounded(path, MIB, "a JSON object"))["model_type"])

    def identity(self) -> str:
        """What the numbers of the network hang on: sha256 of every file of weights, and of all settings together."""
        weights = "+".join(brief(file) for file in self.files)
        state = hashlib.sha256()
        for file in sorted(file for pattern in (*SETTINGS, PIECES) for file in self._matching(pattern)):
            state.update(f"{file.name} {digest(file)} ".encode())
        return f"{self.name}|weights:{weights}|settings:{state.hexdigest()[:DIGITS]}"

    def arguments(self) -> dict[str, Any]:
        """How `from_pretrained` loads a model of this folder: from its files alone, and without running any of them."""
        return {
            "local_files_only": True,
            "trust_remote_code": False,
            "weights_only": True,
            "use_safetensors": self.safe,
            "output_loading_info": True,
        }

    def _matching(self, pattern: str) -> list[Path]:
        return sorted(file for file in self.folder.glob(pattern) if file.is_file())


def find(model: str | Path, option: str = "--model", revision: str = REVISION) -> Weights:
    """The weights in a folder, or of a name: from KARAT_WEIGHTS/NAME, else from transformers' own cache or the hub.

    option: what gives the folder on the command line.
    """
    folder = Path(model)
    if folder.is_dir():
        given = Weights(folder.resolve().name, folder)
        if given.whole:
            return given
        raise refusal(
            folder, f"lacks {CONFIG} or weights", f"{NEEDED} were expected", "copy the files of the whole repository"
        )
    name = str(model)
    if not HUB_NAME.fullmatch(name):
        raise refusal(
            name, "does not exist", "a folder, or OWNER/NAME of a repository, was expected", f"check {option}"
        )
    kept = Weights(name, home() / name)
    return kept if kept.whole else _fetched(name, kept.folder, option, revision)


def home() -> Path:
    """`KARAT_WEIGHTS`, or a folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("KARAT_WEIGHTS") or Path(cache) / "karat" / "weights")


def _fetched(name: str, place: Path, option: str, revision: str) -> Weights:
    """What the hub's own client has or fetches: the best format that the repository holds."""
    from huggingface_hub import snapshot_download

    why = "it holds no weights that can be read"
    try:
        for pattern in FORMATS:
            folder = snapshot_download(name, revision=revision, allow_patterns=[*SETTINGS, PIECES, pattern])
            found = Weights(name, Path(folder))
            if found.whole:
                return found
    except Exception as error:  # of the network, the hub or the disk: whatever it is, the files are not here
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
    raise InputError(
        f"The weights of {name} are not here and cannot be fetched ({told(why)}): put {NEEDED} of the repository "
        f"{name}, revision {revision}, into {told(place)}, or pass {option} FOLDER."
    )


def require(what: str = "Detection") -> None:
    """Refuses in one sentence where the extra is not installed."""
    for name in ("torch", "transformers", "PIL"):
        if find_spec(name) is None:
            raise UsageError(f"{what} needs {name}, which is not installed: pip install 'karat[networks]'.")


def versions(*more: str) -> str:
    """Of what decodes, resizes and computes."""
    return stamps("torch", "transformers", *more, "pillow", "av")


def stamps(*libraries: str) -> str:
    """Their versions."""
    return "|".join(f"{name}:{version(name)}" for name in libraries)


def brief(file: Path) -> str:
    """As much of a file's sha256 as tells it apart."""
    return digest(file)[:DIGITS]


@contextmanager
def quiet() -> Iterator[None]:
    """transformers neither warns nor draws bars: what matters is checked and told in one sentence."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def check_vocabulary(weights: Weights) -> None:
    """Refuses a folder without the words of its tokenizer: transformers would make one that knows none."""
    if not any(all((weights.folder / name).is_file() for name in names) for names in VOCABULARIES):
        one_of = ", or ".join(" with ".join(names) for names in VOCABULARIES)
        raise refusal(
            weights.folder, "has no vocabulary", f"{one_of} was expected", "copy the files of the whole repository"
        )


def check_loaded(weights: Weights, model: Any, report: Any) -> None:
    """Refuses a model some of whose parameters came from nowhere: transformers would draw them at random."""
    missing = sorted(set(report["missing_keys"]) & {name for name, _ in model.named_parameters()})
    if missing:
        raise refusal(
            weights.folder,
            f"lacks {len(missing)} parameters of {type(model).__name__}, such as {missing[0]}",
            "all of them were expected",
            "copy the files of the whole repository",
        )
