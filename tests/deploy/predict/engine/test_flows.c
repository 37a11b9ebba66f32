/* Rates of flows, which are reckoned anew for some of them at a time, against progressive filling
 * of all links for all flows. */
#include "deploy/predict/engine/flows.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <float.h>
#include <stdio.h>
#include <string.h>

#define HOSTS     24
#define FLOWS_MAX 200
#define EVENTS    3000
#define NETWORKS  60

/* Two racks with links of different speeds, that have a part of what is below them. */
static const char racks[] =
    "{\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\","
    " \"oversubscription\": 3}, {\"name\": \"b\", \"to\": \"core\", \"oversubscription\": 1}],"
    " \"hosts\": [{\"name\": \"a\", \"count\": 8, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\","
    " \"switch\": \"a\", \"memory\": \"2 GB/s\"}, {\"name\": \"q\", \"count\": 8, \"nic\":"
    " \"2.5 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"a\", \"memory\": \"1 GB/s\"},"
    " {\"name\": \"b\", \"count\": 8, \"nic\": \"25 Gbit/s\", \"latency\": \"0 s\", \"switch\": "
    "\"b\","
    " \"memory\": \"3 GB/s\"}]}";

/* The same, with connections that are slow by themselves, and some that lose packets. */
static const char capped[] =
    "{\"flow\": \"3 Gbit/s\", \"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"a\","
    " \"count\": 12, \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\","
    " \"memory\": \"2 GB/s\"}, {\"name\": \"b\", \"count\": 12, \"nic\": \"4 Gbit/s\", \"latency\":"
    " \"50 us\", \"loss\": 0.001, \"switch\": \"s\", \"memory\": \"2 GB/s\"}]}";

static const char star[] =
    "{\"switches\": [{\"name\": \"s\"}], \"hosts\": [{\"name\": \"a\", \"count\": 24, \"nic\":"
    " \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\", \"memory\": \"2 GB/s\"}]}";

struct plain_flow {
    struct network_route route;
    double each; // flows that it stands for
    double left, rate;
    bool is_used, is_frozen;
};

static struct plain_flow plain[FLOWS_MAX]; // by their tokens
static bool stands_for_several;            // one in three does
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

static bool uses(const struct plain_flow *flow, uint32_t link)
{
    for (uint32_t i = 0; i < flow->route.link_count; i++) {
        if (flow->route.links[i] == link) {
            return true;
        }
    }
    return false;
}

/* The share of each flow of a link that has no rate yet; DBL_MAX: there is none. */
static double share_of(const struct network *network, uint32_t link)
{
    double left = network_free(&network->links[link]);
    double count = 0;
    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        if (plain[i].is_used && uses(&plain[i], link)) {
            count += plain[i].is_frozen ? 0 : plain[i].each;
            left -= plain[i].is_frozen ? plain[i].each * plain[i].rate : 0;
        }
    }
    return count > 0 && network->links[link].may_saturate ? left / count : DBL_MAX;
}

/* Gives the flow, or all flows of the link, that have the least share. False: all have a rate. */
static bool freeze_next(const struct network *network)
{
    double least = DBL_MAX;
    uint32_t flow = FLOWS_MAX, link = 0;
    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        double most = plain[i].route.flow_bandwidth;
        if (plain[i].is_used && !plain[i].is_frozen && most > 0 && most < least) {
            least = most;
            flow = i;
        }
    }
    for (uint32_t i = 0; i < network->link_count; i++) {
        double share = share_of(network, i);
        if (share < least) {
            least = share;
            link = i;
            flow = FLOWS_MAX;
        }
    }
    for (uint32_t i = 0; i < FLOWS_MAX && least < DBL_MAX; i++) {
        bool is_next = flow < FLOWS_MAX ? i == flow : uses(&plain[i], link);
        if (is_next && plain[i].is_used && !plain[i].is_frozen) {
            plain[i].rate = least;
            plain[i].is_frozen = true;
        }
    }
    return least < DBL_MAX;
}

/* Seconds until the first flow ends; DBL_MAX: none does. */
static double find_next_end(const struct network *network)
{
    double next_s = DBL_MAX;
    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        plain[i].is_frozen = false;
    }
    while (freeze_next(network)) {
    }
    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        if (plain[i].is_used && plain[i].left / plain[i].rate < next_s) {
            next_s = plain[i].left / plain[i].rate;
        }
    }
    return next_s;
}

/* Most go to the first hosts. */
static void begin_one(const struct network *network, struct flows *flows, double now,
                      uint32_t targets)
{
    uint32_t token = draw(FLOWS_MAX), from = draw(HOSTS), to = draw(draw(4) > 0 ? targets : HOSTS);
    if (plain[token].is_used) {
        return;
    }
    struct plain_flow *flow = &plain[token];
    *flow = (struct plain_flow){.each = 1, .left = 1e6 * (1 + draw(1000)), .is_used = true};
    if (stands_for_several && draw(3) == 0) {
        flow->each = 1 + draw(20) / 4.0;
    }
    network_find_route(network, from, to, &flow->route);
    uint32_t class = flows_class_of(flows, &flow->route, flow->each);
    assert_true(class != UINT32_MAX);
    assert_true(flows_begin(flows, now, class, flow->left, token, false));
}

static void go_on(double seconds)
{
    for (uint32_t i = 0; i < FLOWS_MAX; i++) {
        plain[i].left -= plain[i].is_used ? plain[i].rate * seconds : 0;
    }
}

static struct flows *open_flows(const char *text, struct network *network)
{
    struct flows *flows = NULL;
    predictions_read_network(text, network);
    assert_int_equal(flows_create(network, &flows), STATUS_OK);
    return flows;
}

/* At each event some flows begin, or the next one ends, and then more begin than end or fewer. */
static void play(const char *text, uint32_t events, uint32_t targets)
{
    struct network network;
    struct flows *flows = open_flows(text, &network);
    double now = 0;
    memset(plain, 0, sizeof(plain));
    for (uint32_t event = 0; event < events; event++) {
        bool grows = event / 300 % 2 == 0;
        if (draw(grows ? 2 : 8) == 0) {
            begin_one(&network, flows, now, targets);
        }
        assert_true(flows_share(flows, now));
        double seconds = find_next_end(&network), end = flows_next_end(flows);
        if (seconds >= DBL_MAX) {
            assert_true(end >= DBL_MAX);
            continue;
        }
        predictions_check("next end", event, end, now + seconds, 1e-6);
        if (draw(4) == 0) { // somebody begins before it
            go_on(seconds / 2);
            now += seconds / 2;
            begin_one(&network, flows, now, targets);
            continue;
        }
        go_on(seconds);
        uint32_t token = flows_end_next(flows, end);
        assert_true(plain[token].is_used && plain[token].left < 1e-3 * plain[token].rate);
        plain[token].is_used = false;
        now = end;
    }
    flows_destroy(flows);
    network_finish(&network);
}

static void flows_in_racks_have_max_min_rates(void **unused)
{
    (void)unused;
    state = 1;
    play(racks, EVENTS, HOSTS);
}

static void flows_with_limits_of_their_own_have_max_min_rates(void **unused)
{
    (void)unused;
    state = 1;
    play(capped, EVENTS, HOSTS);
}

static void flows_between_equal_hosts_have_max_min_rates(void **unused)
{
    (void)unused;
    state = 1;
    play(star, EVENTS, HOSTS);
}

/* Each worker has flows to some servers, and each server those of nearly all. */
static void flows_of_many_to_few_have_max_min_rates(void **unused)
{
    (void)unused;
    state = 2;
    play(star, EVENTS, 1);
    play(star, EVENTS, 3);
    play(racks, EVENTS, 3);
    play(capped, EVENTS, 3);
}

static void begin_between(const struct network *network, struct flows *flows, double now,
                          uint32_t from, uint32_t to, double bytes)
{
    struct network_route route;
    network_find_route(network, from, to, &route);
    assert_true(flows_begin(flows, now, flows_class_of(flows, &route, 1), bytes, from, false));
}

/* Hosts a, b and c send to t, at 2, 5 and 5.5 Gbit/s. Then b sends elsewhere, too, and a no longer:
 * they have 6 and 1, as much as before together. So the link of t, whose flows have not changed, is
 * full still, but a has more there than c, which is limited by it. Both have 5.75. */
static void flows_share_a_full_link_anew_when_one_takes_what_another_leaves(void **unused)
{
    (void)unused;
    enum { A, B, C, T, U };
    static const char text[] =
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"a\", \"nic\": \"6 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"b\", \"nic\": \"5 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"c\", \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"t\", \"nic\": \"12.5 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"u\", \"nic\": \"100 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}";
    const double rate = 1e9 / 8;
    struct network network;
    struct flows *flows = open_flows(text, &network);
    begin_between(&network, flows, 0, A, T, 100 * rate);
    begin_between(&network, flows, 0, B, T, 100 * rate);
    begin_between(&network, flows, 0, C, T, (5.5 + 5.75) * rate);
    begin_between(&network, flows, 0, A, U, 2 * rate);
    begin_between(&network, flows, 0, A, U, 2 * rate);
    assert_true(flows_share(flows, 0));
    for (uint32_t i = 0; i < 2; i++) {
        predictions_check("end of a's others", i, flows_next_end(flows), 1, 1e-9);
        assert_int_equal(flows_end_next(flows, 1), A);
    }
    for (uint32_t i = 0; i < 4; i++) {
        begin_between(&network, flows, 1, B, U, 100 * rate);
    }
    assert_true(flows_share(flows, 1));
    predictions_check("end of c's", 0, flows_next_end(flows), 2, 1e-9);
    assert_int_equal(flows_end_next(flows, flows_next_end(flows)), C);
    flows_destroy(flows);
    network_finish(&network);
}

/* Of t's 10 kbit/s hosts b and a have 7 and 2, until a no longer sends to u as well: then b has
 * what a's 4 leave. The limit of flows is far above any link, so beside it all digits of what a
 * link carries would be lost. */
static void a_limit_of_flows_that_none_reaches_changes_nothing(void **unused)
{
    (void)unused;
    enum { A, B, T, U };
    static const char text[] =
        "{\"flow\": \"9999999999 TB/s\", \"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"a\", \"nic\": \"4 kbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"b\", \"nic\": \"7 kbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"t\", \"nic\": \"10 kbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"u\", \"nic\": \"100 kbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}";
    const double rate = 125;
    struct network network;
    struct flows *flows = open_flows(text, &network);
    begin_between(&network, flows, 0, B, T, (7 + 6) * rate);
    begin_between(&network, flows, 0, A, T, 100 * rate);
    begin_between(&network, flows, 0, A, U, 2 * rate);
    assert_true(flows_share(flows, 0));
    predictions_check("end of a's other", 0, flows_next_end(flows), 1, 1e-9);
    assert_int_equal(flows_end_next(flows, 1), A);
    assert_true(flows_share(flows, 1));
    predictions_check("end of b's", 0, flows_next_end(flows), 2, 1e-9);
    flows_destroy(flows);
    network_finish(&network);
}

static void begin_for(const struct network *network, struct flows *flows, uint32_t from,
                      double each, double bytes)
{
    struct network_route route;
    network_find_route(network, from, 2, &route);
    assert_true(flows_begin(flows, 0, flows_class_of(flows, &route, each), bytes, from, false));
}

/* Two hosts send to a third, one of them by a flow that stands for two and a half: 3.5 shares of a
 * link, of which each flow has one, and its own link carries as many. */
static void flows_that_stand_for_several_have_the_shares_of_these(void **unused)
{
    (void)unused;
    enum { A, B };
    static const char text[] =
        "{\"switches\": [{\"name\": \"s\"}], \"hosts\": ["
        "{\"name\": \"a\", \"nic\": \"5 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"b\", \"nic\": \"10 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"},"
        "{\"name\": \"t\", \"nic\": \"7 Gbit/s\", \"latency\": \"0 s\", \"switch\": \"s\"}]}";
    const double rate = 1e9 / 8;
    struct network network;
    struct flows *flows = open_flows(text, &network);
    begin_for(&network, flows, A, 2.5, 4 * rate);
    assert_true(flows_share(flows, 0));
    predictions_check("a alone", 0, flows_next_end(flows), 2, 1e-9);
    begin_for(&network, flows, B, 1, 2 * rate);
    assert_true(flows_share(flows, 0));
    predictions_check("b beside a", 0, flows_next_end(flows), 1, 1e-9);
    assert_int_equal(flows_end_next(flows, 1), B);
    assert_true(flows_share(flows, 1));
    predictions_check("a alone again", 0, flows_next_end(flows), 2, 1e-9);
    flows_destroy(flows);
    network_finish(&network);
}

/* Hosts of three kinds, below one to three switches. */
static void draw_network(char *text, size_t size)
{
    static const char *const nics[] = {"1 Gbit/s", "2.5 Gbit/s", "10 Gbit/s", "10.1 Gbit/s",
                                       "25 Gbit/s"};
    static const char *const flow_limits[] = {"", "", "\"flow\": \"2 Gbit/s\","};
    static const char *const switches[] = {"core", "a", "b"};
    uint32_t nic_count = sizeof(nics) / sizeof(*nics), below = 1 + draw(3);
    (void)snprintf(text, size,
                   "{%s\"switches\": [{\"name\": \"core\"}, {\"name\": \"a\", \"to\": \"core\","
                   " \"oversubscription\": %u}, {\"name\": \"b\", \"to\": \"core\","
                   " \"oversubscription\": %u}], \"hosts\": [",
                   flow_limits[draw(3)], 1 + draw(6), 1 + draw(3));
    for (uint32_t kind = 0; kind < 3; kind++) {
        size_t length = strlen(text);
        (void)snprintf(text + length, size - length,
                       "{\"name\": \"%c\", \"count\": %u, \"nic\": \"%s\", \"latency\": \"0 s\","
                       " \"switch\": \"%s\", \"memory\": \"%u GB/s\"}%s",
                       (char)('p' + kind), HOSTS / 3, nics[draw(nic_count)], switches[kind % below],
                       1 + draw(3), kind < 2 ? "," : "]}");
    }
}

static void flows_in_many_networks_have_max_min_rates(void **unused)
{
    (void)unused;
    char text[1024];
    for (uint32_t i = 0; i < NETWORKS; i++) {
        state = 1000 + i;
        draw_network(text, sizeof(text));
        play(text, EVENTS / 10, 1 + draw(HOSTS));
    }
}

static void flows_that_stand_for_several_have_max_min_rates_in_many_networks(void **unused)
{
    stands_for_several = true;
    flows_in_many_networks_have_max_min_rates(unused);
    stands_for_several = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_in_racks_have_max_min_rates),
        cmocka_unit_test(flows_with_limits_of_their_own_have_max_min_rates),
        cmocka_unit_test(flows_between_equal_hosts_have_max_min_rates),
        cmocka_unit_test(flows_of_many_to_few_have_max_min_rates),
        cmocka_unit_test(flows_share_a_full_link_anew_when_one_takes_what_another_leaves),
        cmocka_unit_test(a_limit_of_flows_that_none_reaches_changes_nothing),
        cmocka_unit_test(flows_that_stand_for_several_have_the_shares_of_these),
        cmocka_unit_test(flows_in_many_networks_have_max_min_rates),
        cmocka_unit_test(flows_that_stand_for_several_have_max_min_rates_in_many_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
