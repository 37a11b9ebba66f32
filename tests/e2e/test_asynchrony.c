/* Asynchronous jobs end to end: what is seeded repeats bit by bit, and what is free loses nothing.
 */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

struct async_case {
    const char *mode, *order, *workers, *servers, *transport, *global_batch, *steps;
};

/* The arguments of a job. */
#define JOB_ARGS(job)                                                                 \
    (const char *const[])                                                             \
    {                                                                                 \
        "--mode", (job)->mode, "--order", (job)->order, "-n", (job)->workers, "-s",   \
            (job)->servers, "--transport", (job)->transport, "--global-batch",        \
            (job)->global_batch, "--steps", (job)->steps, "--report-every", "2", NULL \
    }

static void check_alike(const struct async_case *jobs, size_t count)
{
    char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    programs_run_digest(JOB_ARGS(&jobs[0]), first);
    for (size_t i = 1; i < count; i++) {
        programs_run_digest(JOB_ARGS(&jobs[i]), digest);
        if (strcmp(first, digest) != 0) {
            fail_msg("%s %s with N = %s, K = %s over %s ends with %.12s, not with %.12s",
                     jobs[i].mode, jobs[i].order, jobs[i].workers, jobs[i].servers,
                     jobs[i].transport, digest, first);
        }
    }
}

/* Update t is made from batch t, whoever computes it: even N does not matter. Over ends of epochs.
 */
static void check_order(const char *order)
{
    const struct async_case jobs[] = {
        {"ps-async", order, "3", "1", "tcp", "24", "12"},
        {"ps-async", order, "3", "1", "shm", "24", "12"},
        {"ps-async", order, "3", "3", "ipc", "24", "12"},
        {"ps-async", order, "1", "2", "auto", "8", "36"},
        {"ps-ssp:20", order, "3", "1", "auto", "24", "12"},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

static void
a_seeded_order_has_the_same_bits_whoever_computes_it_and_however_it_travels(void **state)
{
    (void)state;
    check_order("seeded:uniform:0..5");
}

static void a_constant_staleness_has_the_same_bits_however_it_travels(void **state)
{
    (void)state;
    check_order("seeded:constant:2");
}

static void one_worker_without_staleness_is_local(void **state)
{
    (void)state;
    const struct async_case jobs[] = {
        {"local", "free", "1", "1", "auto", "8", "20"},
        {"ps-async", "seeded:constant:0", "1", "1", "auto", "8", "20"},
        {"ps-async", "free", "1", "2", "auto", "8", "20"},
        {"ps-ssp:0", "free", "1", "1", "auto", "8", "20"},
    };
    check_alike(jobs, sizeof(jobs) / sizeof(jobs[0]));
}

/* Update t is t - 1 - max(0, t - 3) updates old: 0, 1, then 2. */
static void check_drawn(const char *const *args, json_int_t last)
{
    const json_int_t expected[] = {1, 1, last};
    json_t *summary = programs_run_job(args);
    const json_t *histogram = json_object_get(json_object_get(summary, "staleness"), "histogram");
    assert_int_equal(json_array_size(histogram), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(json_integer_value(json_array_get(histogram, i)), expected[i]);
    }
    json_decref(summary);
}

static void a_seeded_job_has_the_staleness_that_was_drawn(void **state)
{
    (void)state;
    const struct async_case job = {"ps-async", "seeded:constant:2", "3", "1", "auto", "24", "12"};
    check_drawn(JOB_ARGS(&job), 34);
}

/* Each update counts once, also those of before the copy that the job goes on from. */
static void a_loss_leaves_the_staleness_as_it_was_drawn(void **state)
{
    (void)state;
    const char *const args[] = {"--mode",
                                "ps-async",
                                "--order",
                                "seeded:constant:2",
                                "-n",
                                "3",
                                "--steps",
                                "40",
                                "--fault",
                                "rank=1,step=30,kill",
                                "--on-loss",
                                "redeal",
                                "--straggler",
                                "dist=exponential:mean=60ms,share=1",
                                "--global-batch",
                                "24",
                                NULL};
    check_drawn(args, 118);
}

/* In the order of ages: how many gradients there were, and the sum of their ages. */
static void add_up(const json_t *staleness, json_int_t *ret_total, json_int_t *ret_sum)
{
    const json_t *histogram = json_object_get(staleness, "histogram"), *count;
    size_t index;
    *ret_total = *ret_sum = 0;
    json_array_foreach(histogram, index, count)
    {
        *ret_total += json_integer_value(count);
        *ret_sum += (json_int_t)index * json_integer_value(count);
    }
}

static void an_unsynchronised_job_makes_every_update_once(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:2"};
    for (size_t i = 0; i < 3; i++) {
        const struct async_case job = {modes[i], "free", "4", "2", "auto", "24", "12"};
        json_t *summary = programs_run_job(JOB_ARGS(&job));
        const json_t *staleness = json_object_get(summary, "staleness");
        json_int_t total, sum;
        add_up(staleness, &total, &sum);
        assert_int_equal(total, 2 * 4 * 12); // on each shard
        double mean = json_number_value(json_object_get(staleness, "mean"));
        assert_true(fabs(mean - (double)sum / (double)total) < 1e-6);
        assert_int_equal(json_array_size(json_object_get(summary, "epochs")), 3);
        json_decref(summary);
    }
}

/* A worker is lost, and servers keep what they have: no step is made again, nothing is fetched. So
 * many steps that the others have some left when the loss is noticed. */
static void a_race_that_loses_a_worker_goes_on_from_what_its_servers_have(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:2"};
    for (size_t i = 0; i < 2; i++) {
        const char *const job[] = {"-n",
                                   "3",
                                   "-s",
                                   "2",
                                   "--mode",
                                   modes[i],
                                   "--global-batch",
                                   "24",
                                   "--steps",
                                   "400",
                                   "--eval-every",
                                   "1000",
                                   "--fault",
                                   "rank=1,step=20,kill",
                                   NULL};
        json_t *summary = programs_run_job(job);
        const json_t *details = json_object_get(summary, "details");
        const json_t *loss = json_array_get(json_object_get(details, "recoveries"), 0);
        json_int_t total, sum;
        assert_true(json_is_true(json_object_get(loss, "in_place")));
        assert_int_equal(json_integer_value(json_object_get(loss, "steps_redone")), 0);
        assert_int_equal(json_integer_value(json_object_get(loss, "bytes")), 0);
        assert_in_range(json_integer_value(json_object_get(loss, "begin_step")), 20 / 3, 399);
        add_up(json_object_get(summary, "staleness"), &total, &sum);
        assert_int_equal(total, 400 * 3 * 2); // on each shard, whoever has made them
        json_decref(summary);
    }
}

/* Every update makes the gradients of the N - 1 others one older: (N - 1) / c in the mean with c
 * gradients an update, less what the gradients would have had that came too late. */
static void free_staleness_has_the_mean_of_its_closed_form(void **state)
{
    (void)state;
    static const char *const per_update[] = {"1", "2"};
    for (int i = 0; i < 2; i++) {
        const char *const job[] = {"--mode",
                                   "ps-async",
                                   "-n",
                                   "4",
                                   "--steps",
                                   "250",
                                   "--eval",
                                   "none",
                                   "--global-batch",
                                   "16",
                                   "--gradients-per-update",
                                   per_update[i],
                                   NULL};
        json_t *summary = programs_run_job(job);
        double mean =
            json_number_value(json_object_get(json_object_get(summary, "staleness"), "mean"));
        double closed_form = 3.0 / (i + 1);
        json_decref(summary);
        if (mean > closed_form + 0.01 || mean < 0.75 * closed_form) {
            fail_msg("the mean is %.3f, not %.1f", mean, closed_form);
        }
    }
}

/* While one evaluates, the others pass the next mark: it hears of that between its rounds. */
static void rounds_of_local_steps_go_on_at_every_mark(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:1"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const char *const job[] = {"-n",
                                   "3",
                                   "--global-batch",
                                   "6",
                                   "--lr",
                                   "0.001",
                                   "--sync-every",
                                   "2",
                                   "--eval-every",
                                   "2",
                                   "--steps",
                                   "40",
                                   "--mode",
                                   modes[i],
                                   NULL};
        json_t *summary = programs_run_job(job);
        const json_t *details = json_object_get(summary, "details");
        assert_int_equal(json_array_size(json_object_get(details, "evaluations")), 20);
        json_decref(summary);
    }
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_seeded_order_has_the_same_bits_whoever_computes_it_and_however_it_travels),
        cmocka_unit_test(one_worker_without_staleness_is_local),
        cmocka_unit_test(a_seeded_job_has_the_staleness_that_was_drawn),
        cmocka_unit_test(a_loss_leaves_the_staleness_as_it_was_drawn),
        cmocka_unit_test(an_unsynchronised_job_makes_every_update_once),
        cmocka_unit_test(a_race_that_loses_a_worker_goes_on_from_what_its_servers_have),
        cmocka_unit_test(rounds_of_local_steps_go_on_at_every_mark),
    };
    const struct CMUnitTest staleness[] = {
        cmocka_unit_test(a_constant_staleness_has_the_same_bits_however_it_travels),
        cmocka_unit_test(free_staleness_has_the_mean_of_its_closed_form),
    };
    return argc > 1 ? cmocka_run_group_tests(staleness, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
