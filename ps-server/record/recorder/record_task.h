/* What the thread of a recorder has to do: a call of record_writer.h, with what that needs. */
#ifndef PS_SERVER_RECORD_RECORDER_RECORD_TASK_H
#define PS_SERVER_RECORD_RECORDER_RECORD_TASK_H

#include "common/base/status.h"
#include "ps-server/record/history.h"
#include "ps-server/record/recorder/record_writer.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

enum record_task_kind {
    RECORD_TASK_REMOVE_RESULTS,
    RECORD_TASK_GO_ON,
    RECORD_TASK_NOTE_RESTART,
    RECORD_TASK_JOB,
    RECORD_TASK_METRICS,
    RECORD_TASK_COMPLETE,
    RECORD_TASK_RESTORE,
    RECORD_TASK_TEST,
    RECORD_TASK_OTHER,
    RECORD_TASK_CLOSE_METRICS,
    RECORD_TASK_DETAILS,
    RECORD_TASK_END_TENSORBOARD,
    RECORD_TASK_SUMMARY,
    RECORD_TASK_FINISH,
};

struct record_task {
    enum record_task_kind kind;
    uint64_t step;
    struct record_report report;
    struct record_report *sums; // (sum_count), owned
    uint32_t sum_count;
    struct record_tests tests; // owned
    bool is_completed;
    char *from;                  // owned
    struct history_entry *entry; // owned
    struct record_job begun;     // owns its job
    json_t *tree;                // owned
    void (*work)(void *data);    // of RECORD_TASK_OTHER
    void *data;
};

/* The file that it writes. */
const char *record_task_file(enum record_task_kind kind);

/* Whether it has no sense once something could not be written, which ends the job. */
bool record_task_is_of_training(enum record_task_kind kind);

/* STATUS_... with record_writer_error. Of RECORD_TASK_FINISH, the writer is none any more. */
enum status record_task_do(struct record_writer *writer, const struct record_task *task);

/* Ends what it owns, and not what it is of. */
void record_task_finish(struct record_task *task);

#endif
