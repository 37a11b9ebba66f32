/* Jobs with keys. */
#include "tests/support/common/keyed_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void keyed_job_make_keys(const char *folder, const char *name, char ret_path[KEYED_JOB_PATH_BYTES])
{
    struct program_run keygen = {.announce_fd = -1};
    snprintf(ret_path, KEYED_JOB_PATH_BYTES, "%.400s/%s", folder, name);
    const char *const args[] = {"keygen", ret_path, NULL};
    program_start(&keygen, folder, "deploy/ringside", false, args, NULL);
    if (program_wait(&keygen) != 0) {
        fail_msg("keygen: %s", program_output(&keygen));
    }
    assert_non_null(strstr(program_output(&keygen), "server-public = "));
    assert_non_null(strstr(program_output(&keygen), "client-public = "));
    assert_null(strstr(program_output(&keygen), "secret"));
}

void keyed_job_read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t got = fread(text, 1, size - 1, file);
    text[got] = '\0';
    fclose(file);
}

void keyed_job_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

void keyed_job_find_line(const char *path, const char *name, char ret_line[KEYED_JOB_LINE_BYTES])
{
    char text[4096];
    keyed_job_read_text(path, text, sizeof(text));
    const char *at = strstr(text, name);
    assert_non_null(at);
    snprintf(ret_line, KEYED_JOB_LINE_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
}

void keyed_job_open(struct keyed_job *job, const char *mode, const char *const *more)
{
    *job = (struct keyed_job){.ps = {.announce_fd = -1}};
    programs_make_folder(job->folder);
    snprintf(job->out, sizeof(job->out), "%s/out", job->folder);
    keyed_job_make_keys(job->folder, "job.keys", job->keys);
    const char *args[PROGRAM_ARGS_MAX] = {
        "--mode",         mode,     "--workers", "2",       "--model",     "lenet5",
        "--data",         "shapes", "--threads", "1",       "--eval",      "none",
        "--global-batch", "8",      "--keys",    job->keys, "--transport", "tcp",
        "--lost-after",   "600",    "--out",     job->out,  "--log-level", "info",
        "--stall-fail",   "600",    "--device",  "ref"};
    size_t count = 0;
    while (args[count] != NULL) {
        count++;
    }
    for (size_t i = 0; more[i] != NULL; i++) {
        args[count++] = more[i];
    }
    program_start(&job->ps, job->folder, "ps-server/ps", true, args, NULL);
    program_read_endpoint(&job->ps, job->endpoint, sizeof(job->endpoint));
}

void keyed_job_start_worker(struct keyed_job *job, unsigned index)
{
    char rank[16];
    snprintf(rank, sizeof(rank), "%u", index);
    const char *const args[] = {"--server", job->endpoint, "--rank", rank,
                                "--keys",   job->keys,     NULL};
    program_start(&job->workers[index], job->folder, "worker/worker", false, args, NULL);
}

void keyed_job_finish(struct keyed_job *job, char ret_digest[PROGRAM_DIGEST_BYTES])
{
    for (unsigned i = 0; i < KEYED_JOB_WORKERS; i++) {
        if (program_wait_for(&job->workers[i], 200000) != 0) {
            fail_msg("worker %u: %s", i, program_output(&job->workers[i]));
        }
    }
    if (program_wait(&job->ps) != 0) {
        fail_msg("ps: %s", program_output(&job->ps));
    }
    json_t *summary = programs_read_json(job->out, "summary.json");
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "completed");
    snprintf(ret_digest, PROGRAM_DIGEST_BYTES, "%s",
             json_string_value(json_object_get(summary, "params_digest")));
    json_decref(summary);
}

void keyed_job_run_undisturbed(const char *mode, const char *steps,
                               char ret_digest[PROGRAM_DIGEST_BYTES])
{
    const char *const args[] = {"-n",
                                "2",
                                "--mode",
                                mode,
                                "--steps",
                                steps,
                                "--data",
                                "shapes",
                                "--eval",
                                "none",
                                "--limit-train",
                                "0",
                                "--global-batch",
                                "8",
                                "--bucket-mb",
                                "1",
                                "--device",
                                "ref",
                                NULL};
    programs_run_digest(args, ret_digest);
}
