/* Where a job writes if nobody says. */
#include "deploy/hosts/launcher_options.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>
#include <unistd.h>

static void a_folder_that_was_asked_for_is_kept(void **state)
{
    (void)state;
    struct launcher_options options = {.out = "here"};
    launcher_default_folder(&options, "ring-cnn");
    assert_string_equal(options.out, "here");
}

/* Two may fall on different seconds, ten do not all. */
static void jobs_of_one_second_get_folders_of_their_own(void **state)
{
    (void)state;
    char *folder = temp_folder_create();
    char names[10][1024];
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < 10; i++) {
        struct launcher_options options = {.out = ""};
        launcher_default_folder(&options, "ring-cnn");
        memcpy(names[i], options.out, sizeof(names[i]));
        assert_non_null(strstr(names[i], "-ring-cnn"));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(names[i], names[j]);
        }
        // temp_folder_write makes one level: runs/ is the folder, the job's name the file in it.
        temp_folder_write(folder, names[i], "", 0);
    }
    assert_int_equal(chdir("/"), 0);
    temp_folder_destroy(folder);
}

static void an_empty_folder_is_refused_instead_of_the_default(void **state)
{
    (void)state;
    struct launcher_options options;
    const struct option_set set = launcher_option_set(&options);
    char error[OPTION_ERROR_BYTES];
    options_reset(&set);
    assert_int_equal(options_set_text(&set, 1, "out", "", error, sizeof(error)), STATUS_INVALID);
    assert_string_equal(error, "out is '': give it a value, or leave it out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_that_was_asked_for_is_kept),
        cmocka_unit_test(an_empty_folder_is_refused_instead_of_the_default),
        cmocka_unit_test(jobs_of_one_second_get_folders_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
