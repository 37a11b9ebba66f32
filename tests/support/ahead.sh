# Work of later gates, done while tests leave cores idle; tests/run sources this file.
#
# Whole jobs mostly wait, and some tests have to be alone. While a gate runs, a process of its own builds what the
# gates behind it need and runs clang-tidy, under the scheduler's policy for what is to use idle cores alone: whatever
# else wants a core gets it at once. When the gate ends, so does this process. The gate that it worked for
# builds the rest, and looks at the files that were not looked at. Failures are found, and shown, by that gate.
#
# No folder is built by two at a time: clang and format share one. There is no such work where one gate is run
# alone, and where `chrt` cannot set the policy.

ahead=

# For the gates behind the one that runs.
begin_ahead() # RUNNING_GATE GATE ...
{
    local running_gate=$1 gate gates=()
    shift
    for gate in "$@"; do
        case $running_gate,$gate in
        clang,format | format,clang) ;;
        *,clang | *,format | *,asan | *,tsan) gates+=("$gate") ;;
        esac
    done
    if [ "${#gates[@]}" -gt 0 ] && chrt --idle 0 true 2>/dev/null; then
        timeout --kill-after=30 7200 chrt --idle 0 "$root/tests/run" --ahead "${gates[@]}" \
            >"$results/ahead.log" 2>&1 </dev/null &
        ahead=$!
    fi
}

end_ahead()
{
    if [ -n "$ahead" ]; then
        kill -TERM "$ahead" 2>/dev/null
        wait "$ahead" 2>/dev/null
    fi
    ahead=
}

# In the process of its own. What fails here fails again where it is shown.
work_ahead() # GATE ...
{
    local gate
    # Logs of builds are the gates'.
    results=$results/ahead
    mkdir -p "$results"
    for gate in "$@"; do
        case $gate in
        clang) build_clang ;;
        format) command -v clang-tidy-14 >/dev/null && build_tidy &&
            tests/lint/check_tidy.sh --clean "$tidy_clean" build/test-clang ;;
        asan) build_asan ;;
        tsan) build_tsan ;;
        esac
    done
}
