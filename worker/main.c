/* worker: joins a job, builds what it needs, trains. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/security/security.h"
#include "common/service/notify.h"
#include "common/service/resources.h"
#include "worker/link/link.h"
#include "worker/link/rank.h"
#include "worker/options.h"
#include "worker/workplace.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>

/* What this host has differently from the job's description. */
static void apply_overrides(const struct worker_options *options, struct job *job)
{
    if (options->data[0] != '\0') {
        snprintf(job->data, sizeof(job->data), "%s", options->data);
    }
    if (options->device[0] != '\0') {
        snprintf(job->device, sizeof(job->device), "%s", options->device);
    }
    if (options->threads != 0) {
        job->threads = options->threads;
    }
}

static enum status train(const struct worker_options *options, struct link *link,
                         struct workplace *workplace, struct job *job)
{
    uint32_t rank;
    enum status status = link_welcome(link, job, &rank);
    if (status != STATUS_OK) {
        return status;
    }
    log_set_rank(rank);
    char text[256];
    // Nobody changes the environment any more.
    status = rank_check_size(options->launcher, options->rank_offset, job->workers, getenv, text,
                             sizeof(text));
    if (status != STATUS_OK) {
        log_error("%s", text);
        link_leave(link, status, text);
        return status;
    }
    apply_overrides(options, job);
    const struct workplace_seat seat = {
        .rank = rank,
        .local_rank = options->has_local_rank ? options->local_rank : rank,
        .local_size = options->local_size,
    };
    status = workplace_open(workplace, job, &seat);
    if (status != STATUS_OK) {
        snprintf(text, sizeof(text), "it cannot prepare (%s); its log says more",
                 status_text(status));
        link_leave(link, status, text);
        return status;
    }
    struct link_prepared prepared;
    trainer_describe(workplace->trainer, &prepared);
    status = link_prepare(link, &prepared);
    if (status != STATUS_OK) {
        return status;
    }
    return trainer_run(workplace->trainer, link);
}

static enum status join_and_train(const struct worker_options *options,
                                  const struct security *security, struct notify *notify)
{
    struct link_options link_options = {
        .coordinator = options->server,
        .address = options->bind,
        .port_range = options->port_range,
        .security = security,
        .has_rank = options->has_rank,
        .rank = options->rank,
        .join_timeout_ms = (uint32_t)(1000 * options->join_timeout),
        .notify = notify,
        .is_interrupted = signals_flag(),
    };
    struct workplace workplace = {0};
    struct job job;
    struct link *link;
    char error[RESOURCES_ERROR_BYTES];
    enum status status = resources_check(RESOURCES_WORKER, NULL, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = link_create(&link_options, &link);
    if (status != STATUS_OK) {
        return status;
    }
    status = train(options, link, &workplace, &job);
    link_destroy(link);
    workplace_close(&workplace);
    return status;
}

static enum status run(const struct worker_options *options, struct notify *notify)
{
    struct security security;
    enum status status = security_open(&options->security, &security);
    if (status == STATUS_OK) {
        status = join_and_train(options, &security, notify);
    }
    security_close(&security);
    return status;
}

int main(int argc, char **argv)
{
    memory_keep_heap();
    log_init("worker", LOG_WARN);
    struct worker_options options;
    bool is_done;
    if (worker_options_parse(argc, argv, &options, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    log_init("worker", options.log_level);
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return EXIT_FAILED;
    }
    signals_install();
    if (options.probe) {
        return (int)exit_code(workplace_probe());
    }
    if (options.backends) {
        return (int)exit_code(workplace_print_backends());
    }
    struct health *health = NULL;
    if (options.health_port != 0 &&
        health_create(options.bind, options.health_port, &health) != STATUS_OK) {
        return EXIT_FAILED;
    }
    struct notify *notify = notify_create(getenv, health);
    enum status status = run(&options, notify);
    notify_stopping(notify);
    notify_destroy(notify);
    if (status != STATUS_OK) {
        log_error("the job ended early for this worker: %s", status_text(status));
    }
    return (int)exit_code(status);
}
