#!/usr/bin/env bash
# Checks that clang-format 14 would change nothing; other versions format otherwise.
#
# usage: check_format.sh [ROOT]
set -eu

cd "${1:-$(dirname "$0")/../..}"

find . -type d \( -name 'build*' -o -name '.?*' \) -prune -o \
    -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 -r clang-format-14 --dry-run -Werror
