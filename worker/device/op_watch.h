/* Who wants to know when the operations of a program run. It is told by devices that compute on the
 * caller's thread; one that goes on beside that has spans (device_spans.h). */
#ifndef WORKER_DEVICE_OP_WATCH_H
#define WORKER_DEVICE_OP_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct op_watch {
    /* Operation `op` begins, when its parameters are there, or has ended. Those that are fused with
     * it are part of it. */
    void (*note)(void *context, uint32_t op, bool is_begin);
    void *context;
};

/* For backends. NULL: nobody wants to know. */
static inline void op_watch_note(const struct op_watch *watch, uint32_t op, bool is_begin)
{
    if (watch != NULL) {
        watch->note(watch->context, op, is_begin);
    }
}

#endif
