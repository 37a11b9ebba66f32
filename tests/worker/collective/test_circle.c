/* Tests of circles: seats in memory, and changes to them in the middle of a search. */
#include "worker/collective/circle.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

#define SIZE CIRCLE_SIZE_MAX

struct scene {
    struct circle_seat seats[SIZE];
    uint32_t full_from, full_to;          // bytes are on the way between the two; both 0: nowhere
    void (*disturb)(struct scene *scene); // at the first look at what is on the way to rank 2
};

static struct circle_seat *seat_of(void *context, uint32_t rank)
{
    return &((struct scene *)context)->seats[rank];
}

static bool has_bytes(void *context, uint32_t kind, uint32_t from, uint32_t to)
{
    struct scene *scene = context;
    assert_int_equal(kind, 1);
    if (scene->disturb != NULL && to == 2) {
        void (*disturb)(struct scene * of) = scene->disturb;
        scene->disturb = NULL;
        disturb(scene);
    }
    return scene->full_from != scene->full_to && from == scene->full_from && to == scene->full_to;
}

static struct circle_lack lack_of(uint32_t rank)
{
    struct circle_lack lack = {.kind = 1, .text = "a wait"};
    circle_add(&lack, rank);
    return lack;
}

static void sit(struct scene *scene, uint32_t rank, uint32_t other)
{
    const struct circle_lack lack = lack_of(other);
    circle_sit(&scene->seats[rank], &lack);
}

/* Rank 0 asks, and lacks what rank 1 has. */
static bool find(struct scene *scene, uint32_t *ret_next, uint32_t *ret_after)
{
    const struct circle circle = {0, SIZE, seat_of, has_bytes, scene};
    const struct circle_lack lack = lack_of(1);
    return circle_find(&circle, &lack, ret_next, ret_after);
}

static bool has_circle(struct scene *scene)
{
    uint32_t next, after;
    return find(scene, &next, &after);
}

static void circles_of_every_size_are_found(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= SIZE; count++) {
        struct scene scene = {0};
        uint32_t next, after;
        for (uint32_t rank = 1; rank < count; rank++) {
            assert_false(has_circle(&scene));
            sit(&scene, rank, (rank + 1) % count);
        }
        assert_true(find(&scene, &next, &after));
        assert_int_equal(next, 1);
        assert_int_equal(after, 2 % count);
        assert_string_equal(scene.seats[1].text, "a wait");
    }
}

static void a_process_that_rises_or_has_bytes_on_the_way_ends_a_circle(void **state)
{
    (void)state;
    struct scene scene = {0};
    sit(&scene, 1, 2);
    sit(&scene, 2, 0);
    assert_true(has_circle(&scene));
    for (uint32_t to = 0; to < 3; to++) {
        scene.full_from = (to + 1) % 3;
        scene.full_to = to;
        assert_false(has_circle(&scene));
        scene.full_from = scene.full_to = 0;
    }
    circle_rise(&scene.seats[1]);
    circle_rise(&scene.seats[1]); // it does not sit
    assert_false(has_circle(&scene));
    sit(&scene, 1, 2);
    assert_true(has_circle(&scene));
}

static void one_beside_a_circle_is_not_in_it(void **state)
{
    (void)state;
    struct scene scene = {0};
    sit(&scene, 1, 2);
    sit(&scene, 2, 1);
    assert_false(has_circle(&scene));
}

static void sit_again(struct scene *scene)
{
    circle_rise(&scene->seats[1]);
    sit(scene, 1, 2);
}

static void need_another(struct scene *scene)
{
    scene->seats[1].given_steps = 5;
    scene->seats[1].needs_step = 5;
}

static void who_moves_during_the_search_is_not_judged(void **state)
{
    (void)state;
    struct scene scene = {.disturb = sit_again};
    sit(&scene, 1, 2);
    sit(&scene, 2, 0);
    assert_false(has_circle(&scene));
    assert_true(has_circle(&scene)); // it has sat since
    scene = (struct scene){.disturb = need_another};
    scene.seats[1].needs_step = 4;
    scene.seats[0].given_steps = 4;
    sit(&scene, 2, 0);
    assert_false(has_circle(&scene));
    assert_true(has_circle(&scene));
}

static void gradients_are_a_reason_to_wait(void **state)
{
    (void)state;
    struct scene scene = {0};
    uint32_t next, after;
    sit(&scene, 1, 2);
    scene.seats[2].needs_step = 3; // of all others
    for (uint32_t rank = 0; rank < SIZE; rank++) {
        scene.seats[rank].given_steps = 3;
    }
    assert_false(has_circle(&scene));
    scene.seats[0].given_steps = 2;
    assert_true(find(&scene, &next, &after));
    assert_int_equal(next, 1);
    assert_int_equal(after, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(circles_of_every_size_are_found),
        cmocka_unit_test(a_process_that_rises_or_has_bytes_on_the_way_ends_a_circle),
        cmocka_unit_test(one_beside_a_circle_is_not_in_it),
        cmocka_unit_test(who_moves_during_the_search_is_not_judged),
        cmocka_unit_test(gradients_are_a_reason_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
