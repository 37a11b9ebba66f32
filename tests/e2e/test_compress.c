/* Jobs whose gradients are compressed, end to end: bytes, bits among workers, and what is learned.
 */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define ARGS_MAX 32

/* How gradients get from worker to worker. */
struct design {
    const char *mode, *servers, *transport;
};

struct size {
    const char *steps, *batch, *eval;
};

/* A job on the embedded images; that all workers end with equal bits is checked by the coordinator.
 */
static json_t *run(const struct design *design, const char *compress, const struct size *size)
{
    const char *const job[] = {"-n",
                               "2",
                               "--mode",
                               design->mode,
                               "--model",
                               "lenet5",
                               "--data",
                               "shapes",
                               "--batch",
                               size->batch,
                               "--steps",
                               size->steps,
                               "--lr",
                               "0.02",
                               "--optimizer",
                               "momentum",
                               "--servers",
                               design->servers,
                               "--compress",
                               compress,
                               "--transport",
                               design->transport,
                               "--eval",
                               size->eval,
                               "--limit-test",
                               "256",
                               "--limit-train",
                               "0",
                               NULL};
    return programs_run_job(job);
}

static double sent_of(const json_t *summary)
{
    return json_number_value(
        json_object_get(json_object_get(summary, "bytes_per_step"), "worker_sent"));
}

static double loss_of(const json_t *summary)
{
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    return json_number_value(json_object_get(last, "test_loss"));
}

static void each_kind_sends_what_it_should(void **state)
{
    (void)state;
    // Share of the bytes of floats that values may take; headers and first parameters come to them.
    static const struct {
        const char *compress;
        double share_min, share_max;
    } kinds[] = {
        {"fp16", 0.38, 0.62}, {"bf16", 0.38, 0.62}, {"int8", 0.15, 0.36}, {"topk:0.05", 0.02, 0.2}};
    static const struct design designs[] = {{"ring", "0", "auto"},
                                            {"ring", "0", "tcp"},
                                            {"ps-sync", "1", "auto"},
                                            {"ps-sync", "2", "tcp"},
                                            {"ps-async", "1", "auto"}};
    static const struct size few = {"12", "2", "none"};
    for (size_t d = 0; d < sizeof(designs) / sizeof(designs[0]); d++) {
        json_t *plain = run(&designs[d], "none", &few);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            json_t *summary = run(&designs[d], kinds[k].compress, &few);
            double share = sent_of(summary) / sent_of(plain);
            if (share < kinds[k].share_min || share > kinds[k].share_max) {
                fail_msg("%s over %s, %s: %.3f of the bytes", designs[d].mode, designs[d].transport,
                         kinds[k].compress, share);
            }
            json_decref(summary);
        }
        json_decref(plain);
    }
}

/* Without learning the loss is ln 10 = 2.303. */
static void what_is_lost_is_made_up_for_and_the_model_learns(void **state)
{
    (void)state;
    static const char *const kinds[] = {"none", "fp16", "bf16", "int8", "topk:0.05"};
    static const struct design designs[] = {{"ring", "0", "auto"}, {"ps-sync", "2", "tcp"}};
    static const struct size many = {"80", "32", "end"};
    for (size_t d = 0; d < sizeof(designs) / sizeof(designs[0]); d++) {
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            json_t *summary = run(&designs[d], kinds[k], &many);
            if (!(loss_of(summary) < 2.0)) {
                fail_msg("%s, %s: test loss %.3f", designs[d].mode, kinds[k], loss_of(summary));
            }
            json_decref(summary);
        }
    }
}

static void a_phase_with_codes_hands_over_what_workers_have(void **state)
{
    (void)state;
    const char *const job[] = {
        "-n",         "3",        "--mode",
        "ps-sync",    "--switch", "step:5=ring;step:10=ps-sync;step:15=ps-async",
        "--model",    "lenet5",   "--data",
        "shapes",     "--steps",  "20",
        "--compress", "int8",     "-s",
        "2",          "--eval",   "none",
        NULL};
    json_decref(programs_run_job(job));
}

/* Each rank encodes the same spans of the same values, so what is lost is the same. */
static void direct_and_halving_end_with_the_same_bits(void **state)
{
    (void)state;
    static const char *const kinds[] = {"int8", "topk:0.05"}, *const ways[] = {"direct",
                                                                               "halving-doubling"};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        char digests[2][80];
        for (size_t i = 0; i < 2; i++) {
            const char *const job[] = {
                "-n",          "5",      "--mode",       "ring",  "--model",    "lenet5",
                "--data",      "shapes", "--steps",      "8",     "--compress", kinds[k],
                "--eval",      "none",   "--all-reduce", ways[i], "--batch",    "2",
                "--transport", "tcp",    "--threads",    "1",     NULL};
            json_t *summary = programs_run_job(job);
            snprintf(digests[i], sizeof(digests[i]), "%s",
                     json_string_value(json_object_get(summary, "params_digest")));
            assert_int_equal(strlen(digests[i]), 64);
            json_decref(summary);
        }
        assert_string_equal(digests[0], digests[1]);
    }
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_sends_what_it_should),
        cmocka_unit_test(a_phase_with_codes_hands_over_what_workers_have),
        cmocka_unit_test(direct_and_halving_end_with_the_same_bits),
    };
    const struct CMUnitTest learning[] = {
        cmocka_unit_test(what_is_lost_is_made_up_for_and_the_model_learns),
    };
    return argc > 1 ? cmocka_run_group_tests(learning, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
