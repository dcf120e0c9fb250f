#!/bin/sh
# Runs the test suite on each interpreter given that exists here, each in an environment of its own.
#
# usage: scripts/test_pythons.sh INTERPRETER...
set -eu

cd "$(dirname "$0")/.."

tested=''
missing=''
for interpreter in "$@"; do
    if ! version=$("$interpreter" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
        missing="$missing $interpreter"
        continue
    fi
    echo "== Python $version ($interpreter)"
    "${MAKE:-make}" test PYTHON="$interpreter" VENV=".venv-$version"
    tested="$tested $version"
done

[ -z "$missing" ] || echo "Not found, not tested:$missing" >&2
if [ -z "$tested" ]; then
    echo "No interpreter was found; name some: make test-all-pythons PYTHONS='/path/to/python3.11 ...'" >&2
    exit 1
fi
echo "Tested on:$tested"
