/* Keeps what all processes say, with virtual times. */
#include "tests/sim/story.h"

#include "tests/sim/world.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES (256 << 10) // what is said behind that is left out
#define LINE_BYTES 1024

static char text[TEXT_BYTES];
static size_t used;

void story_clear(void)
{
    used = 0;
    text[0] = '\0';
}

const char *story_text(void)
{
    return text;
}

void story_add(const char *kind, const char *line)
{
    const struct sim_process *process = world_current();
    int wrote = snprintf(text + used, sizeof(text) - used, "%12.6f %s: %s%s\n",
                         (double)world_now_ns() / 1e9, process != NULL ? process->name : "world",
                         kind, line);
    if (wrote > 0 && used + (size_t)wrote < sizeof(text)) {
        used += (size_t)wrote;
    } else {
        text[used] = '\0';
    }
}

void story_say(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    story_add("", line);
}

void story_fail(uint64_t seed, const char *format, ...)
{
    char found[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(found, sizeof(found), format, arguments);
    va_end(arguments);
    printf("%s\n", story_text());
    fflush(stdout);
    fail_msg("seed %llu: %s", (unsigned long long)seed, found);
}
