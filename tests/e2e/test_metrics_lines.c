/* End to end: metrics.jsonl has each step of each rank once, also of jobs that go on from a copy.
 */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WORKERS 3
#define STEPS   40

/* What is found in the file. */
struct found {
    json_int_t step[WORKERS]; // of the last line
    json_int_t steps;         // of all lines
    double loss_steps;        // the loss of each step of each rank, as its line has it
    uint32_t restored;        // lines
};

/* A line follows the one before it of its rank without a gap. In a race it has the steps whose
 * gradients the servers had answered, and no other line of the rank is up to the same step. */
static void take_line(struct found *found, const json_t *line, bool is_race)
{
    json_int_t rank = json_integer_value(json_object_get(line, "rank"));
    json_int_t step = json_integer_value(json_object_get(line, "step"));
    json_int_t steps = json_integer_value(json_object_get(line, "steps"));
    bool is_restored = json_is_true(json_object_get(line, "restored"));
    assert_in_range(rank, 0, WORKERS - 1);
    assert_true(is_race ? step > found->step[rank] : step - steps == found->step[rank]);
    assert_int_equal(json_is_null(json_object_get(line, "lr")), is_restored);
    found->step[rank] = step;
    found->steps += steps;
    found->loss_steps += (double)steps * json_number_value(json_object_get(line, "loss"));
    found->restored += is_restored;
}

static void read_lines(const char *out, struct found *ret_found, bool is_race)
{
    char path[PROGRAM_PATH_BYTES + 32], text[4096];
    *ret_found = (struct found){.restored = 0};
    snprintf(path, sizeof(path), "%s/metrics.jsonl", out);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(text, sizeof(text), file) != NULL) {
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        take_line(ret_found, line, is_race);
        json_decref(line);
    }
    fclose(file);
}

/* Lines cover seven steps, and copies are of others. */
static struct found run(const char *const *more, bool is_race)
{
    const char *args[PROGRAM_ARGS_MAX] = {
        "run",  "--workers",     "3",      "--steps",        "40",        "--batch",
        "4",    "--model",       "lenet5", "--data",         "synthetic", "--device",
        "ref",  "--eval",        "end",    "--threads",      "1",         "--bucket-mb",
        "0.05", "--limit-train", "120",    "--report-every", "7",         "--limit-test",
        "50",   "--out"};
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run program = {.announce_fd = -1};
    struct found found;
    size_t count = 26;
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    args[count++] = out;
    for (size_t i = 0; more[i] != NULL; i++) {
        args[count++] = more[i];
    }
    program_start(&program, folder, "deploy/ringside", false, args, NULL);
    int code = program_wait(&program);
    if (code != 0) {
        fail_msg("%d: %s", code, program_output(&program));
    }
    read_lines(out, &found, is_race);
    programs_remove_folder(folder);
    for (uint32_t rank = 0; rank < WORKERS && !is_race; rank++) {
        assert_int_equal(found.step[rank], STEPS);
    }
    // In a race some gradients may come too late.
    const json_int_t all = (json_int_t)WORKERS * STEPS;
    assert_true(is_race ? found.steps >= all : found.steps == all);
    return found;
}

static void steps_until_the_copy_have_lines_after_the_coordinator_was_killed(void **state)
{
    (void)state;
    const char *const plain[] = {"--mode", "ps-sync", NULL};
    const char *const killed[] = {"--mode",
                                  "ps-sync",
                                  "--fault",
                                  "shard=0,step=33,kill",
                                  "--restarts",
                                  "1",
                                  "--checkpoint-every",
                                  "10",
                                  NULL};
    struct found undisturbed = run(plain, false), found = run(killed, false);
    assert_int_equal(undisturbed.restored, 0);
    assert_int_equal(found.restored, WORKERS);
    assert_float_equal(found.loss_steps, undisturbed.loss_steps, 1e-5);
}

static void steps_until_the_copy_have_lines_after_a_worker_was_lost(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-sync", "ps-async"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        // Slow enough for copies in memory.
        const char *const args[] = {
            "--mode",    modes[i], "--fault",     "rank=1,step=33,kill",
            "--on-loss", "redeal", "--straggler", "dist=exponential:mean=60ms,share=1",
            NULL};
        run(args, strcmp(modes[i], "ps-async") == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_until_the_copy_have_lines_after_the_coordinator_was_killed),
        cmocka_unit_test(steps_until_the_copy_have_lines_after_a_worker_was_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
