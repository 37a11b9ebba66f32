/* The launcher's bad moments: what hangs before the job, members that are killed, and the end of
 * the launcher itself. Its programs are stood in for by scripts, which RINGSIDE_LIBEXEC lets it
 * find. */
#include "tests/support/common/patience.h"
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

struct launcher_test {
    struct program_run run;
    char folder[PROGRAM_PATH_BYTES], libexec[PROGRAM_PATH_BYTES + 32];
    char out[PROGRAM_PATH_BYTES + 16];
};

static int set_up(void **state)
{
    static struct launcher_test test;
    memset(&test, 0, sizeof(test));
    test.run.announce_fd = -1;
    programs_make_folder(test.folder);
    snprintf(test.out, sizeof(test.out), "%s/out", test.folder);
    snprintf(test.libexec, sizeof(test.libexec), "RINGSIDE_LIBEXEC=%s", test.folder);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct launcher_test *test = *state;
    programs_remove_folder(test->folder);
    return 0;
}

/* A script in the place of a program. %1$s is the test's folder, %2$s the build's. */
static void stand_in(const struct launcher_test *test, const char *name, const char *script)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", test->folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nfolder='%s'\nbuild='%s'\n%s\n", test->folder,
            getenv("RINGSIDE_TEST_BUILD"), script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void start(struct launcher_test *test, const char *const *arguments)
{
    const char *args[PROGRAM_ARGS_MAX] = {"run", "--out", test->out};
    size_t count = 3;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        args[count++] = arguments[i];
    }
    const char *const environment[] = {test->libexec, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, environment);
}

static const char whole_worker[] = "exec \"$build/worker/worker\" \"$@\"";
static const char whole_ps[] = "exec \"$build/ps-server/ps\" \"$@\"";
// Says that it is there, and stops itself.
static const char hanging[] = ": > \"$folder/started\"; kill -STOP $$";

static void check_said(const struct launcher_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

static void an_interrupt_during_the_trial_exits_with_130_and_writes_nothing(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", hanging);
    start(test, arguments);
    programs_wait_for_file(test->folder, "started");
    program_kill(&test->run, SIGINT);
    assert_int_equal(program_wait(&test->run), 130);
    check_said(test, "interrupted before the job began: nothing was started or written");
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void a_trial_that_hangs_is_ended_and_named(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", "--start-timeout", "0.2", NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", hanging);
    start(test, arguments);
    assert_int_equal(program_wait(&test->run), 1);
    assert_non_null(strstr(program_output(&test->run), "--start-timeout"));
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void an_interrupt_before_the_coordinator_listens_exits_with_130(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1", NULL};
    stand_in(test, "ps", hanging);
    stand_in(test, "worker", whole_worker);
    start(test, arguments);
    programs_wait_for_file(test->folder, "started");
    program_kill(&test->run, SIGTERM);
    assert_int_equal(program_wait(&test->run), 130);
}

static void a_coordinator_that_is_killed_leaves_a_whole_summary(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {
        "-n", "2",      "--mode", "ring", "--model", "lenet5", "--epochs", "1000", "--report-every",
        "1",  "--eval", "none",   NULL};
    stand_in(test, "ps", "echo [$$] > \"$folder/pid\"; exec \"$build/ps-server/ps\" \"$@\"");
    stand_in(test, "worker", whole_worker);
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, arguments);
    programs_wait_for_file(test->out, "metrics.jsonl");
    json_t *pid = programs_read_json(test->folder, "pid");
    assert_int_equal(kill((pid_t)json_integer_value(json_array_get(pid, 0)), SIGKILL), 0);
    json_decref(pid);
    assert_int_equal(program_wait(&test->run), 1);
    assert_non_null(strstr(program_output(&test->run), "with --restarts R, a coordinator"));
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_int_equal(json_object_size(summary), 30); // test_ringside.c has their names
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_non_null(
        strstr(json_string_value(json_object_get(summary, "reason")), "killed by signal 9"));
    assert_true(json_is_integer(json_object_get(summary, "steps")));
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 83126);
    json_decref(summary);
    char reserve[2 * PROGRAM_PATH_BYTES];
    snprintf(reserve, sizeof(reserve), "%s/.summary.reserve", test->out);
    assert_int_not_equal(access(reserve, F_OK), 0);
}

/* The member that a failed job failed because of, in details.json. */
static void check_failed_member(const struct launcher_test *test, const char *role,
                                json_int_t index)
{
    json_t *details = programs_read_json(test->out, "details.json");
    json_t *member = json_object_get(details, "failed_member");
    assert_string_equal(json_string_value(json_object_get(member, "role")), role);
    assert_int_equal(json_integer_value(json_object_get(member, "index")), index);
    json_decref(details);
}

/* What is left when all is over: a whole summary that says so, and no draft. */
static void check_failed(const struct launcher_test *test, const char *reason)
{
    static const char *const drafts[] = {".summary.reserve", "summary.json.part", "job.json.part",
                                         "details.json.part"};
    char path[2 * PROGRAM_PATH_BYTES];
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), reason);
    json_decref(summary);
    for (size_t i = 0; i < sizeof(drafts) / sizeof(drafts[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", test->out, drafts[i]);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void a_member_that_dies_before_it_joins_is_named_with_its_end_and_its_log(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",        "3", "--mode",  "ps-sync",
                                            "--steps",   "1", "--model", "lenet5",
                                            "--servers", "2", NULL};
    static const char script[] = "case \"$* \" in *\"%s\"*)\n"
                                 "echo '2026 error x host=x: it feels unwell' >&2; %s;; esac\n%s";
    static const struct {
        const char *option, *end, *reason, *role;
        json_int_t index;
    } cases[] = {
        {"--rank 1 ", "kill -BUS $$",
         "worker 1 was killed by signal 7 (bus error; was a data file truncated?)", "worker", 1},
        {"--rank 2 ", "exit 3", "worker 2 ended with exit code 3: it feels unwell", "worker", 2},
        {"--shard-index 1 ", "kill -SEGV $$",
         "server 1 was killed by signal 11 (segmentation fault)", "server", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), script, cases[i].option, cases[i].end, whole_worker);
        stand_in(test, "worker", text);
        snprintf(text, sizeof(text), script, cases[i].option, cases[i].end, whole_ps);
        stand_in(test, "ps", text);
        snprintf(test->out, sizeof(test->out), "%s/out-%zu", test->folder, i);
        start(test, arguments);
        assert_int_equal(program_wait(&test->run), 1);
        check_failed(test, cases[i].reason);
        check_said(test, cases[i].reason);
        bool is_said = strstr(cases[i].reason, "unwell") != NULL; // then once is enough
        const char *line = strstr(program_output(&test->run), "    2026 error x host=x: it feels");
        assert_true((line == NULL) == is_said);
        check_failed_member(test, cases[i].role, cases[i].index);
    }
}

static void a_member_that_is_killed_in_training_is_named_with_the_signal(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {
        "-n",     "3",       "--mode",    "ring",           "--model",
        "lenet5", "--steps", "1000000",   "--report-every", "1",
        "--eval", "none",    "--on-loss", "fail",           NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker",
             "case \"$*\" in *'--rank 1 '*) echo [$$] > \"$folder/pid\";; esac\n"
             "exec \"$build/worker/worker\" \"$@\"");
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, arguments);
    programs_wait_for_file(test->out, "metrics.jsonl");
    json_t *pid = programs_read_json(test->folder, "pid");
    assert_int_equal(kill((pid_t)json_integer_value(json_array_get(pid, 0)), SIGBUS), 0);
    json_decref(pid);
    assert_int_equal(program_wait(&test->run), 1);
    check_failed(test, "worker 1 was killed by signal 7 (bus error; was a data file truncated?)");
}

/* Starts a job that would take very long, and waits until it trains. */
static void start_long_job(struct launcher_test *test)
{
    static const char *const arguments[] = {
        "-n",     "2",       "--mode",  "ring",           "--model",
        "lenet5", "--steps", "1000000", "--report-every", "1",
        "--eval", "none",    NULL};
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", whole_worker);
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, arguments);
    programs_wait_for_file(test->out, "metrics.jsonl");
}

static void a_launcher_that_is_hung_up_ends_like_one_that_is_interrupted(void **state)
{
    struct launcher_test *test = *state;
    start_long_job(test);
    program_kill(&test->run, SIGHUP);
    assert_int_equal(program_wait(&test->run), 130);
    check_failed(test, "interrupted by SIGHUP: the terminal of ringside was closed");
}

/* The last thing that an agent does. */
static void wait_until_gone(const struct launcher_test *test, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES], events[4096];
    snprintf(path, sizeof(path), "%s/%s", test->out, name);
    int watch = inotify_init1(IN_CLOEXEC);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, test->out, IN_DELETE) >= 0);
    while (access(path, F_OK) == 0) {
        struct pollfd item = {.fd = watch, .events = POLLIN};
        assert_int_equal(poll(&item, 1, patience_ms(60000)), 1);
        assert_true(read(watch, events, sizeof(events)) > 0);
    }
    close(watch);
}

static void a_launcher_that_is_killed_leaves_the_summary_of_its_coordinator(void **state)
{
    struct launcher_test *test = *state;
    start_long_job(test);
    program_kill(&test->run, SIGKILL);
    assert_int_equal(program_wait(&test->run), 128 + SIGKILL);
    programs_wait_for_file(test->out, "summary.json");
    check_failed(test, "the launcher is gone: was it killed?");
    wait_until_gone(test, ".ringside.lock");
}

static void touch(const struct launcher_test *test, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", test->out, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void where_a_launcher_was_killed_before_it_started_anybody_another_may_begin(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",      "1", "--mode", "local", "--model", "lenet5",
                                            "--steps", "1", "--eval", "none",  NULL};
    char logs[2 * PROGRAM_PATH_BYTES];
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", whole_worker);
    snprintf(logs, sizeof(logs), "%s/logs", test->out);
    assert_int_equal(mkdir(test->out, 0700), 0);
    assert_int_equal(mkdir(logs, 0700), 0);
    touch(test, ".ringside.lock");
    touch(test, "logs/ps-0.log");
    start(test, arguments);
    assert_int_equal(program_wait(&test->run), 1); // somebody was
    assert_non_null(strstr(program_output(&test->run), "is not empty"));
    snprintf(logs, sizeof(logs), "%s/logs/ps-0.log", test->out);
    assert_int_equal(unlink(logs), 0);
    touch(test, ".ringside.lock");
    start(test, arguments);
    if (program_wait(&test->run) != 0) {
        fail_msg("%s", program_output(&test->run));
    }
    json_decref(programs_read_json(test->out, "summary.json"));
}

/* At a moment that is another one each time: nobody was started so far, or the coordinator was. */
static void a_launcher_that_is_killed_at_once_leaves_a_summary_or_nothing(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",      "1",      "--mode",  "local",
                                            "--model", "lenet5", "--steps", "100000",
                                            "--eval",  "none",   NULL};
    char path[2 * PROGRAM_PATH_BYTES];
    stand_in(test, "ps", whole_ps);
    stand_in(test, "worker", whole_worker);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(test->out, sizeof(test->out), "%.500s/out-%u", test->folder, i);
        assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
        start(test, arguments);
        programs_wait_for_file(test->out, "logs");
        if (i % 2 == 1) {
            snprintf(path, sizeof(path), "%s/logs", test->out);
            programs_wait_for_file(path, "ps-0.log"); // it is about to be started
        }
        program_kill(&test->run, SIGKILL);
        assert_int_equal(program_wait(&test->run), 128 + SIGKILL);
        wait_until_gone(test, ".ringside.lock");
        snprintf(path, sizeof(path), "%s/logs", test->out);
        if (access(path, F_OK) == 0) {
            check_failed(test, "the launcher is gone: was it killed?");
        }
    }
}

static void a_completed_job_exits_with_0_whatever_becomes_of_its_coordinator(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",      "1", "--mode", "local", "--model", "lenet5",
                                            "--steps", "1", "--eval", "none",  NULL};
    static const char *const ends[] = {"kill -KILL $$", "echo > \"$folder/done\"; sleep 1000"};
    stand_in(test, "worker", whole_worker);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char script[256];
        snprintf(script, sizeof(script), "\"$build/ps-server/ps\" \"$@\"; %s", ends[i]);
        stand_in(test, "ps", script);
        snprintf(test->out, sizeof(test->out), "%s/out-%zu", test->folder, i);
        start(test, arguments);
        if (i == 1) {
            programs_wait_for_file(test->folder, "done");
            program_kill(&test->run, SIGINT);
        }
        assert_int_equal(program_wait(&test->run), 0);
        json_t *summary = programs_read_json(test->out, "summary.json");
        assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "completed");
        json_decref(summary);
    }
}

/* A folder has the name that a draft needs. */
static void a_job_whose_files_cannot_be_written_fails_in_summary_and_exit_code(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",      "1", "--mode", "local", "--model", "lenet5",
                                            "--steps", "1", "--eval", "none",  NULL};
    char reason[2 * PROGRAM_PATH_BYTES];
    stand_in(test, "worker", whole_worker);
    stand_in(test, "ps",
             "mkdir \"$folder/out/details.json.part\"; exec \"$build/ps-server/ps\" \"$@\"");
    start(test, arguments);
    assert_int_equal(program_wait(&test->run), 1);
    snprintf(reason, sizeof(reason), "cannot write %s/details.json: Is a directory", test->out);
    json_t *summary = programs_read_json(test->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), reason);
    json_decref(summary);
}

/* Puts a small disk below the test's folder, which no other process sees, and the run folder on it.
 * False, and said, where this user may not. */
static bool put_on_small_disk(struct launcher_test *test)
{
    char disk[PROGRAM_PATH_BYTES + 8];
    snprintf(disk, sizeof(disk), "%s/disk", test->folder);
    snprintf(test->out, sizeof(test->out), "%s/out", disk);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", disk, "tmpfs", MS_NOSUID | MS_NODEV, "size=100k,mode=0700") != 0) {
        print_message("skipped: no file system can be mounted here: %s\n", strerrordesc_np(errno));
        return false;
    }
    return true;
}

/* Others fill the disk while the job starts. */
static void a_disk_that_becomes_full_is_the_reason_and_leaves_room_for_it(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"-n",      "1", "--mode", "local", "--model", "lenet5",
                                            "--steps", "1", "--eval", "none",  NULL};
    static const char fill[] = "head -c 1000000 /dev/zero > \"$folder/disk/filler\" 2> /dev/null\n";
    static const struct {
        const char *then, *what, *file;
    } cases[] = {
        {whole_ps, "cannot write", "job.json"},
        {"echo 'what it says is lost' >&2; exit 1",
         "the coordinator ended with exit code 1: it cannot write to its log", "logs/ps-0.log"},
    };
    char script[512], filler[2 * PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES];
    if (!put_on_small_disk(test)) {
        skip();
    }
    stand_in(test, "worker", whole_worker);
    snprintf(out, sizeof(out), "%.480s", test->out);
    snprintf(filler, sizeof(filler), "%s/disk/filler", test->folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char reason[2 * PROGRAM_PATH_BYTES];
        snprintf(test->out, sizeof(test->out), "%s-%zu", out, i);
        snprintf(script, sizeof(script), "%s%s", fill, cases[i].then);
        stand_in(test, "ps", script);
        start(test, arguments);
        assert_int_equal(program_wait(&test->run), 1);
        snprintf(reason, sizeof(reason), "%s %s/%s: No space left on device", cases[i].what,
                 test->out, cases[i].file);
        check_failed(test, reason);
        check_said(test, reason);
        assert_int_equal(unlink(filler), 0);
        programs_remove_folder(test->out);
    }
    snprintf(filler, sizeof(filler), "%s/disk", test->folder);
    assert_int_equal(umount(filler), 0);
}

static void an_agent_that_is_stopped_is_made_to_go_on(void **state)
{
    struct launcher_test *test = *state;
    static const char *const arguments[] = {"--steps", "1",    "--model", "lenet5",
                                            "--eval",  "none", NULL};
    stand_in(test, "ps", "kill -STOP $PPID; exec \"$build/ps-server/ps\" \"$@\"");
    stand_in(test, "worker", whole_worker);
    start(test, arguments);
    assert_int_equal(program_wait(&test->run), 0);
    check_said(test, "was stopped by SIGSTOP; it is being continued");
}

#define LAUNCHER_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAUNCHER_TEST(an_interrupt_during_the_trial_exits_with_130_and_writes_nothing),
        LAUNCHER_TEST(a_trial_that_hangs_is_ended_and_named),
        LAUNCHER_TEST(an_interrupt_before_the_coordinator_listens_exits_with_130),
        LAUNCHER_TEST(a_coordinator_that_is_killed_leaves_a_whole_summary),
        LAUNCHER_TEST(a_member_that_dies_before_it_joins_is_named_with_its_end_and_its_log),
        LAUNCHER_TEST(a_member_that_is_killed_in_training_is_named_with_the_signal),
        LAUNCHER_TEST(a_launcher_that_is_hung_up_ends_like_one_that_is_interrupted),
        LAUNCHER_TEST(a_launcher_that_is_killed_leaves_the_summary_of_its_coordinator),
        LAUNCHER_TEST(where_a_launcher_was_killed_before_it_started_anybody_another_may_begin),
        LAUNCHER_TEST(a_launcher_that_is_killed_at_once_leaves_a_summary_or_nothing),
        LAUNCHER_TEST(a_completed_job_exits_with_0_whatever_becomes_of_its_coordinator),
        LAUNCHER_TEST(a_job_whose_files_cannot_be_written_fails_in_summary_and_exit_code),
        LAUNCHER_TEST(an_agent_that_is_stopped_is_made_to_go_on),
        LAUNCHER_TEST(a_disk_that_becomes_full_is_the_reason_and_leaves_room_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
