"""Tensors are taken as they are, and a Meter gathers over the processes of torch.distributed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import karat

torch = pytest.importorskip("torch")


def clips(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` pairs of small noisy images."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 256, (count, 32, 40, 3), np.uint8)
    return np.clip(truth.astype(int) + rng.integers(-20, 21, truth.shape), 0, 255).astype(np.uint8), truth


def test_tensors_and_arrays_give_the_same_scores() -> None:
    pred, truth = clips(0, 3)
    tensors = [torch.from_numpy(side) for side in (pred, truth)]
    assert karat.SSIM()(*tensors) == karat.SSIM()(pred, truth)
    runs = [karat.evaluate("transfer", pred=p, truth=t, metrics=["canny_f1"]) for p, t in (tensors, (pred, truth))]
    assert runs[0].plain() == runs[1].plain()


def test_bfloat16_and_gradients_are_read() -> None:
    depth = torch.rand(2, 8, 9, requires_grad=True) + 1
    exact = depth.to(torch.bfloat16).float().detach().numpy()
    assert karat.DepthRMSE()(depth.to(torch.bfloat16), exact)["depth_si_rmse"] == 0


WORKER = """
import sys, datetime
import numpy as np, torch, torch.distributed as dist
import karat
sys.path.insert(0, {tests!r})
from test_torch import clips
rank, world = int(sys.argv[1]), 2
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=world,
                        timeout=datetime.timedelta(seconds=60))
pred, truth = clips(1, 6)
meter = karat.Meter(karat.CannyF1(), karat.SSIM())
meter.update(pred=pred[rank::world], truth=truth[rank::world], ids=[f"{{i:02d}}" for i in range(6)][rank::world])
whole = meter.gather()
print({{name: value.hex() for name, value in whole.compute().items()}})
dist.destroy_process_group()
"""


def test_gather_gives_every_process_the_scores_of_all(tmp_path: Path) -> None:
    code = WORKER.format(tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", code]
    store = str(tmp_path / "store")
    ranks = [
        subprocess.Popen([*command, str(rank), store], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
        for rank in range(2)
    ]
    told = [process.communicate(timeout=120)[0].strip() for process in ranks]
    pred, truth = clips(1, 6)
    meter = karat.Meter(karat.CannyF1(), karat.SSIM())
    meter.update(pred=pred, truth=truth, ids=[f"{i:02d}" for i in range(6)])
    assert told == [str({name: value.hex() for name, value in meter.compute().items()})] * 2
