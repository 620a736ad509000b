"""CONTRIBUTING.md taken literally: its two files, written where it says, make a metric."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`((?:src|tests)/[\w/.]+)`[^\n]*\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of Karat, its contract and its cases, with the metric of the page but without the cases."""
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("src/karat", "tests/contract", "tests/cases"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for part in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / part, tmp_path / part)
    _write(tmp_path, next(iter(FILES)))
    return tmp_path


def test_two_files_add_a_metric(place: Path) -> None:
    _write(place, list(FILES)[1])
    tested = _python(place, "-m", "pytest", "tests/contract", "-k", "Bias or every_metric", "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout
    assert int(re.findall(r"(\d+) passed", tested.stdout)[0]) > 20, tested.stdout
    described = _python(place, "-m", "karat", "describe", "bias")
    assert described.returncode == 0, described.stderr
    assert "above 0 is too bright" in described.stdout


def test_a_metric_without_cases_fails_by_name(place: Path) -> None:
    tested = _python(place, "-m", "pytest", "tests/contract/test_cases.py", "-k", "every", "-p", "no:cacheprovider")
    assert tested.returncode == 1, tested.stdout
    assert "no cases of Bias: write " in tested.stdout
    assert "tests/cases/bias.json" in tested.stdout


def test_the_page_shows_exactly_two_files() -> None:
    assert list(FILES) == ["src/karat/metrics/bias.py", "tests/cases/bias.json"]
    for name in re.findall(r"`((?:src|tests)/[\w/.]+)`", PAGE):
        assert name in FILES or (ROOT / name).exists(), f"{name} is named and is not there"


def _write(place: Path, name: str) -> None:
    assert not (place / name).exists()
    (place / name).write_text(FILES[name], encoding="utf-8")


def _python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
