/* Reads what Slurm says about an allocation. */
#include "deploy/hosts/allocation.h"

#include "common/base/number.h"
#include "deploy/system/process_run.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_BYTES   (HOSTS_MAX * HOST_NAME_BYTES)
#define SCONTROL_MS   20000
#define ID_OF_A_SHELL "4294967290" // of the step that salloc may run its shell in

bool allocation_is_there(char *(*get)(const char *name))
{
    const char *job = get("SLURM_JOB_ID"), *nodes = get("SLURM_JOB_NODELIST");
    return job != NULL && job[0] != '\0' && nodes != NULL && nodes[0] != '\0';
}

/* Reads how many tasks each node has ("2(x3),1"), up to HOSTS_MAX nodes. Returns 0 if the text is
 * not such a list. */
static size_t parse_tasks(const char *text, uint32_t ret_tasks[HOSTS_MAX])
{
    size_t count = 0;
    for (const char *at = text;; at++) {
        uint64_t tasks, times = 1;
        size_t digits = strspn(at, "0123456789");
        if (!number_whole(at, digits, HOSTS_SLOTS_MAX, &tasks) || tasks < 1) {
            return 0;
        }
        at += digits;
        if (strncmp(at, "(x", 2) == 0) {
            digits = strspn(at + 2, "0123456789");
            if (!number_whole(at + 2, digits, HOSTS_MAX, &times) || at[2 + digits] != ')') {
                return 0;
            }
            at += 2 + digits + 1;
        }
        if (times > HOSTS_MAX - count || (*at != ',' && *at != '\0')) {
            return 0;
        }
        for (uint64_t i = 0; i < times; i++) {
            ret_tasks[count++] = (uint32_t)tasks;
        }
        if (*at == '\0') {
            return count;
        }
    }
}

/* Reads the number of GPUs of a node ("4", "a100:4", "a100:2,v100:1"). Returns 0 if the text is
 * none of these. */
static uint32_t parse_gpus(const char *text)
{
    uint64_t sum = 0;
    while (text != NULL && *text != '\0') {
        size_t size = strcspn(text, ",");
        const char *colon = memchr(text, ':', size);
        const char *number = colon != NULL ? colon + 1 : text;
        uint64_t gpus;
        if (!number_whole(number, size - (size_t)(number - text), HOSTS_SLOTS_MAX, &gpus)) {
            return 0;
        }
        sum += gpus;
        text += size + (text[size] == ',');
    }
    return sum <= HOSTS_SLOTS_MAX ? (uint32_t)sum : 0;
}

/* Checks that there is one launcher, in an allocation of one kind of nodes. */
static enum status check_place(char *(*get)(const char *name), char ret_error[OPTION_ERROR_BYTES])
{
    const char *parts = get("SLURM_HET_SIZE"), *step = get("SLURM_STEP_ID");
    const char *tasks = get("SLURM_STEP_NUM_TASKS");
    if (parts != NULL && strcmp(parts, "1") != 0) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "this is a heterogeneous Slurm job (SLURM_HET_SIZE is %.20s): start ps and "
                 "workers by hand (`srun --het-group`), or ask for one allocation",
                 parts);
        return STATUS_INVALID;
    }
    if (step != NULL && tasks != NULL && strcmp(tasks, "1") != 0) {
        snprintf(
            ret_error, OPTION_ERROR_BYTES,
            "srun has started this launcher %.20s times (SLURM_STEP_NUM_TASKS): start it once, "
            "without srun; it calls srun itself",
            tasks);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Spreads the tasks over the nodes. --ntasks-per-node sets the most tasks that a node takes; as
 * srun does, this puts fewer on the last nodes, but at least one on each, so that the total is
 * right. Returns false if that is impossible. */
static bool fit_slots(const char *tasks, uint32_t *slots, size_t count)
{
    uint64_t wanted, sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += slots[i];
    }
    if (tasks == NULL) {
        return true; // as many tasks as the nodes take
    }
    if (!number_whole(tasks, strlen(tasks), UINT32_MAX, &wanted) || wanted > sum ||
        wanted < count) {
        return false;
    }
    for (size_t i = count; i > 0; i--) {
        uint64_t excess = sum - wanted, most = slots[i - 1] - 1;
        uint64_t less = excess < most ? excess : most;
        slots[i - 1] -= (uint32_t)less;
        sum -= less;
    }
    return true;
}

/* Finds out how many workers each node takes. */
static enum status read_slots(char *(*get)(const char *name), size_t node_count,
                              uint32_t slots[HOSTS_MAX], char ret_error[OPTION_ERROR_BYTES])
{
    const char *per_node = get("SLURM_TASKS_PER_NODE"), *all = get("SLURM_NTASKS");
    const char *gpus = get("SLURM_GPUS_PER_NODE"), *step = get("SLURM_STEP_ID");
    uint32_t each = parse_gpus(gpus != NULL ? gpus : get("SLURM_GPUS_ON_NODE"));
    for (size_t i = 0; i < HOSTS_MAX; i++) {
        slots[i] = each > 0 ? each : 1;
    }
    if (all == NULL && get("SLURM_NTASKS_PER_NODE") == NULL) {
        return STATUS_OK;
    }
    size_t count = per_node != NULL ? parse_tasks(per_node, slots) : 0;
    if (count != node_count) {
        bool is_step = step != NULL && strcmp(step, ID_OF_A_SHELL) != 0;
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "SLURM_TASKS_PER_NODE (%.60s) does not fit the %zu node%s of SLURM_JOB_NODELIST: "
                 "%s, or name the nodes with -H",
                 per_node != NULL ? per_node : "not set", node_count, node_count == 1 ? "" : "s",
                 is_step ? "it describes this step of srun; start ringside outside the step"
                         : "unset what does not belong to this job");
        return STATUS_INVALID;
    }
    if (!fit_slots(all, slots, count)) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "SLURM_NTASKS is %.20s, but SLURM_TASKS_PER_NODE is %.60s: unset what does not "
                 "belong to this job, or name the nodes with -H",
                 all, per_node);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A step of one task gets what the job was given per node. What it was given per task, or in all,
 * must be asked for. */
static void read_gpus(char *(*get)(const char *name), struct allocation *allocation)
{
    uint32_t gpus = parse_gpus(get("SLURM_GPUS_ON_NODE"));
    bool is_for_nodes = get("SLURM_GPUS_PER_NODE") != NULL;
    bool is_otherwise = get("SLURM_GPUS") != NULL || get("SLURM_GPUS_PER_TASK") != NULL ||
                        get("SLURM_GPUS_PER_SOCKET") != NULL;
    if (gpus > 0 && is_otherwise && !is_for_nodes) {
        snprintf(allocation->gpus, sizeof(allocation->gpus), "gpu:%u", gpus);
    }
}

static enum status add_nodes(struct hosts *hosts, const char *names, char *ret_error)
{
    enum status status = STATUS_OK;
    for (const char *at = names; status == STATUS_OK && *at != '\0';) {
        char name[HOST_NAME_BYTES + 1];
        size_t size = strcspn(at, "\n");
        snprintf(name, sizeof(name), "%.*s", (int)(size < sizeof(name) ? size : sizeof(name)), at);
        status = hosts_parse(hosts, name, ret_error);
        at += size + (at[size] == '\n');
    }
    return status;
}

enum status allocation_make(char *(*get)(const char *name), const char *names, bool has_hosts,
                            struct allocation *ret_allocation, char ret_error[OPTION_ERROR_BYTES])
{
    uint32_t slots[HOSTS_MAX];
    struct hosts *hosts = &ret_allocation->hosts;
    const char *own = get("SLURMD_NODENAME");
    *ret_allocation = (struct allocation){.job = ""};
    enum status status = check_place(get, ret_error);
    if (status != STATUS_OK) {
        return status;
    }
    status = add_nodes(hosts, names, ret_error);
    if (status != STATUS_OK) {
        return status;
    }
    if (!has_hosts) {
        status = read_slots(get, hosts->count, slots, ret_error);
        if (status != STATUS_OK) {
            return status;
        }
        for (size_t i = 0; i < hosts->count; i++) {
            hosts->list[i].slots = slots[i];
        }
    }
    if (own != NULL && hosts_find(hosts, own) < hosts->count) {
        snprintf(ret_allocation->own, sizeof(ret_allocation->own), "%s", own);
    }
    read_gpus(get, ret_allocation);
    snprintf(ret_allocation->job, sizeof(ret_allocation->job), "%s", get("SLURM_JOB_ID"));
    return STATUS_OK;
}

enum status allocation_read(bool has_hosts, struct allocation *ret_allocation,
                            char ret_error[OPTION_ERROR_BYTES])
{
    char names[NAMES_BYTES];
    const char *list = getenv("SLURM_JOB_NODELIST");
    const char *const argv[] = {"scontrol", "show", "hostnames", list, NULL};
    const struct process_run_options options = {
        .argv = argv, .input = "", .timeout_ms = SCONTROL_MS};
    int code = 0;
    if (process_run(&options, names, sizeof(names), &code) != STATUS_OK || code != 0 ||
        names[0] == '\0') {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "the nodes of this Slurm job are unknown, because `scontrol show hostnames "
                 "%.200s` fails; repair that, or name hosts to reach by ssh (-H, --reach ssh)",
                 list);
        return STATUS_INVALID;
    }
    return allocation_make(getenv, names, has_hosts, ret_allocation, ret_error);
}

enum status allocation_check(const struct allocation *allocation, const struct hosts *hosts,
                             char ret_error[OPTION_ERROR_BYTES])
{
    const struct hosts *nodes = &allocation->hosts;
    for (size_t i = 0; i < hosts->count; i++) {
        if (hosts_find(nodes, hosts->list[i].name) < nodes->count) {
            continue;
        }
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "%s is not a node of this Slurm job, %s, which has %zu from %s to %s: name those "
                 "(`scontrol show hostnames`), or reach hosts by ssh (--reach ssh)",
                 hosts->list[i].name, allocation->job, nodes->count, nodes->list[0].name,
                 nodes->list[nodes->count - 1].name);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
