/* Tests of places: what is chosen, what is refused. */
#include "common/transport/endpoints.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static const char place[] = "00000000000000ab ipc://@name tcp://10.0.0.7:40113";

static void the_same_host_is_reached_by_ipc_and_others_by_tcp(void **state)
{
    (void)state;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(endpoints_choose(place, TRANSPORT_AUTO, 0xab, endpoint), STATUS_OK);
    assert_string_equal(endpoint, "ipc://@name");
    assert_int_equal(endpoints_choose(place, TRANSPORT_AUTO, 0xac, endpoint), STATUS_OK);
    assert_string_equal(endpoint, "tcp://10.0.0.7:40113");
    assert_int_equal(endpoints_choose(place, TRANSPORT_TCP, 0xab, endpoint), STATUS_OK);
    assert_string_equal(endpoint, "tcp://10.0.0.7:40113");
}

static void ipc_and_shared_memory_to_another_host_are_refused(void **state)
{
    (void)state;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(endpoints_choose(place, TRANSPORT_IPC, 0xac, endpoint), STATUS_INVALID);
    assert_int_equal(endpoints_choose(place, TRANSPORT_SHM, 0xac, endpoint), STATUS_INVALID);
}

static void what_is_no_place_is_refused(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "ab tcp://h:1",
        "00000000000000zz tcp://h:1",
        "00000000000000ab0 tcp://h:1",
        "00000000000000ab http://h:1",
        "00000000000000ab  tcp://h:1",
        "00000000000000ab\ttcp://h:1",
    };
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(endpoints_choose(texts[i], TRANSPORT_TCP, 1, endpoint), STATUS_MALFORMED);
    }
    char large[2 * TRANSPORT_ENDPOINT_BYTES];
    snprintf(large, sizeof(large), "00000000000000ab tcp://%0300d", 1);
    assert_int_equal(endpoints_choose(large, TRANSPORT_TCP, 1, endpoint), STATUS_MALFORMED);
}

static void a_bound_place_leads_back_to_its_sockets(void **state)
{
    (void)state;
    const enum transport_kind kinds[] = {TRANSPORT_AUTO, TRANSPORT_TCP, TRANSPORT_IPC,
                                         TRANSPORT_SHM};
    const struct endpoints_wish loopback = {.address = "127.0.0.1", .port_range = ""};
    for (size_t i = 0; i < 4; i++) {
        struct transport *transport;
        char bound[ENDPOINTS_PLACE_BYTES], endpoint[TRANSPORT_ENDPOINT_BYTES];
        assert_int_equal(transport_create(&transport), STATUS_OK);
        assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
        assert_int_equal(endpoints_bind(transport, kinds[i], &loopback, bound), STATUS_OK);
        assert_int_equal(endpoints_choose(bound, kinds[i], transport_host_id(), endpoint),
                         STATUS_OK);
        assert_memory_equal(endpoint, i == 1 ? "tcp://127.0.0.1:" : "ipc:///proc/", 12);
        uint64_t peer;
        assert_int_equal(transport_connect(transport, endpoint, &peer), STATUS_OK);
        assert_int_equal(transport_send(transport, peer, "hi", 2, NULL), STATUS_OK);
        struct envelope envelope;
        enum status status;
        do {
            status = transport_receive(transport, 1000, &envelope);
        } while (status == STATUS_INTERRUPTED);
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(envelope.header_size, 2);
        envelope_release(&envelope);
        transport_destroy(transport, 0);
    }
}

/* Every user of the host could connect there. */
static void without_keys_there_is_no_tcp(void **state)
{
    (void)state;
    const struct endpoints_wish loopback = {.address = "127.0.0.1", .port_range = ""};
    struct transport *transport;
    char bound[ENDPOINTS_PLACE_BYTES];
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(endpoints_bind(transport, TRANSPORT_AUTO, &loopback, bound), STATUS_OK);
    assert_non_null(strstr(bound, " ipc:///proc/"));
    assert_null(strstr(bound, "tcp://"));
    captured_log_begin();
    enum status status = endpoints_bind(transport, TRANSPORT_TCP, &loopback, bound);
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(said, "cannot listen at tcp://127.0.0.1:* without keys"));
    transport_destroy(transport, 0);
}

static void hosts_are_read_from_endpoints(void **state)
{
    (void)state;
    char host[ENDPOINTS_HOST_BYTES];
    assert_int_equal(endpoints_host("tcp://node:1234", host), STATUS_OK);
    assert_string_equal(host, "node");
    assert_int_equal(endpoints_host("tcp://[::1]:1234", host), STATUS_OK);
    assert_string_equal(host, "::1");
    const char *const wrong[] = {"node:1", "tcp://node", "tcp://:1", "tcp://node:", "ipc://x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(endpoints_host(wrong[i], host), STATUS_INVALID);
    }
}

static void regions_of_a_place_are_found_and_do_not_disturb_its_endpoints(void **state)
{
    (void)state;
    char text[ENDPOINTS_PLACE_BYTES];
    snprintf(text, sizeof(text), "%s", place);
    const struct region_key keys[] = {
        {.process_id = 4711, .descriptor = 7, .size = 4194304, .nonce = 0x53d1a80c2b6f9e14},
        {.process_id = UINT64_MAX, .descriptor = INT32_MAX, .size = UINT64_MAX, .nonce = 1},
    };
    endpoints_add_region(text, &keys[0]);
    endpoints_add_region(text, &keys[1]);
    struct region_key key;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(endpoints_region(text, i, &key), STATUS_OK);
        assert_true(key.process_id == keys[i].process_id && key.descriptor == keys[i].descriptor);
        assert_true(key.size == keys[i].size && key.nonce == keys[i].nonce);
    }
    assert_int_equal(endpoints_region(text, 2, &key), STATUS_INVALID);
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    assert_int_equal(endpoints_choose(text, TRANSPORT_TCP, 0xab, endpoint), STATUS_OK);
    assert_string_equal(endpoint, "tcp://10.0.0.7:40113");
    assert_int_equal(
        endpoints_choose("00000000000000ab shm:1:2:3:4", TRANSPORT_TCP, 0xab, endpoint),
        STATUS_INVALID);
}

static void what_is_no_region_is_refused(void **state)
{
    (void)state;
    const char *const texts[] = {
        "00000000000000ab shm:",
        "00000000000000ab shm:1:2:3",
        "00000000000000ab shm:1:2:3:",
        "00000000000000ab shm:-1:2:3:4",
        "00000000000000ab shm:1:99999999999:3:4",
        "00000000000000ab shm:1:2:99999999999999999999999:4",
        "00000000000000ab shm:1:2:3:4x",
        "00000000000000ab shm:1: 2:3:4",
    };
    struct region_key key;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(endpoints_region(texts[i], 0, &key), STATUS_MALFORMED);
    }
}

static void the_name_of_who_listens_is_found_and_does_not_disturb_the_rest(void **state)
{
    (void)state;
    char text[ENDPOINTS_PLACE_BYTES], endpoint[TRANSPORT_ENDPOINT_BYTES];
    unsigned char id[SEALS_ID_BYTES], got[SEALS_ID_BYTES];
    const struct region_key key = {.process_id = 4711, .descriptor = 3, .size = 64, .nonce = 9};
    struct region_key got_key;
    for (unsigned i = 0; i < SEALS_ID_BYTES; i++) {
        id[i] = (unsigned char)(17 * i);
    }
    snprintf(text, sizeof(text), "%s", place);
    assert_int_equal(endpoints_seal(text, got), STATUS_INVALID);
    endpoints_add_seal(text, id);
    assert_string_equal(strstr(text, " seal:"), " seal:00112233445566778899aabbccddeeff");
    endpoints_add_region(text, &key);
    assert_int_equal(endpoints_seal(text, got), STATUS_OK);
    assert_memory_equal(got, id, sizeof(id));
    assert_int_equal(endpoints_region(text, 0, &got_key), STATUS_OK);
    assert_int_equal(endpoints_choose(text, TRANSPORT_AUTO, 0xac, endpoint), STATUS_OK);
    assert_string_equal(endpoint, "tcp://10.0.0.7:40113");
    assert_int_equal(endpoints_choose(text, TRANSPORT_IPC, 0xac, endpoint), STATUS_INVALID);
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    const char *const texts[] = {
        "00000000000000ab tcp://h:1 seal:",
        "00000000000000ab tcp://h:1 seal:0011",
        "00000000000000ab tcp://h:1 seal:00112233445566778899aabbccddeeff00",
        "00000000000000ab tcp://h:1 seal:00112233445566778899aabbccddeefg",
        "00000000000000ab tcp://h:1 seal:00112233445566778899aabbccddeef",
    };
    unsigned char id[SEALS_ID_BYTES];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(endpoints_seal(texts[i], id), STATUS_MALFORMED);
    }
}

static void of_all_addresses_others_are_told_the_one_that_leads_to_the_coordinator(void **state)
{
    (void)state;
    const char *const wildcards[] = {"0.0.0.0", "*", "::"};
    for (size_t i = 0; i < 3; i++) {
        struct transport *transport;
        char bound[ENDPOINTS_PLACE_BYTES];
        const struct endpoints_wish wish = {
            .address = wildcards[i], .port_range = "", .toward = "tcp://127.0.0.1:5555"};
        assert_true(endpoints_is_wildcard(wildcards[i]));
        assert_int_equal(transport_create(&transport), STATUS_OK);
        assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
        assert_int_equal(endpoints_bind(transport, TRANSPORT_TCP, &wish, bound), STATUS_OK);
        assert_non_null(strstr(bound, " tcp://127.0.0.1:"));
        transport_destroy(transport, 0);
    }
    assert_false(endpoints_is_wildcard("127.0.0.1"));
    assert_false(endpoints_is_wildcard("10.0.0.0"));
}

static void an_address_that_cannot_be_told_is_an_error_before_anything_listens(void **state)
{
    (void)state;
    struct transport *transport;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    const struct endpoints_wish wish = {
        .address = "0.0.0.0", .port_range = "", .toward = "tcp://no.such.host.invalid:1"};
    assert_int_equal(transport_create(&transport), STATUS_OK);
    assert_int_equal(transport_secure(transport, &test_insecure), STATUS_OK);
    captured_log_begin();
    enum status status = endpoints_bind_tcp(transport, &wish, endpoint);
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(said, "give one with --bind"));
    transport_destroy(transport, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_host_is_reached_by_ipc_and_others_by_tcp),
        cmocka_unit_test(ipc_and_shared_memory_to_another_host_are_refused),
        cmocka_unit_test(what_is_no_place_is_refused),
        cmocka_unit_test(a_bound_place_leads_back_to_its_sockets),
        cmocka_unit_test(without_keys_there_is_no_tcp),
        cmocka_unit_test(hosts_are_read_from_endpoints),
        cmocka_unit_test(regions_of_a_place_are_found_and_do_not_disturb_its_endpoints),
        cmocka_unit_test(what_is_no_region_is_refused),
        cmocka_unit_test(the_name_of_who_listens_is_found_and_does_not_disturb_the_rest),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(of_all_addresses_others_are_told_the_one_that_leads_to_the_coordinator),
        cmocka_unit_test(an_address_that_cannot_be_told_is_an_error_before_anything_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
