/* Tests of keys: their text, who is allowed, and who may read a key file. */
#include "common/security/keys.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

#include <sodium.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The key pairs that CurveZMQ's documentation uses throughout.
#define SERVER_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define SERVER_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
#define CLIENT_PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define CLIENT_SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"

static enum status parse(const char *text, struct keys *keys, char error[KEYS_ERROR_BYTES])
{
    memset(keys, 0, sizeof(*keys));
    error[0] = '\0';
    return keys_parse(text, strlen(text), keys, error, KEYS_ERROR_BYTES);
}

static void a_file_has_pairs_comments_and_further_clients(void **state)
{
    (void)state;
    static struct keys keys;
    char error[KEYS_ERROR_BYTES];
    const char *text = "# all of it\r\n"
                       "\n"
                       "  server-public =" SERVER_PUBLIC "\n"
                       "server-secret\t= " SERVER_SECRET " \n"
                       "client-secret=" CLIENT_SECRET "\n"
                       "allow = " SERVER_PUBLIC "\n"
                       "client-public = " CLIENT_PUBLIC; // without a line's end
    assert_int_equal(parse(text, &keys, error), STATUS_OK);
    assert_true(keys.server.has_secret && keys.server.has_public);
    assert_true(keys.client.has_secret && keys.client.has_public);
    assert_int_equal(keys.allowed_count, 1);
    assert_true(keys_allow(&keys, keys.client.public_key));
    assert_true(keys_allow(&keys, keys.server.public_key)); // by its allow line
    unsigned char other[KEY_BYTES];
    memcpy(other, keys.client.public_key, KEY_BYTES);
    other[KEY_BYTES - 1] ^= 1;
    assert_false(keys_allow(&keys, other));
}

static void a_public_key_follows_from_the_secret_one(void **state)
{
    (void)state;
    static struct keys full, brief;
    char error[KEYS_ERROR_BYTES];
    assert_int_equal(parse("server-secret = " SERVER_SECRET, &brief, error), STATUS_OK);
    assert_int_equal(parse("server-public = " SERVER_PUBLIC, &full, error), STATUS_OK);
    assert_true(brief.server.has_public);
    assert_memory_equal(brief.server.public_key, full.server.public_key, KEY_BYTES);
    assert_false(full.server.has_secret);
    assert_false(brief.client.has_public);
    const unsigned char zeros[KEY_BYTES] = {0};
    assert_false(keys_allow(&brief, zeros)); // a key that is not there is nobody's
}

static void what_is_wrong_is_named_by_its_line_and_never_shown(void **state)
{
    (void)state;
    static struct keys keys;
    const char *const cases[][2] = {
        {"server-public = " SERVER_PUBLIC "x\n", "line 1: a key has 40 characters"},
        {"\n# c\nserver-secret = \"TKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6\n",
         "line 3: this is not a key in Z85"},
        {"server-secret\n", "line 1: a line is NAME = KEY"},
        {"server = " SERVER_PUBLIC "\n", "line 1: names are"},
        {"client-public = " CLIENT_PUBLIC "\nclient-public = " CLIENT_PUBLIC "\n",
         "line 2: its name was given before"},
        {"server-public = " CLIENT_PUBLIC "\nserver-secret = " SERVER_SECRET "\n",
         "a public key does not belong to the secret one"},
        {"client-secret = " CLIENT_SECRET "\n", "it has no server-public"},
        {"# nothing\n", "it has no server-public"},
        {"", "it has no server-public"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[KEYS_ERROR_BYTES];
        assert_int_equal(parse(cases[i][0], &keys, error), STATUS_MALFORMED);
        if (strncmp(error, cases[i][1], strlen(cases[i][1])) != 0) {
            fail_msg("'%s' is not how this begins: %s", cases[i][1], error);
        }
        assert_null(strstr(error, "TKVSB"));
        assert_null(strstr(error, "hhC2"));
    }
}

static void no_more_clients_are_allowed_than_there_is_room_for(void **state)
{
    (void)state;
    static struct keys keys;
    static char text[KEYS_TEXT_MAX];
    char error[KEYS_ERROR_BYTES];
    size_t used = (size_t)snprintf(text, sizeof(text), "server-public = %s\n", SERVER_PUBLIC);
    for (unsigned i = 0; i < KEYS_ALLOWED_MAX; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "allow = %s\n", CLIENT_PUBLIC);
    }
    assert_int_equal(parse(text, &keys, error), STATUS_OK);
    assert_int_equal(keys.allowed_count, KEYS_ALLOWED_MAX);
    static char again[KEYS_TEXT_MAX];
    keys_format(&keys, again); // a full file fits
    snprintf(text + used, sizeof(text) - used, "allow = %s\n", CLIENT_PUBLIC);
    assert_int_equal(parse(text, &keys, error), STATUS_MALFORMED);
}

static void keys_that_are_made_come_back_from_their_text(void **state)
{
    (void)state;
    struct keys *keys, *others;
    static struct keys back;
    static char text[KEYS_TEXT_MAX];
    char error[KEYS_ERROR_BYTES];
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    assert_int_equal(keys_generate(&others), STATUS_OK);
    keys_format(keys, text);
    assert_int_equal(parse(text, &back, error), STATUS_OK);
    assert_memory_equal(&back, keys, sizeof(back));
    assert_memory_not_equal(keys->server.secret_key, others->server.secret_key, KEY_BYTES);
    assert_memory_not_equal(keys->server.secret_key, keys->client.secret_key, KEY_BYTES);
    assert_false(keys_allow(keys, others->client.public_key));
    keys_destroy(keys);
    keys_destroy(others);
    keys_destroy(NULL);
}

/* What reading the file says; it must be refused. */
static const char *refusal_of(const char *path, enum status expected)
{
    struct keys *keys;
    captured_log_begin();
    enum status status = keys_read(path, &keys);
    const char *said = captured_log_end();
    if (status != expected) {
        fail_msg("status %s for %s: %s", status_text(status), path, said);
    }
    return said;
}

static void a_new_file_is_its_owners_alone_and_replaces_nothing(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[256];
    struct keys *keys, *others, *read;
    struct stat info;
    mode_t before = umask(0);
    snprintf(path, sizeof(path), "%s/job.keys", folder);
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    assert_int_equal(keys_generate(&others), STATUS_OK);
    assert_int_equal(keys_create_file(keys, path, false), STATUS_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);

    captured_log_begin();
    assert_int_equal(keys_create_file(others, path, false), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "--force replaces them"));
    assert_int_equal(keys_read(path, &read), STATUS_OK);
    assert_memory_equal(read, keys, sizeof(*keys));
    keys_destroy(read);

    assert_int_equal(keys_create_file(others, path, true), STATUS_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(keys_read(path, &read), STATUS_OK);
    assert_memory_equal(read, others, sizeof(*others));
    keys_destroy(read);
    keys_destroy(keys);
    keys_destroy(others);
    umask(before);
    temp_folder_destroy(folder);
}

static void a_file_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[256];
    struct keys *keys;
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    snprintf(path, sizeof(path), "%s/none/job.keys", folder);
    for (int may_replace = 0; may_replace < 2; may_replace++) {
        captured_log_begin();
        assert_int_equal(keys_create_file(keys, path, may_replace != 0), STATUS_IO);
        assert_non_null(strstr(captured_log_end(), path));
    }
    // A folder is not replaced, and nothing is left beside it.
    snprintf(path, sizeof(path), "%s/taken", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    captured_log_begin();
    assert_int_equal(keys_create_file(keys, path, true), STATUS_IO);
    captured_log_end();
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    // Neither is a pipe, a device or a link.
    struct stat facts;
    assert_int_equal(mkfifo(path, 0600), 0);
    captured_log_begin();
    assert_int_equal(keys_create_file(keys, path, true), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "not a regular file"));
    assert_int_equal(lstat(path, &facts), 0);
    assert_true(S_ISFIFO(facts.st_mode));
    keys_destroy(keys);
    temp_folder_destroy(folder);
}

/* A folder that may be written and not read: it cannot be opened, to be synced. */
static void a_folder_that_cannot_be_synced_keeps_the_keys(void **state)
{
    (void)state;
    const uid_t nobody = 65534;
    char *folder = temp_folder_create(), path[256];
    bool is_root = geteuid() == 0; // who may open everything
    struct keys *keys, *read;
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    snprintf(path, sizeof(path), "%s/job.keys", folder);
    assert_int_equal(chmod(folder, 0300), 0);
    if (is_root) {
        assert_int_equal(chown(folder, nobody, (gid_t)-1), 0);
        assert_int_equal(seteuid(nobody), 0);
    }
    for (int may_replace = 0; may_replace < 2; may_replace++) {
        captured_log_begin();
        assert_int_equal(keys_create_file(keys, path, may_replace != 0), STATUS_OK);
        const char *said = captured_log_end();
        assert_non_null(strstr(said, " warn "));
        assert_non_null(strstr(said, path));
        assert_int_equal(keys_read(path, &read), STATUS_OK);
        assert_memory_equal(read, keys, sizeof(*keys));
        keys_destroy(read);
    }
    if (is_root) {
        assert_int_equal(seteuid(0), 0);
    }
    assert_int_equal(chmod(folder, 0700), 0);
    keys_destroy(keys);
    temp_folder_destroy(folder);
}

static void a_file_that_others_have_access_to_is_refused(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[256];
    const char *text = "server-public = " SERVER_PUBLIC "\n";
    temp_folder_write(folder, "job.keys", text, strlen(text));
    snprintf(path, sizeof(path), "%s/job.keys", folder);
    const mode_t refused[] = {0644, 0640, 0604, 0620, 0602, 0610, 0777};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(chmod(path, refused[i]), 0);
        assert_non_null(strstr(refusal_of(path, STATUS_INVALID), "run: chmod 600 "));
    }
    struct keys *keys;
    const mode_t taken[] = {0600, 0400, 0700};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        assert_int_equal(chmod(path, taken[i]), 0);
        assert_int_equal(keys_read(path, &keys), STATUS_OK);
        keys_destroy(keys);
    }
    temp_folder_destroy(folder);
}

static void a_file_of_another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can give files to others\n");
        skip();
    }
    char *folder = temp_folder_create(), path[256];
    const char *text = "server-public = " SERVER_PUBLIC "\n";
    temp_folder_write(folder, "job.keys", text, strlen(text));
    snprintf(path, sizeof(path), "%s/job.keys", folder);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chown(path, 4711, 4711), 0);
    assert_non_null(strstr(refusal_of(path, STATUS_INVALID), "another user, number 4711"));
    temp_folder_destroy(folder);
}

static void what_is_no_key_file_is_refused_at_once(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[256];
    static char large[KEYS_TEXT_MAX];
    memset(large, '\n', sizeof(large));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_non_null(strstr(refusal_of(path, STATUS_INVALID), "not a regular file"));
    assert_non_null(strstr(refusal_of(folder, STATUS_INVALID), "not a regular file"));
    assert_non_null(strstr(refusal_of("/dev/zero", STATUS_INVALID), "not a regular file"));
    snprintf(path, sizeof(path), "%s/none", folder);
    assert_non_null(strstr(refusal_of(path, STATUS_IO), "No such file"));
    temp_folder_write(folder, "large", large, sizeof(large));
    snprintf(path, sizeof(path), "%s/large", folder);
    assert_int_equal(chmod(path, 0600), 0);
    assert_non_null(strstr(refusal_of(path, STATUS_MALFORMED), "are not a key file"));
    temp_folder_destroy(folder);
}

/* Standard input becomes this descriptor; returns what it was. */
static int take_input(int fd)
{
    int before = dup(STDIN_FILENO);
    assert_true(before >= 0);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    close(fd);
    return before;
}

static void keys_come_over_a_pipe(void **state)
{
    (void)state;
    struct keys *keys, *read;
    int ends[2];
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(keys_write(keys, ends[1]), STATUS_OK);
    close(ends[1]);
    int before = take_input(ends[0]);
    enum status status = keys_read("-", &read);
    close(take_input(before));
    assert_int_equal(status, STATUS_OK);
    assert_memory_equal(read, keys, sizeof(*keys));
    keys_destroy(read);
    keys_destroy(keys);
}

static void a_file_as_standard_input_is_checked_like_any(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[256];
    const char *text = "server-public = " SERVER_PUBLIC "\n";
    temp_folder_write(folder, "job.keys", text, strlen(text));
    snprintf(path, sizeof(path), "%s/job.keys", folder);
    assert_int_equal(chmod(path, 0644), 0);
    int before = take_input(open(path, O_RDONLY | O_CLOEXEC));
    const char *said = refusal_of("-", STATUS_INVALID);
    close(take_input(before));
    assert_non_null(strstr(said, "standard input cannot be used: others have access"));
    temp_folder_destroy(folder);
}

static void the_path_of_a_file_holds_from_any_folder(void **state)
{
    (void)state;
    char *folder = temp_folder_create(), path[PATH_MAX], dotted[PATH_MAX], expected[PATH_MAX];
    temp_folder_write(folder, "job.keys", "", 0);
    snprintf(dotted, sizeof(dotted), "%s/./job.keys", folder);
    assert_non_null(realpath(dotted, expected));
    keys_path(dotted, path);
    assert_string_equal(path, expected);
    keys_path("-", path);
    assert_string_equal(path, "FILE");
    keys_path("/nowhere/at/all", path);
    assert_string_equal(path, "FILE");
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_pairs_comments_and_further_clients),
        cmocka_unit_test(a_public_key_follows_from_the_secret_one),
        cmocka_unit_test(what_is_wrong_is_named_by_its_line_and_never_shown),
        cmocka_unit_test(no_more_clients_are_allowed_than_there_is_room_for),
        cmocka_unit_test(keys_that_are_made_come_back_from_their_text),
        cmocka_unit_test(a_new_file_is_its_owners_alone_and_replaces_nothing),
        cmocka_unit_test(a_folder_that_cannot_be_synced_keeps_the_keys),
        cmocka_unit_test(a_file_that_cannot_be_made_is_named),
        cmocka_unit_test(a_file_that_others_have_access_to_is_refused),
        cmocka_unit_test(a_file_of_another_user_is_refused),
        cmocka_unit_test(what_is_no_key_file_is_refused_at_once),
        cmocka_unit_test(keys_come_over_a_pipe),
        cmocka_unit_test(a_file_as_standard_input_is_checked_like_any),
        cmocka_unit_test(the_path_of_a_file_holds_from_any_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
