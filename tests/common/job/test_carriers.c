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
            const struct carriers carriers = {.ranks = ranks, .processes = processes};
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
                struct rank_block block = carriers_block(
                    (struct carriers){.ranks = ranks, .processes = processes}, process);
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

/* Every set of ranks that are left out of six. */
static void ranks_that_are_left_out_are_dealt_with_the_one_behind_them(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < (1U << 6) - 1; set++) {
        struct carriers carriers = {.ranks = 6};
        for (uint32_t rank = 0; rank < 6; rank++) {
            if ((set >> rank & 1) != 0) {
                assert_true(rank_list_add(&carriers.left_out, rank));
            }
        }
        uint32_t present = carriers_present(&carriers);
        for (carriers.processes = 1; carriers.processes <= present; carriers.processes++) {
            uint32_t next = 0;
            for (uint32_t process = 0; process < carriers.processes; process++) {
                struct rank_block block = carriers_block(carriers, process);
                uint32_t taking_part = 0;
                assert_int_equal(block.first, next);
                for (; next < block.first + block.count; next++) {
                    assert_int_equal(carriers_process(carriers, next), process);
                    taking_part += !rank_list_has(&carriers.left_out, next);
                }
                assert_in_range(taking_part, present / carriers.processes,
                                (present + carriers.processes - 1) / carriers.processes);
                bool is_last = process + 1 == carriers.processes;
                assert_true(is_last || !rank_list_has(&carriers.left_out, next - 1));
                assert_in_range(block.count, carriers_least(carriers), carriers_most(carriers));
            }
            assert_int_equal(next, 6);
        }
    }
}

static void a_job_leaves_out_the_images_of_ranks(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "workers=3", "global-batch=32", "without-ranks=1"));
    assert_int_equal(job_carriers(&job).processes, 2);
    assert_int_equal(job_batch_of(&job, 0), 11);
    assert_int_equal(job_batch_of(&job, 1), 0);
    assert_int_equal(job_batch_of(&job, 2), 10);
    assert_int_equal(job_batch_present(&job), 21);
    assert_int_equal(job_batch_max(&job), 11);
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=3", "without-ranks=3"), "are 0 to 2");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=2", "without-ranks=0,1"),
                      "one of them has to take part");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=3", "processes=3", "without-ranks=0"),
                      "--processes 3 is more than the 2 workers that take part");
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "workers=3", "without-ranks=1"),
                      "--without-ranks needs a mean over all ranks: modes ring and ps-sync");
    sample_job_refuse(SAMPLE_JOB("mode=ps-ssp:2", "workers=3", "on-loss=shrink"),
                      "--on-loss shrink needs a mean over all ranks");
    sample_job_refuse(
        SAMPLE_JOB("mode=ps-sync", "workers=3", "compress=topk:0.1", "on-loss=shrink"),
        "--on-loss shrink needs gradients that have nothing left over");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=3", "sync-bn=true", "on-loss=shrink"),
                      "--on-loss shrink needs batch normalisation over each worker's own batch");
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

static void with_encoded_gradients_no_server_can_be_done_without(void **state)
{
    (void)state;
    const struct job encoded =
        sample_job_resolved(SAMPLE_JOB("mode=ps-sync", "workers=3", "servers=2", "compress=int8"));
    assert_true(job_may_go_on(&encoded) && job_needs_servers(&encoded));
    const struct job plain =
        sample_job_resolved(SAMPLE_JOB("mode=ps-sync", "workers=3", "servers=2"));
    assert_true(job_may_go_on(&plain) && !job_needs_servers(&plain));
    const struct job fails = sample_job_resolved(
        SAMPLE_JOB("mode=ps-sync", "workers=3", "servers=2", "compress=int8", "on-loss=fail"));
    assert_false(job_needs_servers(&fails));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_encoded_gradients_no_server_can_be_done_without),
        cmocka_unit_test(every_rank_is_carried_by_one_process_and_blocks_are_in_order),
        cmocka_unit_test(blocks_are_the_parts_of_a_span),
        cmocka_unit_test(ranks_that_are_left_out_are_dealt_with_the_one_behind_them),
        cmocka_unit_test(a_job_leaves_out_the_images_of_ranks),
        cmocka_unit_test(ranks_that_take_turns_share_a_vector_of_gradients),
        cmocka_unit_test(a_job_has_a_process_for_each_worker_unless_it_says_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
