/* Tests of the probe: two channels that measure the way between them. */
#include "worker/link/probe.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

struct side {
    struct channel *channel;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    struct probe probe;
    uint32_t handled;
    bool is_over;
};

static void open_side(struct side *side)
{
    assert_int_equal(channel_create(&side->channel), STATUS_OK);
    assert_int_equal(transport_bind(side->channel->transport, "ipc://*", side->endpoint),
                     STATUS_OK);
}

static void close_side(struct side *side)
{
    probe_finish(&side->probe);
    channel_destroy(side->channel, 0);
}

/* Handles one message, if one comes. */
static void pump(struct side *side)
{
    struct envelope envelope;
    struct message message;
    bool is_over;
    if (channel_receive(side->channel, 10, &envelope, &message) != STATUS_OK) {
        return;
    }
    assert_int_equal(probe_take(&side->probe, side->channel, envelope.peer, &message, &is_over),
                     STATUS_OK);
    side->is_over = side->is_over || is_over;
    side->handled++;
    envelope_release(&envelope);
}

static void one_side_finds_out_and_the_other_only_answers(void **state)
{
    (void)state;
    struct side asking = {0}, answering = {0};
    uint64_t peer;
    open_side(&asking);
    open_side(&answering);
    assert_int_equal(transport_connect(asking.channel->transport, answering.endpoint, &peer),
                     STATUS_OK);
    assert_int_equal(probe_begin(&asking.probe, asking.channel, peer), STATUS_OK);
    while (!asking.is_over) {
        pump(&answering);
        pump(&asking);
    }
    assert_int_equal(asking.handled, answering.handled);
    assert_false(answering.is_over);
    // A message takes more than a nanosecond and less than a minute; memory has its limits.
    const struct all_reduce_path path = probe_path(&asking.probe);
    assert_in_range(path.latency_ns, 1, UINT64_C(60000000000));
    assert_in_range(path.message_ns, 1, UINT64_C(60000000000));
    assert_in_range(path.bandwidth, 1000, UINT64_C(10000000000000));
    close_side(&asking);
    close_side(&answering);
}

static void an_answer_that_nobody_waits_for_is_refused(void **state)
{
    (void)state;
    struct side side = {0};
    uint64_t peer;
    bool is_over;
    const float value = 0;
    open_side(&side);
    assert_int_equal(transport_connect(side.channel->transport, side.endpoint, &peer), STATUS_OK);
    struct wire_probe answered = {.is_answer = true};
    const struct message message = {
        .kind = MESSAGE_PROBE, .probe = &answered, .span = {0, 1}, .values = &value};
    assert_int_equal(probe_take(&side.probe, side.channel, peer, &message, &is_over),
                     STATUS_MALFORMED);
    assert_int_equal(probe_begin(&side.probe, side.channel, peer), STATUS_OK);
    assert_int_equal(probe_take(&side.probe, side.channel, peer + 1, &message, &is_over),
                     STATUS_MALFORMED);
    answered.round = 1; // not the round that is out
    assert_int_equal(probe_take(&side.probe, side.channel, peer, &message, &is_over),
                     STATUS_MALFORMED);
    answered.round = 0;
    assert_int_equal(probe_take(&side.probe, side.channel, peer, &message, &is_over), STATUS_OK);
    assert_false(is_over);
    close_side(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_side_finds_out_and_the_other_only_answers),
        cmocka_unit_test(an_answer_that_nobody_waits_for_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
