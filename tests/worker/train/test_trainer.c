/* Tests of the promise that N workers train as one: the same parameters, up to the rounding of a
 * sum. */
#include "common/optimizer/optimizer.h"
#include "common/vector/vector.h"
#include "worker/data/batches/batcher.h"
#include "worker/model/model.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX 4
#define STEPS     100

static const char *model_name = "lenet5";
static uint32_t global_batch = 16;

/* Workers in one process, whose gradients are averaged as the designs do. */
struct team {
    uint32_t world;
    struct device *device;
    struct model *models[WORLD_MAX];
    struct batcher *batchers[WORLD_MAX];
    struct optimizer *optimizer; // of model 0, whose parameters the others copy
};

static void open_team(struct team *team, uint32_t world, const struct dataset *dataset)
{
    *team = (struct team){.world = world};
    const struct device_options device_options = {.threads = 1};
    assert_int_equal(device_open("ref", &device_options, &team->device), STATUS_OK);
    for (uint32_t rank = 0; rank < world; rank++) {
        struct model_options model = {
            .name = model_name,
            .input = dataset->sample,
            .class_count = dataset->class_count,
            .batch_size = global_batch / world,
            .seed = 5,
            .bucket_bytes = 4 << 20,
        };
        struct batcher_options batches = {
            .batch_size = global_batch / world,
            .global_batch = global_batch,
            .rank = rank,
            .world = world,
            .seed = 5,
            .is_training = true,
        };
        assert_int_equal(model_create(&model, team->device, &team->models[rank]), STATUS_OK);
        assert_int_equal(batcher_create(&batches, dataset, &team->batchers[rank]), STATUS_OK);
    }
    struct optimizer_settings settings = {.momentum = 0.9};
    assert_int_equal(optimizer_create(OPTIMIZER_MOMENTUM, &settings,
                                      model_layout(team->models[0])->value_count, &team->optimizer),
                     STATUS_OK);
}

static void close_team(struct team *team)
{
    for (uint32_t rank = 0; rank < team->world; rank++) {
        batcher_destroy(team->batchers[rank]);
        model_destroy(team->models[rank]);
    }
    optimizer_destroy(team->optimizer);
    device_close(team->device);
}

static void compute_gradients(struct team *team, uint32_t rank)
{
    struct batch batch;
    struct program_result result;
    struct model *model = team->models[rank];
    assert_int_equal(batcher_next(team->batchers[rank], &batch), STATUS_OK);
    struct program_input input = {
        .pixels = batch.pixels,
        .labels = batch.labels,
        .sample_keys = batch.sample_keys,
        .count = batch.count,
        .gradient_scale = (float)team->world / (float)global_batch,
        .is_training = true,
    };
    assert_int_equal(model_forward(model, &input, &result), STATUS_OK);
    for (uint32_t bucket = 0; bucket < model_layout(model)->bucket_count; bucket++) {
        assert_int_equal(model_backward(model, bucket), STATUS_OK);
        assert_int_equal(model_await_gradients(model, bucket), STATUS_OK);
    }
}

static void train_step(struct team *team, uint64_t step)
{
    uint64_t count = model_layout(team->models[0])->value_count;
    float *mean = model_grads(team->models[0]), *params = model_params(team->models[0]);
    for (uint32_t rank = 0; rank < team->world; rank++) {
        compute_gradients(team, rank);
        if (rank > 0) {
            vector_add(mean, model_grads(team->models[rank]), count);
        }
    }
    vector_scale(mean, 1.0f / (float)team->world, count);
    optimizer_apply(team->optimizer, (struct span){0, count}, params, mean, step + 1, 0.01);
    for (uint32_t rank = 1; rank < team->world; rank++) {
        memcpy(model_params(team->models[rank]), params, count * sizeof(float));
    }
}

static double relative_difference(const struct team *a, const struct team *b)
{
    const float *x = model_params(a->models[0]), *y = model_params(b->models[0]);
    double difference = 0, norm = 0;
    for (uint64_t i = 0; i < model_layout(a->models[0])->value_count; i++) {
        difference += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        norm += (double)y[i] * (double)y[i];
    }
    return sqrt(difference / norm);
}

static void workers_on_slices_end_where_one_on_the_whole_batch_does(void **state)
{
    (void)state;
    struct dataset *dataset;
    assert_int_equal(dataset_open("shapes",
                                  &(struct dataset_options){.seed = 5, .split = DATASET_TRAIN},
                                  &dataset),
                     STATUS_OK);
    struct team local;
    open_team(&local, 1, dataset);
    for (uint64_t step = 0; step < STEPS; step++) {
        train_step(&local, step);
    }
    for (uint32_t world = 2; world <= WORLD_MAX; world *= 2) {
        struct team team;
        open_team(&team, world, dataset);
        for (uint64_t step = 0; step < STEPS; step++) {
            train_step(&team, step);
        }
        double difference = relative_difference(&team, &local);
        print_message("# N = %u, %d steps of %s: relative difference %.2e\n", world, STEPS,
                      model_name, difference);
        assert_true(difference > 0 && difference < 1e-5);
        close_team(&team);
    }
    close_team(&local);
    dataset_close(dataset);
}

int main(int argc, char **argv)
{
    model_name = argc > 1 ? argv[1] : model_name;
    global_batch = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : global_batch;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_on_slices_end_where_one_on_the_whole_batch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
