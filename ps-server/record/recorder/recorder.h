/* Records a job in its run folder: see record_writer.h.
 *
 * A thread does that, in the order of the calls, so that nobody waits for the disk: it may be slow,
 * or hang, as a server of files does that is not reached. A bounded queue leads to the thread. What
 * it cannot take of reports is added up meanwhile, and comes in longer lines. A call returns
 * STATUS_OK where the thread has yet to do its work; recorder_look and recorder_settle tell how
 * that went. */
#ifndef PS_SERVER_RECORD_RECORDER_RECORDER_H
#define PS_SERVER_RECORD_RECORDER_RECORDER_H

#include "common/base/status.h"
#include "common/thread/slow_disk.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/record/history.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORDER_FOLDER_BYTES 4032

struct recorder;

struct recorder_options {
    const char *folder;
    const struct job *job; // as it was given, for job.json; borrowed
    bool goes_on;          // a run that is there
    bool has_tensorboard;  // writes event files of TensorBoard's as well
    const char *program;   // command line of a program of its own; NULL or "": not known. Borrowed
    bool has_keys;         // for the tcp connections of the job
    struct slow_disk_wait wait; // for the disk, while the folder is opened
};

/* Makes the folder (and those above it) if it is not there, and sets aside disk space in it, so
 * that a full disk cannot stop the summary. STATUS_INVALID if it already holds a run, unless
 * that goes on; STATUS_IO, too, if the disk hangs; STATUS_INTERRUPTED: a turn has said so. Logs. */
enum status recorder_create(const struct recorder_options *options, struct recorder **ret_recorder);

/* What is queued is done first, for which the disk gets so many milliseconds. False: it hangs, and
 * the thread stays with it until the process ends. NULL is fine. */
bool recorder_destroy(struct recorder *recorder, uint64_t patience_ms);

/* Several times a second: says once that the disk has taken nothing for `warn_ms`. Returns what
 * failed first, STATUS_OK if all went well so far. */
enum status recorder_look(struct recorder *recorder, uint64_t now_ms, uint64_t warn_ms);

/* Waits until all is done, for so many milliseconds at most. Returns what failed first. If the disk
 * has not taken it by then, that has failed, which is logged, and nothing is written any more. */
enum status recorder_settle(struct recorder *recorder, uint64_t patience_ms);

/* What could not be done first: "cannot write FILE: No space left on device"; "" if all went well.
 * Borrowed until the next call. */
const char *recorder_error(struct recorder *recorder);

/* Does something else that waits for the disk, in the order of the calls. False: `data` stays the
 * caller's; otherwise `work` ends it. */
bool recorder_do(struct recorder *recorder, void (*work)(void *data), void *data);

/* Removes the results of a run that was here: they are written anew at the end. Logs. */
enum status recorder_remove_results(struct recorder *recorder);

#define RECORDER_EVERY_STEP INT64_MAX // for recorder_go_on: everything stays

/* Of a job that goes on at a step, before it trains: keeps the metrics up to there, which `from`, a
 * run folder and maybe this one, has; what was the result of that run goes. */
enum status recorder_go_on(struct recorder *recorder, const char *from, uint64_t step);

/* Notes that the job goes on, which details.json will tell: see history.h. Logs what cannot be
 * written, which does the job no harm. */
void recorder_note_restart(struct recorder *recorder, const struct history_entry *entry);

/* Once everybody is ready. All of these log what cannot be written. In training that is no failure:
 * lines wait until there is room, and it is said once. */
enum status recorder_write_job(struct recorder *recorder, const struct coordinator *coordinator);
enum status recorder_add_metrics(struct recorder *recorder, const struct coordinator *coordinator,
                                 uint32_t rank, const struct message *message, uint64_t now_ms);

/* What a rank had reported to a coordinator that was lost, in sum, since its generation has begun:
 * writes what no line has of it. */
enum status recorder_complete(struct recorder *recorder, const struct coordinator *coordinator,
                              uint32_t rank, const struct message *message, uint64_t now_ms);

/* Once the job trains again, from a copy of this step, of which the results are: writes what no
 * line has of the steps until then, in a line for each rank. After recorder_go_on. */
enum status recorder_restore(struct recorder *recorder, const struct coordinator *coordinator,
                             uint64_t step, uint64_t now_ms);

/* A period is closed. */
enum status recorder_add_period(struct recorder *recorder, const struct coordinator *coordinator,
                                uint32_t period);

/* Writes what was reported since the last lines. For the end of a job, once it has settled: what
 * cannot be written now fails. */
enum status recorder_close_metrics(struct recorder *recorder);

enum status recorder_write_details(struct recorder *recorder,
                                   const struct coordinator *coordinator);

/* Says how the job ended to those who look at it by TensorBoard. */
enum status recorder_end_tensorboard(struct recorder *recorder,
                                     const struct coordinator *coordinator);

/* Comes last, in the space that was set aside. */
enum status recorder_write_summary(struct recorder *recorder,
                                   const struct coordinator *coordinator);

#endif
