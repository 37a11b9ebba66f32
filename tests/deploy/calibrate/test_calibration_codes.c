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
#include <stdlib.h>
#include <string.h>

#define PARAMETERS 1000000
#define ENCODE_S   2e-3
#define DECODE_S   0.5e-3

struct pair {
    struct calibration_run *plain, *coded;
    struct calibration *made;
};

/* Three workers and as many servers as that in ps-sync, without codes and with fp16. */
static struct pair make(uint32_t servers, double encode_s, double decode_s)
{
    struct pair pair = {calloc(1, sizeof(*pair.plain)), calloc(1, sizeof(*pair.coded)),
                        calloc(1, sizeof(*pair.made))};
    assert_true(pair.plain != NULL && pair.coded != NULL && pair.made != NULL);
    struct calibration_run *const runs[2] = {pair.plain, pair.coded};
    for (size_t i = 0; i < 2; i++) {
        runs[i]->workers = 3;
        runs[i]->threads = 1;
        runs[i]->parameters = PARAMETERS;
        snprintf(runs[i]->compress, sizeof(runs[i]->compress), "%s", i == 0 ? "none" : "fp16");
        struct observation *seen = &runs[i]->observation;
        seen->exchange.params_s = 1;
        seen->cores.workers =
            (struct observed_cpu){.processes = 3, .messages_s = 5e-3, .bytes = 8e6};
        seen->cores.servers =
            (struct observed_cpu){.processes = servers, .messages_s = 7e-3, .bytes = 8e6};
    }
    pair.coded->observation.cores.workers.messages_s += encode_s + decode_s - 4e-3;
    pair.coded->observation.cores.servers.messages_s += (encode_s + 4 * decode_s) / servers - 4e-3;
    pair.made->costs.message_bandwidth = 1e9; // so that half of 8 MB are 4 ms
    return pair;
}

static struct costs take(uint32_t servers, double encode_s, double decode_s)
{
    struct pair pair = make(servers, encode_s, decode_s);
    calibration_take_codes(&pair.coded, 1, &pair.plain, 1, pair.made);
    struct costs costs = pair.made->costs;
    free(pair.plain);
    free(pair.coded);
    free(pair.made);
    return costs;
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
