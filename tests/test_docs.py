"""The pages that are generated are what the code says; what README says works."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def test_the_table_of_scores_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "scores.py"))["page"]
    assert (ROOT / "docs" / "scores.md").read_text(encoding="utf-8") == page()


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    rng = np.random.default_rng(0)
    for side in ("out", "real"):
        (tmp_path / side).mkdir()
        np.savez(tmp_path / side / "clip.npz", frames=rng.integers(0, 256, (3, 24, 32, 3), np.uint8))
    given = """
import numpy as np
pred = truth = np.zeros((2, 24, 32, 3), np.uint8)
batch, names = pred, ["a", "b"]
"""
    subprocess.run([sys.executable, "-c", given + code], cwd=tmp_path, check=True)
