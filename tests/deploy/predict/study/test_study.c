/* Tests of limiters, and of changes of what messages take, against closed forms. */
#include "deploy/predict/advise/crossover.h"
#include "deploy/predict/study/study.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define PARAMETERS UINT64_C(262144)
#define WORKERS    4
#define STEP_S     0.03 // of a worker alone
#define MESSAGE_S  0.02

/* Ends of messages in a step of ps-sync with one server: a push and an answer with values, and two
 * without any, for each worker. */
#define ENDS (2 * 4 * WORKERS)

static struct costs costs;
static struct network network;

/* One core does all work, so that it adds up. */
static int set_up(void **state)
{
    (void)state;
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].forward_s = STEP_S / 3;
    costs.layers[0].backward_s = STEP_S * 2 / 3;
    predictions_read_network(
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"workers\": 4,"
        " \"cores\": 1, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}",
        &network);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    return 0;
}

/* A point as things are, and one with a change. The caller frees the study. */
static struct study *make(const char *change)
{
    struct study *study = calloc(1, sizeof(*study));
    char why[256];
    assert_non_null(study);
    study->costs_file = study->network_file = "a file";
    study->costs = &costs;
    study->network = &network;
    study->job = predictions_job(MODE_PS_SYNC, WORKERS, 1, ALL_REDUCE_CHOICE_RING);
    study->job.transport = TRANSPORT_TCP;
    study->counted = 40;
    study->designs[0] = (struct study_design){{.kind = MODE_PS_SYNC}, 1};
    study->workers[0] = WORKERS;
    study->design_count = study->worker_count = 1;
    if (change != NULL) {
        study->what_if_count = 1;
        assert_true(what_if_parse(change, &study->what_ifs[0], why, sizeof(why)));
    }
    study_cross(study);
    assert_int_equal(study_make(study), STATUS_OK);
    return study;
}

static void expect_limiter(const char *name, double gain)
{
    struct study *study = make(NULL);
    assert_string_equal(study->points[0].limiter, name);
    predictions_check(name, WORKERS, study->points[0].limiter_gain, gain, 1e-6);
    study_finish(study);
    free(study);
}

static void expect_step(const char *change, double want)
{
    struct study *study = make(change);
    // What a step leaves to be done is done in the next one.
    predictions_check(change, WORKERS, study->points[1].made.step_s, want, 1e-3);
    study_finish(study);
    free(study);
}

static void the_limiter_is_the_cost_that_takes_most_of_the_core(void **state)
{
    (void)state;
    double own_s = WORKERS * STEP_S;
    costs.message_s = 1e-4;
    expect_limiter("compute", own_s / (own_s + ENDS * 1e-4));
    costs.input_s = 2 * STEP_S;
    expect_limiter("input", 2 * own_s / (3 * own_s + ENDS * 1e-4));
}

/* Also where the library and the kernel carry them, and the thread for messages has no part. */
static void what_carries_messages_is_of_the_limiter_messages(void **state)
{
    (void)state;
    double own_s = WORKERS * STEP_S, values_s = 4 * WORKERS * MESSAGE_S;
    costs.carriage_message_s = MESSAGE_S;
    expect_limiter("messages", ENDS * MESSAGE_S / (own_s + ENDS * MESSAGE_S));
    costs.carriage_message_s = 0;
    costs.carriage_bandwidth = 4.0 * PARAMETERS / MESSAGE_S; // of those with values alone
    expect_limiter("messages", values_s / (own_s + values_s));
}

static void a_factor_of_messages_is_of_all_that_they_take(void **state)
{
    (void)state;
    double own_s = WORKERS * STEP_S, values_s = 4 * WORKERS * MESSAGE_S;
    costs.message_s = 3 * MESSAGE_S;
    costs.carriage_message_s = MESSAGE_S;
    costs.message_bandwidth = costs.carriage_bandwidth = 4.0 * PARAMETERS / MESSAGE_S;
    double all_s = ENDS * 4 * MESSAGE_S + 2 * values_s;
    expect_step("message=1x", own_s + all_s);
    expect_step("message=2x", own_s + 2 * all_s);
    expect_step("message=0.5x", own_s + all_s / 2);
    expect_step("message=0x", own_s);
}

static void a_value_of_messages_is_of_what_it_names(void **state)
{
    (void)state;
    double own_s = WORKERS * STEP_S, values_s = 4 * WORKERS * MESSAGE_S;
    costs.message_s = costs.carriage_message_s = MESSAGE_S;
    expect_step("message=1ms", own_s + ENDS * (0.001 + MESSAGE_S));
    expect_step("carriage-message=3ms", own_s + ENDS * (0.003 + MESSAGE_S));
    expect_step("carriage=52428.8kB/s", own_s + ENDS * 2 * MESSAGE_S + values_s);
    expect_step("message-bandwidth=52428.8kB/s", own_s + ENDS * 2 * MESSAGE_S + values_s);
    expect_step("input=10ms", own_s + WORKERS * 0.01 + ENDS * 2 * MESSAGE_S);
}

/* ring and ps-sync among 2 and 32 workers, of which the direct all-reduce of 32 takes too much. */
static struct study *make_large(double memory_max, enum status want)
{
    struct study *study = calloc(1, sizeof(*study));
    assert_non_null(study);
    study->costs_file = study->network_file = "a file";
    study->costs = &costs;
    study->network = &predictions_star;
    study->job = predictions_job(MODE_RING, 2, 0, ALL_REDUCE_CHOICE_DIRECT);
    study->counted = 4;
    study->memory_max = memory_max;
    study->designs[0] = (struct study_design){{.kind = MODE_RING}, 0};
    study->designs[1] = (struct study_design){{.kind = MODE_PS_SYNC}, 1};
    study->workers[0] = 2;
    study->workers[1] = 32;
    study->design_count = study->worker_count = 2;
    study_cross(study);
    assert_int_equal(study_make(study), want);
    return study;
}

static char *printed(const struct study *study, const struct crossover_list *list)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    study_print(study, stream);
    crossover_print(list, stream);
    fclose(stream);
    return text;
}

static void a_point_that_is_too_large_leaves_the_others_as_they_are(void **state)
{
    (void)state;
    captured_log_begin();
    struct study *study = make_large(128 * 1024, STATUS_OK);
    assert_non_null(strstr(captured_log_end(), "ring among 32 workers: simulating all of them"));
    struct study *all = make_large(0, STATUS_OK);
    assert_true(study_is_whole(all) && !study_is_whole(study));
    for (size_t i = 0; i < study->point_count; i++) {
        assert_int_equal(study->points[i].is_too_large, i == 2);
        assert_true(i == 2 || study->points[i].made.step_s == all->points[i].made.step_s);
    }
    struct crossover_list list;
    assert_int_equal(crossover_list_make(study, &list), STATUS_OK);
    char *text = printed(study, &list);
    assert_non_null(strstr(text, "ring          32       -  takes too much memory\n"));
    assert_non_null(strstr(text, " is ahead from N = 2 to 2 "));
    json_t *points = study_points_json(study, NULL), *large = json_array_get(points, 2);
    assert_int_equal(json_array_size(points), 4);
    assert_string_equal(json_string_value(json_object_get(large, "error")),
                        "takes too much memory");
    assert_null(json_object_get(large, "images_per_s"));
    json_decref(points);
    crossover_list_finish(&list);
    free(text);
    study_finish(study);
    study_finish(all);
    free(study);
    free(all);
}

static void a_study_whose_points_are_all_too_large_fails(void **state)
{
    (void)state;
    captured_log_begin();
    struct study *study = make_large(1, STATUS_NO_MEMORY);
    (void)captured_log_end();
    study_finish(study);
    free(study);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_limiter_is_the_cost_that_takes_most_of_the_core, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_carries_messages_is_of_the_limiter_messages, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_factor_of_messages_is_of_all_that_they_take, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_value_of_messages_is_of_what_it_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_point_that_is_too_large_leaves_the_others_as_they_are,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_study_whose_points_are_all_too_large_fails, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
