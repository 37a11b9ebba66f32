/* Reads names of vectors. */
#include "common/channel/piece_name.h"

#include <stddef.h>
#include <string.h>

#define DIGITS_MAX 9

/* Reads a number without leading zeros; NULL if there is none, or it is too long. */
static const char *take_number(const char *text, uint32_t *ret_number)
{
    size_t size = strspn(text, "0123456789");
    uint32_t number = 0;
    if (size == 0 || size > DIGITS_MAX || (text[0] == '0' && size > 1)) {
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        number = 10 * number + (uint32_t)(text[i] - '0');
    }
    *ret_number = number;
    return text + size;
}

/* "state-3", with a number from 1 on. */
static bool is_numbered(const char *text, const char *prefix)
{
    uint32_t number;
    size_t size = strlen(prefix);
    const char *end = strncmp(text, prefix, size) == 0 ? take_number(text + size, &number) : NULL;
    return end != NULL && *end == '\0' && number > 0;
}

static bool is_of_rank(const char *text)
{
    return strcmp(text, "statistics") == 0 || strcmp(text, "residual") == 0 ||
           is_numbered(text, "state-");
}

bool piece_name_parse(const char *text, struct piece_name *ret_name)
{
    static const char prefix[] = "rank-";
    *ret_name = (struct piece_name){0};
    if (strlen(text) >= PIECE_NAME_BYTES) {
        return false;
    }
    if (strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
        const char *rest = take_number(text + sizeof(prefix) - 1, &ret_name->rank);
        ret_name->has_rank = true;
        return rest != NULL && *rest == '/' && is_of_rank(rest + 1);
    }
    return strcmp(text, "params") == 0 || strcmp(text, "known") == 0 ||
           strcmp(text, "squares") == 0 || is_numbered(text, "state-") ||
           is_numbered(text, "version-");
}
