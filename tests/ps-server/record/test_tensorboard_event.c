/* Tests of records and events against those that TensorBoard's own writer made. */
#include "ps-server/record/event_file.h"
#include "ps-server/record/tensorboard_event.h"
#include "ps-server/record/tensorboard_hparams.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Compares bytes with those that hexadecimal digits stand for. */
static void expect_bytes(const unsigned char *bytes, size_t size, const char *digits)
{
    char text[512];
    assert_true(2 * size < sizeof(text));
    for (size_t i = 0; i < size; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    assert_string_equal(text, digits);
}

static void expect_record(const struct tensorboard_event *event, const char *digits)
{
    size_t size;
    unsigned char record[256];
    uint8_t *bytes = tensorboard_event_pack(event, &size);
    assert_non_null(bytes);
    assert_true(size + EVENT_RECORD_EXTRA <= sizeof(record));
    event_file_record(bytes, size, record);
    expect_bytes(record, size + EVENT_RECORD_EXTRA, digits);
    free(bytes);
}

/* By tensorboard.summary.writer.record_writer of TensorBoard 2.21. */
static void records_are_those_of_its_own_writer(void **state)
{
    const struct tensorboard_scalar loss = {"train/loss", 0.25};
    (void)state;
    expect_record(
        &(struct tensorboard_event){.wall_time = 1.5, .version = "brain.Event:2"},
        "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
    expect_record(
        &(struct tensorboard_event){
            .wall_time = 2.5, .step = 300, .scalars = &loss, .scalar_count = 1},
        "2100000000000000017becf609000000000000044010ac022a130a110a0a747261696e2f6c6f7373150000"
        "803e3cc9cac5");
    expect_record(&(struct tensorboard_event){.wall_time = 2.5, .step = 7, .is_start = true},
                  "0f000000000000006d532b0909000000000000044010073a0208019aaf83ce");
}

static void a_text_is_a_tensor_for_the_plugin_that_shows_texts(void **state)
{
    const struct tensorboard_event event = {
        .wall_time = 1.5, .text_tag = "job/text_summary", .text = "a|b"};
    size_t size;
    (void)state;
    uint8_t *bytes = tensorboard_event_pack(&event, &size);
    assert_non_null(bytes);
    // The same fields as TensorBoard's package writes, the metadata behind the tensor as there.
    expect_bytes(
        bytes, size,
        "09000000000000f83f2a2d0a2b0a106a6f622f746578745f73756d6d617279420d08071204120208014203"
        "617c624a080a060a0474657874");
    free(bytes);
}

/* Tags, names and contents as TensorBoard's package packs them. */
static void how_a_job_ended_is_content_for_the_plugin_of_hyper_parameters(void **state)
{
    size_t size;
    (void)state;
    uint8_t *content = tensorboard_hparams_end(false, 1.5, &size);
    assert_non_null(content);
    expect_bytes(content, size, "220b080211000000000000f83f");
    const struct tensorboard_event event = {.wall_time = 1.5,
                                            .hparams_tag = TENSORBOARD_HPARAMS_END,
                                            .hparams = content,
                                            .hparams_size = size};
    uint8_t *bytes = tensorboard_event_pack(&event, &size);
    assert_non_null(bytes);
    expect_bytes(bytes, size,
                 "09000000000000f83f2a420a400a1a5f68706172616d735f2f73657373696f6e5f656e645f696e66"
                 "6f42060801120212004a1a0a180a0768706172616d73120d220b080211000000000000f83f");
    free(content);
    free(bytes);
}

/* Of a model of ours that is momentum. An option that is shown has two bytes more. */
static void an_optimizer_is_shown_where_it_is_not_the_usual_one(void **state)
{
    (void)state;
    static const struct {
        const char *model, *optimizer;
        size_t more;
    } cases[] = {{"model=cnn", "optimizer=auto", 0},
                 {"model=cnn", "optimizer=momentum", 0},
                 {"model=cnn", "optimizer=sgd", 2},
                 {"model=external:mine", "optimizer=auto", 0},
                 {"model=external:mine", "optimizer=momentum", 2}};
    size_t usual[2] = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct job job =
            sample_job_resolved(SAMPLE_JOB(cases[i].model, cases[i].optimizer, "lr=0.5"));
        size_t size;
        uint8_t *bytes = tensorboard_hparams_experiment(&job, &size);
        assert_non_null(bytes);
        free(bytes);
        size_t *same = &usual[job_is_external(&job)];
        *same = *same == 0 ? size : *same;
        assert_int_equal(size, *same + cases[i].more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_those_of_its_own_writer),
        cmocka_unit_test(how_a_job_ended_is_content_for_the_plugin_of_hyper_parameters),
        cmocka_unit_test(an_optimizer_is_shown_where_it_is_not_the_usual_one),
        cmocka_unit_test(a_text_is_a_tensor_for_the_plugin_that_shows_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
