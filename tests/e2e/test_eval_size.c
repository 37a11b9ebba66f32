/* Models of another size than the data's, end to end: --eval-size and --classes. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX 40
#define LOSS_KEY "\"test_loss\":"

static int run(struct command_test *test, const char *out, const char *const *more)
{
    const char *args[ARGS_MAX] = {
        "run", "--mode",       "ring", "-n",     "2",   "--steps",   "3", "--batch",
        "4",   "--limit-test", "20",   "--eval", "end", "--threads", "1", "--checkpoint-every",
        "3",   "--out",        out};
    size_t count = 0;
    while (args[count] != NULL) {
        count++;
    }
    for (; *more != NULL; more++) {
        assert_true(count + 1 < ARGS_MAX);
        args[count++] = *more;
    }
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    return program_wait(&test->run);
}

static double last_loss(const json_t *summary)
{
    const json_t *epochs = json_object_get(summary, "epochs");
    const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    return json_number_value(json_object_get(last, "test_loss"));
}

static void check_said(const struct command_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

/* Training is that of a job without the option; `evaluate` finds what the job has found. */
static void test_images_of_another_size_leave_training_as_it_is(void **state)
{
    struct command_test *test = *state;
    char plain_out[2 * PROGRAM_PATH_BYTES];
    static const char *const plain_args[] = {"--model", "resnet20", "--image-size", "16", NULL};
    static const char *const sized_args[] = {
        "--model", "resnet20", "--image-size", "16", "--eval-size", "24", NULL};
    snprintf(plain_out, sizeof(plain_out), "%s/plain", test->folder);
    assert_int_equal(run(test, plain_out, plain_args), 0);
    assert_int_equal(run(test, test->out, sized_args), 0);
    json_t *plain = programs_read_json(plain_out, "summary.json");
    json_t *sized = programs_read_json(test->out, "summary.json");
    json_t *job = programs_read_json(test->out, "job.json");
    assert_string_equal(json_string_value(json_object_get(plain, "params_digest")),
                        json_string_value(json_object_get(sized, "params_digest")));
    assert_true(last_loss(plain) != last_loss(sized));
    const json_t *options = json_object_get(job, "options");
    assert_int_equal(json_integer_value(json_object_get(options, "eval-size")), 24);
    const char *const args[] = {"evaluate", test->out, "--json", NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 0);
    const char *found = strstr(program_output(&test->run), LOSS_KEY);
    assert_non_null(found);
    assert_true(fabs(strtod(found + strlen(LOSS_KEY), NULL) - last_loss(sized)) < 1e-6);
    json_decref(job);
    json_decref(sized);
    json_decref(plain);
}

/* The published format: a byte for the group, one for the class, 3,072 pixels. */
#define RECORD_BYTES (2 + 3072)
#define RECORDS      24

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_cifar100(const char *folder)
{
    static uint8_t bytes[RECORDS * RECORD_BYTES];
    char names[2048];
    size_t used = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t *record = bytes + (size_t)i * RECORD_BYTES;
        record[0] = (uint8_t)(i % 20);
        record[1] = (uint8_t)(99 - i);
        for (uint32_t k = 0; k < 3072; k++) {
            record[2 + k] = (uint8_t)(i * 11 + k * 3);
        }
    }
    for (uint32_t i = 0; i < 100; i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "name_%u\n", i);
    }
    write_file(folder, "train.bin", bytes, sizeof(bytes));
    write_file(folder, "test.bin", bytes, sizeof(bytes));
    write_file(folder, "fine_label_names.txt", names, used);
}

static void cifar100_trains_with_its_names_and_with_more_outputs(void **state)
{
    struct command_test *test = *state;
    char data[2 * PROGRAM_PATH_BYTES], out[2 * PROGRAM_PATH_BYTES];
    snprintf(data, sizeof(data), "cifar100:%s", test->folder);
    write_cifar100(test->folder);
    const char *const args[] = {"--model", "resnet20", "--data", data, NULL};
    assert_int_equal(run(test, test->out, args), 0);
    json_t *summary = programs_read_json(test->out, "summary.json");
    json_t *job = programs_read_json(test->out, "job.json");
    // 269,722 of 10 classes, and 64 weights and a bias of each more.
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 269722 + 90 * 65);
    const json_t *classes = json_object_get(job, "classes");
    assert_int_equal(json_array_size(classes), 100);
    assert_string_equal(json_string_value(json_array_get(classes, 99)), "name_99");
    json_decref(job);
    json_decref(summary);
    const char *const more[] = {"--model", "resnet20", "--data", data, "--classes", "128", NULL};
    snprintf(out, sizeof(out), "%s/more", test->folder);
    assert_int_equal(run(test, out, more), 0);
    summary = programs_read_json(out, "summary.json");
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 269722 + 118 * 65);
    json_decref(summary);
}

static void what_does_not_fit_is_refused_by_name_before_anything_is_written(void **state)
{
    struct command_test *test = *state;
    static const char *const fixed[] = {"--model", "lenet5", "--eval-size", "40", NULL};
    static const char *const few[] = {"--model", "lenet5", "--classes", "9", NULL};
    assert_int_equal(run(test, test->out, fixed), 1);
    check_said(test, "--eval-size 40: model lenet5, which trains on images of 32x32");
    assert_int_equal(run(test, test->out, few), 1);
    check_said(test, "--classes 9: shapes has 10 classes, and each needs an output");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

#define SIZE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, command_test_set_up, command_test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIZE_TEST(test_images_of_another_size_leave_training_as_it_is),
        SIZE_TEST(cifar100_trains_with_its_names_and_with_more_outputs),
        SIZE_TEST(what_does_not_fit_is_refused_by_name_before_anything_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
