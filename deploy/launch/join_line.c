/* Writes the command by which a further process joins: `ringside join`, or a program of the user's
 * own with the variables that it finds its job by. */
#include "deploy/launch/join_line.h"

#include "common/base/shell_word.h"
#include "common/job/carriers.h"
#include "deploy/system/command_text.h"
#include "deploy/system/programs.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERYWHERE "0.0.0.0" // where a worker of another host listens: at all of its addresses

struct line {
    char *text;
    size_t used; // below JOIN_LINE_BYTES
};

/* As far as there is room. */
__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = JOIN_LINE_BYTES - line->used;
    int size = vsnprintf(line->text + line->used, room, format, arguments);
    va_end(arguments);
    line->used += size < 0 ? 0 : (size_t)size < room ? (size_t)size : room - 1;
}

/* An option with its value, or for a program of one's own the variable that means the same. */
static void add_setting(struct line *line, const struct launch *launch, const char *option,
                        const char *variable, const char *value)
{
    char quoted[PATH_MAX + 64];
    shell_word_quote(value, quoted, sizeof(quoted));
    if (launch->options->program != NULL) {
        add(line, "%s=%s ", variable, quoted);
    } else {
        add(line, " %s %s", option, quoted);
    }
}

static void add_keys(struct line *line, const struct launch *launch)
{
    char path[PATH_MAX];
    if (launch->options->security->is_insecure) {
        add(line, "%s",
            launch->options->program != NULL ? "RINGSIDE_INSECURE=true " : " --insecure");
    } else if (!launch->is_private) {
        keys_path(launch->launcher->options->security.keys, path);
        add_setting(line, launch, "--keys", "RINGSIDE_KEYS", path);
    }
}

/* Where it may listen for those that were there before. */
static void add_addresses(struct line *line, const struct launch *launch)
{
    if (launch->is_private) {
        return;
    }
    const char *range = launch->launcher->host_options->port_range;
    if (!security_is_local(launch->endpoint)) {
        add_setting(line, launch, "--bind", "RINGSIDE_BIND", EVERYWHERE);
    }
    if (range[0] != '\0') {
        add_setting(line, launch, "--port-range", "RINGSIDE_PORT_RANGE", range);
    }
}

static void add_worker(struct line *line, const struct launch *launch)
{
    char self[PATH_MAX], quoted[PATH_MAX + 64];
    programs_find_own(self, sizeof(self));
    shell_word_quote(self[0] != '\0' ? self : "ringside", quoted, sizeof(quoted));
    add(line, "if a place is free, another worker can join: %s join %s", quoted, launch->endpoint);
    add_keys(line, launch);
    add_addresses(line, launch);
}

static void add_program(struct line *line, const struct launch *launch)
{
    char program[JOIN_LINE_BYTES / 2];
    bool is_whole = command_text_write_line(launch->options->program, program, sizeof(program));
    add(line, "if a place is free, another process can join: RINGSIDE_SERVER=%s ",
        launch->endpoint);
    add_keys(line, launch);
    add_addresses(line, launch);
    add(line, "%s", is_whole ? program : "PROGRAM");
}

bool join_line_write(const struct launch *launch, char ret_text[JOIN_LINE_BYTES])
{
    const struct security *security = launch->options->security;
    bool has_keys = security->keys != NULL || security->is_insecure;
    if (!job_may_go_on(&launch->job) || (!launch->is_private && !has_keys)) {
        return false;
    }
    struct line line = {.text = ret_text};
    if (launch->options->program != NULL) {
        add_program(&line, launch);
    } else {
        add_worker(&line, launch);
    }
    return true;
}

void join_line_print(const struct launch *launch)
{
    char *text = launch->options->shows_progress ? malloc(JOIN_LINE_BYTES) : NULL;
    if (text != NULL && join_line_write(launch, text)) {
        printf("%s\n", text);
        fflush(stdout); // before the coordinator's lines
    }
    free(text);
}
