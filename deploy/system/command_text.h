/* A command as text that a shell reads back: what reports and sweep.txt keep of how they were made.
 */
#ifndef DEPLOY_SYSTEM_COMMAND_TEXT_H
#define DEPLOY_SYSTEM_COMMAND_TEXT_H

#include <stddef.h>

#define COMMAND_TEXT_BYTES 4096

/* An argument as a shell takes it whole: bare if nothing in it means anything to a shell, otherwise
 * in single quotes. Cut at text_size, which is at least 8. */
void command_text_quote(const char *argument, char *ret_text, size_t text_size);

/* "ringside compare ..." from the arguments of a command, quoted. Cut where it is too long. */
void command_text_write(int argc, char **argv, char ret_text[COMMAND_TEXT_BYTES]);

/* The same of another program and its arguments, which end with NULL. */
void command_text_write_program(const char *const *argv, char ret_text[COMMAND_TEXT_BYTES]);

#endif
