/* Adds up what starting a job costs. */
#include "deploy/predict/basis/launch_costs.h"

#include "deploy/predict/basis/fields.h"

#include <stdlib.h>
#include <string.h>

enum status launch_costs_read(const char *file, json_t *object, struct launch_costs *ret_costs)
{
    static const char *const names[] = {"agents", "job", "process", "join", NULL};
    double *const values[] = {&ret_costs->agents_s, &ret_costs->job_s, &ret_costs->process_s,
                              &ret_costs->join_s};
    const struct fields fields = {file, "launch", object};
    memset(ret_costs, 0, sizeof(*ret_costs));
    if (object == NULL) {
        return STATUS_OK;
    }
    enum status status = fields_check_names(&fields, names);
    for (size_t i = 0; names[i] != NULL && status == STATUS_OK; i++) {
        status = fields_quantity(&fields, names[i], QUANTITY_TIME, false, values[i]);
    }
    ret_costs->is_given = true;
    return status;
}

/* The most workers that one core has to start, of all machines. */
static double find_turns(const struct network *network, const uint32_t *hosts, uint32_t workers,
                         uint32_t *counts)
{
    double turns = 1;
    for (uint32_t i = 0; i < workers; i++) {
        const struct network_host *host = &network->hosts[hosts[i]];
        double own = ++counts[host->machine];
        if (host->cores > 0 && own / host->cores > turns) {
            turns = own / host->cores;
        }
    }
    return turns;
}

enum status launch_costs_find(const struct launch_costs *costs, const struct network *network,
                              uint32_t workers, uint32_t servers, double *ret_start_s)
{
    uint32_t *hosts = calloc((size_t)workers + servers, sizeof(*hosts));
    uint32_t *counts = calloc(network->host_count, sizeof(*counts));
    enum status status = hosts != NULL && counts != NULL
                             ? network_place(network, workers, servers, hosts)
                             : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        double turns = find_turns(network, hosts, workers, counts);
        *ret_start_s = costs->agents_s + costs->job_s + costs->process_s * turns +
                       costs->join_s * ((double)workers + servers);
    }
    free(counts);
    free(hosts);
    return status;
}
