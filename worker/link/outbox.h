/* Queues messages from the trainer's thread to the coordinator, for the communication thread.
 *
 * A bounded queue between one writer and one reader; an entry holds what its message points to. */
#ifndef WORKER_LINK_OUTBOX_H
#define WORKER_LINK_OUTBOX_H

#include "common/base/status.h"
#include "common/channel/wire.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define OUTBOX_MAX          64 // reports are far apart
#define OUTBOX_TEXT_BYTES   512
#define OUTBOX_DIGEST_BYTES 80

struct outbox_entry {
    struct message message;
    struct wire_report report;
    struct wire_slices slices;
    struct wire_member member;
    struct wire_passed passed;
    struct wire_sum sum;
    char text[OUTBOX_TEXT_BYTES];
    char digest[OUTBOX_DIGEST_BYTES];
};

struct outbox {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closed; // nobody will read the queue any more
    uint32_t head, count;
    struct outbox_entry entries[OUTBOX_MAX];
};

void outbox_init(struct outbox *outbox);
void outbox_finish(struct outbox *outbox);

/* Copies the message, its text (that of CHOICES is borrowed until it is sent), its member's digest,
 * and its parts that a trainer sends: a report, the end of a phase, a sum without its values,
 * slices without theirs. Other strings are left out. Waits while the outbox is full; does nothing
 * once it is closed. Writer's thread. */
void outbox_add(struct outbox *outbox, const struct message *message);

/* Takes everything out of the outbox, in order: hands each entry to `take`, which borrows it.
 * Reports get the transports that values take (a sum of enum wire_transport). Reader's thread. */
void outbox_flush(struct outbox *outbox, uint32_t transports,
                  void (*take)(void *context, const struct outbox_entry *entry), void *context);

/* Copies an entry, with what its message points to as far as the entry holds it. */
void outbox_entry_copy(struct outbox_entry *to, const struct outbox_entry *from);

bool outbox_is_empty(struct outbox *outbox);
void outbox_close(struct outbox *outbox);

#endif
