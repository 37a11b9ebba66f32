#!/usr/bin/env bash
# Every rule of check_rules.sh catches a violation planted in a copy of the tree.
. "$(dirname "$0")/plant.sh"
lint=$(dirname "$0")/check_rules.sh

for name in strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets atoi atol atoll atof sscanf \
    strtok strerror asctime ctime gmtime localtime tmpnam mktemp alloca system rand srand random \
    drand48; do
    plant "common/planted_$name.c" "    $name(text);" "$name is banned"
done

plant common/planted_long.c "$(printf '//\\n%.0s' {1..500})//" 'has 501 lines'
plant tests/common/planted_long.sh "$(printf '#\\n%.0s' {1..500})#" 'has 501 lines'
for number in {1..40}; do
    plant "common/service/planted_$number.h" '/* One of many. */' 'must be COMMON_SERVICE'
done
expect common/service 'files; the limit is 40'
plant common/planted_first.c '#include <stdint.h>' 'line 1 must say'
plant common/planted_first.h '\n/* Too late. */' 'line 1 must say'
plant worker/data/planted_guard.h '/* A header. */\n#ifndef GUARD_H' 'must be WORKER_DATA_PLANTED_GUARD_H'
plant common/planted_unbuilt.c '/* Built by nobody. */' 'no meson.build names it'
plant common/planted_body.c '/* A file. */\nint f(void)\n{\n#ifdef __linux__\n#endif\n}' 'no #if in a function body'
plant common/planted_typedef.c 'typedef struct x x_t;' 'not given a second name'
plant common/planted_debt.c '// TODO: later' 'needs the number of its issue'
plant common/planted_debt_body.c '// TODO(me) later' 'needs the number of its issue'
plant common/planted_fixme.c '// FIXME' 'needs the number of its issue'
plant tests/common/planted_sleep.c 'usleep(1000);' 'tests do not sleep'
plant deploy/planted_script '#!/bin/sh' 'must be executable'
plant docs/ARCHITECTURE.md 'See `worker/planted_gone.c`.' 'there is no worker/planted_gone.c'

expect_every_plant_caught "$lint"
