/* Finds advice for an error in a table. */
#include "deploy/system/advice.h"

#include <stdio.h>
#include <string.h>

const char *advice_find(const struct advice *rows, size_t count, const char *said,
                        const char *otherwise)
{
    const char *text = otherwise;
    for (size_t i = 0; i < count; i++) {
        text = strstr(said, rows[i].said) != NULL ? rows[i].text : text;
    }
    return text;
}

void advice_fill(const char *text, const char *host, char ret_advice[OPTION_ERROR_BYTES])
{
    const char *place = strstr(text, "%s");
    if (place == NULL) {
        snprintf(ret_advice, OPTION_ERROR_BYTES, "%s", text);
        return;
    }
    snprintf(ret_advice, OPTION_ERROR_BYTES, "%.*s%s%s", (int)(place - text), text, host,
             place + 2);
}
