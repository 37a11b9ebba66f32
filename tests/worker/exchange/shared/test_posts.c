/* Tests of posts: what each worker posted, added up by every one of them. */
#include "common/base/random.h"
#include "common/vector/layout.h"
#include "worker/exchange/shared/posts.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX 9
#define COUNT_MAX 31

static float value_of(uint32_t rank, uint32_t round, uint32_t index)
{
    uint64_t key = random_key(3, RANDOM_SPLIT, rank, round);
    return random_unit_float(random_element(key, index)) - 0.5f;
}

/* In the order of ranks from the chunk's on. */
static float mean_of(uint32_t world, uint32_t count, uint32_t round, uint32_t index)
{
    uint32_t chunk = 0;
    struct span part = span_part((struct span){0, count}, world, chunk);
    while (index >= part.offset + part.count) {
        part = span_part((struct span){0, count}, world, ++chunk);
    }
    float sum = value_of(chunk, round, index);
    for (uint32_t k = 1; k < world; k++) {
        sum += value_of((chunk + k) % world, round, index);
    }
    return sum * (1.0f / (float)world);
}

static void put(const struct posts *posts, uint32_t round)
{
    float values[COUNT_MAX];
    for (uint32_t i = 0; i < posts->count; i++) {
        values[i] = value_of(posts->rank, round, i);
    }
    posts_put(posts, round, values);
}

static void check_mean(const struct posts *posts, uint32_t round)
{
    float mean[COUNT_MAX + 1];
    mean[posts->count] = 7;
    posts_mean(posts, round, mean);
    for (uint32_t i = 0; i < posts->count; i++) {
        float wanted = mean_of(posts->world, (uint32_t)posts->count, round, i);
        assert_memory_equal(&mean[i], &wanted, sizeof(wanted));
    }
    assert_true(mean[posts->count] == 7);
}

/* Rounds one after the other. A worker reads one just before it puts the next: when all others may
 * have put theirs of that already. */
static void run_rounds(uint32_t world, uint32_t count, uint32_t first)
{
    struct posts posts[WORLD_MAX];
    size_t bytes = posts_bytes(count, world);
    unsigned char *start = aligned_alloc(POSTS_ALIGNMENT, bytes);
    memset(start, 0, bytes);
    for (uint32_t i = 0; i < world; i++) {
        posts[i] = (struct posts){start, i, world, count};
    }
    for (uint32_t round = first; round != first + 5; round++) {
        for (uint32_t i = 0; i < world; i++) {
            const struct posts *own = &posts[(i + round % world) % world];
            if (round != first) {
                check_mean(own, round - 1);
            }
            assert_int_equal(posts_are_complete(own, round), i + 1 == world);
            put(own, round);
        }
    }
    free(start);
}

static void every_worker_adds_up_what_all_have_put(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (uint32_t count = 1; count <= COUNT_MAX; count++) {
            assert_true(posts_serve(count));
            run_rounds(world, count, 1);
        }
    }
}

static void rounds_may_wrap_around(void **state)
{
    (void)state;
    run_rounds(3, 7, UINT32_MAX - 2);
}

static void more_than_a_pair_of_cache_lines_holds_is_not_posted(void **state)
{
    (void)state;
    assert_false(posts_serve(32));
    assert_false(posts_serve(UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_adds_up_what_all_have_put),
        cmocka_unit_test(rounds_may_wrap_around),
        cmocka_unit_test(more_than_a_pair_of_cache_lines_holds_is_not_posted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
