#!/usr/bin/env bash
# Checks the rules of the house that a line of text can show; clang-tidy has those that need a
# parser, check_includes.sh those on who includes whom.
#
# usage: check_rules.sh [ROOT]
#
# Prints "FILE:LINE: what is wrong" for every violation and exits 1 if there is one.
set -u
export LC_ALL=C

cd "${1:-$(dirname "$0")/../..}" || exit 2

lines_max=500
folder_files_max=40 # of product code

# function, and what to use instead
banned_functions='
strcpy     snprintf
strcat     snprintf
strncpy    snprintf or memcpy
strncat    snprintf
stpcpy     snprintf or memcpy
sprintf    snprintf
vsprintf   vsnprintf
gets       fgets
atoi       options_set_text or strtoul with all its checks
atol       options_set_text or strtoul with all its checks
atoll      options_set_text or strtoull with all its checks
atof       options_set_text or strtod with all its checks
sscanf     strtoul and strtod with all their checks
strtok     strtok_r or strchr
strerror   strerror_r or "%m"
asctime    strftime
ctime      strftime
gmtime     gmtime_r
localtime  localtime_r
tmpnam     mkstemp
mktemp     mkstemp
alloca     memory that was planned at create
system     posix_spawn
rand       common/base/random.h
srand      common/base/random.h
random     common/base/random.h
drand48    common/base/random.h
'

violations=0

report() # FILE LINE MESSAGE
{
    printf '%s:%s: %s\n' "$1" "$2" "$3"
    violations=$((violations + 1))
}

# Reports every line of the named files that matches an extended regular expression.
report_matches() # PATTERN MESSAGE FILE ...
{
    local pattern=$1 message=$2 file line text
    shift 2
    while IFS=: read -r file line text; do
        report "$file" "$line" "$message"
    done < <([ "$#" -eq 0 ] || grep -nHE "$pattern" "$@")
}

check_banned_functions()
{
    local name instead names='' file line text
    declare -A replacements=()
    while read -r name instead; do
        if [ -n "$name" ]; then
            names+="${names:+|}$name"
            replacements[$name]=$instead
        fi
    done <<<"$banned_functions"
    while IFS=: read -r file line text; do
        name=${text%%[ (]*}
        report "$file" "$line" "$name is banned; use ${replacements[$name]}"
    done < <(grep -noHE "\<($names) *\(" "${c_files[@]}")
}

check_first_lines()
{
    local file
    while IFS= read -r file; do
        report "$file" 1 "line 1 must say what the file is"
    done < <(awk 'FNR == 1 && !/^(\/\*|\/\/) [^ ]/ { print FILENAME } { nextfile }' \
        "${c_files[@]}")
}

check_header_guards()
{
    local file line guard
    declare -A is_guarded=()
    while IFS=: read -r file line; do
        guard=${file//[^A-Za-z0-9]/_}
        if [ "$line" = "#ifndef ${guard^^}" ]; then
            is_guarded[$file]=yes
        fi
    done < <(grep -HE '^#ifndef ' "${c_files[@]}")
    for file in "${c_files[@]}"; do
        if [[ $file == *.h && -z ${is_guarded[$file]-} ]]; then
            guard=${file//[^A-Za-z0-9]/_}
            report "$file" 1 "the include guard must be ${guard^^}"
        fi
    done
}

# Function bodies are the braces that stand at the start of a line.
check_conditional_bodies()
{
    local file line
    while read -r file line; do
        report "$file" "$line" "no #if in a function body; make it a file that meson adds"
    done < <(awk 'FNR == 1 { is_body = 0 }
        /^{/ { is_body = 1 }
        /^}/ { is_body = 0 }
        is_body && /^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)/ { print FILENAME, FNR }' "${c_files[@]}")
}

check_lengths()
{
    local file lines
    while read -r lines file; do
        if [ "$file" != total ] && [ "$lines" -gt "$lines_max" ]; then
            report "$file" "$lines" "has $lines lines; the limit is $lines_max"
        fi
    done < <(wc -l "${all_files[@]}")
}

check_folder_sizes()
{
    local folder files
    while read -r files folder; do
        if [ "$files" -gt "$folder_files_max" ]; then
            report "$folder" 0 "has $files files; the limit is $folder_files_max"
        fi
    done < <(printf '%s\n' "${all_files[@]}" | grep -E '^(common|deploy|ps-server|worker)/' |
        sed 's|/[^/]*$||' | uniq -c)
}

# Whether the meson.build of the folder, or of one above it, names the file, or any other does so
# together with its folder.
is_named_by_meson() # FILE
{
    local folder=${1%/*} name=${1##*/} text
    local with_folder=${folder##*/}/$name
    while [[ ${meson_text[$folder]-} != *"$name"* ]]; do
        if [ "$folder" = . ]; then
            for text in "${meson_text[@]}"; do
                if [[ $text == *"$with_folder"* ]]; then
                    return 0
                fi
            done
            return 1
        fi
        [[ $folder == */* ]] && folder=${folder%/*} || folder=.
    done
}

# A source that no meson.build names would be checked by nobody. (Fuzz targets are compared with the
# disk when the build is configured.)
check_is_built()
{
    local file
    declare -A meson_text=() # by folder
    while IFS= read -r file; do
        file=${file#./}
        [[ $file == */* ]] || file=./$file
        meson_text[${file%/*}]=$(<"$file")
    done < <(find . -name meson.build -not -path './build/*')
    for file in "${c_files[@]}"; do
        if [[ $file == *.c && $file != tests/fuzz/fuzz_* ]] && ! is_named_by_meson "$file"; then
            report "$file" 1 "no meson.build names it"
        fi
    done
}

check_scripts_run()
{
    local file magic
    for file in "${all_files[@]}"; do
        IFS= read -r -n 2 magic <"$file"
        if [ "$magic" = '#!' ] && [ ! -x "$file" ]; then
            report "$file" 1 "starts with #! and must be executable"
        fi
    done
}

# Documents name files in `backticks`; what they name is there. (An ellipsis stands for anything, and
# CHANGELOG.md may name what was there once.)
check_named_files()
{
    local file line name
    while IFS=: read -r file line name; do
        name=${name//\`/}
        if [[ $name != *…* ]] && ! compgen -G "$name" >/dev/null; then
            report "$file" "$line" "there is no $name"
        fi
    done < <(grep -noHE '`(bench|common|deploy|docs|proto|ps-server|tests|worker)/[^` ]*`' \
        README.md CONTRIBUTING.md docs/*.md)
}

folders=()
for folder in .ci bench common deploy docs proto ps-server tests worker; do
    if [ -d "$folder" ]; then
        folders+=("$folder")
    fi
done
# Corpora, recorded values and the page of options are not written by hand.
mapfile -t all_files < <(find "${folders[@]}" \
    \( -path 'tests/fuzz/corpus' -o -path 'tests/golden/values' -o -path 'bench/results' \
    -o -path 'docs/OPTIONS.md' \) -prune \
    -o -type f -size +0 -print | sort)
mapfile -t c_files < <(printf '%s\n' "${all_files[@]}" | grep -E '\.(c|h|cu|cuh)$')
mapfile -t test_files < <(printf '%s\n' "${c_files[@]}" | grep -E '^tests/')
if [ "${#c_files[@]}" -eq 0 ]; then
    echo "no sources in $PWD" >&2
    exit 2
fi

check_lengths
check_folder_sizes
check_first_lines
check_header_guards
check_banned_functions
check_conditional_bodies
check_is_built
check_scripts_run
check_named_files
report_matches '\<typedef +(struct|enum|union)\>' \
    'structs, enums and unions are not given a second name' "${c_files[@]}"
report_matches '\<(FIXME|XXX)\>|\<TODO\>([^(]|\([^#]|$)' \
    'a TODO needs the number of its issue: TODO(#12)' "${c_files[@]}"
report_matches '\<(sleep|usleep|nanosleep|clock_nanosleep) *\(' \
    'tests do not sleep; wait for what must happen' "${test_files[@]}"

[ "$violations" -eq 0 ]
