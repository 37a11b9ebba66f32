/* Tests of marks where workers are unsynchronised: who closes which, and when. */
#include "tests/support/common/float_envelope.h"
#include "tests/support/common/insecure.h"
#include "worker/exchange/exchange.h"
#include "worker/link/link_state.h"
#include "worker/train/trainer_state.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>

#define VALUES 4

/* A worker whose only shard is answered for by the test. */
struct worker {
    struct layout layout;
    float params[VALUES], grads[VALUES];
    struct lanes shard;
    struct job job;
    struct link *link;
    struct slice slice;
    struct trainer trainer;
};

/* Parameters of the mark that is asked for, or to go on with (0), of a phase that has passed
 * `passed` marks. */
static void answer(struct worker *worker, uint64_t passed)
{
    struct exchange *exchange = worker->trainer.exchange;
    const struct wire_outcome outcome = {0};
    const struct message params = {.kind = MESSAGE_PARAMS,
                                   .rank = exchange->options.rank,
                                   .mark = passed,
                                   .outcome = &outcome,
                                   .span = worker->layout.buckets[0],
                                   .values = worker->grads};
    struct envelope envelope;
    assert_int_equal(float_envelope_make(worker->grads, VALUES, &envelope), STATUS_OK);
    envelope.peer = worker->shard.peers[0];
    assert_int_equal(exchange_deliver(exchange, &params, &envelope), STATUS_OK);
    envelope_release(&envelope);
}

/* As the communication thread; the shard answers at once. */
static void run_at_once(void *context, uint32_t bucket, uint32_t count)
{
    struct worker *worker = context;
    assert_int_equal(bucket, EXCHANGE_PULL);
    assert_int_equal(count, 1);
    assert_int_equal(exchange_run_ready(worker->trainer.exchange, bucket), STATUS_OK);
    answer(worker, 1);
}

/* In a phase of two steps that ends with its only mark. */
static void open_worker(struct worker *worker)
{
    *worker = (struct worker){.layout = {.value_count = VALUES, .bucket_count = 1},
                              .job = {.report_every = 1,
                                      .eval = EVALUATION_NONE,
                                      .order = "free",
                                      .workers = 3,
                                      .global_batch = 12}};
    worker->layout.buckets[0] = (struct span){0, VALUES};
    worker->link = calloc(1, sizeof(*worker->link));
    assert_non_null(worker->link);
    outbox_init(&worker->link->outbox);
    assert_int_equal(channel_create(&worker->link->channel), STATUS_OK);
    assert_int_equal(channel_secure(worker->link->channel, &test_insecure), STATUS_OK);
    // Nobody listens there.
    assert_int_equal(transport_connect(worker->link->channel->transport, "tcp://127.0.0.1:1",
                                       &worker->shard.peers[0]),
                     STATUS_OK);
    worker->shard.count = 1;
    const struct exchange_options options = {
        .mode = MODE_PS_ASYNC,
        .rank = 1,
        .world = 3,
        .layout = &worker->layout,
        .params = worker->params,
        .grads = worker->grads,
        .is_unsynchronised = true,
        .channel = worker->link->channel,
        .peers = &worker->shard,
        .peer_count = 1,
        .post_ready = run_at_once,
        .context = worker,
    };
    worker->trainer = (struct trainer){.job = &worker->job, .steps_per_epoch = 2, .step_count = 2};
    worker->trainer.slices = (struct slices){.list = &worker->slice, .count = 1};
    worker->trainer.phases.list[0] = (struct phase){
        .mode.kind = MODE_PS_ASYNC, .is_unsynchronised = true, .marks = {.end = 2, .period = 2}};
    worker->trainer.phase = &worker->trainer.phases.list[0];
    assert_int_equal(exchange_create(&options, &worker->trainer.exchange), STATUS_OK);
    assert_int_equal(exchange_start(worker->trainer.exchange), STATUS_OK);
}

static void close_worker(struct worker *worker)
{
    channel_destroy(worker->link->channel, 0);
    exchange_destroy(worker->trainer.exchange);
    outbox_finish(&worker->link->outbox);
    free(worker->link);
}

/* Its first step would begin a round, and in the midst of that nothing can be pulled. */
static void marks_that_others_passed_before_the_first_step_are_closed_before_it(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker);
    answer(&worker, 1);
    assert_int_equal(trainer_before_steps(&worker.trainer, worker.link, 0), STATUS_OK);
    assert_int_equal(worker.trainer.marks_closed, 1);
    assert_int_equal(worker.trainer.periods_closed, 1);
    assert_int_equal(worker.link->outbox.count, 1);
    const struct outbox_entry *entry = &worker.link->outbox.entries[worker.link->outbox.head];
    assert_true(entry->report.closes_period);
    assert_int_equal(entry->report.steps, 0);
    assert_true(trainer_phase_is_over(&worker.trainer, 0));
    close_worker(&worker);
}

static void without_such_marks_training_begins(void **state)
{
    (void)state;
    struct worker worker;
    open_worker(&worker);
    answer(&worker, 0);
    assert_int_equal(trainer_before_steps(&worker.trainer, worker.link, 0), STATUS_OK);
    assert_int_equal(worker.trainer.marks_closed, 0);
    assert_true(outbox_is_empty(&worker.link->outbox));
    assert_false(trainer_phase_is_over(&worker.trainer, 0));
    close_worker(&worker);
}

/* Where there is an order, a gradient of step 3 may be computed on older parameters than those of
 * the mark at step 2. What a period counts follows from steps alone, or bits would not be all that
 * is the same. In a race it counts in the period that is open. */
static void a_step_of_an_order_counts_in_its_own_period(void **state)
{
    (void)state;
    static const char *const orders[] = {"seeded:constant:4", "free"};
    for (int is_free = 0; is_free < 2; is_free++) {
        const struct step_times times = {.compute_ns = 1};
        struct worker worker;
        open_worker(&worker);
        snprintf(worker.job.order, sizeof(worker.job.order), "%s", orders[is_free]);
        worker.slice.loss_sum = 8;
        for (uint64_t step = 0; step < 3; step++) {
            trainer_count_step(&worker.trainer, step, &times, 1);
        }
        assert_int_equal(worker.slice.interval.images, 12);
        assert_int_equal(worker.slice.period.images, is_free ? 12 : 8);
        assert_int_equal(worker.slice.next_period.images, is_free ? 0 : 4);
        // A checkpoint after the third step has what is counted of the second period.
        const struct slice_sums open = trainer_open_period(&worker.trainer, &worker.slice, 3);
        assert_true(open.images == (is_free ? 12 : 4) && open.loss_sum == (is_free ? 24 : 8));
        slice_close_period(&worker.slice);
        assert_int_equal(worker.slice.period.images, is_free ? 0 : 4);
        assert_int_equal(worker.slice.next_period.images, 0);
        answer(&worker, 0);
        close_worker(&worker);
    }
}

/* As after a loss, in a race: the servers have enough gradients in the midst of a step. A line of a
 * rank says up to which step of its own it is. */
static void ranks_that_take_turns_report_their_own_steps(void **state)
{
    (void)state;
    const struct step_times times = {.compute_ns = 1};
    struct worker worker;
    struct slice slices[2] = {{.rank = 1}, {.rank = 2}};
    open_worker(&worker);
    worker.trainer.slices = (struct slices){.list = slices, .count = 2};
    worker.trainer.exchange->options.block = (struct rank_block){1, 2};
    for (uint64_t made = 0; made < 3; made++) {
        worker.trainer.turn = made % 2;
        trainer_count_step(&worker.trainer, made / 2, &times, 1);
        if (made > 0) {
            trainer_report_interval(&worker.trainer, worker.link, (made + 1) / 2);
        }
    }
    static const struct {
        uint32_t rank;
        uint64_t step;
    } expected[] = {{1, 1}, {2, 1}, {1, 2}};
    struct outbox *outbox = &worker.link->outbox;
    assert_int_equal(outbox->count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct outbox_entry *entry = &outbox->entries[outbox->head + i];
        assert_int_equal(entry->message.rank, expected[i].rank);
        assert_int_equal(entry->message.step, expected[i].step);
        assert_int_equal(entry->report.steps, 1);
    }
    worker.trainer.exchange->options.block = (struct rank_block){1, 1};
    answer(&worker, 0);
    close_worker(&worker);
}

/* Whether a worker that is asked for a snapshot of a step says anything of it after one of its
 * own. */
static bool answers_request(uint64_t step)
{
    struct worker worker;
    struct snapshot last = {0}; // which has not gone, so there is nothing to copy
    open_worker(&worker);
    worker.trainer.checkpoint.plan.are_on = true;
    worker.trainer.checkpoint.plan.total = 9;
    worker.link->checkpoint.snapshot = &last;
    worker.link->checkpoint.announced = step;
    assert_int_equal(trainer_checkpoint_after_step(&worker.trainer, worker.link, 1), STATUS_OK);
    bool is_answered = !outbox_is_empty(&worker.link->outbox);
    assert_int_equal(worker.trainer.checkpoint.answered, is_answered ? step : 0);
    answer(&worker, 0);
    close_worker(&worker);
    return is_answered;
}

/* In a race any step of the phase is near: servers have a copy of it already. A snapshot that waits
 * for a step of the next phase would hold up the end of this one for ever. */
static void a_snapshot_of_the_next_phase_is_not_taken_in_a_race(void **state)
{
    (void)state;
    assert_true(answers_request(1));
    assert_true(answers_request(2));
    assert_false(answers_request(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_that_others_passed_before_the_first_step_are_closed_before_it),
        cmocka_unit_test(without_such_marks_training_begins),
        cmocka_unit_test(a_step_of_an_order_counts_in_its_own_period),
        cmocka_unit_test(ranks_that_take_turns_report_their_own_steps),
        cmocka_unit_test(a_snapshot_of_the_next_phase_is_not_taken_in_a_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
