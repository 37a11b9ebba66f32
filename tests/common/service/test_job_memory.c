/* Tests of how much memory parts of a job take, in vectors of all parameters. */
#include "common/service/job_memory.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define VALUES UINT64_C(4000000) // bytes of all parameters

static struct job make(const char *const settings[8])
{
    return sample_job_resolved(sample_job(settings));
}

static void a_copy_has_all_that_a_job_goes_on_from(void **state)
{
    (void)state;
    static const struct {
        const char *settings[8];
        uint64_t vectors;
    } cases[] = {
        {{"mode=ring", "optimizer=sgd", "workers=3", NULL}, 1},
        {{"mode=ring", "optimizer=adam", "workers=3", NULL}, 3},
        // Each worker has states of its own between two rounds.
        {{"mode=ring", "optimizer=adam", "workers=3", "sync-every=4", NULL}, 7},
        // What codes have left of each rank's gradients, and of the mean of all.
        {{"mode=ring", "optimizer=sgd", "workers=3", "compress=int8", NULL}, 4},
        {{"mode=ps-sync", "optimizer=sgd", "workers=3", "compress=int8", NULL}, 5},
        // The newest parameters and four versions before them.
        {{"mode=ps-async", "optimizer=sgd", "workers=3", "order=seeded:uniform:0..4", NULL}, 5},
        // The mean square of gradients.
        {{"mode=ps-async", "optimizer=sgd", "workers=3", "remedy=dc-adaptive", NULL}, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job = make(cases[i].settings);
        assert_int_equal(job_memory_of_copy(&job, VALUES), cases[i].vectors * VALUES);
    }
}

/* Against the same job without the last setting. */
static void what_a_job_asks_of_its_server_takes_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *settings[8], *more;
        uint64_t vectors;
    } cases[] = {
        {{"mode=ps-sync", "optimizer=sgd"}, "optimizer=adam", 2},
        // A gradient of each worker waits for the mean.
        {{"mode=ps-sync", "optimizer=sgd"}, "transport=tcp", 3},
        // Of the parameters, while they are sent.
        {{"mode=ps-sync", "optimizer=sgd"}, "checkpoint-every=5", 1},
        {{"mode=ps-async", "optimizer=sgd"}, "order=seeded:uniform:0..4", 5},
        // What each worker has read.
        {{"mode=ps-async", "optimizer=sgd"}, "remedy=dc", 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *settings[8] = {cases[i].settings[0], cases[i].settings[1], "workers=3",
                                   "on-loss=fail", NULL};
        const struct job before = make(settings);
        settings[4] = cases[i].more;
        const struct job job = make(settings);
        assert_int_equal(job_memory_of_server(&job, VALUES) - job_memory_of_server(&before, VALUES),
                         cases[i].vectors * VALUES);
    }
}

static void copies_are_held_where_losses_are_made_good(void **state)
{
    (void)state;
    const struct job job = make((const char *const[8]){"mode=ring", "workers=3", NULL});
    const struct job fails =
        make((const char *const[8]){"mode=ring", "workers=3", "on-loss=fail", NULL});
    assert_int_equal(job_memory_copies(&job, JOB_MEMORY_NO_MIRROR), 2);
    assert_int_equal(job_memory_copies(&job, JOB_MEMORY_MIRROR), 3);
    assert_int_equal(job_memory_copies(&job, JOB_MEMORY_MIRROR_IN_MEMORY), 6);
    assert_int_equal(job_memory_copies(&fails, JOB_MEMORY_MIRROR), 0);
    assert_int_equal(job_memory_of_server(&job, VALUES), 0); // there is none
    assert_int_equal(job_memory_of_coordinator(&job, JOB_MEMORY_NO_MIRROR, VALUES) -
                         job_memory_of_coordinator(&fails, JOB_MEMORY_NO_MIRROR, VALUES),
                     2 * job_memory_of_copy(&job, VALUES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_all_that_a_job_goes_on_from),
        cmocka_unit_test(what_a_job_asks_of_its_server_takes_vectors),
        cmocka_unit_test(copies_are_held_where_losses_are_made_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
