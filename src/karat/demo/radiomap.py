"""Pretend models of radio maps, each wrong in one recognisable way; their files; their scores side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from karat.demo.floors import FLOORS, Doubles, Rng, floor
from karat.demo.radio import RadioMap, grain, radio_maps, sixty_fourths
from karat.evaluation import evaluate
from karat.kernels.distance import blurred
from karat.run import Run

SAMPLES = 8
GIVEN = {
    "calibrated": ("building_map", "sparse_rss", "trajectory_mask"),
    "overconfident": ("building_map", "sparse_rss", "trajectory_mask"),
    "smooth": ("sparse_rss", "trajectory_mask"),
    "hopeful": ("sparse_rss", "trajectory_mask"),
    "copycat": ("building_map", "sparse_rss"),
}
"""What each model pretends to have been given."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a model answers."""

    mean: Doubles
    """(H, W) dBm."""
    std: Doubles
    """(H, W) dB."""
    samples: Doubles
    """(N, H, W) dBm, of this mean and standard deviation."""


def calibrated(truth: RadioMap, rng: Rng) -> tuple[Doubles, Doubles]:
    """Errors grow away from the walk, and are drawn from the normal distribution that the model names."""
    std = sixty_fourths(0.75 + 9.0 * (1 - np.exp(-truth.distance / 50)))
    return truth.received + std * grain(rng, 2.0), std


def overconfident(truth: RadioMap, rng: Rng) -> tuple[Doubles, Doubles]:
    """The same maps, said to be twice as good as they are."""
    mean, std = calibrated(truth, rng)
    return mean, std / 2


def smooth(truth: RadioMap, rng: Rng) -> tuple[Doubles, Doubles]:
    """Sees no walls: what is received runs smoothly through them. Equally unsure of everything."""
    return blurred(truth.received, 6.0) + 0.5 * grain(rng, 3.0), np.full(truth.received.shape, 6.0)


def hopeful(truth: RadioMap, rng: Rng) -> tuple[Doubles, Doubles]:
    """Right along the walk, and the farther from it the more it promises."""
    hope = 14.0 * (1 - np.exp(-truth.distance / 25))
    return truth.received + hope + 1.5 * grain(rng, 2.0), 1.5 + 0.25 * hope


def copycat(truth: RadioMap, rng: Rng) -> tuple[Doubles, Doubles]:
    """Knows what buildings swallow, and paints all open ground alike. May be far off, it says, everywhere."""
    open_ground = np.where(truth.floor.building, truth.received, truth.received[truth.observed].mean())
    return open_ground + grain(rng, 2.0), np.full(truth.received.shape, 30.0)


MODELS: dict[str, Callable[[RadioMap, Rng], tuple[Doubles, Doubles]]] = {
    "calibrated": calibrated,
    "overconfident": overconfident,
    "smooth": smooth,
    "hopeful": hopeful,
    "copycat": copycat,
}


def predict(model: str, truth: RadioMap, seed: int) -> Forecast:
    """What a model makes of a map. The draws are those of the map, so that two models may make the same errors."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *truth.name.encode(), 1])))
    mean, std = MODELS[model](truth, rng)
    samples = mean + std * np.stack([grain(rng, 2.0) for _ in range(SAMPLES)])
    return Forecast(sixty_fourths(mean), sixty_fourths(std), sixty_fourths(samples))


def write(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Write the truth and every model's predictions, a file a map: their folders by name.

    `truth` (float32, npy), `observed` (boolean, npy) and `building` (png, 255 where one stands); a model's folder holds
    `pred`, `std` and `samples` (float32, npy).
    """
    places = {name: folder / name for name in ("truth", "observed", "building")}
    places |= {model: folder / "models" / model for model in MODELS}
    for name, place in places.items():
        for within in ("pred", "std", "samples") if name in MODELS else ("",):
            (place / within).mkdir(parents=True, exist_ok=True)
    for name in FLOORS:
        for truth in radio_maps(floor(name, seed), seed):
            np.save(places["truth"] / f"{truth.name}.npy", truth.received.astype(np.float32))
            np.save(places["observed"] / f"{truth.name}.npy", truth.observed)
            cv2.imwrite(str(places["building"] / f"{truth.name}.png"), 255 * truth.floor.building.astype(np.uint8))
            for model in MODELS:
                guess = predict(model, truth, seed)
                for within, maps in (("pred", guess.mean), ("std", guess.std), ("samples", guess.samples)):
                    np.save(places[model] / within / f"{truth.name}.npy", maps.astype(np.float32))
    return places


def run(folder: Path, workers: int | None = None) -> dict[str, Run]:
    """Writes the maps under `folder`, evaluates every model against the truth, keeps the runs under `folder`/runs."""
    places = write(folder)
    return {
        model: evaluate(
            "radiomap",
            pred=places[model] / "pred",
            pred_std=places[model] / "std",
            pred_samples=places[model] / "samples",
            truth=places["truth"],
            observed=places["observed"],
            building=places["building"],
            free="value==0",
            group_by="building",
            inputs=GIVEN[model],
            units="dBm",
            out=folder / "runs" / model,
            workers=workers,
        )
        for model in MODELS
    }
