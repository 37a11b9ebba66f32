/* Says what each status code means. */
#include "common/base/status.h"

#include <stddef.h>

static const char *const texts[STATUS_COUNT] = {
#define X(name, text) [STATUS_##name] = text,
    STATUS_MAP(X)
#undef X
};

const char *status_text(enum status status)
{
    if ((unsigned)status >= STATUS_COUNT) {
        return "unknown status";
    }
    return texts[status];
}
