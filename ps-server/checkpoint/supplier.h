/* Reads what members fetch of a checkpoint on the disk, on a thread of its own, so that a disk that
 * is slow, or hangs, holds up nobody else.
 *
 * Questions go in, and answers come out, in their order. Both are bounded: a member has a few
 * pieces on their way at most. */
#ifndef PS_SERVER_CHECKPOINT_SUPPLIER_H
#define PS_SERVER_CHECKPOINT_SUPPLIER_H

#include "common/base/status.h"
#include "common/channel/piece_name.h"
#include "common/channel/wire.h"
#include "common/checkpoint/checkpoint_reader.h"

#include <stdbool.h>
#include <stdint.h>

struct supplier;

struct supplier_options {
    struct checkpoint_reader *reader; // borrowed until it ends, or with the thread that hangs
    uint32_t member_count;            // that may ask
    void (*wake)(void *context);      // there is an answer; called on the supplier's thread
    void *context;
};

/* An answer. */
struct supply {
    uint64_t peer; // who has asked
    uint32_t rank; // in whose name
    char vector[PIECE_NAME_BYTES];
    struct span span;
    uint64_t total; // floats of the whole vector
    float *values;  // (span.count), owned; NULL: there is no such part, or it cannot be read
    int error;      // errno: why it cannot be read; 0: it was, or there is none
};

/* Logs. */
enum status supplier_create(const struct supplier_options *options, struct supplier **ret_supplier);

/* What was asked and is not answered is left. False: the disk hangs, and the thread stays with it,
 * and with the reader, until the process ends. NULL is fine. */
bool supplier_destroy(struct supplier *supplier);

/* FETCH, which is copied. What is more than members of ours ask is left unanswered. */
void supplier_ask(struct supplier *supplier, uint64_t peer, const struct message *asked);

/* The next answer, if there is one; the caller frees its values. */
bool supplier_next(struct supplier *supplier, struct supply *ret_supply);

/* Several times a second: for how many milliseconds the disk has given nothing of what is asked
 * (task_watch_idle_ms). */
uint64_t supplier_idle_ms(struct supplier *supplier, uint64_t now_ms);

#endif
