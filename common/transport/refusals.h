/* Counts and logs refusals, so that no stranger can fill the log: the first of each kind one by
 * one, the others in summaries, which come at longer and longer intervals. A kind is a host and a
 * reason.
 *
 * The state belongs to one owner and its thread. */
#ifndef COMMON_TRANSPORT_REFUSALS_H
#define COMMON_TRANSPORT_REFUSALS_H

#include <stdint.h>

#define REFUSALS_SINGLE_MAX     3  // lines for single refusals of one kind
#define REFUSALS_KINDS_MAX      16 // kinds that are told apart
#define REFUSALS_SUMMARY_MS_MIN UINT64_C(10000)
#define REFUSALS_SUMMARY_MS_MAX UINT64_C(600000)
#define REFUSALS_HOST_BYTES     64

struct refusals_kind {
    char host[REFUSALS_HOST_BYTES]; // without the port
    const char *why;                // static
    uint64_t count, unsaid;         // in all; since the last line
};

/* Zeroed is empty. */
struct refusals {
    uint64_t count;             // in all
    uint64_t unsaid;            // of those, since the last line
    uint64_t said_ms, pause_ms; // of summaries
    struct refusals_kind kinds[REFUSALS_KINDS_MAX];
    uint32_t kind_count;
};

/* Adds `count` refused connections from an address, for the reason `why`, which is static. Logs. */
void refusals_add(struct refusals *refusals, const char *address, const char *why, uint64_t count,
                  uint64_t now_ms);

/* Logs a summary if one is due. */
void refusals_tick(struct refusals *refusals, uint64_t now_ms);

/* Logs what was not logged yet. */
void refusals_finish(struct refusals *refusals);

#endif
