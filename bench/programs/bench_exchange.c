/* Speed of the exchange alone: a worker without a model.
 *
 *     bench_exchange --server ENDPOINT --bytes 1048576 [--buckets 4] [--warmup 5]
 *
 * Joins a job as `worker` does, with a vector of so many bytes in the place of a model's, and goes
 * through its steps as the trainer does, without computing anything. So it measures what a training
 * step would wait for if there were nothing to hide behind, in whatever mode, over whatever
 * transport and with whatever options the job has. A step of the job is a round here: the first
 * ones warm up, the last one is there to be checked, those between are timed, one by one.
 *
 * A timed round goes from begin_step until parameters or gradients are those of the next step, and
 * begins when the one before is over: there is no barrier but the exchange itself. Gradients are
 * filled before the first and the last round; between those a round's result is the next one's
 * input, as in the benchmarks of the peers.
 *
 * Results are checked, bit by bit (see pattern.h): the mean of the gradients, or what the job's
 * optimizer makes of it, which this program works out on one period. The whole vector is checked in
 * the first and the last round, a few probes, renewed before, in one round of several. Where
 * workers are unsynchronised (see exchange.h) all ranks have the same gradients, so that the end
 * does not depend on who came when, and the end is checked.
 *
 * Gradients lie where the job can share them, as in training. With --ordinary they do not.
 *
 * Each rank prints a line of JSON: its times, and the CPU seconds that its process spent in them.
 */
#include "bench/programs/pattern.h"
#include "bench/programs/rounds.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/signals.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "common/job/phases.h"
#include "common/options/log_level.h"
#include "common/security/security.h"
#include "common/vector/digest.h"
#include "worker/link/flat_vectors.h"
#include "worker/link/link.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Between two checks: few enough that they touch no quantile of the times. A rank that checks is
// waited for by the others.
#define PROBE_ROUNDS 16

struct bench_options {
    char server[256], bind[128];
    uint32_t rank, buckets, warmup;
    uint64_t bytes;
    bool ordinary;
    struct security_options security;
};

struct bench {
    const struct bench_options *options;
    struct job job;
    uint32_t rank;
    struct layout layout;
    struct flat_vectors vectors; // (value_count)
    struct link *link;
    struct exchange *exchange;
    bool delivers_gradients, is_unsynchronised, is_checked;

    // What the parameters of one period must be.
    struct optimizer *optimizer; // of (PATTERN_PERIOD)
    struct schedule schedule;
    float mean[PATTERN_PERIOD]; // of the gradients
    float expected[PATTERN_PERIOD];
    uint64_t update_count;

    uint64_t round;
    struct rounds rounds; // those that are timed
};

#define FIELD(kind, field) OPTION_FIELD(kind, bench_options, field)

static const struct option rows[] = {
    {.name = "server",
     FIELD(TEXT, server),
     .fallback = "",
     .metavar = "ENDPOINT",
     .help = "where the coordinator listens, as `ps` prints it"},
    {.name = "bind",
     FIELD(TEXT, bind),
     .fallback = "127.0.0.1",
     .metavar = "ADDRESS",
     .help = "address to listen on for other workers"},
    {.name = "rank",
     FIELD(U32, rank),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX - 1),
     .metavar = "RANK",
     .help = "number of this worker; without it the coordinator chooses"},
    {.name = "bytes",
     FIELD(U64, bytes),
     .fallback = "1048576",
     OPTION_RANGE(4, 0x1p38),
     .metavar = "BYTES",
     .help = "size of the vector that is exchanged; a multiple of 4"},
    {.name = "buckets",
     FIELD(U32, buckets),
     .fallback = "1",
     OPTION_RANGE(1, LAYOUT_BUCKETS_MAX),
     .metavar = "COUNT",
     .help = "parts of the vector that are handed over one after the other"},
    {.name = "ordinary",
     FIELD(FLAG, ordinary),
     .fallback = "false",
     .help = "gradients lie in memory that no other process can map; in ring they go by "
             "bounce buffers in shared memory, elsewhere by messages"},
    {.name = "warmup",
     FIELD(U32, warmup),
     .fallback = "3",
     OPTION_RANGE(1, 1 << 30),
     .metavar = "ROUNDS",
     .help = "rounds before those that are timed"},
};

static enum status parse_options(int argc, char **argv, struct bench_options *ret_options,
                                 bool *ret_has_rank, bool *ret_is_done)
{
    struct option_program program = {
        .name = "bench_exchange",
        .usage = "bench_exchange --server ENDPOINT [OPTION ...]",
        .summary = "Exchanges a vector as the workers of a job do, and measures how long it takes. "
                   "The job's --steps are the rounds; the last one is not timed.",
        .example =
            "  ps --workers 2 --mode ring --steps 100 --eval none\n"
            "  bench_exchange --server " SECURITY_LOCAL_ENDPOINT " --bytes 4194304      (twice)\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = ret_options},
                 security_option_set(&ret_options->security)},
        .set_count = 2,
    };
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    if (status == STATUS_OK && !*ret_is_done) {
        status = security_check_options(&ret_options->security);
    }
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    *ret_has_rank = options_was_given(&program, "rank");
    if (ret_options->server[0] == '\0') {
        log_error("--server is missing: the endpoint that `ps` prints");
        return STATUS_INVALID;
    }
    if (ret_options->bytes % sizeof(float) != 0 ||
        ret_options->buckets > ret_options->bytes / sizeof(float)) {
        log_error("--bytes %llu must be a multiple of 4, and have a float for each of --buckets %u",
                  (unsigned long long)ret_options->bytes, ret_options->buckets);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A vector without tensors, in buckets of one size, in the order of backward. */
static void make_layout(struct layout *layout, uint64_t value_count, uint32_t bucket_count)
{
    *layout = (struct layout){
        .value_count = value_count,
        .bucket_count = bucket_count,
        .digest = LAYOUT_DIGEST_SEED,
    };
    struct span whole = {0, value_count};
    for (uint32_t i = 0; i < bucket_count; i++) {
        layout->buckets[i] = span_part(whole, bucket_count, bucket_count - 1 - i);
    }
}

static void destroy_vectors(struct bench *bench)
{
    flat_vectors_finish(&bench->vectors);
    optimizer_destroy(bench->optimizer);
    rounds_finish(&bench->rounds);
}

/* Brings what is expected of parameters to `update_count` updates. */
static void catch_up(struct bench *bench, uint64_t update_count)
{
    // Where workers are unsynchronised, N gradients are what a step has.
    uint64_t per_step = bench->is_unsynchronised ? bench->job.workers : 1;
    while (bench->update_count < update_count) {
        double rate = schedule_rate(&bench->schedule, bench->update_count / per_step);
        optimizer_apply(bench->optimizer, (struct span){0, PATTERN_PERIOD}, bench->expected,
                        bench->mean, ++bench->update_count, rate);
    }
}

static enum status check(const struct bench *bench, const float *values,
                         const float period[PATTERN_PERIOD], bool is_whole)
{
    uint64_t count = bench->layout.value_count;
    uint64_t at = is_whole ? pattern_find_wrong(values, count, period)
                           : pattern_find_wrong_probe(values, count, period);
    if (at == count) {
        return STATUS_OK;
    }
    log_error("round %llu ends with %.9g at element %llu instead of %.9g",
              (unsigned long long)bench->round, (double)values[at], (unsigned long long)at,
              (double)period[at % PATTERN_PERIOD]);
    link_leave(bench->link, STATUS_MISMATCH, "bench_exchange found a wrong result");
    return STATUS_MISMATCH;
}

/* A round of workers that are in step. */
static enum status check_round(struct bench *bench, bool is_whole)
{
    if (bench->delivers_gradients) {
        return check(bench, bench->vectors.grads, bench->mean, is_whole);
    }
    catch_up(bench, bench->round + 1);
    return check(bench, bench->vectors.params, bench->expected, is_whole);
}

/* The trainer runs its optimizer here. */
static enum status apply_nothing(void *context, uint32_t bucket)
{
    (void)context;
    (void)bucket;
    return STATUS_OK;
}

static bool is_last(const struct bench *bench)
{
    return !bench->is_unsynchronised && bench->round + 1 == bench->job.steps;
}

static bool is_checked_now(const struct bench *bench)
{
    return bench->is_checked && !bench->is_unsynchronised &&
           (bench->round % PROBE_ROUNDS == 0 || is_last(bench));
}

/* Gradients of this round, if it does not go on with those that are there; their mean. */
static void fill(struct bench *bench)
{
    bool is_whole = bench->round == 0 || is_last(bench);
    if (!is_whole && !(bench->delivers_gradients && is_checked_now(bench))) {
        return;
    }
    uint64_t count = bench->layout.value_count, round = bench->round;
    uint32_t workers = bench->is_unsynchronised ? 1 : bench->job.workers;
    uint64_t shift = pattern_shift(bench->is_unsynchronised ? 0 : bench->rank, round);
    if (is_whole) {
        pattern_fill(bench->vectors.grads, count, shift);
    } else {
        pattern_fill_probes(bench->vectors.grads, count, shift);
    }
    if (!bench->delivers_gradients) {
        catch_up(bench, round);
    }
    pattern_sum(workers, round, 1.0f / (float)workers, bench->mean);
}

/* One exchange. Its time leaves out what was done to the gradients. */
static enum status exchange_once(struct bench *bench)
{
    struct exchange *exchange = bench->exchange;
    uint64_t start_ns = clock_now_ns();
    enum status status = exchange_begin_step(exchange, bench->round);
    uint64_t began_ns = clock_now_ns();
    if (status != STATUS_OK) {
        return status;
    }
    if (is_last(bench)) {
        rounds_end(&bench->rounds);
    }
    fill(bench);
    uint64_t filled_ns = clock_now_ns();
    for (uint32_t bucket = 0; bucket < bench->layout.bucket_count; bucket++) {
        exchange_buckets_ready(exchange, bucket, 1);
    }
    status = exchange_end_step(exchange, apply_nothing, bench);
    if (status == STATUS_OK) {
        status = exchange_settle(exchange);
    }
    if (status == STATUS_OK && bench->round >= bench->options->warmup && !is_last(bench)) {
        rounds_add(&bench->rounds, clock_now_ns() - filled_ns + (began_ns - start_ns));
    }
    if (bench->round + 1 == bench->options->warmup) {
        rounds_begin(&bench->rounds);
    }
    return status;
}

static enum status run_in_step(struct bench *bench)
{
    for (; bench->round < bench->job.steps; bench->round++) {
        enum status status = exchange_once(bench);
        if (status == STATUS_OK && is_checked_now(bench)) {
            status = check_round(bench, bench->round == 0 || is_last(bench));
        }
        if (status != STATUS_OK) {
            return status;
        }
        link_set_step(bench->link, bench->round + 1);
    }
    return STATUS_OK;
}

/* Until the servers have had the gradients of the whole job, whoever's they were. */
static enum status run_unsynchronised(struct bench *bench)
{
    for (; exchange_marks_passed(bench->exchange) == 0; bench->round++) {
        enum status status = exchange_once(bench);
        if (status != STATUS_OK) {
            return status;
        }
        link_set_step(bench->link, bench->round + 1);
    }
    rounds_end(&bench->rounds);
    enum status status = exchange_pull(bench->exchange, 1);
    if (status != STATUS_OK || !bench->is_checked) {
        return status;
    }
    catch_up(bench, bench->job.steps * bench->job.workers);
    return check(bench, bench->vectors.params, bench->expected, true);
}

/* What is needed from here on; the job is known. */
static enum status prepare(struct bench *bench, struct link_prepared *ret_prepared,
                           char digest[DIGEST_TEXT_BYTES])
{
    const struct job *job = &bench->job;
    const uint64_t samples = job->steps * job->global_batch; // the job is one epoch
    if (job->sync_every > 1 || job_switches(job).count > 0 || job->eval_every > 0 ||
        job_tunes_buckets(job) || job_carriers(job).processes < job->workers ||
        job->steps < bench->options->warmup + 2) {
        log_error("bench_exchange needs a job with --steps of at least --warmup and two more, and "
                  "without --sync-every, --switch, --eval-every, --bucket-mb auto and --processes");
        return STATUS_INVALID;
    }
    bench->is_unsynchronised = job_is_unsynchronised(job);
    bench->delivers_gradients = exchange_of(job->mode.kind)->delivers == EXCHANGE_GRADIENTS;
    bench->schedule = job_schedule(job, samples);
    bool is_plain = job->remedy == REMEDY_NONE && job->gradients_per_update == 1;
    bench->is_checked = is_plain && job->backup == 0;
    make_layout(&bench->layout, bench->options->bytes / sizeof(float), bench->options->buckets);
    enum status status = flat_vectors_init(&bench->vectors, job, bench->layout.value_count,
                                           bench->options->ordinary);
    uint64_t round_count = job->steps * (bench->is_unsynchronised ? job->workers : 1);
    if (status == STATUS_OK && rounds_init(&bench->rounds, round_count) != 0) {
        status = STATUS_NO_MEMORY;
    }
    if (status == STATUS_OK) {
        status =
            optimizer_create(job->optimizer, &job->settings, PATTERN_PERIOD, &bench->optimizer);
    }
    if (status != STATUS_OK) {
        log_error("cannot prepare vectors of %llu bytes: %s",
                  (unsigned long long)bench->options->bytes, status_text(status));
        return status;
    }
    digest_floats(bench->expected, PATTERN_PERIOD, digest);
    *ret_prepared = (struct link_prepared){
        .layout = &bench->layout,
        .params = bench->vectors.params,
        .grads = bench->vectors.grads,
        .region = flat_vectors_region(&bench->vectors),
        .params_digest = digest,
        .device = "none",
        .train_samples = samples,
        .test_samples = 1,
        .parameters = bench->layout.value_count,
    };
    return STATUS_OK;
}

static void print_result(struct bench *bench)
{
    const struct job *job = &bench->job;
    printf("{\"library\":\"ringside\",\"mode\":\"%s\",\"transport\":\"%s\",\"workers\":%u,"
           "\"servers\":%u,\"rank\":%u,\"bytes\":%llu,\"buckets\":%u,"
           "\"ordinary\":%s,",
           mode_text(job->mode).text, transport_choices[job->transport].name, job->workers,
           job->servers, bench->rank, (unsigned long long)bench->options->bytes,
           bench->layout.bucket_count, bench->options->ordinary ? "true" : "false");
    rounds_print(&bench->rounds, stdout);
    printf(",\"verified\":%s}\n", bench->is_checked ? "true" : "false");
    fflush(stdout);
}

static enum status run(struct bench *bench)
{
    enum status status = link_welcome(bench->link, &bench->job, &bench->rank);
    if (status != STATUS_OK) {
        return status;
    }
    log_set_rank(bench->rank);
    struct link_prepared prepared;
    char digest[DIGEST_TEXT_BYTES];
    status = prepare(bench, &prepared, digest);
    if (status != STATUS_OK) {
        link_leave(bench->link, status, "bench_exchange cannot prepare; its log says more");
        return status;
    }
    status = link_prepare(bench->link, &prepared);
    if (status != STATUS_OK) {
        return status;
    }
    bench->exchange = link_exchange(bench->link);
    status = bench->is_unsynchronised ? run_unsynchronised(bench) : run_in_step(bench);
    if (status != STATUS_OK) {
        return status == exchange_stopped(bench->exchange) ? link_verdict(bench->link) : status;
    }
    static const struct wire_report report;
    link_done(bench->link, bench->job.steps, &report, digest);
    status = link_verdict(bench->link);
    if (status == STATUS_OK) {
        print_result(bench);
    }
    return status;
}

int main(int argc, char **argv)
{
    memory_keep_heap();
    log_init("bench_exchange", LOG_WARN);
    struct bench_options options;
    bool is_done, has_rank = false;
    if (parse_options(argc, argv, &options, &has_rank, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return EXIT_FAILED;
    }
    signals_install();
    static struct bench bench;
    struct security security;
    bench.options = &options;
    const struct link_options link_options = {
        .coordinator = options.server,
        .address = options.bind,
        .port_range = "",
        .security = &security,
        .has_rank = has_rank,
        .rank = options.rank,
        .join_timeout_ms = 30000,
        .is_interrupted = signals_flag(),
    };
    enum status status = security_open(&options.security, &security);
    if (status == STATUS_OK) {
        status = link_create(&link_options, &bench.link);
    }
    if (status == STATUS_OK) {
        status = run(&bench);
    }
    link_destroy(bench.link);
    security_close(&security);
    destroy_vectors(&bench);
    if (status != STATUS_OK) {
        log_error("the benchmark ended early for this worker: %s", status_text(status));
    }
    return (int)exit_code(status);
}
