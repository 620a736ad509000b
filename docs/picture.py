"""Draws docs/images/transfer.png: one frame of a demo scene as four models see it, and what Karat measures on it.

python docs/picture.py
"""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

import karat
from karat.demo.models import MODELS, Prediction
from karat.demo.scenes import Scene, film
from karat.demo.textures import PALETTE
from karat.kernels.edges import canny
from karat.kernels.ssim import ssim_map

Image = NDArray[np.uint8]
Colour = tuple[int, int, int]

WIDTH, CELL_H, CELL_W, MARGIN, GAP = 1600, 200, 300, 24, 13
HEADER, TITLE, CAPTION = 84, 50, 38
FRAMES, FRAME = 24, 17
WORST_DEPTH = 0.5
DITHER = 7

PAPER, INK, PALE = (255, 255, 255), (28, 32, 40), (104, 112, 124)
FOUND, INVENTED, MISSED = (80, 220, 120), (255, 76, 66), (84, 150, 255)
BACKGROUND, OTHERS = (34, 38, 46), {"person": (120, 196, 255), "pink": (240, 130, 190)}
FLAWS = {
    "sharp": "fine grain, warm cast",
    "soft": "blurred, ghosting",
    "drifting": "slides, loses the person",
    "haze": "fog, invents a balloon",
}


def main() -> None:
    scene = film(0, FRAMES, CELL_H, CELL_W, seed=0)
    guesses = {name: predict(scene, 0) for name, predict in MODELS.items()}
    bottom = HEADER + 5 * (TITLE + CELL_H + CAPTION) + MARGIN // 2
    page = np.full((bottom, WIDTH, 3), PAPER, np.uint8)
    for column, name in enumerate(["truth", *guesses]):
        write(page, name, (left(column), 52), 1.0, INK, bold=True)
    page[HEADER - 16 : HEADER - 14, MARGIN : WIDTH - MARGIN] = INK
    rows = [frames, edges, similarity, depth, segments]
    for top, draw in zip(range(HEADER, bottom, TITLE + CELL_H + CAPTION), rows, strict=False):
        draw(page, top, scene, guesses)
    save(Path(__file__).parent / "images" / "transfer.png", page)


def frames(page: Image, top: int, scene: Scene, guesses: dict[str, Prediction]) -> None:
    title(page, top, "Frame", "what each pretend model makes of it")
    place(page, top, 0, scene.frames[FRAME], "rendered, known exactly")
    for column, (name, guess) in enumerate(guesses.items(), 1):
        place(page, top, column, guess.frames[FRAME], FLAWS[name])


def edges(page: Image, top: int, scene: Scene, guesses: dict[str, Prediction]) -> None:
    metric = karat.CannyF1()
    gray = metric.inputs()["truth"].by

    def lines(clip: Image) -> NDArray[np.bool_]:
        return canny(gray(clip[FRAME][None])[0], metric.low, metric.high, metric.aperture, metric.norm == "l2")

    title(page, top, "Edges", f"Canny {metric.low:.0f} / {metric.high:.0f}, counted on the same pixel")
    legend(page, top, [(FOUND, "found"), (INVENTED, "invented"), (MISSED, "missed")])
    truth = lines(scene.frames)
    place(page, top, 0, painted(dimmed(scene.frames[FRAME]), [(truth, (255, 255, 255))]), "edges of the truth")
    for column, guess in enumerate(guesses.values(), 1):
        mine = lines(guess.frames)
        layers = [(truth & mine, FOUND), (mine & ~truth, INVENTED), (truth & ~mine, MISSED)]
        score = metric(guess.frames[FRAME][None], scene.frames[FRAME][None])
        place(page, top, column, painted(dimmed(guess.frames[FRAME]), layers), f"F1 {score['canny_f1_score']:.3f}")


def similarity(page: Image, top: int, scene: Scene, guesses: dict[str, Prediction]) -> None:
    metric = karat.BlurSSIM()
    blur = metric.inputs()["truth"].by
    truth = blur(scene.frames[FRAME][None])[0]
    title(page, top, "Blur SSIM", "structure that a bilateral blur leaves")
    scale(page, top, "1", "0")
    place(page, top, 0, truth, "blurred truth")
    for column, guess in enumerate(guesses.values(), 1):
        mine = blur(guess.frames[FRAME][None])[0]
        quality = ssim_map(mine, truth, window=metric.window, size=metric.size, data_range=float(metric.data_range))
        score = metric(guess.frames[FRAME][None], scene.frames[FRAME][None])
        place(page, top, column, heat(1 - quality), f"SSIM {score['blur_ssim']:.3f}")


def depth(page: Image, top: int, scene: Scene, guesses: dict[str, Prediction]) -> None:
    metric = karat.DepthRMSE()
    truth = scene.depth[FRAME]
    title(page, top, "Depth", "relative error after median scaling")
    scale(page, top, "0", f"{WORST_DEPTH:.0%}")
    near = 1 - np.log(truth / truth.min()) / np.log(truth.max() / truth.min())
    place(page, top, 0, heat(near), "true depth, near is bright")
    for column, guess in enumerate(guesses.values(), 1):
        mine = guess.depth[FRAME]
        error = np.abs(mine * (np.median(truth) / np.median(mine)) - truth) / truth
        score = metric(mine[None], truth[None])
        place(page, top, column, heat(error / WORST_DEPTH), f"RMSE {score['depth_si_rmse']:.2f} m")


def segments(page: Image, top: int, scene: Scene, guesses: dict[str, Prediction]) -> None:
    metric = karat.SegmentIoU()
    title(page, top, "Segments", "matched by overlap")
    names = max((guess.names for guess in guesses.values()), key=len)
    colours = [(OTHERS | PALETTE)[name.split()[0]] for name in names]
    table = np.array([BACKGROUND, *colours], np.uint8)
    legend(page, top, list(zip(colours, names, strict=True)))
    place(page, top, 0, table[scene.labels[FRAME]], f"{len(scene.names)} objects")
    for column, guess in enumerate(guesses.values(), 1):
        score = metric(guess.labels[FRAME][None], scene.labels[FRAME][None])
        found = f"IoU {score['seg_m_iou']:.3f}   recall {score['seg_recall']:.2f}"
        if score["seg_n_pred_unmatched"]:
            found += f"   {score['seg_n_pred_unmatched']:.0f} extra"
        place(page, top, column, table[guess.labels[FRAME]], found)


def dimmed(frame: Image) -> Image:
    """A dark grey ghost of ``frame``."""
    gray = cv2.cvtColor(cv2.GaussianBlur(frame, (0, 0), 1), cv2.COLOR_RGB2GRAY)
    return np.uint8(14 + gray[..., None] // 24 * 5).repeat(3, 2)


def painted(image: Image, layers: Sequence[tuple[NDArray[np.bool_], Colour]]) -> Image:
    for where, colour in layers:
        image[where] = colour
    return image


def heat(loss: NDArray[np.floating]) -> Image:
    """Dark where ``loss`` is 0, bright where it is 1 or more."""
    return cv2.applyColorMap(np.uint8(255 * np.clip(loss, 0, 1)), cv2.COLORMAP_INFERNO)[..., ::-1]


def left(column: int) -> int:
    return MARGIN + column * (CELL_W + GAP)


def place(page: Image, top: int, column: int, image: Image, caption: str) -> None:
    y, x = top + TITLE, left(column)
    page[y : y + CELL_H, x : x + CELL_W] = image
    write(page, caption, (x, y + CELL_H + 27), 0.66, INK if column else PALE)


def title(page: Image, top: int, name: str, about: str) -> None:
    end = write(page, name, (MARGIN, top + 34), 0.82, INK, bold=True)
    write(page, about, (end + 16, top + 34), 0.66, PALE)


def legend(page: Image, top: int, entries: Sequence[tuple[Colour, str]]) -> None:
    """Colour swatches with their meanings, flush right."""
    x = WIDTH - MARGIN
    for colour, meaning in reversed(entries):
        x -= measure(meaning, 0.66)
        write(page, meaning, (x, top + 34), 0.66, PALE)
        page[top + 18 : top + 36, x - 26 : x - 8] = colour
        x -= 26 + 24


def scale(page: Image, top: int, good: str, bad: str) -> None:
    """The colour bar of ``heat``, flush right."""
    x = WIDTH - MARGIN - measure(bad, 0.66)
    write(page, bad, (x, top + 34), 0.66, PALE)
    page[top + 18 : top + 36, x - 192 : x - 12] = heat(np.linspace(0, 1, 180)[None]).reshape(1, 180, 3)
    x -= 192 + 12 + measure(good, 0.66)
    write(page, good, (x, top + 34), 0.66, PALE)


FONT, FINE = cv2.FONT_HERSHEY_SIMPLEX, 4


def measure(text: str, size: float) -> int:
    return round(cv2.getTextSize(text, FONT, size * FINE, FINE)[0][0] / FINE)


def write(page: Image, text: str, at: tuple[int, int], size: float, ink: Colour, bold: bool = False) -> int:
    """Draw ``text`` with its baseline starting ``at`` x, y; returns where it ends. Drawn large and shrunk: smooth."""
    width, (x, y) = measure(text, size), at
    up, down = round(30 * size), round(12 * size)
    cover = np.zeros(((up + down) * FINE, (width + 8) * FINE), np.uint8)
    cv2.putText(cover, text, (FINE, up * FINE), FONT, size * FINE, 255, 8 if bold else 4, cv2.LINE_AA)
    share = cv2.resize(cover, None, fx=1 / FINE, fy=1 / FINE, interpolation=cv2.INTER_AREA)[..., None] / 255
    area = page[y - up : y + down, x : x + width + 8]
    share = share[:, : area.shape[1]]
    area[:] = np.rint(area * (1 - share) + np.array(ink) * share)
    return x + width


def sixbit(page: Image) -> NDArray[np.int32]:
    """One number (H, W) per pixel: its colour at six bits a channel."""
    red, green, blue = np.moveaxis((page.astype(np.int32) * 63 + 127) // 255, 2, 0)
    return red << 12 | green << 6 | blue


def save(path: Path, page: Image) -> None:
    """Write ``page`` as a PNG of 256 colours and slight ordered dither, a third of the size of full colour."""
    seen, counts = np.unique(sixbit(page), return_counts=True)
    points = (np.stack([seen >> 12, seen >> 6 & 63, seen & 63], 1) * (255 / 63)).astype(np.float32)
    cv2.setRNGSeed(0)
    often = points.repeat(np.sqrt(counts).clip(1, 40).astype(int), 0)
    stop = (cv2.TERM_CRITERIA_COUNT, 15, 0)
    _, _, palette = cv2.kmeans(often, 253, np.zeros(0, np.int32), stop, 1, cv2.KMEANS_PP_CENTERS)
    palette = np.rint(np.concatenate([palette, np.float32([PAPER, INK, BACKGROUND])]))
    tile = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 15 - 0.5
    noise = np.tile(DITHER * tile, (page.shape[0] // 4 + 1, page.shape[1] // 4 + 1))[: page.shape[0], : page.shape[1]]
    noise = noise[..., None] * (page != PAPER).any(2, keepdims=True)
    codes, place = np.unique(sixbit((page + noise).clip(0, 255).astype(np.uint8)), return_inverse=True)
    shades = (np.stack([codes >> 12, codes >> 6 & 63, codes & 63], 1) * (255 / 63)).astype(np.float32)
    nearest = ((palette**2).sum(1) - 2 * shades @ palette.T).argmin(1).astype(np.uint8)
    codes = nearest[place].reshape(page.shape[:2])
    height, width = codes.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), codes], 1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = palette.clip(0, 255).astype(np.uint8).tobytes()
    chunks = [(b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in chunks))


if __name__ == "__main__":
    main()
