from __future__ import annotations

import base64
import hashlib

import pytest

from lading.shrink import Target
from lading.shrink.blobs import SHRINKER, describe_file
from lading.tokens.estimate import ESTIMATE

NOISE = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(60))
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4) + NOISE
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    + b"\xff\xc4\x00\x04\0\0\xff\xc0\x00\x11\x08"
    + (100).to_bytes(2)
    + (200).to_bytes(2)
    + NOISE
)


def reduced(text: str, most_tokens: int = 300, *terms: str) -> str:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "blob.notes"
    return shrunk.text


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "PNG image, 640 x 480 pixels"),
        (PNG[:20], "PNG image"),
        (JPEG, "JPEG image, 200 x 100 pixels"),
        (b"\xff\xd8\xff\xe0\xff\xff" + NOISE, "JPEG image"),
        (b"GIF89a\x10\0\x20\0" + NOISE, "GIF image, 16 x 32 pixels"),
        (b"RIFF\0\0\0\0WEBP", "WebP image"),
        (b"RIFF\0\0\0\0none", ""),
        (b"\0\0\0\x18ftypmp42", "MP4 or HEIF"),
        (b"%PDF-1.7", "PDF"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"tea", ""),
        (b"", ""),
    ],
)
def test_files_are_known_by_how_they_start(data: bytes, kind: str) -> None:
    assert describe_file(data) == kind


def test_base64_becomes_a_note_and_the_text_around_it_stays() -> None:
    text = f'A picture:\n<img src="data:image/png;base64,{base64.b64encode(PNG).decode()}">\nof tea'
    note = f"[base64 left out: PNG image, 640 x 480 pixels, {len(PNG):,} bytes, sha256 {digest(PNG)}]"
    assert reduced(text).split("\n")[1:] == ["A picture:", f'<img src="data:image/png;base64,{note}">', "of tea"]


def test_wrapped_and_url_safe_base64_are_read() -> None:
    text = f"-----BEGIN-----\n{base64.encodebytes(JPEG).decode()}-----END-----\n"
    assert f"JPEG image, 200 x 100 pixels, {len(JPEG):,} bytes, sha256 {digest(JPEG)}]\n-----END" in reduced(text)
    bare = base64.urlsafe_b64encode(NOISE).decode().rstrip("=")
    assert f"[base64 left out: {len(NOISE):,} bytes, sha256 {digest(NOISE)}]" in reduced(f"token={bare}")


def test_base64_that_was_cut_is_still_described() -> None:
    cut = base64.b64encode(PNG).decode()[:1001]
    assert "[base64 left out: PNG image, 640 x 480 pixels, 750 bytes, " in reduced(f"start {cut}")


def test_hex_and_text_inside_are_told() -> None:
    assert f"[hex left out: {len(NOISE):,} bytes, sha256 {digest(NOISE)}]" in reduced(NOISE.hex())
    words = base64.b64encode(b'{"tea": "cup"}' * 60).decode()
    assert """[base64 left out: text '{"tea": "cup"}{"tea": "cup"}""" in reduced(words)


def test_bytes_that_are_no_text_become_a_note_but_for_lines_with_terms() -> None:
    lost = ("%PDF-1.7 \0\1\2\3\4\5\6\7" + NOISE.decode("utf-8", "replace")).replace("\n", "")
    shown = reduced(f"before\n{lost}\nafter\n{NOISE.decode('utf-8', 'replace')}zebra\n", 900, "zebra").split("\n")
    assert shown[1:4] == ["before", f"[bytes left out: PDF, {len(lost):,} characters]", "after"]
    assert shown[-1].endswith("zebra")
    png = PNG.decode("utf-8", "replace")
    assert f"[bytes left out: PNG image, {len(png) - 1:,} characters]" in reduced(png)


def test_rulers_and_digests_are_no_blobs() -> None:
    digests = "\n".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(40))
    for text in ("=" * 2000, "-" * 2000, "01101" * 400 + "bitsdone", digests):
        assert SHRINKER.reduce(text, Target(100), ESTIMATE.count) is None


def test_nothing_is_lossless() -> None:
    assert list(SHRINKER.reshape(NOISE.hex())) == []
    with pytest.raises(ValueError, match=r"blob\.notes"):
        SHRINKER.decode("tea", "blob.notes")
