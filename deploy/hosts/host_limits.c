/* Adds up the open files and threads that a job needs on this host, and checks the limits. */
#include "deploy/hosts/host_limits.h"

#define FILES_BASE       32
#define FILES_PER_HOST   3 // pipes to its agent
#define FILES_PER_MEMBER 3 // the agent's pipes from it, or the launcher's file for its log

struct sum {
    struct resources_need most; // of one process
    enum resources_role role;   // the role of that process
    uint32_t threads;           // of all processes, including their first threads
};

static void add(struct sum *sum, enum resources_role role, const struct job *job)
{
    struct resources_need need = resources_of(role, job);
    if (need.files > sum->most.files) {
        sum->most = need;
        sum->role = role;
    }
    sum->threads += need.threads + 1;
}

static struct sum sum_up(const struct crew *crew, const struct placement *placement,
                         const struct job *job)
{
    struct sum sum = {0};
    for (uint32_t i = 0; i < placement->server_count; i++) {
        if (crew->links[placement->host_of_server[i]].is_local) {
            add(&sum, i == 0 ? RESOURCES_COORDINATOR : RESOURCES_SHARD, job);
        }
    }
    for (uint32_t i = 0; i < placement->worker_count; i++) {
        if (crew->links[placement->host_of_worker[i]].is_local) {
            add(&sum, RESOURCES_WORKER, job);
        }
    }
    return sum;
}

enum status host_limits_check(const struct crew *crew, const struct placement *placement,
                              const struct job *job, char ret_error[RESOURCES_ERROR_BYTES])
{
    struct sum sum = sum_up(crew, placement, job);
    uint32_t members = placement->server_count + placement->worker_count;
    uint32_t files =
        FILES_BASE + FILES_PER_HOST * (uint32_t)crew->count + FILES_PER_MEMBER * members;
    char whose[128] = "the launcher of this job";
    if (sum.most.files > files) {
        files = sum.most.files;
        resources_describe(sum.role, job, whose, sizeof(whose));
    }
    enum status status = resources_check_files(files, whose, ret_error);
    return status == STATUS_OK
               ? resources_check_threads(sum.threads, "the part of the job on this host", ret_error)
               : status;
}
