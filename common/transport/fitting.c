/* Fits a socket's connections now and then, with a pause in between. */
#include "common/transport/fitting.h"

#include "common/base/clock.h"
#include "common/transport/congestion.h"
#include "common/transport/send_buffer.h"

// The least time between two fittings of a socket: each costs some system calls.
#define PAUSE_NS (UINT64_C(1) * 1000 * 1000)

bool fitting_is_due(struct fitting *fitting)
{
    uint64_t now_ns = clock_now_ns();
    if (now_ns - fitting->fitted_ns < PAUSE_NS) {
        return false;
    }
    fitting->fitted_ns = now_ns;
    return true;
}

void fitting_apply(const struct fitting *fitting, int descriptor)
{
    if (fitting->has_answers) {
        (void)congestion_fit(descriptor);
    }
    (void)send_buffer_fit(descriptor);
}
