"""What is loaded when: an import and a help text wait for nothing, and torch is never asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "cv2", "av", "scipy", "pyarrow", "rich", "typer", "safetensors", "pandas")


def loaded(code: str) -> set[str]:
    """The top-level modules that a new interpreter has after `code`."""
    program = f"import json, sys\n{code}\nprint('\\n' + json.dumps(sorted({{n.split('.')[0] for n in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*args: str) -> str:
    return (
        f"sys.argv = ['karat', *{list(args)!r}]\nfrom karat.cli import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
    )


def test_importing_karat_loads_nothing_heavy():
    assert not loaded("import karat") & set(HEAVY)
    assert not loaded("import karat; karat.__version__; karat.KaratError") & set(HEAVY)


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"], ["show", "--help"]], ids=" ".join)
def test_help_loads_no_library_that_computes(args):
    assert not loaded(command(*args)) & {"torch", "cv2", "av", "scipy", "pyarrow", "numpy"}


def test_evaluating_arrays_does_not_ask_for_torch(tmp_path):
    code = (
        "import numpy as np, karat\n"
        "clip = np.random.default_rng(0).integers(0, 255, (3, 48, 64, 3), np.uint8)\n"
        "karat.evaluate('transfer', pred=clip, truth=clip, settings={'blur_ssim.blur': 'gaussian'}, cache=False)\n"
        "karat.CannyF1()(clip, clip)\n"
        "meter = karat.Meter(karat.SSIM())\nmeter.update(pred=clip, truth=clip)\nmeter.gather().compute()\n"
        f"karat.evaluate('transfer', pred=clip, truth=clip, metrics=['psnr'], out={str(tmp_path / 'run')!r})\n"
    )
    assert not loaded(code) & {"torch", "jax", "tensorflow", "matplotlib", "skimage"}  # pyarrow loads pandas if it can


def test_commands_do_not_ask_for_torch():
    for args in (["list"], ["describe", "transfer"], ["describe", "blur_ssim"]):
        assert "torch" not in loaded(command(*args))


def test_showing_a_run_decodes_nothing(tmp_path):
    value = {"value": 1.0, "n": 1, "undefined": 0, "excluded": 0, "failed": 0}
    content = {"suite": "transfer", "protocol": "spec", "signature": "s", "scores": {"psnr": value}, "notes": []}
    (tmp_path / "scores.json").write_text(json.dumps(content))
    assert "av" not in loaded(command("show", str(tmp_path), "--format", "json"))


def test_public_names_are_there():
    code = (
        "import karat\n"
        "for name in dir(karat):\n    getattr(karat, name)\n"
        "from karat import CannyF1, Meter, Run, check, evaluate, functional\n"
        "functional.canny_f1\n"
    )
    assert "torch" not in loaded(code)
