/* Does one thing that libringside refuses or has to answer, as the argument says, and prints what
 * it answers: a line "STATUS SENTENCE" for each. For check_library. */
#include <pthread.h>
#include <ringside.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void show(enum ringside_status status)
{
    printf("%d %s\n", (int)status, status > RINGSIDE_END ? ringside_error(NULL) : "");
    fflush(stdout);
}

static void orders(struct ringside *ringside)
{
    static const struct ringside_tensor tensors[] = {{"first", 3}, {"second", 5}}, empty = {"x", 0};
    struct ringside *other;
    show(ringside_start(ringside));                // 2
    show(ringside_describe(ringside, &empty, 1));  // 3
    show(ringside_describe(ringside, tensors, 2)); // 0
    show(ringside_begin_step(ringside));           // 2
    show(ringside_join(NULL, &other));             // 2
    show(ringside_start(ringside));                // 0
    show(ringside_end_step(ringside));             // 2
    show(ringside_set_rate(ringside, 0.5));        // 0
    show(ringside_begin_step(ringside));           // 0
    show(ringside_begin_gradients(ringside));      // 0
    show(ringside_ready(ringside, 7));             // 3
    show(ringside_ready(ringside, 1));             // 0
    show(ringside_ready(ringside, 1));             // 2
    show(ringside_end_step(ringside));             // 2
    show(ringside_barrier(ringside));              // 2
    show(ringside_ready(ringside, RINGSIDE_ALL));  // 0
    show(ringside_end_step(ringside));             // 0
}

/* Each rank gives what tells it apart; prints what came of it. */
static void collectives(struct ringside *ringside)
{
    static float many[70000];
    static const struct ringside_tensor tensor = {"only", 4};
    struct ringside_job job;
    char word[8] = "-------", all[8 * 8];
    ringside_job(ringside, &job);
    show(ringside_describe(ringside, &tensor, 1));
    show(ringside_start(ringside));
    for (int i = 0; i < 70000; i++) {
        many[i] = (float)(i % 97) + (float)job.rank;
    }
    show(ringside_all_reduce(ringside, many, 70000));
    printf("%g %g\n", (double)many[0], (double)many[69999]);
    snprintf(word, sizeof(word), "rank %u", job.rank);
    show(ringside_all_gather(ringside, word, 7, all));
    for (uint32_t i = 0; i < job.size; i++) {
        printf("%.7s;", all + (size_t)7 * i);
    }
    show(ringside_broadcast(ringside, word, 7, job.size - 1));
    printf("%s\n", word);
    show(ringside_broadcast(ringside, word, 7, job.size));
    show(ringside_barrier(ringside));
}

/* First parameters that only rank 1 has are everybody's by a broadcast before the start. */
static void early(struct ringside *ringside)
{
    static const struct ringside_tensor tensor = {"only", 3};
    struct ringside_job job;
    float sum = 1;
    ringside_job(ringside, &job);
    show(ringside_barrier(ringside));
    show(ringside_describe(ringside, &tensor, 1));
    float *params = ringside_params(ringside);
    for (int i = 0; i < 3; i++) {
        params[i] = (float)job.rank + 0.1F * (float)i;
    }
    show(ringside_broadcast(ringside, params, 3 * sizeof(*params), 1));
    show(ringside_start(ringside));
    show(ringside_begin_step(ringside));
    show(ringside_all_reduce(ringside, &sum, 1)); // within a step
    printf("%g %.9g\n", (double)sum, (double)params[2]);
    show(ringside_leave(ringside)); // without gradients: an open job ends well
}

/* Optimizers that there are not, then one that there is. */
static void optimizers(struct ringside *ringside)
{
    static const struct ringside_tensor tensor = {"only", 4};
    static const struct ringside_optimizer wrong[] = {
        {NULL, .rate = 0.1},
        {"lion", .rate = 0.1},
        {"auto", .rate = 0.1},
        {"sgd", .rate = 0},
        {"sgd", .rate = -1},
        {"sgd", .rate = 0.1, .momentum = 0.9},
        {"momentum", .rate = 0.1, .momentum = 1.5},
        {"adam", .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .decay = 0.5},
        {"adam", .rate = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-60},
        {"sgd", .rate = 0.1, .weight_decay = 7},
    };
    static const struct ringside_optimizer right = {"adam", 0.1 / 3, 0, 0.8, 0.9, 0, 0, 0.01};
    struct ringside_job job;
    show(ringside_set_optimizer(ringside, NULL));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        show(ringside_set_optimizer(ringside, &wrong[i]));
    }
    ringside_job(ringside, &job);
    printf("0 %s %g\n", job.optimizer, job.rate);
    show(ringside_set_optimizer(ringside, &right));
    ringside_job(ringside, &job);
    printf("0 %s %.17g %g %g\n", job.optimizer, job.rate, job.beta1, job.epsilon);
    show(ringside_set_optimizer(ringside, &right)); // once more: 0
    show(ringside_describe(ringside, &tensor, 1));  // 0
    show(ringside_keep_gradients(ringside));        // 4
    show(ringside_start(ringside));                 // 0
    show(ringside_set_optimizer(ringside, &right)); // 2
    show(ringside_begin_step(ringside));            // 0
}

#define THREADS 4

/* A thread's part of a step: its own tensors are ready. */
struct part {
    struct ringside *ringside;
    uint32_t first, failures;
};

static void *make_ready(void *data)
{
    struct part *part = data;
    struct ringside_counters counters;
    for (uint32_t i = part->first; i < 4 * THREADS; i += THREADS) {
        part->failures += ringside_ready(part->ringside, i) != RINGSIDE_OK;
        part->failures += ringside_counters(part->ringside, &counters) != RINGSIDE_OK;
    }
    return NULL;
}

/* Every step is made by several threads. */
static void threads(struct ringside *ringside)
{
    struct ringside_tensor tensors[4 * THREADS];
    struct part parts[THREADS];
    pthread_t made[THREADS];
    uint32_t failures = 0;
    for (uint32_t i = 0; i < 4 * THREADS; i++) {
        tensors[i] = (struct ringside_tensor){"tensor", 100000};
    }
    show(ringside_describe(ringside, tensors, 4 * THREADS));
    show(ringside_start(ringside));
    while (ringside_begin_step(ringside) == RINGSIDE_OK) {
        failures += ringside_begin_gradients(ringside) != RINGSIDE_OK;
        for (uint32_t i = 0; i < THREADS; i++) {
            parts[i] = (struct part){ringside, i, 0};
            failures += pthread_create(&made[i], NULL, make_ready, &parts[i]) != 0;
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            pthread_join(made[i], NULL);
            failures += parts[i].failures;
        }
        failures += ringside_end_step(ringside) != RINGSIDE_OK;
    }
    printf("%u failures\n", failures);
}

/* A model that depends on the process, or first parameters that do. */
static void differ(struct ringside *ringside, bool in_tensors)
{
    struct ringside_job job;
    ringside_job(ringside, &job);
    const struct ringside_tensor tensor = {in_tensors && job.rank == 1 ? "other" : "one", 4};
    show(ringside_describe(ringside, &tensor, 1));
    ringside_params(ringside)[0] = in_tensors ? 0 : (float)job.rank;
    show(ringside_start(ringside));
    show(ringside_begin_step(ringside)); // says the same again
}

/* Parameters are written where that is lost: before a step's gradients, and behind them. What is as
 * it was when new ones come was never written. */
static void writes(struct ringside *ringside)
{
    static const struct ringside_tensor tensors[] = {{"first", 3}, {"second", 5}};
    show(ringside_describe(ringside, tensors, 2));
    show(ringside_start(ringside));
    float *params = ringside_params(ringside);
    for (int step = 0; step < 4; step++) {
        enum ringside_status status = ringside_begin_step(ringside);
        if (status != RINGSIDE_OK) {
            show(status);
            ringside_begin_step(ringside); // it refuses once
        }
        status = ringside_await(ringside, RINGSIDE_ALL);
        if (status != RINGSIDE_OK) {
            show(status);
            ringside_await(ringside, RINGSIDE_ALL);
        }
        params[1] += step == 0 ? 1 : 0;
        params[2] += step == 2 ? 1 : 0;
        params[2] -= step == 2 ? 1 : 0;
        show(ringside_begin_gradients(ringside));
        params[7] += step == 1 ? 1 : 0;
        ringside_ready(ringside, RINGSIDE_ALL);
        ringside_end_step(ringside);
    }
    ringside_barrier(ringside); // who leaves first ends the job of the other
}

int main(int argc, char **argv)
{
    const struct ringside_options options = {.join_timeout = 2};
    struct ringside *ringside;
    const char *what = argc > 1 ? argv[1] : "";
    enum ringside_status status = ringside_join(&options, &ringside);
    show(status);
    if (status != RINGSIDE_OK) {
        return 0;
    }
    if (strcmp(what, "early") == 0) {
        early(ringside);
        return 0;
    }
    if (strcmp(what, "orders") == 0) {
        orders(ringside);
    } else if (strcmp(what, "optimizers") == 0) {
        optimizers(ringside);
    } else if (strcmp(what, "collectives") == 0) {
        collectives(ringside);
    } else if (strcmp(what, "threads") == 0) {
        threads(ringside);
    } else if (strcmp(what, "writes") == 0) {
        writes(ringside);
    } else if (strcmp(what, "tensors") == 0 || strcmp(what, "params") == 0) {
        differ(ringside, strcmp(what, "tensors") == 0);
    } else if (strcmp(what, "die") == 0) {
        struct ringside_job job;
        static const struct ringside_tensor tensor = {"one", 4};
        ringside_job(ringside, &job);
        show(ringside_describe(ringside, &tensor, 1));
        show(ringside_start(ringside));
        while (status == RINGSIDE_OK) {
            status = ringside_begin_step(ringside);
            if (job.rank == 1) {
                kill(getpid(), SIGKILL);
            }
            status = status == RINGSIDE_OK ? ringside_begin_gradients(ringside) : status;
            status = status == RINGSIDE_OK ? ringside_ready(ringside, RINGSIDE_ALL) : status;
            status = status == RINGSIDE_OK ? ringside_end_step(ringside) : status;
        }
        show(status);
    }
    show(ringside_leave(ringside));
    show(ringside_leave(NULL));
    return 0;
}
