/* Tests of predicted jobs whose gradients travel in codes: bytes, and time for the codes. */
#include "common/codec/codec.h"
#include "deploy/predict/prediction.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BANDWIDTH  1.25e9
#define LATENCY_S  20e-6
#define PARAMETERS UINT64_C(262144)

static const char *const codecs[] = {"none", "fp16", "bf16", "int8", "topk:0.01", "topk:0.5"};
#define CODEC_COUNT (sizeof(codecs) / sizeof(codecs[0]))

static struct costs costs;

static int reset_costs(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    return 0;
}

static double step_of(const struct job *job)
{
    return predictions_make(job, &costs, 2, 4).step_s;
}

static struct job coded_job(const char *codec, enum mode_kind mode, uint32_t workers,
                            enum all_reduce_choice choice)
{
    char why[200];
    struct job job = predictions_job(mode, workers, mode == MODE_RING ? 0 : 1, choice);
    assert_int_equal(codec_parse(codec, &job.compress, why, sizeof(why)), STATUS_OK);
    return job;
}

/* What so many values take on a link. */
static double way_s(const struct job *job, uint64_t floats)
{
    return (double)codec_bytes(&job->compress, floats) / BANDWIDTH;
}

static void each_chunk_has_the_bytes_of_its_codec(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        for (uint32_t n = 2; n <= 32; n *= 4) {
            const struct job ring = coded_job(codecs[i], MODE_RING, n, ALL_REDUCE_CHOICE_RING);
            const struct job direct = coded_job(codecs[i], MODE_RING, n, ALL_REDUCE_CHOICE_DIRECT);
            const struct job halving =
                coded_job(codecs[i], MODE_RING, n, ALL_REDUCE_CHOICE_HALVING);
            double chunk_s = way_s(&ring, PARAMETERS / n), rounds = log2(n);
            predictions_check(codecs[i], n, step_of(&ring), 2 * (n - 1) * (chunk_s + LATENCY_S),
                              1e-3);
            predictions_check(codecs[i], n, step_of(&direct), 2 * (n - 1) * chunk_s + 2 * LATENCY_S,
                              1e-3);
            predictions_check(codecs[i], n, step_of(&halving),
                              (n / 2.0 * rounds + n - 1) * chunk_s + 2 * rounds * LATENCY_S, 1e-3);
        }
    }
}

/* In ps-sync both ways. Otherwise servers answer with parameters as they are. */
static void servers_answer_in_codes_where_all_wait(void **state)
{
    (void)state;
    const double plain_s = 4.0 * (double)PARAMETERS / BANDWIDTH;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        for (uint32_t n = 1; n <= 16; n *= 4) {
            const struct job job = coded_job(codecs[i], MODE_PS_SYNC, n, ALL_REDUCE_CHOICE_AUTO);
            predictions_check(codecs[i], n, step_of(&job),
                              2 * n * way_s(&job, PARAMETERS) + 2 * LATENCY_S, 1e-3);
        }
        const struct job job = coded_job(codecs[i], MODE_PS_ASYNC, 1, ALL_REDUCE_CHOICE_AUTO);
        predictions_check(codecs[i], 1, step_of(&job),
                          way_s(&job, PARAMETERS) + plain_s + 2 * LATENCY_S, 1e-3);
    }
}

/* Encoding all values takes 8 s, and decoding them 2 s. */
static void set_times(void)
{
    costs.encode_bandwidth = 4.0 * (double)PARAMETERS / 8;
    costs.decode_bandwidth = 4.0 * (double)PARAMETERS / 2;
}

/* Nothing is encoded without --compress. */
static void plain_values_take_no_encoding(void **state)
{
    (void)state;
    const struct job job = coded_job("none", MODE_RING, 8, ALL_REDUCE_CHOICE_RING);
    double before_s = step_of(&job);
    set_times();
    assert_true(step_of(&job) == before_s);
}

/* A ring encodes a chunk, N-1 sums of which the last is the mean, and decodes as many sums, N-1
 * means, and its own mean. A direct all-reduce encodes N-1 chunks and the mean. */
static void rings_encode_every_sum(void **state)
{
    (void)state;
    set_times();
    for (uint32_t n = 2; n <= 32; n *= 2) {
        const struct job ring = coded_job("fp16", MODE_RING, n, ALL_REDUCE_CHOICE_RING);
        const struct job direct = coded_job("fp16", MODE_RING, n, ALL_REDUCE_CHOICE_DIRECT);
        const struct job halving = coded_job("fp16", MODE_RING, n, ALL_REDUCE_CHOICE_HALVING);
        double want_s = 8 + 2 * (2.0 * n - 1) / n;
        predictions_check("ring", n, step_of(&ring), want_s, 2e-3);
        predictions_check("direct", n, step_of(&direct), want_s, 2e-3);
        predictions_check("halving", n, step_of(&halving), want_s, 2e-3);
    }
}

/* The server decodes each push, encodes its answer once, and decodes that; each worker encodes and
 * decodes once. */
static void a_server_encodes_once_for_all(void **state)
{
    (void)state;
    set_times();
    for (uint32_t n = 1; n <= 16; n *= 2) {
        const struct job job = coded_job("int8", MODE_PS_SYNC, n, ALL_REDUCE_CHOICE_AUTO);
        predictions_check("ps-sync", n, step_of(&job), 8 + n * 2 + 8 + 2 + 2, 2e-3);
    }
    const struct job job = coded_job("int8", MODE_PS_ASYNC, 1, ALL_REDUCE_CHOICE_AUTO);
    predictions_check("ps-async", 1, step_of(&job), 8 + 2, 2e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_chunk_has_the_bytes_of_its_codec, reset_costs),
        cmocka_unit_test_setup(servers_answer_in_codes_where_all_wait, reset_costs),
        cmocka_unit_test_setup(plain_values_take_no_encoding, reset_costs),
        cmocka_unit_test_setup(rings_encode_every_sum, reset_costs),
        cmocka_unit_test_setup(a_server_encodes_once_for_all, reset_costs),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
