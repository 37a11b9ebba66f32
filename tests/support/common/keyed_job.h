/* Jobs of two workers that are started by hand, with keys. */
#ifndef TESTS_SUPPORT_COMMON_KEYED_JOB_H
#define TESTS_SUPPORT_COMMON_KEYED_JOB_H

#include "tests/support/programs/programs.h"

#define KEYED_JOB_WORKERS    2
#define KEYED_JOB_PATH_BYTES (PROGRAM_PATH_BYTES + 16)
#define KEYED_JOB_LINE_BYTES 128

struct keyed_job {
    char folder[PROGRAM_PATH_BYTES], out[KEYED_JOB_PATH_BYTES], keys[KEYED_JOB_PATH_BYTES];
    char endpoint[256];
    struct program_run ps, workers[KEYED_JOB_WORKERS];
};

/* Makes a key file below the folder, by `ringside keygen`; writes its path. */
void keyed_job_make_keys(const char *folder, const char *name, char ret_path[KEYED_JOB_PATH_BYTES]);

/* The line of a key file that begins with `name`, without its end. */
void keyed_job_find_line(const char *path, const char *name, char ret_line[KEYED_JOB_LINE_BYTES]);

/* The first size - 1 bytes of a file, and a terminator. */
void keyed_job_read_text(const char *path, char *text, size_t size);

/* A file that only we can read. */
void keyed_job_write_file(const char *path, const char *text);

/* Starts `ps` with fresh keys and the further options (NULL-terminated). */
void keyed_job_open(struct keyed_job *job, const char *mode, const char *const *more);
void keyed_job_start_worker(struct keyed_job *job, unsigned index);

/* Waits for everybody; all must have succeeded. Leaves the folder. */
void keyed_job_finish(struct keyed_job *job, char ret_digest[PROGRAM_DIGEST_BYTES]);

/* What the same job ends with when nobody has keys and nobody disturbs it. */
void keyed_job_run_undisturbed(const char *mode, const char *steps,
                               char ret_digest[PROGRAM_DIGEST_BYTES]);

#endif
