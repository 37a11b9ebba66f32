#!/usr/bin/env bash
# Checks who includes whom: the absences that docs/ARCHITECTURE.md promises.
#
# usage: check_includes.sh [ROOT]
#
# Prints "FILE:LINE: what is wrong" for every violation and exits 1 if there is one. Patterns are
# extended regular expressions that must match a whole path from the root. In the first table the
# first row whose file matches counts, so special cases stand above the rule of their folder.
set -u
export LC_ALL=C

cd "${1:-$(dirname "$0")/../..}" || exit 2

# file                          may include, of what is ours
may_include='
common/wire\.c                  common/[^/]+\.h|wire\.pb-c\.h
common/.*                       common/[^/]+\.h
ps-server/.*                    (common|ps-server)/[^/]+\.h
deploy/.*                       (common|deploy)/[^/]+\.h
worker/device/cuda/.*\.cu       worker/device/cuda/(kernels\.h|[a-z_]+\.inc)|common/(optimizer_formulas|random)\.h
worker/device/device\.c         common/(status|memory|random|log|vector)\.h|worker/device/.*\.h
worker/device/[^/]+             common/(status|memory|random|log|vector)\.h|worker/device/[^/]+\.h
worker/device/ref/.*            common/(status|memory|random|log|vector)\.h|worker/device/(ref/)?[^/]+\.h
worker/device/cpu/.*            common/(status|memory|random|log|variants|vector)\.h|worker/device/(cpu/)?[^/]+\.h
worker/device/cuda/.*           common/(status|memory|optimizer_formulas|random|log|vector)\.h|worker/device/(cuda/)?[^/]+\.h
worker/data/.*                  common/[^/]+\.h|worker/data/[^/]+\.h|worker/device/device\.h
worker/model/.*                 common/[^/]+\.h|worker/model/[^/]+\.h|worker/device/[^/]+\.h
worker/exchange/.*              common/[^/]+\.h|worker/exchange/[^/]+\.h
worker/.*                       (common|worker)/.*\.h
bench/.*                        (bench|common|deploy|ps-server|worker|tests/support)/.*\.h
tests/.*                        (bench|common|deploy|ps-server|tests|worker)/.*\.(h|inc)
'

# header of a library, or        the only files that may include it; bench and tests may, too
# private to a part of ours
libraries='
zmq.*                           common/(context|dealer|envelope|frames|guard|monitor|transport)_zmq\.c
common/[a-z]+_zmq\.h            common/(context|dealer|envelope|frames|guard|monitor|transport)_zmq\.[ch]
microhttpd.*                    common/health\.c
.*\.pb-c\.h|protobuf-c/.*       common/wire\.c
(oneapi/)?dnnl.*                worker/device/cpu/.*
(cuda|cudnn|cublas|nccl).*      worker/device/cuda/.*
'

# What oneDNN 2 and 3 have different, and the only files that may know which one it is.
onednn_versions='worker/device/cpu/onednn_v[23]\.c'
onednn_words='dnnl_memory_desc[a-z_]*|dnnl_[a-z_]+_desc_(init|create)[a-z_]*|dnnl_post_ops_append_[a-z_]+|DNNL_VERSION[A-Z_]*'

our_folders='(bench|common|deploy|ps-server|tests|worker)'

# Decisions are pure: these open nothing, log nothing and read no clock. (stdio.h is allowed, for
# snprintf; what else it declares is not.)
pure_files='(common/(all_reduce|bump|codec(_[a-z0-9]+)?|consistency|halving_plan|job_checks|job_effects|layout|number|order|phases|port_range|schedule|straggler|wire|z85)|ps-server/(agreement|connecting|coordinator|credits|membership|metrics|remedy[a-z_]*|results|shard(_create|_update|_views)?|staleness|sums|topology|tuning)|deploy/(advice|placement)|worker/exchange/ring_plan|worker/model/network|worker/trial)\.[ch]'
pure_never_includes='common/(clock|log)\.h|(time|unistd|fcntl|poll|threads|pthread|signal|netdb|ifaddrs)\.h|(sys|net|netinet|arpa)/.*'
pure_never_calls='transport_(create|open|bind|connect|send|receive|wake)|channel_[a-z]+|log_(error|warn|info|debug|write)|clock_[a-z_]+|f?(open|read|write|printf|puts|putc)|fdopen|popen|time|getenv'

violations=0

report() # FILE LINE MESSAGE
{
    printf '%s:%s: %s\n' "$1" "$2" "$3"
    violations=$((violations + 1))
}

matches() # TEXT PATTERN
{
    [[ $1 =~ ^($2)$ ]]
}

check_ours() # FILE LINE HEADER
{
    local files headers
    while read -r files headers; do
        if [ -n "$files" ] && matches "$1" "$files"; then
            matches "$3" "$headers" || report "$1" "$2" "must not include \"$3\""
            return
        fi
    done <<<"$may_include"
    report "$1" "$2" "no rule says what this file may include"
}

check_library() # FILE LINE HEADER
{
    local headers files
    if matches "$1" '(bench|tests)/.*'; then
        return
    fi
    while read -r headers files; do
        if [ -n "$headers" ] && matches "$3" "$headers" && ! matches "$1" "$files"; then
            report "$1" "$2" "must not include <$3>; only $files may"
        fi
    done <<<"$libraries"
}

check_include() # FILE LINE TEXT
{
    local header
    if [[ ! $3 =~ ^[[:space:]]*\#[[:space:]]*include[[:space:]]*([\"\<])([^\"\>]+)[\"\>] ]]; then
        report "$1" "$2" "an include that names no file cannot be checked"
        return
    fi
    header=${BASH_REMATCH[2]}
    # Ours in angle brackets are ours all the same.
    if [ "${BASH_REMATCH[1]}" = '"' ] || matches "$header" "$our_folders/.*"; then
        check_ours "$1" "$2" "$header"
    fi
    check_library "$1" "$2" "$header"
    if matches "$1" "$pure_files" && matches "$header" "$pure_never_includes"; then
        report "$1" "$2" "is pure, and must not include $header"
    fi
}

check_words()
{
    local file line text
    while IFS=: read -r file line text; do
        report "$file" "$line" "the parameter server must not hear of layers"
    done < <([ ! -d ps-server ] || grep -rniE 'layer' ps-server)
    while IFS=: read -r file line text; do
        if ! matches "$file" "$onednn_versions"; then
            report "$file" "$line" "must not know oneDNN's version: $text"
        fi
    done < <(grep -rnoE "$onednn_words" --include='*.[ch]' "${folders[@]}")
    while IFS=: read -r file line text; do
        if matches "$file" "$pure_files"; then
            report "$file" "$line" "is pure, and must not call ${text%%(*}"
        fi
    done < <(grep -rnoE "\<($pure_never_calls) *\(" --include='*.[ch]' "${folders[@]}")
}

folders=()
for folder in bench common deploy ps-server tests worker; do
    if [ -d "$folder" ]; then
        folders+=("$folder")
    fi
done
if [ "${#folders[@]}" -eq 0 ]; then
    echo "no source folders in $PWD" >&2
    exit 2
fi

while IFS=: read -r file line text; do
    check_include "$file" "$line" "$text"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' \
    --include='*.[ch]' --include='*.cu' --include='*.cuh' "${folders[@]}")
check_words

[ "$violations" -eq 0 ]
