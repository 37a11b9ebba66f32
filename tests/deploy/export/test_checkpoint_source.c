/* Tests of what an export reads from a checkpoint: parameters, and the mean of statistics. */
#include "common/checkpoint/checkpoint_writer.h"
#include "deploy/export/checkpoint_source.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

struct vector {
    const char *name;
    const void *bytes;
    uint64_t size;
};

static struct checkpoint_reader *write_and_open(const char *folder, const struct vector *vectors,
                                                uint32_t count)
{
    char error[1024], notes[1024];
    struct checkpoint_writer *writer;
    struct checkpoint_reader *reader;
    struct checkpoint_vector expected[8];
    assert_int_equal(checkpoint_writer_open(folder, 1, &writer), STATUS_OK);
    assert_int_equal(checkpoint_begin(writer, 7), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        expected[i] = (struct checkpoint_vector){vectors[i].name, vectors[i].size};
        assert_int_equal(
            checkpoint_write(writer, vectors[i].name, 0, vectors[i].bytes, vectors[i].size),
            STATUS_OK);
    }
    json_t *job = json_object();
    assert_int_equal(checkpoint_commit(writer, expected, count, job), STATUS_OK);
    json_decref(job);
    checkpoint_writer_close(writer);
    assert_int_equal(checkpoint_open(folder, &reader, error, sizeof(error), notes, sizeof(notes)),
                     STATUS_OK);
    return reader;
}

static const float params[] = {1, 2, 3};
static const struct rank_list nobody; // of those that are left out
// Ranks 0 to 2, whose first sum is a third and more than 24 bits.
static const float statistics[3][2] = {{16777216, 1}, {1, 2}, {1, 6}};

static char error[512];

static enum status read_source(struct checkpoint_reader *reader, const struct rank_list *left_out,
                               struct tensor_source *ret_source)
{
    return checkpoint_source_read(reader, left_out, ret_source, error, sizeof(error));
}

static void statistics_are_the_mean_in_double(void **state)
{
    const struct vector vectors[] = {
        {"params", params, sizeof(params)},
        {"rank-0/statistics", statistics[0], 8},
        {"rank-1/statistics", statistics[1], 8},
        {"rank-2/statistics", statistics[2], 8},
    };
    struct checkpoint_reader *reader = write_and_open(*state, vectors, 4);
    struct tensor_source source;
    assert_int_equal(read_source(reader, &nobody, &source), STATUS_OK);
    assert_int_equal(source.step, 7);
    assert_int_equal(source.value_count, 3);
    assert_memory_equal(source.values, params, sizeof(params));
    assert_int_equal(source.statistic_count, 2);
    assert_true(source.statistics[0] == (float)(16777218.0 / 3));
    assert_true(source.statistics[1] == 3);
    checkpoint_source_finish(&source);
    checkpoint_reader_close(reader);
}

static void ranks_that_are_left_out_do_not_count(void **state)
{
    const struct vector vectors[] = {
        {"params", params, sizeof(params)},
        {"rank-0/statistics", statistics[0], 8},
        {"rank-1/statistics", statistics[1], 8},
        {"rank-2/statistics", statistics[2], 8},
    };
    static const struct {
        struct rank_list left_out;
        uint32_t vector_count; // of the last ranks, some may not be there
        float expected;        // the second value
    } cases[] = {
        {{1, {0}}, 4, 4},    {{1, {1}}, 4, 3.5F}, {{1, {2}}, 4, 1.5F},
        {{1, {2}}, 3, 1.5F}, {{2, {0, 1}}, 4, 6}, {{2, {0, 2}}, 3, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct checkpoint_reader *reader = write_and_open(*state, vectors, cases[i].vector_count);
        struct tensor_source source;
        assert_int_equal(read_source(reader, &cases[i].left_out, &source), STATUS_OK);
        assert_int_equal(source.statistic_count, 2);
        assert_true(source.statistics[1] == cases[i].expected);
        checkpoint_source_finish(&source);
        checkpoint_reader_close(reader);
    }
}

static void a_model_may_have_no_statistics(void **state)
{
    const struct vector vectors[] = {{"params", params, sizeof(params)}};
    struct checkpoint_reader *reader = write_and_open(*state, vectors, 1);
    struct tensor_source source;
    assert_int_equal(read_source(reader, &nobody, &source), STATUS_OK);
    assert_int_equal(source.statistic_count, 0);
    assert_null(source.statistics);
    checkpoint_source_finish(&source);
    checkpoint_reader_close(reader);
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    static const struct {
        struct vector vectors[3];
        uint32_t count;
        const char *error;
    } cases[] = {
        {{{"state-1", params, 12}}, 1, "no vector params of floats"},
        {{{"params", params, 11}}, 1, "no vector params of floats"},
        {{{"params", params, 12},
          {"rank-0/statistics", params, 8},
          {"rank-1/statistics", params, 4}},
         3,
         "rank-1/statistics has 1 values, and that of the first rank 2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct checkpoint_reader *reader = write_and_open(*state, cases[i].vectors, cases[i].count);
        struct tensor_source source;
        assert_int_equal(read_source(reader, &nobody, &source), STATUS_MALFORMED);
        assert_non_null(strstr(error, cases[i].error));
        assert_non_null(strstr(error, "step-000000000007"));
        checkpoint_reader_close(reader);
    }
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(statistics_are_the_mean_in_double),
        IN_FOLDER(ranks_that_are_left_out_do_not_count),
        IN_FOLDER(a_model_may_have_no_statistics),
        IN_FOLDER(what_does_not_fit_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
