#!/usr/bin/env bash
# tests/support/count_results sees every way in which a test program can fail, and no other.
set -u
counter=$(cd "$(dirname "$0")/../support" && pwd)/count_results
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
failed=0
number=0

# One entry of meson's log, with what the counter must make of it.
expect() # TITLE MESON_RESULT STDOUT "passed failed skipped" [PRINTED_TEXT]
{
    local counted printed
    number=$((number + 1))
    printf '{"name": "x", "stdout": "%s", "result": "%s", "command": ["x"], "stderr": "by stderr"}\n' \
        "$3" "$2" >"$folder/log.json"
    rm -f "$folder/counts"
    printed=$("$counter" "$folder/log.json" "$folder/counts")
    counted=$(cat "$folder/counts")
    if [ "$counted" = "$4" ] && [[ $printed == *"${5:-}"* ]]; then
        echo "ok $number - $1"
    else
        failed=1
        echo "not ok $number - $1"
        echo "# expected '$4' and '${5:-}', got '$counted' and '$printed'"
    fi
}

expect "a program without TAP counts once" OK 'hello\n' '1 0 0'
expect "a program without TAP that fails" FAIL 'hello\n' '0 1 0' 'out| hello'
expect "a program without TAP that crashes" ERROR '' '0 1 0' 'err| by stderr'
expect "a program without TAP that is skipped" SKIP 'skipped: no GPU\n' '0 0 1' 'no GPU'
expect "every test counts" OK '1..2\nok 1 - a\nok 2 - b\n' '2 0 0'
expect "a failed test" FAIL '1..2\nok 1 - a\nnot ok 2 - b\n# 1 != 2\n' '1 1 0' '# 1 != 2'
expect "a failed test of a program that says it is well" OK '1..1\nnot ok 1 - a\n' '0 1 0'
expect "a skipped test as cmocka writes it" OK '1..1\nno folder\nnot ok 1 # SKIP a\n' '0 0 1' 'a: no folder'
expect "a skipped test as TAP has it" OK '1..1\nok 1 - a # SKIP no folder\n' '0 0 1' 'a: no folder'
expect "a skipped test whose reason is on standard error" OK '1..1\nnot ok 1 # SKIP a\n' '0 0 1' 'by stderr'
expect "a crash among the tests" ERROR '1..3\nok 1 - a\n' '1 1 0' 'after 1 of 3 tests'
expect "an early exit that claims to be well" OK '1..3\nok 1 - a\n' '1 1 0' 'after 1 of 3 tests'
expect "a time-out" TIMEOUT '1..2\nok 1 - a\n' '1 1 0' 'timeout'
expect "a crash after the tests" ERROR '1..1\nok 1 - a\n' '1 1 0' 'after its tests'
expect "two groups in a program" OK '1..1\nok 1 - a\n1..2\nok 1 - b\nok 2 - c\n' '3 0 0'
expect "a plan at the end" OK 'ok 1 - a\nok - b\n1..2\n' '2 0 0'
expect "a group whose setup fails" FAIL '1..2\nnot ok 0 - g [  FAILED  ] GROUP SETUP\n' '0 2 0' 'GROUP SETUP'

# A run whose time was up: one program ended, one was ended, one was not started.
number=$((number + 1))
for result in OK INTERRUPT; do
    printf '{"name": "x", "stdout": "", "result": "%s", "command": ["x"]}\n' "$result"
done >"$folder/log.json"
rm -f "$folder/counts"
printed=$("$counter" --planned 3 "$folder/log.json" "$folder/counts")
if [ "$(cat "$folder/counts")" = '1 0 2' ] && [[ $printed == *"2 of 3 programs: time was up"* ]]; then
    echo "ok $number - what did not run in time is skipped, and counted"
else
    failed=1
    echo "not ok $number - what did not run in time is skipped, and counted"
    echo "# got '$(cat "$folder/counts")' and '$printed'"
fi
expect "a program that was ended counts as failed where time was not short" INTERRUPT '' '0 1 0'

# What failed was run again: the second run counts, the first is shown.
log() # FILE NAME=RESULT ...
{
    local file=$1 pair
    shift
    for pair; do
        printf '{"name": "s / %s", "stdout": "", "result": "%s", "command": ["x"], "stderr": "by stderr"}\n' \
            "${pair%=*}" "${pair#*=}"
    done >"$folder/$file"
}
compare() # TITLE EXPECTED GOT
{
    number=$((number + 1))
    # shellcheck disable=SC2053 # a pattern
    if [[ $3 == $2 ]]; then
        echo "ok $number - $1"
    else
        failed=1
        echo "not ok $number - $1"
        echo "# expected '$2', got '$3'"
    fi
}
count_again()
{
    rm -f "$folder/counts"
    "$counter" --again "$folder/again.json" "$folder/log.json" "$folder/counts" | tr '\n' ' '
    echo "${PIPESTATUS[0]} $(cat "$folder/counts")"
}
log log.json good=OK bad=FAIL worse=TIMEOUT
compare "the names of what failed" "ringside:bad ringside:worse" \
    "$("$counter" --failed "$folder/log.json" | paste -sd ' ')"
compare "the names of what passed" "ringside:good" "$("$counter" --passed "$folder/log.json")"
log again.json bad=OK worse=OK
compare "what passes by itself has passed, and its failure is shown" \
    "*failed: s / bad: fail*it passed*by stderr*failed: s / worse: timeout*it passed*0 3 0 0" "$(count_again)"
log again.json bad=OK worse=FAIL
compare "what fails twice has failed" "*worse: timeout*run again by itself: fail*1 2 1 0" "$(count_again)"
log again.json bad=OK worse=INTERRUPT
compare "what had no time for a second run has failed" "*1 2 1 0" "$(count_again)"
log again.json bad=SKIP worse=OK
compare "what is skipped the second time has not passed" "*1 2 1 0" "$(count_again)"
log log.json good=OK
compare "what passed needs no second run" "0 1 0 0" "$(count_again)"
echo "1..$number"
exit "$failed"
