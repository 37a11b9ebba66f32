/* Tests of a global batch that workers share: what each has, what that costs, and what the study
 * says of it. */
#include "deploy/predict/advise/crossover.h"
#include "deploy/predict/study/study_batches.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS 8

/* Costs of 32 images, and of four times as many, for which layers take three times as long. */
struct strong {
    struct small_study *small;
    struct costs list[2]; // of `batches`
    struct cost_batches batches;
};

static void begin(const char *modes, const char *workers, uint32_t global_batch,
                  struct strong *strong)
{
    strong->small = small_study_create(HOSTS, modes, "1", workers);
    assert_non_null(strong->small);
    strong->list[0] = strong->list[1] = strong->small->costs;
    strong->list[1].batch *= 4;
    for (uint32_t i = 0; i < strong->list[1].layer_count; i++) {
        strong->list[1].layers[i].forward_s *= 3;
        strong->list[1].layers[i].backward_s *= 3;
    }
    strong->batches = (struct cost_batches){strong->list, 2, 0};
    strong->small->study.batches = &strong->batches;
    strong->small->study.job.global_batch = global_batch;
}

static void end(struct strong *strong)
{
    small_study_destroy(strong->small);
}

static void check_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

static struct strong strong; // large

/* 75 ms for 32 images, 225 ms for 128. */
static void each_worker_computes_its_share(void **state)
{
    (void)state;
    begin("ring", "1,2,4", 128, &strong);
    assert_int_equal(study_check_batches(&strong.small->study), STATUS_OK);
    assert_int_equal(study_make(&strong.small->study), STATUS_OK);
    const struct study_point *points = strong.small->study.points;
    check_near(points[0].made.compute_s, 225e-3);
    check_near(points[1].made.compute_s, 125e-3);
    check_near(points[2].made.compute_s, 75e-3);
    for (size_t i = 0; i < 3; i++) {
        check_near(points[i].made.images_per_s, 128 / points[i].made.step_s);
        // Against one worker that has all of the batch, and makes the update.
        check_near(points[i].speed_up, (225e-3 + 1e-3) / points[i].made.step_s);
    }
    end(&strong);
}

/* 43, 43 and 42 images: a step takes as long as 43 do, and has 128. */
static void shares_that_differ_are_named_and_no_image_counts_twice(void **state)
{
    (void)state;
    begin("ring", "3", 128, &strong);
    struct study *study = &strong.small->study;
    captured_log_begin();
    assert_int_equal(study_check_batches(study), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), "--global-batch 128 is not divisible by 3 workers"));
    assert_int_equal(study_make(study), STATUS_OK);
    check_near(study->points[0].made.compute_s, 75e-3 + 150e-3 * 11 / 96);
    check_near(study->points[0].made.images_per_s, 128 / study->points[0].made.step_s);
    json_t *object = study_json(study),
           *point = json_array_get(json_object_get(object, "points"), 0);
    assert_int_equal(json_integer_value(json_object_get(object, "global_batch")), 128);
    assert_null(json_object_get(object, "batch"));
    assert_int_equal(json_integer_value(json_object_get(point, "batch")), 43);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(point, "batch_from"), 1)),
                     128);
    json_decref(object);
    end(&strong);
}

static void what_cannot_be_shared_is_refused_by_the_number_of_workers(void **state)
{
    (void)state;
    begin("ring", "2,8", 7, &strong);
    captured_log_begin();
    assert_int_equal(study_check_batches(&strong.small->study), STATUS_INVALID);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "--global-batch 7 leaves some of 8 workers without an image"));
    assert_non_null(strstr(log, "at most 7 --workers"));
    strong.batches.count = 1;
    captured_log_begin();
    assert_int_equal(study_check_batches(&strong.small->study), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "costs.json has only times of 32 images"));
    end(&strong);
}

/* Between two numbers of workers, leads are searched with the shares of each number. */
static void leads_are_found_with_the_shares_of_each_number_of_workers(void **state)
{
    (void)state;
    struct crossover_list list = {NULL, 0};
    begin("ps-sync,ring", "2,8", 128, &strong);
    struct study *study = &strong.small->study;
    assert_int_equal(study_make(study), STATUS_OK);
    assert_int_equal(crossover_list_make(study, &list), STATUS_OK);
    assert_true(list.count > 0);
    const struct crossover *crossover = &list.list[0];
    check_near(crossover->rates_last.first, 128 / study->points[2].made.step_s);
    check_near(crossover->rates_last.second, 128 / study->points[3].made.step_s);
    for (size_t i = 1; i < crossover->turn_count; i++) {
        uint32_t workers = crossover->turns[i].workers;
        struct study_point point = {.design = crossover->second, .workers = workers};
        struct basis *basis = NULL;
        struct prediction made;
        assert_int_equal(study_make_basis(study, &point, &basis), STATUS_OK);
        assert_int_equal(basis->costs.batch, (128 + workers - 1) / workers);
        assert_int_equal(study_predict(study, basis, &made), STATUS_OK);
        check_near(crossover->turns[i].rates.second, 128 / made.step_s);
        basis_destroy(basis);
    }
    crossover_list_finish(&list);
    end(&strong);
}

/* The text names the share of each number of workers, and of the one that speed-up is against. */
static void the_table_has_the_shares(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    begin("ring", "2,8", 128, &strong);
    assert_int_equal(study_make(&strong.small->study), STATUS_OK);
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    study_print(&strong.small->study, stream);
    fclose(stream);
    assert_non_null(strstr(text, "128 images a step of all workers together; of each:\n"
                                 "  1 worker: 128 images, computed in 225 ms\n"
                                 "  2 workers: 64 images, computed in 125 ms, interpolated from "
                                 "32 and 128 images\n"
                                 "  8 workers: 16 images, computed in 50 ms, extrapolated from 32 "
                                 "and 128 images\n"));
    assert_non_null(strstr(text, "workers   batch servers"));
    assert_non_null(strstr(text, "ring           8      16       -"));
    free(text);
    end(&strong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_worker_computes_its_share),
        cmocka_unit_test(shares_that_differ_are_named_and_no_image_counts_twice),
        cmocka_unit_test(what_cannot_be_shared_is_refused_by_the_number_of_workers),
        cmocka_unit_test(leads_are_found_with_the_shares_of_each_number_of_workers),
        cmocka_unit_test(the_table_has_the_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
