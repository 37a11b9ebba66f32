#!/usr/bin/env bash
# Runs clang-tidy 14 over every C file of a build by clang, one file per core at a time.
#
# usage: check_tidy.sh [--clean LIST] BUILD_FOLDER [FILE ...]
#
# Files are those that the build compiles, without generated ones. Exits 1 if there is a finding. With --clean,
# files that LIST names are left out, and those without a finding are added to it: so that what was
# interrupted goes on where it was.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
clean=/dev/null
if [ "$1" = --clean ]; then
    clean=$2
    shift 2
    touch "$clean"
fi
build=$(cd "$1" && pwd)
shift
cd "$root"

if [ "$#" -eq 0 ]; then
    mapfile -t files < <(python3 - "$build" "$root" <<'EOF'
import json, os, sys
build, root = sys.argv[1:]
with open(os.path.join(build, "compile_commands.json")) as database:
    entries = json.load(database)
paths = {os.path.normpath(os.path.join(entry["directory"], entry["file"])) for entry in entries}
for path in sorted(paths):
    if path.startswith(root + os.sep) and not path.startswith(build + os.sep) \
            and path.endswith(".c"):
        print(os.path.relpath(path, root))
EOF
    )
    set -- "${files[@]}"
fi

# A file that the build compiles more than once, for a backend and for its test, is looked at as it is
# first: clang-tidy takes what it remembers of one for the other.
once=$(mktemp -d)
trap 'rm -rf "$once"' EXIT
python3 - "$build/compile_commands.json" "$once/compile_commands.json" <<'EOF'
import json, os, sys
entries = {}
with open(sys.argv[1]) as database:
    for entry in json.load(database):
        entries.setdefault(os.path.normpath(os.path.join(entry["directory"], entry["file"])), entry)
with open(sys.argv[2], "w") as database:
    json.dump(list(entries.values()), database)
EOF

if [ "$clean" != /dev/null ]; then
    mapfile -t files < <(printf '%s\n' "$@" | grep -vxFf "$clean")
    set -- "${files[@]}"
fi
if [ "$#" -eq 0 ]; then
    exit 0
fi

# xargs exits 123 if any run failed, so one finding fails them all, after all have run. On standard
# error clang-tidy counts the warnings of system headers, which say nothing.
# shellcheck disable=SC2016
printf '%s\0' "$@" | xargs -0 -r -n 1 -P "$(nproc)" \
    sh -c 'clang-tidy-14 --quiet -p "$0" "$2" && echo "$2" >>"$1"' "$once" "$clean" \
    2> >(grep -vE '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' >&2)
