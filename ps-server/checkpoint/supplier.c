/* Queues questions for a thread that has the reader. */
#include "ps-server/checkpoint/supplier.h"

#include "common/base/log.h"
#include "common/channel/snapshot.h"
#include "common/thread/task_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define END_MS 200 // that the disk gets for the part that is being read

struct supplier {
    struct supplier_options options;
    struct task_thread *thread;
    struct task_watch watch;
    uint32_t capacity;      // of questions and answers
    uint32_t asked;         // and not taken as an answer
    pthread_mutex_t mutex;  // of what follows
    struct supply *answers; // (capacity), a ring, owned
    uint32_t head, count;
    bool is_forsaken; // its owner, whom it would wake, is gone
};

static bool is_forsaken(struct supplier *supplier)
{
    pthread_mutex_lock(&supplier->mutex);
    bool is_forsaken = supplier->is_forsaken;
    pthread_mutex_unlock(&supplier->mutex);
    return is_forsaken;
}

/* Reads what is asked, if the checkpoint has it. */
static void read_part(const struct supplier *supplier, struct supply *supply)
{
    struct checkpoint_reader *reader = supplier->options.reader;
    const struct span span = supply->span;
    uint64_t size = 0;
    bool is_there = checkpoint_has(reader, supply->vector, &size);
    supply->total = size / sizeof(float);
    if (!is_there || span.offset > supply->total || span.count > supply->total - span.offset) {
        return;
    }
    supply->values = malloc(span.count * sizeof(float));
    if (supply->values == NULL) {
        supply->error = ENOMEM;
    } else if (checkpoint_read(reader, supply->vector, span.offset * sizeof(float), supply->values,
                               span.count * sizeof(float)) != STATUS_OK) {
        supply->error = errno;
        free(supply->values);
        supply->values = NULL;
    }
}

static void tell(struct supplier *supplier, const struct supply *supply)
{
    pthread_mutex_lock(&supplier->mutex);
    if (supplier->is_forsaken) {
        free(supply->values);
    } else {
        supplier->answers[(supplier->head + supplier->count++) % supplier->capacity] = *supply;
        supplier->options.wake(supplier->options.context);
    }
    pthread_mutex_unlock(&supplier->mutex);
}

static void run_task(void *context, void *task)
{
    struct supplier *supplier = context;
    struct supply *supply = task;
    if (!is_forsaken(supplier)) {
        read_part(supplier, supply);
        tell(supplier, supply);
    }
}

static void finish(struct supplier *supplier)
{
    for (uint32_t i = 0; i < supplier->count; i++) {
        free(supplier->answers[(supplier->head + i) % supplier->capacity].values);
    }
    pthread_mutex_destroy(&supplier->mutex);
    free(supplier->answers);
    free(supplier);
}

enum status supplier_create(const struct supplier_options *options, struct supplier **ret_supplier)
{
    struct supplier *supplier = calloc(1, sizeof(*supplier));
    if (supplier == NULL) {
        return STATUS_NO_MEMORY;
    }
    supplier->options = *options;
    // Those who were lost meanwhile may have asked, too.
    supplier->capacity = 4 * options->member_count * SNAPSHOT_CREDITS;
    supplier->answers = calloc(supplier->capacity, sizeof(*supplier->answers));
    pthread_mutex_init(&supplier->mutex, NULL);
    const struct task_thread_options thread = {.name = "fetches",
                                               .capacity = supplier->capacity,
                                               .task_bytes = sizeof(struct supply),
                                               .run = run_task,
                                               .context = supplier};
    if (supplier->answers == NULL || task_thread_create(&thread, &supplier->thread) != STATUS_OK) {
        log_error("cannot start the thread that reads what members fetch");
        finish(supplier);
        return STATUS_NO_MEMORY;
    }
    *ret_supplier = supplier;
    return STATUS_OK;
}

bool supplier_destroy(struct supplier *supplier)
{
    if (supplier == NULL) {
        return true;
    }
    pthread_mutex_lock(&supplier->mutex);
    supplier->is_forsaken = true;
    pthread_mutex_unlock(&supplier->mutex);
    if (!task_thread_destroy(supplier->thread, END_MS)) {
        return false;
    }
    finish(supplier);
    return true;
}

void supplier_ask(struct supplier *supplier, uint64_t peer, const struct message *asked)
{
    struct supply task = {.peer = peer, .rank = asked->rank, .span = asked->span};
    snprintf(task.vector, sizeof(task.vector), "%s", asked->piece->vector);
    // Answers that nobody has taken yet keep their places, too.
    if (supplier->asked < supplier->capacity && task_thread_add(supplier->thread, &task)) {
        supplier->asked++;
    }
}

bool supplier_next(struct supplier *supplier, struct supply *ret_supply)
{
    pthread_mutex_lock(&supplier->mutex);
    bool has_some = supplier->count > 0;
    if (has_some) {
        *ret_supply = supplier->answers[supplier->head];
        supplier->head = (supplier->head + 1) % supplier->capacity;
        supplier->count--;
    }
    pthread_mutex_unlock(&supplier->mutex);
    supplier->asked -= has_some;
    return has_some;
}

uint64_t supplier_idle_ms(struct supplier *supplier, uint64_t now_ms)
{
    return task_watch_idle_ms(&supplier->watch, supplier->thread, now_ms);
}
