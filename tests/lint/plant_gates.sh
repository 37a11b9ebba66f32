#!/usr/bin/env bash
# What tests/run builds and leaves out: tests are chosen by what they can start, work of later gates
# ends with the gate beside it, clang-tidy goes on where it was, and no test is in two gates.
#
# usage: plant_gates.sh BUILD
set -u
tests_of_build=$1/meson-info/intro-tests.json
tests=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
failed=0
number=0

expect() # TITLE EXPECTED GOT
{
    number=$((number + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $number - $1"
    else
        failed=1
        echo "not ok $number - $1"
        echo "# expected '$2', got '$3'"
    fi
}

# ---- choose_tests ----

# A build of three programs and a script, of which meson lists all but one.
build=$folder/build
mkdir -p "$build/meson-info" "$folder/bin"
compile() # NAME TEXT
{
    printf '%s\n' "$2" >"$folder/$1.c"
    ${CC:-cc} -pthread -o "$build/$1" "$folder/$1.c"
}
compile alone '#include <stdio.h>
int main(void) { return puts("alone") < 0; }'
compile threaded '#include <pthread.h>
static void *run(void *none) { return none; }
int main(void) { pthread_t thread; return pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0); }'
compile starter '#include <unistd.h>
int main(int count, char *words[]) { return count > 9 ? execv(words[0], words) : 0; }'
tests_json="" targets_json=""
for name in alone threaded starter left_out; do
    tests_json+="{\"name\": \"a/$name\", \"cmd\": [\"$build/$name\"], \"depends\": [\"$name@exe\"]}, "
    targets_json+="{\"id\": \"$name@exe\", \"filename\": [\"$build/$name\"]}, "
done
echo "[$tests_json{\"name\": \"a/script\", \"cmd\": [\"/bin/sh\"], \"depends\": []}]" >"$build/meson-info/intro-tests.json"
echo "[${targets_json%, }]" >"$build/meson-info/intro-targets.json"
printf '#!/bin/sh\necho "$@" >%s/asked\nfor name in alone threaded starter script; do echo "x:suite / a/$name"; done\n' \
    "$folder" >"$folder/bin/meson"
chmod +x "$folder/bin/meson"

choose()
{
    PATH=$folder/bin:$PATH "$tests/support/choose_tests" "$build" "$@" | tr '\n' ' '
}
expect "all that meson lists, and what they need" \
    "test a/alone test a/threaded test a/starter test a/script target alone target starter target threaded " \
    "$(choose -- --no-suite slow)"
expect "meson is asked for the suites" "test -C $build --no-rebuild --list --no-suite slow" "$(cat "$folder/asked")"
expect "a program that can start nothing is left out; what is no program of the build is kept" \
    "test a/threaded test a/starter test a/script target starter target threaded " \
    "$(choose --threads-in "$build" -- --no-suite slow)"
rm "$build/starter"
expect "a program of which nothing is known is kept" \
    "test a/threaded test a/starter test a/script target starter target threaded " "$(choose --threads-in "$build")"
expect "names can be asked for" "test a/alone target alone " "$(choose --only '^a/al')"

# ---- ahead.sh ----

# What stands for tests/run says how it was started, and works until it is ended.
mkdir -p "$folder/tree/tests"
cat >"$folder/tree/tests/run" <<END
#!/bin/sh
echo "\$@" >$folder/said
chrt -p \$\$ | grep -o 'SCHED_.*' >>$folder/said
mv $folder/said $folder/started
sleep 1000 &
echo \$! >$folder/child
wait
END
chmod +x "$folder/tree/tests/run"
# shellcheck disable=SC2034
results=$folder
# shellcheck disable=SC2034
root=$folder/tree
# shellcheck source=tests/support/ahead.sh
. "$tests/support/ahead.sh"
begin_ahead gpu valgrind
expect "nothing is begun for gates that build nothing of their own" "" "$ahead"
begin_ahead gpu format tsan
if [ -n "$ahead" ]; then
    while ! [ -s "$folder/child" ]; do
        chrt --other 0 sleep 0.01
    done
    expect "work is for the gates that follow, on idle cores" "--ahead format tsan SCHED_IDLE " \
        "$(tr '\n' ' ' <"$folder/started")"
    end_ahead
    tail --pid="$(cat "$folder/child")" -f /dev/null
    expect "it ends with all that it started" "" "$ahead"
else
    number=$((number + 1))
    echo "ok $number - work on idle cores # SKIP there is no chrt, or it may not"
fi

# ---- steps.sh ----

# Two tests, of which one fails unless it is run by itself, and one always.
mkdir -p "$folder/tests/support" "$build/meson-logs"
ln -s "$tests/support/count_results" "$folder/tests/support/count_results"
cat >"$folder/bin/meson" <<END
#!/bin/sh
log=testlog
unsteady=FAIL
case "\$*" in *"--logbase again"*) log=again unsteady=OK ;; esac
echo "\$*" >>$folder/runs
for pair in always=FAIL unsteady=\$unsteady; do
    printf '{"name": "s / %s", "stdout": "", "result": "%s", "command": ["x"]}\n' "\${pair%=*}" "\${pair#*=}"
done >$build/meson-logs/\$log.json
END
cat >"$folder/gate" <<END
cd $folder
unset RINGSIDE_TEST_PATIENCE
results=$folder jobs=2 launcher=() bounded=()
bound_tests() { :; }
. $tests/support/steps.sh
run_tests sample $build 1 --num-processes 6 --wrapper "a b" --suite s
END
rm -f "$folder/runs"
PATH=$folder/bin:$PATH bash "$folder/gate" >/dev/null
expect "what failed is run once more, one at a time, below what the tests are run below" \
    "test -C $build --no-rebuild --num-processes 1 -t 1 --logbase again --wrapper a b ringside:always ringside:unsteady" \
    "$(tail -n +2 "$folder/runs")"
expect "the second run counts" "1 1 0" "$(cat "$folder/sample.counts")"
expect "what passed only then is kept for the end" "ringside:unsteady" "$(cat "$folder/sample.again")"
sed -i 's/always=FAIL/1=FAIL 2=FAIL 3=FAIL 4=FAIL 5=FAIL/' "$folder/bin/meson"
rm -f "$folder/runs" "$folder/sample".*
PATH=$folder/bin:$PATH bash "$folder/gate" >/dev/null
expect "where many fail, none is run again" "1 0 6 0" "$(wc -l <"$folder/runs") $(cat "$folder/sample.counts")"

# ---- check_tidy.sh ----

# Finds something in the files that are called bad, and says what it looked at.
printf '#!/bin/sh\nfor file; do :; done\necho "$file"\ncase $file in *bad*) exit 1 ;; esac\n' \
    >"$folder/bin/clang-tidy-14"
chmod +x "$folder/bin/clang-tidy-14"
echo "[]" >"$build/compile_commands.json"
tidy()
{
    PATH=$folder/bin:$PATH "$tests/lint/check_tidy.sh" --clean "$folder/clean" "$build" "$@" | sort | tr '\n' ' '
    echo "${PIPESTATUS[0]}"
}
expect "a finding fails" "bad.c good.c 123" "$(tidy good.c bad.c)"
expect "a file without a finding is not looked at again" "bad.c other.c 123" "$(tidy good.c bad.c other.c)"
expect "nothing is left to look at" "0" "$(tidy good.c other.c)"

# ---- suites ----

# Tests that two gates would run, or that the sanitizers would leave out and have.
in_two()
{
    python3 -c '
import json, sys
gates = [{"thorough", "extended"}, {"slow"}, {"long"}]
for test in json.load(open(sys.argv[1], encoding="utf-8")):
    suites = {suite.split(":")[-1] for suite in test["suite"]}
    if sum(not suites.isdisjoint(gate) for gate in gates) > 1 or {"thorough", "extended"} <= suites:
        print(test["name"])' "$1"
}
expect "no test has suites of two gates" "" "$(in_two "$tests_of_build")"
for suites in '"slow", "x:thorough"' '"thorough", "extended"'; do
    echo "[{\"name\": \"twice\", \"suite\": [\"x:e2e\", $suites]}]" >"$folder/twice.json"
    expect "one that has $suites is named" "twice" "$(in_two "$folder/twice.json")"
done

echo "1..$number"
exit "$failed"
