/* Threads take portions under one lock. What they read does not depend on who reads it. */
#include "worker/data/batches/loaders.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/data/helpers.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

// Shortest time that says something.
#define VIEW_NS 250000000
// Training waits: a share of the time, as one of so many.
#define WAITING_PARTS 20
// A processor is idle that has so large a part of itself left: one of so many.
#define IDLE_PARTS 4

struct loaders {
    struct loaders_options options;
    uint32_t threads_max;
    pthread_t threads[LOADERS_MAX];
    pthread_mutex_t lock; // of all that follows
    pthread_cond_t work;  // there is some
    struct loaders_source *sources;
    uint32_t count; // of threads
    bool is_stopping;

    // Since the view began; 0: none has.
    uint64_t began_ns, waited_ns, busy_before_ns;
};

/* ---- reading ---- */

static struct loaders_source *choose(const struct loaders *loaders)
{
    struct loaders_source *chosen = NULL;
    uint64_t least = LOADERS_NOTHING;
    for (struct loaders_source *source = loaders->sources; source != NULL; source = source->next) {
        uint64_t ahead = source->ahead(source);
        if (ahead < least) {
            least = ahead;
            chosen = source;
        }
    }
    return chosen;
}

static void *run_loader(void *argument)
{
    struct loaders *loaders = argument;
    pthread_mutex_lock(&loaders->lock);
    while (!loaders->is_stopping) {
        struct loaders_source *source = choose(loaders);
        if (source != NULL) {
            source->work(source);
        } else {
            pthread_cond_wait(&loaders->work, &loaders->lock);
        }
    }
    pthread_mutex_unlock(&loaders->lock);
    return NULL;
}

/* False: the system has no more of them. */
static bool start_thread(struct loaders *loaders)
{
    assert(loaders->count < LOADERS_MAX);
    pthread_t *thread = &loaders->threads[loaders->count];
    if (!helpers_start(thread, run_loader, loaders)) {
        return false;
    }
    pthread_setname_np(*thread, "loader");
    loaders->count++;
    return true;
}

/* ---- their number ---- */

uint32_t loaders_growth(const struct loaders_view *view, uint32_t processors)
{
    uint64_t all_ns = processors * view->elapsed_ns;
    uint64_t idle_ns = view->busy_ns < all_ns ? all_ns - view->busy_ns : 0;
    bool is_waiting = view->waited_ns > view->elapsed_ns / WAITING_PARTS;
    if (!is_waiting || idle_ns < view->elapsed_ns / IDLE_PARTS ||
        view->threads >= view->threads_max) {
        return 0;
    }
    uint64_t idle = idle_ns / view->elapsed_ns;
    uint32_t most = view->threads_max - view->threads;
    most = view->threads < most ? view->threads : most;
    return idle < 1 ? 1 : idle < most ? (uint32_t)idle : most;
}

/* Of processors, by all threads of the process. */
static uint64_t busy_ns(void)
{
    struct timespec busy;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &busy);
    return (uint64_t)busy.tv_sec * 1000000000 + (uint64_t)busy.tv_nsec;
}

static void begin_view(struct loaders *loaders, uint64_t now_ns)
{
    loaders->began_ns = now_ns;
    loaders->waited_ns = 0;
    loaders->busy_before_ns = busy_ns();
}

static void grow(struct loaders *loaders, const struct loaders_view *view)
{
    uint32_t processors = loaders->options.processors;
    uint32_t added = loaders_growth(view, processors);
    for (uint32_t i = 0; i < added && loaders->count < loaders->threads_max; i++) {
        if (!start_thread(loaders)) {
            loaders->threads_max = loaders->count;
        }
    }
    if (loaders->count > view->threads) {
        log_info("training waited for images: %u threads read them now; threads=%u waited=%.0f%% "
                 "busy=%.1f processors=%u",
                 loaders->count, loaders->count,
                 100 * (double)view->waited_ns / (double)view->elapsed_ns,
                 (double)view->busy_ns / (double)view->elapsed_ns, processors);
    }
}

void loaders_note_use(struct loaders *loaders, uint64_t waited_ns)
{
    loaders->waited_ns += waited_ns;
    if (loaders->count == loaders->threads_max) {
        return;
    }
    uint64_t now_ns = clock_now_ns();
    if (loaders->began_ns == 0) {
        begin_view(loaders, now_ns); // nothing was read ahead of the first one
        return;
    }
    const struct loaders_view view = {
        .threads = loaders->count,
        .threads_max = loaders->threads_max,
        .elapsed_ns = now_ns - loaders->began_ns,
        .waited_ns = loaders->waited_ns,
        .busy_ns = busy_ns() - loaders->busy_before_ns,
    };
    if (view.elapsed_ns >= VIEW_NS) {
        grow(loaders, &view);
        begin_view(loaders, now_ns);
    }
}

uint32_t loaders_count(const struct loaders *loaders)
{
    return loaders->count;
}

/* ---- creation and use ---- */

enum status loaders_create(const struct loaders_options *options, struct loaders **ret_loaders)
{
    struct loaders *loaders = calloc(1, sizeof(*loaders));
    if (loaders == NULL) {
        return STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&loaders->lock, NULL); // neither fails on Linux
    pthread_cond_init(&loaders->work, NULL);
    uint32_t begun = 0;
    if (options != NULL) {
        assert(options->threads <= LOADERS_MAX && options->processors > 0);
        loaders->options = *options;
        bool is_given = options->threads > 0;
        begun = is_given ? options->threads : 1;
        loaders->threads_max = is_given                            ? options->threads
                               : options->processors < LOADERS_MAX ? options->processors
                                                                   : LOADERS_MAX;
    }
    pthread_mutex_lock(&loaders->lock);
    while (loaders->count < begun && start_thread(loaders)) {
    }
    bool has_all = loaders->count == begun;
    pthread_mutex_unlock(&loaders->lock);
    if (!has_all) {
        log_error("the system has no more threads: %u of %u that read images were started; give "
                  "--loader-threads a smaller number",
                  loaders->count, begun);
        loaders_destroy(loaders);
        return STATUS_NO_MEMORY;
    }
    *ret_loaders = loaders;
    return STATUS_OK;
}

void loaders_destroy(struct loaders *loaders)
{
    if (loaders == NULL) {
        return;
    }
    pthread_mutex_lock(&loaders->lock);
    assert(loaders->sources == NULL);
    loaders->is_stopping = true;
    pthread_cond_broadcast(&loaders->work);
    pthread_mutex_unlock(&loaders->lock);
    if (loaders->began_ns > 0) {
        log_info("--loader-threads auto has come to threads=%u processors=%u", loaders->count,
                 loaders->options.processors);
    }
    for (uint32_t i = 0; i < loaders->count; i++) {
        pthread_join(loaders->threads[i], NULL);
    }
    pthread_cond_destroy(&loaders->work);
    pthread_mutex_destroy(&loaders->lock);
    free(loaders);
}

pthread_mutex_t *loaders_lock(struct loaders *loaders)
{
    return &loaders->lock;
}

void loaders_join(struct loaders *loaders, struct loaders_source *source)
{
    source->next = loaders->sources;
    loaders->sources = source;
    loaders_wake(loaders);
}

void loaders_leave(struct loaders *loaders, struct loaders_source *source)
{
    struct loaders_source **at = &loaders->sources;
    while (*at != source) {
        at = &(*at)->next;
    }
    *at = source->next;
}

void loaders_wake(struct loaders *loaders)
{
    pthread_cond_broadcast(&loaders->work);
}
