/* Makes an envelope of given floats, as if they had been received. */
#ifndef TESTS_SUPPORT_COMMON_FLOAT_ENVELOPE_H
#define TESTS_SUPPORT_COMMON_FLOAT_ENVELOPE_H

#include "common/transport/transport.h"

#include <string.h>

/* The envelope owns a copy of the floats. */
static inline enum status float_envelope_make(const float *values, size_t count,
                                              struct envelope *ret_envelope)
{
    float *copy;
    enum status status = envelope_make_floats(count, ret_envelope, &copy);
    if (status == STATUS_OK) {
        memcpy(copy, values, count * sizeof(float));
    }
    return status;
}

#endif
