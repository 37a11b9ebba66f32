/* Tests of what is lent: what lies in the region, to whom has mapped it, until it comes back. */
#include "common/channel/sharing.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define COUNT 1000

enum { PEER = 7, STRANGER = 8 };

static void count_release(void *hint)
{
    ++*(int *)hint;
}

/* A side with a region, and a peer that has mapped it. */
static void open_side(struct sharing *sharing, struct region *region)
{
    *sharing = (struct sharing){.own = region};
    assert_int_equal(region_create(COUNT * sizeof(float), region), STATUS_OK);
    assert_true(sharing_begin_offer(sharing, PEER));
    assert_int_equal(sharing_note_answer(sharing, PEER, STATUS_OK), STATUS_OK);
}

static void close_side(struct sharing *sharing, struct region *region)
{
    sharing_return_all(sharing);
    sharing_finish(sharing);
    region_destroy(region);
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
    struct sharing sharing;
    struct region region;
    int released = 0;
    open_side(&sharing, &region);
    struct wire_loan loans[100];
    for (unsigned i = 0; i < 100; i++) {
        struct payload payload = payload_at(&region, (size_t)4 * i, 8, &released);
        assert_true(sharing_lend(&sharing, PEER, &payload, &loans[i]));
        assert_int_equal(loans[i].offset, 4 * i);
        for (unsigned k = 0; k < i; k++) {
            assert_int_not_equal(loans[k].ticket, loans[i].ticket);
        }
    }
    assert_int_equal(sharing_end_loan(&sharing, STRANGER, loans[0].ticket), STATUS_MALFORMED);
    for (unsigned i = 0; i < 99; i++) {
        assert_int_equal(sharing_end_loan(&sharing, PEER, loans[i].ticket), STATUS_OK);
        assert_int_equal(released, i + 1);
        assert_int_equal(sharing_end_loan(&sharing, PEER, loans[i].ticket), STATUS_MALFORMED);
    }
    assert_int_equal(sharing_end_loan(&sharing, PEER, UINT32_MAX), STATUS_MALFORMED);
    close_side(&sharing, &region);
    assert_int_equal(released, 100);
}

static void a_cancelled_loan_is_not_released(void **state)
{
    (void)state;
    struct sharing sharing;
    struct region region;
    int released = 0;
    open_side(&sharing, &region);
    struct payload payload = payload_at(&region, 0, 8, &released);
    struct wire_loan loan;
    assert_true(sharing_lend(&sharing, PEER, &payload, &loan));
    sharing_cancel_loan(&sharing, loan.ticket);
    assert_int_equal(sharing_end_loan(&sharing, PEER, loan.ticket), STATUS_MALFORMED);
    close_side(&sharing, &region);
    assert_int_equal(released, 0);
}

static void what_is_kept_anyway_needs_no_return(void **state)
{
    (void)state;
    struct sharing sharing;
    struct region region;
    open_side(&sharing, &region);
    struct payload payload = {.bytes = region.bytes, .size = 8, .release = payload_keep};
    struct wire_loan loan;
    assert_true(sharing_lend(&sharing, PEER, &payload, &loan));
    assert_int_equal(loan.ticket, WIRE_NO_TICKET);
    sharing_cancel_loan(&sharing, loan.ticket);
    assert_int_equal(sharing_end_loan(&sharing, PEER, loan.ticket), STATUS_MALFORMED);
    close_side(&sharing, &region);
}

static void only_what_lies_in_the_region_is_lent_and_only_to_whom_has_mapped_it(void **state)
{
    (void)state;
    struct sharing sharing;
    struct region region;
    int released = 0;
    open_side(&sharing, &region);
    const size_t whole = COUNT * sizeof(float);
    struct wire_loan loan;
    struct payload payload = payload_at(&region, 0, whole, &released);
    assert_false(sharing_lend(&sharing, STRANGER, &payload, &loan));
    assert_true(sharing_lend(&sharing, PEER, &payload, &loan));
    payload = payload_at(&region, 4, whole, &released);
    assert_false(sharing_lend(&sharing, PEER, &payload, &loan));
    payload = payload_at(&region, whole + 4, 4, &released);
    assert_false(sharing_lend(&sharing, PEER, &payload, &loan));
    payload.bytes = &released;
    assert_false(sharing_lend(&sharing, PEER, &payload, &loan));
    close_side(&sharing, &region);
}

static void values_are_found_in_the_peers_region_and_nowhere_else(void **state)
{
    (void)state;
    struct sharing sharing;
    struct region own, theirs;
    open_side(&sharing, &own);
    assert_int_equal(region_create(COUNT * sizeof(float), &theirs), STATUS_OK);
    float *values = theirs.bytes;
    values[COUNT - 1] = 2.5f;
    const float *found;
    struct wire_loan loan = {.offset = (COUNT - 1) * sizeof(float)};
    assert_int_equal(sharing_find(&sharing, PEER, &loan, 4, &found), STATUS_MALFORMED);
    assert_false(sharing_has_view(&sharing, PEER));
    assert_int_equal(sharing_map(&sharing, PEER, &theirs.key), STATUS_OK);
    assert_true(sharing_has_view(&sharing, PEER));
    assert_int_equal(sharing_find(&sharing, PEER, &loan, 4, &found), STATUS_OK);
    assert_true(*found == 2.5f);
    assert_int_equal(sharing_find(&sharing, STRANGER, &loan, 4, &found), STATUS_MALFORMED);
    assert_int_equal(sharing_find(&sharing, PEER, &loan, 8, &found), STATUS_MALFORMED);
    const uint64_t offsets[] = {2, COUNT * sizeof(float), UINT64_MAX - 3};
    for (size_t i = 0; i < 3; i++) {
        loan.offset = offsets[i];
        assert_int_equal(sharing_find(&sharing, PEER, &loan, 4, &found), STATUS_MALFORMED);
    }
    assert_int_equal(sharing_map(&sharing, PEER, &theirs.key), STATUS_MALFORMED);
    region_destroy(&theirs);
    close_side(&sharing, &own);
}

static void a_region_is_offered_to_each_peer_once(void **state)
{
    (void)state;
    struct sharing sharing;
    struct region region;
    open_side(&sharing, &region);
    assert_false(sharing_begin_offer(&sharing, PEER)); // was opened with it
    assert_true(sharing_begin_offer(&sharing, STRANGER));
    assert_false(sharing_begin_offer(&sharing, STRANGER));
    close_side(&sharing, &region);
    assert_false(sharing_begin_offer(&sharing, PEER)); // there is none
    sharing_finish(&sharing);
}

/* With --transport shm a refusal ends the job: nobody gives one who was not asked. */
static void an_answer_of_who_was_offered_nothing_counts_for_nothing(void **state)
{
    (void)state;
    struct sharing sharing = {0};
    struct region region;
    assert_int_equal(region_create(64, &region), STATUS_OK);
    sharing.own = &region;
    assert_int_equal(sharing_note_answer(&sharing, STRANGER, STATUS_UNREACHABLE), STATUS_MALFORMED);
    assert_int_equal(sharing.refusal, STATUS_OK);
    assert_int_equal(sharing_note_answer(&sharing, STRANGER, STATUS_OK), STATUS_MALFORMED);
    assert_int_equal(sharing.peer_count, 0);
    assert_true(sharing_begin_offer(&sharing, PEER));
    assert_int_equal(sharing_note_answer(&sharing, PEER, STATUS_UNREACHABLE), STATUS_OK);
    assert_int_equal(sharing.refusal, STATUS_UNREACHABLE);
    close_side(&sharing, &region);
}

static void who_shares_nothing_refuses_offers(void **state)
{
    (void)state;
    struct sharing sharing = {0};
    struct region theirs;
    assert_int_equal(region_create(64, &theirs), STATUS_OK);
    assert_int_equal(sharing_map(&sharing, PEER, &theirs.key), STATUS_UNSUPPORTED);
    assert_int_equal(sharing_note_answer(&sharing, PEER, STATUS_OK), STATUS_MALFORMED);
    region_destroy(&theirs);
    sharing_finish(&sharing);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
