/* Does what the coordinator asks for. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "common/thread/slow_disk.h"
#include "ps-server/record/history.h"
#include "ps-server/server_state.h"

static void port_send(void *context, uint64_t peer, const struct message *message)
{
    struct server *server = context;
    if (channel_send(server->channel, peer, message, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send %s: the member is gone", message_kind_name(message->kind));
    }
}

static enum presence port_look(void *context, struct sighting *sighting)
{
    (void)context;
    return presence_look(sighting);
}

/* What does not end the job is no error. */
static void port_log(void *context, bool is_error, const char *sentence)
{
    struct server *server = context;
    enum status verdict = server->coordinator.verdict;
    bool has_failed = verdict != STATUS_OK && verdict != STATUS_AGAIN;
    progress_break(&server->progress);
    log_write(!is_error ? LOG_INFO : has_failed ? LOG_ERROR : LOG_WARN, "%s", sentence);
}

/* Begins to write checkpoints. May have to wait for the disk. */
static void begin_writing(struct server *server)
{
    signs_busy(&server->signs);
    enum status status = keeper_begin_writing(server->keeper, &server->coordinator);
    server->has_disk_failed |= slow_disk_is_given_up(status);
    server_note_record(server, status);
}

static void note_generation(struct server *server, uint64_t step)
{
    const struct coordinator *coordinator = &server->coordinator;
    const struct generation *generation = &server->generation;
    struct history_entry entry = {.begin_step = step,
                                  .restarts = generation_restarts(coordinator),
                                  .workers_lost = coordinator->workers_lost};
    snprintf(entry.reason, sizeof(entry.reason), "%s",
             generation->recoveries[generation->recovery_count - 1].reason);
    recorder_note_restart(server->recorder, &entry);
}

/* What lines of metrics lack of the steps up to the copy that the job goes on from. A program that
 * commits has other ranks after a loss. */
static void restore_record(struct server *server, uint64_t step)
{
    if (server->record_status == STATUS_OK && step > 0 && !job_may_commit(&server->job)) {
        server_note_record(
            server, recorder_restore(server->recorder, &server->coordinator, step, clock_now_ms()));
    }
}

/* Training goes on with other processes: what was recorded of later steps than it goes on from is
 * made again. */
static void go_on(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    generation_note_start(&server->generation, coordinator, clock_now_ms());
    progress_gone_on(&server->progress, coordinator);
    live_gone_on(server->live, coordinator);
    if (server->recorder == NULL) {
        return;
    }
    uint64_t step = generation_begin_step(coordinator);
    note_generation(server, step);
    server_note_record(server, recorder_go_on(server->recorder, server->options->folder, step));
    restore_record(server, step);
    if (server->record_status == STATUS_OK) {
        begin_writing(server);
    }
}

/* Training goes on that this process has not begun: what was recorded of it stays. */
static void go_on_returned(struct server *server)
{
    struct coordinator *coordinator = &server->coordinator;
    const struct generation *generation = &server->generation;
    uint64_t step = generation->recoveries[generation->recovery_count - 1].begin_step;
    bool was_away = server->has_started;
    server->has_started = true;
    progress_returned(&server->progress, coordinator);
    live_started(server->live, coordinator);
    if (server->recorder == NULL) {
        return;
    }
    if (was_away) {
        note_generation(server, step);
    }
    server_note_restart(server, step);
    server_note_record(
        server, recorder_go_on(server->recorder, server->options->folder, RECORDER_EVERY_STEP));
    if (server->record_status == STATUS_OK) {
        begin_writing(server);
    }
    server_note_record(server, recorder_write_job(server->recorder, coordinator));
}

static void note_beginning(struct server *server)
{
    struct beginning *beginning = keeper_beginning(server->keeper);
    if (beginning != NULL && !recorder_do(server->recorder, beginning_note, beginning)) {
        beginning_destroy(beginning);
    }
}

static void port_started(void *context)
{
    struct server *server = context;
    const struct coordinator_resume *resume = server->coordinator.resume;
    signs_training(&server->signs);
    if (server->coordinator.is_returned) {
        go_on_returned(server);
        return;
    }
    server_note_restart(server, resume != NULL ? resume->step : 0);
    if (server->recorder != NULL && job_trains_alone(&server->job)) {
        note_beginning(server);
    }
    if (server->has_started) {
        go_on(server);
        return;
    }
    server->has_started = true;
    if (server->coordinator.generation != NULL) { // one before was lost before it could train
        generation_note_start(&server->generation, &server->coordinator, clock_now_ms());
    }
    progress_started(&server->progress, &server->coordinator, &server->job);
    live_started(server->live, &server->coordinator);
    const struct server_options *options = server->options;
    if (server->recorder != NULL && (server->is_again || resume != NULL)) {
        server_note_record(server,
                           recorder_go_on(server->recorder,
                                          server->is_again ? options->folder : options->resume,
                                          resume != NULL ? resume->step : 0));
    }
    if (server->recorder != NULL && server->record_status == STATUS_OK) {
        begin_writing(server);
    }
    if (server->recorder != NULL) {
        server_note_record(server, recorder_write_job(server->recorder, &server->coordinator));
        restore_record(server, resume != NULL ? resume->step : 0);
    }
}

static void port_switched(void *context)
{
    struct server *server = context;
    progress_switched(&server->progress, &server->coordinator);
    live_switched(server->live, &server->coordinator);
}

static void port_reported(void *context, uint32_t rank, const struct message *message)
{
    struct server *server = context;
    uint64_t now_ms = clock_now_ms();
    if (server->recorder != NULL && server->record_status == STATUS_OK &&
        message->report->is_repeated) {
        server_note_record(server, recorder_complete(server->recorder, &server->coordinator, rank,
                                                     message, now_ms));
    } else if (server->recorder != NULL && server->record_status == STATUS_OK) {
        server_note_record(server, recorder_add_metrics(server->recorder, &server->coordinator,
                                                        rank, message, now_ms));
    }
    progress_reported(&server->progress, &server->coordinator, now_ms);
    live_reported(server->live, rank, message);
}

static void port_period_closed(void *context, uint32_t epoch)
{
    struct server *server = context;
    progress_period(&server->progress, &server->coordinator, epoch);
    if (server->recorder != NULL && server->record_status == STATUS_OK) {
        server_note_record(server,
                           recorder_add_period(server->recorder, &server->coordinator, epoch));
    }
    live_period_closed(server->live, &server->coordinator, epoch);
}

static void port_await_again(void *context, enum member_role role, uint32_t number)
{
    struct server *server = context;
    signs_await(&server->signs, role_name(role), number);
}

static void port_checkpoint(void *context, enum checkpoint_task task, uint64_t peer,
                            const struct message *message)
{
    struct server *server = context;
    if (server->keeper != NULL) { // see server_open_keeper
        keeper_do(server->keeper, &server->coordinator, task, peer, message, clock_now_ms());
    }
}

struct coordinator_port server_port(struct server *server)
{
    return (struct coordinator_port){
        .context = server,
        .look = port_look,
        .send = port_send,
        .log = port_log,
        .started = port_started,
        .switched = port_switched,
        .reported = port_reported,
        .period_closed = port_period_closed,
        .await_again = port_await_again,
        .checkpoint = port_checkpoint,
    };
}
