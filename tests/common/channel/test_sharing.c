/* Tests of what is lent: what lies in the region, to whom has mapped it, until it comes back. */
#include "common/channel/sharing.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define COUNT 1000

/* A side with a region, a peer that has mapped it, and one that has not. */
struct side {
    struct sharing sharing;
    struct region region;
    struct sharing_peer peer, stranger;
};

static void count_release(void *hint)
{
    ++*(int *)hint;
}

static void open_side(struct side *side)
{
    *side = (struct side){0};
    assert_int_equal(region_create(COUNT * sizeof(float), &side->region), STATUS_OK);
    side->sharing.own = &side->region;
    assert_true(sharing_begin_offer(&side->sharing, &side->peer));
    assert_int_equal(sharing_note_answer(&side->sharing, &side->peer, STATUS_OK), STATUS_OK);
}

static void close_side(struct side *side)
{
    sharing_return_all(&side->sharing);
    sharing_forget(&side->peer);
    sharing_finish(&side->sharing);
    region_destroy(&side->region);
}

static struct payload payload_at(const struct region *region, size_t offset, size_t size,
                                 int *released)
{
    return (struct payload){.bytes = (const unsigned char *)region->bytes + offset,
                            .size = size,
                            .release = count_release,
                            .hint = released};
}

static void a_loan_is_released_when_it_comes_back_and_once_only(void **state)
{
    (void)state;
    struct side side;
    int released = 0;
    open_side(&side);
    struct wire_loan loans[100];
    for (unsigned i = 0; i < 100; i++) {
        struct payload payload = payload_at(&side.region, (size_t)4 * i, 8, &released);
        assert_true(sharing_lend(&side.sharing, &side.peer, &payload, &loans[i]));
        assert_int_equal(loans[i].offset, 4 * i);
        for (unsigned k = 0; k < i; k++) {
            assert_int_not_equal(loans[k].ticket, loans[i].ticket);
        }
    }
    assert_int_equal(sharing_end_loan(&side.sharing, &side.stranger, loans[0].ticket),
                     STATUS_MALFORMED);
    for (unsigned i = 0; i < 99; i++) {
        assert_int_equal(sharing_end_loan(&side.sharing, &side.peer, loans[i].ticket), STATUS_OK);
        assert_int_equal(released, i + 1);
        assert_int_equal(sharing_end_loan(&side.sharing, &side.peer, loans[i].ticket),
                         STATUS_MALFORMED);
    }
    assert_int_equal(sharing_end_loan(&side.sharing, &side.peer, UINT32_MAX), STATUS_MALFORMED);
    close_side(&side);
    assert_int_equal(released, 100);
}

static void a_cancelled_loan_is_not_released(void **state)
{
    (void)state;
    struct side side;
    int released = 0;
    open_side(&side);
    struct payload payload = payload_at(&side.region, 0, 8, &released);
    struct wire_loan loan;
    assert_true(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    sharing_cancel_loan(&side.sharing, loan.ticket);
    assert_int_equal(sharing_end_loan(&side.sharing, &side.peer, loan.ticket), STATUS_MALFORMED);
    close_side(&side);
    assert_int_equal(released, 0);
}

static void what_is_kept_anyway_needs_no_return(void **state)
{
    (void)state;
    struct side side;
    open_side(&side);
    struct payload payload = {.bytes = side.region.bytes, .size = 8, .release = payload_keep};
    struct wire_loan loan;
    assert_true(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    assert_int_equal(loan.ticket, WIRE_NO_TICKET);
    sharing_cancel_loan(&side.sharing, loan.ticket);
    assert_int_equal(sharing_end_loan(&side.sharing, &side.peer, loan.ticket), STATUS_MALFORMED);
    close_side(&side);
}

static void only_what_lies_in_the_region_is_lent_and_only_to_whom_has_mapped_it(void **state)
{
    (void)state;
    struct side side;
    int released = 0;
    open_side(&side);
    const size_t whole = COUNT * sizeof(float);
    struct wire_loan loan;
    struct payload payload = payload_at(&side.region, 0, whole, &released);
    assert_false(sharing_lend(&side.sharing, &side.stranger, &payload, &loan));
    assert_true(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    payload = payload_at(&side.region, 4, whole, &released);
    assert_false(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    payload = payload_at(&side.region, whole + 4, 4, &released);
    assert_false(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    payload.bytes = &released;
    assert_false(sharing_lend(&side.sharing, &side.peer, &payload, &loan));
    close_side(&side);
}

static void values_are_found_in_the_peers_region_and_nowhere_else(void **state)
{
    (void)state;
    struct side side;
    struct region theirs;
    open_side(&side);
    assert_int_equal(region_create(COUNT * sizeof(float), &theirs), STATUS_OK);
    float *values = theirs.bytes;
    values[COUNT - 1] = 2.5f;
    const float *found;
    struct wire_loan loan = {.offset = (COUNT - 1) * sizeof(float)};
    assert_int_equal(sharing_find(&side.peer, &loan, 4, &found), STATUS_MALFORMED);
    assert_int_equal(
        sharing_map(&side.sharing, &side.peer, &(struct wire_offer){.region = theirs.key}),
        STATUS_OK);
    assert_int_equal(sharing_find(&side.peer, &loan, 4, &found), STATUS_OK);
    assert_true(*found == 2.5f);
    assert_int_equal(sharing_find(&side.stranger, &loan, 4, &found), STATUS_MALFORMED);
    assert_int_equal(sharing_find(&side.peer, &loan, 8, &found), STATUS_MALFORMED);
    const uint64_t offsets[] = {2, COUNT * sizeof(float), UINT64_MAX - 3};
    for (size_t i = 0; i < 3; i++) {
        loan.offset = offsets[i];
        assert_int_equal(sharing_find(&side.peer, &loan, 4, &found), STATUS_MALFORMED);
    }
    assert_int_equal(
        sharing_map(&side.sharing, &side.peer, &(struct wire_offer){.region = theirs.key}),
        STATUS_MALFORMED);
    region_destroy(&theirs);
    close_side(&side);
}

static void a_region_is_offered_to_each_peer_once(void **state)
{
    (void)state;
    struct side side;
    open_side(&side);
    assert_false(sharing_begin_offer(&side.sharing, &side.peer)); // was opened with it
    assert_true(sharing_begin_offer(&side.sharing, &side.stranger));
    assert_false(sharing_begin_offer(&side.sharing, &side.stranger));
    close_side(&side);
    side.stranger = (struct sharing_peer){0};
    assert_false(sharing_begin_offer(&side.sharing, &side.stranger)); // there is none
}

/* With --transport shm a refusal ends the job: nobody gives one who was not asked. */
static void an_answer_of_who_was_offered_nothing_counts_for_nothing(void **state)
{
    (void)state;
    struct side side;
    open_side(&side);
    struct sharing *sharing = &side.sharing;
    assert_int_equal(sharing_note_answer(sharing, &side.stranger, STATUS_UNREACHABLE),
                     STATUS_MALFORMED);
    assert_int_equal(sharing->refusal, STATUS_OK);
    assert_int_equal(sharing_note_answer(sharing, &side.stranger, STATUS_OK), STATUS_MALFORMED);
    assert_false(side.stranger.may_borrow);
    assert_true(sharing_begin_offer(sharing, &side.stranger));
    assert_int_equal(sharing_note_answer(sharing, &side.stranger, STATUS_UNREACHABLE), STATUS_OK);
    assert_int_equal(sharing->refusal, STATUS_UNREACHABLE);
    close_side(&side);
}

static void who_shares_nothing_refuses_offers(void **state)
{
    (void)state;
    struct sharing sharing = {0};
    struct sharing_peer peer = {0};
    struct region theirs;
    assert_int_equal(region_create(64, &theirs), STATUS_OK);
    assert_int_equal(sharing_map(&sharing, &peer, &(struct wire_offer){.region = theirs.key}),
                     STATUS_UNSUPPORTED);
    assert_int_equal(sharing_note_answer(&sharing, &peer, STATUS_OK), STATUS_MALFORMED);
    region_destroy(&theirs);
    sharing_finish(&sharing);
}

/* A device that maps what is shared by one address, and notes what it was asked. */
struct mapper {
    struct vector_device base;
    unsigned char seen;
    void *unmapped;
};

static float device_memory[4];

static enum status map(struct vector_device *device, const unsigned char share[VECTOR_SHARE_BYTES],
                       uint64_t size, void **ret_memory)
{
    ((struct mapper *)device)->seen = share[0];
    assert_int_equal(size, sizeof(device_memory));
    *ret_memory = device_memory;
    return STATUS_OK;
}

static void unmap(struct vector_device *device, void *memory)
{
    ((struct mapper *)device)->unmapped = memory;
}

/* Loans of a device's memory are addresses of it; the host's regions do not go with them. */
static void memory_of_devices_is_shared_among_devices_alone(void **state)
{
    (void)state;
    static const struct vector_device_ops ops = {.map = map, .unmap = unmap};
    struct mapper mapper = {.base = {&ops}};
    const struct sharing_device device = {.vectors = &mapper.base};
    struct side side;
    struct wire_offer offer = {.region = {.size = sizeof(device_memory)}, .share = {7}};
    const struct wire_loan loan = {.offset = 8};
    const float *found;
    open_side(&side);
    offer.has_share = true;
    assert_int_equal(sharing_map(&side.sharing, &side.peer, &offer), STATUS_UNSUPPORTED);
    side.sharing.device = &device;
    offer.has_share = false;
    assert_int_equal(sharing_map(&side.sharing, &side.peer, &offer), STATUS_UNSUPPORTED);
    offer.has_share = true;
    assert_int_equal(sharing_map(&side.sharing, &side.peer, &offer), STATUS_OK);
    assert_int_equal(mapper.seen, 7);
    assert_int_equal(sharing_find(&side.peer, &loan, 8, &found), STATUS_OK);
    assert_ptr_equal(found, device_memory + 2);
    assert_int_equal(sharing_find(&side.peer, &loan, 12, &found), STATUS_MALFORMED);
    assert_int_equal(sharing_map(&side.sharing, &side.peer, &offer), STATUS_MALFORMED);
    sharing_forget(&side.peer);
    assert_ptr_equal(mapper.unmapped, device_memory);
    assert_int_equal(sharing_find(&side.peer, &loan, 8, &found), STATUS_MALFORMED);
    close_side(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loan_is_released_when_it_comes_back_and_once_only),
        cmocka_unit_test(a_cancelled_loan_is_not_released),
        cmocka_unit_test(what_is_kept_anyway_needs_no_return),
        cmocka_unit_test(only_what_lies_in_the_region_is_lent_and_only_to_whom_has_mapped_it),
        cmocka_unit_test(values_are_found_in_the_peers_region_and_nowhere_else),
        cmocka_unit_test(a_region_is_offered_to_each_peer_once),
        cmocka_unit_test(an_answer_of_who_was_offered_nothing_counts_for_nothing),
        cmocka_unit_test(who_shares_nothing_refuses_offers),
        cmocka_unit_test(memory_of_devices_is_shared_among_devices_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
