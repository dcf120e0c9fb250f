"""What artifacts in files do, with and without fsync."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.errors import AddressError
from lading.stores.artifacts import FilesystemArtifacts, check_digest, is_digest

Maker = Callable[[Path], FilesystemArtifacts]
MAKERS: dict[str, Maker] = {
    "filesystem": lambda folder: FilesystemArtifacts(folder / "artifacts", tenant="acme", session="s1"),
    "filesystem, no fsync": lambda folder: FilesystemArtifacts(folder, tenant="acme", session="s1", fsync=False),
}
DIGEST = jsonbytes.digest(b"never put")
NOT_DIGESTS = [
    "",
    "ab",
    "..",
    "../../../etc/passwd",
    "/etc/passwd",
    DIGEST.upper(),
    DIGEST + "\n",
    DIGEST[:-1],
    DIGEST[:-1] + "٣",
    DIGEST[:-1] + "g",
    DIGEST[:-1] + "\x00",
    DIGEST[:31] + "/" + DIGEST[32:],
    "ab/" + DIGEST[3:],
]


@pytest.fixture(params=list(MAKERS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FilesystemArtifacts:
    return MAKERS[request.param](tmp_path)


@pytest.mark.parametrize("data", [b"", b"words", bytes(range(256)) * 4000])
def test_what_was_put_is_got_by_its_digest(store: FilesystemArtifacts, data: bytes) -> None:
    digest = store.put(data)
    assert digest == jsonbytes.digest(data)
    assert store.get(digest) == data
    assert digest in store


def test_putting_the_same_twice_changes_nothing(store: FilesystemArtifacts) -> None:
    assert store.put(b"same") == store.put(b"same")
    assert store.get(store.put(b"other")) == b"other"
    assert store.get(jsonbytes.digest(b"same")) == b"same"


def test_what_was_never_put_is_an_address_error(store: FilesystemArtifacts) -> None:
    assert DIGEST not in store
    with pytest.raises(AddressError, match=DIGEST):
        store.get(DIGEST)
    store.put(b"something else")
    with pytest.raises(AddressError, match=DIGEST):
        store.get(DIGEST)


@pytest.mark.parametrize("text", NOT_DIGESTS)
def test_what_is_not_a_digest_is_refused(store: FilesystemArtifacts, text: str) -> None:
    assert text not in store
    with pytest.raises(AddressError, match="does not name an artifact"):
        store.get(text)


@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from("0af./\\"), max_size=70))
def test_only_sixty_four_lower_case_hex_digits_are_a_digest(text: str) -> None:
    fits = len(text) == 64 and set(text) <= set("0123456789abcdef")
    assert is_digest(text) is fits
    if not fits:
        with pytest.raises(AddressError):
            check_digest(text)
