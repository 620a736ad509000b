"""Reading what users bring: videos, images, arrays and masks become streams of frames, folders become samples."""

from .fingerprint import digest
from .kinds import KINDS, Kind, open_stream
from .pairing import collect
from .segments import decode_rle
from .stream import Stream, select
from .video import count_packets

__all__ = ["KINDS", "Kind", "Stream", "collect", "count_packets", "decode_rle", "digest", "open_stream", "select"]
