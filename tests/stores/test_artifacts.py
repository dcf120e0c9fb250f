"""Artifacts as files, against real files that somebody planted, broke or took away."""

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from lading import jsonbytes
from lading.errors import AddressError, StoreError, TamperedError
from lading.stores.artifacts import FilesystemArtifacts

DATA = b"the whole output of a tool"
DIGEST = jsonbytes.digest(DATA)


def artifacts(root: Path, tenant: str = "acme", session: str = "s1") -> FilesystemArtifacts:
    return FilesystemArtifacts(root, tenant=tenant, session=session)


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if not path.is_dir() or path.is_symlink())


def kept(root: Path) -> Path:
    """The one file below the root."""
    (path,) = files(root)
    return path


def test_the_file_is_named_by_its_digest_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    artifacts(tmp_path / "a").put(DATA)
    path = kept(tmp_path / "a")
    assert path.parent.name + path.name == DIGEST
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in list(path.parents)[:3]] == [0o700] * 3
    assert path.read_bytes() == DATA


def test_another_value_over_the_same_folder_reads_it(tmp_path: Path) -> None:
    artifacts(tmp_path).put(DATA)
    assert artifacts(tmp_path).get(DIGEST) == DATA


def test_nothing_is_made_before_the_first_put(tmp_path: Path) -> None:
    store = artifacts(tmp_path / "a")
    assert DIGEST not in store
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("tenant", "session"), [("other", "s1"), ("acme", "s2"), ("ACME", "s1"), ("s1", "acme"), ("acme-s1", "x")]
)
def test_another_scope_does_not_see_it(tmp_path: Path, tenant: str, session: str) -> None:
    artifacts(tmp_path).put(DATA)
    stranger = artifacts(tmp_path, tenant, session)
    assert DIGEST not in stranger
    with pytest.raises(AddressError, match=f"artifact://{tenant}/{session}/blob/{DIGEST}"):
        stranger.get(DIGEST)
    stranger.put(DATA)
    assert len({path.parents[1].name.lower() for path in files(tmp_path)}) == 2


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "a\x00b", "é", "a b"])
def test_an_odd_tenant_or_session_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AddressError):
        artifacts(tmp_path, tenant=name)
    with pytest.raises(AddressError):
        artifacts(tmp_path, session=name)
    assert files(tmp_path) == []


@pytest.mark.parametrize("content", [b"", DATA[:-1], DATA[:-1] + b"!", DATA * 2])
def test_changed_content_is_noticed_by_get_and_put(tmp_path: Path, content: bytes) -> None:
    artifacts(tmp_path).put(DATA)
    kept(tmp_path).write_bytes(content)
    with pytest.raises(TamperedError, match=f"artifact://acme/s1/blob/{DIGEST}"):
        artifacts(tmp_path).get(DIGEST)
    with pytest.raises(TamperedError):
        artifacts(tmp_path).put(DATA)
    assert kept(tmp_path).read_bytes() == content


def test_a_file_taken_away_points_nowhere(tmp_path: Path) -> None:
    artifacts(tmp_path).put(DATA)
    kept(tmp_path).unlink()
    with pytest.raises(AddressError, match="points nowhere"):
        artifacts(tmp_path).get(DIGEST)


def link_to_file(path: Path, outside: Path) -> None:
    (outside / "secret").write_bytes(DATA)
    path.symlink_to(outside / "secret")


def broken_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "not there")


def pipe(path: Path, outside: Path) -> None:
    assert outside.is_dir()
    os.mkfifo(path)


def folder(path: Path, outside: Path) -> None:
    assert outside.is_dir()
    path.mkdir()


@pytest.mark.parametrize("plant", [link_to_file, broken_link, pipe, folder])
def test_what_is_planted_in_place_of_an_artifact_is_not_read(
    tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    store = artifacts(tmp_path / "a")
    store.put(DATA)
    path = kept(tmp_path / "a")
    path.unlink()
    plant(path, outside)
    before = files(outside)
    for use in (lambda: store.get(DIGEST), lambda: store.put(DATA)):
        with pytest.raises(TamperedError, match="remove it"):
            use()
    assert files(outside) == before


@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_replaced_by_a_link_is_not_followed(tmp_path: Path, level: int) -> None:
    store = artifacts(tmp_path / "a")
    store.put(DATA)
    replaced = kept(tmp_path / "a").parents[level]
    moved = tmp_path / "elsewhere"
    replaced.rename(moved)
    replaced.symlink_to(moved)
    before = [(path, path.stat().st_mtime_ns) for path in files(moved)]
    for use in (lambda: store.get(DIGEST), lambda: store.put(DATA)):
        with pytest.raises(TamperedError):
            use()
    assert [(path, path.stat().st_mtime_ns) for path in files(moved)] == before


def test_a_link_that_appears_between_looking_and_opening_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = artifacts(tmp_path)
    store.put(DATA)
    path = kept(tmp_path)
    honest = path.lstat()
    (tmp_path / "secret").write_bytes(DATA)
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    looked = os.lstat
    monkeypatch.setattr(os, "lstat", lambda place: honest if place == path else looked(place))
    with pytest.raises(StoreError, match=os.strerror(errno.ELOOP)):
        store.get(DIGEST)


def test_a_root_whose_parent_is_missing_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        artifacts(tmp_path / "missing" / "a").put(DATA)
    assert files(tmp_path) == []


def test_a_root_that_is_a_file_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(StoreError, match="Not a directory"):
        artifacts(tmp_path / "a").put(DATA)
    assert (tmp_path / "a").read_text() == "mine"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow above a size, as on a disk that is nearly full."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    store = artifacts(tmp_path)
    big = DATA * 10_000
    with largest_file(1000), pytest.raises(StoreError, match="free space"):
        store.put(big)
    assert files(tmp_path) == []
    assert jsonbytes.digest(big) not in store
    assert store.get(store.put(big)) == big


def test_many_writers_of_the_same_bytes_agree(tmp_path: Path) -> None:
    big = DATA * 5_000
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(lambda _: artifacts(tmp_path).put(big), range(32)))
    assert digests == {jsonbytes.digest(big)}
    assert kept(tmp_path).read_bytes() == big
