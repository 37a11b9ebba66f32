/* Trains as a job does, in one process and in plain loops, and writes a checkpoint of its last
 * step.
 *
 * usage: checkpoint_maker --out FOLDER [--images FILE] [JOB OPTION ...]
 *
 * Prints the digest of the parameters: where it is that of the real job, the checkpoint is one that
 * the job could have written. Two workers at most, whose sum has the same bits in any order. Each
 * worker's statistics of batch normalisation are those before an evaluation.
 *
 * --images gets the test images as a model sees them: count, classes, channels, rows and columns as
 * 32-bit numbers, then the pixels of all as floats, then the labels as 32-bit numbers. */
#include "common/base/log.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/job/job.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_text.h"
#include "common/vector/digest.h"
#include "common/vector/vector.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/resized.h"
#include "worker/model/description.h"
#include "worker/train/job_model.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 2

struct own {
    char out[1024], images[1024];
    bool is_vague;
};

#define FIELD(kind, field) OPTION_FIELD(kind, own, field)

static const struct option own_rows[] = {
    {.name = "out", FIELD(TEXT, out), .fallback = "", .metavar = "FOLDER", .help = "checkpoints"},
    {.name = "images", FIELD(TEXT, images), .fallback = "", .metavar = "FILE", .help = "images"},
    {.name = "vague",
     FIELD(FLAG, is_vague),
     .fallback = "false",
     .help = "the checkpoint does not describe its model"},
};

struct maker {
    struct job job;
    struct own own;
    struct dataset *train, *test;
    struct device *device;
    struct pixels_source source;
    struct model *models[WORKERS_MAX];
    struct batcher *batchers[WORKERS_MAX];
    struct optimizer *optimizer; // of model 0, whose parameters the others copy
    struct schedule schedule;
};

// What fails has been logged; a test sees that there is no checkpoint.
static void check(enum status status)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "checkpoint_maker: %s\n", status_text(status));
        exit(EXIT_FAILURE); // NOLINT(concurrency-mt-unsafe)
    }
}

static struct dataset *open_images(const struct job *job, enum dataset_split split)
{
    struct dataset *dataset;
    check(dataset_open(job->data, &(struct dataset_options){.seed = job->seed, .split = split},
                       &dataset));
    check(dataset_resize(dataset, job->image_size, &dataset));
    return dataset;
}

static uint64_t train_samples(const struct maker *maker)
{
    uint64_t limit = maker->job.limit_train, count = maker->train->sample_count;
    return limit > 0 && limit < count ? limit : count;
}

static void open_all(struct maker *maker)
{
    const struct job *job = &maker->job;
    const struct device_options device = {.threads = job->threads > 0 ? job->threads : 1};
    maker->train = open_images(job, DATASET_TRAIN);
    maker->test = open_images(job, DATASET_TEST);
    check(device_open(job->device, &device, &maker->device));
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        uint32_t batch = job_batch_max(job);
        struct model_options model =
            job_model_options(job, batch, maker->device, maker->train, &maker->source);
        const struct batcher_options batches = {
            .batch_size = batch,
            .global_batch = job->global_batch,
            .rank = rank,
            .world = job->workers,
            .seed = job->seed,
            .sample_count = train_samples(maker),
            .is_training = true,
        };
        model.source = NULL;
        model.has_region = false;
        check(model_create(&model, maker->device, &maker->models[rank]));
        check(batcher_create(&batches, maker->train, &maker->batchers[rank]));
    }
    check(optimizer_create(job->optimizer, &job->settings,
                           model_layout(maker->models[0])->value_count, &maker->optimizer));
    maker->schedule = job_schedule(job, train_samples(maker));
}

static void compute_gradients(struct maker *maker, uint32_t rank)
{
    struct batch batch;
    struct program_result result;
    struct model *model = maker->models[rank];
    check(batcher_next(maker->batchers[rank], &batch));
    const struct program_input input = {
        .pixels = batch.pixels,
        .labels = batch.labels,
        .sample_keys = batch.sample_keys,
        .count = batch.count,
        .gradient_scale = (float)maker->job.workers / (float)maker->job.global_batch,
        .is_training = true,
    };
    check(model_forward(model, &input, &result));
    for (uint32_t bucket = 0; bucket < model_layout(model)->bucket_count; bucket++) {
        check(model_backward(model, bucket));
        check(model_await_gradients(model, bucket));
    }
}

static void train_step(struct maker *maker, uint64_t step)
{
    uint64_t count = model_layout(maker->models[0])->value_count;
    float *mean = model_grads(maker->models[0]), *params = model_params(maker->models[0]);
    for (uint32_t rank = 0; rank < maker->job.workers; rank++) {
        compute_gradients(maker, rank);
    }
    if (maker->job.workers > 1) {
        vector_add(mean, model_grads(maker->models[1]), count);
        vector_scale(mean, 1.0f / (float)maker->job.workers, count);
    }
    optimizer_apply(maker->optimizer, (struct span){0, count}, params, mean, step + 1,
                    schedule_rate(&maker->schedule, step));
    for (uint32_t rank = 1; rank < maker->job.workers; rank++) {
        memcpy(model_params(maker->models[rank]), params, count * sizeof(float));
    }
}

static json_t *describe(const struct maker *maker)
{
    char job[JOB_TEXT_BYTES], *model;
    check(job_encode(&maker->job, job, sizeof(job)));
    json_t *part = json_pack("{s:s, s:s}", "job", job, "ringside", RINGSIDE_VERSION);
    assert(part != NULL);
    if (!maker->own.is_vague) {
        check(description_make(maker->job.model, maker->test->sample, maker->test->class_count,
                               &model));
        int failed = json_object_set_new(part, "model", json_loads(model, 0, NULL));
        assert(failed == 0);
        free(model);
    }
    return part;
}

static void write_checkpoint(struct maker *maker, uint64_t step)
{
    static char names[1 + WORKERS_MAX][32];
    struct checkpoint_vector vectors[1 + WORKERS_MAX];
    struct checkpoint_writer *writer;
    uint64_t value_bytes = model_layout(maker->models[0])->value_count * sizeof(float);
    uint64_t statistic_bytes = model_statistic_count(maker->models[0]) * sizeof(float);
    uint32_t count = 0;
    check(checkpoint_writer_open(maker->own.out, 2, &writer));
    check(checkpoint_begin(writer, step));
    check(checkpoint_write(writer, "params", 0, model_params(maker->models[0]), value_bytes));
    vectors[count++] = (struct checkpoint_vector){"params", value_bytes};
    for (uint32_t rank = 0; rank < maker->job.workers && statistic_bytes > 0; rank++) {
        snprintf(names[rank], sizeof(names[rank]), "rank-%u/statistics", (unsigned)rank);
        check(model_fetch_statistics(maker->models[rank]));
        check(checkpoint_write(writer, names[rank], 0, model_statistics(maker->models[rank]),
                               statistic_bytes));
        vectors[count++] = (struct checkpoint_vector){names[rank], statistic_bytes};
    }
    json_t *part = describe(maker);
    check(checkpoint_commit(writer, vectors, count, part));
    json_decref(part);
    checkpoint_writer_close(writer);
}

static void write_images(const struct maker *maker)
{
    const struct dataset *test = maker->test;
    uint64_t limit = maker->job.limit_test;
    uint64_t count = limit > 0 && limit < test->sample_count ? limit : test->sample_count;
    size_t pixels = (size_t)test->sample.channels * test->sample.rows * test->sample.columns;
    const uint32_t header[] = {(uint32_t)count, test->class_count, test->sample.channels,
                               test->sample.rows, test->sample.columns};
    float *image = malloc(pixels * sizeof(*image));
    uint32_t *labels = malloc(count * sizeof(*labels));
    FILE *file = fopen(maker->own.images, "wb");
    assert(image != NULL && labels != NULL && file != NULL);
    fwrite(header, sizeof(header), 1, file);
    for (uint64_t i = 0; i < count; i++) {
        check(dataset_read(test, i, image, &labels[i]));
        fwrite(image, sizeof(*image), pixels, file);
    }
    fwrite(labels, sizeof(*labels), count, file);
    check(ferror(file) == 0 && fclose(file) == 0 ? STATUS_OK : STATUS_IO);
    free(labels);
    free(image);
}

static void close_all(struct maker *maker)
{
    for (uint32_t rank = 0; rank < maker->job.workers; rank++) {
        batcher_destroy(maker->batchers[rank]);
        model_destroy(maker->models[rank]);
    }
    optimizer_destroy(maker->optimizer);
    device_close(maker->device);
    dataset_close(maker->test);
    dataset_close(maker->train);
}

int main(int argc, char **argv)
{
    static struct maker maker;
    char error[OPTION_ERROR_BYTES], digest[DIGEST_TEXT_BYTES];
    bool is_done;
    struct option_program program = {
        .name = "checkpoint_maker",
        .usage = "checkpoint_maker --out FOLDER [JOB OPTION ...]",
        .summary = "",
        .example = "",
        .sets = {job_option_set(&maker.job),
                 {"Own", own_rows, sizeof(own_rows) / sizeof(own_rows[0]), &maker.own}},
        .set_count = 2,
        .takes_arguments_alone = true,
    };
    log_init("checkpoint_maker", LOG_WARN);
    check(options_parse(&program, argc, argv, &is_done));
    if (job_resolve(&maker.job, error, sizeof(error)) != STATUS_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    assert(maker.job.workers <= WORKERS_MAX);
    open_all(&maker);
    uint64_t steps = job_total_steps(&maker.job, train_samples(&maker));
    for (uint64_t step = 0; step < steps; step++) {
        train_step(&maker, step);
    }
    write_checkpoint(&maker, steps);
    if (maker.own.images[0] != '\0') {
        write_images(&maker);
    }
    digest_floats(model_params(maker.models[0]), model_layout(maker.models[0])->value_count,
                  digest);
    printf("%s\n", digest);
    close_all(&maker);
    return EXIT_SUCCESS;
}
