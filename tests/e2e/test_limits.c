/* End to end: programs without enough descriptors, or room on the disk, say so before anything
 * starts. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct limited {
    __rlimit_resource_t resource;
    rlim_t value;
};

/* Starts build/PATH under a limit. A file that is too long is an error of the write, as on a full
 * disk, and no signal. */
static void start_limited(struct program_run *run, const char *folder, const char *path,
                          const char *const *args, struct limited limited)
{
    union {
        const char *const *in;
        char *const *out;
    } cast = {.in = args};
    char full[2 * PROGRAM_PATH_BYTES];
    const struct rlimit limit = {limited.value, limited.value};
    snprintf(full, sizeof(full), "%s/%s", getenv("RINGSIDE_TEST_BUILD"), path);
    *run = (struct program_run){.announce_fd = -1};
    snprintf(run->output_path, sizeof(run->output_path), "%.400s/output", folder);
    run->pid = fork();
    assert_true(run->pid >= 0);
    if (run->pid == 0) {
        int output = open(run->output_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        bool is_set = dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0 &&
                      close(output) == 0 && setrlimit(limited.resource, &limit) == 0 &&
                      signal(SIGXFSZ, SIG_IGN) != SIG_ERR;
        if (is_set) {
            execv(full, cast.out);
        }
        _exit(127);
    }
}

/* It must end with exit code 1 and both texts. */
static void expect_refusal(const char *folder, const char *path, const char *const *args,
                           struct limited limited, const char *whose, const char *limit)
{
    struct program_run run;
    start_limited(&run, folder, path, args, limited);
    int code = program_wait(&run);
    const char *output = program_output(&run);
    if (code != 1 || strstr(output, whose) == NULL || strstr(output, limit) == NULL) {
        fail_msg("%s: %d: %s", path, code, output);
    }
}

static void each_program_names_the_limit_and_what_its_job_needs(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    const char *const ps[] = {"ps", "--mode", "ring", "--workers", "64", NULL};
    const char *const shard[] = {"ps", "--shard-index", "1", "--server", "tcp://127.0.0.1:1", NULL};
    const char *const worker[] = {"worker", "--server", "tcp://127.0.0.1:1", NULL};
    const char *const run[] = {"ringside", "run",     "--out",  out,      "-n",     "64", "--mode",
                               "ring",     "--model", "lenet5", "--data", "shapes", NULL};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    for (int i = 0; i < 2; i++) {
        const struct limited files = {RLIMIT_NOFILE, i == 0 ? 16 : 24};
        const char *limit = i == 0 ? "the limit is 16" : "the limit is 24";
        expect_refusal(folder, "ps-server/ps", ps, files, "the coordinator of a job of 64 workers",
                       limit);
        expect_refusal(folder, "ps-server/ps", shard, files, "a server of any job", limit);
        expect_refusal(folder, "worker/worker", worker, files, "a worker of any job", limit);
    }
    expect_refusal(folder, "deploy/ringside", run, (struct limited){RLIMIT_NOFILE, 64},
                   "a worker of a job of 64 workers", "the limit is 64");
    json_t *summary = programs_read_json(out, "summary.json");
    assert_non_null(
        strstr(json_string_value(json_object_get(summary, "reason")), "the limit is 64"));
    json_decref(summary);
    programs_remove_folder(folder);
}

/* What is asked for is enough, in both designs. */
static void with_as_many_as_are_asked_for_the_job_is_done(void **state)
{
    (void)state;
    const char *const modes[] = {"ring", "ps-sync"};
    for (int i = 0; i < 2; i++) {
        char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
        const char *const args[] = {"ringside", "run",         "--out",   out,       "-n",
                                    "3",        "--mode",      modes[i],  "--model", "lenet5",
                                    "--data",   "shapes",      "--steps", "3",       "--eval",
                                    "none",     "--transport", "tcp",     NULL};
        struct program_run run;
        programs_make_folder(folder);
        snprintf(out, sizeof(out), "%s/out", folder);
        start_limited(&run, folder, "deploy/ringside", args, (struct limited){RLIMIT_NOFILE, 16});
        assert_int_equal(program_wait(&run), 1);
        const char *asked = strstr(program_output(&run), "raise it to ");
        assert_non_null(asked);
        rlim_t files = strtoul(asked + strlen("raise it to "), NULL, 10);
        programs_remove_folder(out);
        start_limited(&run, folder, "deploy/ringside", args,
                      (struct limited){RLIMIT_NOFILE, files});
        if (program_wait(&run) != 0) {
            fail_msg("%llu: %s", (unsigned long long)files, program_output(&run));
        }
        programs_remove_folder(folder);
    }
}

static void a_disk_without_room_for_a_summary_is_found_before_anybody_joins(void **state)
{
    (void)state;
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16], file[PROGRAM_PATH_BYTES + 64];
    const char *const ps[] = {"ps", "--mode", "ring", "--workers", "2", "--out", out, NULL};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    snprintf(file, sizeof(file), "%s/.summary.reserve", out);
    expect_refusal(folder, "ps-server/ps", ps, (struct limited){RLIMIT_FSIZE, 16384},
                   "cannot write", file);
    assert_int_equal(access(file, F_OK), -1);
    programs_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_program_names_the_limit_and_what_its_job_needs),
        cmocka_unit_test(with_as_many_as_are_asked_for_the_job_is_done),
        cmocka_unit_test(a_disk_without_room_for_a_summary_is_found_before_anybody_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
