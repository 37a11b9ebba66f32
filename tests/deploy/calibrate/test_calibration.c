/* Runs whose costs are known: what calibrate writes has to be what was put in, as predict reads it.
 */
#include "deploy/calibrate/calibration.h"
#include "deploy/calibrate/calibration_files.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/basis/network.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/traced_run.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct calibration_run runs[3];
static struct model_layers model = {
    {{"conv2d 1", 100000}, {"linear 2", 30000}}, .count = 2, .parameters = 130000};
static struct calibration calibration;
static struct calibration_known known; // of links

// A step ends a microsecond before the next one begins, and hands over two buckets.
#define REST_NS (TRACED_REST_NS + TRACED_US + 2 * TRACED_HANDOVER_NS)

static const struct traced_story plain_ring = {"ring",       "lenet5", 2,     0,
                                               TRACED_STEPS, true,     false, "\"seed\": 1"};

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected))) {
        fail_msg("%.9g instead of %.9g", value, expected);
    }
}

/* From stories to files, and read as predict reads them. `ret_network` may be NULL. */
static void calibrate(const struct traced_story *stories, size_t count, struct costs *ret_costs,
                      struct network *ret_network)
{
    struct calibration_run *list[2] = {&runs[0], &runs[1]};
    char path[600], *folders[2] = {NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        folders[i] = traced_run_write(&stories[i]);
        assert_int_equal(calibration_run_read(folders[i], list[i]), STATUS_OK);
    }
    assert_int_equal(calibration_make(list, count, &model, &known, &calibration), STATUS_OK);
    snprintf(path, sizeof(path), "%s/costs.json", folders[0]);
    assert_int_equal(calibration_check_file(path), STATUS_OK);
    assert_int_equal(calibration_write_costs(&calibration, path), STATUS_OK);
    assert_int_equal(cost_batches_take(path, 0, ret_costs), STATUS_OK);
    if (ret_network != NULL) {
        snprintf(path, sizeof(path), "%s/network.json", folders[0]);
        assert_int_equal(calibration_write_network(&calibration, path), STATUS_OK);
        assert_int_equal(network_read(path, ret_network), STATUS_OK);
    }
    for (size_t i = 0; i < count; i++) {
        calibration_run_finish(list[i]);
        temp_folder_destroy(folders[i]);
    }
}

static double seconds(double ns)
{
    return 1e-9 * ns;
}

static void check_layer(const struct cost_layer *layer, uint64_t parameters, double forward_ns,
                        double backward_ns)
{
    assert_int_equal(layer->parameters, parameters);
    check_near(layer->forward_s, seconds(forward_ns), 1e-6);
    check_near(layer->backward_s, seconds(backward_ns), 1e-6);
}

/* Values of one host's memory. */
static void check_network(struct network *network, uint32_t workers)
{
    assert_int_equal(network->host_count, 1);
    assert_int_equal(network->hosts[0].workers, workers);
    assert_string_equal(network->hosts[0].name, "node0");
    check_near(network->hosts[0].memory_latency_s, seconds(TRACED_LATENCY_NS), 1e-6);
    check_near(network->links[network->hosts[0].memory].bandwidth, 1e9 * TRACED_WAY_BYTES_PER_NS,
               1e-6);
    network_finish(network);
}

static struct costs costs; // large

static void the_costs_of_a_ring_are_those_that_were_put_in(void **state)
{
    (void)state;
    struct network network;
    calibrate(&plain_ring, 1, &costs, &network);
    assert_int_equal(costs.batch, 16);
    assert_int_equal(costs.layer_count, 3);
    check_layer(&costs.layers[0], 0, REST_NS, 0);
    check_layer(&costs.layers[1], 100000, TRACED_FORWARD_1_NS, TRACED_BACKWARD_1_NS);
    check_layer(&costs.layers[2], 30000, TRACED_FORWARD_2_NS, TRACED_BACKWARD_2_NS);
    assert_int_equal(costs.spread.kind, SPREAD_NONE);
    check_near(costs.optimizer_s, seconds(2 * TRACED_UPDATE_NS), 1e-6);
    // A bucket has a post and two sends.
    check_near(costs.message_s,
               seconds((TRACED_SEND_NS + TRACED_POST_NS / 2.0 + TRACED_RECEIVE_NS) / 2), 1e-6);
    check_near(costs.sum_bandwidth, 1e9 * TRACED_SUM_BYTES_PER_NS, 1e-6);
    check_network(&network, 2);
}

static void servers_show_their_sums_where_workers_show_the_update(void **state)
{
    (void)state;
    struct network network;
    const struct traced_story stories[] = {
        {"local", "lenet5", 1, 0, TRACED_STEPS, true, false, "\"seed\": 1"},
        {"ps-sync", "lenet5", 2, 1, TRACED_STEPS, true, false, "\"seed\": 1"},
    };
    calibrate(stories, 2, &costs, &network);
    check_layer(&costs.layers[1], 100000, TRACED_FORWARD_1_NS, TRACED_BACKWARD_1_NS);
    check_near(costs.optimizer_s, seconds(2 * TRACED_UPDATE_NS), 1e-6);
    check_near(costs.sum_bandwidth, 1e9 * TRACED_SUM_BYTES_PER_NS, 1e-6);
    // Of both pushes a bucket, each by a post, and of both answers.
    check_near(costs.message_s,
               seconds((TRACED_SEND_NS + TRACED_POST_NS / 2.0 + TRACED_RECEIVE_NS) / 2), 1e-6);
    check_network(&network, 2);
}

/* Servers alone do not tell sums from updates: all of it is the update, and that is said. */
static void what_servers_alone_do_not_tell_is_assumed_by_name(void **state)
{
    (void)state;
    const struct traced_story story = {"ps-sync",    "lenet5", 2,     1,
                                       TRACED_STEPS, true,     false, "\"seed\": 1"};
    double sums_ns =
        2.0 * (double)(traced_bucket_bytes[0] + traced_bucket_bytes[1]) / TRACED_SUM_BYTES_PER_NS;
    calibrate(&story, 1, &costs, NULL);
    check_near(costs.optimizer_s, seconds(2 * TRACED_UPDATE_NS + sums_ns), 1e-6);
    assert_true(costs.sum_bandwidth == 0);
    size_t assumed = 0;
    for (size_t i = 0; i < calibration.cost_notes.count; i++) {
        const struct calibration_note *note = &calibration.cost_notes.list[i];
        bool is_unknown = strcmp(note->name, "optimizer") == 0 || strcmp(note->name, "sum") == 0 ||
                          strcmp(note->name, "input") == 0 || strcmp(note->name, "carriage") == 0 ||
                          strcmp(note->name, "crowding") == 0 || strcmp(note->name, "turns") == 0 ||
                          strcmp(note->name, "launch") == 0;
        assert_int_equal(note->is_assumed, is_unknown);
        assumed += note->is_assumed;
    }
    assert_int_equal(assumed, 7);
}

/* Steps that take 0 to 1.1 ms longer, in twelve equal parts: the least is that without. */
static void noise_is_the_spread(void **state)
{
    (void)state;
    const struct traced_story story = {"local",    "lenet5", 1,    0,
                                       3 + 24 + 1, true,     true, "\"seed\": 1"};
    double least_ns = REST_NS + TRACED_FORWARD_1_NS + TRACED_FORWARD_2_NS + TRACED_BACKWARD_1_NS +
                      TRACED_BACKWARD_2_NS;
    calibrate(&story, 1, &costs, NULL);
    assert_int_equal(costs.spread.kind, SPREAD_UNIFORM);
    check_near(costs.spread.most_s, 1.1e-3 * 25 / 23, 1e-6);
    check_near(costs_compute_s(&costs) + costs.spread.most_s / 2, seconds(least_ns) + 0.55e-3,
               1e-6);
    assert_false(calibration.has_network);
}

/* Without layers, as on a GPU: forward is shared out by parameters, and each bucket's backward. A
 * bucket of 0.3 MiB holds no second layer. */
static void without_layers_the_times_of_buckets_are_shared_out(void **state)
{
    (void)state;
    struct traced_story story = plain_ring;
    story.has_layers = false;
    calibrate(&story, 1, &costs, NULL);
    double forward_ns = TRACED_FORWARD_1_NS + TRACED_FORWARD_2_NS;
    check_layer(&costs.layers[0], 0, REST_NS, 0);
    assert_int_equal(costs.layer_count, 3);
    check_near(costs.layers[1].forward_s, seconds(forward_ns * 100 / 130), 1e-6);
    check_near(costs.layers[2].forward_s, seconds(forward_ns * 30 / 130), 1e-6);
    check_near(costs.layers[1].backward_s + costs.layers[2].backward_s,
               seconds(TRACED_BACKWARD_1_NS + TRACED_BACKWARD_2_NS), 1e-6);
}

/* Of both workers the last one waits for nobody. */
static void sums_in_shared_memory_are_those_of_the_last_one(void **state)
{
    (void)state;
    struct traced_story story = plain_ring;
    story.has_group = true;
    calibrate(&story, 1, &costs, NULL);
    check_near(costs.sum_bandwidth, 2 * 130000 / seconds(TRACED_GROUP_NS), 1e-6);
    assert_false(calibration.has_network);
}

/* A run with codes shows what these take, and nothing else. */
static void codes_are_what_messages_take_longer(void **state)
{
    (void)state;
    static const struct traced_story stories[] = {
        {"ps-sync", "lenet5", 2, 1, TRACED_STEPS, true, false, "\"seed\": 1"},
        {"ps-sync", "lenet5", 2, 1, TRACED_STEPS, true, true, "\"compress\": \"int8\"",
         .has_codes = true},
    };
    calibrate(stories, 2, &costs, NULL);
    check_near(costs.encode_bandwidth, 4 * 130000 / seconds(2 * TRACED_ENCODE_NS), 1e-6);
    check_near(costs.decode_bandwidth, 4 * 130000 / seconds(2 * TRACED_DECODE_NS), 1e-6);
    assert_int_equal(costs.spread.kind, SPREAD_NONE);
    check_near(costs.message_s,
               seconds((TRACED_SEND_NS + TRACED_POST_NS / 2.0 + TRACED_RECEIVE_NS) / 2), 1e-6);
}

#define RUN(mode, servers, over, keys)                                                           \
    {                                                                                            \
        mode, "lenet5", 2, servers, TRACED_STEPS, true, false, "\"seed\": 1", .transport = over, \
                                                                              .security = keys   \
    }

/* Neither runs of two transports, nor runs with keys and without, whatever is between them. */
static void runs_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *why;
        struct traced_story stories[3];
    } cases[] = {
        {"of one transport", {RUN("ring", 0, "tcp", NULL), RUN("ps-sync", 1, "shm", NULL)}},
        {"no keys: encrypt", {RUN("ring", 0, "tcp", "curve"), RUN("ps-sync", 1, "tcp", "none")}},
        {"no keys: encrypt",
         {RUN("ring", 0, "tcp", NULL), RUN("ring", 0, "tcp", "curve"),
          RUN("ps-sync", 1, "tcp", "none")}},
        {"no keys: encrypt",
         {RUN("ps-sync", 1, "tcp", "curve"),
          {"ps-sync", "lenet5", 2, 1, TRACED_STEPS, true, true, "\"compress\": \"int8\"",
           .has_codes = true, .transport = "tcp", .security = "none"}}},
    };
    for (size_t i = 0, count = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct calibration_run *list[3] = {&runs[0], &runs[1], &runs[2]};
        char *folders[3] = {NULL, NULL, NULL};
        for (; count < 3 && cases[i].stories[count].mode != NULL; count++) {
            folders[count] = traced_run_write(&cases[i].stories[count]);
            assert_int_equal(calibration_run_read(folders[count], list[count]), STATUS_OK);
        }
        captured_log_begin();
        enum status status = calibration_make(list, count, &model, &known, &calibration);
        assert_int_equal(status, STATUS_INVALID);
        assert_non_null(strstr(captured_log_end(), cases[i].why));
        for (; count > 0; count--) {
            calibration_run_finish(list[count - 1]);
            temp_folder_destroy(folders[count - 1]);
        }
    }
}

static void what_is_known_of_links_counts_instead(void **state)
{
    (void)state;
    struct network network;
    memset(runs, 0, sizeof(runs)); // the hosts of runs that were refused
    known = (struct calibration_known){.nic = 1.25e8, .burst_kib = 256};
    calibrate(&plain_ring, 1, &costs, &network);
    known = (struct calibration_known){0};
    const struct network_link *link = &network.links[network.hosts[0].up];
    check_near(link->bandwidth, 1.25e8, 1e-6);
    check_near(link->burst, 262144, 1e-6);
    check_network(&network, 2); // memory is what messages show
}

/* Messages took as long as 1 GB/s lets them, which is more than one link carries, and less than the
 * other. */
static void what_takes_no_burst_is_paced(void **state)
{
    (void)state;
    static const struct {
        double nic;
        bool is_paced;
    } cases[] = {{1e8, false}, {2e9, true}};
    struct traced_story story = plain_ring;
    story.has_hosts = true;
    story.transport = "tcp";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct network network;
        memset(runs, 0, sizeof(runs));
        known = (struct calibration_known){.nic = cases[i].nic, .burst_kib = 64};
        calibrate(&story, 1, &costs, &network);
        known = (struct calibration_known){0};
        assert_true(network.host_count > 1);
        assert_int_equal(network.pacing.is_paced[NETWORK_WAY_RING], cases[i].is_paced);
        assert_false(network.pacing.is_paced[NETWORK_WAY_PUSHES]);
        network_finish(&network);
    }
}

static void runs_of_two_kinds_are_refused(void **state)
{
    (void)state;
    struct calibration_run *list[2] = {&runs[0], &runs[1]};
    struct model_layers other = model;
    struct traced_story story = plain_ring;
    char *first = traced_run_write(&story);
    story.model = "cnn";
    char *second = traced_run_write(&story);
    assert_int_equal(calibration_run_read(first, &runs[0]), STATUS_OK);
    assert_int_equal(calibration_run_read(second, &runs[1]), STATUS_OK);
    captured_log_begin();
    assert_int_equal(calibration_make(list, 2, &model, &known, &calibration), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "costs are of one model"));
    other.parameters = 7;
    captured_log_begin();
    assert_int_equal(calibration_make(list, 1, &other, &known, &calibration), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "calibrate with the version that made the run"));
    calibration_run_finish(&runs[0]);
    calibration_run_finish(&runs[1]);
    temp_folder_destroy(first);
    temp_folder_destroy(second);
}

/* Their messages would be of steps that overlap otherwise. */
static void runs_of_another_batch_show_what_computing_costs(void **state)
{
    (void)state;
    struct calibration_run *list[2] = {&runs[0], &runs[1]};
    const struct traced_story local = {"local",      "lenet5", 1,    0,
                                       TRACED_STEPS, true,     true, "\"seed\": 1"};
    char path[600], *first = traced_run_write(&plain_ring), *second = traced_run_write(&local);
    assert_int_equal(calibration_run_read(first, &runs[0]), STATUS_OK);
    assert_int_equal(calibration_run_read(second, &runs[1]), STATUS_OK);
    runs[1].batch = 64;
    assert_int_equal(calibration_make(list, 2, &model, &known, &calibration), STATUS_OK);
    assert_int_equal(calibration.other_count, 1);
    snprintf(path, sizeof(path), "%s/costs.json", first);
    assert_int_equal(calibration_write_costs(&calibration, path), STATUS_OK);
    assert_int_equal(cost_batches_take(path, 0, &costs), STATUS_OK);
    assert_int_equal(costs.batch, 16);
    assert_int_equal(costs.spread.kind, SPREAD_NONE);
    check_layer(&costs.layers[1], 100000, TRACED_FORWARD_1_NS, TRACED_BACKWARD_1_NS);
    assert_int_equal(cost_batches_take(path, 64, &costs), STATUS_OK);
    assert_int_equal(costs.batch, 64);
    assert_int_equal(costs.spread.kind, SPREAD_UNIFORM);
    assert_int_equal(costs.layers[1].parameters, 100000);
    check_near(costs_compute_s(&costs) + (costs.spread.least_s + costs.spread.most_s) / 2,
               seconds(REST_NS + TRACED_FORWARD_1_NS + TRACED_BACKWARD_1_NS + TRACED_FORWARD_2_NS +
                       TRACED_BACKWARD_2_NS) +
                   0.55e-3,
               0.05);
    calibration_run_finish(&runs[0]);
    calibration_run_finish(&runs[1]);
    temp_folder_destroy(first);
    temp_folder_destroy(second);
}

/* The first run has no codes, but is of another batch than most. */
static void of_runs_that_show_only_codes_one_is_named(void **state)
{
    (void)state;
    struct calibration_run *list[3] = {&runs[0], &runs[1], &runs[2]};
    const struct traced_story local = {"local",      "lenet5", 1,     0,
                                       TRACED_STEPS, true,     false, "\"seed\": 1"};
    const struct traced_story coded = {"ps-sync",    "lenet5", 2,     1,
                                       TRACED_STEPS, true,     false, "\"compress\": \"int8\""};
    char *folders[] = {traced_run_write(&local), traced_run_write(&coded)};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(calibration_run_read(folders[i > 0], &runs[i]), STATUS_OK);
    }
    runs[0].batch = 64;
    captured_log_begin();
    assert_int_equal(calibration_make(list, 3, &model, &known, &calibration), STATUS_INVALID);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, folders[1]));
    assert_non_null(strstr(log, "was run with --compress int8, and shows only what codes take"));
    for (size_t i = 0; i < 3; i++) {
        calibration_run_finish(&runs[i]);
    }
    temp_folder_destroy(folders[0]);
    temp_folder_destroy(folders[1]);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[600];
    captured_log_begin();
    assert_int_not_equal(calibration_check_file(folder), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), "it is a folder"));
    snprintf(path, sizeof(path), "%s/none/costs.json", folder);
    captured_log_begin();
    assert_int_not_equal(calibration_check_file(path), STATUS_OK);
    assert_non_null(strstr(captured_log_end(), path));
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_costs_of_a_ring_are_those_that_were_put_in),
        cmocka_unit_test(servers_show_their_sums_where_workers_show_the_update),
        cmocka_unit_test(what_servers_alone_do_not_tell_is_assumed_by_name),
        cmocka_unit_test(noise_is_the_spread),
        cmocka_unit_test(without_layers_the_times_of_buckets_are_shared_out),
        cmocka_unit_test(sums_in_shared_memory_are_those_of_the_last_one),
        cmocka_unit_test(codes_are_what_messages_take_longer),
        cmocka_unit_test(runs_that_do_not_go_together_are_refused),
        cmocka_unit_test(runs_of_two_kinds_are_refused),
        cmocka_unit_test(runs_of_another_batch_show_what_computing_costs),
        cmocka_unit_test(of_runs_that_show_only_codes_one_is_named),
        cmocka_unit_test(what_is_known_of_links_counts_instead),
        cmocka_unit_test(what_takes_no_burst_is_paced),
        cmocka_unit_test(a_file_that_cannot_be_written_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
