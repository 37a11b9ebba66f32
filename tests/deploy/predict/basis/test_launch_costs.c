/* What starting a job costs. */
#include "deploy/predict/basis/launch_costs.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct launch_costs costs = {1, 2, 0.3, 0.01, true};

static void check(const char *network_text, uint32_t workers, uint32_t servers, double want)
{
    struct network network;
    double start_s = 0;
    predictions_read_network(network_text, &network);
    assert_int_equal(launch_costs_find(&costs, &network, workers, servers, &start_s), STATUS_OK);
    predictions_check("start", workers, start_s, want, 1e-9);
    network_finish(&network);
}

#define NETWORK(more)                                                                              \
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"h\", \"count\": 4, \"switch\": " \
    "\"s\", "                                                                                      \
    "\"nic\": \"1 Gbit/s\", \"latency\": \"1 us\"" more "}]}"

static void hosts_start_their_processes_at_once(void **state)
{
    (void)state;
    check(NETWORK(""), 1, 0, 3.31);
    check(NETWORK(""), 4, 0, 3.34);
    check(NETWORK(""), 4, 2, 3.36);
    check(NETWORK(", \"workers\": 8, \"cores\": 16"), 32, 0, 3.62);
}

static void processes_of_one_core_take_turns(void **state)
{
    (void)state;
    check(NETWORK(", \"workers\": 8, \"cores\": 2"), 8, 0, 3 + 4 * 0.3 + 0.08);
    check(NETWORK(", \"workers\": 8, \"cores\": 2, \"machine\": \"m\""), 32, 0,
          3 + 16 * 0.3 + 0.32);
}

static void what_is_wrong_is_refused_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"agents\": \"-1 s\"}", "a file: launch.agents has to be a time of at least 0"},
        {"{\"job\": 1}", "launch.job has to be a time of at least 0 with its unit"},
        {"{\"process\": \"1 GB/s\"}", "launch.process has to be a time"},
        {"{\"host\": \"1 s\"}", "launch.host is not known"},
        {"[]", "launch is no JSON object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct launch_costs read;
        json_t *object = json_loads(cases[i].text, 0, NULL);
        captured_log_begin();
        assert_int_equal(launch_costs_read("a file", object, &read), STATUS_INVALID);
        assert_non_null(strstr(captured_log_end(), cases[i].why));
        json_decref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_start_their_processes_at_once),
        cmocka_unit_test(processes_of_one_core_take_turns),
        cmocka_unit_test(what_is_wrong_is_refused_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
