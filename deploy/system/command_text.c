/* Writes a command as text that a shell reads back. */
#include "deploy/system/command_text.h"

#include "common/base/printable.h"
#include "common/base/shell_word.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends an argument. False: there is no more room. */
static bool append(const char *argument, char ret_text[COMMAND_TEXT_BYTES])
{
    char quoted[COMMAND_TEXT_BYTES];
    size_t used = strlen(ret_text), room = COMMAND_TEXT_BYTES - used;
    assert(argument != NULL);
    shell_word_quote(argument, quoted, sizeof(quoted));
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

/* Whether there is something in it that a line of text cannot have. */
static bool needs_escapes(const char *argument, const char *printable)
{
    return strcmp(argument, printable) != 0 || strchr(argument, '\t') != NULL;
}

/* As $'...'. What is not ASCII is escaped byte by byte, whether it is a character or not. */
static void escape(const char *argument, char *ret_text, size_t text_size)
{
    size_t used = (size_t)snprintf(ret_text, text_size, "$'");
    for (; *argument != '\0'; argument++) {
        unsigned char byte = (unsigned char)*argument;
        bool is_plain = byte >= ' ' && byte < 0x7F && byte != '\'' && byte != '\\';
        char *at = ret_text + used;
        size_t room = text_size - used;
        used += (size_t)(is_plain       ? snprintf(at, room, "%c", byte)
                         : byte == '\n' ? snprintf(at, room, "\\n")
                                        : snprintf(at, room, "\\%03o", byte));
    }
    snprintf(ret_text + used, text_size - used, "'");
}

/* An argument's text, which the caller frees; NULL: no memory. */
static char *line_of(const char *argument)
{
    size_t size = 4 * strlen(argument) + 8; // of the longest form
    char *text = malloc(size), *printable = strdup(argument);
    if (text != NULL && printable != NULL) {
        printable_make_utf8(printable);
        if (needs_escapes(argument, printable)) {
            escape(argument, text, size);
        } else {
            shell_word_quote(argument, text, size);
        }
    } else {
        free(text);
        text = NULL;
    }
    free(printable);
    return text;
}

bool command_text_write_line(const char *const *argv, char *ret_text, size_t text_size)
{
    size_t used = 0;
    for (size_t i = 0; argv[i] != NULL; i++) {
        char *word = line_of(argv[i]);
        size_t size = word != NULL ? strlen(word) : text_size;
        if (used + size + 2 > text_size) {
            free(word);
            ret_text[0] = '\0';
            return false;
        }
        used += (size_t)snprintf(ret_text + used, text_size - used, "%s%s", i > 0 ? " " : "", word);
        free(word);
    }
    return true;
}
