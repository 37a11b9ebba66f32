/* What goes over links, also over those of a job in small that nobody simulated. */
#include "deploy/predict/study/study_links.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS  UINT64_C(262144)
#define VALUE_BYTES (4.0 * PARAMETERS)

static struct costs costs;
static struct network network;

static int set_up(void **state)
{
    (void)state;
    predictions_read_network("{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", "
                             "\"count\": 1024, \"nic\": "
                             "\"10 Gbit/s\", \"latency\": \"10 us\", \"switch\": \"s\"}, "
                             "{\"name\": \"p\", \"count\": 2, "
                             "\"workers\": 0, \"servers\": 1, \"nic\": \"10 Gbit/s\", \"latency\": "
                             "\"10 us\", \"switch\": "
                             "\"s\"}]}",
                             &network);
    predictions_reset_costs(PARAMETERS, &costs);
    costs.layers[0].backward_s = 0.01;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    network_finish(&network);
    return 0;
}

static struct study *make(enum mode_kind mode, uint32_t workers, uint32_t servers)
{
    struct study *study = calloc(1, sizeof(*study));
    assert_non_null(study);
    study->costs_file = study->network_file = "a file";
    study->costs = &costs;
    study->network = &network;
    study->job = predictions_job(mode, workers, servers, ALL_REDUCE_CHOICE_RING);
    study->counted = 4;
    study->job.bucket_mb = workers > 64 ? 0.25 : 1;
    study->designs[0] = (struct study_design){{.kind = mode}, servers};
    study->workers[0] = workers;
    study->design_count = study->worker_count = 1;
    study_cross(study);
    assert_int_equal(study_make(study), STATUS_OK);
    return study;
}

static void destroy(struct study *study)
{
    study_finish(study);
    free(study);
}

/* All hosts of such places carry so many bytes each way. */
static void check_hosts(const struct study *study, uint32_t first, uint32_t count, double bytes)
{
    for (uint32_t i = first; i < first + count; i++) {
        predictions_check("out", i, study->points[0].link_bytes[network.hosts[i].up], bytes, 0.01);
        predictions_check("in", i, study->points[0].link_bytes[network.hosts[i].down], bytes, 0.01);
    }
}

static void links_of_a_ring_carry_what_its_closed_form_says(void **state)
{
    (void)state;
    struct study *study = make(MODE_RING, 4, 0);
    assert_false(study->points[0].made.is_reduced);
    check_hosts(study, 0, 4, 2 * 3 / 4.0 * VALUE_BYTES);
    assert_true(study->points[0].link_bytes[network.hosts[4].up] == 0); // nobody runs there
    destroy(study);
}

static void links_that_nobody_simulates_have_what_those_like_them_carry(void **state)
{
    (void)state;
    struct study *study = make(MODE_RING, 1024, 0);
    assert_true(study->points[0].made.is_reduced);
    check_hosts(study, 0, 1024, 2 * 1023 / 1024.0 * VALUE_BYTES);
    destroy(study);
    study = make(MODE_PS_SYNC, 1024, 2);
    assert_true(study->points[0].made.is_reduced);
    check_hosts(study, 0, 1024, VALUE_BYTES);
    check_hosts(study, 1024, 2, 1024 * VALUE_BYTES / 2);
    destroy(study);
}

static void all_links_are_in_json(void **state)
{
    (void)state;
    struct study *study = make(MODE_PS_SYNC, 64, 2);
    json_t *links = study_links_json(study, &study->points[0]);
    assert_int_equal(json_array_size(links), 2 * (64 + 2));
    const json_t *first = json_array_get(links, 0);
    assert_string_equal(json_string_value(json_object_get(first, "link")), "h0 out");
    predictions_check("bytes", 64, json_number_value(json_object_get(first, "bytes_per_step")),
                      VALUE_BYTES, 0.01);
    assert_true(json_number_value(json_object_get(first, "busy_percent")) > 0);
    json_decref(links);
    destroy(study);
}

static void links_that_are_alike_are_one_line(void **state)
{
    (void)state;
    struct study *study = make(MODE_PS_SYNC, 64, 2);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    study_links_print(study, stream);
    fclose(stream);
    assert_non_null(strstr(text,
                           "ps-sync with 2 servers among 64:\n  h0 and 63 more, 1 worker: out "
                           "1.049"));
    assert_non_null(strstr(text, "\n  p0 and 1 more, 1 server: out "));
    free(text);
    destroy(study);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(links_of_a_ring_carry_what_its_closed_form_says, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(links_that_nobody_simulates_have_what_those_like_them_carry,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(all_links_are_in_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(links_that_are_alike_are_one_line, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
