/* Does what waits for the disk. */
#include "ps-server/record/recorder/record_task.h"

#include "common/job/job.h"
#include "ps-server/record/metrics_file.h"

#include <stdlib.h>

void record_task_finish(struct record_task *task)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was given away as const
    free((void *)(uintptr_t)task->begun.job);
    free(task->sums);
    free(task->tests.list);
    free(task->from);
    free(task->entry);
    json_decref(task->begun.tree);
    json_decref(task->tree);
}

static const char *const files[] = {
    [RECORD_TASK_REMOVE_RESULTS] = "summary.json",
    [RECORD_TASK_GO_ON] = METRICS_FILE,
    [RECORD_TASK_NOTE_RESTART] = HISTORY_FILE,
    [RECORD_TASK_JOB] = "job.json",
    [RECORD_TASK_METRICS] = METRICS_FILE,
    [RECORD_TASK_COMPLETE] = METRICS_FILE,
    [RECORD_TASK_RESTORE] = METRICS_FILE,
    [RECORD_TASK_TEST] = "tensorboard",
    [RECORD_TASK_OTHER] = "begin.json",
    [RECORD_TASK_CLOSE_METRICS] = METRICS_FILE,
    [RECORD_TASK_DETAILS] = "details.json",
    [RECORD_TASK_END_TENSORBOARD] = "tensorboard",
    [RECORD_TASK_SUMMARY] = "summary.json",
    [RECORD_TASK_FINISH] = JOB_RESERVE_NAME,
};

const char *record_task_file(enum record_task_kind kind)
{
    return files[kind];
}

bool record_task_is_of_training(enum record_task_kind kind)
{
    return kind == RECORD_TASK_METRICS || kind == RECORD_TASK_COMPLETE ||
           kind == RECORD_TASK_RESTORE || kind == RECORD_TASK_TEST ||
           kind == RECORD_TASK_CLOSE_METRICS;
}

enum status record_task_do(struct record_writer *writer, const struct record_task *task)
{
    switch (task->kind) {
    case RECORD_TASK_REMOVE_RESULTS:
        return record_writer_remove_results(writer);
    case RECORD_TASK_GO_ON:
        return record_writer_go_on(writer, task->from, task->step);
    case RECORD_TASK_NOTE_RESTART:
        record_writer_note_restart(writer, task->entry);
        return STATUS_OK;
    case RECORD_TASK_JOB:
        return record_writer_write_job(writer, &task->begun);
    case RECORD_TASK_METRICS:
        return record_writer_add_metrics(writer, &task->report);
    case RECORD_TASK_COMPLETE:
        return record_writer_complete(writer, task->step, &task->report);
    case RECORD_TASK_RESTORE:
        return record_writer_restore(writer, task->sums, task->sum_count);
    case RECORD_TASK_TEST:
        return record_writer_add_tests(writer, &task->tests);
    case RECORD_TASK_OTHER:
        task->work(task->data);
        return STATUS_OK;
    case RECORD_TASK_CLOSE_METRICS:
        return record_writer_close_metrics(writer);
    case RECORD_TASK_DETAILS:
        return record_writer_write_details(writer, task->tree);
    case RECORD_TASK_END_TENSORBOARD:
        return record_writer_end_tensorboard(writer, task->is_completed);
    case RECORD_TASK_SUMMARY:
        return record_writer_write_summary(writer, task->tree);
    case RECORD_TASK_FINISH:
        record_writer_destroy(writer);
        return STATUS_OK;
    }
    return STATUS_OK;
}
