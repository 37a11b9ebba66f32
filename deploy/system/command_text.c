/* Writes a command as text that a shell reads back. */
#include "deploy/system/command_text.h"

#include <assert.h>
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

void command_text_write(int argc, char **argv, char ret_text[COMMAND_TEXT_BYTES])
{
    char quoted[COMMAND_TEXT_BYTES];
    size_t used = 0;
    int wrote = snprintf(ret_text, COMMAND_TEXT_BYTES, "ringside");
    for (int i = 0; i < argc && wrote > 0; i++) {
        used += (size_t)wrote;
        if (used >= COMMAND_TEXT_BYTES) {
            break;
        }
        assert(argv[i] != NULL);
        command_text_quote(argv[i], quoted, sizeof(quoted));
        wrote = snprintf(ret_text + used, COMMAND_TEXT_BYTES - used, " %s", quoted);
    }
}
