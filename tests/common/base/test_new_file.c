/* Tests of new files: a planted link is never followed, and folders of others are refused. */
#include "common/base/new_file.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct places {
    char victim[512], planted[512];
};

static void plant(const char *folder, bool is_hard, struct places *ret_places)
{
    snprintf(ret_places->victim, sizeof(ret_places->victim), "%s/victim", folder);
    snprintf(ret_places->planted, sizeof(ret_places->planted), "%s/summary.json", folder);
    int fd = open(ret_places->victim, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    unlink(ret_places->planted);
    assert_int_equal(is_hard ? link(ret_places->victim, ret_places->planted)
                             : symlink(ret_places->victim, ret_places->planted),
                     0);
}

static void check_victim(const struct places *places)
{
    char bytes[16] = "";
    int fd = open(places->victim, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 8);
    close(fd);
    assert_memory_equal(bytes, "precious", 8);
}

static void a_planted_link_is_replaced_and_what_it_leads_to_stays(void **state)
{
    for (int is_hard = 0; is_hard <= 1; is_hard++) {
        struct places places;
        struct stat facts;
        plant(*state, is_hard != 0, &places);
        FILE *stream = new_file_stream(places.planted, true);
        assert_non_null(stream);
        assert_true(fputs("new", stream) >= 0);
        assert_int_equal(fclose(stream), 0);
        check_victim(&places);
        assert_int_equal(lstat(places.planted, &facts), 0);
        assert_true(S_ISREG(facts.st_mode));
        assert_int_equal(facts.st_size, 3);
    }
}

static void a_name_that_exists_is_an_error_unless_it_is_to_be_replaced(void **state)
{
    struct places places;
    plant(*state, false, &places);
    errno = 0;
    assert_int_equal(new_file_open(places.planted, false), -1);
    assert_int_equal(errno, EEXIST);
    check_victim(&places);
}

static void what_is_appended_to_is_no_link(void **state)
{
    for (int is_hard = 0; is_hard <= 1; is_hard++) {
        struct places places;
        plant(*state, is_hard != 0, &places);
        assert_int_equal(new_file_append(places.planted), -1);
        assert_int_equal(errno, ELOOP);
        check_victim(&places);
        unlink(places.planted);
        for (int i = 0; i < 2; i++) {
            int fd = new_file_append(places.planted);
            assert_int_equal(write(fd, "line", 4), 4);
            close(fd);
        }
        struct stat facts;
        assert_int_equal(lstat(places.planted, &facts), 0);
        assert_int_equal(facts.st_size, 8);
    }
}

static void a_folder_that_every_user_can_change_is_refused(void **state)
{
    static const struct {
        mode_t mode;
        enum status status;
    } cases[] = {
        {0700, STATUS_OK},     {0755, STATUS_OK},  {0775, STATUS_OK},
        {0777, STATUS_DENIED}, {01777, STATUS_OK}, {0707, STATUS_DENIED},
    };
    char error[512], folder[512];
    snprintf(folder, sizeof(folder), "%s/run", (const char *)*state);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(chmod(folder, cases[i].mode), 0);
        assert_int_equal(new_file_check_folder(folder, error, sizeof(error)), cases[i].status);
    }
    assert_non_null(strstr(error, folder));
    assert_non_null(strstr(error, "chmod o-w"));
}

static void a_folder_of_another_user_is_refused(void **state)
{
    char error[512], folder[512];
    snprintf(folder, sizeof(folder), "%s/theirs", (const char *)*state);
    assert_int_equal(mkdir(folder, 0700), 0);
    if (chown(folder, 4711, 4711) != 0) {
        skip(); // not root
    }
    assert_int_equal(new_file_check_folder(folder, error, sizeof(error)), STATUS_DENIED);
    assert_non_null(strstr(error, "uid 4711"));
}

static void what_cannot_be_filled_leaves_nothing(void **state)
{
    char path[512];
    struct stat facts;
    snprintf(path, sizeof(path), "%s/filled", (const char *)*state);
    assert_int_equal(new_file_fill(path, 10000), STATUS_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 10000);
    file_limit_begin(9999);
    enum status status = new_file_fill(path, 10000);
    int error = errno;
    file_limit_end();
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(error, EFBIG);
    assert_int_equal(access(path, F_OK), -1);
}

/* Opening a pipe would wait for its other end, here for ever. */
static void nothing_but_a_file_is_read_or_appended_to(void **state)
{
    char pipe[512];
    snprintf(pipe, sizeof(pipe), "%s/pipe", (const char *)*state);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_null(new_file_read(pipe));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(new_file_append(pipe), -1);
    assert_int_equal(errno, ELOOP);
    assert_null(new_file_read(*state));
    assert_int_equal(errno, EISDIR);
}

static void a_file_is_replaced_as_a_whole_or_stays(void **state)
{
    char path[512], draft[600], text[16] = "";
    snprintf(path, sizeof(path), "%s/file", (const char *)*state);
    snprintf(draft, sizeof(draft), "%s.part", path);
    assert_int_equal(new_file_replace(path, "before", 6), STATUS_OK);
    file_limit_begin(3);
    enum status status = new_file_replace(path, "behind", 6);
    int error = errno;
    file_limit_end();
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(error, EFBIG);
    assert_int_equal(access(draft, F_OK), -1);
    FILE *file = new_file_read(path);
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof(text), file), 6);
    fclose(file);
    assert_string_equal(text, "before");
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_planted_link_is_replaced_and_what_it_leads_to_stays,
                                        open_folder, close_folder),
        cmocka_unit_test_setup_teardown(a_name_that_exists_is_an_error_unless_it_is_to_be_replaced,
                                        open_folder, close_folder),
        cmocka_unit_test_setup_teardown(what_is_appended_to_is_no_link, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(nothing_but_a_file_is_read_or_appended_to, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(a_file_is_replaced_as_a_whole_or_stays, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(what_cannot_be_filled_leaves_nothing, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(a_folder_that_every_user_can_change_is_refused, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(a_folder_of_another_user_is_refused, open_folder,
                                        close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
