"""The public packages whose files the estimator is fitted to and measured on: names, versions, licences.

They are downloaded with pip into a folder outside the repository; nothing of them is kept in it.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A distribution on the package index. ``form`` is wheel or sdist."""

    name: str
    version: str
    form: str
    licence: str


class File(NamedTuple):
    """A file of a package: the package's name, the path inside it, and its bytes."""

    package: str
    path: str
    data: bytes


PACKAGES = (
    Package("bokeh", "3.9.2", "wheel", "BSD-3-Clause"),
    Package("botocore", "1.44.5", "wheel", "Apache-2.0"),
    Package("chardet", "5.2.0", "sdist", "LGPL-2.1-or-later"),
    Package("ckan", "2.12.0", "wheel", "AGPL-3.0"),
    Package("django", "5.2.8", "sdist", "BSD-3-Clause"),
    Package("emoji", "2.16.0", "wheel", "BSD-3-Clause"),
    Package("home-assistant-frontend", "20250109.2", "wheel", "Apache-2.0"),
    Package("horizon", "27.0.0", "wheel", "Apache-2.0"),
    Package("jpype1", "1.7.1", "sdist", "Apache-2.0"),
    Package("jupyter-server", "2.21.1", "sdist", "BSD-3-Clause"),
    Package("kolibri", "0.19.5", "wheel", "MIT"),
    Package("konlpy", "0.6.0", "wheel", "GPL-3.0-or-later"),
    Package("markdown-it-py", "4.3.0", "sdist", "MIT"),
    Package("mlflow-skinny", "3.17.2", "sdist", "Apache-2.0"),
    Package("newspaper4k", "0.9.6", "sdist", "MIT"),
    Package("openai", "3.54.0", "sdist", "Apache-2.0"),
    Package("pgadmin4", "9.18", "wheel", "PostgreSQL"),
    Package("plone-app-locales", "7.0.4", "wheel", "GPL-2.0"),
    Package("psutil", "7.1.3", "sdist", "BSD-3-Clause"),
    Package("sphinx", "9.0.4", "sdist", "BSD-2-Clause"),
    Package("statsmodels", "0.15.0", "wheel", "BSD-3-Clause"),
    Package("trafilatura", "2.3.1", "sdist", "Apache-2.0"),
    Package("vega-datasets", "0.9.0", "wheel", "MIT"),
    Package("wagtail", "8.0.1", "wheel", "BSD-3-Clause"),
    Package("weblate", "5.14.3", "wheel", "GPL-3.0-or-later"),
    Package("whatthepatch", "1.0.7", "sdist", "MIT"),
)

OLDER = (
    Package("django", "4.2.20", "wheel", "BSD-3-Clause"),
    Package("wagtail", "6.0", "wheel", "BSD-3-Clause"),
)
"""Earlier versions, for the differences between files."""

_LARGEST_FILE_BYTES = 4_000_000


def fetch(package: Package, cache: Path) -> Path:
    """The archive of a package in the cache folder, downloaded on the first call. Raises CalledProcessError
    when pip cannot find it."""
    folder = cache / f"{package.name}-{package.version}"
    if not (folder.is_dir() and any(folder.iterdir())):
        form = ["--no-binary", package.name]
        if package.form == "wheel":
            form = ["--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]
        wanted = f"{package.name}=={package.version}"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            *form,
            "--dest",
            str(folder),
            wanted,
        ]
        subprocess.run(pip, check=True)
    return next(item for item in folder.iterdir() if item.suffix in (".whl", ".gz", ".zip"))


def files(package: Package, cache: Path) -> Iterator[File]:
    """The files of a package, in the order of their paths; none of several megabytes."""
    archive = fetch(package, cache)
    if archive.suffix == ".gz":
        with tarfile.open(archive) as tar:
            for member in sorted(tar.getmembers(), key=lambda item: item.name):
                if member.isfile() and member.size <= _LARGEST_FILE_BYTES and (stream := tar.extractfile(member)):
                    yield File(package.name, member.name.partition("/")[2], stream.read())
    else:
        with zipfile.ZipFile(archive) as wheel:
            for item in sorted(wheel.infolist(), key=lambda item: item.filename):
                if not item.is_dir() and item.file_size <= _LARGEST_FILE_BYTES:
                    yield File(package.name, item.filename, wheel.read(item))
