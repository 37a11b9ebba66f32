/* A run folder without records: in the place of ps-server/record/recorder/recorder.c, history.c and
 * common/base/folder_lock.c. What simulated disks have is checkpoints. */
#include "common/base/folder_lock.h"
#include "ps-server/record/history.h"
#include "ps-server/record/recorder/recorder.h"

struct recorder {
    char unused;
};

enum status recorder_create(const struct recorder_options *options, struct recorder **ret_recorder)
{
    static struct recorder recorder;
    (void)options;
    *ret_recorder = &recorder;
    return STATUS_OK;
}

bool recorder_destroy(struct recorder *recorder, uint64_t patience_ms)
{
    (void)recorder;
    (void)patience_ms;
    return true;
}

enum status recorder_look(struct recorder *recorder, uint64_t now_ms, uint64_t warn_ms)
{
    (void)recorder;
    (void)now_ms;
    (void)warn_ms;
    return STATUS_OK;
}

enum status recorder_settle(struct recorder *recorder, uint64_t patience_ms)
{
    (void)recorder;
    (void)patience_ms;
    return STATUS_OK;
}

bool recorder_do(struct recorder *recorder, void (*work)(void *data), void *data)
{
    (void)recorder;
    work(data);
    return true;
}

const char *recorder_error(struct recorder *recorder)
{
    (void)recorder;
    return "";
}

enum status recorder_remove_results(struct recorder *recorder)
{
    (void)recorder;
    return STATUS_OK;
}

enum status recorder_go_on(struct recorder *recorder, const char *from, uint64_t step)
{
    (void)recorder;
    (void)from;
    (void)step;
    return STATUS_OK;
}

void recorder_note_restart(struct recorder *recorder, const struct history_entry *entry)
{
    (void)recorder;
    (void)entry;
}

enum status recorder_write_job(struct recorder *recorder, const struct coordinator *coordinator)
{
    (void)recorder;
    (void)coordinator;
    return STATUS_OK;
}

enum status recorder_add_metrics(struct recorder *recorder, const struct coordinator *coordinator,
                                 uint32_t rank, const struct message *message, uint64_t now_ms)
{
    (void)recorder;
    (void)coordinator;
    (void)rank;
    (void)message;
    (void)now_ms;
    return STATUS_OK;
}

enum status recorder_add_period(struct recorder *recorder, const struct coordinator *coordinator,
                                uint32_t period)
{
    (void)recorder;
    (void)coordinator;
    (void)period;
    return STATUS_OK;
}

enum status recorder_complete(struct recorder *recorder, const struct coordinator *coordinator,
                              uint32_t rank, const struct message *message, uint64_t now_ms)
{
    (void)recorder;
    (void)coordinator;
    (void)rank;
    (void)message;
    (void)now_ms;
    return STATUS_OK;
}

enum status recorder_restore(struct recorder *recorder, const struct coordinator *coordinator,
                             uint64_t step, uint64_t now_ms)
{
    (void)recorder;
    (void)coordinator;
    (void)step;
    (void)now_ms;
    return STATUS_OK;
}

enum status recorder_close_metrics(struct recorder *recorder)
{
    (void)recorder;
    return STATUS_OK;
}

enum status recorder_write_details(struct recorder *recorder, const struct coordinator *coordinator)
{
    (void)recorder;
    (void)coordinator;
    return STATUS_OK;
}

enum status recorder_end_tensorboard(struct recorder *recorder,
                                     const struct coordinator *coordinator)
{
    (void)recorder;
    (void)coordinator;
    return STATUS_OK;
}

enum status recorder_write_summary(struct recorder *recorder, const struct coordinator *coordinator)
{
    (void)recorder;
    (void)coordinator;
    return STATUS_OK;
}

bool history_has_run(const char *folder)
{
    (void)folder;
    return false;
}

bool history_is_complete(const char *folder)
{
    (void)folder;
    return false;
}

void history_complete_entry(const char *folder, struct history_entry *entry)
{
    (void)folder;
    (void)entry;
}

enum status folder_lock_take(const char *folder, struct folder_lock *ret_lock)
{
    (void)folder;
    (void)ret_lock;
    return STATUS_OK;
}

bool folder_lock_is_held(const char *folder)
{
    (void)folder;
    return false;
}

void folder_lock_release(struct folder_lock *lock)
{
    (void)lock;
}
