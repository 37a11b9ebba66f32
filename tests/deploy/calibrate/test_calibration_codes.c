/* What codes take, of the time that cores worked for workers and servers. */
#include "deploy/calibrate/calibration_codes.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <stdio.h>
#include <string.h>

#define PARAMETERS 1000000
#define ENCODE_S   2e-3
#define DECODE_S   0.5e-3

static struct calibration_run plain, coded; // large
static struct calibration made;

/* Three workers in ps-sync. */
static void set_run(struct calibration_run *run, uint32_t servers, const char *compress)
{
    memset(run, 0, sizeof(*run));
    run->workers = 3;
    run->threads = 1;
    run->parameters = PARAMETERS;
    snprintf(run->compress, sizeof(run->compress), "%s", compress);
    run->observation.exchange.params_s = 1;
    run->observation.cores.workers =
        (struct observed_cpu){.processes = 3, .messages_s = 5e-3, .bytes = 8e6};
    run->observation.cores.servers =
        (struct observed_cpu){.processes = servers, .messages_s = 7e-3, .bytes = 8e6};
}

static struct costs take(uint32_t servers, double encode_s, double decode_s)
{
    struct calibration_run *plain_run = &plain, *coded_run = &coded;
    set_run(&plain, servers, "none");
    set_run(&coded, servers, "fp16");
    memset(&made, 0, sizeof(made));
    made.costs.message_bandwidth = 1e9; // so that half of 8 MB are 4 ms
    coded.observation.cores.workers.messages_s += encode_s + decode_s - 4e-3;
    coded.observation.cores.servers.messages_s += (encode_s + 4 * decode_s) / servers - 4e-3;
    calibration_take_codes(&coded_run, 1, &plain_run, 1, &made);
    return made.costs;
}

static void workers_and_servers_tell_encoding_from_decoding(void **state)
{
    (void)state;
    for (uint32_t servers = 1; servers <= 2; servers++) {
        const struct costs costs = take(servers, ENCODE_S, DECODE_S);
        predictions_check("encode", 3, costs.encode_bandwidth, 4.0 * PARAMETERS / ENCODE_S, 1e-6);
        predictions_check("decode", 3, costs.decode_bandwidth, 4.0 * PARAMETERS / DECODE_S, 1e-6);
    }
}

static void what_takes_no_time_has_no_bandwidth(void **state)
{
    (void)state;
    const struct costs costs = take(1, 0, 0);
    assert_true(costs.encode_bandwidth == 0 && costs.decode_bandwidth == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_and_servers_tell_encoding_from_decoding),
        cmocka_unit_test(what_takes_no_time_has_no_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
