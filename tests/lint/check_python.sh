#!/usr/bin/env bash
# Checks the Python package by ruff and mypy, as worker/python/pyproject.toml says.
#
# usage: check_python.sh [ROOT]
#
# Skipped without them: deploy/install-dependencies --viewers brings them.
set -u

cd "${1:-$(dirname "$0")/../..}/worker/python" || exit 2

# Of the command's name: where it is, or "".
find_tool()
{
    local found path
    found=$(command -v "$1")
    for path in "${XDG_CACHE_HOME:-$HOME/.cache}"/ringside-python/"$1"==*/bin/"$1"; do
        if [ -z "$found" ] && [ -x "$path" ]; then
            found=$path
        fi
    done
    printf '%s' "$found"
}

ruff=$(find_tool ruff)
mypy=$(find_tool mypy)
if [ -z "$ruff" ] || [ -z "$mypy" ]; then
    echo "skipped: there is no ${ruff:-ruff}${mypy:+ }${mypy:- or no mypy} (deploy/install-dependencies --viewers)"
    exit 77
fi

failed=0
"$ruff" check --no-cache --quiet . || failed=1
"$ruff" format --no-cache --check --quiet . || failed=1
PYTHONPATH=$(dirname "$(dirname "$mypy")") "$mypy" --cache-dir=/dev/null --no-error-summary ringside || failed=1
exit "$failed"
