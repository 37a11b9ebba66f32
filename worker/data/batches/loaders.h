/* Threads that read ahead what several sources have to read: the batches of a worker.
 *
 * A source hands out its work in small portions, so that a thread that has a slow one holds up none
 * of the others. Threads take a portion from the source that is least far ahead. How many threads
 * there are changes nothing about what is read, or in which order it is used.
 *
 * The number of threads is given, or grows: every quarter of a second in which training waited for
 * more than a twentieth of the time, and the process used less than its share of the host's
 * processors, adds as many threads as processors were idle, at most as many as there are. It ends
 * at one thread for each processor of the share, and never shrinks. */
#ifndef WORKER_DATA_BATCHES_LOADERS_H
#define WORKER_DATA_BATCHES_LOADERS_H

#include "common/base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOADERS_MAX     256        // threads
#define LOADERS_NOTHING UINT64_MAX // a source has nothing to do at present

struct loaders;

/* Member of what has something to read, or borrowed by it. Both functions are called with the lock
 * held. */
struct loaders_source {
    struct loaders_source *next; // of the loaders
    /* How far ahead of its user it is, in any unit; LOADERS_NOTHING. Does not wait. */
    uint64_t (*ahead)(const struct loaders_source *source);
    /* Does a portion, after `ahead` has found one; gives up the lock meanwhile. */
    void (*work)(struct loaders_source *source);
};

struct loaders_options {
    uint32_t threads;    // at most LOADERS_MAX; 0: grow from one
    uint32_t processors; // the process's share of the host's: at least 1
};

/* Starts the threads. NULL in place of the options: there are none, and users do the work. */
enum status loaders_create(const struct loaders_options *options, struct loaders **ret_loaders);
void loaders_destroy(struct loaders *loaders); // NULL is fine; after its sources have left

/* The lock of the loaders and of all their sources. */
pthread_mutex_t *loaders_lock(struct loaders *loaders);

/* Both with the lock held. Portions of a source that has left may still be under way: it
 * waits for them afterwards. */
void loaders_join(struct loaders *loaders, struct loaders_source *source);
void loaders_leave(struct loaders *loaders, struct loaders_source *source);

/* Sources have more to do than they had. With the lock held. */
void loaders_wake(struct loaders *loaders);

/* With the lock held. */
uint32_t loaders_count(const struct loaders *loaders);

/* A user has what it wanted from a source, and waited for so long. May start threads. With the lock
 * held. */
void loaders_note_use(struct loaders *loaders, uint64_t waited_ns);

/* What was seen of some time. */
struct loaders_view {
    uint32_t threads, threads_max; // that there are
    uint64_t elapsed_ns;
    uint64_t waited_ns; // by users
    uint64_t busy_ns;   // of processors, by the process
};

/* How many threads to add. */
uint32_t loaders_growth(const struct loaders_view *view, uint32_t processors);

#endif
