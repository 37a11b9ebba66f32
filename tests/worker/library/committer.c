/* A program that goes on from its last commit after a loss, until it has made STEPS steps in SIZE
 * processes or more. Commits after every 8 steps, and evaluates after every 4. Its parameters go to
 * the mean of what the ranks want.
 *
 * usage: committer STEPS SIZE keep|job|refuse [VICTIM]
 *
 * keep: it makes the updates itself, by momentum; job: the job does; refuse: likewise, and it first
 * makes calls that are refused. The process that has the rank VICTIM at first is killed in step 14.
 * For check_library. */
#include <ringside.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES   5
#define RATE     0.1F
#define MOMENTUM 0.9F

/* What it goes on from. */
struct state {
    uint64_t step;
    float params[VALUES], velocity[VALUES];
};

struct program {
    struct ringside *ringside;
    struct ringside_job job;
    struct state now, copy;
    unsigned long steps, size;
    int keeps, victim; // -1: none, or no more
};

static void check(enum ringside_status status)
{
    if (status != RINGSIDE_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, ringside_error(NULL));
        exit(3);
    }
}

/* The update that the job makes with --optimizer momentum. */
static void update(struct program *program)
{
    float *params = ringside_params(program->ringside);
    const float *grads = ringside_grads(program->ringside);
    for (int i = 0; i < VALUES; i++) {
        program->now.velocity[i] = MOMENTUM * program->now.velocity[i] + grads[i];
        params[i] -= RATE * program->now.velocity[i];
    }
}

static enum ringside_status make_step(struct program *program)
{
    struct ringside *ringside = program->ringside;
    float *params = ringside_params(ringside), *grads = ringside_grads(ringside);
    enum ringside_status is = ringside_begin_step(ringside);
    is = is == RINGSIDE_OK ? ringside_await(ringside, RINGSIDE_ALL) : is;
    is = is == RINGSIDE_OK ? ringside_begin_gradients(ringside) : is;
    if (is != RINGSIDE_OK) {
        return is;
    }
    for (int i = 0; i < VALUES; i++) {
        grads[i] = params[i] - (float)((int)program->job.rank + 1 + i);
    }
    if ((int)program->job.rank == program->victim && program->now.step == 13) {
        raise(SIGKILL);
    }
    is = ringside_ready(ringside, RINGSIDE_ALL);
    is = is == RINGSIDE_OK ? ringside_end_step(ringside) : is;
    if (is == RINGSIDE_OK && program->keeps) {
        update(program);
    }
    program->now.step += is == RINGSIDE_OK;
    return is;
}

/* The best of all evaluations is one that a loss takes back. */
static void evaluate(struct program *program)
{
    int is_lost = program->victim >= 0 && program->now.step == 12;
    const struct ringside_report report = {
        .images = 1,
        .loss = 1,
        .test_images = 100,
        .test_correct = is_lost ? 100 : program->now.step % 100,
        .test_loss = 1,
    };
    check(ringside_report(program->ringside, &report));
}

/* With the copy that belongs to it, if it counts. */
static enum ringside_status commit(struct program *program)
{
    enum ringside_status is = ringside_commit(program->ringside);
    if (is == RINGSIDE_OK || is == RINGSIDE_GROWS) {
        memcpy(program->now.params, ringside_params(program->ringside),
               sizeof(program->now.params));
        program->copy = program->now;
    }
    return is;
}

static enum ringside_status train(struct program *program)
{
    enum ringside_status is = RINGSIDE_OK;
    while (is == RINGSIDE_OK &&
           (program->now.step < program->steps || program->job.size < program->size)) {
        is = make_step(program);
        if (is == RINGSIDE_OK && program->now.step % 4 == 0) {
            evaluate(program);
        }
        if (is == RINGSIDE_OK && program->now.step % 8 == 0) {
            is = commit(program);
        }
    }
    return is == RINGSIDE_OK ? commit(program) : is; // all have the same then
}

/* Rank 0 gives what it has to all. */
static enum ringside_status begin(struct program *program)
{
    struct ringside *ringside = program->ringside;
    struct state *copy = &program->copy;
    enum ringside_status is = ringside_broadcast(ringside, copy, sizeof(*copy), 0);
    if (is != RINGSIDE_OK) {
        return is;
    }
    program->now = *copy;
    memcpy(ringside_params(ringside), copy->params, sizeof(copy->params));
    check(ringside_job(ringside, &program->job));
    check(ringside_go_on(ringside, copy->step));
    return ringside_start(ringside);
}

static void rejoin(struct program *program)
{
    program->victim = -1;
    enum ringside_status is = ringside_rejoin(program->ringside);
    while (is == RINGSIDE_AGAIN) {
        is = ringside_rejoin(program->ringside);
    }
    check(is);
}

/* Calls that are out of order, or that only a job with --on-loss commit takes. */
static void refuse(struct program *program)
{
    printf("%d ", (int)ringside_rejoin(program->ringside));
    printf("%d ", (int)ringside_go_on(program->ringside, 1000001));
    printf("%d %s\n", (int)ringside_commit(program->ringside), ringside_error(NULL));
}

int main(int argc, char **argv)
{
    static const struct ringside_tensor tensors[] = {{"first", 2}, {"second", VALUES - 2}};
    struct program program = {.victim = -1};
    if (argc < 4) {
        return 2;
    }
    program.steps = strtoul(argv[1], NULL, 10);
    program.size = strtoul(argv[2], NULL, 10);
    program.keeps = strcmp(argv[3], "keep") == 0;
    program.victim = argc > 4 ? (int)strtol(argv[4], NULL, 10) : -1;
    check(ringside_join(NULL, &program.ringside));
    check(ringside_describe(program.ringside, tensors, 2));
    if (program.keeps) {
        check(ringside_keep_gradients(program.ringside));
    }
    if (strcmp(argv[3], "refuse") == 0) {
        refuse(&program);
    }
    enum ringside_status is = begin(&program);
    for (;;) {
        is = is == RINGSIDE_OK ? train(&program) : is;
        if (is != RINGSIDE_AGAIN && is != RINGSIDE_GROWS) {
            break;
        }
        rejoin(&program);
        is = begin(&program);
    }
    check(is);
    printf("rank %u of %u after %llu steps:", program.job.rank, program.job.size,
           (unsigned long long)program.now.step);
    for (int i = 0; i < VALUES; i++) {
        printf(" %.9g", (double)ringside_params(program.ringside)[i]);
    }
    printf("\n");
    check(ringside_leave(program.ringside));
    return 0;
}
