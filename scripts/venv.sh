#!/bin/sh
# Makes the virtual environment FOLDER with Lading (editable) and its development tools.
#
# usage: scripts/venv.sh FOLDER [INTERPRETER]
#
# Needs only Python 3.11 or newer and a package index; uses uv where it is on the PATH.
set -eu

folder=${1:?usage: scripts/venv.sh FOLDER [INTERPRETER]}
wanted=${2:-}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

make_environment() {
    if command -v uv >/dev/null 2>&1 &&
        uv venv --quiet --clear --python "$1" "$folder" &&
        uv pip install -qq --python "$folder/bin/python" --editable . --group dev; then
        return 0
    fi
    rm -rf "$folder"
    "$1" -m venv "$folder" || return 1
    # Groups of pyproject.toml are known to pip from 25.1 on.
    "$folder/bin/python" -m pip install -qq --upgrade 'pip>=25.1' || return 1
    "$folder/bin/python" -m pip install -qq --editable . --group dev
}

cd "$(dirname "$0")/.."

found=no
for interpreter in ${wanted:-python3.13 python3.12 python3.11 python3 python3.14 python}; do
    is_new_enough "$interpreter" || continue
    found=yes
    echo "Making $folder with $interpreter ($("$interpreter" -c 'import platform; print(platform.python_version())'))"
    if make_environment "$interpreter"; then
        exit 0
    fi
    echo "$interpreter could not make $folder; the lines above say why." >&2
done

rm -rf "$folder"
if [ "$found" = no ]; then
    echo "No Python 3.11 or newer was found (looked for: ${wanted:-python3.13, 3.12, 3.11, python3, 3.14, python})." >&2
    echo "Install one, or name it: make test PYTHON=/path/to/python" >&2
else
    echo "Nothing could be installed. Is the package index reachable? Does Python have its venv module" >&2
    echo "(on Debian and Ubuntu: the package python3-venv)? Name another: make test PYTHON=/path/to/python" >&2
fi
exit 1
