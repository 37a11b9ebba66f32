/* Tests of advice: what is found on hosts of which it is known, and that threads change nothing. */
#include "deploy/predict/advise/advice.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const bool nothing_kept[ADVICE_AXES];

// Bytes of messages: more than rings and servers have at once, and fewer than the direct
// all-reduce.
#define DIRECT_IS_TOO_LARGE 45000

static struct small_study *create(const char *modes, const char *servers, const char *workers)
{
    struct small_study *small = small_study_create(8, modes, servers, workers);
    assert_non_null(small);
    return small;
}

/* The words of a choice of a design. */
static void has_choice(const struct advice_design *design, enum advice_axis_kind axis,
                       const char *wanted)
{
    char word[ADVICE_WORD_BYTES];
    advice_axes[axis].describe(design->values[axis].list[design->found.picks.of[axis]], word);
    assert_string_equal(word, wanted);
}

static void test_more_servers_are_found_where_one_is_the_limiter(void **state)
{
    (void)state;
    struct small_study *small = create("ps-sync", "1", "8");
    struct advice_list list;
    assert_int_equal(advice_list_make(&small->study, nothing_kept, &list), STATUS_OK);
    assert_int_equal(list.count, 1);
    const struct advice_design *design = &list.list[0].designs[0];
    has_choice(design, ADVICE_SERVERS, "8 servers");
    assert_string_equal(design->before.limiter, "bandwidth");
    assert_true(design->speed_after > 2 * design->speed_before);
    assert_float_equal(design->speed_after, design->after.made.images_per_s, 1e-6);
    assert_true(design->gain_count >= 1);
    assert_int_equal(design->gains[0].axis, ADVICE_SERVERS);
    assert_true(design->gains[0].alone > 1);
    assert_true(design->gains[0].taken_back < -0.5);
    advice_list_finish(&list);
    small_study_destroy(small);
}

static void test_what_is_given_stays(void **state)
{
    (void)state;
    const bool is_kept[ADVICE_AXES] = {[ADVICE_SERVERS] = true, [ADVICE_BUCKET] = true};
    struct small_study *small = create("ps-sync", "1,2", "8");
    struct advice_list list;
    small->study.job.bucket_mb = 3;
    assert_int_equal(advice_list_make(&small->study, is_kept, &list), STATUS_OK);
    assert_int_equal(list.list[0].count, 1);
    const struct advice_design *design = &list.list[0].designs[0];
    has_choice(design, ADVICE_SERVERS, "2 servers");
    has_choice(design, ADVICE_BUCKET, "3 MiB");
    advice_list_finish(&list);
    small_study_destroy(small);
}

static void test_other_convergence_is_not_ranked_with_the_rest(void **state)
{
    (void)state;
    struct small_study *small = create("ps-async,ring,ps-sync", "1", "4");
    struct advice_list list;
    assert_int_equal(advice_list_make(&small->study, nothing_kept, &list), STATUS_OK);
    const struct advice *advice = &list.list[0];
    assert_int_equal(advice->count, 3);
    assert_true(advice->designs[0].speed_after >= advice->designs[1].speed_after);
    assert_false(advice->designs[0].is_apart);
    assert_false(advice->designs[1].is_apart);
    assert_true(advice->designs[2].is_apart);
    assert_int_equal(advice->designs[2].mode.kind, MODE_PS_ASYNC);
    assert_int_equal(advice->designs[advice->start].mode.kind, MODE_PS_SYNC);
    advice_list_finish(&list);
    small_study_destroy(small);
}

static void test_with_a_table_all_are_ranked_by_time_to_target(void **state)
{
    (void)state;
    // The first is of a ring's updates, the others of one worker's gradients.
    struct convergence_row rows[] = {{.images = 128, .updates = 1000},
                                     {.images = 32, .updates = 1000},
                                     {.images = 32, .staleness = 100, .updates = 1000}};
    struct convergence convergence = {rows, 1};
    struct small_study *small = create("ps-async,ring", "1", "4");
    struct advice_list list;
    small->study.convergence = &convergence;
    assert_int_equal(advice_list_make(&small->study, nothing_kept, &list), STATUS_OK);
    const struct advice *advice = &list.list[0];
    assert_int_equal(advice->designs[0].mode.kind, MODE_RING);
    assert_true(advice->designs[0].is_of_target);
    assert_float_equal(advice->designs[0].after.target.seconds,
                       (1000 * advice->designs[0].after.made.step_s), 1e-3);
    assert_true(advice->designs[1].is_apart);
    assert_true(strstr(advice->designs[1].after.target.why, "no row has updates of 32 images") !=
                NULL);
    convergence.count = 3;
    advice_list_finish(&list);
    assert_int_equal(advice_list_make(&small->study, nothing_kept, &list), STATUS_OK);
    assert_int_equal(list.list[0].designs[0].mode.kind, MODE_PS_ASYNC); // four updates a step
    assert_false(list.list[0].designs[1].is_apart);
    advice_list_finish(&list);
    small_study_destroy(small);
}

static char *print(uint32_t threads, bool is_json)
{
    struct small_study *small = create("ring,ps-sync,ps-async", "1", "4,8");
    struct advice_list list;
    char *text = NULL;
    size_t size = 0;
    small->study.threads = threads;
    assert_int_equal(advice_list_make(&small->study, nothing_kept, &list), STATUS_OK);
    if (is_json) {
        json_t *json = advice_json(&small->study, &list);
        text = json_dumps(json, JSON_INDENT(1));
        json_decref(json);
    } else {
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(stream);
        advice_print(&small->study, &list, stream);
        fclose(stream);
    }
    advice_list_finish(&list);
    small_study_destroy(small);
    return text;
}

static void has(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("no '%s' in:\n%s", wanted, text);
    }
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    for (int is_json = 0; is_json < 2; is_json++) {
        char *one = print(1, is_json), *four = print(4, is_json);
        assert_string_equal(one, four);
        has(one, is_json ? "\"command\": \"ringside run --mode " : "  ringside run --mode ");
        free(one);
        free(four);
    }
}

static void test_the_text_says_what_and_why(void **state)
{
    (void)state;
    char *text = print(0, false);
    has(text, "Advice for 4 workers, by images/s:");
    has(text, "Advice for 8 workers, by images/s:");
    has(text, "Best: ");
    has(text, "  ringside run --mode ");
    has(text, "Not ranked with those above");
    has(text, "servers: 8 servers instead of 1 server:");
    has(text, " alone, ");
    has(text, "the limiter was bandwidth (link ");
    free(text);
}

static unsigned told; // how often it was logged that something takes too much memory

static unsigned count(const char *text, const char *words)
{
    unsigned found = 0;
    for (; (text = strstr(text, words)) != NULL; text++) {
        found++;
    }
    return found;
}

/* Advice for a ring of 16 of which the direct all-reduce is the default, and ps-sync, with so much
 * memory for each combination. */
static enum status advise_within(double memory_max, const bool is_kept[ADVICE_AXES],
                                 const struct convergence *convergence,
                                 struct small_study **ret_small, struct advice_list *ret_list)
{
    struct small_study *small = small_study_create(16, "ring,ps-sync", "1", "16");
    assert_non_null(small);
    small->study.job.all_reduce = ALL_REDUCE_CHOICE_DIRECT;
    small->study.memory_max = memory_max;
    small->study.convergence = convergence;
    captured_log_begin();
    enum status status = advice_list_make(&small->study, is_kept, ret_list);
    told = count(captured_log_end(), "takes more than");
    *ret_small = small;
    return status;
}

static char *text_of(const struct study *study, const struct advice_list *list)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    advice_print(study, list, stream);
    fclose(stream);
    return text;
}

static const struct advice_design *design_of(const struct advice *advice, enum mode_kind mode)
{
    size_t i = 0;
    while (advice->designs[i].mode.kind != mode) {
        assert_true(++i < advice->count);
    }
    return &advice->designs[i];
}

static void test_what_takes_too_much_memory_is_left_out(void **state)
{
    (void)state;
    struct small_study *small;
    struct advice_list list;
    assert_int_equal(advise_within(DIRECT_IS_TOO_LARGE, nothing_kept, NULL, &small, &list),
                     STATUS_OK);
    const struct advice *advice = &list.list[0];
    const struct advice_design *ring = design_of(advice, MODE_RING);
    assert_int_equal(told, 1); // of the default, and not of each combination that has it
    assert_int_equal(advice->known, 2);
    assert_true(ring->is_before_too_large && ring->has_left_out && !ring->is_too_large);
    assert_true(ring->speed_after > 0);
    assert_true(ring->found.picks.of[ADVICE_ALL_REDUCE] > 0);
    char *text = text_of(&small->study, &list);
    has(text, "- ring: the default (ring, 1 MiB, direct, uncompressed) takes too much memory");
    has(text, "or too much memory, were left out");
    free(text);
    json_t *json = advice_json(&small->study, &list), *designs;
    designs = json_object_get(json_array_get(json, 0), "designs");
    const json_t *first = json_array_get(designs, (size_t)(ring - advice->designs));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(first, "default"), "error")),
        "takes too much memory");
    assert_true(json_is_null(json_object_get(first, "gain_percent")));
    json_decref(json);
    advice_list_finish(&list);
    small_study_destroy(small);
}

static void test_a_mode_that_is_too_large_leaves_the_others_as_they_are(void **state)
{
    (void)state;
    const bool is_kept[ADVICE_AXES] = {[ADVICE_ALL_REDUCE] = true, [ADVICE_BUCKET] = true};
    struct small_study *small;
    struct advice_list list;
    assert_int_equal(advise_within(DIRECT_IS_TOO_LARGE, is_kept, NULL, &small, &list), STATUS_OK);
    const struct advice *advice = &list.list[0];
    assert_int_equal(advice->known, 1);
    assert_int_equal(advice->designs[0].mode.kind, MODE_PS_SYNC);
    assert_true(design_of(advice, MODE_RING)->is_too_large);
    char *text = text_of(&small->study, &list);
    has(text, "Best: ps-sync");
    has(text, "- ring: takes too much memory, with each choice that was tried\n");
    free(text);
    json_decref(advice_json(&small->study, &list));
    advice_list_finish(&list);
    small_study_destroy(small);
}

static void test_advice_without_any_design_fails(void **state)
{
    (void)state;
    struct small_study *small;
    struct advice_list list;
    assert_int_equal(advise_within(1, nothing_kept, NULL, &small, &list), STATUS_NO_MEMORY);
    small_study_destroy(small);
}

/* The table has a row for the updates of both modes, or for those of none. */
static void test_a_mode_whose_default_is_too_large_is_ranked_by_its_target(void **state)
{
    (void)state;
    struct convergence_row row = {.images = 16 * 32, .updates = 1000};
    const struct convergence convergence = {&row, 1};
    for (int is_known = 0; is_known < 2; is_known++) {
        struct small_study *small;
        struct advice_list list;
        row.images = is_known != 0 ? 16 * 32 : 1;
        assert_int_equal(
            advise_within(DIRECT_IS_TOO_LARGE, nothing_kept, &convergence, &small, &list),
            STATUS_OK);
        const struct advice_design *ring = design_of(&list.list[0], MODE_RING);
        assert_true(ring->is_before_too_large && !ring->is_too_large && ring->speed_after > 0);
        assert_int_equal(ring->is_of_target, is_known);
        assert_int_equal(ring->is_apart, !is_known);
        assert_int_equal(ring->after.target.seconds > 0, is_known);
        advice_list_finish(&list);
        small_study_destroy(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_servers_are_found_where_one_is_the_limiter),
        cmocka_unit_test(test_what_is_given_stays),
        cmocka_unit_test(test_other_convergence_is_not_ranked_with_the_rest),
        cmocka_unit_test(test_with_a_table_all_are_ranked_by_time_to_target),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_the_text_says_what_and_why),
        cmocka_unit_test(test_what_takes_too_much_memory_is_left_out),
        cmocka_unit_test(test_a_mode_that_is_too_large_leaves_the_others_as_they_are),
        cmocka_unit_test(test_advice_without_any_design_fails),
        cmocka_unit_test(test_a_mode_whose_default_is_too_large_is_ranked_by_its_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
