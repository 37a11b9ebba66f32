/* Decides when a socket's connections are fitted to their paths, and what is fitted: see
 * send_buffer.h and congestion.h. Zeroed: none was fitted yet, and their congestion control
 * stays. */
#ifndef COMMON_TRANSPORT_FITTING_H
#define COMMON_TRANSPORT_FITTING_H

#include <stdbool.h>
#include <stdint.h>

struct fitting {
    uint64_t fitted_ns; // when one of them was last fitted
    bool has_answers;   // they carry answers to many peers: their congestion control is fitted, too
};

/* Whether it is time for another one. Ask it with each message: among messages of many peers, each
 * peer gets its turn at some time. */
bool fitting_is_due(struct fitting *fitting);

/* Fits a TCP connection; leaves others alone. */
void fitting_apply(const struct fitting *fitting, int descriptor);

#endif
