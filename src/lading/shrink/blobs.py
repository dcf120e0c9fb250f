"""Replace base64, hex and binary bytes by notes with their type and size; keep the text around them."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from itertools import groupby

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.line_selection import Rank, RankedLine, RankedLines, rank_lines, select_lines, split_lines

_LEAST_CHARS = 300
_ANY_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{{_LEAST_CHARS},}}")
_READABLE = bytes({*range(0x20, 0x100), *b"\t\n\r\f\x1b"})
"""The bytes of UTF-8 other than control characters."""
_LETTERS = "A-Za-z0-9+/_-"
_RUN = re.compile(
    rf"(?<![{_LETTERS}])(?:[{_LETTERS}]{{{_LEAST_CHARS},}}|(?:[{_LETTERS}]{{48,}}\r?\n){{3,}}[{_LETTERS}]*)={{0,2}}"
)
"""Encoded data on one line, or wrapped. It matches only at the start of a run; otherwise it would be slow."""
_HEX = re.compile(r"[0-9A-Fa-f\r\n]+")
_LOST_SHARE = 0.1
_DIGEST_CHARS = frozenset({56, 64, 96, 128})
"""Lengths of digests in hex: lines of these lengths are kept."""

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"BM", "BMP image"),
    (b"%PDF-", "PDF"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\x7fELF", "ELF binary"),
    (b"MZ", "Windows binary"),
    (b"\x00asm", "WebAssembly"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"OggS", "Ogg"),
    (b"ID3", "MP3"),
    (b"fLaC", "FLAC"),
    (b"wOF2", "WOFF2 font"),
    (b"wOFF", "WOFF font"),
    (b"\x30\x82", "DER, such as a certificate or a key"),
)
"""The first bytes of a file, and the name of its type."""
_RIFF = {b"WEBP": "WebP image", b"WAVE": "WAV", b"AVI ": "AVI"}
_LEAST_LETTERS = 8
"""A run with fewer different characters is a ruler or filler."""
_MOST_BITS_SHARE = 0.9
"""A run with a higher share of zeros and ones is a binary number."""
_SHOWN_CHARS = 60
_NOTE = " left out: "
_MOST_JPEG_SEGMENTS = 64


def _is_blob(sample: Sample) -> bool:
    """Whether the text is mostly base64 or has binary bytes."""
    # The pattern may start anywhere, which is slow, and few texts have a word this long.
    longest = max(map(len, sample.head.split()), default=0)
    runs = sum(map(len, _ANY_RUN.findall(sample.head))) if longest >= _LEAST_CHARS else 0
    return runs > len(sample.head) / 2 or _is_unreadable(sample.head, share=0.05)


def _is_unreadable(text: str, *, share: float) -> bool:
    """Whether more than that share of the text are control characters or undecodable bytes."""
    controls = text.encode("utf-8", "surrogatepass").translate(None, _READABLE)
    return len(controls) + text.count("\ufffd") > len(text) * share


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    bare = _RUN.sub(_describe_run, text)
    texts = split_lines(bare)
    ranks = [
        Rank.ERROR if _NOTE in line and rank > Rank.ERROR else rank
        for line, rank in zip(texts, rank_lines(texts, target.terms), strict=True)
    ]
    lines = RankedLines(texts, ranks, "blob.notes")
    rows: list[RankedLine] = []
    for is_lost, run in groupby(lines.to_rows(), key=_is_lost):
        group = list(run)
        note = _describe_bytes("\n".join([line.text for line in group])) if is_lost else ""
        rows += [RankedLine(note, Rank.ERROR, len(group))] if is_lost else group
    if bare == text and [row.text for row in rows] == texts:
        return None
    return select_lines(text, lines.with_rows(rows), target=target, count=count)


SHRINKER = Shrinker("blob", _is_blob, _reduce)


def _is_lost(line: RankedLine) -> bool:
    return line.rank >= Rank.END and _is_unreadable(line.text, share=_LOST_SHARE)


def describe_file(data: bytes) -> str:
    """Describe the type of a file by its first bytes, with the size of images in pixels; empty when unknown."""
    kind = next((kind for start, kind in MAGIC if data.startswith(start)), "")
    if data.startswith(b"RIFF"):
        kind = _RIFF.get(data[8:12], "")
    if data[4:8] == b"ftyp":
        kind = "MP4 or HEIF"
    size = _read_image_size(data)
    return f"{kind}, {size[0]} x {size[1]} pixels" if size else kind


def _read_image_size(data: bytes) -> tuple[int, int] | None:
    """Read width and height of a PNG, GIF or JPEG."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data.startswith(b"GIF8") and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    place = 2 if data.startswith(b"\xff\xd8") else len(data)
    for _ in range(_MOST_JPEG_SEGMENTS):
        if place + 9 > len(data) or data[place] != 0xFF:
            break
        # Frames start with C0 to CF, except C4, C8 and CC, which are tables.
        if data[place + 1] in range(0xC0, 0xD0) and data[place + 1] not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(data[place + 7 : place + 9]), int.from_bytes(data[place + 5 : place + 7])
        place += 2 + int.from_bytes(data[place + 2 : place + 4])
    return None


def _describe_run(found: re.Match[str]) -> str:
    run = found[0]
    letters = "".join(run.split())
    first_line = run.split(maxsplit=1)[0]
    is_hex = _HEX.fullmatch(run) is not None
    bits = letters.count("0") + letters.count("1")
    is_plain = len(set(letters)) < _LEAST_LETTERS or bits > _MOST_BITS_SHARE * len(letters)
    if is_plain or (is_hex and "\n" in run and len(first_line) in _DIGEST_CHARS):
        return run
    data = bytes.fromhex(letters[: len(letters) // 2 * 2]) if is_hex else _decode_base64(letters)
    # A wrapped run may include the end of its last line, which is kept.
    end = run[len(run.rstrip("\r\n")) :]
    return f"[{'hex' if is_hex else 'base64'} left out: {_describe(data)}]{end}"


def _decode_base64(letters: str) -> bytes:
    bare = letters.rstrip("=").replace("-", "+").replace("_", "/")
    bare = bare[:-1] if len(bare) % 4 == 1 else bare
    return b64decode(bare + "=" * (-len(bare) % 4))


def _describe(data: bytes) -> str:
    start = data[:_SHOWN_CHARS]
    kind = describe_file(data)
    if not kind and start.isascii() and not _is_unreadable(start.decode(), share=_LOST_SHARE):
        kind = f"text {start.decode()!r}"
    digest = hashlib.sha256(data).hexdigest()[:12]
    return ", ".join(piece for piece in (kind, f"{len(data):,} bytes", f"sha256 {digest}") if piece)


def _describe_bytes(text: str) -> str:
    starts = ((start.decode("utf-8", "replace").replace("\r\n", "\n"), kind) for start, kind in MAGIC)
    kind = next((kind for start, kind in starts if text.startswith(start)), "no text")
    return f"[bytes left out: {kind}, {len(text):,} characters]"
