/* Writes the options of a job as a command. */
#include "deploy/predict/advise/advice_command.h"

#include "common/job/job_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_SHOWN 16

static void append(char *text, const char *first, const char *second)
{
    size_t used = strlen(text);
    snprintf(text + used, ADVICE_COMMAND_BYTES - used, "%s%s", first, second);
}

/* Options that say how the job is disturbed, or what draws are of, are no part of a design. */
static bool is_design(const struct job *job, const char *name)
{
    bool is_idle = strcmp(name, "servers") == 0 && !mode_has_servers(job->mode.kind);
    return !is_idle && strcmp(name, "straggler") != 0 && strcmp(name, "fault") != 0 &&
           strcmp(name, "seed") != 0;
}

static void write_options(const struct job *job, char *text)
{
    struct job plain = {.workers = 0};
    struct option_set set = job_option_set(&plain);
    options_reset(&set);
    for (size_t i = 0; i < job_option_count; i++) {
        const char *name = job_options[i].name;
        char value[OPTION_VALUE_BYTES], usual[OPTION_VALUE_BYTES];
        option_format(&job_options[i], job, value, sizeof(value));
        option_format(&job_options[i], &plain, usual, sizeof(usual));
        bool is_named = strcmp(name, "mode") == 0 || strcmp(name, "workers") == 0;
        if (is_design(job, name) && (is_named || strcmp(value, usual) != 0)) {
            append(text, " --", name);
            append(text, " ", value);
        }
    }
}

/* The hosts of workers, then those that have servers alone. */
static void write_hosts(const struct network *network, const uint32_t *hosts, uint32_t workers,
                        uint32_t servers, char *text)
{
    uint32_t *slots = calloc(network->host_count, sizeof(*slots));
    uint32_t shown = 0;
    const char *coordinator = NULL;
    for (uint32_t w = 0; slots != NULL && w < workers; w++) {
        slots[hosts[w]]++;
    }
    append(text, " -H ", "");
    for (uint32_t i = 0; slots != NULL && i < workers + servers; i++) {
        uint32_t host = hosts[i];
        char item[NETWORK_NAME_BYTES + 16];
        bool is_alone = i >= workers && slots[host] == 0;
        bool is_new = i < workers ? i == 0 || hosts[i - 1] != host
                                  : is_alone && (i == workers || hosts[i - 1] != host);
        if (is_alone && coordinator == NULL) {
            coordinator = network->hosts[host].name;
        }
        if (is_new && shown++ < HOSTS_SHOWN) {
            snprintf(item, sizeof(item), "%s:%u", network->hosts[host].name,
                     is_alone ? 1 : slots[host]);
            append(text, shown > 1 ? "," : "", item);
        }
    }
    if (shown > HOSTS_SHOWN) {
        append(text, ",...", "");
    }
    if (coordinator != NULL) {
        append(text, " --coordinator ", coordinator);
    }
    free(slots);
}

void advice_command_write(const struct basis *basis, char ret_text[ADVICE_COMMAND_BYTES])
{
    struct job job = basis->job;
    uint32_t servers = mode_has_servers(job.mode.kind) ? job.servers : 0;
    uint32_t *hosts = calloc(job.workers + servers + 1, sizeof(*hosts));
    ret_text[0] = '\0';
    if (job.workers <= JOB_WORKERS_MAX && hosts != NULL &&
        network_place(&basis->network, job.workers, servers, hosts) == STATUS_OK) {
        append(ret_text, "ringside run", "");
        job.batch = job.global_batch == 0 ? basis->costs.batch : 0;
        write_options(&job, ret_text);
        if (basis->network.host_count > 1) {
            write_hosts(&basis->network, hosts, job.workers, servers, ret_text);
        }
        append(ret_text, " --model MODEL", " --data DATA");
    }
    free(hosts);
}
