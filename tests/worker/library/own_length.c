/* A program that makes as many steps as it likes: COUNT of them, then what the last argument says.
 * Its parameters go to the mean of the ranks plus one. For check_library and check_own_programs.
 *
 * DIES is POINT:RANK:FILE: the process of the rank kills itself at the point (joined,
 * called: after a collective, described) if there is no such file yet, which it makes. */
#include <fcntl.h>
#include <ringside.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES 5
#define RATE   0.25F

static void check(enum ringside_status status)
{
    if (status != RINGSIDE_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, ringside_error(NULL));
        exit(3);
    }
}

static void make_step(struct ringside *ringside, const struct ringside_job *job, int keeps)
{
    float *params = ringside_params(ringside), *grads = ringside_grads(ringside);
    struct ringside_report report = {.images = 4};
    check(ringside_begin_step(ringside));
    check(ringside_await(ringside, RINGSIDE_ALL));
    float distance = params[0] - (float)(job->rank + 1);
    check(ringside_begin_gradients(ringside));
    for (int i = 0; i < VALUES; i++) {
        grads[i] = distance;
    }
    report.loss = (double)(distance * distance);
    check(ringside_report(ringside, &report));
    check(ringside_ready(ringside, 0));
    check(ringside_end_step(ringside));
    for (int i = 0; keeps && i < VALUES; i++) {
        params[i] -= RATE * grads[i];
    }
}

/* The update that the job would make at RATE; another one in rank 1, if they are to differ. */
static void say_optimizer(struct ringside *ringside, uint32_t rank, int differs)
{
    struct ringside_optimizer optimizer = {.name = "sgd", .rate = (double)RATE};
    optimizer.rate *= differs && rank == 1 ? 2 : 1;
    check(ringside_set_optimizer(ringside, &optimizer));
}

static void die_at(const char *point, uint32_t rank)
{
    char begin[32];
    const char *plan = getenv("DIES");
    snprintf(begin, sizeof(begin), "%s:%u:", point, rank);
    if (plan != NULL && strncmp(plan, begin, strlen(begin)) == 0 &&
        open(plan + strlen(begin), O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0) {
        raise(SIGKILL);
    }
}

int main(int argc, char **argv)
{
    static const struct ringside_tensor tensor = {"only", VALUES};
    struct ringside *ringside;
    struct ringside_job job;
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    const char *then = argc > 2 ? argv[2] : "leave";
    int keeps = strcmp(then, "keep") == 0;
    check(ringside_join(NULL, &ringside));
    check(ringside_job(ringside, &job));
    die_at("joined", job.rank);
    const char *plan = getenv("DIES");
    if (plan != NULL && strncmp(plan, "called:", strlen("called:")) == 0) {
        check(ringside_barrier(ringside));
    }
    die_at("called", job.rank);
    check(ringside_describe(ringside, &tensor, 1));
    die_at("described", job.rank);
    if (strncmp(then, "say", 3) == 0) {
        say_optimizer(ringside, job.rank, strcmp(then, "say otherwise") == 0);
    }
    if (strncmp(then, "compress", strlen("compress")) == 0) {
        int differs = strcmp(then, "compress otherwise") == 0 && job.rank == 1;
        check(ringside_set_compression(ringside, "none")); // the last one counts
        check(ringside_set_compression(ringside, differs ? "bf16" : "fp16"));
    }
    if (keeps) {
        check(ringside_keep_gradients(ringside));
    }
    check(ringside_start(ringside));
    for (unsigned long i = 0; i < count; i++) {
        make_step(ringside, &job, keeps);
    }
    if (strcmp(then, "fail") == 0 && job.rank == 1) {
        ringside_fail(ringside, "the sky\nfell");
        return 4;
    }
    if (strcmp(then, "quit") == 0 && job.rank == 1) {
        return 0; // without a word
    }
    if (strcmp(then, "hang") == 0) {
        printf("hangs\n");
        fflush(stdout);
        pause();
    }
    check(ringside_barrier(ringside));
    struct ringside_job now;
    check(ringside_job(ringside, &now));
    printf("rank %u of %u, %s, steps %llu, %s %g:", now.rank, now.size, now.mode,
           (unsigned long long)now.steps, now.optimizer, now.rate);
    for (int i = 0; i < VALUES; i++) {
        printf(" %.9g", (double)ringside_params(ringside)[i]);
    }
    printf("\n");
    check(ringside_leave(ringside));
    return 0;
}
