/* Speed of the all-reduce among the GPUs of a host alone: ours, in each other's memory, or NCCL's.
 *
 *     bench_gpu_exchange --by peers --workers 4 --bytes 67108864 --rounds 100
 *     bench_gpu_exchange --list                      the GPUs, and whether there is NCCL
 *
 * Starts a process for each worker, on one GPU after the other, which go through rounds as training
 * does, by the backend's own code (peers.h), without computing anything. A round goes from the
 * moment that gradients are there until the GPU has their mean, as the host sees it. There is no
 * barrier but the exchange itself. The first rounds warm up; between the first and the last a
 * round's result is the next one's input, and both of these are checked: bit by bit where the order
 * is ours.
 *
 * Each rank prints a line of JSON, as bench_exchange does. */
#include "bench/programs/pattern.h"
#include "bench/programs/rounds.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/options/options.h"
#include "common/vector/layout.h"
#include "worker/device/cuda/host/report.h"
#include "worker/device/cuda/memory/memory_handle.h"
#include "worker/device/cuda/peers.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 16
#define PAGE_BYTES  ((size_t)4096)
#define TOLERANCE   1e-5f // of NCCL's sums, relative

enum way { BY_PEERS, BY_NCCL };

static const struct option_choice way_choices[] = {
    [BY_PEERS] = {"peers", "GPUs sum in each other's memory, in the order of ranks"},
    [BY_NCCL] = {"nccl", "NVIDIA's NCCL, a GPU for each worker"},
    {NULL, NULL},
};

struct bench_options {
    enum way by;
    uint32_t workers, buckets, warmup, rounds;
    uint64_t bytes;
    bool lists;
};

#define FIELD(kind, field) OPTION_FIELD(kind, bench_options, field)

static const struct option rows[] = {
    {.name = "by",
     FIELD(CHOICE, by),
     .fallback = "peers",
     .choices = way_choices,
     .help = "who adds up"},
    {.name = "workers",
     FIELD(U32, workers),
     .fallback = "2",
     OPTION_RANGE(2, WORKERS_MAX),
     .metavar = "COUNT",
     .help = "processes; those of one GPU are possible by peers"},
    {.name = "bytes",
     FIELD(U64, bytes),
     .fallback = "1048576",
     OPTION_RANGE(4, 0x1p36),
     .metavar = "BYTES",
     .help = "size of the vector; a multiple of 4"},
    {.name = "buckets",
     FIELD(U32, buckets),
     .fallback = "1",
     OPTION_RANGE(1, LAYOUT_BUCKETS_MAX),
     .metavar = "COUNT",
     .help = "parts of the vector that are handed over one after the other"},
    {.name = "warmup",
     FIELD(U32, warmup),
     .fallback = "3",
     OPTION_RANGE(1, 1 << 30),
     .metavar = "ROUNDS",
     .help = "rounds before those that are timed"},
    {.name = "rounds",
     FIELD(U32, rounds),
     .fallback = "20",
     OPTION_RANGE(1, 1 << 30),
     .metavar = "ROUNDS",
     .help = "rounds that are timed; one more is checked"},
    {.name = "list",
     FIELD(FLAG, lists),
     .fallback = "false",
     .help = "print how many GPUs there are, and the version of NCCL, as JSON"},
};

/* What the processes share. */
struct meeting {
    pthread_barrier_t barrier;
    unsigned char shares[WORKERS_MAX][PROGRAM_SHARE_BYTES];
    unsigned char id[PROGRAM_ID_BYTES];
};

struct bench {
    const struct bench_options *options;
    struct meeting *meeting;
    void *flags;
    size_t flag_bytes;
    uint32_t rank;
    int gpu, gpu_count;
    size_t value_count;
    float *host;              // (value_count), owned
    float *grads;             // (value_count), of the GPU, owned
    struct recorder recorder; // zeroed: records nothing
    struct node_context context;
    struct transfer transfer;
    struct peers peers;
    struct collective collective;
    struct rounds rounds;
};

static void write_line(enum log_level level, const char *sentence)
{
    log_write(level, "%s", sentence);
}

/* ============================================================================================
 * One worker
 * ========================================================================================== */

static struct span bucket_of(const struct bench *bench, uint32_t index)
{
    uint32_t count = bench->options->buckets;
    return span_part((struct span){0, bench->value_count}, count, count - 1 - index);
}

static bool never(void *context)
{
    (void)context;
    return false; // whoever started this process ends it
}

static struct program_sum sum_of(const struct bench *bench, uint32_t bucket)
{
    struct span whole = bucket_of(bench, bucket);
    struct span part = span_part(whole, bench->options->workers, bench->rank);
    return (struct program_sum){
        .bucket = bucket,
        .offset = whole.offset,
        .count = whole.count,
        .part_offset = part.offset,
        .part_count = part.count,
    };
}

static enum status meet_peers(struct bench *bench)
{
    static struct program_sum sums[LAYOUT_BUCKETS_MAX];
    struct meeting *meeting = bench->meeting;
    const struct program_peers options = {
        .rank = bench->rank,
        .world = bench->options->workers,
        .shares = meeting->shares,
        .flags = bench->flags,
        .flag_bytes = bench->flag_bytes,
        .sums = sums,
        .bucket_count = bench->options->buckets,
    };
    for (uint32_t i = 0; i < bench->options->buckets; i++) {
        sums[i] = sum_of(bench, i);
    }
    enum status status =
        peers_share(bench->grads, bench->grads, bench->value_count, meeting->shares[bench->rank]);
    if (status != STATUS_OK) {
        return status;
    }
    pthread_barrier_wait(&meeting->barrier);
    return peers_meet(&bench->peers, &options, bench->grads, bench->value_count,
                      bench->transfer.down);
}

static enum status join_nccl(struct bench *bench)
{
    struct meeting *meeting = bench->meeting;
    struct device_introduction introduction;
    const struct program_joining joining = {
        .rank = bench->rank,
        .world = bench->options->workers,
        .bucket_count = bench->options->buckets,
        .id = meeting->id,
        .is_stopped = never,
    };
    enum status status = collective_introduce(bench->gpu, bench->rank == 0, &introduction);
    if (status != STATUS_OK) {
        return status;
    }
    if (bench->rank == 0) {
        memcpy(meeting->id, introduction.id, sizeof(meeting->id));
    }
    pthread_barrier_wait(&meeting->barrier);
    return peers_join(&bench->peers, &bench->collective, &joining);
}

static enum status open_bench(struct bench *bench)
{
    float *unused = bench->host;
    const struct program_options none = {.op_count = 1, .params = unused, .grads = unused};
    size_t bytes = bench->value_count * sizeof(float);
    collective_init(&bench->collective);
    int result = (int)cudaGetDeviceCount(&bench->gpu_count);
    if (result == 0) {
        bench->gpu = (int)bench->rank % bench->gpu_count;
        result = (int)cudaSetDevice(bench->gpu);
    }
    if (result == 0) {
        result = (int)cudaMalloc((void **)&bench->grads, memory_handle_whole(bytes));
    }
    if (result == 0) {
        result = (int)cudaStreamCreateWithFlags(&bench->context.stream, cudaStreamNonBlocking);
    }
    enum status status = cuda_check(result, "take a GPU");
    bench->context.grads = bench->grads;
    bench->context.recorder = &bench->recorder;
    if (status == STATUS_OK) {
        status = transfer_init(&bench->transfer, &bench->context, &none, 0, 0);
    }
    if (status == STATUS_OK) {
        status = bench->options->by == BY_NCCL ? join_nccl(bench) : meet_peers(bench);
    }
    return status;
}

static void close_bench(struct bench *bench)
{
    pthread_barrier_wait(&bench->meeting->barrier); // others may still read this one's memory
    collective_stop(&bench->collective);
    peers_finish(&bench->peers);
    collective_finish(&bench->collective);
    transfer_finish(&bench->transfer);
    cudaStreamDestroy(bench->context.stream);
    cudaFree(bench->grads);
    rounds_finish(&bench->rounds);
    free(bench->host);
}

/* All values, to or from the GPU. */
static enum status copy(struct bench *bench, enum cudaMemcpyKind kind)
{
    bool is_up = kind == cudaMemcpyHostToDevice;
    int result =
        (int)cudaMemcpyAsync(is_up ? bench->grads : bench->host, is_up ? bench->host : bench->grads,
                             bench->value_count * sizeof(float), kind, bench->context.stream);
    if (result == 0) {
        result = (int)cudaStreamSynchronize(bench->context.stream);
    }
    return cuda_check(result, "copy values");
}

/* What training queues for a step's buckets, from backward to the update. */
static enum status sum_once(struct bench *bench)
{
    enum status status = transfer_mark_range(&bench->transfer, 0);
    for (uint32_t i = 0; i < bench->options->buckets && status == STATUS_OK; i++) {
        const struct program_sum sum = sum_of(bench, i);
        status = bench->options->by == BY_NCCL
                     ? peers_sum_joined(&bench->peers, &bench->transfer, &sum)
                     : peers_sum(&bench->peers, &bench->transfer, i);
    }
    if (status == STATUS_OK) {
        status =
            peers_await(&bench->peers, &bench->transfer, (struct cuda_span){0, bench->value_count});
    }
    return status == STATUS_OK
               ? cuda_check((int)cudaStreamSynchronize(bench->context.stream), "add up")
               : status;
}

/* The index of a value that is not the mean, or the count. */
static uint64_t find_wrong(const struct bench *bench, const float mean[PATTERN_PERIOD])
{
    if (bench->options->by == BY_PEERS) {
        return pattern_find_wrong(bench->host, bench->value_count, mean);
    }
    for (uint64_t i = 0; i < bench->value_count; i++) {
        float expected = mean[i % PATTERN_PERIOD];
        if (!(fabsf(bench->host[i] - expected) <= TOLERANCE * (1 + fabsf(expected)))) {
            return i;
        }
    }
    return bench->value_count;
}

static enum status check(struct bench *bench, uint32_t round)
{
    float mean[PATTERN_PERIOD];
    enum status status = copy(bench, cudaMemcpyDeviceToHost);
    if (status != STATUS_OK) {
        return status;
    }
    pattern_sum(bench->options->workers, round, 1.0f / (float)bench->options->workers, mean);
    uint64_t at = find_wrong(bench, mean);
    if (at < bench->value_count) {
        log_error("round %u ends with %.9g at element %llu instead of %.9g", round,
                  (double)bench->host[at], (unsigned long long)at,
                  (double)mean[at % PATTERN_PERIOD]);
        return STATUS_MISMATCH;
    }
    return STATUS_OK;
}

static enum status run_rounds(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    uint32_t last = options->warmup + options->rounds;
    enum status status = STATUS_OK;
    for (uint32_t round = 0; round <= last && status == STATUS_OK; round++) {
        bool is_checked = round == 0 || round == last;
        if (round == options->warmup) {
            rounds_begin(&bench->rounds);
        }
        if (round == last) {
            rounds_end(&bench->rounds);
        }
        if (is_checked) {
            pattern_fill(bench->host, bench->value_count, pattern_shift(bench->rank, round));
            status = copy(bench, cudaMemcpyHostToDevice);
        }
        uint64_t begun_ns = clock_now_ns();
        status = status == STATUS_OK ? sum_once(bench) : status;
        if (round >= options->warmup && round < last) {
            rounds_add(&bench->rounds, clock_now_ns() - begun_ns);
        }
        if (is_checked && status == STATUS_OK) {
            status = check(bench, round);
        }
    }
    return status;
}

static int run_worker(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    log_set_rank(bench->rank);
    bench->value_count = options->bytes / sizeof(float);
    bench->host = malloc(options->bytes);
    enum status status = bench->host != NULL && rounds_init(&bench->rounds, options->rounds) == 0
                             ? open_bench(bench)
                             : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        status = run_rounds(bench);
    }
    if (status != STATUS_OK) {
        log_error("the benchmark ends: %s", status_text(status));
        return EXIT_FAILURE; // and the others are ended
    }
    printf("{\"library\":\"%s\",\"by\":\"%s\",\"workers\":%u,\"gpus\":%d,\"rank\":%u,"
           "\"bytes\":%llu,\"buckets\":%u,",
           options->by == BY_NCCL ? "nccl" : "ringside", way_choices[options->by].name,
           options->workers, bench->gpu_count, bench->rank, (unsigned long long)options->bytes,
           options->buckets);
    rounds_print(&bench->rounds, stdout);
    printf(",\"verified\":true}\n");
    fflush(stdout);
    close_bench(bench);
    return EXIT_SUCCESS;
}

/* ============================================================================================
 * All of them
 * ========================================================================================== */

static int print_list(void)
{
    const struct nccl_library *nccl = nccl_find();
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    printf("{\"gpus\":%d,\"nccl\":", error == cudaSuccess ? count : 0);
    if (nccl != NULL) {
        printf("\"%d.%d.%d\"}\n", nccl->version / 10000, nccl->version / 100 % 100,
               nccl->version % 100);
    } else {
        printf("null}\n");
    }
    return EXIT_SUCCESS;
}

static void *map_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static enum status make_meeting(struct bench *bench)
{
    const struct bench_options *options = bench->options;
    size_t words =
        (size_t)options->workers * options->buckets * PROGRAM_FLAG_COUNT * options->workers;
    pthread_barrierattr_t shared;
    bench->flag_bytes = (words * sizeof(uint32_t) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    bench->flags = map_shared(bench->flag_bytes);
    bench->meeting = map_shared(sizeof(*bench->meeting));
    if (bench->flags == NULL || bench->meeting == NULL) {
        return STATUS_NO_MEMORY;
    }
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&bench->meeting->barrier, &shared, options->workers);
    pthread_barrierattr_destroy(&shared);
    return STATUS_OK;
}

/* Waits for all; once one has failed, the others are ended, who would wait for it. */
static int await_workers(const pid_t *workers, uint32_t count)
{
    int verdict = EXIT_SUCCESS;
    for (uint32_t i = 0; i < count;) {
        int status;
        pid_t ended = wait(&status);
        if (ended < 0 && errno == EINTR) {
            continue;
        }
        i++;
        if (ended > 0 && WIFSIGNALED(status) && verdict == EXIT_SUCCESS) {
            log_error("a worker was ended by signal %d (SIG%s)", WTERMSIG(status),
                      sigabbrev_np(WTERMSIG(status)));
        }
        bool is_well = ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
        for (uint32_t k = 0; k < count && !is_well && verdict == EXIT_SUCCESS; k++) {
            kill(workers[k], workers[k] != ended ? SIGKILL : 0);
        }
        verdict = is_well ? verdict : EXIT_FAILURE;
    }
    return verdict;
}

static int run(const struct bench_options *options)
{
    static struct bench bench;
    pid_t workers[WORKERS_MAX];
    bench.options = options;
    if (make_meeting(&bench) != STATUS_OK) {
        log_error("no memory");
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < options->workers; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            bench.rank = i;
            _exit(run_worker(&bench));
        }
        if (workers[i] < 0) {
            log_error("cannot start worker %u: %m", i);
            for (uint32_t k = 0; k < i; k++) {
                kill(workers[k], SIGKILL);
            }
            return EXIT_FAILURE;
        }
    }
    return await_workers(workers, options->workers);
}

int main(int argc, char **argv)
{
    log_init("bench_gpu_exchange", LOG_WARN);
    report_set(write_line);
    static struct bench_options options;
    bool is_done;
    struct option_program program = {
        .name = "bench_gpu_exchange",
        .usage = "bench_gpu_exchange [OPTION ...]",
        .summary = "Measures how long the GPUs of this host take for an all-reduce of floats.",
        .example = "  bench_gpu_exchange --by nccl --workers 4 --bytes 67108864\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options}},
        .set_count = 1,
    };
    if (options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_FAILURE;
    }
    if (is_done) {
        return EXIT_SUCCESS;
    }
    if (options.bytes % sizeof(float) != 0 || options.buckets > options.bytes / sizeof(float)) {
        log_error("--bytes %llu must be a multiple of 4, and have a float for each of --buckets %u",
                  (unsigned long long)options.bytes, options.buckets);
        return EXIT_FAILURE;
    }
    setenv("NCCL_SOCKET_IFNAME", "=lo", false); // NOLINT(concurrency-mt-unsafe): one thread
    return options.lists ? print_list() : run(&options);
}
