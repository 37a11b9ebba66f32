/* When the connections of a socket are fitted to their paths, and in what: see send_buffer.h and
 * congestion.h. All zero: none was yet, and their congestion control stays. */
#ifndef COMMON_TRANSPORT_FITTING_H
#define COMMON_TRANSPORT_FITTING_H

#include <stdbool.h>
#include <stdint.h>

struct fitting {
    uint64_t fitted_ns; // when one of them was
    bool has_answers;   // they carry answers to many: also their congestion control
};

/* Whether it is time for another; asked with each message, since with those of many peers it is the
 * turn of each sometime. */
bool fitting_is_due(struct fitting *fitting);

/* Fits a connection, if it is of TCP. */
void fitting_apply(const struct fitting *fitting, int descriptor);

#endif
