"""Trains a small GAN on pictures of discs and logs the FID of what it draws.

python examples/train_gan.py --steps 2000 --every 200 --network inception

The FID is by 64 features of Inception, whose weights `karat weights fetch inception` brings; any other network goes as
well (--network dinov2, or module:path of a function of images).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import nn

import karat

SIDE, NOISE, BATCH = 32, 16, 16


def discs(count: int, chance: torch.Generator) -> torch.Tensor:
    """Pictures (count, 3, SIDE, SIDE) in -1..1, of one disc each."""
    x, y, radius = (torch.rand(3, count, 1, 1, generator=chance) * torch.tensor([20, 20, 6]).view(3, 1, 1, 1)).unbind()
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    inside = ((rows - y - 6) ** 2 + (columns - x - 6) ** 2 < (radius + 3) ** 2).float()
    color = torch.rand(count, 3, 1, 1, generator=chance)
    return 2 * inside[:, None] * color - 1


def generator() -> nn.Module:
    """From noise (n, NOISE) to pictures."""
    return nn.Sequential(
        nn.Unflatten(1, (NOISE, 1, 1)),
        nn.ConvTranspose2d(NOISE, 64, 8),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 3, 4, 2, 1),
        nn.Tanh(),
    )


def critic() -> nn.Module:
    """From pictures to how real they look."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 1, 8)
    )


def logger(folder: str) -> Callable[[str, float, int], None]:
    """To the screen, and to TensorBoard where it is installed."""
    boards = []
    if find_spec("tensorboard"):
        from torch.utils.tensorboard import SummaryWriter

        boards.append(SummaryWriter(folder))

    def log(name: str, value: float, step: int) -> None:
        print(f"step {step}: {name} {value:.6g}", flush=True)
        for board in boards:
            board.add_scalar(name, value, step)

    return log


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--steps", type=int, default=2000)
    given.add_argument("--every", type=int, default=200, help="steps between two FIDs")
    given.add_argument("--images", type=int, default=256, help="of each side of the FID")
    given.add_argument("--network", default="inception")
    given.add_argument("--logs", default="runs/gan")
    args = given.parse_args()

    torch.manual_seed(0)
    chance = torch.Generator().manual_seed(0)
    draw, judge, log = generator(), critic(), logger(args.logs)
    drawing, judging = (torch.optim.Adam(one.parameters(), 2e-4, (0.5, 0.999)) for one in (draw, judge))
    loss = nn.functional.binary_cross_entropy_with_logits

    fid = karat.FrechetInceptionDistance(feature=64, reset_real_features=False, normalize=True, network=args.network)
    fid.update((discs(args.images, chance) + 1) / 2, real=True)
    for step in range(1, args.steps + 1):
        real, fake = discs(BATCH, chance), draw(torch.randn(BATCH, NOISE))
        said, of_fake = judge(real), judge(fake.detach())
        judged = loss(said, torch.ones_like(said)) + loss(of_fake, torch.zeros_like(of_fake))
        judging.zero_grad()
        judged.backward()
        judging.step()

        said = judge(fake)
        drawn = loss(said, torch.ones_like(said))
        drawing.zero_grad()
        drawn.backward()
        drawing.step()

        if step % args.every == 0:
            fid.reset()
            with torch.no_grad():
                for first in range(0, args.images, BATCH):
                    fake = draw(torch.randn(min(BATCH, args.images - first), NOISE))
                    fid.update((fake + 1) / 2, real=False)
            log("critic", judged.item(), step)
            log("fid", fid.compute(), step)


if __name__ == "__main__":
    main()
