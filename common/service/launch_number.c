/* Writes the number of a start for the environment, and reads it there. */
#include "common/service/launch_number.h"

#include "common/transport/endpoints.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void launch_number_write(uint32_t number, const char *endpoint,
                         char ret_text[LAUNCH_NUMBER_TEXT_BYTES])
{
    snprintf(ret_text, LAUNCH_NUMBER_TEXT_BYTES, "%u@%.*s", number, TRANSPORT_ENDPOINT_BYTES - 1,
             endpoint);
}

uint32_t launch_number_read(char *(*get)(const char *name), const char *endpoint)
{
    const char *text = get(LAUNCH_NUMBER_VARIABLE);
    if (text == NULL || *text < '0' || *text > '9') {
        return 0;
    }
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    bool is_for_it = *end == '@' && endpoints_are_same(end + 1, endpoint);
    return is_for_it && number <= UINT32_MAX ? (uint32_t)number : 0;
}
