/* Reads the number of a start from the environment. */
#include "common/service/launch_number.h"

#include <stddef.h>
#include <stdlib.h>

uint32_t launch_number_read(char *(*get)(const char *name))
{
    const char *text = get(LAUNCH_NUMBER_VARIABLE);
    if (text == NULL || *text < '0' || *text > '9') {
        return 0;
    }
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    return *end == '\0' && number <= UINT32_MAX ? (uint32_t)number : 0;
}
