/* What starting a job costs, from `ringside run` to the first step: the field `launch` of costs. */
#ifndef DEPLOY_PREDICT_BASIS_LAUNCH_COSTS_H
#define DEPLOY_PREDICT_BASIS_LAUNCH_COSTS_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

/* The launcher connects to all hosts at once, and goes on when the last agent has answered. It
 * starts the coordinator, waits for its endpoint, and then has all agents start their processes at
 * the same time. The coordinator takes them in one after the other. */
struct launch_costs {
    double agents_s;  // until all hosts have agents, and reach each other: however many there are
    double job_s;     // of the coordinator, and agreement: once
    double process_s; // of a worker on a core: program, data, buffers. Those of one core take turns
    double join_s;    // of each worker and server, one after the other
    bool is_given;    // the file has the field
};

/* Reads the field; an object of NULL gives nothing. Logs what is wrong. */
enum status launch_costs_read(const char *file, json_t *object, struct launch_costs *ret_costs);

/* How long the job takes to start. Hosts without `cores` have one for each process. STATUS_INVALID:
 * the network has not enough places, which is logged. */
enum status launch_costs_find(const struct launch_costs *costs, const struct network *network,
                              uint32_t workers, uint32_t servers, double *ret_start_s);

#endif
