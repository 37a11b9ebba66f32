/* End to end: all workers of a job compute by the engines of rank 0's GPU, and job.json has them.
 * On the fake runtime, whose engines and their times are what FAKE_ENGINES says: see
 * tests/worker/device/cuda_fake/convolutions.c. */
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

#define WORKERS_MAX 3
#define FAKES       "tests/worker/device/cuda_fake"
#define ENGINES     "FAKE_ENGINES="

/* One worker. */
struct seat {
    const char *engines; // "FAKE_ENGINES=..."
    const char *device;  // of its own; NULL: cuda
};

/* A job that was run, and what it left. */
struct run {
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run ps, workers[WORKERS_MAX];
    uint32_t worker_count;
    json_t *choices; // of job.json, owned
};

static void start_worker(struct run *run, const char *endpoint, uint32_t rank,
                         const struct seat *seat)
{
    char cache[PROGRAM_PATH_BYTES + 64], text[16];
    snprintf(cache, sizeof(cache), "RINGSIDE_CACHE=%s/cache-%u", run->folder, rank);
    snprintf(text, sizeof(text), "%u", rank);
    const char *const environment[] = {"FAKE_CUDA=eager", seat->engines, cache, NULL};
    const char *const args[] = {"--server", endpoint,
                                "--rank",   text,
                                "--device", seat->device != NULL ? seat->device : "cuda",
                                NULL};
    program_start(&run->workers[rank], run->folder, FAKES "/worker", false, args, environment);
}

/* Workers join from the last rank to the first: others ask before rank 0 knows. */
static void run_job(struct run *run, const char *engines, uint32_t worker_count,
                    const struct seat *seats)
{
    char endpoint[256], workers[16];
    snprintf(workers, sizeof(workers), "%u", worker_count);
    programs_make_folder(run->folder);
    snprintf(run->out, sizeof(run->out), "%s/out", run->folder);
    run->worker_count = worker_count;
    const char *const args[] = {"--mode",
                                "ring",
                                "--workers",
                                workers,
                                "--model",
                                "lenet5",
                                "--data",
                                "shapes",
                                "--device",
                                "cuda",
                                "--global-batch",
                                "7",
                                "--steps",
                                "3",
                                "--eval",
                                "end",
                                "--limit-test",
                                "8",
                                "--cuda-engines",
                                engines,
                                "--log-level",
                                "info",
                                "--out",
                                run->out,
                                NULL};
    program_start(&run->ps, run->folder, FAKES "/ps", true, args, NULL);
    program_read_endpoint(&run->ps, endpoint, sizeof(endpoint));
    for (uint32_t i = worker_count; i-- > 0;) {
        start_worker(run, endpoint, i, &seats[i]);
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        if (program_wait(&run->workers[i]) != 0) {
            fail_msg("worker %u: %s", i, program_output(&run->workers[i]));
        }
    }
    assert_int_equal(program_wait(&run->ps), 0);
    json_t *job = programs_read_json(run->out, "job.json");
    run->choices = json_incref(json_object_get(job, "choices"));
    json_decref(job);
}

static void finish(struct run *run)
{
    json_decref(run->choices);
    programs_remove_folder(run->folder);
}

/* All convolutions take the engine; the ranks in `others` (-1: none) do not do as the first. */
static void expect(const struct run *run, const char *engine, int other)
{
    const json_t *list = json_object_get(run->choices, "list");
    const json_t *others = json_object_get(run->choices, "other_ranks");
    char end[32];
    snprintf(end, sizeof(end), " = %s", engine);
    assert_int_equal(json_array_size(list), 5); // two convolutions, but pixels have no gradient
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *line = json_string_value(json_array_get(list, i));
        if (strcmp(line + strlen(line) - strlen(end), end) != 0) {
            fail_msg("\"%s\" is not by engine %s", line, engine);
        }
    }
    assert_int_equal(strlen(json_string_value(json_object_get(run->choices, "digest"))), 16);
    assert_int_equal(json_array_size(others), other >= 0 ? 1 : 0);
    if (other >= 0) {
        assert_int_equal(json_integer_value(json_array_get(others, 0)), other);
    }
}

/* Batches differ: 7 images on three workers. */
static void all_ranks_take_what_is_fastest_on_rank_0(void **state)
{
    (void)state;
    static const struct seat seats[] = {
        {ENGINES "41:9000 7:2000 9:5000", NULL},
        {ENGINES "41:1000 7:9000 9:9000", NULL},
        {ENGINES "9:1000 41:1000 7:9000", NULL},
    };
    struct run run;
    run_job(&run, "timed", 3, seats);
    expect(&run, "7", -1);
    assert_non_null(strstr(program_output(&run.workers[0]), "engines are timed"));
    assert_null(strstr(program_output(&run.workers[1]), "engines are timed"));
    assert_null(strstr(program_output(&run.ps), "others have rank"));
    finish(&run);
}

static void all_ranks_take_what_is_proposed_to_rank_0(void **state)
{
    (void)state;
    static const struct seat seats[] = {
        {ENGINES "41:9000 7:1000", NULL},
        {ENGINES "7:1000 41:9000", NULL},
    };
    struct run run;
    run_job(&run, "heuristic", 2, seats);
    expect(&run, "41", -1);
    finish(&run);
}

static void who_cannot_take_them_says_so_and_is_named(void **state)
{
    (void)state;
    static const struct seat seats[] = {
        {ENGINES "41:1000 7:9000", NULL},
        {ENGINES "41:9000 7:1000", NULL},
        {ENGINES "5:9000 7:1000", NULL}, // another version of the library
    };
    struct run run;
    run_job(&run, "timed", 3, seats);
    expect(&run, "41", 2);
    assert_null(strstr(program_output(&run.workers[1]), "chooses by itself"));
    assert_non_null(strstr(program_output(&run.workers[2]),
                           "because the job's engine for it cannot be taken "
                           "here: 41, there is no such engine"));
    assert_non_null(strstr(program_output(&run.ps), "others have rank 2"));
    finish(&run);
}

/* Rank 0 is ready without having told anything. */
static void a_rank_0_without_a_gpu_leaves_the_choice_to_the_others(void **state)
{
    (void)state;
    static const struct seat seats[] = {
        {ENGINES "41:1000", "ref"},
        {ENGINES "41:9000 7:1000", NULL},
    };
    struct run run;
    run_job(&run, "timed", 2, seats);
    assert_int_equal(json_array_size(json_object_get(run.choices, "list")), 0);
    const json_t *others = json_object_get(run.choices, "other_ranks");
    assert_int_equal(json_array_size(others), 1);
    assert_null(strstr(program_output(&run.workers[1]), "chooses by itself"));
    finish(&run);
}

static void a_job_without_gpus_has_no_choices(void **state)
{
    (void)state;
    static const struct seat seats[] = {
        {ENGINES "41:1000", "ref"},
        {ENGINES "41:1000", "ref"},
    };
    struct run run;
    run_job(&run, "heuristic", 2, seats);
    assert_true(json_is_null(run.choices));
    finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_take_what_is_fastest_on_rank_0),
        cmocka_unit_test(all_ranks_take_what_is_proposed_to_rank_0),
        cmocka_unit_test(who_cannot_take_them_says_so_and_is_named),
        cmocka_unit_test(a_rank_0_without_a_gpu_leaves_the_choice_to_the_others),
        cmocka_unit_test(a_job_without_gpus_has_no_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
