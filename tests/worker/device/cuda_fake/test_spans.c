/* What a program's streams say they did, on the fake runtime: a byte that is copied takes a
 * nanosecond there, and a kernel takes none. */
#include "common/base/clock.h"
#include "common/optimizer/optimizer_formulas.h"
#include "tests/support/model/program_fixture.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define BATCH     4
#define SPANS_MAX 64
#define NEAR_NS   70 // times are floats, in ms

static const struct layer layers[] = {
    {OP_CONV2D, .channels = 6, .window = 3, .stride = 1, .padding = 1},
    {OP_RELU},
    {OP_LINEAR, .channels = 7},
};

struct bench {
    struct network_plan plan;
    struct program_fixture fixture;
    struct device *device;
    struct program *program;
    struct device_span spans[SPANS_MAX];
    size_t count;
};

static void set_up(struct bench *bench)
{
    const struct device_options device = {.threads = 1, .replays_launches = true};
    program_fixture_plan(layers, sizeof(layers) / sizeof(layers[0]), (struct shape){2, 9, 11},
                         &bench->plan);
    program_fixture_init(&bench->fixture, &bench->plan, BATCH, 3);
    const struct program_options options = {
        .ops = bench->plan.ops,
        .op_count = bench->plan.op_count,
        .batch_size = BATCH,
        .params = bench->fixture.params,
        .grads = bench->fixture.grads,
        .statistics = bench->fixture.statistics,
    };
    assert_int_equal(device_open("cuda", &device, &bench->device), STATUS_OK);
    assert_int_equal(device_compile(bench->device, &options, &bench->program), STATUS_OK);
    assert_true(program_has_spans(bench->program));
}

static void tear_down(struct bench *bench)
{
    program_destroy(bench->program);
    device_close(bench->device);
    program_fixture_finish(&bench->fixture);
}

static void record(struct bench *bench, bool is_on, uint64_t step)
{
    bench->program->recording =
        (struct device_recording){.is_on = is_on, .step = step, .bucket = DEVICE_NO_BUCKET};
}

/* Two buckets, whose gradients come to the host. */
static void make_step(struct bench *bench)
{
    struct program_result result;
    struct program *program = bench->program;
    assert_int_equal(program_forward(program, &bench->fixture.input, &result), STATUS_OK);
    program->recording.bucket = 0;
    assert_int_equal(program_backward(program, bench->plan.op_count - 1, 2), STATUS_OK);
    program->recording.bucket = 1;
    assert_int_equal(program_backward(program, 1, 0), STATUS_OK);
    assert_int_equal(program_await(program, 2), STATUS_OK);
    assert_int_equal(program_await(program, 0), STATUS_OK);
}

static uint64_t read_spans(struct bench *bench)
{
    uint64_t dropped = 0;
    assert_int_equal(
        program_read_spans(bench->program, bench->spans, SPANS_MAX, &bench->count, &dropped),
        STATUS_OK);
    return dropped;
}

static const struct device_span *find(const struct bench *bench, enum device_stream stream,
                                      enum device_work work, uint32_t bucket)
{
    const struct device_span *found = NULL;
    for (size_t i = 0; i < bench->count; i++) {
        const struct device_span *span = &bench->spans[i];
        if (span->stream == stream && span->work == work && span->bucket == bucket) {
            assert_null(found); // once a step
            found = span;
        }
    }
    if (found == NULL) {
        fail_msg("stream %d has no span of work %d and bucket %u", (int)stream, (int)work, bucket);
        return bench->spans;
    }
    return found;
}

static void check_length(const struct device_span *span, uint64_t expected_ns)
{
    uint64_t length_ns = span->end_ns - span->begin_ns;
    assert_in_range(length_ns + NEAR_NS, expected_ns, expected_ns + UINT64_C(2) * NEAR_NS);
}

static uint64_t params_of(const struct bench *bench, uint32_t first, uint32_t end)
{
    uint64_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct op *op = &bench->plan.ops[i];
        count += op_weight_count(op) + (op->has_bias ? op->y.channels : 0);
    }
    return count;
}

/* Launched one by one, captured, and replayed. */
static void streams_say_what_they_did_and_when(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    for (uint64_t step = 5; step < 9; step++) {
        uint64_t before_ns = clock_now_ns();
        record(&bench, true, step);
        make_step(&bench);
        assert_int_equal(read_spans(&bench), 0);
        assert_int_equal(bench.count, 7);
        const struct device_span *up =
            find(&bench, DEVICE_COPIES_UP, DEVICE_COPY, DEVICE_NO_BUCKET);
        const struct device_span *batch =
            find(&bench, DEVICE_BATCHES, DEVICE_COPY, DEVICE_NO_BUCKET);
        const struct device_span *forward =
            find(&bench, DEVICE_COMPUTES, DEVICE_FORWARD, DEVICE_NO_BUCKET);
        const struct device_span *last = find(&bench, DEVICE_COMPUTES, DEVICE_BACKWARD, 0);
        const struct device_span *first = find(&bench, DEVICE_COMPUTES, DEVICE_BACKWARD, 1);
        check_length(up, bench.plan.value_count * sizeof(float));
        check_length(batch, sizeof(float) * BATCH * 2 * 9 * 11);
        check_length(find(&bench, DEVICE_COPIES_DOWN, DEVICE_COPY, 0),
                     params_of(&bench, 2, bench.plan.op_count) * sizeof(float));
        check_length(find(&bench, DEVICE_COPIES_DOWN, DEVICE_COPY, 1),
                     params_of(&bench, 0, 2) * sizeof(float));
        assert_true(batch->end_ns <= forward->end_ns + NEAR_NS);
        assert_true(forward->end_ns <= last->begin_ns + NEAR_NS);
        assert_true(last->end_ns <= first->begin_ns + NEAR_NS);
        for (size_t i = 0; i < bench.count; i++) {
            assert_int_equal(bench.spans[i].step, step);
            assert_true(step > 5 || bench.spans[i].begin_ns >= before_ns);
        }
    }
    tear_down(&bench);
}

static void nothing_is_recorded_unless_it_is_asked_for(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench);
    make_step(&bench);
    read_spans(&bench);
    assert_int_equal(bench.count, 0);
    record(&bench, true, 1);
    make_step(&bench);
    record(&bench, false, 0);
    make_step(&bench);
    read_spans(&bench);
    assert_int_equal(bench.count, 7); // of the step in the middle
    tear_down(&bench);
}

static void updates_are_spans_of_their_own(void **state)
{
    (void)state;
    static const struct optimizer_update update = {.formula = OPTIMIZER_FORMULA_SGD,
                                                   .coefficients = {.minus_rate = -0.5f}};
    struct bench bench;
    set_up(&bench);
    uint64_t count = bench.plan.value_count;
    assert_int_equal(program_hold(bench.program, NULL, 0), STATUS_OK);
    record(&bench, true, 3);
    make_step(&bench);
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        bench.program->recording.bucket = bucket;
        assert_int_equal(program_apply(bench.program, &update, bucket == 0 ? 100 : 0,
                                       bucket == 0 ? count - 100 : 100),
                         STATUS_OK);
    }
    assert_int_equal(program_fetch(bench.program), STATUS_OK);
    read_spans(&bench);
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        const struct device_span *up = find(&bench, DEVICE_COPIES_UP, DEVICE_COPY, bucket);
        const struct device_span *applied = find(&bench, DEVICE_COMPUTES, DEVICE_UPDATE, bucket);
        check_length(up, (bucket == 0 ? count - 100 : 100) * sizeof(float));
        assert_true(up->end_ns <= applied->end_ns + NEAR_NS);
    }
    tear_down(&bench);
}

/* Each step has seven; nobody reads them. */
static void spans_that_nobody_reads_are_dropped_and_counted(void **state)
{
    (void)state;
    struct bench bench;
    uint64_t dropped, kept = 0;
    set_up(&bench);
    record(&bench, true, 0);
    for (uint32_t step = 0; step < 600; step++) {
        make_step(&bench);
    }
    dropped = read_spans(&bench);
    while (bench.count > 0) {
        kept += bench.count;
        assert_int_equal(read_spans(&bench), 0);
    }
    assert_true(dropped > 0);
    assert_int_equal(dropped + kept, 600 * 7);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_say_what_they_did_and_when),
        cmocka_unit_test(nothing_is_recorded_unless_it_is_asked_for),
        cmocka_unit_test(updates_are_spans_of_their_own),
        cmocka_unit_test(spans_that_nobody_reads_are_dropped_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
