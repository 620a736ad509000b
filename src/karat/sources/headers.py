"""What a picture file declares, read from its header alone: checked before a decoder sees the file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .guard import check_sides, refusal

MAX_PAGES = 65536
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TIFF_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}


@dataclass(frozen=True)
class Picture:
    """format: png, jpeg, webp, bmp or tiff.  pages: (width, height, bytes per pixel) of each."""

    format: str
    pages: tuple[tuple[int, int, int], ...]


def inspect(data: bytes, name: str) -> Picture:
    """The picture's declaration; refuses what is no picture, cut off, or larger than the bounds."""
    kind, pages = _recognise(data, name)
    for width, height, pixel in pages:
        check_sides(name, width, height)
        if width * height * pixel > 1 << 30:
            raise refusal(
                name,
                f"declares {width}x{height} pixels of {pixel} bytes",
                "one frame may take at most 1 GiB",
                "check the file or scale it down",
            )
    return Picture(kind, tuple(pages))


def _recognise(data: bytes, name: str) -> tuple[str, list[tuple[int, int, int]]]:
    if data.startswith(PNG_MAGIC):
        return "png", [_png(data, name)]
    if data.startswith(b"\xff\xd8"):
        return "jpeg", [_jpeg(data, name)]
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp", [_webp(data, name)]
    if data.startswith(b"BM"):
        return "bmp", [_bmp(data)]
    if data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return "tiff", _tiff(data, name)
    raise refusal(name, "is no picture by its first bytes", "PNG, JPEG, WebP, BMP or TIFF was expected", "convert it")


def _cut_off(name: str) -> Exception:
    return refusal(name, "is cut off", "a complete picture was expected", "copy or write the file again")


def chunks(data: bytes, name: str) -> Iterator[tuple[bytes, int, int]]:
    """The chunks of a PNG as (type, start, end of its data), up to and with IEND."""
    place = len(PNG_MAGIC)
    while True:
        if place + 12 > len(data):
            raise _cut_off(name)
        length, kind = struct.unpack_from(">I4s", data, place)
        start = place + 8
        place = start + length + 4
        if place > len(data):
            raise _cut_off(name)
        yield kind, start, start + length
        if kind == b"IEND":
            return


def _png(data: bytes, name: str) -> tuple[int, int, int]:
    kind, start, end = next(chunks(data, name))
    if kind != b"IHDR" or end - start != 13:
        raise refusal(name, "does not start with an image header", "a PNG was expected", "write the file again")
    width, height, depth, colour = struct.unpack_from(">IIBB", data, start)
    check_sides(name, width, height)
    for _ in chunks(data, name):
        pass
    # The decoder expands palettes to colours and may add alpha.
    channels = {0: 1, 2: 3}.get(colour, 4)
    return width, height, channels * max(1, depth // 8)


def _jpeg(data: bytes, name: str) -> tuple[int, int, int]:
    place = 2
    while place + 9 <= len(data):
        if data[place] != 0xFF:
            break
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
            continue
        length = int.from_bytes(data[place + 2 : place + 4], "big")
        if marker in _SOF:
            height, width, channels = struct.unpack_from(">HHB", data, place + 5)
            # Thumbnails end before the frame header, so an end marker after it is the picture's own.
            if data.rfind(b"\xff\xd9") < place:
                raise _cut_off(name)
            return width, height, max(3, channels)
        if length < 2:
            break
        place += 2 + length
    raise _cut_off(name)


def _webp(data: bytes, name: str) -> tuple[int, int, int]:
    if len(data) < 30 or int.from_bytes(data[4:8], "little") + 8 > len(data):
        raise _cut_off(name)
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1, 4
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, 4
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF, 4


def _bmp(data: bytes) -> tuple[int, int, int]:
    (size,) = struct.unpack_from("<I", data, 14)
    if size == 12:
        width, height = struct.unpack_from("<HH", data, 18)
        return width, height, 4
    width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height), 4


def _tiff(data: bytes, name: str) -> list[tuple[int, int, int]]:
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    place = struct.unpack_from(order + "Q", data, 8)[0] if big else struct.unpack_from(order + "I", data, 4)[0]
    pages: list[tuple[int, int, int]] = []
    seen: set[int] = set()
    while place:
        if place in seen or len(pages) >= MAX_PAGES:
            raise refusal(name, "lists its pages in a circle", "a TIFF was expected", "write the file again")
        if place + 8 > len(data):
            raise _cut_off(name)
        seen.add(place)
        tags, place = _tiff_page(data, place, order, big)
        width, height = tags.get(256, [0])[0], tags.get(257, [0])[0]
        pixel = tags.get(277, [1])[0] * max(1, tags.get(258, [8])[0] // 8)
        offsets, sizes = tags.get(273, tags.get(324, [])), tags.get(279, tags.get(325, []))
        if any(offset + size > len(data) for offset, size in zip(offsets, sizes, strict=False)):
            raise _cut_off(name)
        pages.append((width, height, pixel))
    return pages


def _tiff_page(data: bytes, place: int, order: str, big: bool) -> tuple[dict[int, list[int]], int]:
    """The integer tags of one directory and where the next one is; struct.error where it is cut off."""
    count_code, entry_code, word, entry_size = ("Q", "HHQ", "Q", 20) if big else ("H", "HHI", "I", 12)
    (count,) = struct.unpack_from(order + count_code, data, place)
    place += struct.calcsize(order + count_code)
    tags: dict[int, list[int]] = {}
    for index in range(min(count, 65536)):
        at = place + index * entry_size
        tag, kind, number = struct.unpack_from(order + entry_code, data, at)
        at += struct.calcsize(order + entry_code)
        code = {1: "B", 3: "H", 4: "I", 16: "Q"}.get(kind)
        if code is None or not 0 < number <= len(data):
            continue
        if number * _TIFF_SIZES[kind] > struct.calcsize(order + word):
            (at,) = struct.unpack_from(order + word, data, at)
        tags[tag] = list(struct.unpack_from(f"{order}{number}{code}", data, at))
    (after,) = struct.unpack_from(order + word, data, place + count * entry_size)
    return tags, after
