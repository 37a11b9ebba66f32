/* Jobs whose gradients are compressed, end to end: bytes, bits among workers, and what is learned.
 */
#include "tests/support/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define ARGS_MAX 32

/* A job on the embedded images; that all workers end with equal bits is checked by
 * the coordinator. */
static json_t *run(const char *mode, const char *servers, const char *compress,
                   const char *transport)
{
    const char *const job[] = {
        "-n",           "2",      "--mode",        mode,       "--model",   "lenet5",
        "--data",       "shapes", "--batch",       "32",       "--steps",   "80",
        "--lr",         "0.02",   "--optimizer",   "momentum", "--servers", servers,
        "--compress",   compress, "--transport",   transport,  "--eval",    "end",
        "--limit-test", "256",    "--limit-train", "0",        NULL};
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

static void each_kind_sends_what_it_should_and_learns(void **state)
{
    (void)state;
    // Share of the bytes of floats that values may take, headers included.
    static const struct {
        const char *compress;
        double share_min, share_max;
    } kinds[] = {
        {"fp16", 0.45, 0.55}, {"bf16", 0.45, 0.55}, {"int8", 0.2, 0.3}, {"topk:0.05", 0.03, 0.12}};
    static const struct {
        const char *mode, *servers, *transport;
    } designs[] = {{"ring", "0", "auto"},
                   {"ring", "0", "tcp"},
                   {"ps-sync", "1", "auto"},
                   {"ps-sync", "2", "tcp"},
                   {"ps-async", "1", "auto"}};
    for (size_t d = 0; d < sizeof(designs) / sizeof(designs[0]); d++) {
        json_t *plain = run(designs[d].mode, designs[d].servers, "none", designs[d].transport);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            json_t *summary =
                run(designs[d].mode, designs[d].servers, kinds[k].compress, designs[d].transport);
            double share = sent_of(summary) / sent_of(plain);
            if (share < kinds[k].share_min || share > kinds[k].share_max) {
                fail_msg("%s over %s, %s: %.3f of the bytes", designs[d].mode, designs[d].transport,
                         kinds[k].compress, share);
            }
            // Without learning it is ln 10 = 2.303. Free workers may be as stale as they come.
            bool is_free = strcmp(designs[d].mode, "ps-async") == 0;
            if (!is_free && (!(loss_of(plain) < 1.9) || !(loss_of(summary) < 2.0))) {
                fail_msg("%s over %s, %s: test loss %.3f, without %.3f", designs[d].mode,
                         designs[d].transport, kinds[k].compress, loss_of(summary), loss_of(plain));
            }
            json_decref(summary);
        }
        json_decref(plain);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_sends_what_it_should_and_learns),
        cmocka_unit_test(a_phase_with_codes_hands_over_what_workers_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
