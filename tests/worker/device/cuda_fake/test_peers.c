/* Sums of gradients over the GPUs of several processes, on the fake runtime: as a part of the graph
 * of backward, and launched beside it, with the same bits; and what becomes of a process whose
 * peers are gone. */
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "common/vector/digest.h"
#include "tests/support/common/captured_log.h"
#include "worker/model/model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODE       "FAKE_CUDA"
#define WORLD      3
#define BATCH      2
#define CLASSES    10
#define PIXELS     ((size_t)28 * 28)
#define STEPS      6
#define FLAG_BYTES ((size_t)65536)
#define TEXT_BYTES 512
#define PATH_BYTES 4096
#define MODULE     "ringside-cuda.so"

// Of a step by the host: labels, keys, pixels and the input that is made of them, forward, losses
// and hits, backward with all sums, and the update.
#define HANDED_OVER 9

/* How a process runs. */
struct manner {
    const char *mode; // of the fake runtime, besides that of the test
    bool replays;     // launches, as CUDA graphs
    bool records;     // what streams do, in one of the steps
};

/* What the processes share, besides flags. */
struct meeting {
    pthread_barrier_t barrier;
    unsigned char shares[WORLD][PROGRAM_SHARE_BYTES];
    char digests[WORLD][DIGEST_TEXT_BYTES];
    char described[WORLD][TEXT_BYTES];
    char said[TEXT_BYTES]; // by rank 0 when it met the others
    uint32_t bucket_count, sum_spans;
    uint64_t handed_over; // by the host of rank 0, in its last step
};

struct worker {
    uint32_t rank;
    struct meeting *meeting;
    void *flags;
    struct device *device;
    struct model *model;
    struct optimizer *optimizer;
    float pixels[BATCH * PIXELS];
    uint32_t labels[BATCH];
    uint64_t keys[BATCH];
};

/* Of a process that is not the test's: ends it. */
static void must(bool is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "not as expected: %s\n", what);
        abort();
    }
}

static void *map_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void open_worker(struct worker *worker, bool replays)
{
    const struct device_options device = {.threads = 1, .replays_launches = replays};
    const struct model_options options = {
        .name = "lenet5",
        .input = {1, 28, 28},
        .class_count = CLASSES,
        .batch_size = BATCH,
        .seed = 7,
        .bucket_bytes = 40000, // a layer has several, and several layers have one
    };
    const struct optimizer_settings settings = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    must(device_open("cuda", &device, &worker->device) == STATUS_OK, "a device");
    must(model_create(&options, worker->device, &worker->model) == STATUS_OK, "a model");
    must(optimizer_create(OPTIMIZER_ADAM, &settings, model_layout(worker->model)->value_count,
                          &worker->optimizer) == STATUS_OK,
         "an optimizer");
    must(model_hold(worker->model, worker->optimizer) == STATUS_OK, "states");
    worker->meeting->bucket_count = model_layout(worker->model)->bucket_count;
}

static void meet(struct worker *worker)
{
    struct meeting *meeting = worker->meeting;
    const struct program_peers peers = {
        .rank = worker->rank,
        .world = WORLD,
        .shares = meeting->shares,
        .flags = worker->flags,
        .flag_bytes = FLAG_BYTES,
        .bucket_count = model_layout(worker->model)->bucket_count,
    };
    must(model_share(worker->model, meeting->shares[worker->rank]) == STATUS_OK, "a share");
    pthread_barrier_wait(&meeting->barrier);
    must(model_meet(worker->model, &peers) == STATUS_OK, "a meeting");
}

static void draw_batch(struct worker *worker, uint64_t step)
{
    uint64_t key = random_key(3, RANDOM_SYNTHETIC, step, worker->rank);
    for (uint32_t i = 0; i < BATCH * PIXELS; i++) {
        worker->pixels[i] = 2 * random_unit_float(random_element(key, i)) - 1;
    }
    for (uint32_t n = 0; n < BATCH; n++) {
        worker->labels[n] = random_element(key, UINT32_MAX - n) % CLASSES;
        worker->keys[n] = random_key(3, RANDOM_DROPOUT, step, n);
    }
}

/* Forward and backward, as the trainer queues them. */
static void compute(struct worker *worker, uint64_t step)
{
    uint32_t bucket_count = model_layout(worker->model)->bucket_count;
    struct program_result result;
    draw_batch(worker, step);
    const struct program_input input = {
        .pixels = worker->pixels,
        .labels = worker->labels,
        .sample_keys = worker->keys,
        .count = BATCH,
        .gradient_scale = 1.0f / BATCH,
        .is_training = true,
        .keeps_gradients = true,
    };
    must(model_begin_forward(worker->model, &input) == STATUS_OK, "a forward");
    for (uint32_t bucket = 0; bucket < bucket_count; bucket++) {
        must(model_backward(worker->model, bucket) == STATUS_OK, "a backward");
    }
    must(model_await_result(worker->model, &result) == STATUS_OK, "a result");
}

static void update(struct worker *worker, uint64_t step)
{
    const struct layout *layout = model_layout(worker->model);
    struct optimizer_update update;
    optimizer_plan_update(worker->optimizer, (struct span){0, layout->value_count}, step + 1, 1e-3,
                          &update);
    for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
        must(model_apply(worker->model, bucket, &update) == STATUS_OK, "an update");
    }
}

/* How often the host gave streams something to do, as the module beside this program says. */
static uint64_t handed_over(void)
{
    char program[PATH_BYTES], path[PATH_BYTES + sizeof(MODULE)];
    union {
        void *symbol;
        uint64_t (*function)(void);
    } cast;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    must(length > 0, "a path");
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    snprintf(path, sizeof(path), "%s/%s", program, MODULE);
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    must(module != NULL, "a module that the device has loaded");
    cast.symbol = dlsym(module, "fake_stream_handed_over");
    must(cast.symbol != NULL, "a counter");
    uint64_t count = cast.function();
    dlclose(module);
    return count;
}

/* Sums among what streams did in the steps that were recorded. */
static uint32_t count_sums(struct worker *worker)
{
    struct device_span spans[128];
    size_t count;
    uint64_t dropped;
    uint32_t sums = 0;
    must(model_read_spans(worker->model, spans, 128, &count, &dropped) == STATUS_OK, "spans");
    for (size_t i = 0; i < count; i++) {
        sums += spans[i].work == DEVICE_SUM;
    }
    return sums;
}

static void close_worker(struct worker *worker)
{
    model_destroy(worker->model);
    optimizer_destroy(worker->optimizer);
    device_close(worker->device);
}

static void run_worker(struct worker *worker, const struct manner *manner)
{
    struct meeting *meeting = worker->meeting;
    open_worker(worker, manner->replays);
    log_init("test", LOG_INFO);
    captured_log_begin();
    meet(worker);
    const char *said = captured_log_end();
    if (worker->rank == 0) {
        snprintf(meeting->said, sizeof(meeting->said), "%s", said);
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t before = handed_over();
        model_record_spans(worker->model, manner->records && step == 3, step);
        compute(worker, step);
        update(worker, step);
        if (worker->rank == 0) {
            meeting->handed_over = handed_over() - before;
        }
    }
    must(model_fetch(worker->model) == STATUS_OK, "parameters");
    digest_floats(model_params(worker->model), model_layout(worker->model)->value_count,
                  meeting->digests[worker->rank]);
    model_describe(worker->model, meeting->described[worker->rank], TEXT_BYTES);
    if (worker->rank == 0) {
        meeting->sum_spans = count_sums(worker);
    }
    pthread_barrier_wait(&meeting->barrier); // others may still read this one's memory
    model_part(worker->model);
    close_worker(worker);
}

/* The first one goes a step further than the others, which are gone by then, and parts. */
static void run_left_worker(struct worker *worker, const struct manner *manner)
{
    open_worker(worker, manner->replays);
    meet(worker);
    for (uint64_t step = 0; step < 3; step++) {
        compute(worker, step);
        update(worker, step);
    }
    must(model_fetch(worker->model) == STATUS_OK, "parameters");
    if (worker->rank == 0) {
        compute(worker, 3);
        model_part(worker->model);
        close_worker(worker);
    }
}

static struct meeting *make_meeting(void)
{
    pthread_barrierattr_t shared;
    struct meeting *meeting = map_shared(sizeof(*meeting));
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->barrier, &shared, WORLD);
    pthread_barrierattr_destroy(&shared);
    return meeting;
}

/* Starts a process for each rank, in manners that may differ. */
static void start(struct meeting *meeting, const struct manner *const *manners,
                  void (*run)(struct worker *worker, const struct manner *manner),
                  pid_t ret_processes[WORLD])
{
    void *flags = map_shared(FLAG_BYTES);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        ret_processes[rank] = fork();
        if (ret_processes[rank] == 0) {
            static struct worker worker;
            char mode[128];
            worker = (struct worker){.rank = rank, .meeting = meeting, .flags = flags};
            snprintf(mode, sizeof(mode), "%s,%s", getenv(MODE), manners[rank]->mode);
            must(setenv(MODE, mode, 1) == 0, "a mode");
            run(&worker, manners[rank]);
            _exit(EXIT_SUCCESS);
        }
        assert_true(ret_processes[rank] > 0);
    }
    munmap(flags, FLAG_BYTES);
}

static void await_processes(const pid_t processes[WORLD])
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        int status;
        assert_int_equal(waitpid(processes[rank], &status, 0), processes[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }
}

static struct meeting *run_all(const struct manner *const *manners)
{
    struct meeting *meeting = make_meeting();
    pid_t processes[WORLD];
    start(meeting, manners, run_worker, processes);
    await_processes(processes);
    for (uint32_t rank = 1; rank < WORLD; rank++) {
        assert_string_equal(meeting->digests[0], meeting->digests[rank]);
    }
    return meeting;
}

static const struct manner launched = {.mode = "-"}, replayed = {.mode = "-", .replays = true},
                           beside = {.mode = "uncaptured", .replays = true},
                           recorded = {.mode = "-", .replays = true, .records = true};

static void check_graphs(const char *described, uint32_t count)
{
    char text[64];
    snprintf(text, sizeof(text), " in %u CUDA graphs", count);
    if (strstr(described, text) == NULL) {
        fail_msg("not%s: %s", text, described);
    }
}

static void backward_and_all_sums_are_one_graph(void **state)
{
    (void)state;
    static const struct manner *const manners[WORLD] = {&replayed, &replayed, &replayed};
    struct meeting *meeting = run_all(manners);
    assert_true(meeting->bucket_count > 4);
    check_graphs(meeting->described[0], 2); // the other one is forward
    assert_string_equal(meeting->said, "");
    assert_int_equal(meeting->handed_over, HANDED_OVER);
    assert_int_equal(meeting->sum_spans, 0);
    munmap(meeting, sizeof(*meeting));
}

/* Whether its sums are in a graph is a worker's own business. */
static void it_does_not_matter_who_replays_what(void **state)
{
    (void)state;
    static const struct manner *const cases[][WORLD] = {
        {&launched, &launched, &launched}, {&replayed, &replayed, &replayed},
        {&beside, &beside, &beside},       {&launched, &replayed, &beside},
        {&recorded, &beside, &replayed},
    };
    char digest[DIGEST_TEXT_BYTES] = "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct meeting *meeting = run_all(cases[i]);
        if (i == 0) {
            memcpy(digest, meeting->digests[0], sizeof(digest));
        }
        assert_string_equal(meeting->digests[0], digest);
        munmap(meeting, sizeof(*meeting));
    }
}

static void sums_that_no_graph_takes_are_launched_between_those_of_buckets(void **state)
{
    (void)state;
    static const struct manner *const manners[WORLD] = {&beside, &beside, &beside};
    struct meeting *meeting = run_all(manners);
    assert_non_null(strstr(meeting->said,
                           "sums of gradients are launched beside CUDA graphs, not in "
                           "them: an error of the fake runtime"));
    assert_null(strstr(meeting->described[0], " in 2 CUDA graphs"));
    assert_non_null(strstr(meeting->described[0], " CUDA graphs"));
    uint32_t of_buckets = 4 * meeting->bucket_count; // two barriers, a sum and an update
    assert_true(meeting->handed_over >= HANDED_OVER - 1 + of_buckets);
    munmap(meeting, sizeof(*meeting));
}

/* A timeline shows each sum, and the graph of other steps stays as it is. */
static void sums_of_recorded_steps_are_launched_one_by_one(void **state)
{
    (void)state;
    static const struct manner *const manners[WORLD] = {&recorded, &replayed, &replayed};
    struct meeting *meeting = run_all(manners);
    assert_int_equal(meeting->sum_spans, meeting->bucket_count);
    check_graphs(meeting->described[0], 2);
    munmap(meeting, sizeof(*meeting));
}

static void who_is_left_in_the_middle_of_sums_parts(void **state)
{
    (void)state;
    static const struct manner *const kinds[] = {&launched, &replayed, &beside};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct manner *const manners[WORLD] = {kinds[i], kinds[i], kinds[i]};
        struct meeting *meeting = make_meeting();
        pid_t processes[WORLD];
        start(meeting, manners, run_left_worker, processes);
        await_processes(processes);
        munmap(meeting, sizeof(*meeting));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_and_all_sums_are_one_graph),
        cmocka_unit_test(it_does_not_matter_who_replays_what),
        cmocka_unit_test(sums_that_no_graph_takes_are_launched_between_those_of_buckets),
        cmocka_unit_test(sums_of_recorded_steps_are_launched_one_by_one),
        cmocka_unit_test(who_is_left_in_the_middle_of_sums_parts),
    };
    log_init("test", LOG_WARN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
