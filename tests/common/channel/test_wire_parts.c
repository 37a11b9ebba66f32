/* Tests of the parts of messages: their fields, and that each kind has its own. */
#include "common/job/job_text.h"
#include "tests/support/common/wire_samples.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

/* Whether the message has anything that only some kinds have. */
static bool has_parts(const struct message *message)
{
    const void *const parts[] = {
        message->member, message->layout,   message->report, message->start,   message->path,
        message->passed, message->decision, message->sum,    message->outcome, message->hello,
        message->probe,  message->offer,    message->loan,   message->values,  message->seal_key,
        message->piece,  message->collect,  message->nccl,   message->slices,  message->wait,
        message->clock,  message->groups,   message->back};
    bool has_any = false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        has_any = has_any || parts[i] != NULL;
    }
    return has_any;
}

static void small_parts_come_back_field_by_field(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_START), got = wire_sample_send(&sent);
    assert_int_equal(got.start->phase, sent.start->phase);
    assert_int_equal(got.start->train_samples, sent.start->train_samples);
    assert_int_equal(got.start->all_reduce, sent.start->all_reduce);
    assert_memory_equal(&got.start->limits, &sent.start->limits, sizeof(sent.start->limits));
    assert_int_equal(got.start->bucket_bytes, sent.start->bucket_bytes);
    sent = wire_sample(MESSAGE_TRIED);
    got = wire_sample_send(&sent);
    assert_memory_equal(got.path, sent.path, sizeof(*sent.path));
    sent = wire_sample(MESSAGE_PASSED);
    got = wire_sample_send(&sent);
    assert_int_equal(got.passed->phase, sent.passed->phase);
    assert_int_equal(got.passed->step_ns, sent.passed->step_ns);
    sent = wire_sample(MESSAGE_BACK);
    got = wire_sample_send(&sent);
    assert_int_equal(got.back->begin_step, sent.back->begin_step);
    assert_int_equal(got.back->sum_round, sent.back->sum_round);
    assert_int_equal(got.back->snapshot_step, sent.back->snapshot_step);
    assert_int_equal(got.back->trained_ms, sent.back->trained_ms);
    assert_int_equal(got.back->alone_ms, sent.back->alone_ms);
    assert_int_equal(got.back->alone_step, sent.back->alone_step);
    assert_int_equal(got.back->commit_step, sent.back->commit_step);
    assert_int_equal(got.back->term, sent.back->term);
    assert_true(got.back->has_commit);
    sent = wire_sample(MESSAGE_GO);
    sent.term = 37;
    assert_int_equal(wire_sample_send(&sent).term, 37);
    sent = wire_sample(MESSAGE_BACK);
    got = wire_sample_send(&sent);
    assert_int_equal(got.start->phase, sent.start->phase);
    sent = wire_sample(MESSAGE_PROCEED);
    got = wire_sample_send(&sent);
    assert_int_equal(got.decision->period, sent.decision->period);
    assert_true(got.decision->is_enough);
    sent = wire_sample(MESSAGE_PARAMS);
    got = wire_sample_send(&sent);
    assert_int_equal(got.outcome->staleness, sent.outcome->staleness);
    assert_true(got.outcome->rate == sent.outcome->rate);
    assert_true(got.outcome->is_late);
    sent = wire_sample(MESSAGE_HELLO);
    got = wire_sample_send(&sent);
    assert_int_equal(got.hello->lane, sent.hello->lane);
    assert_true(got.hello->is_far);
    sent = wire_sample(MESSAGE_HEARTBEAT);
    got = wire_sample_send(&sent);
    assert_int_equal(got.clock->asked_ns, sent.clock->asked_ns);
    assert_true(got.clock->told_ns == sent.clock->told_ns);
    sent = wire_sample(MESSAGE_PROBE);
    got = wire_sample_send(&sent);
    assert_int_equal(got.probe->round, sent.probe->round);
    assert_true(got.probe->is_answer);
    sent = wire_sample(MESSAGE_PIECE);
    got = wire_sample_send(&sent);
    assert_string_equal(got.piece->vector, sent.piece->vector);
    assert_int_equal(got.piece->total, sent.piece->total);
    assert_memory_equal(got.values, sent.values, sent.span.count * sizeof(float));
    sent = wire_sample(MESSAGE_COLLECT);
    got = wire_sample_send(&sent);
    assert_int_equal(got.collect->credits, sent.collect->credits);
}

static void a_heartbeat_says_whom_its_sender_waits_for(void **state)
{
    (void)state;
    const struct message sent = wire_sample(MESSAGE_HEARTBEAT), got = wire_sample_send(&sent);
    assert_int_equal(got.wait->role, sent.wait->role);
    assert_int_equal(got.wait->index, sent.wait->index);
    assert_int_equal(got.wait->what, sent.wait->what);
    assert_int_equal(got.wait->waited_ms, sent.wait->waited_ms);
    assert_int_equal(got.wait->taken, sent.wait->taken);
    assert_true(got.wait->is_broken);
    assert_int_equal(got.wait->given_count, 3);
    assert_memory_equal(got.wait->given, sent.wait->given, 3 * sizeof(uint64_t));
}

static void a_piece_of_a_vector_that_cannot_be_is_malformed(void **state)
{
    (void)state;
    const struct wire_piece huge = {.vector = "params", .total = LAYOUT_VALUES_MAX + 1};
    struct message sent = wire_sample(MESSAGE_FETCH), got;
    sent.piece = &huge;
    assert_int_equal(wire_sample_decode(&sent, wire_sample_encode(&sent), &got), STATUS_MALFORMED);
}

static void a_welcome_may_have_what_was_not_reported(void **state)
{
    (void)state;
    const struct wire_report open = {.steps = 3, .total_ns = 4};
    struct message sent = wire_sample(MESSAGE_WELCOME);
    sent.report = &open;
    sent.slices = wire_sample(MESSAGE_SNAPSHOT).slices;
    struct message got = wire_sample_send(&sent);
    assert_int_equal(got.report->steps, open.steps);
    assert_int_equal(got.report->total_ns, open.total_ns);
    assert_int_equal(got.slices->count, sent.slices->count);
    assert_memory_equal(got.slices->images, sent.slices->images, 2 * sizeof(uint64_t));
    assert_memory_equal(got.slices->loss_sums, sent.slices->loss_sums, 2 * sizeof(double));
}

static void the_slices_of_the_largest_job_fit_beside_its_description(void **state)
{
    (void)state;
    static uint64_t images[WIRE_SLICES_MAX];
    static double loss_sums[WIRE_SLICES_MAX];
    static char text[JOB_TEXT_BYTES];
    const struct wire_slices slices = {WIRE_SLICES_MAX, images, loss_sums};
    memset(images, 0xff, sizeof(images));
    memset(text, 'x', sizeof(text) - 1);
    struct message sent = wire_sample(MESSAGE_WELCOME);
    sent.report = wire_sample(MESSAGE_REPORT).report;
    sent.slices = &slices;
    sent.text = text;
    struct message got = wire_sample_send(&sent);
    assert_int_equal(got.slices->count, WIRE_SLICES_MAX);
    assert_true(got.slices->images[WIRE_SLICES_MAX - 1] == UINT64_MAX);
    assert_string_equal(got.text, text);
}

/* Fields that are packed: 1 with two varints of one byte, 2 with one double or two, or no field. */
static void slices_of_no_rank_or_of_different_counts_are_malformed(void **state)
{
    (void)state;
    const uint64_t few[2] = {5, 6};
    struct wire_slices slices = {2, few, wire_sample(MESSAGE_SNAPSHOT).slices->loss_sums};
    struct message sent = wire_sample(MESSAGE_SNAPSHOT), got;
    sent.slices = &slices;
    size_t size = wire_sample_encode(&sent);
    assert_int_equal(wire_sample_decode(&sent, size, &got), STATUS_OK);
    static const unsigned char begin[] = {0x0a, 2, 5, 6, 0x12, 16};
    unsigned char *at = memmem(wire_sample_header, size, begin, sizeof(begin));
    assert_non_null(at);
    at[3] = 0x86; // the second one goes on, and has no end
    assert_int_equal(wire_sample_decode(&sent, size, &got), STATUS_MALFORMED);
    const unsigned char one[] = {0x1a, 2, 5, 6, 0x12, 16}; // of a field that there is not
    memcpy(at, one, sizeof(one));
    assert_int_equal(wire_sample_decode(&sent, size, &got), STATUS_MALFORMED);
    slices.count = 0;
    size = wire_sample_encode(&sent);
    assert_int_equal(wire_sample_decode(&sent, size, &got), STATUS_MALFORMED);
}

static void what_is_said_of_nccl_comes_back_and_of_its_size_alone(void **state)
{
    (void)state;
    const enum message_kind kinds[] = {MESSAGE_READY, MESSAGE_START};
    struct message sent, got;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        sent = wire_sample(kinds[i]);
        got = wire_sample_send(&sent);
        assert_int_equal(got.nccl->version, sent.nccl->version);
        assert_int_equal(got.nccl->has_id, sent.nccl->has_id);
        assert_memory_equal(got.nccl->id, sent.nccl->id, sizeof(got.nccl->id));
        assert_int_equal(got.nccl->has_gpu, sent.nccl->has_gpu);
        assert_memory_equal(got.nccl->gpu, sent.nccl->gpu, sizeof(got.nccl->gpu));
    }
    // An id of 127 bytes: the length is in front of the bytes, which the sample begins with 5,
    // 6, 7.
    sent = wire_sample(MESSAGE_READY);
    const size_t size = wire_sample_encode(&sent);
    static const unsigned char begin[] = {0x12, 0x80, 0x01, 5, 6, 7};
    unsigned char *at = memmem(wire_sample_header, size, begin, sizeof(begin));
    assert_non_null(at);
    at[1] = 0xFF; // 127, and one byte that is a field of its own, of no number
    at[2] = 0x00;
    assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got), STATUS_MALFORMED);
    // Nor with those that it does not belong to.
    sent = wire_sample(MESSAGE_HEARTBEAT);
    sent.nccl = wire_sample(MESSAGE_START).nccl;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got),
                     STATUS_MALFORMED);
}

static void a_sum_has_its_doubles_as_payload(void **state)
{
    (void)state;
    const struct message sent = wire_sample(MESSAGE_SUM);
    struct message got = wire_sample_send(&sent);
    assert_int_equal(got.sum->round, sent.sum->round);
    assert_int_equal(got.sum->count, sent.sum->count);
    assert_ptr_equal(got.sum->values, sent.sum->values);
    assert_null(got.values);
    const size_t size = wire_sample_encode(&sent);
    assert_int_equal(wire_sample_decode_as(size, sent.sum->values, sizeof(double), &got),
                     STATUS_MALFORMED);
    assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got), STATUS_MALFORMED);
    const struct wire_sum nothing = {.round = 19};
    struct message empty = sent;
    empty.sum = &nothing;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&empty), NULL, 0, &got),
                     STATUS_MALFORMED);
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_TRY), got;
    struct wire_start wrong = *sent.start;
    wrong.all_reduce = ALL_REDUCE_COUNT;
    sent.start = &wrong;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got),
                     STATUS_MALFORMED);
    const struct wire_outcome endless = {.rate = (double)INFINITY};
    sent = wire_sample(MESSAGE_PARAMS);
    sent.outcome = &endless;
    assert_int_equal(wire_sample_decode(&sent, wire_sample_encode(&sent), &got), STATUS_MALFORMED);
    sent = wire_sample(MESSAGE_REPORT);
    struct wire_report odd = *sent.report;
    odd.staleness_sum = (double)NAN;
    sent.report = &odd;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got),
                     STATUS_MALFORMED);
    odd.staleness_sum = 0;
    odd.test_loss_sum = (double)INFINITY; // of a network that has diverged
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got), STATUS_OK);
}

/* They go into files, and from there to terminals. */
static void choices_that_are_no_lines_of_text_are_refused(void **state)
{
    (void)state;
    static char long_text[WIRE_CHOICES_BYTES + 1];
    struct message choices = wire_sample(MESSAGE_CHOICES), got;
    memset(long_text, 'x', WIRE_CHOICES_BYTES - 1);
    const char *const good[] = {"", "a = 1\nb = 2 3=4\n", long_text};
    const char *const bad[] = {"\x1b[2J", "a\tb", "\x7f", "caf\xc3\xa9", "\r\n"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        choices.text = good[i];
        assert_int_equal(wire_sample_decode(&choices, wire_sample_encode(&choices), &got),
                         STATUS_OK);
        assert_string_equal(got.text, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        choices.text = bad[i];
        assert_int_equal(wire_sample_decode(&choices, wire_sample_encode(&choices), &got),
                         STATUS_MALFORMED);
    }
    long_text[WIRE_CHOICES_BYTES - 1] = 'x'; // one too many
    choices.text = long_text;
    assert_int_equal(wire_sample_decode(&choices, wire_sample_encode(&choices), &got),
                     STATUS_MALFORMED);
}

/* They go into buffers of the coordinator. */
static void texts_of_a_member_are_as_long_as_there_is_room(void **state)
{
    (void)state;
    static char text[WIRE_TENSORS_BYTES + 1];
    struct message ready = wire_sample(MESSAGE_READY), got;
    struct wire_member member = *ready.member;
    const struct {
        const char **field;
        size_t bytes; // with the '\0'
    } cases[] = {{&ready.text, JOB_OPTIMIZER_TEXT_BYTES},
                 {&member.tensors, WIRE_TENSORS_BYTES},
                 {&member.figures, WIRE_FIGURES_BYTES}};
    ready.member = &member;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *before = *cases[i].field;
        memset(text, 'x', sizeof(text));
        *cases[i].field = text;
        text[cases[i].bytes - 1] = '\0';
        assert_int_equal(wire_sample_decode_as(wire_sample_encode(&ready), NULL, 0, &got),
                         STATUS_OK);
        text[cases[i].bytes - 1] = 'x';
        text[cases[i].bytes] = '\0'; // one too many
        assert_int_equal(wire_sample_decode_as(wire_sample_encode(&ready), NULL, 0, &got),
                         STATUS_MALFORMED);
        *cases[i].field = before;
    }
}

static void names_of_classes_that_are_no_line_or_too_long_are_refused(void **state)
{
    (void)state;
    struct message classes = wire_sample(MESSAGE_CLASSES), got;
    const char *const good[] = {"", "[\"a b\",\"caf\xc3\xa9\"]"};
    const char *const bad[] = {"\x1b[2J", "a\tb", "\x7f", "a\nb"};
    classes.span = (struct span){WIRE_CLASSES_BYTES - 1, WIRE_CLASSES_BYTES};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        classes.text = good[i];
        assert_int_equal(wire_sample_decode(&classes, wire_sample_encode(&classes), &got),
                         STATUS_OK);
        assert_string_equal(got.text, good[i]);
        assert_int_equal(got.span.offset, WIRE_CLASSES_BYTES - 1);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        classes.text = bad[i];
        assert_int_equal(wire_sample_decode(&classes, wire_sample_encode(&classes), &got),
                         STATUS_MALFORMED);
    }
    classes.text = "[]";
    classes.span.count++;
    assert_int_equal(wire_sample_decode(&classes, wire_sample_encode(&classes), &got),
                     STATUS_MALFORMED);
}

static void a_member_comes_back_field_by_field(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_JOIN), got;
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.member->role, sent.member->role);
    assert_int_equal(got.member->has_rank, sent.member->has_rank);
    assert_int_equal(got.member->rank, sent.member->rank);
    assert_int_equal(got.member->host_id, sent.member->host_id);
    assert_string_equal(got.member->host, sent.member->host);
    assert_int_equal(got.member->process_id, sent.member->process_id);
    assert_string_equal(got.member->endpoints, sent.member->endpoints);
    assert_string_equal(got.member->params_digest, sent.member->params_digest);
    assert_int_equal(got.member->train_samples, sent.member->train_samples);
    assert_int_equal(got.member->test_samples, sent.member->test_samples);
    assert_string_equal(got.member->device, sent.member->device);
    assert_int_equal(got.member->data_digest, sent.member->data_digest);
    assert_int_equal(got.member->parameters, sent.member->parameters);
    assert_int_equal(got.member->cores, sent.member->cores);
    assert_string_equal(got.member->optimizer, sent.member->optimizer);
    assert_string_equal(got.member->figures, sent.member->figures);
    assert_string_equal(got.member->loopback, sent.member->loopback);
    assert_int_equal(got.member->launch, sent.member->launch);
    assert_int_equal(got.member->choices_digest, sent.member->choices_digest);
    assert_int_equal(got.member->tensor_count, sent.member->tensor_count);
    assert_string_equal(got.member->tensors, sent.member->tensors);
}

static void a_report_and_a_layout_come_back_field_by_field(void **state)
{
    (void)state;
    static const uint64_t ages[3] = {5, 0, 2};
    struct message sent = wire_sample(MESSAGE_REPORT), got;
    struct wire_report whole = *sent.report;
    whole.staleness = ages;
    whole.staleness_bins = 3;
    whole.late = 15;
    whole.backlog = 16;
    sent.report = &whole;
    memset(&wire_sample_scratch.report, 0,
           sizeof(wire_sample_scratch.report)); // what lies between its fields
    got = wire_sample_send(&sent);
    assert_memory_equal(got.report->staleness, ages, sizeof(ages));
    struct wire_report came = *got.report;
    came.staleness = ages;
    assert_memory_equal(&came, &whole, sizeof(whole));
    sent = wire_sample(MESSAGE_START);
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&sent), NULL, 0, &got), STATUS_OK);
    assert_int_equal(got.layout->value_count, sent.layout->value_count);
    assert_int_equal(got.layout->digest, sent.layout->digest);
    assert_memory_equal(got.layout->buckets, sent.layout->buckets, 2 * sizeof(struct span));
}

static void parts_that_the_kind_does_not_carry_are_refused(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        struct message sent = wire_sample((enum message_kind)kind), got;
        sent.kind = MESSAGE_GO; // which carries nothing
        assert_int_equal(wire_sample_decode(&sent, wire_sample_encode(&sent), &got),
                         has_parts(&sent) ? STATUS_MALFORMED : STATUS_OK);
    }
}

static void parts_that_the_kind_needs_are_missed(void **state)
{
    (void)state;
    const struct message bare = {.kind = MESSAGE_GO};
    for (unsigned kind = 0; kind < MESSAGE_KIND_COUNT; kind++) {
        struct message sent = wire_sample((enum message_kind)kind), got;
        (void)wire_sample_encode(&sent);
        unsigned char kind_byte =
            wire_sample_header[3]; // behind the version, and the number of its field
        size_t size = wire_sample_encode(&bare);
        wire_sample_header[3] = kind_byte;
        bool needs_any = has_parts(&sent) && kind != MESSAGE_WELCOME && kind != MESSAGE_SNAPSHOT &&
                         kind != MESSAGE_HEARTBEAT;
        assert_int_equal(wire_sample_decode_as(size, NULL, 0, &got),
                         needs_any ? STATUS_MALFORMED : STATUS_OK);
    }
}

static void an_offer_comes_back_field_by_field(void **state)
{
    (void)state;
    struct message sent = wire_sample(MESSAGE_OFFER), got = wire_sample_send(&sent);
    assert_int_equal(got.offer->region.process_id, sent.offer->region.process_id);
    assert_int_equal(got.offer->region.descriptor, sent.offer->region.descriptor);
    assert_int_equal(got.offer->region.size, sent.offer->region.size);
    assert_int_equal(got.offer->region.nonce, sent.offer->region.nonce);
    assert_true(got.offer->has_mail);
    assert_true(got.offer->has_share);
    assert_memory_equal(got.offer->share, sent.offer->share, sizeof(sent.offer->share));
    assert_int_equal(got.offer->mail.index, 63);
    assert_int_equal(got.offer->mail.region.process_id, 1);
    assert_int_equal(got.offer->mail.region.descriptor, 2);
    assert_int_equal(got.offer->mail.region.size, 3);
    assert_int_equal(got.offer->mail.region.nonce, 4);
    struct wire_offer without = *sent.offer;
    without.has_mail = without.has_share = false;
    sent.offer = &without;
    got = wire_sample_send(&sent);
    assert_int_equal(got.offer->region.nonce, sent.offer->region.nonce);
    assert_false(got.offer->has_mail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_that_are_no_lines_of_text_are_refused),
        cmocka_unit_test(texts_of_a_member_are_as_long_as_there_is_room),
        cmocka_unit_test(names_of_classes_that_are_no_line_or_too_long_are_refused),
        cmocka_unit_test(a_member_comes_back_field_by_field),
        cmocka_unit_test(a_report_and_a_layout_come_back_field_by_field),
        cmocka_unit_test(a_piece_of_a_vector_that_cannot_be_is_malformed),
        cmocka_unit_test(a_welcome_may_have_what_was_not_reported),
        cmocka_unit_test(the_slices_of_the_largest_job_fit_beside_its_description),
        cmocka_unit_test(slices_of_no_rank_or_of_different_counts_are_malformed),
        cmocka_unit_test(small_parts_come_back_field_by_field),
        cmocka_unit_test(a_heartbeat_says_whom_its_sender_waits_for),
        cmocka_unit_test(what_is_said_of_nccl_comes_back_and_of_its_size_alone),
        cmocka_unit_test(a_sum_has_its_doubles_as_payload),
        cmocka_unit_test(numbers_that_make_no_sense_are_refused),
        cmocka_unit_test(parts_that_the_kind_does_not_carry_are_refused),
        cmocka_unit_test(parts_that_the_kind_needs_are_missed),
        cmocka_unit_test(an_offer_comes_back_field_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
