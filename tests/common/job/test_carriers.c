/* Tests of which process carries which ranks. */
#include "common/job/carriers.h"
#include "common/vector/layout.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define RANKS_MAX 40

static void every_rank_is_carried_by_one_process_and_blocks_are_in_order(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        for (uint32_t processes = 1; processes <= ranks; processes++) {
            const struct carriers carriers = {ranks, processes};
            uint32_t next = 0;
            for (uint32_t process = 0; process < processes; process++) {
                struct rank_block block = carriers_block(carriers, process);
                assert_int_equal(block.first, next);
                assert_in_range(block.count, ranks / processes,
                                (ranks + processes - 1) / processes);
                for (uint32_t i = 0; i < block.count; i++, next++) {
                    assert_int_equal(carriers_process(carriers, next), process);
                    assert_true(rank_block_has(block, next));
                }
                assert_false(rank_block_has(block, next));
                assert_false(rank_block_has(block, block.first - 1));
            }
            assert_int_equal(next, ranks);
        }
    }
}

static void blocks_are_the_parts_of_a_span(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        for (uint32_t processes = 1; processes <= ranks; processes++) {
            for (uint32_t process = 0; process < processes; process++) {
                struct rank_block block =
                    carriers_block((struct carriers){ranks, processes}, process);
                struct span part = span_part((struct span){0, ranks}, processes, process);
                assert_int_equal(block.first, part.offset);
                assert_int_equal(block.count, part.count);
            }
        }
    }
}

static void a_job_has_a_process_for_each_worker_unless_it_says_otherwise(void **state)
{
    (void)state;
    struct job job = {.workers = 8};
    assert_int_equal(job_carriers(&job).processes, 8);
    job.processes = 3;
    assert_int_equal(job_carriers(&job).processes, 3);
    assert_int_equal(job_carriers(&job).ranks, 8);
}

static void ranks_that_take_turns_share_a_vector_of_gradients(void **state)
{
    (void)state;
    const struct job job = sample_job_resolved(SAMPLE_JOB("workers=4", "mode=ps-async"));
    assert_int_equal(carriers_gradient_count(&job, 3), 1);
    const struct job bounded = sample_job_resolved(
        SAMPLE_JOB("workers=4", "mode=ps-ssp:2", "epochs=4", "switch=epoch:2=ps-async"));
    assert_int_equal(carriers_gradient_count(&bounded, 3), 1);
    const struct job switched = sample_job_resolved(
        SAMPLE_JOB("workers=4", "mode=ps-async", "epochs=4", "switch=epoch:2=ps-sync"));
    assert_int_equal(carriers_gradient_count(&switched, 3), 3);
    const struct job ring = sample_job_resolved(SAMPLE_JOB("workers=4", "mode=ring"));
    assert_int_equal(carriers_gradient_count(&ring, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_is_carried_by_one_process_and_blocks_are_in_order),
        cmocka_unit_test(blocks_are_the_parts_of_a_span),
        cmocka_unit_test(ranks_that_take_turns_share_a_vector_of_gradients),
        cmocka_unit_test(a_job_has_a_process_for_each_worker_unless_it_says_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
