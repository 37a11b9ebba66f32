/* Tests of how lists of augmentations are read. */
#include "common/plan/augmentation.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

static struct augmentation parse(const char *text)
{
    struct augmentation augmentation;
    char why[256] = "";
    enum status status = augmentation_parse(text, &augmentation, why, sizeof(why));
    if (status != STATUS_OK) {
        print_message("%s: %s\n", text, why);
    }
    assert_int_equal(status, STATUS_OK);
    return augmentation;
}

static void a_list_is_read_in_any_order(void **state)
{
    (void)state;
    struct augmentation all =
        parse("cutout:8,mixup:0.2,colour:0.25,rotate:12.5,resized-crop:0.35..0.9,crop:4,flip");
    const struct augmentation expected = {{
        [AUGMENT_FLIP] = 1,
        [AUGMENT_CROP] = 4,
        [AUGMENT_ROTATE] = 12.5,
        [AUGMENT_COLOUR] = 0.25,
        [AUGMENT_CUTOUT] = 8,
        [AUGMENT_RESIZED_CROP] = 0.35,
        [AUGMENT_MIXUP] = 0.2,
        [AUGMENT_CROP_MOST] = 0.9,
    }};
    assert_memory_equal(&all, &expected, sizeof(all));
    assert_true(augmentation_is_on(&all));
}

static void none_is_nothing(void **state)
{
    (void)state;
    struct augmentation none = parse("none");
    assert_false(augmentation_is_on(&none));
}

static void a_preset_stands_for_its_list_and_may_be_part_of_one(void **state)
{
    (void)state;
    struct augmentation preset = parse("cifar"), list = parse("flip,crop:4");
    assert_memory_equal(&preset, &list, sizeof(preset));
    preset = parse("imagenet");
    list = parse("colour:0.4,resized-crop:0.08..1,flip");
    assert_memory_equal(&preset, &list, sizeof(preset));
    struct augmentation more = parse("cifar,cutout:16"), longer = parse("cutout:16,flip,crop:4");
    assert_memory_equal(&more, &longer, sizeof(more));
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "there is no ''"},
        {"flop", "there is no 'flop'; there are flip, crop:P"},
        {"flip,", "it ends with a comma"},
        {"flip,,crop:4", "there is no ''"},
        {"none,flip", "there is no 'none'"},
        {"flip:1", "flip takes no number"},
        {"crop", "crop needs a number from 1 to 512: crop:P"},
        {"crop:", "crop needs a number from 1 to 512: crop:P"},
        {"crop:0", "crop needs a number from 1 to 512: crop:P"},
        {"crop:1.5", "crop needs a number from 1 to 512: crop:P"},
        {"crop:-4", "crop needs a number from 1 to 512: crop:P"},
        {"crop:4x", "crop needs a number from 1 to 512: crop:P"},
        {"crop:1e2", "crop needs a number from 1 to 512: crop:P"},
        {"crop:nan", "crop needs a number from 1 to 512: crop:P"},
        {"crop:1.2.3", "crop needs a number from 1 to 512: crop:P"},
        {"crop:1111111111111111111111111111111111111111", "crop needs a number from 1 to 512"},
        {"rotate:181", "rotate needs a number from 1 to 180: rotate:D"},
        {"colour:1.01", "colour needs a number from 0.01 to 1: colour:S"},
        {"cutout:1025", "cutout needs a number from 1 to 1024: cutout:N"},
        {"flip,flip", "flip is there twice"},
        {"cifar,crop:2", "crop is there twice"},
        {"cifar:4", "there is no 'cifar:4'"},
        {"resized-crop", "resized-crop needs two numbers from 0.01 to 1, in order"},
        {"resized-crop:0.5", "resized-crop:A..B"},
        {"resized-crop:..1", "resized-crop:A..B"},
        {"resized-crop:0.5..", "resized-crop:A..B"},
        {"resized-crop:0.5...1", "resized-crop:A..B"},
        {"resized-crop:0.9..0.5", "resized-crop:A..B"},
        {"resized-crop:0..1", "resized-crop:A..B"},
        {"resized-crop:0.5..1.5", "resized-crop:A..B"},
        {"imagenet,resized-crop:0.5..1", "resized-crop is there twice"},
        {"mixup:0.01", "mixup needs a number from 0.05 to 1: mixup:A"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct augmentation untouched = {{7}};
        char why[256] = "";
        assert_int_equal(augmentation_parse(cases[i].text, &untouched, why, sizeof(why)),
                         STATUS_INVALID);
        if (strstr(why, cases[i].why) == NULL) {
            fail_msg("'%s': '%s' is not in '%s'", cases[i].text, cases[i].why, why);
        }
        assert_true(untouched.amounts[0] == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_in_any_order),
        cmocka_unit_test(none_is_nothing),
        cmocka_unit_test(a_preset_stands_for_its_list_and_may_be_part_of_one),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
