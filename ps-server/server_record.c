/* The run folder of a coordinator: its lock, its history, its results. */
#include "common/base/clock.h"
#include "common/thread/slow_disk.h"
#include "ps-server/record/history.h"
#include "ps-server/server_state.h"

#include <stdio.h>

#define INTERRUPTED_MS 3000 // that the disk gets when the user wants the end

void server_note_record(struct server *server, enum status status)
{
    if (server->record_status == STATUS_OK) {
        server->record_status = status;
    }
}

/* What could not be written first. Records say it themselves; otherwise checkpoints could not be
 * begun, and the log has the details. */
static void describe_failure(const struct server *server, char ret_reason[COORDINATOR_REASON_BYTES])
{
    const char *error = recorder_error(server->recorder);
    if (error[0] != '\0') {
        snprintf(ret_reason, COORDINATOR_REASON_BYTES, "%s", error);
    } else {
        snprintf(
            ret_reason, COORDINATOR_REASON_BYTES,
            "no checkpoint can be written to %.300s/checkpoint: the coordinator's log says why",
            server->options->folder);
    }
}

uint64_t server_disk_patience_ms(const struct server *server)
{
    uint64_t patience_ms = (uint64_t)(1000 * job_disk_fail_s(&server->job));
    bool is_interrupted = *server->options->is_interrupted != 0;
    return is_interrupted && patience_ms > INTERRUPTED_MS ? INTERRUPTED_MS : patience_ms;
}

void server_check_record(struct server *server)
{
    char reason[COORDINATOR_REASON_BYTES];
    if (server->recorder != NULL) {
        uint64_t warn_ms = (uint64_t)(1000 * server->job.stall_warn);
        server_note_record(server, recorder_look(server->recorder, clock_now_ms(), warn_ms));
    }
    if (server->record_status != STATUS_OK) {
        describe_failure(server, reason);
        coordinator_stop(&server->coordinator, server->record_status, reason, clock_now_ms());
    }
}

/* Of a job that was here before: what it has gone through, and why it is here again. */
static enum status prepare_restart(struct server *server)
{
    const struct server_options *options = server->options;
    struct coordinator *coordinator = &server->coordinator;
    const struct coordinator_resume *resume = coordinator->resume;
    struct history_entry *entry = &server->restart;
    *entry = (struct history_entry){.is_whole = true,
                                    .begin_step = resume != NULL ? resume->step : 0,
                                    .restarts = resume != NULL ? resume->restarts : 0};
    snprintf(entry->reason, sizeof(entry->reason), "%s", options->restarted);
    enum status status = server_complete_entry(server, options->folder, entry);
    if (status != STATUS_OK) {
        return status;
    }
    coordinator->restarts_before = entry->restarts;
    coordinator->workers_lost = entry->workers_lost;
    status = recorder_remove_results(server->recorder);
    return status == STATUS_OK ? recorder_settle(server->recorder, server_disk_patience_ms(server))
                               : status;
}

/* Of a run that is resumed by hand: its checkpoint does not know of losses behind it. */
static enum status take_totals(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    struct history_entry past = {
        .restarts = coordinator->resume != NULL ? coordinator->resume->restarts : 0};
    enum status status = server_complete_entry(server, server->options->resume, &past);
    coordinator->restarts_before = past.restarts;
    coordinator->workers_lost = past.workers_lost;
    return status;
}

void server_note_restart(struct server *server, uint64_t step)
{
    if (!server->is_again || server->is_restart_noted || server->recorder == NULL) {
        return;
    }
    server->is_restart_noted = true;
    server->restart.begin_step = step;
    server->restart.workers_lost = server->coordinator.workers_lost; // some with the one before
    recorder_note_restart(server->recorder, &server->restart);
}

enum status server_open_record(struct server *server)
{
    const struct server_options *options = server->options;
    const char *folder = options->folder;
    if (folder[0] == '\0') {
        return STATUS_OK;
    }
    bool goes_on = options->goes_on && !server->was_completed;
    bool has_resume = options->resume[0] != '\0' || server->coordinator.resume != NULL;
    server->given = *options->job;
    if (options->given_fault != NULL && options->given_fault[0] != '\0') {
        snprintf(server->given.faults, sizeof(server->given.faults), "%s", options->given_fault);
    }
    const struct recorder_options record = {
        .folder = folder,
        .job = &server->given,
        .goes_on = goes_on || has_resume,
        .has_tensorboard = options->has_tensorboard,
        .program = options->program,
        .has_keys = options->security->keys != NULL,
        .wait = server_disk_wait(server),
    };
    enum status status = recorder_create(&record, &server->recorder);
    server->has_disk_failed |= slow_disk_is_given_up(status);
    server->is_again = options->goes_on && (options->restarted[0] != '\0' || server->has_run);
    if (status == STATUS_OK && !server->is_again && options->resume[0] != '\0') {
        status = take_totals(server);
    }
    return status == STATUS_OK && server->is_again ? prepare_restart(server) : status;
}

/* A job whose record could not be written has failed. */
static void amend_by_record(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    char reason[COORDINATOR_REASON_BYTES];
    if (coordinator->verdict == STATUS_OK && server->record_status != STATUS_OK) {
        describe_failure(server, reason);
        coordinator_amend(coordinator, server->record_status, reason, NULL);
    }
}

/* Waits for the disk, within bounds, and notes how that went. */
static void settle(struct server *server)
{
    server_note_record(server, recorder_settle(server->recorder, server_disk_patience_ms(server)));
}

void server_finish_record(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    server_note_restart(server, server->restart.begin_step); // that never came to training
    settle(server);
    if (server->record_status == STATUS_OK) {
        server_note_record(server, recorder_close_metrics(server->recorder));
    }
    // Of a job that goes on, it says what the job was when it began.
    if (!server->has_started) {
        server_note_record(server, recorder_write_job(server->recorder, coordinator));
    }
    server_note_record(server, recorder_write_details(server->recorder, coordinator));
    settle(server);
    amend_by_record(server); // TensorBoard is told how the job ended
    server_note_record(server, recorder_end_tensorboard(server->recorder, coordinator));
    settle(server);
    amend_by_record(server);
    // The summary comes last: it says how the job ended, and the exit code has to agree.
    server_note_record(server, recorder_write_summary(server->recorder, coordinator));
    settle(server);
    amend_by_record(server);
}
