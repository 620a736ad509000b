"""Draws docs/images/radiomap.png: the demo's radio maps as five pretend models see them, and what Karat measures.

python docs/picture_radiomap.py
"""

from collections.abc import Sequence
from math import erf, sqrt
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from picture import HEADER, INK, MARGIN, PALE, PAPER, WIDTH, heat, measure, save, scale, title, write
from picture_pose import CELL, FINE, RULE, left, legend, place, ruled, shrunk

import karat
from karat.demo.floors import FLOORS, SIZE, floor
from karat.demo.radio import RANGE, RadioMap, radio_maps
from karat.demo.radiomap import GIVEN, MODELS, Forecast, predict
from karat.kernels.interpolate import BASELINES
from karat.run import Run

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]
Colour = tuple[int, int, int]

TITLE, CAPTION, TINY = 46, 38, 0.45
ROWS = slice(14, 146)  # of a map, in the picture
TALL = round(CELL * (ROWS.stop - ROWS.start) / SIZE)
WORST, SIGMAS, MOST = 24.0, 4.0, 24.0  # dB in maps of errors, standard deviations, dB in charts
OFFICE, TOWN = "office_0", "town_1"

LOW, MIDDLE, HIGH = (37, 99, 235), (250, 250, 248), (214, 48, 40)
GROUND, WALL, MAST = (247, 246, 242), (176, 180, 186), (255, 76, 66)
BINS: dict[str, Colour] = {
    "0-5": (13, 74, 92),
    "5-10": (16, 118, 132),
    "10-20": (38, 160, 146),
    "20-50": (122, 199, 151),
    "50+": (201, 226, 160),
}
REGIONS: dict[str, tuple[str, Colour]] = {
    "": ("all pixels", (148, 156, 168)),
    "building": ("in buildings", (148, 156, 168)),
    "free": ("in the open", (37, 99, 235)),
    "free_unobserved": ("open, not observed", (29, 68, 170)),
}
BANDS = (2.0, 5.0, 10.0)
BASELINE: Colour = (190, 60, 120)
FLAWS = {
    "truth": "known exactly",
    "calibrated": "as wrong as it says",
    "overconfident": "says half of it",
    "smooth": "sees no walls",
    "hopeful": "promises too much afar",
    "copycat": "knows the building map",
}


def main() -> None:
    maps = {one.name: one for name in FLOORS for one in radio_maps(floor(name, 0), 0)}
    guesses = {model: {name: predict(model, one, 0) for name, one in maps.items()} for model in MODELS}
    runs = {model: evaluated(maps, guess, GIVEN[model]) for model, guess in guesses.items()}
    kriging = {name: interpolated(one) for name, one in maps.items()}
    beaten = evaluated(maps, kriging, ("sparse_rss", "trajectory_mask"))
    rows = [
        (TALL, lambda page, y: received(page, y, "Town", maps[TOWN], guesses)),
        (TALL, lambda page, y: errors(page, y, maps[TOWN], guesses)),
        (TALL, lambda page, y: received(page, y, "Office", maps[OFFICE], guesses)),
        (TALL, lambda page, y: surprise(page, y, maps[OFFICE], guesses)),
        (150, lambda page, y: reliability(page, y, 150, runs)),
        (120, lambda page, y: distances(page, y, 120, runs)),
        (92, lambda page, y: regions(page, y, 92, runs, beaten)),
    ]
    height = HEADER + sum(TITLE + h + CAPTION for h, _ in rows) + MARGIN // 2
    page = np.full((height, WIDTH, 3), PAPER, np.uint8)
    for column, name in enumerate(FLAWS):
        write(page, name, (left(column), 52), 1.0, INK, bold=True)
    page[HEADER - 16 : HEADER - 14, MARGIN : WIDTH - MARGIN] = INK
    top = HEADER
    for h, draw in rows:
        draw(page, top)
        top += TITLE + h + CAPTION
    save(Path(__file__).parent / "images" / "radiomap.png", page)


def evaluated(maps: dict[str, RadioMap], guess: dict[str, Forecast], given: Sequence[str]) -> Run:
    return karat.evaluate(
        "radiomap",
        pred={name: one.mean for name, one in guess.items()},
        pred_std={name: one.std for name, one in guess.items()},
        truth={name: one.received for name, one in maps.items()},
        observed={name: one.observed for name, one in maps.items()},
        building={name: one.floor.building for name, one in maps.items()},
        free="value==0",
        inputs=given,
        workers=1,
    )


def interpolated(one: RadioMap) -> Forecast:
    mean = BASELINES["kriging"](np.argwhere(one.observed), one.received[one.observed], one.received.shape)
    return Forecast(mean, np.ones_like(mean), mean[None])


def received(page: Image, top: int, name: str, one: RadioMap, guesses: dict[str, dict[str, Forecast]]) -> None:
    title(page, top, name, f"what is received, from {RANGE[0]:.0f} to {RANGE[1]:.0f} dBm")
    if name == "Town":
        spectrum(page, top, cv2.COLORMAP_VIRIDIS, "-186", "-47 dBm")
    else:
        legend(page, top, [(MAST, "transmitter"), (PAPER, "observed")])
    seen = marked(signal(one.received), one)
    place(page, top, 0, seen, FLAWS["truth"] if name == "Town" else f"{one.observed.mean():.1%} observed")
    for column, (model, guess) in enumerate(guesses.items(), 1):
        caption = FLAWS[model]
        if name == "Office":
            caption = rmse(guess[one.name].mean - one.received)
        place(page, top, column, signal(guess[one.name].mean), caption)


def rmse(error: Floats) -> str:
    return f"RMSE {np.sqrt((error**2).mean()):.1f} dB"


def errors(page: Image, top: int, one: RadioMap, guesses: dict[str, dict[str, Forecast]]) -> None:
    title(page, top, "Error", "prediction less truth; the walk, and how far from it")
    spectrum(page, top, None, f"-{WORST:.0f}", f"+{WORST:.0f} dB")
    edges = np.searchsorted([5, 10, 20, 50], one.distance)
    zones = np.array(list(BINS.values()), np.uint8)[edges]
    image = enlarged(np.where(one.floor.building[..., None], zones // 3 * 2, zones), cv2.INTER_NEAREST)
    place(page, top, 0, marked(image, one), f"up to {one.distance.max():.0f} px away")
    for column, guess in enumerate(guesses.values(), 1):
        error = guess[one.name].mean - one.received
        image = outlined(signed(enlarged(error) / WORST), one)
        place(page, top, column, image, rmse(error))


def surprise(page: Image, top: int, one: RadioMap, guesses: dict[str, dict[str, Forecast]]) -> None:
    title(page, top, "Surprise", "the error in standard deviations that the model named")
    scale(page, top, "0", f"{SIGMAS:.0f} std")
    image = np.full((TALL, CELL, 3), GROUND, np.uint8)
    walls = enlarged(one.floor.building.astype(np.float64))
    image = np.uint8(image + (np.array(WALL) - GROUND) * walls.clip(0, 1)[..., None])
    place(page, top, 0, marked(image, one, dark=True), "calibrated: 68%, 95%")
    for column, guess in enumerate(guesses.values(), 1):
        mine = guess[one.name]
        z = np.abs(mine.mean - one.received) / mine.std
        within = f"{(z <= 1).mean():.0%} in 1 std, {(z <= 2).mean():.0%} in 2"
        place(page, top, column, heat(enlarged(z) / SIGMAS), within)


def reliability(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(
        page,
        top,
        "Reliability",
        "the share of errors within 0 to 3 std, over that of a normal distribution",
    )
    axis(page, top, height, ((1.0, "100%"), (0.5, "50%"), (0.0, "0%")))
    for column, run in enumerate(runs.values(), 1):
        curve = {0.0: 0.0, 1.0: 1.0}
        for name, score in run.scores.items():
            part, _, z = name.partition(":")
            if part == "fraction_within@z" and "@" not in z:
                curve[erf(float(z) / sqrt(2))] = score.value
        chart = ruled(height, np.arange(0, 1.01, 0.25))
        levels(chart, (0.0, 0.5))
        expected, found = (np.array(side) for side in zip(*sorted(curve.items()), strict=True))
        tall, wide = chart.shape[0] - 1, chart.shape[1] - 1
        points = np.rint(np.stack([expected * wide, (1 - found) * tall], axis=1)).astype(int)
        area = np.concatenate([points, [[0, tall]]])
        tint = chart.copy()
        cv2.fillPoly(tint, [np.concatenate([area[:-1], [[wide, 0], [0, tall]]])], (214, 231, 255))
        chart[:] = chart // 2 + tint // 2 + 1
        cv2.line(chart, (0, tall), (wide, 0), PALE, FINE, cv2.LINE_AA)
        cv2.polylines(chart, [points], False, LOW, 2 * FINE, cv2.LINE_AA)
        error, spread = (run.scores[name].value for name in ("calibration_error", "spread_skill"))
        place(page, top, column, shrunk(chart), f"error {error:.3f}   spread {spread:.2f}")


def distances(page: Image, top: int, height: int, runs: dict[str, Run]) -> None:
    title(page, top, "Error by distance", "RMSE by how far the nearest observation is, in pixels")
    legend(page, top, [(colour, name) for name, colour in BINS.items()])
    axis(page, top, height, tuple((at / MOST, f"{at} dB") for at in (24, 12, 0)))
    for column, run in enumerate(runs.values(), 1):
        chart = ruled(height, np.zeros(1))
        levels(chart, (0.0, 0.5))
        tall, step = chart.shape[0], chart.shape[1] / len(BINS)
        for i, (name, colour) in enumerate(BINS.items()):
            x0, x1 = round((i + 0.14) * step), round((i + 0.86) * step)
            far = run.scores[f"rmse@distance:{name}"].value
            chart[round((1 - min(far / MOST, 1)) * tall) :, x0:x1] = colour
        chart[-FINE:] = PALE
        near, far = (run.scores[f"rmse@distance:{name}"].value for name in ("0-5", "50+"))
        place(page, top, column, shrunk(chart), f"{near:.1f} dB near, {far:.1f} dB far")


def regions(page: Image, top: int, height: int, runs: dict[str, Run], beaten: Run) -> None:
    title(page, top, "Error by region", "lines at 2, 5 and 10 dB: excellent, good, moderate, beyond them poor")
    legend(page, top, [(BASELINE, "kriging, from the same observations")])
    step = height / len(REGIONS)
    for k, (label, _) in enumerate(REGIONS.values()):
        baseline = round(top + TITLE + (k + 0.5) * step + 5)
        write(page, label, (left(1) - 14 - measure(label, TINY), baseline), TINY, PALE)
    for column, run in enumerate(runs.values(), 1):
        chart = ruled(height, np.array([0.0, *BANDS]) / MOST)
        for k, (name, (_, colour)) in enumerate(REGIONS.items()):
            value, its = (one.scores[f"rmse@{name}" if name else "rmse"].value for one in (run, beaten))
            y0, y1 = round((k * step + 3) * FINE), round(((k + 1) * step - 3) * FINE)
            chart[y0:y1, FINE : round(min(value / MOST, 1) * (CELL - 1) * FINE)] = colour
            if its < MOST:
                x = round(its / MOST * (CELL - 1) * FINE)
                chart[y0 - FINE : y1 + FINE, x - 3 * FINE : x + 3 * FINE] = PAPER
                chart[y0 - FINE : y1 + FINE, x - FINE : x + FINE] = BASELINE
        overall, fair = (run.scores[name].value for name in ("rmse", "rmse@free_unobserved"))
        place(page, top, column, shrunk(chart), f"all {overall:.1f}   fair {fair:.1f} dB")


# Maps


def enlarged(field: NDArray[np.generic], how: int = cv2.INTER_CUBIC) -> NDArray[np.generic]:
    """The shown part of a map, as large as a cell."""
    return cv2.resize(field[ROWS], (CELL, TALL), interpolation=how)


def signal(field: Floats) -> Image:
    shares = (enlarged(field) - RANGE[0]) / (RANGE[1] - RANGE[0])
    return cv2.applyColorMap(np.uint8(255 * shares.clip(0, 1)), cv2.COLORMAP_VIRIDIS)[..., ::-1]


def signed(share: Floats) -> Image:
    """Blue below 0, red above, pale between."""
    share = share.clip(-1, 1)[..., None]
    ends = np.where(share < 0, np.array(LOW, float), np.array(HIGH, float))
    return np.uint8(MIDDLE + (ends - MIDDLE) * np.abs(share) ** 0.8)


def outlined(image: Image, one: RadioMap) -> Image:
    """With the outlines of buildings in thin grey."""
    inside = enlarged(one.floor.building.astype(np.float64)) > 0.5
    edge = cv2.morphologyEx(inside.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((2, 2), np.uint8)) > 0
    image[edge] = image[edge] * 0.55 + np.array(PALE) * 0.45
    return image


def marked(image: Image, one: RadioMap, dark: bool = False) -> Image:
    """With the observed pixels and the transmitter."""
    big = cv2.resize(image, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)
    zoom = 4 * CELL / SIZE

    def spot(row: int, column: int, radius: float, colour: Colour) -> None:
        at = ((column + 0.5) * zoom * 16, (row - ROWS.start + 0.5) * zoom * 16)
        cv2.circle(big, tuple(round(x) for x in at), round(radius * 64), colour, -1, cv2.LINE_AA, 4)

    for row, column in np.argwhere(one.observed).tolist():
        spot(row, column, 1.5, INK if dark else PAPER)
    for radius, colour in ((6.0, PAPER), (4.6, MAST)):
        spot(*one.transmitter, radius, colour)
    return cv2.resize(big, (CELL, TALL), interpolation=cv2.INTER_AREA)


# Charts


def axis(page: Image, top: int, height: int, marks: Sequence[tuple[float, str]]) -> None:
    """What heights of the charts mean, beside the first."""
    for share, label in marks:
        baseline = round(top + TITLE + (1 - share) * (height - 10) + 10)
        write(page, label, (left(1) - 14 - measure(label, TINY), baseline), TINY, PALE)


def levels(chart: Image, shares: Sequence[float]) -> None:
    """Lines at shares of the height, from the top."""
    for share in shares:
        y = round(share * len(chart))
        chart[y : y + FINE] = RULE


def spectrum(page: Image, top: int, colours: int | None, low: str, high: str) -> None:
    """The colours of a map between two labels, flush right; None is from too low to too high."""
    ramp = np.linspace(0, 1, 180)
    if colours is None:
        bar = signed(2 * ramp - 1)
    else:
        bar = cv2.applyColorMap(np.uint8(255 * ramp)[None], colours)[0, :, ::-1]
    x = WIDTH - MARGIN - measure(high, 0.66)
    write(page, high, (x, top + 34), 0.66, PALE)
    page[top + 18 : top + 36, x - 192 : x - 12] = bar
    x -= 192 + 12 + measure(low, 0.66)
    write(page, low, (x, top + 34), 0.66, PALE)


if __name__ == "__main__":
    main()
