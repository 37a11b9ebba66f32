/* Writes a command as text that a shell reads back. */
#include "deploy/system/command_text.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void command_text_quote(const char *argument, char *ret_text, size_t text_size)
{
    // What no shell takes for anything else. A tilde is, at the front.
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    if (argument[0] != '\0' && argument[strspn(argument, safe)] == '\0') {
        snprintf(ret_text, text_size, "%s", argument);
        return;
    }
    size_t used = 0;
    ret_text[used++] = '\'';
    for (const char *at = argument; *at != '\0' && used + 6 < text_size; at++) {
        used +=
            (size_t)snprintf(ret_text + used, text_size - used, *at == '\'' ? "'\\''" : "%c", *at);
    }
    ret_text[used++] = '\'';
    ret_text[used] = '\0';
}

/* Appends an argument. False: there is no more room. */
static bool append(const char *argument, char ret_text[COMMAND_TEXT_BYTES])
{
    char quoted[COMMAND_TEXT_BYTES];
    size_t used = strlen(ret_text), room = COMMAND_TEXT_BYTES - used;
    assert(argument != NULL);
    command_text_quote(argument, quoted, sizeof(quoted));
    int wrote = snprintf(ret_text + used, room, "%s%s", used > 0 ? " " : "", quoted);
    return wrote > 0 && (size_t)wrote < room;
}

void command_text_write(int argc, char **argv, char ret_text[COMMAND_TEXT_BYTES])
{
    snprintf(ret_text, COMMAND_TEXT_BYTES, "ringside");
    for (int i = 0; i < argc && append(argv[i], ret_text); i++) {
    }
}

void command_text_write_program(const char *const *argv, char ret_text[COMMAND_TEXT_BYTES])
{
    ret_text[0] = '\0';
    for (size_t i = 0; argv[i] != NULL && append(argv[i], ret_text); i++) {
    }
}
