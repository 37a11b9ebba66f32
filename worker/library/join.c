/* Joins a job, and says what it is. */
#include "common/base/log.h"
#include "common/job/job_modes.h"
#include "common/service/launch_number.h"
#include "worker/library/handle.h"
#include "worker/link/rank.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_TIMEOUT_SECONDS     30
#define JOIN_TIMEOUT_SECONDS_MAX 86400
#define STALL_WARN_MS            10000
#define LOG_LEVEL_MAX            3
#define TIMELINE_DIR_BYTES       4096

static const atomic_int never_interrupted;

/* What is given, or what the environment has, or the fallback. False if it does not fit. */
static bool pick(char *text, size_t size, const char *given, const char *variable,
                 const char *fallback)
{
    const char *value = given != NULL ? given : getenv(variable); // NOLINT(concurrency-mt-unsafe)
    value = value != NULL ? value : fallback;
    if (strlen(value) >= size) {
        log_error("%s is longer than %zu characters", variable, size - 1);
        return false;
    }
    snprintf(text, size, "%s", value);
    return true;
}

static enum status read_texts(const struct ringside_options *options, struct ringside *ringside)
{
    struct security_options *security = &ringside->security_options;
    char insecure[16], timeline_dir[TIMELINE_DIR_BYTES];
    if (!pick(ringside->server, sizeof(ringside->server), options->server, "RINGSIDE_SERVER", "") ||
        !pick(ringside->bind, sizeof(ringside->bind), options->bind, "RINGSIDE_BIND",
              "127.0.0.1") ||
        !pick(ringside->port_range, sizeof(ringside->port_range), options->port_range,
              "RINGSIDE_PORT_RANGE", "") ||
        !pick(security->keys, sizeof(security->keys), options->keys, "RINGSIDE_KEYS", "") ||
        !pick(insecure, sizeof(insecure), NULL, "RINGSIDE_INSECURE", "")) {
        return STATUS_INVALID;
    }
    if (!pick(timeline_dir, sizeof(timeline_dir), options->timeline_dir, "RINGSIDE_TIMELINE_DIR",
              "")) {
        return STATUS_INVALID;
    }
    security->insecure = options->is_insecure || strcmp(insecure, "true") == 0;
    return trace_create(timeline_dir, &ringside->timeline.trace);
}

static enum status check_options(const struct ringside_options *options,
                                 const struct ringside *ringside)
{
    if (ringside->server[0] == '\0') {
        log_error(
            "there is no server: set RINGSIDE_SERVER, or options.server, to the endpoint that "
            "`ps` prints");
        return STATUS_INVALID;
    }
    if (strncmp(ringside->server, "ipc://@", strlen("ipc://@")) == 0) {
        log_error(
            "another user of this host could listen at %s, whose name is not private: use tcp "
            "with keys",
            ringside->server);
        return STATUS_DENIED;
    }
    if (options->log_level > LOG_LEVEL_MAX || !(options->join_timeout >= 0) ||
        options->join_timeout > JOIN_TIMEOUT_SECONDS_MAX) {
        log_error("options.log_level is 0 to %d, and options.join_timeout 0 to %d seconds",
                  LOG_LEVEL_MAX, JOIN_TIMEOUT_SECONDS_MAX);
        return STATUS_INVALID;
    }
    return security_check_options(&ringside->security_options);
}

/* Whose variables count: all launchers', or, where `ringside run` has set RINGSIDE_LAUNCHER to
 * none, ours alone: it may itself run under another launcher. */
static enum status read_launcher(enum rank_launcher *ret_launcher)
{
    const char *name = getenv("RINGSIDE_LAUNCHER"); // NOLINT(concurrency-mt-unsafe)
    struct option_picked picked = {.index = RANK_LAUNCHER_AUTO};
    if (name != NULL && !option_pick(rank_launchers, name, 0, &picked)) {
        log_error("RINGSIDE_LAUNCHER is '%.40s', which is no launcher: set it to none, or unset it",
                  name);
        return STATUS_INVALID;
    }
    *ret_launcher = (enum rank_launcher)picked.index;
    return STATUS_OK;
}

static enum status read_rank(const struct ringside_options *options, struct ringside *ringside,
                             bool *ret_has, uint32_t *ret_rank)
{
    char error[256];
    enum status status = read_launcher(&ringside->launcher);
    if (status != STATUS_OK) {
        return status;
    }
    const struct rank_sources sources = {
        .option = options->has_rank ? "options.rank" : NULL,
        .option_value = options->rank,
        .launcher = ringside->launcher,
        .variables = rank_variables,
        .get = getenv,
    };
    status = rank_resolve(&sources, ret_has, ret_rank, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

static enum status read_options(const struct ringside_options *options, struct ringside *ringside,
                                struct link_options *link)
{
    double timeout = options->join_timeout > 0 ? options->join_timeout : JOIN_TIMEOUT_SECONDS;
    enum status status = read_texts(options, ringside);
    if (status == STATUS_OK) {
        status = check_options(options, ringside);
    }
    if (status != STATUS_OK) {
        return status;
    }
    *link = (struct link_options){
        .coordinator = ringside->server,
        .address = ringside->bind,
        .port_range = ringside->port_range,
        .launch = launch_number_read(getenv, ringside->server),
        .security = &ringside->security,
        .join_timeout_ms = (uint32_t)(1000 * timeout),
        .stall_warn_ms = STALL_WARN_MS,
        .is_interrupted = &never_interrupted,
        .has_no_door = true, // which would replace accept(2) and others for the whole process
    };
    return read_rank(options, ringside, &link->has_rank, &link->rank);
}

/* Whether a program of its own can be of this job. If not it goes without LEAVE, which would end
 * the job: whoever comes in its place may be of it. */
static bool is_for_programs(const struct ringside *ringside)
{
    bool is_so = job_is_external(&ringside->job);
    if (!is_so) {
        log_error("the model of this job is %s, which `worker` trains: a program of its own takes "
                  "part in jobs with --model external:NAME",
                  ringside->job.model);
    }
    return is_so;
}

static enum status check_job(struct ringside *ringside)
{
    char text[256];
    enum status status =
        rank_check_size(ringside->launcher, 0, ringside->job.workers, getenv, text, sizeof(text));
    if (status != STATUS_OK) {
        log_error("%s", text);
    }
    return status;
}

enum status handle_join(struct ringside *ringside)
{
    enum status status = link_create(&ringside->joins_by, &ringside->link);
    if (status == STATUS_OK) {
        status = link_welcome(ringside->link, &ringside->job, &ringside->rank);
    }
    if (status == STATUS_OK && !is_for_programs(ringside)) {
        status = STATUS_MISMATCH;
    }
    if (status != STATUS_OK) {
        return status;
    }
    ringside->asked = ringside->job;
    ringside->joins_by.has_rank = true; // from here on
    ringside->joins_by.outlast_ms = job_outlast_ms(&ringside->job);
    ringside->joins_by.rank = link_number(ringside->link);
    log_set_rank(ringside->rank);
    status = check_job(ringside);
    if (status != STATUS_OK) {
        link_leave(ringside->link, status, "it cannot take part; its log says more");
        return status;
    }
    status = timeline_open(&ringside->timeline, &ringside->job, ringside->rank,
                           link_number(ringside->link));
    if (status != STATUS_OK) {
        link_leave(ringside->link, status, "it has no memory for its timeline");
    }
    return status;
}

static enum status join(const struct ringside_options *options, struct ringside *ringside)
{
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return STATUS_UNSUPPORTED;
    }
    enum status status = read_options(options, ringside, &ringside->joins_by);
    if (status == STATUS_OK) {
        status = security_open(&ringside->security_options, &ringside->security);
    }
    return status == STATUS_OK ? handle_join(ringside) : status;
}

enum ringside_status ringside_join(const struct ringside_options *options,
                                   struct ringside **ret_ringside)
{
    static const struct ringside_options none;
    options = options != NULL ? options : &none;
    if (options->size != 0 && options->size != sizeof(*options)) {
        handle_say("ringside_join: options.size is %zu, and this library has %zu: build the "
                   "program against its header",
                   options->size, sizeof(*options));
        return RINGSIDE_INVALID;
    }
    if (!handle_claim()) {
        handle_say("ringside_join: this process is in a job, and can be in one at a time: "
                   "ringside_leave ends that");
        return RINGSIDE_MISUSE;
    }
    handle_listen(options->log_level);
    struct ringside *ringside = calloc(1, sizeof(*ringside));
    if (ringside == NULL) {
        handle_unclaim();
        return handle_fail(NULL, STATUS_NO_MEMORY);
    }
    pthread_mutex_init(&ringside->turn, NULL);
    ringside->state = HANDLE_JOINED;
    ringside->keeps_vectors = options->keeps_vectors;
    enum status status = join(options, ringside);
    if (status != STATUS_OK) {
        enum ringside_status is = handle_fail(ringside->link, status);
        is = status == STATUS_END_OF_DATA ? RINGSIDE_END : is;
        link_destroy(ringside->link);
        timeline_close(&ringside->timeline);
        security_close(&ringside->security);
        pthread_mutex_destroy(&ringside->turn);
        free(ringside);
        handle_unclaim();
        return is;
    }
    snprintf(ringside->mode, sizeof(ringside->mode), "%s", mode_text(ringside->job.mode).text);
    *ret_ringside = ringside;
    return RINGSIDE_OK;
}

enum ringside_status ringside_job(struct ringside *ringside, struct ringside_job *ret_job)
{
    enum ringside_status entered = handle_enter(ringside, ~(unsigned)HANDLE_BROKEN, "ringside_job");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    const struct job *job = &ringside->job;
    const struct schedule schedule = job_schedule(job, job->steps * job->global_batch);
    *ret_job = (struct ringside_job){
        .rank = ringside->rank,
        .size = job->workers,
        .steps = job_is_open(job) ? 0 : job->steps,
        .batch = job_batch_of(job, ringside->rank),
        .seed = job->seed,
        .is_unsynchronised = job_is_unsynchronised(job),
        .may_set_rate = !ringside->makes_updates,
        .servers_update = handle_servers_update(ringside),
        .mode = ringside->mode,
        .model = job->model,
        .optimizer = names_optimizers[job->optimizer].name,
        .rate = schedule_rate(&schedule, 0),
        .has_schedule = !schedule_is_constant(&schedule),
        .momentum = job->settings.momentum,
        .beta1 = job->settings.beta1,
        .beta2 = job->settings.beta2,
        .decay = job->settings.decay,
        .epsilon = job->settings.epsilon,
        .weight_decay = job->settings.weight_decay,
    };
    return handle_exit(ringside, STATUS_OK);
}
