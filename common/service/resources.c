/* Works out what a role needs, and compares it with the system's limits. */
#include "common/service/resources.h"

#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/transport/door.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

// Descriptors, as they were counted in jobs of every mode and transport; each bound is above what
// was seen. libzmq has several for each context, each socket, and each handshake that goes on.
#define FILES_COORDINATOR 20
#define FILES_SHARD       18
#define FILES_SERVER      12 // of a process, beside its shards
#define FILES_WORKER      30
#define FILES_PER_LINK    3

// Threads beside the first: of libzmq for a context, and of ours that has it.
#define THREADS_CONTEXT 3
#define THREADS_DISK    4 // of a coordinator: for records, checkpoints, fetches, and what it awaits
#define THREADS_WORKER  5
#define THREADS_SLICE   2 // that read batches of a further rank that a worker carries

static uint32_t connections_of(const struct job *job)
{
    return job->connections > 0 ? job->connections : 1;
}

/* The shards of one server. */
static uint32_t files_of_shards(const struct job *job)
{
    return job->server_threads * (FILES_SHARD + job_carriers(job).processes * connections_of(job));
}

static struct resources_need need_of(enum resources_role role, const struct job *job)
{
    struct resources_need need = {0};
    if (role == RESOURCES_WORKER) {
        const struct carriers carriers = job_carriers(job);
        uint32_t slices = carriers_most(carriers);
        uint32_t links = job_shard_count(job);
        links += job_has_mode(job, MODE_RING) ? carriers.processes - 1 : 0;
        need.files = FILES_WORKER + FILES_PER_LINK * links * connections_of(job);
        need.threads = THREADS_WORKER + (job->threads > 0 ? job->threads : 1) - 1;
        need.threads += THREADS_SLICE * (slices - 1);
        return need;
    }
    bool has_shards = job->servers > 0 && (role == RESOURCES_SHARD || job_first_server(job) == 0);
    need.files = has_shards ? files_of_shards(job) : 0;
    need.threads = has_shards ? job->server_threads * THREADS_CONTEXT : 0;
    if (role == RESOURCES_SHARD) {
        need.files += FILES_SERVER;
    } else {
        need.files += FILES_COORDINATOR + job_carriers(job).processes + job_shard_count(job);
        need.threads += THREADS_CONTEXT - 1 + THREADS_DISK; // its own is the first
    }
    return need;
}

struct resources_need resources_of(enum resources_role role, const struct job *job)
{
    static const struct job smallest = {.workers = 1, .servers = 1, .server_threads = 1};
    struct resources_need need = need_of(role, job != NULL ? job : &smallest);
    // A quarter of a limit, or DOOR_RESERVE, is not for connections.
    uint32_t reserve = (need.files + 2) / 3;
    need.files += reserve < DOOR_RESERVE ? reserve : DOOR_RESERVE;
    return need;
}

enum status resources_check_files(uint32_t count, const char *whose,
                                  char ret_error[RESOURCES_ERROR_BYTES])
{
    struct rlimit limit;
    door_open(); // raises it
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) {
        return STATUS_OK;
    }
    snprintf(ret_error, RESOURCES_ERROR_BYTES,
             "%s needs up to %u open files, and the limit is %llu: raise it to %u (ulimit -n, "
             "LimitNOFILE of a systemd unit, or nofile in /etc/security/limits.conf)",
             whose, count, (unsigned long long)limit.rlim_cur, count);
    return STATUS_INVALID;
}

/* Stays until the trial is over. */
static void *stay(void *data)
{
    pthread_mutex_t *until = data;
    pthread_mutex_lock(until);
    pthread_mutex_unlock(until);
    return NULL;
}

/* How many threads, up to count, can be there at once beside those that are. */
static uint32_t try_threads(uint32_t count)
{
    pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    pthread_t *threads = calloc(count, sizeof(*threads));
    uint32_t started = 0;
    if (threads == NULL || pthread_attr_init(&attributes) != 0) {
        free(threads);
        return 0;
    }
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
    pthread_mutex_lock(&until);
    while (started < count && pthread_create(&threads[started], &attributes, stay, &until) == 0) {
        started++;
    }
    pthread_mutex_unlock(&until);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_attr_destroy(&attributes);
    free(threads);
    return started;
}

enum status resources_check_threads(uint32_t count, const char *whose,
                                    char ret_error[RESOURCES_ERROR_BYTES])
{
    struct rlimit limit;
    uint32_t possible = try_threads(count);
    if (possible == count) {
        return STATUS_OK;
    }
    bool is_known = getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    char text[64] = "no limit is set for this user";
    if (is_known) {
        snprintf(text, sizeof(text), "this user's limit is %llu in all",
                 (unsigned long long)limit.rlim_cur);
    }
    snprintf(ret_error, RESOURCES_ERROR_BYTES,
             "%s needs %u more threads, and only %u can be started (%s): raise the limit (ulimit "
             "-u, nproc in /etc/security/limits.conf, TasksMax of a systemd unit, or pids.max of "
             "the container)",
             whose, count, possible, text);
    return STATUS_INVALID;
}

void resources_describe(enum resources_role role, const struct job *job, char *ret_text,
                        size_t text_size)
{
    static const char *const names[RESOURCES_ROLES] = {[RESOURCES_COORDINATOR] = "the coordinator",
                                                       [RESOURCES_SHARD] = "a server",
                                                       [RESOURCES_WORKER] = "a worker"};
    if (job == NULL) {
        snprintf(ret_text, text_size, "%s of any job", names[role]);
        return;
    }
    snprintf(ret_text, text_size, "%s of a job of %u worker%s and %u server%s", names[role],
             job->workers, job->workers == 1 ? "" : "s", job->servers,
             job->servers == 1 ? "" : "s");
}

enum status resources_check(enum resources_role role, const struct job *job,
                            char ret_error[RESOURCES_ERROR_BYTES])
{
    char whose[128];
    struct resources_need need = resources_of(role, job);
    resources_describe(role, job, whose, sizeof(whose));
    enum status status = resources_check_files(need.files, whose, ret_error);
    return status == STATUS_OK ? resources_check_threads(need.threads, whose, ret_error) : status;
}
