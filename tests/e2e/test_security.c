/* End to end: keys, and who has none or others. */
#include "common/base/signals.h"
#include "tests/support/common/keyed_job.h"
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Runs a program that must fail, and say so. */
static void expect_refusal(const char *folder, const char *path, const char *const *args,
                           const char *sentence)
{
    struct program_run run = {.announce_fd = -1};
    program_start(&run, folder, path, false, args, NULL);
    int code = program_wait(&run);
    if (code == 0 || code >= 128 || strstr(program_output(&run), sentence) == NULL) {
        fail_msg("exit code %d, and '%s' is to be found in: %s", code, sentence,
                 program_output(&run));
    }
}

static void keys_and_seals_change_no_bit(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES];
    programs_make_folder(folder);
    keyed_job_make_keys(folder, "job.keys", keys);
    const char *const modes[] = {"ring", "ps-sync", "ps-async"};
    for (size_t i = 0; i < 3; i++) {
        const char *order = i == 2 ? "seeded:round-robin" : "free";
        const char *const ways[][6] = {
            {"--transport", "tcp", NULL},
            {"--transport", "tcp", "--keys", keys, NULL},
            {"--transport", "tcp", "--security", "auth-only", NULL}, // keys of the launcher's
            {"--transport", "ipc", "--security", "auth-only", NULL},
            {"--transport", "auto", "--keys", keys, NULL},
            {"--transport", "tcp", "--insecure", NULL},
        };
        char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
        for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
            const char *args[20] = {
                "-n",      "3", "--mode",  modes[i], "--servers", i == 0 ? "1" : "2",
                "--steps", "5", "--batch", "8",      "--order",   order};
            for (size_t a = 0; ways[k][a] != NULL; a++) {
                args[12 + a] = ways[k][a];
            }
            programs_run_digest(args, k == 0 ? first : digest);
            if (k > 0 && strcmp(first, digest) != 0) {
                fail_msg("%s with %s %s ends with %.12s, without with %.12s", modes[i], ways[k][2],
                         ways[k][3], digest, first);
            }
        }
    }
    programs_remove_folder(folder);
}

static void who_has_not_the_keys_is_refused_and_the_job_goes_on(void **state)
{
    (void)state;
    struct keyed_job run;
    char unknown[KEYED_JOB_PATH_BYTES], wrong[KEYED_JOB_PATH_BYTES], text[512],
        line[KEYED_JOB_LINE_BYTES];
    char digest[PROGRAM_DIGEST_BYTES], expected[PROGRAM_DIGEST_BYTES];
    const char *const more[] = {"--steps", "20", NULL};
    keyed_job_open(&run, "ps-sync", more);
    keyed_job_start_worker(&run, 0);
    // Another server's key; then the right one, and a key of one's own.
    keyed_job_make_keys(run.folder, "other.keys", wrong);
    keyed_job_find_line(run.keys, "server-public", text);
    keyed_job_find_line(wrong, "client-secret", line);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "\n%s\n", line);
    snprintf(unknown, sizeof(unknown), "%.400s/unknown.keys", run.folder);
    keyed_job_write_file(unknown, text);

    const char *const none[] = {"--server",       run.endpoint, "--rank",     "1",
                                "--join-timeout", "2",          "--insecure", NULL};
    const char *const other[] = {"--server", run.endpoint, "--rank", "1", "--keys", unknown, NULL};
    const char *const server[] = {"--server", run.endpoint,     "--rank", "1", "--keys",
                                  wrong,      "--join-timeout", "2",      NULL};
    expect_refusal(run.folder, "worker/worker", none, "the server wants keys");
    expect_refusal(run.folder, "worker/worker", other, "does not allow this process's key");
    expect_refusal(run.folder, "worker/worker", server, "breaks off the handshake");

    keyed_job_start_worker(&run, 1);
    keyed_job_finish(&run, digest);
    keyed_job_run_undisturbed("ps-sync", "20", expected);
    assert_string_equal(digest, expected);
    const char *log = program_output(&run.ps);
    assert_non_null(strstr(log, "refused a connection: from=127.0.0.1:"));
    assert_non_null(strstr(log, "reason=\"its key is not an allowed one\""));
    assert_non_null(strstr(log, "reason=\"it does not know this server's public key\""));
    programs_remove_folder(run.folder);
}

static void over_tcp_nothing_starts_without_keys(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    // 192.0.2.0/24 is nobody's (RFC 5737).
    const char *const server[] = {"--bind", "192.0.2.1", NULL};
    const char *const worker[] = {"--server", "tcp://192.0.2.1:5555", NULL};
    const char *const shard[] = {"--shard-index", "1", "--server", "tcp://192.0.2.1:5555", NULL};
    expect_refusal(folder, "ps-server/ps", server,
                   "cannot listen at tcp://192.0.2.1:* without keys");
    expect_refusal(folder, "worker/worker", worker,
                   "cannot connect to tcp://192.0.2.1:5555 without keys");
    expect_refusal(folder, "ps-server/ps", shard, "`ringside keygen FILE`");
    // Nor on the loopback interface, where every user of this host could connect.
    const char *const near_server[] = {"--bind", "127.0.0.1", NULL};
    const char *const near_port[] = {"--port", "0", NULL};
    const char *const near_worker[] = {"--server", "tcp://127.0.0.1:5555", NULL};
    const char *const transport[] = {"--transport", "tcp", NULL};
    expect_refusal(folder, "ps-server/ps", near_server,
                   "cannot listen at tcp://127.0.0.1:* without keys");
    expect_refusal(folder, "ps-server/ps", near_port, "leave out --bind and --port");
    expect_refusal(folder, "worker/worker", near_worker,
                   "cannot connect to tcp://127.0.0.1:5555 without keys");
    expect_refusal(folder, "ps-server/ps", transport, "--transport tcp needs keys");
    const char *const contradiction[] = {"--insecure", "--keys", "x", NULL};
    expect_refusal(folder, "ps-server/ps", contradiction, "contradict each other");
    expect_refusal(folder, "deploy/ringside",
                   (const char *const[]){"run", "--insecure", "--keys", "x", NULL},
                   "contradict each other");
    // Each run of a comparison and of a sweep, too.
    const char *const clear[][8] = {
        {"run", "--insecure", "--security", "auth-only", NULL},
        {"compare", "--insecure", "--security", "auth-only", NULL},
        {"sweep", "--insecure", "--grid", "security=curve,auth-only", NULL},
    };
    for (size_t i = 0; i < 3; i++) {
        expect_refusal(folder, "deploy/ringside", clear[i],
                       "--insecure and --security auth-only contradict each other");
    }
    const char *const seals[] = {"--security", "auth-only", NULL};
    expect_refusal(folder, "ps-server/ps", seals, "--security auth-only needs --keys FILE");
    programs_remove_folder(folder);
}

static void a_key_file_that_others_can_read_is_refused_by_all_programs(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES];
    programs_make_folder(folder);
    keyed_job_make_keys(folder, "job.keys", keys);
    assert_int_equal(chmod(keys, 0640), 0);
    const char *const server[] = {"--keys", keys, NULL};
    const char *const worker[] = {"--server", "tcp://127.0.0.1:1", "--keys", keys, NULL};
    const char *const run[] = {"run", "--keys", keys, NULL};
    expect_refusal(folder, "ps-server/ps", server,
                   "others have access (mode 0640); run: chmod 600");
    expect_refusal(folder, "worker/worker", worker, "run: chmod 600 ");
    expect_refusal(folder, "deploy/ringside", run, "run: chmod 600 ");
    programs_remove_folder(folder);
}

static void keygen_replaces_nothing_unless_it_is_told_to(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES], first[128], second[128];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    keyed_job_make_keys(folder, "job.keys", keys);
    keyed_job_find_line(keys, "client-secret", first);
    const char *const again[] = {"keygen", keys, NULL}, *const force[] = {"keygen", keys, "--force",
                                                                          NULL};
    expect_refusal(folder, "deploy/ringside", again, "--force replaces them");
    keyed_job_find_line(keys, "client-secret", second);
    assert_string_equal(first, second);
    program_start(&run, folder, "deploy/ringside", false, force, NULL);
    assert_int_equal(program_wait(&run), 0);
    keyed_job_find_line(keys, "client-secret", second);
    assert_string_not_equal(first, second);
    const char *const two[] = {"keygen", keys, "more", NULL}, *const none[] = {"keygen", NULL};
    expect_refusal(folder, "deploy/ringside", two, "one FILE at a time");
    expect_refusal(folder, "deploy/ringside", none, "usage: ringside keygen FILE");
    programs_remove_folder(folder);
}

/* Fails the test if a file below the folder holds the text; counts those that hold `other`. */
static unsigned search(const char *folder, const char *text, const char *other)
{
    unsigned found = 0;
    static char content[1 << 20];
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char path[2 * PROGRAM_PATH_BYTES];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (entry->d_type == DT_DIR) {
            found += search(path, text, other);
            continue;
        }
        keyed_job_read_text(path, content, sizeof(content));
        if (strstr(content, text) != NULL) {
            fail_msg("%s holds a secret", path);
        }
        found += strstr(content, other) != NULL;
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return found;
}

static void no_file_of_a_run_has_a_secret_and_every_log_says_that_there_is_none(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES], out[KEYED_JOB_PATH_BYTES];
    char line[KEYED_JOB_LINE_BYTES];
    programs_make_folder(folder);
    keyed_job_make_keys(folder, "job.keys", keys);
    snprintf(out, sizeof(out), "%s/out", folder);
    for (unsigned is_insecure = 0; is_insecure < 2; is_insecure++) {
        struct program_run run = {.announce_fd = -1};
        const char *args[PROGRAM_ARGS_MAX] = {"run",
                                              "--out",
                                              out,
                                              "--mode",
                                              "ring",
                                              "-n",
                                              "2",
                                              "--model",
                                              "lenet5",
                                              "--steps",
                                              "2",
                                              "--limit-train",
                                              "120",
                                              "--eval",
                                              "none",
                                              "--log-level",
                                              is_insecure ? "warn" : "debug",
                                              "--transport",
                                              "tcp"};
        args[19] = is_insecure ? "--insecure" : "--keys";
        args[20] = is_insecure ? NULL : keys;
        program_start(&run, folder, "deploy/ringside", false, args, NULL);
        if (program_wait(&run) != 0) {
            fail_msg("%s", program_output(&run));
        }
        keyed_job_find_line(keys, "client-secret", line);
        const char *client = strrchr(line, ' ') + 1;
        unsigned logs = search(out, client, "--insecure: connections are neither encrypted");
        keyed_job_find_line(keys, "server-secret", line);
        search(out, strrchr(line, ' ') + 1, "");
        assert_int_equal(logs, is_insecure ? 3 : 0); // of ps and two workers
        programs_remove_folder(out);
    }
    programs_remove_folder(folder);
}

/* Starts a long job on this host, and waits until it trains; then the log of its server. */
static void launch(struct program_run *run, const char *folder, const char *transport, char *log,
                   size_t log_size)
{
    char out[KEYED_JOB_PATH_BYTES], path[2 * PROGRAM_PATH_BYTES];
    snprintf(out, sizeof(out), "%.400s/out", folder);
    const char *const args[] = {"run",         "--out",   out,           "--mode",  "ps-sync",
                                "-n",          "2",       "--model",     "lenet5",  "--data",
                                "shapes",      "--steps", "100000",      "--eval",  "none",
                                "--log-level", "info",    "--transport", transport, NULL};
    program_start(run, folder, "deploy/ringside", false, args, NULL);
    programs_wait_for_file(folder, "out");
    programs_wait_for_file(out, "metrics.jsonl");
    snprintf(path, sizeof(path), "%s/logs/ps-0.log", out);
    keyed_job_read_text(path, log, log_size);
}

/* On one host, too: what the launcher starts has keys without being told. */
static void what_is_launched_over_tcp_lets_nobody_in_without_keys(void **state)
{
    (void)state;
    struct program_run run = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], log[4096], endpoint[64];
    programs_make_folder(folder);
    launch(&run, folder, "tcp", log, sizeof(log));
    const char *const host = "tcp://127.0.0.1:";
    const char *at = strstr(log, host);
    assert_non_null(at);
    // Some lines have more behind it.
    snprintf(endpoint, sizeof(endpoint), "%s%.*s", host,
             (int)strspn(at + strlen(host), "0123456789"), at + strlen(host));
    const char *const stranger[] = {"--server",       endpoint, "--insecure",
                                    "--join-timeout", "2",      NULL};
    expect_refusal(folder, "worker/worker", stranger, "the server wants keys");
    program_kill(&run, SIGINT);
    assert_int_equal(program_wait(&run), 130);
    programs_remove_folder(folder);
}

/* What no other user can reach nobody else can crowd. The network of its own shows what there is:
 * nothing of the job's but datagrams (bells) at names that others find. */
static void what_is_launched_on_one_host_has_no_port_and_no_public_name(void **state)
{
    (void)state;
    static char table[1 << 16];
    const char *const transports[] = {"auto", "ipc"};
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        print_message("skipped: this user gets no network namespace\n");
        skip();
    }
    for (size_t i = 0; i < 2; i++) {
        struct program_run run = {.announce_fd = -1};
        char folder[PROGRAM_PATH_BYTES], log[4096];
        programs_make_folder(folder);
        launch(&run, folder, transports[i], log, sizeof(log));
        keyed_job_read_text("/proc/self/net/tcp", table, sizeof(table));
        assert_null(strstr(table, "0100007F:")); // 127.0.0.1
        keyed_job_read_text("/proc/self/net/unix", table, sizeof(table));
        for (const char *at = table; (at = strstr(at, "@ringside-")) != NULL; at++) {
            const char *line = at;
            while (line > table && line[-1] != '\n') {
                line--;
            }
            assert_non_null(strstr(line, " 0002 ")); // SOCK_DGRAM, of this row or one behind it
            assert_true(strstr(line, " 0002 ") < at);
        }
        program_kill(&run, SIGINT);
        assert_int_equal(program_wait(&run), 130);
        programs_remove_folder(folder);
    }
}

/* Of a worker whose job has failed: it may hear so, or lose the coordinator first. */
static void expect_failure(struct program_run *worker)
{
    int code = program_wait(worker);
    assert_true(code == EXIT_FAILED || code == EXIT_LOST);
}

static void a_worker_that_may_not_listen_is_named(void **state)
{
    (void)state;
    struct keyed_job run;
    char half[KEYED_JOB_PATH_BYTES], text[512], line[KEYED_JOB_LINE_BYTES];
    const char *const more[] = {"--steps", "5", NULL};
    keyed_job_open(&run, "ring", more);
    keyed_job_find_line(run.keys, "server-public", text);
    keyed_job_find_line(run.keys, "client-secret", line);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "\n%s\n", line);
    snprintf(half, sizeof(half), "%.400s/half.keys", run.folder);
    keyed_job_write_file(half, text);
    keyed_job_start_worker(&run, 0);
    const char *const args[] = {"--server", run.endpoint, "--rank", "1", "--keys", half, NULL};
    expect_refusal(run.folder, "worker/worker", args, "the key file has no server-secret");
    assert_int_equal(program_wait(&run.ps), 1);
    assert_non_null(strstr(program_output(&run.ps), "left: it cannot listen for other workers"));
    expect_failure(&run.workers[0]);
    programs_remove_folder(run.folder);
}

/* Adds a line of one key file to another, by another name. */
static void copy_key(const char *from, const char *name, const char *to, const char *new_name)
{
    char line[KEYED_JOB_LINE_BYTES];
    keyed_job_find_line(from, name, line);
    FILE *file = fopen(to, "ae");
    assert_non_null(file);
    fprintf(file, "%s = %s\n", new_name, strrchr(line, ' ') + 1);
    assert_int_equal(fclose(file), 0);
}

static void a_worker_that_its_neighbour_does_not_allow_ends_at_once(void **state)
{
    (void)state;
    struct keyed_job run = {.ps = {.announce_fd = -1}};
    char other[KEYED_JOB_PATH_BYTES], second[KEYED_JOB_PATH_BYTES];
    programs_make_folder(run.folder);
    keyed_job_make_keys(run.folder, "job.keys", run.keys);
    keyed_job_make_keys(run.folder, "other.keys", other);
    snprintf(second, sizeof(second), "%.400s/second.keys", run.folder);
    // The second worker has a pair of its own, which the others allow; it does not allow theirs.
    copy_key(other, "client-public", run.keys, "allow");
    keyed_job_write_file(second, "");
    copy_key(run.keys, "server-public", second, "server-public");
    copy_key(run.keys, "server-secret", second, "server-secret");
    copy_key(other, "client-public", second, "client-public");
    copy_key(other, "client-secret", second, "client-secret");
    const char *const ps[] = {"--mode",      "ring",   "--workers",    "2",      "--model",
                              "lenet5",      "--data", "shapes",       "--keys", run.keys,
                              "--transport", "tcp",    "--lost-after", "600",    "--stall-fail",
                              "600",         NULL};
    program_start(&run.ps, run.folder, "ps-server/ps", true, ps, NULL);
    program_read_endpoint(&run.ps, run.endpoint, sizeof(run.endpoint));
    const char *const args[] = {"--server", run.endpoint, "--rank", "1", "--keys", second, NULL};
    keyed_job_start_worker(&run, 0);
    program_start(&run.workers[1], run.folder, "worker/worker", false, args, NULL);
    expect_failure(&run.workers[0]);
    assert_non_null(strstr(program_output(&run.workers[0]), "does not allow this process's key"));
    assert_int_equal(program_wait(&run.ps), 1);
    assert_non_null(strstr(program_output(&run.ps), "another member refuses its connection"));
    expect_failure(&run.workers[1]);
    programs_remove_folder(run.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_seals_change_no_bit),
        cmocka_unit_test(who_has_not_the_keys_is_refused_and_the_job_goes_on),
        cmocka_unit_test(over_tcp_nothing_starts_without_keys),
        cmocka_unit_test(a_key_file_that_others_can_read_is_refused_by_all_programs),
        cmocka_unit_test(keygen_replaces_nothing_unless_it_is_told_to),
        cmocka_unit_test(no_file_of_a_run_has_a_secret_and_every_log_says_that_there_is_none),
        cmocka_unit_test(what_is_launched_over_tcp_lets_nobody_in_without_keys),
        cmocka_unit_test(a_worker_that_may_not_listen_is_named),
        cmocka_unit_test(a_worker_that_its_neighbour_does_not_allow_ends_at_once),
        cmocka_unit_test(what_is_launched_on_one_host_has_no_port_and_no_public_name), // the last
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
