/* End to end: who is given up and who is not, when processes are stopped, continued and killed. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LOST_AFTER "3"
#define PAUSE_MS   4500 // longer than that, and shorter than members wait for their coordinator

/* A job of a coordinator and two workers. */
struct trio {
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run ps, workers[2];
};

static void open_trio(struct trio *trio, const char *mode, const char *steps,
                      const char *lost_after)
{
    char endpoint[256];
    *trio = (struct trio){0};
    programs_make_folder(trio->folder);
    snprintf(trio->out, sizeof(trio->out), "%s/out", trio->folder);
    const char *const args[] = {"--mode",
                                mode,
                                "--workers",
                                "2",
                                "--servers",
                                "1",
                                "--model",
                                "lenet5",
                                "--data",
                                "shapes",
                                "--global-batch",
                                "8",
                                "--steps",
                                steps,
                                "--threads",
                                "1",
                                "--limit-test",
                                "50",
                                "--report-every",
                                "2",
                                "--eval",
                                "end",
                                "--out",
                                trio->out,
                                "--lost-after",
                                lost_after,
                                "--stall-fail",
                                "600",
                                "--on-loss",
                                "fail",
                                "--outlast",
                                "0",
                                NULL};
    program_start(&trio->ps, trio->folder, "ps-server/ps", true, args, NULL);
    program_read_endpoint(&trio->ps, endpoint, sizeof(endpoint));
    for (int i = 0; i < 2; i++) {
        const char *const worker[] = {"--server", endpoint, "--rank", i == 0 ? "0" : "1", NULL};
        program_start(&trio->workers[i], trio->folder, "worker/worker", false, worker, NULL);
    }
    programs_wait_for_file(trio->out, "metrics.jsonl"); // training is under way
}

static void stop_for(struct program_run *run, int pause_ms)
{
    program_kill(run, SIGSTOP);
    assert_int_equal(poll(NULL, 0, pause_ms), 0);
    program_kill(run, SIGCONT);
}

static void expect_completed(struct trio *trio, char ret_digest[PROGRAM_DIGEST_BYTES])
{
    int code = program_wait(&trio->ps);
    if (code != 0) {
        fail_msg("%d: %s", code, program_output(&trio->ps));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(program_wait(&trio->workers[i]), 0);
    }
    json_t *summary = programs_read_json(trio->out, "summary.json");
    snprintf(ret_digest, PROGRAM_DIGEST_BYTES, "%s",
             json_string_value(json_object_get(summary, "params_digest")));
    json_decref(summary);
    programs_remove_folder(trio->folder);
}

static void expect_reason(struct trio *trio, const char *who, const char *what)
{
    assert_int_equal(program_wait(&trio->ps), EXIT_CODE_LOST);
    json_t *summary = programs_read_json(trio->out, "summary.json");
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    if (strstr(reason, who) == NULL || strstr(reason, what) == NULL) {
        fail_msg("%s", reason);
    }
    json_decref(summary);
}

static void a_coordinator_that_was_stopped_for_longer_than_lost_after_goes_on(void **state)
{
    (void)state;
    const char *const modes[] = {"ps-sync", "ring"};
    for (int i = 0; i < 2; i++) {
        struct trio trio;
        char stopped[PROGRAM_DIGEST_BYTES], undisturbed[PROGRAM_DIGEST_BYTES];
        open_trio(&trio, modes[i], "400", LOST_AFTER);
        stop_for(&trio.ps, PAUSE_MS);
        expect_completed(&trio, stopped);
        open_trio(&trio, modes[i], "400", LOST_AFTER);
        expect_completed(&trio, undisturbed);
        assert_string_equal(stopped, undisturbed);
    }
}

static void a_whole_job_that_was_stopped_goes_on(void **state)
{
    (void)state;
    struct trio trio;
    char digest[PROGRAM_DIGEST_BYTES];
    open_trio(&trio, "ps-sync", "400", "1");
    program_kill(&trio.workers[0], SIGSTOP);
    program_kill(&trio.workers[1], SIGSTOP);
    stop_for(&trio.ps, PAUSE_MS);
    program_kill(&trio.workers[1], SIGCONT);
    program_kill(&trio.workers[0], SIGCONT);
    expect_completed(&trio, digest);
}

static void a_worker_that_is_killed_is_named_without_waiting_for_its_silence(void **state)
{
    (void)state;
    struct trio trio;
    open_trio(&trio, "ring", "1000000", "600");
    program_kill(&trio.workers[1], SIGKILL);
    assert_int_equal(program_wait(&trio.workers[1]), 128 + SIGKILL);
    expect_reason(&trio, "worker 1 (host ", "its connection was closed");
    assert_int_equal(program_wait(&trio.workers[0]), EXIT_CODE_LOST);
    programs_remove_folder(trio.folder);
}

static void a_coordinator_that_is_killed_is_missed_without_waiting_for_its_silence(void **state)
{
    (void)state;
    struct trio trio;
    open_trio(&trio, "ring", "1000000", "600");
    program_kill(&trio.ps, SIGKILL);
    assert_int_equal(program_wait(&trio.ps), 128 + SIGKILL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(program_wait(&trio.workers[i]), EXIT_CODE_LOST);
        if (strstr(program_output(&trio.workers[i]), "its connection was closed") == NULL) {
            fail_msg("%s", program_output(&trio.workers[i]));
        }
    }
    programs_remove_folder(trio.folder);
}

static void a_worker_that_stays_stopped_is_found(void **state)
{
    (void)state;
    struct trio trio;
    open_trio(&trio, "ring", "1000000", "1");
    program_kill(&trio.workers[1], SIGSTOP);
    expect_reason(&trio, "worker 1 (host ", "its process is stopped");
    program_kill(&trio.workers[1], SIGKILL);
    assert_int_equal(program_wait(&trio.workers[1]), 128 + SIGKILL);
    assert_int_equal(program_wait(&trio.workers[0]), EXIT_CODE_LOST);
    programs_remove_folder(trio.folder);
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_job_that_was_stopped_goes_on),
        cmocka_unit_test(a_worker_that_is_killed_is_named_without_waiting_for_its_silence),
        cmocka_unit_test(a_coordinator_that_is_killed_is_missed_without_waiting_for_its_silence),
        cmocka_unit_test(a_worker_that_stays_stopped_is_found),
    };
    const struct CMUnitTest stopped[] = {
        cmocka_unit_test(a_coordinator_that_was_stopped_for_longer_than_lost_after_goes_on),
    };
    return argc > 1 ? cmocka_run_group_tests(stopped, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
