/* Processes of end-to-end tests. */
#include "tests/support/programs/programs.h"

#include "tests/support/common/patience.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS_MAX 60000
#define ANNOUNCE_FD 9 // in the program

void programs_make_folder(char ret_path[PROGRAM_PATH_BYTES])
{
    const char *base = getenv("TMPDIR");
    snprintf(ret_path, PROGRAM_PATH_BYTES, "%s/ringside-test-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(ret_path));
}

void programs_remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char below[2 * PROGRAM_PATH_BYTES];
        struct stat info;
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (lstat(below, &info) == 0 && S_ISDIR(info.st_mode)) {
            programs_remove_folder(below);
        } else {
            unlink(below);
        }
    }
    if (folder != NULL) {
        closedir(folder);
        rmdir(path);
    }
}

/* In the child: never returns. */
static void become(const char *output_path, const char *path, int announce_fd, char **argv,
                   const char *const *environment)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int output = open(output_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (output < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) {
        _exit(126);
    }
    if (announce_fd >= 0 && dup2(announce_fd, ANNOUNCE_FD) < 0) {
        _exit(126);
    }
    for (size_t i = 0; environment != NULL && environment[i] != NULL; i++) {
        char *copy = strdup(environment[i]);
        if (copy != NULL) {
            putenv(copy);
        }
    }
    execv(path, argv);
    _exit(127);
}

void program_start(struct program_run *run, const char *folder, const char *path, bool announces,
                   const char *const *args, const char *const *environment)
{
    static unsigned serial;
    const char *build = getenv("RINGSIDE_TEST_BUILD");
    assert_non_null(build);
    char full[2 * PROGRAM_PATH_BYTES], *argv[PROGRAM_ARGS_MAX + 3];
    snprintf(full, sizeof(full), "%s/%s", build, path);
    snprintf(run->output_path, sizeof(run->output_path), "%.400s/output-%u", folder, serial++);
    int count = 0;
    argv[count++] = full;
    for (; args[count - 1] != NULL; count++) {
        assert_in_range(count, 1, PROGRAM_ARGS_MAX - 1);
        argv[count] = strdup(args[count - 1]);
    }
    int allocated = count;
    char announce[] = "--announce-fd=9";
    if (announces) {
        argv[count++] = announce;
    }
    argv[count] = NULL;
    int ends[2] = {-1, -1};
    if (announces) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    }
    run->pid = fork();
    assert_true(run->pid >= 0);
    if (run->pid == 0) {
        become(run->output_path, full, ends[1], argv, environment);
    }
    if (announces) {
        close(ends[1]);
    }
    run->announce_fd = ends[0];
    for (int i = 1; i < allocated; i++) {
        free(argv[i]);
    }
}

void program_read_endpoint(struct program_run *run, char *ret_endpoint, size_t endpoint_size)
{
    size_t used = 0;
    while (used < endpoint_size - 1) {
        ssize_t got = read(run->announce_fd, ret_endpoint + used, endpoint_size - 1 - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    ret_endpoint[used] = '\0';
    close(run->announce_fd);
    run->announce_fd = -1;
    char *end = strchr(ret_endpoint, '\n');
    if (end == NULL) {
        fail_msg("no endpoint was announced: %s", program_output(run));
        return;
    }
    *end = '\0';
}

int program_wait(struct program_run *run)
{
    return program_wait_for(run, WAIT_MS_MAX);
}

int program_wait_for(struct program_run *run, int timeout_ms)
{
    int pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
    assert_true(pidfd >= 0);
    struct pollfd item = {.fd = pidfd, .events = POLLIN};
    int ready;
    do {
        ready = poll(&item, 1, patience_ms(timeout_ms));
    } while (ready < 0 && errno == EINTR);
    close(pidfd);
    if (ready == 0) {
        kill(run->pid, SIGKILL);
    }
    int result = 0;
    assert_int_equal(waitpid(run->pid, &result, 0), run->pid);
    if (run->announce_fd >= 0) {
        close(run->announce_fd);
        run->announce_fd = -1;
    }
    if (ready == 0) {
        fail_msg("a program did not end: %s", program_output(run));
    }
    return WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
}

void program_kill(struct program_run *run, int signal_number)
{
    kill(run->pid, signal_number);
}

const char *program_output(const struct program_run *run)
{
    static char text[PROGRAM_TEXT_BYTES];
    size_t size = 0;
    FILE *file = fopen(run->output_path, "re");
    if (file != NULL) {
        size = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
    }
    text[size] = '\0';
    return text;
}

void programs_wait_for_file(const char *folder, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES], events[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int watch = inotify_init1(IN_CLOEXEC);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, folder, IN_CREATE | IN_MOVED_TO) >= 0);
    while (access(path, F_OK) != 0) {
        struct pollfd item = {.fd = watch, .events = POLLIN};
        if (poll(&item, 1, patience_ms(WAIT_MS_MAX)) == 0) {
            fail_msg("%s did not come", path);
        }
        assert_true(read(watch, events, sizeof(events)) > 0);
    }
    close(watch);
}

const char *program_await_line(const struct program_run *run, const char *words)
{
    char folder[PROGRAM_PATH_BYTES], events[4096];
    const char *name = strrchr(run->output_path, '/'), *at;
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - run->output_path), run->output_path);
    programs_wait_for_file(folder, name + 1);
    int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, run->output_path, IN_MODIFY) >= 0);
    while ((at = strstr(program_output(run), words)) == NULL || strchr(at, '\n') == NULL) {
        struct pollfd item = {.fd = watch, .events = POLLIN};
        if (poll(&item, 1, patience_ms(WAIT_MS_MAX)) == 0) {
            fail_msg("\"%s\" is not said: %s", words, program_output(run));
        }
        assert_true(read(watch, events, sizeof(events)) > 0);
    }
    close(watch);
    return at + strlen(words);
}

json_t *programs_read_json(const char *folder, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES];
    json_error_t error;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    json_t *tree = json_load_file(path, 0, &error);
    if (tree == NULL) {
        fail_msg("%s: %s", path, error.text);
    }
    return tree;
}

json_t *programs_run_job(const char *const *args)
{
    char folder[PROGRAM_PATH_BYTES], out[PROGRAM_PATH_BYTES + 16];
    struct program_run run = {.announce_fd = -1};
    programs_make_folder(folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    const char *all[PROGRAM_ARGS_MAX] = {
        "run", "--out",        out,  "--model",     "lenet5", "--threads", "1", "--limit-train",
        "120", "--limit-test", "50", "--bucket-mb", "0.05"};
    size_t count = 0;
    while (all[count] != NULL) {
        count++;
    }
    for (size_t i = 0; args[i] != NULL; i++) {
        assert_in_range(count, 0, PROGRAM_ARGS_MAX - 2);
        all[count++] = args[i];
    }
    program_start(&run, folder, "deploy/ringside", false, all, NULL);
    if (program_wait(&run) != 0) {
        fail_msg("%s", program_output(&run));
    }
    json_t *summary = programs_read_json(out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "completed");
    json_object_set_new(summary, "details", programs_read_json(out, "details.json"));
    programs_remove_folder(folder);
    return summary;
}

void programs_run_digest(const char *const *args, char ret_digest[PROGRAM_DIGEST_BYTES])
{
    json_t *summary = programs_run_job(args);
    snprintf(ret_digest, PROGRAM_DIGEST_BYTES, "%s",
             json_string_value(json_object_get(summary, "params_digest")));
    assert_int_equal(strlen(ret_digest), 64);
    json_decref(summary);
}

int command_test_set_up(void **state)
{
    static struct command_test test;
    memset(&test, 0, sizeof(test));
    test.run.announce_fd = -1;
    programs_make_folder(test.folder);
    snprintf(test.out, sizeof(test.out), "%s/out", test.folder);
    *state = &test;
    return 0;
}

int command_test_tear_down(void **state)
{
    struct command_test *test = *state;
    programs_remove_folder(test->folder);
    return 0;
}

const char *programs_lose_worker(const char *folder, const char *programs, const char *const *args,
                                 const char *const *environment)
{
    char out[PROGRAM_PATH_BYTES + 16], ps_path[64], worker_path[64], endpoint[256];
    struct program_run ps, workers[2];
    snprintf(out, sizeof(out), "%s/out", folder);
    snprintf(ps_path, sizeof(ps_path), "%s/ps", programs);
    snprintf(worker_path, sizeof(worker_path), "%s/worker", programs);
    const char *all[PROGRAM_ARGS_MAX] = {
        "--mode",         "ring",   "--workers", "2",    "--model",        "lenet5",
        "--data",         "shapes", "--device",  "cuda", "--global-batch", "8",
        "--report-every", "2",      "--eval",    "end",  "--out",          out};
    size_t count = 18;
    for (size_t i = 0; args[i] != NULL; i++) {
        assert_true(count + 1 < PROGRAM_ARGS_MAX);
        all[count++] = args[i];
    }
    program_start(&ps, folder, ps_path, true, all, NULL);
    program_read_endpoint(&ps, endpoint, sizeof(endpoint));
    for (int i = 0; i < 2; i++) {
        const char *const worker[] = {"--server", endpoint, "--rank", i == 0 ? "0" : "1", NULL};
        program_start(&workers[i], folder, worker_path, false, worker, environment);
    }
    programs_wait_for_file(out, "metrics.jsonl"); // training is under way
    program_kill(&workers[1], SIGKILL);
    assert_int_equal(program_wait(&workers[1]), 128 + SIGKILL);
    assert_int_not_equal(program_wait(&workers[0]), 0);
    assert_int_not_equal(program_wait(&ps), 0);
    const char *output = program_output(&ps);
    assert_non_null(strstr(output, "worker 1 "));
    return output;
}
