"""Writes docs/scores.md from the code: `python docs/scores.py`."""

from __future__ import annotations

from pathlib import Path

from karat.describe import score_names

HEAD = """# Scores

Every score by its name, as tables, JSON and signatures print it. A region follows an `@`: `blur_ssim@foreground`.
Metrics also answer to the names in the last column, in any case and punctuation. Made by `python docs/scores.py`.

"""


def page() -> str:
    """The whole page."""
    return HEAD + score_names()


if __name__ == "__main__":
    Path(__file__).with_name("scores.md").write_text(page(), encoding="utf-8")
