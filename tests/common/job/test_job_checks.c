/* Tests that contradictory settings of a job are rejected, with advice. */
#include "common/job/carriers.h"
#include "common/job/job_checks.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void what_needs_stale_gradients_is_refused_where_there_are_none(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("mode=ring", "order=seeded:constant:1"),
                      "ps-async or ps-ssp:S, not ring");
    sample_job_refuse(SAMPLE_JOB("remedy=dc"), "mode ps-sync has none");
    sample_job_refuse(SAMPLE_JOB("gradients-per-update=2"), "mode ps-sync has none");
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "workers=4", "gradients-per-update=5"),
                      "is more than the");
    sample_job_refuse(
        SAMPLE_JOB("mode=ps-async", "gradients-per-update=2", "order=seeded:constant:1"),
        "contradict each other");
    sample_job_refuse(SAMPLE_JOB("workers=4", "straggler=rank=4,factor=2"), "names rank 4");
}

static void stale_gradients_of_a_later_phase_are_enough(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "epochs=4", "switch=epoch:2=ps-async", "order=seeded:constant:1"));
    assert_int_equal(job.servers, 1);
    assert_true(job_is_unsynchronised(&job));
    assert_false(job_is_unsynchronised_in(&job, MODE_RING));
    assert_true(job_has_mode(&job, MODE_RING) && job_has_mode(&job, MODE_PS_ASYNC));
    assert_false(job_has_mode(&job, MODE_PS_SYNC));
}

static void a_program_of_its_own_gets_only_what_it_can_do(void **state)
{
    (void)state;
    const struct job job = sample_job_resolved(SAMPLE_JOB("model=external:mine", "steps=5"));
    assert_true(job_is_external(&job));
    assert_string_equal(job.data, "external:mine");
    assert_int_equal(job.eval, EVALUATION_NONE);
    assert_int_equal(job.on_loss, ON_LOSS_FAIL);
    assert_false(job_is_open(&job));
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "epochs=2"), "its length in steps");
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "steps=5", "sync-every=2"),
                      "--sync-every 1");
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "steps=5", "checkpoint-every=2"),
                      "--checkpoint-every none");
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "steps=5", "on-loss=redeal"),
                      "--on-loss fail");
    sample_job_refuse(SAMPLE_JOB("data=external:mine"), "is for --model external:NAME alone");
}

static void a_program_of_its_own_may_make_as_many_steps_as_it_likes(void **state)
{
    (void)state;
    const struct job job = sample_job_resolved(SAMPLE_JOB("model=external:mine"));
    assert_true(job_is_open(&job));
    assert_int_equal(job_known_steps(&job, 1), 0);
    assert_int_equal(job.epochs, 0);
    const struct job closed = sample_job_resolved(SAMPLE_JOB("model=external:mine", "steps=7"));
    assert_int_equal(job_known_steps(&closed, 1), 7);
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "lr-schedule=cosine"),
                      "a length for a rate that changes: --steps COUNT");
    sample_job_refuse(SAMPLE_JOB("model=external:mine", "warmup-epochs=1"),
                      "a length for a rate that changes: --steps COUNT");
}

static void servers_without_updates_are_for_programs_in_ps_sync(void **state)
{
    (void)state;
#define NONE(...) SAMPLE_JOB("server-optimizer=none", "workers=3", __VA_ARGS__)
    sample_job_resolved(NONE("model=external:mine", "mode=ps-sync", "on-loss=commit"));
    sample_job_resolved(
        NONE("model=external:mine", "mode=ring")); // beside others that have servers
    sample_job_refuse(NONE("mode=ps-sync"), "is for a program of its own, which makes the updates");
    sample_job_refuse(NONE("model=external:mine", "mode=ps-async"),
                      "in mode ps-async servers hold the parameters");
    sample_job_refuse(NONE("model=external:mine", "mode=ps-ssp:2"), "use --mode ps-sync or ring");
    sample_job_refuse(NONE("model=external:mine", "mode=ps-sync", "backup=1"), "--backup 0");
    sample_job_refuse(NONE("model=external:mine", "mode=ps-sync", "sync-every=2"),
                      "--sync-every 1");
    sample_job_refuse(NONE("model=external:mine", "mode=ps-sync", "remedy=dc"),
                      "mode ps-sync has none");
#undef NONE
}

static void a_program_may_commit_where_nothing_else_keeps_gradients(void **state)
{
    (void)state;
    static const char *const modes[] = {"mode=ring", "mode=ps-sync", "mode=ps-ssp:2",
                                        "mode=ps-async"};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        const struct job job =
            sample_job_resolved(SAMPLE_JOB("model=external:mine", modes[i], "on-loss=commit"));
        assert_true(job_may_commit(&job) && job_may_go_on(&job) && !job_may_redeal(&job));
    }
    sample_job_refuse(SAMPLE_JOB("mode=ring", "on-loss=commit"), "is for a program of its own");
#define COMMIT(...) SAMPLE_JOB("model=external:mine", "on-loss=commit", "workers=3", __VA_ARGS__)
    sample_job_refuse(COMMIT("mode=ps-sync", "backup=1"), "--backup 0");
    sample_job_refuse(COMMIT("mode=ps-async", "gradients-per-update=2"),
                      "--gradients-per-update 1");
    sample_job_refuse(COMMIT("mode=ps-async", "remedy=dc"), "--remedy none");
    sample_job_refuse(COMMIT("mode=ring", "straggler=rank=1,factor=2"), "leave out --straggler");
    sample_job_refuse(COMMIT("mode=ring", "min-workers=4"), "--min-workers 4 is more than the 3");
#undef COMMIT
}

static void more_workers_than_a_job_begins_with_cannot_have_to_be_left(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=3", "min-workers=4"),
                      "--min-workers 4 is more than the 3 worker processes");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=4", "processes=2", "min-workers=3"),
                      "--min-workers 3 is more than the 2 worker processes");
    sample_job_resolved(SAMPLE_JOB("mode=ring", "workers=3", "min-workers=3"));
}

static void a_remedy_needs_what_it_mends(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "remedy=momentum", "optimizer=adam"),
                      "optimizer adam has none");
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "remedy=dc", "sync-every=4"),
                      "staleness-lr goes with it");
    sample_job_resolved(SAMPLE_JOB("mode=ps-async", "remedy=momentum", "optimizer=nesterov"));
    sample_job_resolved(SAMPLE_JOB("mode=ps-async", "remedy=staleness-lr", "sync-every=4"));
}

static void servers_on_a_gpu_say_what_they_do_not_do(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cpu"), "--device cuda");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "transport=tcp"),
                      "--transport auto or shm");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "compress=fp16"),
                      "--compress none");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda:1", "device=cuda", "workers=17"),
                      "16 workers at most");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "sync-every=2"),
                      "--sync-every 1");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "bucket-mb=auto"),
                      "a number for --bucket-mb");
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "mode=ps-async", "remedy=dc"),
                      "the remedies none and momentum");
    sample_job_resolved(SAMPLE_JOB("server-device=cuda:1", "device=cuda", "mode=ps-ssp:2"));
    sample_job_resolved(SAMPLE_JOB("server-device=cuda", "device=cuda", "checkpoint-every=3"));
    sample_job_resolved(
        SAMPLE_JOB("workers=4", "processes=2", "server-device=cuda", "device=cuda"));
    const struct job job = sample_job_resolved(SAMPLE_JOB("server-device=cuda", "device=cuda"));
    assert_int_equal(job.on_loss, ON_LOSS_REDEAL);
    sample_job_refuse(SAMPLE_JOB("server-device=cuda", "device=cuda", "on-loss=shrink"),
                      "--server-device host");
}

static void fewer_processes_than_workers_are_for_jobs_whose_bits_they_keep(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=5"), "--processes 5 is more than the 4");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "mode=ps-async",
                                 "order=seeded:constant:2", "delay-model=per-worker"),
                      "--delay-model server");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "mode=ps-async", "sync-every=4"),
                      "--sync-every 1");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "backup=1"), "--backup 0");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "sync-every=4"), "--sync-every 1");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "sync-bn=true"), "--no-sync-bn");
    sample_job_refuse(SAMPLE_JOB("workers=4", "processes=2", "mode=ring", "compress=fp16"),
                      "--compress none");
    // All of that goes with a process for each worker.
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=4", "mode=ps-async"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=4", "sync-every=4"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "compress=fp16"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "mode=ps-async", "compress=int8",
                                   "gradients-per-update=3", "remedy=dc"));
    sample_job_resolved(
        SAMPLE_JOB("workers=4", "processes=3", "mode=ps-ssp:1", "order=seeded:uniform:0..4"));
    sample_job_resolved(
        SAMPLE_JOB("workers=4", "processes=2", "epochs=4", "switch=epoch:2=ps-async"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=1", "mode=ring"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "straggler=rank=3,factor=2"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "checkpoint-every=5"));
    sample_job_resolved(
        SAMPLE_JOB("workers=4", "processes=2", "mode=ring", "checkpoint-every=epoch"));
    struct job job = sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "mode=local"));
    assert_int_equal(job.processes, 0);
}

static void what_ends_a_job_with_its_first_loss_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *options[4];
        const char *why;
    } bound[] = {
        {{"backup=1"}, "going on needs workers that are all waited for: --backup 0"},
        {{"mode=ring", "sync-every=4"}, "going on needs workers whose parameters are the same"},
        {{"model=resnet20", "sync-bn=true"}, "going on needs batch normalisation over each"},
        {{"mode=ring", "compress=fp16"}, "going on needs sums that travel as they are"},
        {{"mode=ps-async", "order=seeded:constant:2", "remedy=momentum"},
         "no copy holds the staleness that --remedy momentum has measured"},
    };
    char why[JOB_BOUND_BYTES];
    for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
        const struct job job = sample_job_resolved(
            SAMPLE_JOB("workers=4", bound[i].options[0], bound[i].options[1], bound[i].options[2]));
        assert_int_equal(job.on_loss, ON_LOSS_FAIL);
        assert_true(job_is_bound(&job, why));
        assert_ptr_equal(strstr(why, bound[i].why), why);
    }
    const struct job plain = sample_job_resolved(SAMPLE_JOB("workers=4", "on-loss=fail"));
    const struct job local = sample_job_resolved(SAMPLE_JOB("mode=local", "sync-every=4"));
    assert_false(job_is_bound(&plain, why) || job_is_bound(&local, why));
}

static void backup_workers_are_some_of_the_workers_of_ps_sync(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4", "backup=4"), "at most 3");
    sample_job_refuse(SAMPLE_JOB("workers=4", "backup=1", "mode=ring"), "for mode ps-sync");
    sample_job_refuse(SAMPLE_JOB("workers=4", "backup=1", "mode=ps-async"), "for mode ps-sync");
    struct job job = sample_job_resolved(SAMPLE_JOB("workers=4", "backup=3"));
    assert_true(job_is_unsynchronised(&job));
}

static void the_batch_of_all_workers_needs_workers_in_step(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "sync-bn=true"), "make their steps together");
    sample_job_refuse(SAMPLE_JOB("workers=4", "backup=1", "sync-bn=true"), "without --backup");
    sample_job_refuse(
        SAMPLE_JOB("mode=ring", "epochs=4", "switch=epoch:2=ps-ssp:1", "sync-bn=true"),
        "make their steps together");
    assert_true(sample_job_resolved(SAMPLE_JOB("mode=ring", "sync-bn=true")).sync_bn);
}

static void buckets_are_not_tuned_where_bits_must_not_depend_on_time(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("mode=ps-async", "order=seeded:round-robin", "bucket-mb=auto"),
                      "give --bucket-mb a number");
    struct job job = sample_job_resolved(SAMPLE_JOB("mode=ps-async", "bucket-mb=auto"));
    assert_true(job_tunes_buckets(&job));
    assert_int_equal(phases_bucket_bytes(&job), 256 * 1024);
    job = sample_job_resolved(SAMPLE_JOB("bucket-mb=0.5"));
    assert_false(job_tunes_buckets(&job));
    assert_int_equal(phases_bucket_bytes(&job), 512 * 1024);
}

static void some_step_of_a_timeline_comes(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("steps=30", "timeline-steps=31..40"), "the job has 30 steps");
    sample_job_resolved(SAMPLE_JOB("steps=30", "timeline-steps=30..40"));
    sample_job_resolved(SAMPLE_JOB("steps=30", "timeline=true"));
}

static void a_switch_comes_within_the_job(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("epochs=3", "switch=epoch:3=ring"), "the job has 3 epochs");
    sample_job_refuse(SAMPLE_JOB("steps=100", "switch=step:100=ring"), "the job has 100 steps");
    sample_job_refuse(SAMPLE_JOB("epochs=3", "switch=epoch:1=ring", "mode=local"),
                      "has one worker");
    sample_job_refuse(SAMPLE_JOB("epochs=3", "switch=epoch:1=ps-sync", "mode=ring", "servers=0"),
                      "at least one of --servers");
}

static void delays_for_each_worker_are_drawn_and_of_single_gradients(void **state)
{
    (void)state;
    const char *const model = "delay-model=per-worker";
    sample_job_refuse(SAMPLE_JOB(model), "needs mode ps-async");
    sample_job_refuse(SAMPLE_JOB(model, "mode=ps-async"), "not free");
    sample_job_refuse(SAMPLE_JOB(model, "mode=ps-async", "order=seeded:round-robin"),
                      "not seeded:round-robin");
    sample_job_refuse(SAMPLE_JOB(model, "mode=ps-async", "order=seeded:constant:2", "remedy=dc"),
                      "no --remedy");
    sample_job_refuse(SAMPLE_JOB(model, "mode=ps-async", "order=seeded:constant:2", "epochs=2",
                                 "switch=epoch:1=ring"),
                      "from the first step to the last");
    sample_job_resolved(SAMPLE_JOB(model, "mode=ps-async", "order=seeded:uniform:0..4"));
}

static void a_target_needs_evaluations(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("target-accuracy=0.9", "eval=end"),
                      "--eval epoch, not --eval end");
    sample_job_refuse(SAMPLE_JOB("eval-every=10", "eval=none"), "--eval epoch, not --eval none");
    sample_job_resolved(SAMPLE_JOB("target-accuracy=0.9", "eval-every=10"));
}

static void one_worker_makes_no_rounds(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("mode=local", "sync-every=8"));
    assert_int_equal(job.sync_every, 1);
}

static void the_connections_to_all_peers_have_a_limit(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("servers=200", "connections=8"), "at most 5");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=400", "all-reduce=direct", "connections=3"),
                      "at most 2");
    (void)sample_job_resolved(SAMPLE_JOB("servers=125", "connections=8"));
    (void)sample_job_resolved(SAMPLE_JOB("mode=ring", "workers=4000", "connections=8"));
}

static void the_shards_of_all_servers_have_a_limit(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("servers=3", "server-threads=86"), "more than 256 shards");
    struct job job = sample_job_resolved(SAMPLE_JOB("servers=4", "server-threads=64"));
    assert_int_equal(job_shard_count(&job), 256);
    job = sample_job_resolved(SAMPLE_JOB("mode=ring", "server-threads=4"));
    assert_int_equal(job_shard_count(&job), 0);
}

static void a_coordinator_apart_is_a_process_of_its_own(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("servers=3"));
    assert_int_equal(job_ps_count(&job), 3);
    assert_int_equal(job_first_server(&job), 0);
    job = sample_job_resolved(SAMPLE_JOB("servers=3", "coordinator-role=alone"));
    assert_int_equal(job_ps_count(&job), 4);
    assert_int_equal(job_first_server(&job), 1);
    job = sample_job_resolved(SAMPLE_JOB("mode=ring", "servers=3", "coordinator-role=alone"));
    assert_int_equal(job_ps_count(&job), 1);
    assert_int_equal(job_first_server(&job), 0);
    sample_job_refuse(SAMPLE_JOB("servers=256", "coordinator-role=alone"),
                      "more than 256 processes of ps");
}

static void nccl_says_what_it_does_not_do(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "all-reduce=nccl", "device=cuda:1", "workers=4"));
    assert_true(job_has_nccl(&job));
    sample_job_refuse(SAMPLE_JOB("mode=ring", "all-reduce=nccl", "device=cpu"),
                      "--all-reduce nccl needs workers on GPUs: --device cuda");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "all-reduce=nccl", "compress=fp16"),
                      "--compress none");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "all-reduce=nccl", "sync-every=2"), "--sync-every 1");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "all-reduce=nccl", "transport=shm"),
                      "--transport auto or tcp");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "all-reduce=nccl", "connections=2"),
                      "--connections 1");
    // Other runs of a comparison: nothing is added up, or by a server.
    job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "workers=1", "all-reduce=nccl", "compress=fp16"));
    assert_false(job_has_nccl(&job));
    job = sample_job_resolved(SAMPLE_JOB("mode=ps-sync", "all-reduce=nccl", "device=cpu"));
    assert_false(job_has_nccl(&job));
    job = sample_job_resolved(
        SAMPLE_JOB("mode=ps-sync", "epochs=2", "switch=epoch:1=ring", "all-reduce=nccl"));
    assert_true(job_has_nccl(&job));
}

static void what_counts_for_nothing_in_a_mode_makes_no_other_job_of_it(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("mode=ps-sync", "all-reduce=direct"));
    assert_int_equal(job.all_reduce, ALL_REDUCE_CHOICE_AUTO);
    job = sample_job_resolved(SAMPLE_JOB("mode=ps-sync", "epochs=2", "switch=epoch:1=ring",
                                         "all-reduce=direct", "compress=topk:0.01"));
    assert_int_equal(job.all_reduce, ALL_REDUCE_CHOICE_DIRECT);
    assert_true(job.compress.kind == CODEC_TOPK && job.compress.share_millionths == 10000);
    job = sample_job_resolved(SAMPLE_JOB("mode=local", "compress=fp16"));
    assert_int_equal(job.compress.kind, CODEC_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_processes_than_workers_are_for_jobs_whose_bits_they_keep),
        cmocka_unit_test(what_needs_stale_gradients_is_refused_where_there_are_none),
        cmocka_unit_test(stale_gradients_of_a_later_phase_are_enough),
        cmocka_unit_test(a_program_of_its_own_gets_only_what_it_can_do),
        cmocka_unit_test(a_program_of_its_own_may_make_as_many_steps_as_it_likes),
        cmocka_unit_test(servers_without_updates_are_for_programs_in_ps_sync),
        cmocka_unit_test(a_program_may_commit_where_nothing_else_keeps_gradients),
        cmocka_unit_test(more_workers_than_a_job_begins_with_cannot_have_to_be_left),
        cmocka_unit_test(a_remedy_needs_what_it_mends),
        cmocka_unit_test(servers_on_a_gpu_say_what_they_do_not_do),
        cmocka_unit_test(what_ends_a_job_with_its_first_loss_is_named),
        cmocka_unit_test(backup_workers_are_some_of_the_workers_of_ps_sync),
        cmocka_unit_test(the_batch_of_all_workers_needs_workers_in_step),
        cmocka_unit_test(buckets_are_not_tuned_where_bits_must_not_depend_on_time),
        cmocka_unit_test(a_switch_comes_within_the_job),
        cmocka_unit_test(some_step_of_a_timeline_comes),
        cmocka_unit_test(delays_for_each_worker_are_drawn_and_of_single_gradients),
        cmocka_unit_test(a_target_needs_evaluations),
        cmocka_unit_test(one_worker_makes_no_rounds),
        cmocka_unit_test(the_connections_to_all_peers_have_a_limit),
        cmocka_unit_test(the_shards_of_all_servers_have_a_limit),
        cmocka_unit_test(a_coordinator_apart_is_a_process_of_its_own),
        cmocka_unit_test(nccl_says_what_it_does_not_do),
        cmocka_unit_test(what_counts_for_nothing_in_a_mode_makes_no_other_job_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
