/* Writes names of classes as a list in JSON. */
#include "worker/data/class_names.h"

#include "common/base/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes a name as JSON has it, without its '\0'; returns where the next one goes. */
static char *put_name(char *at, const char *name)
{
    char shown[CLASS_NAME_BYTES];
    snprintf(shown, sizeof(shown), "%s", name);
    printable_make_utf8(shown);
    *at++ = '"';
    for (const char *from = shown; *from != '\0'; from++) {
        if (*from == '\t') {
            *at++ = '\\';
            *at++ = 't';
            continue;
        }
        if (*from == '"' || *from == '\\') {
            *at++ = '\\';
        }
        *at++ = *from;
    }
    *at++ = '"';
    return at;
}

char *class_names_list(char *const *names, uint32_t count)
{
    size_t size = 3;
    for (uint32_t i = 0; i < count; i++) {
        size += 2 * strlen(names[i]) + 3;
    }
    char *text = malloc(size), *at = text;
    if (text == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        *at++ = i == 0 ? '[' : ',';
        at = put_name(at, names[i]);
    }
    *at++ = ']';
    *at = '\0';
    return text;
}
