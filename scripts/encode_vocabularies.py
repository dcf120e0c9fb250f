"""Write the vocabulary tables of src/lading/tokens/tables from a litellm wheel.

    python scripts/encode_vocabularies.py litellm-1.109.1-cp310-abi3-manylinux_2_28_x86_64.whl

OpenAI publishes the vocabularies o200k_base and cl100k_base for tiktoken as lines of "base64 rank". The
litellm wheel carries both files under the names tiktoken's own cache gives them (SHA-1 of their address).
The files are compared with the SHA-256 that tiktoken expects, so it does not matter who carried them.

Ranks run from 0 without a gap, so the table needs no rank column: each token is one byte of length and its
bytes, in rank order, the whole compressed with LZMA.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import sys
import zipfile
from pathlib import Path

TABLES = Path(__file__).parents[1] / "src" / "lading" / "tokens" / "tables"
FOLDER = "litellm/litellm_core_utils/tokenizers"

VOCABULARIES = {
    "o200k": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        199_998,
    ),
    "cl100k": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        100_256,
    ),
}
"""Short name to: name in the wheel, SHA-256 of the published file, number of tokens."""


def encode(published: bytes, *, tokens: int) -> bytes:
    """The table of a published vocabulary. Stops with a message when ranks are not 0, 1, 2 ... ``tokens``."""
    rows = [line.split() for line in published.splitlines() if line]
    if [int(rank) for _, rank in rows] != list(range(tokens)):
        sys.exit(f"The ranks do not run from 0 to {tokens - 1} in order; this table format cannot hold them.")
    packed = bytearray()
    for text, _ in rows:
        token = base64.b64decode(text, validate=True)
        if not 0 < len(token) < 256:
            sys.exit(f"A token of {len(token)} bytes does not fit a length of one byte.")
        packed.append(len(token))
        packed += token
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]
    return lzma.compress(bytes(packed), format=lzma.FORMAT_XZ, check=lzma.CHECK_SHA256, filters=filters)


def main(wheel: str) -> None:
    """Write each table and say how large it is."""
    TABLES.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for name, (member, sha256, tokens) in VOCABULARIES.items():
            published = archive.read(f"{FOLDER}/{member}")
            if hashlib.sha256(published).hexdigest() != sha256:
                sys.exit(f"{member} in {wheel} is not the {name} vocabulary that tiktoken expects.")
            table = encode(published, tokens=tokens)
            (TABLES / f"{name}.xz").write_bytes(table)
            print(f"{name}: {tokens:,} tokens, {len(published):,} bytes published, {len(table):,} bytes written")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
