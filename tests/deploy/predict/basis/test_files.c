/* Tests of what costs and networks are refused for, and of ways through networks. */
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/basis/fields.h"
#include "deploy/predict/basis/network.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYER "{\"parameters\": 10, \"forward\": \"1 ms\", \"backward\": \"2 ms\"}"
#define REST  "\"optimizer\": \"0 s\", \"message\": \"1 us\""
#define HOST \
    "{\"name\": \"h\", \"count\": 4, \"switch\": \"s\", \"nic\": \"1 Gbit/s\", \"latency\": "

#define NAMED(name, count)                                                                      \
    "{\"name\": \"" name "\", \"count\": " count ", \"switch\": \"s\", \"nic\": \"1 Gbit/s\", " \
    "\"latency\": \"1 us\"}"

static struct costs costs;

static void write_file(const char *text, char ret_path[32])
{
    snprintf(ret_path, 32, "/tmp/test-predict-XXXXXX");
    int file = mkstemp(ret_path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
}

/* Reads costs, or a network; the log has to hold `why`, or "" where the file is right. */
static void check(bool is_network, const char *text, const char *why)
{
    char path[32];
    struct network network;
    write_file(text, path);
    captured_log_begin();
    enum status status =
        is_network ? network_read(path, &network) : cost_batches_take(path, 0, &costs);
    const char *log = captured_log_end();
    unlink(path);
    if (is_network && status == STATUS_OK) {
        network_finish(&network);
    }
    if ((status == STATUS_OK) != (why[0] == '\0') || strstr(log, why) == NULL) {
        fail_msg("%s\nended with %d and\n%s\ninstead of: %s", text, (int)status, log, why);
    }
}

static const struct {
    const char *text, *why;
} costs_cases[] = {
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST "}", ""},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"sum\": \"3 GB/s\"}", ""},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"threads\": 2, \"input\": \"1 ms\","
     "\"carriage-message\": \"5 us\", \"carriage\": \"1 GB/s\", \"crowding\": 1.2, \"turns\": "
     "1.3,"
     "\"message-bandwidth\": \"4 GB/s\", \"server-optimizer\": \"3 ms\", \"errors\": "
     "{\"compute\": 0.01}}",
     ""},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"server-optimizer\": 3}",
     "server-optimizer has to be"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"threads\": 1.5}",
     "threads has to be a whole number"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"messages-first\": 1}",
     "messages-first has to be true or false"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"slice\": 4}", "slice has to be a time"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"refill\": \"0.2 ms\"}",
     "refill needs a \"slice\""},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"turns\": 0.9}",
     "turns has to be a number from 1"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"crowding\": 0.5}",
     "crowding has to be a number from 1"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"errors\": {\"layers\": 1}}",
     "errors.layers is not known"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"errors\": {\"message\": 2}}",
     "errors.message has to be a number from 0 to 1"},
    {"{\"measured\": {\"layers\": \"36 steps\"}, \"batch\": 8, \"layers\": [" LAYER "], " REST "}",
     ""},
    {"{\"measured\": {\"layers\": 36}, \"batch\": 8, \"layers\": [" LAYER "], " REST "}",
     "measured has to be an object of texts"},
    {"{\"measured\": \"all\", \"batch\": 8, \"layers\": [" LAYER "], " REST "}",
     "measured has to be an object of texts"},
    {"[]", "has no JSON object"},
    {"{", "cannot be read"},
    {"{\"layers\": [" LAYER "], " REST "}", "batch is missing"},
    {"{\"batch\": 0, \"layers\": [" LAYER "], " REST "}", "batch has to be a number from 1"},
    {"{\"batch\": 1.5, \"layers\": [" LAYER "], " REST "}", "has to be a whole number"},
    {"{\"batch\": 8, " REST "}", "layers is missing"},
    {"{\"batch\": 8, \"layers\": [], " REST "}", "layers has to be a list"},
    {"{\"batch\": 8, \"layers\": [{\"parameters\": 1, \"forward\": \"1 ms\"}], " REST "}",
     "layers[0].backward is missing"},
    {"{\"batch\": 8, \"layers\": [{\"parameters\": -1, \"forward\": \"1 ms\", \"backward\": "
     "\"1 ms\"}], " REST "}",
     "layers[0].parameters has to be a number from 0"},
    {"{\"batch\": 8, \"layers\": [{\"parameters\": 1, \"forward\": \"-1 ms\", \"backward\": "
     "\"1 ms\"}], " REST "}",
     "layers[0].forward has to be a time of at least 0"},
    {"{\"batch\": 8, \"layers\": [{\"parameters\": 1, \"forward\": 1, \"backward\": \"1 "
     "ms\"}], " REST "}",
     "layers[0].forward has to be a time of at least 0 with its unit"},
    {"{\"batch\": 8, \"layers\": [{\"parameters\": 0, \"forward\": \"1 s\", \"backward\": "
     "\"1 ms\"}], " REST "}",
     "layers have no parameters"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], \"optimizer\": \"1 Gbit/s\", \"message\": "
     "\"1 us\"}",
     "optimizer has to be a time"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"sum\": \"3 s\"}",
     "sum has to be a bandwidth"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"sum\": \"0 GB/s\"}",
     "sum has to be above 0"},
    {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"sums\": \"3 GB/s\"}",
     "sums is not known"},
};

static void test_costs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(costs_cases) / sizeof(costs_cases[0]); i++) {
        check(false, costs_cases[i].text, costs_cases[i].why);
    }
}

static void a_rate_has_to_leave_time_for_a_step(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"images-per-s\": 0}",
         "images-per-s has to be a number from"},
        {"{\"batch\": 8, \"layers\": [" LAYER "], \"optimizer\": \"1 s\", \"message\": \"1 us\", "
         "\"images-per-s\": 8}",
         "images-per-s leaves a step no time beside optimizer and spread"},
        {"{\"batch\": 8, \"layers\": [{\"parameters\": 1, \"forward\": \"0 s\", \"backward\": \"0 "
         "s\"}], " REST ", \"images-per-s\": 8}",
         "images-per-s cannot be shared out among layers that take no time"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(false, cases[i].text, cases[i].why);
    }
}

/* 8 images in 0.5 s, a third of which is forward, as in the layer; a spread has a part of it. */
static void a_rate_of_one_worker_stands_for_its_step(void **state)
{
    (void)state;
    check(false, "{\"batch\": 8, \"layers\": [" LAYER "], " REST ", \"images-per-s\": 16}", "");
    assert_true(fabs(costs.layers[0].forward_s - 0.5 / 3) < 1e-12);
    assert_true(fabs(costs.layers[0].backward_s - 1 / 3.0) < 1e-12);
    check(false,
          "{\"batch\": 8, \"layers\": [" LAYER "], " REST
          ", \"images-per-s\": 16, \"spread\": {\"distribution\": \"exponential\", \"mean\": \"50 "
          "ms\"}}",
          "");
    assert_true(fabs(costs.layers[0].forward_s - 0.15) < 1e-12);
    assert_true(fabs(costs.spread.mean_s - 0.05) < 1e-12);
}

static void test_spreads(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"batch\": 8, \"layers\": [" LAYER "], " REST
         ", \"spread\": {\"distribution\": \"normal\"}}",
         "spread.distribution has to be exponential, uniform or pareto"},
        {"{\"batch\": 8, \"layers\": [" LAYER "], " REST
         ", \"spread\": {\"distribution\": \"uniform\", \"least\": \"2 s\", \"most\": \"1 s\"}}",
         "spread.most is less than least"},
        {"{\"batch\": 8, \"layers\": [" LAYER "], " REST
         ", \"spread\": {\"distribution\": \"pareto\", \"least\": \"2 s\", \"shape\": 1}}",
         "spread.shape has to be a number from 1.01"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(false, cases[i].text, cases[i].why);
    }
}

static void test_networks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\"}]}", ""},
        {"{\"measured\": {\"nic\": \"9 messages\"}, \"switches\": [{\"name\": \"s\"}], \"hosts\": "
         "[" HOST "\"1 us\"}]}",
         ""},
        {"{\"measured\": [], \"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\"}]}",
         "measured has to be an object of texts"},
        {"{\"errors\": {\"latency\": 0.1}, \"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST
         "\"1 us\", \"cores\": 2, \"machine\": \"m\"}, {\"name\": \"g\", \"switch\": \"s\", "
         "\"nic\": \"1 Gbit/s\", \"latency\": \"1 us\", \"cores\": 2}]}",
         ""},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\"}, " HOST "\"1 us\"}]}",
         "hosts[1].name makes a host h0, as hosts[0] does; hosts need names of their own"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" NAMED("h1", "1") ", " NAMED("h",
                                                                                        "11") "]}",
         "hosts[1].name makes a host h10, as hosts[0] does"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" NAMED("h1", "1") ", " NAMED("h",
                                                                                        "10") "]}",
         ""},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\", \"machine\": \"m\"}]}",
         "hosts[0].cores is missing: hosts share those of their machine"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\", \"cores\": 1.5}]}",
         "cores have to be whole numbers"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST
         "\"1 us\", \"cores\": 2, \"machine\": \"m\"}, " HOST
         "\"1 us\", \"cores\": 3, \"machine\": \"m\"}]}",
         "hosts[1].cores is not what another group says of that machine"},
        {"{\"errors\": {\"nic\": 0.1}, \"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST
         "\"1 us\"}]}",
         "errors.nic is not known"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"switch\": \"s\", "
         "\"nic\": \"0 Gbit/s\", \"latency\": \"1 us\"}]}",
         "hosts[0].nic has to be above 0\n"}, // it cannot be left out
        {"{\"hosts\": [" HOST "\"1 us\"}]}", "switches is missing"},
        {"{\"switches\": [{\"name\": \"s\"}]}", "hosts is missing"},
        {"{\"switches\": [{\"name\": \"t\"}], \"hosts\": [" HOST "\"1 us\"}]}",
         "hosts[0].switch names no switch: \"switches\" has no 's'"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [" HOST "\"1 GB/s\"}]}",
         "hosts[0].latency has to be a time"},
        {"{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"switch\": \"s\", "
         "\"nic\": \"25 Gb\", \"latency\": \"1 us\"}]}",
         "hosts[0].nic has to be a bandwidth"},
        {"{\"switches\": [{\"name\": \"s\"}, {\"name\": \"t\"}], \"hosts\": [" HOST "\"1 us\"}]}",
         "the network is cut: no way leads from switch s to switch t"},
        {"{\"switches\": [{\"name\": \"s\", \"to\": \"t\"}, {\"name\": \"t\", \"to\": \"s\"}], "
         "\"hosts\": [" HOST "\"1 us\"}]}",
         "is above itself"},
        {"{\"switches\": [{\"name\": \"s\", \"to\": \"u\"}], \"hosts\": [" HOST "\"1 us\"}]}",
         "switches[0].to names no switch: \"switches\" has no 'u'"},
        {"{\"switches\": [{\"name\": \"s\"}, {\"name\": \"s\"}], \"hosts\": [" HOST "\"1 us\"}]}",
         "switches[1].name is that of another switch"},
        {"{\"switches\": [{\"name\": \"s\", \"latency\": \"1 us\"}], \"hosts\": [" HOST
         "\"1 us\"}]}",
         "switches[0].to is missing"},
        {"{\"switches\": [{\"name\": \"s\"}, {\"name\": \"t\", \"to\": \"s\", \"bandwidth\": "
         "\"1 GB/s\", \"oversubscription\": 2}], \"hosts\": [" HOST "\"1 us\"}]}",
         "exclude each other"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(true, cases[i].text, cases[i].why);
    }
}

static void test_what_no_json_begins_with_is_named(void **state)
{
    static const char mark[] = "begins with a byte order mark of UTF-8 (bytes EF BB BF); save it";
    (void)state;
    for (int is_network = 0; is_network < 2; is_network++) {
        check(is_network, "\xEF\xBB\xBF{}", mark);
        check(is_network, "\xEF\xBB{}", "cannot be read: line 1: unable to decode byte 0xef");
        check(is_network, "", "is empty; see docs/PREDICT-FILES.md");
    }
    captured_log_begin();
    json_t *object = NULL;
    assert_int_equal(fields_load("/dev/null", &object), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "/dev/null is empty"));
}

/* Both ways to write a bandwidth are the same, and both are printed back. */
static void test_units(void **state)
{
    (void)state;
    static const char *const wrong[] = {"25", "25 Gbit", "25 gbit/s", "-1 GB/s", "GB/s", "1  GB/s"};
    double bits = 0, bytes = 0;
    char text[QUANTITY_BYTES];
    assert_true(quantity_parse("25 Gbit/s", QUANTITY_BANDWIDTH, &bits));
    assert_true(quantity_parse("3.125GB/s", QUANTITY_BANDWIDTH, &bytes));
    assert_true(fabs(bits / bytes - 1) < 1e-12);
    quantity_format(bits, QUANTITY_BANDWIDTH, text);
    assert_string_equal(text, "25 Gbit/s (3.125 GB/s)");
    quantity_format(30e-6, QUANTITY_TIME, text);
    assert_string_equal(text, "30 us");
    static const double written[] = {1.234567e-9, 30e-6, 0.9999999, 1234.567};
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        quantity_write(written[i], QUANTITY_TIME, text);
        assert_true(quantity_parse(text, QUANTITY_TIME, &bits));
        assert_true(fabs(bits / written[i] - 1) < 1e-6);
        quantity_write(1e9 * written[i], QUANTITY_BANDWIDTH, text);
        assert_true(quantity_parse(text, QUANTITY_BANDWIDTH, &bytes));
        assert_true(fabs(bytes / (1e9 * written[i]) - 1) < 1e-6);
    }
    quantity_write(0, QUANTITY_TIME, text);
    assert_string_equal(text, "0 s");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(quantity_parse(wrong[i], QUANTITY_BANDWIDTH, &bits));
    }
}

/* Two racks below a core: ways, bandwidths from oversubscription, places. */
static void test_ways(void **state)
{
    (void)state;
    char path[32];
    struct network network;
    struct network_route route;
    uint32_t hosts[6];
    write_file(
        "{\"switches\": [{\"name\": \"a\", \"to\": \"core\", \"oversubscription\": 2, "
        "\"latency\": \"3 us\"}, {\"name\": \"core\"}, {\"name\": \"b\", \"to\": \"core\"}], "
        "\"hosts\": [{\"name\": \"h\", \"count\": 4, \"switch\": \"a\", \"nic\": \"1 GB/s\", "
        "\"latency\": \"1 us\"}, {\"name\": \"g\", \"switch\": \"b\", \"nic\": \"1 GB/s\", "
        "\"latency\": \"5 us\", \"memory-latency\": \"2 us\"}]}",
        path);
    assert_int_equal(network_read(path, &network), STATUS_OK);
    unlink(path);
    network_find_route(&network, 0, 1, &route);
    assert_int_equal(route.link_count, 2);
    assert_true(fabs(route.latency_s - 2e-6) < 1e-12);
    network_find_route(&network, 0, 4, &route);
    assert_int_equal(route.link_count, 4);
    assert_true(fabs(route.latency_s - 9e-6) < 1e-12);
    assert_string_equal(network.links[route.links[1]].name, "a up");
    assert_true(fabs(network.links[route.links[1]].bandwidth - 2e9) < 1);
    assert_true(network.links[route.links[1]].may_saturate);
    network_find_route(&network, 4, 4, &route);
    assert_int_equal(route.link_count, 1);
    assert_true(fabs(route.latency_s - 2e-6) < 1e-12);
    assert_int_equal(network_place(&network, 4, 2, hosts), STATUS_OK);
    assert_int_equal(hosts[3], 3);
    assert_int_equal(hosts[4], 0); // servers beside workers
    assert_int_equal(hosts[5], 1);
    captured_log_begin();
    assert_int_equal(network_place(&network, 6, 0, hosts), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "has places for 5 workers"));
    network_finish(&network);
}

/* What may be left out is read, too. */
static void every_cost_is_taken(void **state)
{
    (void)state;
    char path[32];
    write_file("{\"batch\": 8, \"layers\": [" LAYER "], \"optimizer\": \"1 ms\","
               "\"server-optimizer\": \"13 us\", \"message\": \"2 us\", \"message-bandwidth\": \"3 "
               "GB/s\", \"sum\": \"4 GB/s\","
               "\"encode\": \"6 GB/s\", \"decode\": \"7 GB/s\","
               "\"threads\": 2, \"input\": \"8 us\", \"carriage-message\": \"9 us\","
               "\"carriage\": \"10 GB/s\", \"messages-first\": true, \"slice\": \"11 us\", "
               "\"refill\": \"12 us\", \"crowding\": 1.2,"
               "\"turns\": 1.3, \"whole-layers\": true}",
               path);
    assert_int_equal(cost_batches_take(path, 0, &costs), STATUS_OK);
    unlink(path);
    const double times[] = {costs.optimizer_s, costs_server_optimizer_s(&costs), costs.message_s,
                            costs.input_s,     costs.carriage_message_s,         costs.slice_s,
                            costs.refill_s};
    const double times_us[] = {1000, 13, 2, 8, 9, 11, 12};
    const double bandwidths[] = {costs.message_bandwidth, costs.sum_bandwidth,
                                 costs.encode_bandwidth, costs.decode_bandwidth,
                                 costs.carriage_bandwidth};
    const double gigabytes[] = {3, 4, 6, 7, 10};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        assert_true(fabs(1e6 * times[i] - times_us[i]) < 1e-6);
    }
    for (size_t i = 0; i < sizeof(bandwidths) / sizeof(bandwidths[0]); i++) {
        assert_true(fabs(1e-9 * bandwidths[i] - gigabytes[i]) < 1e-6);
    }
    assert_int_equal(costs.threads, 2);
    assert_true(costs.messages_first && costs.crowding == 1.2 && costs.turns == 1.3);
    assert_true(costs.whole_layers);
}

/* A layer of two buckets and a half, below one without parameters, and above one of a half. */
static void whole_layers_are_of_the_bucket_of_their_end(void **state)
{
    (void)state;
    const struct span buckets[] = {{200, 100}, {100, 100}, {0, 100}}; // from the output
    costs = (struct costs){.layers = {{50, 1, 10}, {250, 2, 20}, {0, 4, 40}}, .layer_count = 3};
    const double shared[][2] = {{2.4, 24}, {2.4, 24}, {2.2, 22}},
                 whole[][2] = {{6, 60}, {0, 0}, {1, 10}};
    for (size_t i = 0; i < 6; i++) {
        double forward_s = 0, backward_s = 0;
        costs.whole_layers = i >= 3;
        const double *want = costs.whole_layers ? whole[i % 3] : shared[i % 3];
        costs_of_bucket(&costs, buckets[i % 3], &forward_s, &backward_s);
        if (fabs(forward_s - want[0]) > 1e-9 || fabs(backward_s - want[1]) > 1e-9) {
            fail_msg("%zu: %g and %g, not %g and %g", i, forward_s, backward_s, want[0], want[1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(a_rate_has_to_leave_time_for_a_step),
        cmocka_unit_test(a_rate_of_one_worker_stands_for_its_step),
        cmocka_unit_test(test_spreads),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(every_cost_is_taken),
        cmocka_unit_test(test_what_no_json_begins_with_is_named),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(whole_layers_are_of_the_bucket_of_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
