/* Makes the command lines of members. */
#include "deploy/launch/member_command.h"

#include "common/job/job_options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Room for one option of the job, and for all other options together.
#define JOB_TEXT_MAX   1200
#define OTHER_TEXT_MAX 256

enum status member_command_create(const char *program, struct member_command *ret_command)
{
    struct member_command command = {.argv = {program}, .count = 1};
    command.texts_size = job_option_count * JOB_TEXT_MAX + OTHER_TEXT_MAX;
    command.texts = malloc(command.texts_size);
    if (command.texts == NULL) {
        return STATUS_NO_MEMORY;
    }
    *ret_command = command;
    return STATUS_OK;
}

void member_command_destroy(struct member_command *command)
{
    free(command->texts);
    *command = (struct member_command){0};
}

void member_command_add(struct member_command *command, const char *argument)
{
    assert(command->count < AGENT_LIST_MAX); // a mistake of ours otherwise: users add no arguments
    command->argv[command->count++] = argument;
    command->argv[command->count] = NULL;
}

void member_command_add_option(struct member_command *command, const char *name, const char *value)
{
    member_command_add(command, name);
    member_command_add(command, value);
}

/* Adds a text that the command owns. */
__attribute__((format(printf, 2, 3))) static void add_text(struct member_command *command,
                                                           const char *format, ...)
{
    char *text = command->texts + command->texts_used;
    size_t room = command->texts_size - command->texts_used;
    va_list arguments;
    va_start(arguments, format);
    int wrote = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    assert(wrote >= 0 && (size_t)wrote < room);
    command->texts_used += (size_t)wrote + 1;
    member_command_add(command, text);
}

void member_command_add_number(struct member_command *command, const char *name, uint64_t value)
{
    member_command_add(command, name);
    add_text(command, "%" PRIu64, value);
}

void member_command_add_seconds(struct member_command *command, const char *name, double value)
{
    member_command_add(command, name);
    add_text(command, "%g", value);
}

void member_command_add_job(struct member_command *command, const struct job *job)
{
    for (size_t i = 0; i < job_option_count; i++) {
        char value[OPTION_VALUE_BYTES];
        option_format(&job_options[i], job, value, sizeof(value));
        add_text(command, "--%s=%s", job_options[i].name, value);
    }
}
