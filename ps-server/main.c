/* Runs `ps`: the coordinator with shard 0, or another shard. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/job/job_resolve.h"
#include "common/security/security.h"
#include "common/service/launch_number.h"
#include "common/service/notify.h"
#include "common/service/resources.h"
#include "common/thread/log_thread.h"
#include "common/trace/trace.h"
#include "ps-server/options.h"
#include "ps-server/server.h"
#include "ps-server/shard/shard_service.h"

#include <sodium.h>

#include <stdlib.h>
#include <string.h>

static enum status check_limits(enum resources_role role, const struct job *job)
{
    char error[RESOURCES_ERROR_BYTES];
    enum status status = resources_check(role, job, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

static enum status run_coordinator(const struct ps_options *options, struct job *job,
                                   const struct security *security, struct health *health,
                                   struct notify *notify, struct trace *trace)
{
    char error[OPTION_ERROR_BYTES];
    if (job_resolve(job, error, sizeof(error)) != STATUS_OK) {
        log_error("%s", error);
        return STATUS_INVALID;
    }
    enum status status = check_limits(RESOURCES_COORDINATOR, job);
    if (status != STATUS_OK) {
        return status;
    }
    struct server_options server = {
        .job = job,
        .is_local = options->is_local,
        .address = options->bind,
        .port = options->port,
        .port_range = options->port_range,
        .health = health,
        .dashboard = options->dashboard,
        .notify = notify,
        .trace = trace,
        .security = security,
        .keys = options->security.keys,
        .folder = options->out,
        .resume = options->resume,
        .goes_on = options->goes_on,
        .mirror = options->mirror,
        .run = options->run,
        .restarted = options->restarted,
        .given_fault = options->given_fault,
        .program = options->program,
        .listen_at = options->listen_at,
        .listen_fd = options->listen_fd != 0 ? (int)options->listen_fd : -1,
        .announce_fd = options->announce_fd != 0 ? (int)options->announce_fd : -1,
        .launcher_fd = options->launcher_fd != 0 ? (int)options->launcher_fd : -1,
        .has_tensorboard = options->tensorboard,
        .shows_progress = options->progress != PROGRESS_NONE,
        .shows_ranks = options->progress == PROGRESS_RANKS,
        .is_interrupted = signals_flag(),
    };
    return server_run(&server);
}

static enum status run_shard(const struct ps_options *options, double stall_warn,
                             const struct security *security, struct notify *notify,
                             struct trace *trace)
{
    enum status status = check_limits(RESOURCES_SHARD, NULL); // its job is not known yet
    if (status != STATUS_OK) {
        return status;
    }
    struct shard_service_options service = {
        .coordinator = options->server,
        .address = options->bind,
        .port_range = options->port_range,
        .security = security,
        .number = options->shard,
        .launch = launch_number_read(getenv, options->server),
        .trace = trace,
        .notify = notify,
        .join_timeout_ms = (uint32_t)(1000 * options->join_timeout),
        .stall_warn_ms = (uint32_t)(1000 * stall_warn),
        .is_interrupted = signals_flag(),
    };
    return shard_service_run(&service);
}

static enum status run(const struct ps_options *options, struct job *job, struct health *health,
                       struct notify *notify)
{
    struct security security;
    struct trace *trace;
    enum status status = trace_create(options->timeline_dir, &trace);
    if (status != STATUS_OK) {
        return status;
    }
    status = security_open(&options->security, &security);
    if (status == STATUS_OK) {
        status = options->shard == 0
                     ? run_coordinator(options, job, &security, health, notify, trace)
                     : run_shard(options, job->stall_warn, &security, notify, trace);
    }
    security_close(&security);
    (void)trace_write(trace); // which has said so; the job is what it is
    trace_destroy(trace);
    return status;
}

int main(int argc, char **argv)
{
    memory_keep_heap();
    log_init("ps", LOG_WARN);
    struct ps_options options;
    struct job job;
    bool is_done;
    if (ps_options_parse(argc, argv, &options, &job, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    log_init("ps", options.log_level);
    log_set_rank(options.shard);
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return EXIT_FAILED;
    }
    signals_install();
    (void)log_thread_begin(); // otherwise the log is as it was
    struct health *health = NULL;
    if (options.health_port != 0 &&
        health_create(options.bind, options.health_port, &health) != STATUS_OK) {
        return EXIT_FAILED;
    }
    struct notify *notify = notify_create(getenv, health);
    enum status status = run(&options, &job, health, notify);
    notify_stopping(notify);
    notify_destroy(notify);
    (void)log_thread_end();
    return (int)exit_code_of_member(status);
}
