/* Jobs and networks of which predictions are made in tests. */
#include "tests/support/deploy/predictions.h"

#include "common/job/job_options.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void predictions_read_network(const char *text, struct network *ret_network)
{
    char path[] = "/tmp/test-prediction-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    enum status status = network_read(path, ret_network);
    unlink(path);
    assert_int_equal(status, STATUS_OK);
}

void predictions_read_star(struct network *ret_network)
{
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"h\", \"count\": 64, \"nic\": \"10 Gbit/s\","
        " \"latency\": \"10 us\", \"switch\": \"s\"},"
        "{\"name\": \"p\", \"count\": 8, \"workers\": 0, \"servers\": 1,"
        " \"nic\": \"1.25 GB/s\", \"latency\": \"10 us\", \"switch\": \"s\"}]}",
        ret_network);
}

struct job predictions_job(enum mode_kind mode, uint32_t workers, uint32_t servers,
                           enum all_reduce_choice choice)
{
    struct job job;
    struct option_set options = job_option_set(&job);
    options_reset(&options);
    job.mode = (struct mode){.kind = mode};
    job.workers = workers;
    job.servers = servers;
    job.all_reduce = choice;
    job.bucket_mb = 1024;
    return job;
}

void predictions_reset_costs(uint64_t parameters, struct costs *ret_costs)
{
    memset(ret_costs, 0, sizeof(*ret_costs));
    ret_costs->batch = 32;
    ret_costs->layer_count = 1;
    ret_costs->layers[0].parameters = parameters;
}

void predictions_check(const char *what, uint32_t workers, double got, double want, double part)
{
    if (!(fabs(got - want) <= part * want)) {
        fail_msg("%s among %u: %.9g, and %.9g was expected", what, workers, got, want);
    }
}

struct network predictions_star;

int predictions_open_star(void **state)
{
    (void)state;
    predictions_read_star(&predictions_star);
    return 0;
}

int predictions_close_star(void **state)
{
    (void)state;
    network_finish(&predictions_star);
    return 0;
}

struct prediction predictions_make(const struct job *job, const struct costs *costs, uint32_t warm,
                                   uint32_t steps)
{
    struct prediction made;
    const struct prediction_extent extent = {warm, steps, PREDICTION_WORK_MAX, 0};
    assert_int_equal(prediction_make(job, costs, &predictions_star, &extent, &made), STATUS_OK);
    return made;
}
