"""Label maps in PNG: the stored numbers, not the colours or grey levels they are shown with."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from .headers import PNG_MAGIC, chunks
from .stream import Array


def stores_ids(data: bytes) -> bool:
    """Whether a decoder would show other numbers than the file stores: palettes, and grey of 1, 2 or 4 bits."""
    depth, colour = data[24], data[25]
    return colour == 3 or (colour == 0 and depth < 8)


def read_ids(data: bytes, name: str) -> Array:
    """The stored numbers (H, W) uint8.

    An indexed picture differs from a grey one in its header and palette only, so it is relabelled as
    grey and the native decoder does the rest; grey of few bits is then scaled back.
    """
    import cv2

    parts = [PNG_MAGIC]
    depth = data[24]
    for kind, start, end in chunks(data, name):
        body = data[start:end]
        if kind == b"IHDR":
            body = body[:9] + b"\0" + body[10:]
        if kind in (b"IHDR", b"IDAT", b"IEND"):
            crc = zlib.crc32(kind + body) if kind == b"IHDR" else int.from_bytes(data[end : end + 4], "big")
            parts.append(struct.pack(">I4s", len(body), kind) + body + struct.pack(">I", crc))
    image = cv2.imdecode(np.frombuffer(b"".join(parts), np.uint8), cv2.IMREAD_UNCHANGED)
    if image is None or image.ndim != 2:
        raise ValueError("the pixels do not decode")
    ids: Array = image // np.uint8(255 // ((1 << depth) - 1))
    return ids
