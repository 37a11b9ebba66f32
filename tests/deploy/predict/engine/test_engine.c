/* When small messages come that have to keep their place behind large ones. */
#include "deploy/predict/engine/engine.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

#define LATENCY_S 20e-6
#define BYTES     1e6
#define RATE      1.25e9
#define KINDS     4

enum { LARGE, ASIDE, IN_TURN, LOWER };

static struct engine *engine;
static double came_s[KINDS];

static void deliver(void *owner, const struct packet *packet)
{
    (void)owner;
    came_s[packet->kind] = engine_now(engine);
}

static double no_work_s(void *owner, const struct packet *packet)
{
    (void)owner;
    (void)packet;
    return 0;
}

static double holds_nothing(double rate, double rtt_s)
{
    predictions_check("rate", 2, rate, RATE, 1e-9);
    predictions_check("round trip", 2, rtt_s, 2 * LATENCY_S, 1e-9);
    return 0;
}

static double holds_all(double rate, double rtt_s)
{
    (void)rate;
    (void)rtt_s;
    return 1e12;
}

static double holds_little(double rate, double rtt_s)
{
    (void)rate;
    (void)rtt_s;
    return 1;
}

/* A large packet, two small ones, and behind them a large one of a lower bucket. */
static void send_with(double (*fit)(double rate, double rtt_s), double buffer, bool has_keys)
{
    const double scales[2] = {1, 1};
    const uint32_t hosts[2] = {0, 1};
    const struct engine_model model = {.work_s = no_work_s,
                                       .deliver = deliver,
                                       .message_scale = scales,
                                       .work_scale = scales,
                                       .threads = 2,
                                       .fit_buffer = fit,
                                       .encrypts_far = has_keys};
    const struct packet packets[KINDS] = {{.to = 1, .kind = LARGE, .bytes = BYTES, .bucket = 1},
                                          {.to = 1, .kind = LOWER, .bytes = BYTES},
                                          {.to = 1, .kind = ASIDE},
                                          {.to = 1, .kind = IN_TURN, .is_in_turn = true}};
    predictions_star.send_buffer = buffer;
    memset(came_s, 0, sizeof(came_s));
    assert_int_equal(engine_create(&predictions_star, hosts, &model, &engine), STATUS_OK);
    engine_send(engine, &packets[0]);
    engine_send(engine, &packets[1]);
    engine_send_small(engine, &packets[2]);
    engine_send_small(engine, &packets[3]);
    while (engine_step(engine) == STATUS_OK) {
    }
    predictions_check("large", 2, came_s[LARGE], BYTES / RATE + LATENCY_S, 1e-6);
    predictions_check("lower", 2, came_s[LOWER], 2 * BYTES / RATE + LATENCY_S, 1e-6);
    predictions_check("aside", 2, came_s[ASIDE], LATENCY_S, 1e-6);
    engine_destroy(engine);
}

static void send_all(double (*fit)(double rate, double rtt_s), double buffer)
{
    send_with(fit, buffer, false);
}

static void a_small_one_comes_behind_what_its_connection_holds(void **state)
{
    (void)state;
    send_all(NULL, 1e9);
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LOWER], 1e-6);
    send_all(NULL, 0); // the lower bucket waits elsewhere
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LARGE], 1e-6);
}

static void a_connection_holds_what_its_path_takes(void **state)
{
    (void)state;
    send_all(holds_nothing, 1e9);
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LARGE], 1e-6);
    send_all(holds_all, 1);
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LOWER], 1e-6);
    send_all(holds_all, 0); // a network without buffers has none to fit
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LARGE], 1e-6);
}

/* What is handed over is held, however little the kernel holds. */
static void with_keys_a_small_one_comes_behind_the_next_one_as_well(void **state)
{
    (void)state;
    send_with(holds_little, 1, false);
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LARGE], 1e-6);
    send_with(holds_little, 1, true);
    predictions_check("in turn", 2, came_s[IN_TURN], came_s[LOWER], 1e-6);
}

/* Packets of the buckets 0, 1 and 2 are sent at once by a process that shares cores. Those are
 * carried, and so encrypted, at so many bytes per second, 0: in no time. came_s is by bucket. */
static void send_three(double carriage)
{
    const double scales[2] = {1, 1};
    const uint32_t hosts[2] = {0, 1};
    const struct engine_model model = {.work_s = no_work_s,
                                       .deliver = deliver,
                                       .message_scale = scales,
                                       .work_scale = scales,
                                       .threads = 2,
                                       .carriage_byte_s = carriage > 0 ? 1 / carriage : 0,
                                       .fit_buffer = holds_little,
                                       .encrypts_far = true};
    predictions_star.send_buffer = 1;
    predictions_star.hosts[0].cores = predictions_star.hosts[1].cores = 2;
    assert_int_equal(engine_create(&predictions_star, hosts, &model, &engine), STATUS_OK);
    for (uint32_t bucket = 0; bucket < 3; bucket++) {
        const struct packet packet = {.to = 1, .bytes = BYTES, .bucket = bucket, .kind = bucket};
        engine_send(engine, &packet);
    }
    while (engine_step(engine) == STATUS_OK) {
    }
    engine_destroy(engine);
    predictions_star.hosts[0].cores = predictions_star.hosts[1].cores = 0;
}

static void the_next_one_is_handed_over_when_one_is_encrypted(void **state)
{
    (void)state;
    send_three(0); // bucket 1 before bucket 2 is there
    predictions_check("bucket 1", 2, came_s[1], 2 * BYTES / RATE + LATENCY_S, 1e-6);
    predictions_check("bucket 2", 2, came_s[2], 3 * BYTES / RATE + LATENCY_S, 1e-6);
    send_three(10 * RATE);
    predictions_check("bucket 2", 2, came_s[2], 2 * BYTES / RATE + LATENCY_S, 1e-6);
    predictions_check("bucket 1", 2, came_s[1], 3 * BYTES / RATE + LATENCY_S, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_one_comes_behind_what_its_connection_holds),
        cmocka_unit_test(a_connection_holds_what_its_path_takes),
        cmocka_unit_test(with_keys_a_small_one_comes_behind_the_next_one_as_well),
        cmocka_unit_test(the_next_one_is_handed_over_when_one_is_encrypted),
    };
    return cmocka_run_group_tests(tests, predictions_open_star, predictions_close_star);
}
