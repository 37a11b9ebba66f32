/* A command as text that a shell reads back: what reports and sweep.txt keep of how they were made.
 */
#ifndef DEPLOY_SYSTEM_COMMAND_TEXT_H
#define DEPLOY_SYSTEM_COMMAND_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_TEXT_BYTES 4096

/* "ringside compare ..." from the arguments of a command, quoted. Cut where it is too long. */
void command_text_write(int argc, char **argv, char ret_text[COMMAND_TEXT_BYTES]);

/* A program and its arguments, which end with NULL, as one line of plain text: what a page or a
 * terminal would not show, and bytes that are no UTF-8, are escaped as bash and zsh have it
 * ($'a\nb'). Returns false, and writes "", if there is no room for the whole. */
bool command_text_write_line(const char *const *argv, char *ret_text, size_t text_size);

/* The same as command_text_write of another program and its arguments, which end with NULL. */
void command_text_write_program(const char *const *argv, char ret_text[COMMAND_TEXT_BYTES]);

#endif
