/* Makes a study without files. */
#include "tests/support/deploy/small_study.h"

#include "common/job/job_options.h"
#include "deploy/predict/study/study_lists.h"
#include "tests/support/deploy/predictions.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void make_network(uint32_t hosts, struct network *ret_network)
{
    char text[256];
    snprintf(text, sizeof(text),
             "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": %u, "
             "\"switch\": \"s\", \"nic\": \"1 Gbit/s\", \"latency\": \"20 us\"}]}",
             hosts);
    predictions_read_network(text, ret_network);
}

struct small_study *small_study_create(uint32_t hosts, const char *modes, const char *servers,
                                       const char *workers)
{
    struct small_study *small = calloc(1, sizeof(*small));
    assert(small != NULL);
    struct study *study = &small->study;
    struct option_set set = job_option_set(&study->job);
    options_reset(&set);
    small->costs = (struct costs){.batch = 32,
                                  .layers = {{4000000, 20e-3, 40e-3}, {2000000, 5e-3, 10e-3}},
                                  .layer_count = 2,
                                  .optimizer_s = 1e-3,
                                  .message_s = 2e-5,
                                  .sum_bandwidth = 4e9};
    make_network(hosts, &small->network);
    study->costs_file = "costs.json";
    study->network_file = "network.json";
    study->costs = &small->costs;
    study->network = &small->network;
    study->counted = 2;
    if (study_take_lists(modes, servers, workers, study) != STATUS_OK) {
        small_study_destroy(small);
        return NULL;
    }
    return small;
}

void small_study_destroy(struct small_study *small)
{
    study_finish(&small->study);
    network_finish(&small->network);
    free(small);
}
