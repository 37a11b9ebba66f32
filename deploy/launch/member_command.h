/* Builds the command line of a member: program, options and their values. */
#ifndef DEPLOY_LAUNCH_MEMBER_COMMAND_H
#define DEPLOY_LAUNCH_MEMBER_COMMAND_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/agent/agent_message.h"

#include <stddef.h>
#include <stdint.h>

struct member_command {
    const char *argv[AGENT_LIST_MAX + 1]; // ends with NULL
    size_t count;
    char *texts; // that argv points to, besides what is borrowed; owned
    size_t texts_size, texts_used;
};

/* Begins with the program, which is borrowed. */
enum status member_command_create(const char *program, struct member_command *ret_command);
void member_command_destroy(struct member_command *command); // zeroed is fine

/* Adds an argument, or an option and its value; both are borrowed until the command is
 * destroyed. */
void member_command_add(struct member_command *command, const char *argument);
void member_command_add_option(struct member_command *command, const char *name, const char *value);
void member_command_add_number(struct member_command *command, const char *name, uint64_t value);

void member_command_add_seconds(struct member_command *command, const char *name, double value);

/* Adds "--name=value" for every option of the job. */
void member_command_add_job(struct member_command *command, const struct job *job);

#endif
