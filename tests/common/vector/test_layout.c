/* Tests of spans, of the cut into buckets, and of layouts that peers sent. */
#include "common/base/random.h"
#include "common/vector/layout.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <string.h>

#define TENSORS_MAX 3000

static void check_span(struct span span, uint64_t offset, uint64_t count)
{
    assert_int_equal(span.offset, offset);
    assert_int_equal(span.count, count);
}

static void parts_follow_each_other_and_differ_by_at_most_one(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 40; count++) {
        for (uint32_t part_count = 1; part_count < 12; part_count++) {
            uint64_t end = 1000;
            for (uint32_t i = 0; i < part_count; i++) {
                struct span part = span_part((struct span){1000, count}, part_count, i);
                assert_int_equal(part.offset, end);
                assert_in_range(part.count, count / part_count,
                                (count + part_count - 1) / part_count);
                end += part.count;
            }
            assert_int_equal(end, 1000 + count);
        }
    }
}

static void the_longer_parts_come_first(void **state)
{
    (void)state;
    struct span whole = {5, 11};
    check_span(span_part(whole, 4, 0), 5, 3);
    check_span(span_part(whole, 4, 1), 8, 3);
    check_span(span_part(whole, 4, 2), 11, 3);
    check_span(span_part(whole, 4, 3), 14, 2);
}

static void the_largest_vector_can_be_cut_into_the_most_parts(void **state)
{
    (void)state;
    struct span whole = {0, LAYOUT_VALUES_MAX};
    struct span last = span_part(whole, UINT32_MAX, UINT32_MAX - 1);
    assert_int_equal(last.offset + last.count, LAYOUT_VALUES_MAX);
    assert_int_equal(last.count, LAYOUT_VALUES_MAX / UINT32_MAX);
}

static void an_intersection_has_what_both_contain(void **state)
{
    (void)state;
    for (uint64_t packed = 0; packed < 4096; packed++) {
        struct span a = {packed % 8, packed / 8 % 8};
        struct span b = {packed / 64 % 8, packed / 512};
        struct span both = span_intersect(a, b);
        for (uint64_t i = 0; i < 16; i++) {
            bool is_in_a = i >= a.offset && i < a.offset + a.count;
            bool is_in_b = i >= b.offset && i < b.offset + b.count;
            bool is_in_both = i >= both.offset && i < both.offset + both.count;
            assert_int_equal(is_in_both, is_in_a && is_in_b);
        }
    }
}

static void spans_at_the_end_of_numbers_intersect_without_wrapping(void **state)
{
    (void)state;
    struct span wrapping = {UINT64_MAX - 1, 100};
    assert_int_equal(span_intersect(wrapping, (struct span){0, 50}).count, 0);
    assert_int_equal(span_intersect((struct span){0, 50}, wrapping).count, 0);
    check_span(span_intersect((struct span){0, UINT64_MAX}, (struct span){7, 9}), 7, 9);
    check_span(span_intersect((struct span){0, UINT64_MAX}, wrapping), UINT64_MAX - 1, 1);
}

/* Disjoint, descending, and together [0, value_count): in arithmetic that cannot wrap. */
static bool covers_the_vector(const struct layout *layout)
{
    unsigned __int128 begin = layout->value_count;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct span bucket = layout->buckets[i];
        if (bucket.count == 0 || (unsigned __int128)bucket.offset + bucket.count != begin) {
            return false;
        }
        begin = bucket.offset;
    }
    return begin == 0;
}

static void a_layout_of_descending_buckets_passes(void **state)
{
    (void)state;
    struct layout layout = {
        .value_count = 100, .bucket_count = 3, .buckets = {{90, 10}, {40, 50}, {0, 40}}};
    assert_int_equal(layout_check(&layout), STATUS_OK);
}

static void a_layout_with_gaps_overlaps_or_hostile_numbers_is_malformed(void **state)
{
    (void)state;
    static const struct layout layouts[] = {
        {.value_count = 0, .bucket_count = 0},
        {.value_count = 0, .bucket_count = 1},
        {.value_count = 10, .bucket_count = 0},
        {.value_count = 10, .bucket_count = LAYOUT_BUCKETS_MAX + 1, .buckets = {{0, 10}}},
        {.value_count = 10, .bucket_count = UINT32_MAX, .buckets = {{0, 10}}},
        {.value_count = LAYOUT_VALUES_MAX + 1,
         .bucket_count = 1,
         .buckets = {{0, LAYOUT_VALUES_MAX + 1}}},
        {.value_count = 10, .bucket_count = 1, .buckets = {{0, 9}}},
        {.value_count = 10, .bucket_count = 1, .buckets = {{1, 9}}},
        {.value_count = 10, .bucket_count = 1, .buckets = {{0, 11}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{0, 5}, {5, 5}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{5, 5}, {0, 4}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{5, 5}, {0, 6}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{0, 10}, {0, 0}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{10, 0}, {0, 10}}},
        {.value_count = 10, .bucket_count = 1, .buckets = {{UINT64_MAX, 11}}},
        {.value_count = 10, .bucket_count = 2, .buckets = {{UINT64_MAX - 89, 100}, {0, 10}}},
        {.value_count = 10, .bucket_count = 1, .buckets = {{11, UINT64_MAX}}},
    };
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        assert_int_equal(layout_check(&layouts[i]), STATUS_MALFORMED);
    }
}

static void what_passes_the_check_covers_the_vector_whatever_was_changed(void **state)
{
    (void)state;
    const uint64_t numbers[] = {0, 1, 9, 10, 11, 40, 50, 90, 100, UINT64_MAX, UINT64_MAX - 9};
    struct random_sequence sequence = {1};
    unsigned passed = 0;
    for (unsigned round = 0; round < 20000; round++) {
        struct layout layout = {
            .value_count = 100, .bucket_count = 3, .buckets = {{90, 10}, {40, 50}, {0, 40}}};
        for (unsigned change = 0; change < 1 + round % 3; change++) {
            uint64_t number = numbers[random_below(&sequence, 11)];
            struct span *bucket = &layout.buckets[random_below(&sequence, 3)];
            uint64_t place = random_below(&sequence, 4);
            layout.value_count = place == 0 ? number : layout.value_count;
            layout.bucket_count = place == 1 ? (uint32_t)number : layout.bucket_count;
            bucket->offset = place == 2 ? number : bucket->offset;
            bucket->count = place == 3 ? number : bucket->count;
        }
        if (layout_check(&layout) == STATUS_OK) {
            passed++;
            assert_true(covers_the_vector(&layout));
        }
    }
    assert_true(passed > 0);
}

static void buckets_are_filled_from_the_end_and_the_first_is_a_quarter(void **state)
{
    (void)state;
    // A layer of 4 + 1, one of 100, one of 6 + 2, one of 30 + 10; buckets of 40 floats.
    const struct span tensors[] = {{0, 4},   {4, 1},    {5, 100}, {105, 6},
                                   {111, 2}, {113, 30}, {143, 10}};
    const unsigned char may_close[] = {1, 0, 1, 1, 0, 1, 0};
    struct layout layout;
    assert_int_equal(layout_make_buckets(tensors, may_close, 7, 40 * sizeof(float), &layout),
                     STATUS_OK);
    assert_int_equal(layout.value_count, 153);
    assert_int_equal(layout.bucket_count, 3);
    // Ten floats would do for the first, but its layer begins 30 floats before.
    check_span(layout.buckets[0], 113, 40);
    check_span(layout.buckets[1], 5, 108);
    check_span(layout.buckets[2], 0, 5);
}

static void a_bucket_larger_than_the_model_holds_all_of_it(void **state)
{
    (void)state;
    const struct span tensors[] = {{0, 7}, {7, 3}};
    const unsigned char may_close[] = {1, 1};
    struct layout layout;
    assert_int_equal(layout_make_buckets(tensors, may_close, 2, UINT64_MAX, &layout), STATUS_OK);
    assert_int_equal(layout.bucket_count, 1);
    check_span(layout.buckets[0], 0, 10);
}

static void the_buckets_that_would_be_too_many_become_one(void **state)
{
    (void)state;
    static struct span tensors[TENSORS_MAX];
    static unsigned char may_close[TENSORS_MAX];
    for (uint32_t i = 0; i < TENSORS_MAX; i++) {
        tensors[i] = (struct span){2 * (uint64_t)i, 2};
        may_close[i] = 1;
    }
    struct layout layout;
    assert_int_equal(layout_make_buckets(tensors, may_close, TENSORS_MAX, 0, &layout), STATUS_OK);
    assert_int_equal(layout.bucket_count, LAYOUT_BUCKETS_MAX);
    check_span(layout.buckets[0], UINT64_C(2) * (TENSORS_MAX - 1), 2);
    check_span(layout.buckets[LAYOUT_BUCKETS_MAX - 1], 0,
               UINT64_C(2) * (TENSORS_MAX - LAYOUT_BUCKETS_MAX + 1));
    assert_int_equal(layout_check(&layout), STATUS_OK);
}

static void large_buckets_are_cut_into_equal_parts(void **state)
{
    (void)state;
    // Of 40 floats: the first is as it should be, the second not large enough, the third too large.
    struct layout layout = {
        .value_count = 205, .bucket_count = 3, .buckets = {{165, 40}, {105, 60}, {0, 105}}};
    layout_split_buckets(&layout, 40 * sizeof(float));
    assert_int_equal(layout.bucket_count, 5);
    check_span(layout.buckets[0], 165, 40);
    check_span(layout.buckets[1], 105, 60);
    check_span(layout.buckets[2], 70, 35);
    check_span(layout.buckets[3], 35, 35);
    check_span(layout.buckets[4], 0, 35);
}

static void parts_that_would_be_too_many_are_made_larger(void **state)
{
    (void)state;
    struct layout layout = {
        .value_count = 5000, .bucket_count = 2, .buckets = {{900, 4100}, {0, 900}}};
    layout_split_buckets(&layout, 4 * sizeof(float));
    assert_int_equal(layout.bucket_count, 513 + 113); // of 8 floats; of 4 there were 1025 + 225
    check_span(layout.buckets[0], 4993, 7);
    layout_split_buckets(&layout, 0);
    layout_split_buckets(&layout, UINT64_MAX);
    assert_int_equal(layout.bucket_count, 513 + 113);
    layout = (struct layout){
        .value_count = LAYOUT_VALUES_MAX, .bucket_count = 1, .buckets = {{0, LAYOUT_VALUES_MAX}}};
    layout_split_buckets(&layout, sizeof(float));
    assert_int_equal(layout.bucket_count, LAYOUT_BUCKETS_MAX);
}

static void merged_buckets_hold_as_much_as_asked_and_the_first_a_quarter(void **state)
{
    (void)state;
    const struct layout fine = {
        .value_count = 100,
        .bucket_count = 8,
        .buckets = {{95, 5}, {90, 5}, {70, 20}, {60, 10}, {50, 10}, {10, 40}, {4, 6}, {0, 4}},
        .digest = 77,
    };
    struct layout layout;
    layout_merge(&fine, 40 * sizeof(float), &layout);
    assert_int_equal(layout.value_count, 100);
    assert_int_equal(layout.digest, 77);
    assert_int_equal(layout.bucket_count, 4);
    check_span(layout.buckets[0], 90, 10);
    check_span(layout.buckets[1], 50, 40);
    check_span(layout.buckets[2], 10, 40);
    check_span(layout.buckets[3], 0, 10);
    layout_merge(&fine, UINT64_MAX, &layout);
    assert_int_equal(layout.bucket_count, 1);
    check_span(layout.buckets[0], 0, 100);
    layout_merge(&fine, 0, &layout);
    assert_int_equal(layout.bucket_count, 8);
    assert_memory_equal(layout.buckets, fine.buckets, 8 * sizeof(fine.buckets[0]));
}

/* Sixteen tensors of a layer each: both ways close at the same ones. */
static void merging_gives_the_buckets_that_tensors_alone_would_be_cut_into(void **state)
{
    (void)state;
    struct span tensors[16];
    unsigned char may_close[16];
    struct layout fine, merged, made;
    for (uint32_t i = 0; i < 16; i++) {
        tensors[i] = (struct span){64 * (uint64_t)i, 64};
        may_close[i] = 1;
    }
    assert_int_equal(layout_make_buckets(tensors, may_close, 16, 64 * sizeof(float), &fine),
                     STATUS_OK);
    for (uint64_t count = 64; count <= 2048; count *= 2) {
        assert_int_equal(layout_make_buckets(tensors, may_close, 16, count * sizeof(float), &made),
                         STATUS_OK);
        layout_merge(&fine, count * sizeof(float), &merged);
        assert_int_equal(merged.bucket_count, made.bucket_count);
        assert_memory_equal(merged.buckets, made.buckets,
                            made.bucket_count * sizeof(made.buckets[0]));
    }
}

struct random_tensors {
    struct span spans[TENSORS_MAX];
    unsigned char may_close[TENSORS_MAX];
    uint32_t count;
    uint64_t value_count;
};

static void make_tensors(struct random_sequence *sequence, struct random_tensors *ret_tensors)
{
    ret_tensors->count = 1 + (uint32_t)random_below(sequence, 300);
    uint64_t end = 0;
    for (uint32_t i = 0; i < ret_tensors->count; i++) {
        uint64_t count = 1 + random_below(sequence, UINT64_C(1) << random_below(sequence, 18));
        ret_tensors->spans[i] = (struct span){end, count};
        ret_tensors->may_close[i] = random_below(sequence, 3) > 0;
        end += count;
    }
    ret_tensors->value_count = end;
}

/* Begins at a tensor that may begin it, and was not closed earlier than it had to be. */
static void check_bucket(const struct random_tensors *tensors, struct span bucket,
                         uint64_t bytes_min)
{
    assert_true(bucket.count * sizeof(float) >= bytes_min);
    for (uint32_t i = 0; i < tensors->count; i++) {
        struct span tensor = tensors->spans[i];
        if (tensor.offset == bucket.offset) {
            assert_true(tensors->may_close[i] != 0);
        } else if (tensor.offset > bucket.offset && tensor.offset < bucket.offset + bucket.count &&
                   tensors->may_close[i] != 0) {
            uint64_t count = bucket.offset + bucket.count - tensor.offset;
            assert_true(count * sizeof(float) < bytes_min);
        }
    }
}

static void random_tensors_are_covered_in_order_and_buckets_are_as_small_as_allowed(void **state)
{
    (void)state;
    static struct random_tensors tensors;
    static struct layout layout;
    struct random_sequence sequence = {2026};
    for (unsigned round = 0; round < 500; round++) {
        make_tensors(&sequence, &tensors);
        uint64_t bucket_bytes = random_below(&sequence, UINT64_C(1) << random_below(&sequence, 24));
        assert_int_equal(layout_make_buckets(tensors.spans, tensors.may_close, tensors.count,
                                             bucket_bytes, &layout),
                         STATUS_OK);
        assert_int_equal(layout_check(&layout), STATUS_OK);
        assert_true(covers_the_vector(&layout));
        assert_int_equal(layout.value_count, tensors.value_count);
        for (uint32_t i = 0; i + 1 < layout.bucket_count; i++) {
            check_bucket(&tensors, layout.buckets[i], i == 0 ? bucket_bytes / 4 : bucket_bytes);
        }
    }
}

/* Every bucket of `merged` is some of `fine`, and was closed as early as it could be. */
static void check_merged(const struct layout *fine, const struct layout *merged, uint64_t bytes)
{
    uint32_t at = 0;
    assert_int_equal(layout_check(merged), STATUS_OK);
    assert_true(covers_the_vector(merged));
    assert_int_equal(merged->digest, fine->digest);
    for (uint32_t i = 0; i < merged->bucket_count; i++) {
        uint64_t bytes_min = i == 0 ? bytes / 4 : bytes, count = 0, before = 0;
        while (count < merged->buckets[i].count) {
            before = count;
            count += fine->buckets[at++].count;
        }
        assert_int_equal(count, merged->buckets[i].count);
        assert_true(before == 0 || before * sizeof(float) < bytes_min);
        assert_true(count * sizeof(float) >= bytes_min || i + 1 == merged->bucket_count);
    }
    assert_int_equal(at, fine->bucket_count);
}

static void random_layouts_are_merged_in_order_and_merging_again_changes_nothing(void **state)
{
    (void)state;
    static struct random_tensors tensors;
    static struct layout fine, merged, again;
    struct random_sequence sequence = {2027};
    for (unsigned round = 0; round < 300; round++) {
        make_tensors(&sequence, &tensors);
        assert_int_equal(
            layout_make_buckets(tensors.spans, tensors.may_close, tensors.count, 4096, &fine),
            STATUS_OK);
        layout_split_buckets(&fine, 4096);
        uint64_t bytes = random_below(&sequence, UINT64_C(1) << random_below(&sequence, 26));
        layout_merge(&fine, bytes, &merged);
        check_merged(&fine, &merged, bytes);
        layout_merge(&merged, bytes, &again);
        assert_int_equal(again.bucket_count, merged.bucket_count);
        assert_memory_equal(again.buckets, merged.buckets,
                            merged.bucket_count * sizeof(merged.buckets[0]));
    }
}

static void tensors_that_are_no_vector_are_refused_and_nothing_is_written(void **state)
{
    (void)state;
    const struct {
        struct span tensors[2];
        uint32_t count;
    } cases[] = {
        {.tensors = {{0, 1}, {1, 1}}, .count = 0},
        {.tensors = {{1, 5}}, .count = 1},
        {.tensors = {{0, 0}}, .count = 1},
        {.tensors = {{0, 5}, {6, 5}}, .count = 2},
        {.tensors = {{0, 5}, {4, 5}}, .count = 2},
        {.tensors = {{5, 5}, {0, 5}}, .count = 2},
        {.tensors = {{0, LAYOUT_VALUES_MAX + 1}}, .count = 1},
        {.tensors = {{0, LAYOUT_VALUES_MAX}, {LAYOUT_VALUES_MAX, 1}}, .count = 2},
        {.tensors = {{0, 5}, {5, UINT64_MAX}}, .count = 2},
    };
    const unsigned char may_close[] = {1, 1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct layout layout, untouched;
        memset(&layout, 0xA5, sizeof(layout));
        memset(&untouched, 0xA5, sizeof(untouched));
        assert_int_equal(
            layout_make_buckets(cases[i].tensors, may_close, cases[i].count, 100, &layout),
            STATUS_INVALID);
        assert_memory_equal(&layout, &untouched, sizeof(layout));
    }
}

static void the_digest_is_that_of_the_tensors_and_not_of_the_buckets(void **state)
{
    (void)state;
    const struct span one[] = {{0, 7}, {7, 3}};
    const struct span other[] = {{0, 6}, {6, 4}};
    const unsigned char may_close[] = {1, 1};
    struct layout small, large, different;
    assert_int_equal(layout_make_buckets(one, may_close, 2, 4, &small), STATUS_OK);
    assert_int_equal(layout_make_buckets(one, may_close, 2, 4096, &large), STATUS_OK);
    assert_int_equal(layout_make_buckets(other, may_close, 2, 4096, &different), STATUS_OK);
    assert_int_not_equal(small.bucket_count, large.bucket_count);
    assert_true(small.digest == large.digest);
    assert_true(small.digest != different.digest);
}

static void digests_are_fnv_1a(void **state)
{
    (void)state;
    // Published test vectors of 64-bit FNV-1a.
    assert_true(layout_digest_add(LAYOUT_DIGEST_SEED, "", 0) == UINT64_C(0xCBF29CE484222325));
    assert_true(layout_digest_add(LAYOUT_DIGEST_SEED, "a", 1) == UINT64_C(0xAF63DC4C8601EC8C));
    assert_true(layout_digest_add(LAYOUT_DIGEST_SEED, "foobar", 6) == UINT64_C(0x85944171F73967E8));
    uint64_t chained = layout_digest_add(LAYOUT_DIGEST_SEED, "foo", 3);
    assert_true(layout_digest_add(chained, "bar", 3) == UINT64_C(0x85944171F73967E8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_follow_each_other_and_differ_by_at_most_one),
        cmocka_unit_test(the_longer_parts_come_first),
        cmocka_unit_test(the_largest_vector_can_be_cut_into_the_most_parts),
        cmocka_unit_test(an_intersection_has_what_both_contain),
        cmocka_unit_test(spans_at_the_end_of_numbers_intersect_without_wrapping),
        cmocka_unit_test(a_layout_of_descending_buckets_passes),
        cmocka_unit_test(a_layout_with_gaps_overlaps_or_hostile_numbers_is_malformed),
        cmocka_unit_test(what_passes_the_check_covers_the_vector_whatever_was_changed),
        cmocka_unit_test(buckets_are_filled_from_the_end_and_the_first_is_a_quarter),
        cmocka_unit_test(a_bucket_larger_than_the_model_holds_all_of_it),
        cmocka_unit_test(large_buckets_are_cut_into_equal_parts),
        cmocka_unit_test(parts_that_would_be_too_many_are_made_larger),
        cmocka_unit_test(merged_buckets_hold_as_much_as_asked_and_the_first_a_quarter),
        cmocka_unit_test(merging_gives_the_buckets_that_tensors_alone_would_be_cut_into),
        cmocka_unit_test(random_layouts_are_merged_in_order_and_merging_again_changes_nothing),
        cmocka_unit_test(the_buckets_that_would_be_too_many_become_one),
        cmocka_unit_test(random_tensors_are_covered_in_order_and_buckets_are_as_small_as_allowed),
        cmocka_unit_test(tensors_that_are_no_vector_are_refused_and_nothing_is_written),
        cmocka_unit_test(the_digest_is_that_of_the_tensors_and_not_of_the_buckets),
        cmocka_unit_test(digests_are_fnv_1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
