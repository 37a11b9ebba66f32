/* worker: joins a job, builds what it needs, trains. */
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/job/job_modes.h"
#include "common/security/security.h"
#include "common/service/launch_number.h"
#include "common/service/notify.h"
#include "common/service/resources.h"
#include "common/thread/log_thread.h"
#include "common/trace/trace.h"
#include "common/transport/local_address.h"
#include "common/transport/transport.h"
#include "worker/errands.h"
#include "worker/link/link.h"
#include "worker/link/process_trace.h"
#include "worker/link/rank.h"
#include "worker/options.h"
#include "worker/workplace.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* A device that may compute in several ways does it as that of rank 0, which builds first. */
static enum status build(struct workplace *workplace, struct link *link, const struct job *job,
                         uint32_t process)
{
    struct device *device = workplace->device;
    bool has_choices = device_choices(device) != NULL;
    enum status status;
    if (has_choices && process > 0) {
        const char *choices;
        status = link_await_choices(link, &choices);
        if (status != STATUS_OK) {
            return status;
        }
        status = device_take_choices(device, choices);
        if (status != STATUS_OK) {
            return status;
        }
    }
    status = workplace_build(workplace, job, process);
    if (status != STATUS_OK) {
        return status;
    }
    if (has_choices && process == 0) {
        link_tell_choices(link, device_choices(device));
    }
    return STATUS_OK;
}

/* Whether a worker can be of this job. If not it goes without LEAVE, which would end the job:
 * whoever comes in its place may be of it. */
static bool is_for_workers(const struct job *job)
{
    if (job_is_external(job)) {
        log_error("the model of this job, %s, is a program of its own that joins by libringside: "
                  "start that, not `worker`",
                  job->model);
    }
    return !job_is_external(job);
}

/* *number: by which the process joins later generations. */
static enum status train(const struct worker_options *options, struct link *link,
                         struct workplace *workplace, struct job *job, uint32_t *number)
{
    uint32_t process;
    enum status status = link_welcome(link, job, &process);
    if (status != STATUS_OK) {
        return status;
    }
    if (!is_for_workers(job)) {
        job->workers = 0; // it has not joined that
        return STATUS_MISMATCH;
    }
    bool is_first = link_generation(link) == 0;
    *number = link_number(link);
    const struct carriers carriers = job_carriers(job);
    log_set_rank(carriers_block(carriers, process).first);
    char text[256];
    // Later generations have fewer processes than were started. Nobody changes the environment any
    // more.
    status = is_first ? rank_check_size(options->launcher, options->rank_offset, carriers.processes,
                                        getenv, text, sizeof(text))
                      : STATUS_OK;
    if (status != STATUS_OK) {
        log_error("%s", text);
        link_leave(link, status, text);
        return status;
    }
    apply_overrides(options, job);
    process_trace_describe(workplace->trace, job, *number, "--timeline-dir");
    const struct workplace_seat seat = {
        .process = process,
        .local_rank = options->has_local_rank ? options->local_rank : process,
        .local_size = options->local_size,
    };
    // What is open stays open from one generation to the next.
    status = workplace->device == NULL ? workplace_open(workplace, job, &seat) : STATUS_OK;
    if (status == STATUS_OK) {
        status = build(workplace, link, job, process);
    }
    if (status != STATUS_OK) {
        snprintf(text, sizeof(text), "it cannot prepare (%s); its log says more",
                 status_text(status));
        link_leave(link, status, text);
        return status;
    }
    status = trainer_restore(workplace->trainer, link, &workplace->kept);
    if (status != STATUS_OK) {
        snprintf(text, sizeof(text), "it cannot go on from the checkpoint (%s); its log says more",
                 status_text(status));
        link_leave(link, status, text);
        return status;
    }
    struct link_prepared prepared;
    trainer_describe(workplace->trainer, &prepared);
    prepared.classes = workplace->train->class_text;
    prepared.figures = workplace->figures;
    prepared.choices = device_choices(workplace->device);
    status = link_prepare(link, &prepared);
    if (status != STATUS_OK) {
        return status;
    }
    return trainer_run(workplace->trainer, link);
}

/* From joining to the end of the job, or of a generation of its processes. */
static enum status train_generation(const struct worker_options *options,
                                    struct link_options *link_options, struct workplace *workplace,
                                    struct job *job)
{
    struct link *link;
    enum status status = link_create(link_options, &link);
    if (status != STATUS_OK) {
        return status;
    }
    status = train(options, link, workplace, job, &link_options->rank);
    link_options->made_step = link_steps(link);
    if (status == STATUS_AGAIN && workplace->trainer != NULL) {
        trainer_keep_statistics(workplace->trainer, &workplace->kept);
    }
    link_destroy(link);
    workplace_clear(workplace);
    return status;
}

static enum status join_and_train(const struct worker_options *options,
                                  const struct security *security, struct notify *notify,
                                  struct trace *trace)
{
    struct link_options link_options = {
        .coordinator = options->server,
        .address = options->bind,
        .port_range = options->port_range,
        .security = security,
        .has_rank = options->has_rank,
        .rank = options->rank,
        .launch = launch_number_read(getenv, options->server),
        .join_timeout_ms = (uint32_t)(1000 * options->join_timeout),
        .stall_warn_ms = (uint32_t)(1000 * options->stall_warn),
        .notify = notify,
        .is_interrupted = signals_flag(),
    };
    struct workplace workplace = {.trace = trace};
    struct job job = {.workers = 0}; // until the worker is welcomed
    char error[RESOURCES_ERROR_BYTES];
    enum status status = resources_check(RESOURCES_WORKER, NULL, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    do {
        status = train_generation(options, &link_options, &workplace, &job);
        link_options.has_rank = true;
        link_options.outlast_ms = job_outlast_ms(&job);
    } while (status == STATUS_AGAIN);
    workplace_close(&workplace);
    if (status == STATUS_UNREACHABLE && job.workers == 0) {
        log_error("this worker has not joined the job"); // nobody is gone: it has said why
    } else if (status != STATUS_OK) {
        log_error("%s: %s",
                  job.workers > 0 ? "the job ended early for this worker"
                                  : "this worker has not joined the job",
                  status_text(status));
    }
    return status;
}

static enum status run(const struct worker_options *options, struct notify *notify)
{
    struct security security;
    struct trace *trace;
    enum status status = trace_create(options->timeline_dir, &trace);
    if (status != STATUS_OK) {
        return status;
    }
    status = security_open(&options->security, &security);
    if (status == STATUS_OK) {
        status = join_and_train(options, &security, notify, trace);
    }
    security_close(&security);
    (void)trace_write(trace); // which has said so; the job is what it is
    trace_destroy(trace);
    return status;
}

/* NCCL, if the job turns out to use it, is to listen where this worker listens for others, and not
 * on any interface that it finds. While there is one thread. What the user has set stays. */
static void keep_nccl_to_interface(const char *address)
{
    char name[LOCAL_ADDRESS_BYTES], value[LOCAL_ADDRESS_BYTES + 1];
    if (local_address_interface(address[0] != '\0' ? address : "127.0.0.1", name)) {
        snprintf(value, sizeof(value), "=%s", name);
        setenv("NCCL_SOCKET_IFNAME", value, false); // NOLINT(concurrency-mt-unsafe)
    }
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
    keep_nccl_to_interface(options.bind);
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return EXIT_FAILED;
    }
    signals_install();
    if (options.probe) {
        return (int)errand_probe();
    }
    if (options.evaluate[0] != '\0') {
        return (int)exit_code(errand_evaluate(options.evaluate));
    }
    if (options.pack[0] != '\0') {
        return (int)exit_code(errand_pack(options.pack, options.pack_jpeg));
    }
    if (options.preview[0] != '\0') {
        return (int)exit_code(errand_preview(&(struct errand_preview){
            .path = options.preview,
            .epoch = options.preview_epoch - 1,
            .sheet = options.preview_sheet - 1,
            .zoom = options.preview_zoom,
        }));
    }
    if (options.describe_model) {
        return (int)exit_code(errand_describe_model());
    }
    if (options.backends) {
        return (int)exit_code(errand_print_backends());
    }
    struct health *health = NULL;
    if (options.health_port != 0 &&
        health_create(options.bind, options.health_port, &health) != STATUS_OK) {
        return EXIT_FAILED;
    }
    (void)log_thread_begin(); // otherwise the log is as it was
    struct notify *notify = notify_create(getenv, health);
    enum status status = run(&options, notify);
    notify_stopping(notify);
    notify_destroy(notify);
    (void)log_thread_end();
    return (int)exit_code_of_member(status);
}
