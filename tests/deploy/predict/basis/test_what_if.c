/* Tests of changes that predictions are made with: what they change, and what is refused. */
#include "deploy/predict/basis/what_if.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static struct costs costs;
static struct job job;

static void refused(const char *text, const char *why)
{
    struct what_if what_if;
    char said[256] = "";
    if (what_if_parse(text, &what_if, said, sizeof(said)) || strstr(said, why) == NULL) {
        fail_msg("%s: '%s' instead of '%s'", text, said, why);
    }
}

/* Two hosts below a switch with a fourth of their links, and that below another one. */
static struct basis *changed(const char *text)
{
    struct network_host hosts[2] = {
        {.name = "a", .above = 1, .up = 0, .down = 1, .memory = 2, .latency_s = 1e-5},
        {.name = "b", .above = 1, .up = 3, .down = 4, .memory = 5, .latency_s = 1e-5}};
    struct network_switch switches[2] = {
        {.name = "core", .above = NETWORK_NONE, .up = NETWORK_NONE, .down = NETWORK_NONE},
        {.name = "rack", .above = 0, .up = 6, .down = 7, .oversubscription = 4, .latency_s = 2e-6}};
    struct network_link links[8] = {{.bandwidth = 4e9}, {.bandwidth = 4e9}, {.bandwidth = 0},
                                    {.bandwidth = 4e9}, {.bandwidth = 4e9}, {.bandwidth = 0},
                                    {.bandwidth = 2e9}, {.bandwidth = 2e9}};
    const struct network network = {.hosts = hosts,
                                    .switches = switches,
                                    .links = links,
                                    .host_count = 2,
                                    .switch_count = 2,
                                    .link_count = 8};
    struct what_if what_if;
    char why[256];
    costs = (struct costs){.layers = {{10, 1e-3, 2e-3}}, .layer_count = 1, .message_s = 1e-5};
    costs.spread = (struct spread){.kind = SPREAD_EXPONENTIAL, .mean_s = 1e-4};
    costs.layers[0].backward_spread = (struct spread){.kind = SPREAD_UNIFORM, .most_s = 1e-4};
    job = (struct job){.servers = 2, .bucket_mb = 1};
    struct basis *basis = basis_create(&job, &costs, &network);
    assert_non_null(basis);
    assert_true(what_if_parse(text, &what_if, why, sizeof(why)));
    assert_int_equal(what_if_apply(&what_if, basis), STATUS_OK);
    return basis;
}

static void test_factors_and_values_change_what_they_name(void **state)
{
    (void)state;
    struct basis *basis = changed("compute=0.5x,message=30us,latency=3x,servers=2x,bucket-mb=4");
    assert_float_equal(basis->costs.layers[0].forward_s, 0.5e-3, 1e-12);
    assert_float_equal(basis->costs.layers[0].backward_s, 1e-3, 1e-12);
    assert_float_equal(basis->costs.message_s, 30e-6, 1e-12);
    assert_float_equal(basis->network.hosts[1].latency_s, 3e-5, 1e-12);
    assert_float_equal(basis->network.switches[1].latency_s, 6e-6, 1e-12);
    assert_int_equal(basis->job.servers, 4);
    assert_float_equal(basis->job.bucket_mb, 4, 0);
    assert_float_equal(costs.layers[0].forward_s, 1e-3, 0); // what it was copied from stays
    basis_destroy(basis);
}

/* Layers' spreads are part of the step's, which computing that is quicker leaves as it is. */
static void test_spreads_of_layers_change_with_that_of_the_step(void **state)
{
    (void)state;
    struct basis *basis = changed("spread=3x,compute=0.5x");
    assert_float_equal(basis->costs.spread.mean_s, 3e-4, 1e-12);
    assert_float_equal(basis->costs.layers[0].backward_spread.most_s, 3e-4, 1e-12);
    assert_float_equal(basis->costs.layers[0].backward_s, 1e-3, 1e-12);
    basis_destroy(basis);
}

/* Servers that had none of their own have the workers' until then. */
static void test_servers_updates_change_alone(void **state)
{
    (void)state;
    struct basis *basis = changed("server-optimizer=3ms");
    double workers_s = basis->costs.optimizer_s;
    assert_float_equal(costs_server_optimizer_s(&basis->costs), 3e-3, 1e-9);
    assert_float_equal(workers_s, costs.optimizer_s, 0);
    basis_destroy(basis);
}

static void test_links_of_switches_follow_those_below(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double nic, rack;
    } cases[] = {{"nic=2x", 8e9, 4e9},
                 {"link=2x", 8e9, 4e9},
                 {"switch=2x", 4e9, 4e9},
                 {"nic=8Gbit/s", 1e9, 0.5e9},
                 {"nic=1GB/s", 1e9, 0.5e9}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct basis *basis = changed(cases[i].text);
        assert_float_equal(basis->network.links[4].bandwidth, cases[i].nic, 1);
        assert_float_equal(basis->network.links[6].bandwidth, cases[i].rack, 1);
        basis_destroy(basis);
    }
}

static void test_bad_changes_are_refused_by_name(void **state)
{
    (void)state;
    refused("lnk=2x", "'lnk' cannot be changed; did you mean link?");
    refused("zzzzzz=2x", "'zzzzzz' is none of: compute forward ");
    refused("zzzzzzzzzzzzzzzzzzzzzzzzzz=2x", " servers bucket-mb"); // the list is whole
    refused("link=2", "link needs a factor");
    refused("link=0x", "link needs a factor");
    refused("link", "link needs a factor");
    refused("link=-2x", "link needs a factor");
    refused("compute=1ms", "compute needs a factor");
    refused("latency=5", "or a time with its unit");
    refused("nic=5s", "or a bandwidth with its unit");
    refused("servers=0", "or a whole number from 1");
    refused("link=2x,", "'' is none of");
    refused("link=2x,link=3x", "changes link twice");
}

static void test_nothing_is_no_value_to_multiply(void **state)
{
    (void)state;
    struct basis *basis = changed("compute=1x");
    struct what_if what_if;
    char why[256];
    assert_true(what_if_parse("flow=2x", &what_if, why, sizeof(why)));
    captured_log_begin();
    enum status status = what_if_apply(&what_if, basis);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "the files give no flow that a factor could change"));
    basis_destroy(basis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors_and_values_change_what_they_name),
        cmocka_unit_test(test_spreads_of_layers_change_with_that_of_the_step),
        cmocka_unit_test(test_servers_updates_change_alone),
        cmocka_unit_test(test_links_of_switches_follow_those_below),
        cmocka_unit_test(test_bad_changes_are_refused_by_name),
        cmocka_unit_test(test_nothing_is_no_value_to_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
