/* Writes the job to standard input, then becomes the worker. */
#include "deploy/command/worker_job.h"

#include "common/base/log.h"
#include "common/job/job_text.h"
#include "deploy/system/process.h"
#include "deploy/system/programs.h"

#include <assert.h>
#include <unistd.h>

/* The job on the worker's standard input. */
static enum status give_job(const struct job *job)
{
    char text[JOB_TEXT_BYTES];
    if (job_encode(job, text, sizeof(text)) != STATUS_OK) {
        log_error("the path of the images is too long: %s", job->data);
        return STATUS_INVALID;
    }
    int input = process_open_input(text);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0) {
        log_error("cannot start a worker: %m");
        return STATUS_IO;
    }
    close(input);
    return STATUS_OK;
}

enum exit_code worker_job_become(const struct job *job, const char *const *argv)
{
    struct programs programs;
    if (programs_find(&programs) != STATUS_OK || give_job(job) != STATUS_OK) {
        return EXIT_FAILED;
    }
    // execv does not write to its arguments; its interface is older than const.
    const union {
        const char *const *in;
        char *const *out;
    } cast = {argv};
    assert(cast.out != NULL);
    execv(programs.worker, cast.out);
    log_error("cannot start %s: %m", programs.worker);
    return EXIT_FAILED;
}
