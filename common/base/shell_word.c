/* Quotes text for a shell. */
#include "common/base/shell_word.h"

#include <stdio.h>
#include <string.h>

void shell_word_quote(const char *text, char *ret_word, size_t word_size)
{
    // What no shell takes for anything else. A tilde is, at the front.
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    if (text[0] != '\0' && text[strspn(text, safe)] == '\0') {
        snprintf(ret_word, word_size, "%s", text);
        return;
    }
    size_t used = 0;
    ret_word[used++] = '\'';
    for (; *text != '\0' && used + 6 < word_size; text++) {
        used += (size_t)snprintf(ret_word + used, word_size - used, *text == '\'' ? "'\\''" : "%c",
                                 *text);
    }
    ret_word[used++] = '\'';
    ret_word[used] = '\0';
}
