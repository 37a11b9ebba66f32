/* The numbers of a run folder are what they say: rates, images, epochs, staleness, transports. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static double number(const json_t *tree, const char *key)
{
    const json_t *value = json_object_get(tree, key);
    if (!json_is_number(value)) {
        fail_msg("%s is no number", key);
    }
    return json_number_value(value);
}

static void check_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-8 * fabs(expected)) {
        fail_msg("%.12g, not %.12g", value, expected);
    }
}

/* Update t is t - 1 updates old, more than there are bins for. So many versions take a while to
 * make room for. */
static void staleness_beyond_the_histogram_is_in_mean_and_maximum(void **state)
{
    (void)state;
    const char *const args[] = {
        "--mode",  "ps-async", "-n",           "2",   "--order", "seeded:constant:1100",
        "--batch", "1",        "--steps",      "520", "--eval",  "none",
        "--lr",    "0.0001",   "--lost-after", "50",  NULL};
    json_t *summary = programs_run_job(args);
    const json_t *staleness = json_object_get(summary, "staleness");
    const json_t *details = json_object_get(json_object_get(summary, "details"), "staleness");
    check_near(number(staleness, "mean"), 1039 / 2.0);
    check_near(number(staleness, "max"), 1039);
    assert_int_equal(json_array_size(json_object_get(staleness, "histogram")), 1024);
    check_near(number(details, "capped_at"), 1023);
    check_near(number(details, "capped_count"), 17);
    check_near(number(details, "counts_per_gradient"), 1);
    json_decref(summary);
}

static void the_histogram_counts_a_gradient_on_each_shard(void **state)
{
    (void)state;
    const char *const args[] = {"--mode",         "ps-async", "-n",      "2",  "-s", "3",
                                "--global-batch", "8",        "--steps", "10", NULL};
    json_t *summary = programs_run_job(args);
    const json_t *details = json_object_get(json_object_get(summary, "details"), "staleness");
    check_near(number(details, "counts_per_gradient"), 3);
    assert_true(json_is_null(json_object_get(details, "capped_at")));
    json_decref(summary);
}

/* Runs `ringside run` with the arguments into FOLDER/out. */
static void run_into(const char *folder, const char *const *args, int expected)
{
    char out[PROGRAM_PATH_BYTES + 16];
    struct program_run run = {.announce_fd = -1};
    const char *all[PROGRAM_ARGS_MAX] = {"run", "--model",       "lenet5", "--threads",
                                         "1",   "--limit-train", "120",    "--limit-test",
                                         "50",  "--out",         out};
    snprintf(out, sizeof(out), "%s/out", folder);
    for (size_t i = 0; args[i] != NULL; i++) {
        all[11 + i] = args[i];
    }
    program_start(&run, folder, "deploy/ringside", false, all, NULL);
    int code = program_wait(&run);
    if (code != expected) {
        fail_msg("exit code %d: %s", code, program_output(&run));
    }
}

/* Lines of FOLDER/out/metrics.jsonl as a list. */
static json_t *read_metrics(const char *folder)
{
    char path[2 * PROGRAM_PATH_BYTES], line[4096];
    json_t *lines = json_array();
    snprintf(path, sizeof(path), "%s/out/metrics.jsonl", folder);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        json_array_append_new(lines, json_loads(line, 0, NULL));
    }
    assert_non_null(file);
    fclose(file);
    return lines;
}

/* Scaled by two workers, with a warm-up of one epoch of 15 steps. */
static double rate_of_step(double steps_before)
{
    return steps_before < 15 ? 0.01 + 0.01 * steps_before / 15 : 0.02;
}

/* Where workers are unsynchronised, a server may answer before it has applied the gradient of that
 * step: the rate that it tells is then that of the one before. */
static void check_rate(double rate, double steps_before, bool is_unsynchronised)
{
    bool is_one_behind = is_unsynchronised && fabs(rate - rate_of_step(steps_before - 1)) < 1e-6;
    if (!is_one_behind) {
        check_near(rate, rate_of_step(steps_before));
    }
}

static void the_rate_in_force_is_in_every_line(void **state)
{
    (void)state;
    static const char *const modes[] = {"ring", "ps-sync", "ps-async"};
    for (size_t i = 0; i < 3; i++) {
        char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
        const char *const args[] = {"--mode",
                                    modes[i],
                                    "-n",
                                    "2",
                                    "--global-batch",
                                    "8",
                                    "--steps",
                                    "40",
                                    "--lr",
                                    "0.01",
                                    "--lr-scale",
                                    "linear",
                                    "--warmup-epochs",
                                    "1",
                                    "--report-every",
                                    "1",
                                    "--order",
                                    i == 2 ? "seeded:round-robin" : "free",
                                    NULL};
        programs_make_folder(folder);
        snprintf(out, sizeof(out), "%s/out", folder);
        run_into(folder, args, 0);
        json_t *summary = programs_read_json(out, "summary.json"), *lines = read_metrics(folder);
        check_near(number(summary, "lr"), 0.01);
        check_near(number(summary, "lr_effective"), 0.02);
        size_t index;
        json_t *line;
        assert_int_equal(json_array_size(lines), 80);
        json_array_foreach(lines, index, line)
        {
            double before = number(line, "step") - 1;
            check_rate(number(line, "lr"), before, i == 2);
            check_near(number(line, "steps"), 1);
            if (i < 2) { // unsynchronised workers learn of an epoch when the servers have passed it
                check_near(number(line, "epoch"), floor(before / 15) + 1);
            }
        }
        json_decref(lines);
        json_decref(summary);
        programs_remove_folder(folder);
    }
}

/* 120 images in global batches of 50: 20 are left out, and workers have 17, 17 and 16. */
static void parts_of_batches_and_of_epochs_are_said_as_they_are(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    const char *const args[] = {"--mode", "ring",    "-n", "3", "--global-batch",
                                "50",     "--steps", "5",  NULL};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    run_into(folder, args, 0);
    json_t *summary = programs_read_json(out, "summary.json");
    json_t *details = programs_read_json(out, "details.json");
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *batches = json_object_get(details, "batch_of_rank");
    check_near(number(summary, "batch_per_worker"), 50 / 3.0);
    check_near(json_number_value(json_array_get(batches, 0)), 17);
    check_near(json_number_value(json_array_get(batches, 2)), 16);
    check_near(number(details, "left_out_per_epoch"), 20);
    assert_int_equal(json_array_size(epochs), 3);
    for (size_t i = 0; i < 3; i++) {
        check_near(number(json_array_get(epochs, i), "epoch"), (double)(i + 1));
    }
    const json_t *last = json_array_get(json_object_get(details, "evaluations"), 2);
    check_near(number(last, "step"), 5);
    check_near(number(last, "epochs_done"), 2.5);
    json_decref(details);
    json_decref(summary);
    struct program_run said = {.announce_fd = -1};
    snprintf(out, sizeof(out), "%s/again", folder);
    const char *const again[] = {
        "run", "--model",      "lenet5", "--mode",         "ring", "-n",
        "3",   "--steps",      "5",      "--global-batch", "50",   "--limit-train",
        "120", "--limit-test", "50",     "--out",          out,    NULL};
    program_start(&said, folder, "deploy/ringside", false, again, NULL);
    assert_int_equal(program_wait(&said), 0);
    static const char *const sentences[] = {"(17 or 16 per worker)", "5 steps (2.5 epochs of 2)",
                                            "leaves out 20 of the 120", "(effective 0.01)",
                                            "epoch 3 (1 of its 2 steps)"};
    for (size_t i = 0; i < 5; i++) {
        if (strstr(program_output(&said), sentences[i]) == NULL) {
            fail_msg("'%s' is not in: %s", sentences[i], program_output(&said));
        }
    }
    programs_remove_folder(folder);
}

/* In shared memory no byte travels: what is counted is a model. */
static const char *how_bytes_are_known(const char *transport)
{
    if (strstr(transport, "shm") == NULL) {
        return "counted";
    }
    return strcmp(transport, "shm") == 0 ? "modelled" : "partly modelled";
}

static void the_transport_is_what_was_taken_and_bytes_say_whether_they_travelled(void **state)
{
    (void)state;
    const struct {
        const char *args[12], *expected;
    } cases[] = {
        {{"--mode", "local", NULL}, "none"},
        {{"--mode", "ring", "-n", "2", NULL}, "shm"},
        {{"--mode", "ring", "-n", "2", "--transport", "tcp", NULL}, "tcp"},
        {{"--mode", "ring", "-n", "2", "--transport", "ipc", NULL}, "ipc"},
        {{"--mode", "ring", "-n", "2", "--compress", "fp16", NULL}, "ipc"},
        {{"--mode", "ps-sync", "-n", "2", NULL}, "shm"},
        {{"--mode", "ps-sync", "-n", "2", "--transport", "ipc", NULL}, "ipc"},
        {{"--mode", "ps-async", "-n", "2", "--transport", "tcp", NULL}, "tcp"},
        {{"--mode", "ps-async", "-n", "2", "--compress", "fp16", NULL}, "shm+ipc"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *args[20] = {"--global-batch", "8", "--steps", "12", "--eval", "none"};
        for (size_t k = 0; cases[i].args[k] != NULL; k++) {
            args[6 + k] = cases[i].args[k];
        }
        json_t *summary = programs_run_job(args);
        const char *transport = json_string_value(json_object_get(summary, "transport"));
        if (strcmp(transport, cases[i].expected) != 0) {
            fail_msg("%s %s: %s, not %s", args[7], args[10] != NULL ? args[10] : "", transport,
                     cases[i].expected);
        }
        const json_t *details = json_object_get(summary, "details");
        assert_string_equal(json_string_value(json_object_get(details, "bytes_per_step")),
                            how_bytes_are_known(cases[i].expected));
        json_decref(summary);
    }
}

/* An update takes two gradients of three: what a worker has computed for none is said, and is no
 * image of the job. Of 40 updates' gradients 80 entered. */
static void check_late_images(const char *eval)
{
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    const char *const args[] = {"--mode",  "ps-sync", "-n",      "3",  "--backup",       "1",
                                "--batch", "4",       "--steps", "40", "--report-every", "1",
                                "--eval",  eval,      NULL};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    run_into(folder, args, 0);
    json_t *summary = programs_read_json(out, "summary.json");
    json_t *details = programs_read_json(out, "details.json"), *lines = read_metrics(folder), *line;
    double steps = 0, dropped = 0;
    size_t index;
    json_array_foreach(lines, index, line)
    {
        steps += number(line, "steps");
        dropped += number(line, "images_dropped");
    }
    double all = number(details, "images_dropped");
    check_near(number(summary, "steps"), 40);
    check_near(4 * steps - all, 80 * 4);
    check_near(number(details, "late_gradients"), all / 4);
    // What the last evaluation shows of the last gradients comes after the last lines.
    bool has_lines = strcmp(eval, "none") == 0;
    assert_true(has_lines ? dropped == all : dropped <= all && dropped + 2.0 * 4 >= all);
    json_decref(lines);
    json_decref(details);
    json_decref(summary);
    programs_remove_folder(folder);
}

/* At an evaluation, what has become of a gradient may be known after the parameters have come. */
static void images_that_came_too_late_are_not_counted(void **state)
{
    (void)state;
    check_late_images("none");
    check_late_images("epoch");
}

static void a_run_that_diverges_says_at_which_step(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    const char *const args[] = {
        "--mode",  "ps-async", "-n",   "2",    "--order", "seeded:constant:4", "--batch", "4",
        "--steps", "200",      "--lr", "1000", NULL};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    run_into(folder, args, 1);
    json_t *summary = programs_read_json(out, "summary.json");
    json_t *details = programs_read_json(out, "details.json");
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    char step[32];
    snprintf(step, sizeof(step), "at step %.0f:", number(details, "diverged_step"));
    assert_non_null(strstr(reason, step));
    assert_non_null(strstr(reason, "updates old"));
    check_near(number(summary, "workers_lost"), 0);
    json_decref(details);
    json_decref(summary);
    programs_remove_folder(folder);
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_histogram_counts_a_gradient_on_each_shard),
        cmocka_unit_test(the_rate_in_force_is_in_every_line),
        cmocka_unit_test(parts_of_batches_and_of_epochs_are_said_as_they_are),
        cmocka_unit_test(the_transport_is_what_was_taken_and_bytes_say_whether_they_travelled),
        cmocka_unit_test(images_that_came_too_late_are_not_counted),
        cmocka_unit_test(a_run_that_diverges_says_at_which_step),
    };
    const struct CMUnitTest histogram[] = {
        cmocka_unit_test(staleness_beyond_the_histogram_is_in_mean_and_maximum),
    };
    return argc > 1 ? cmocka_run_group_tests(histogram, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
