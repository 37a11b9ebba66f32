/* Writes the run folder: job.json, metrics.jsonl, summary.json. The contract: docs/RUN-FOLDER.md. A
 * file that is written once appears whole or not at all.
 *
 * Belongs to the thread of a recorder, since each call may wait for the disk. So it knows nothing
 * of the coordinator but what it is given. */
#ifndef PS_SERVER_RECORD_RECORDER_RECORD_WRITER_H
#define PS_SERVER_RECORD_RECORDER_RECORD_WRITER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "ps-server/record/history.h"
#include "ps-server/record/recorder/recorder.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

struct record_writer;

/* What a rank has reported. */
struct record_report {
    bool is_there; // false: there is none, also none without steps
    uint32_t rank;
    uint64_t step;
    struct wire_report report; // without what it borrows
    double seconds;            // of the job, when it came
};

/* What an evaluation has found. */
struct record_test {
    uint64_t step;
    double accuracy, loss;
};

/* In the order of their steps; {0}: none. */
struct record_tests {
    struct record_test *list; // (count), owned
    uint32_t count;
};

enum status record_tests_add(struct record_tests *tests, const struct record_test *test);
void record_tests_cut(struct record_tests *tests, uint64_t step); // leaves those up to there

/* How a job begins. */
struct record_job {
    json_t *tree;          // for job.json; NULL: that is there. Borrowed
    const struct job *job; // of TensorBoard's files; NULL: none are begun. Borrowed
    uint32_t workers;
    uint64_t report_every, total_steps;
};

/* As recorder_create. Logs. */
enum status record_writer_create(const struct recorder_options *options,
                                 struct record_writer **ret_writer);
void record_writer_destroy(struct record_writer *writer); // NULL is fine

/* What could not be done first: "cannot write FILE: No space left on device"; "" if all went well.
 * Borrowed. */
const char *record_writer_error(const struct record_writer *writer);

/* As those of recorder.h. */
enum status record_writer_remove_results(struct record_writer *writer);
enum status record_writer_go_on(struct record_writer *writer, const char *from, uint64_t step);
void record_writer_note_restart(struct record_writer *writer, const struct history_entry *entry);
enum status record_writer_write_job(struct record_writer *writer, const struct record_job *begun);
enum status record_writer_add_metrics(struct record_writer *writer,
                                      const struct record_report *report);
enum status record_writer_close_metrics(struct record_writer *writer);
enum status record_writer_write_details(struct record_writer *writer, json_t *details);
enum status record_writer_end_tensorboard(struct record_writer *writer, bool is_completed);
enum status record_writer_write_summary(struct record_writer *writer, const json_t *summary);

/* A sum of what the rank has reported since step `begin`. */
enum status record_writer_complete(struct record_writer *writer, uint64_t begin,
                                   const struct record_report *sum);

/* Sums of all steps, of each rank (count). */
enum status record_writer_restore(struct record_writer *writer, const struct record_report *sums,
                                  uint32_t count);

enum status record_writer_add_tests(struct record_writer *writer, const struct record_tests *tests);

#endif
