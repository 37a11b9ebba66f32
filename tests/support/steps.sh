# What gates are made of; tests/run sources this file.
#
# tests/run has set `results`, the folder of logs, `jobs`, the number of processes, and what meson is started
# below: `launcher`, and `bounded` by bound_tests.
# shellcheck shell=bash disable=SC2154

step()
{
    printf '   %s\n' "$*"
}

# Runs a command quietly; shows the end of what it printed if it fails.
run_quietly() # LOG_FILE COMMAND ...
{
    local log=$1
    shift
    if "$@" >"$log" 2>&1; then
        return 0
    fi
    printf 'failed: %s\n' "$*"
    # Without the long lines that say what went well, or how the compiler was called.
    grep -vE '^(Compiler for C supports|\[[0-9]+/[0-9]+\]|ccache |ninja: )' "$log" |
        tail -n 40 | sed 's/^/    | /'
    return 1
}

# More failed programs than these are no accident.
again_max=5

# Runs the programs that failed once more, one at a time. Prints the options that count both runs. Of the
# options only a wrapper says how a program is run; the others choose programs, and how many at a time.
run_again() # GATE FOLDER PATIENCE LOG_JSON MESON_TEST_OPTION ...
{
    local gate=$1 folder=$2 patience=$3 first=$4 second=$2/meson-logs/again.json names wrapper=()
    mapfile -t names < <(tests/support/count_results --failed "$first")
    if [ "${#names[@]}" -eq 0 ] || [ "${#names[@]}" -gt "$again_max" ]; then
        return
    fi
    while [ "$#" -gt 1 ]; do
        if [ "$1" = --wrapper ]; then
            wrapper=(--wrapper "$2")
        fi
        shift
    done
    rm -f "$second"
    "${launcher[@]}" "${bounded[@]}" meson test -C "$folder" --no-rebuild --num-processes 1 -t "$patience" \
        --logbase again "${wrapper[@]}" "${names[@]}" >"$results/$gate-again.log" 2>&1
    if [ -s "$second" ]; then
        tests/support/count_results --passed "$second" >>"$results/$gate.again"
        printf '%s\n' --again "$second"
    fi
}

# Runs the tests of a folder and appends their counts to the gate's. All limits of time, those of meson
# and those within tests, are PATIENCE times as long, or as what the environment asks for if it is more.
run_tests() # GATE FOLDER PATIENCE MESON_TEST_OPTION ...
{
    local gate=$1 folder=$2 patience=$3
    shift 3
    local log=$results/$gate-tests.log json counting
    if ((${RINGSIDE_TEST_PATIENCE:-1} > patience)); then
        patience=$RINGSIDE_TEST_PATIENCE
    fi
    export RINGSIDE_TEST_PATIENCE=$patience
    step "tests"
    rm -f "$folder"/meson-logs/testlog*.json
    # Its exit status says no more than its log, and it is the log that is counted.
    "${launcher[@]}" "${bounded[@]}" meson test -C "$folder" --no-rebuild --num-processes "$jobs" \
        -t "$patience" "$@" >"$log" 2>&1
    json=$(echo "$folder"/meson-logs/testlog*.json)
    if ! [ -s "$json" ]; then
        echo "failed: no test was run"
        tail -n 40 "$log"
        return 1
    fi
    bound_tests
    mapfile -t counting < <(run_again "$gate" "$folder" "$patience" "$json" "$@")
    if [ "${#bounded[@]}" -gt 0 ]; then
        counting+=(--planned "$(meson test -C "$folder" --list "$@" 2>/dev/null | wc -l)")
    fi
    tests/support/count_results "${counting[@]}" "$json" "$results/$gate.counts"
}

count() # GATE PASSED FAILED SKIPPED
{
    echo "$2 $3 $4" >>"$results/$1.counts"
}

# A check that is one command, and one result.
run_check() # GATE TITLE COMMAND ...
{
    local gate=$1 title=$2
    shift 2
    step "$title"
    if run_quietly "$results/$gate-check.log" "$@"; then
        count "$gate" 1 0 0
    else
        count "$gate" 0 1 0
        return 1
    fi
}
