/* Fits a line to points in a job of Ringside: the shortest whole program.
 *
 *     cc line.c $(pkg-config --cflags --libs ringside) -o line
 *     ringside run -n 2 --mode ps-sync --optimizer sgd --lr 1 --steps 300 -- ./line
 */
#include <ringside.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS 100

static void check(enum ringside_status status)
{
    if (status != RINGSIDE_OK) {
        fprintf(stderr, "%s\n", ringside_error(NULL));
        exit(1);
    }
}

/* The mean gradient over this process's points, of y = 3 x + 1, and the mean loss. */
static struct ringside_report compute(const float *params, float *grads, struct ringside_job job)
{
    struct ringside_report report = {.images = (POINTS - job.rank + job.size - 1) / job.size};
    grads[0] = grads[1] = 0;
    for (uint32_t i = job.rank; i < POINTS; i += job.size) {
        float x = (float)i / POINTS, error = params[0] * x + params[1] - (3 * x + 1);
        grads[0] += error * x / (float)report.images;
        grads[1] += error / (float)report.images;
        report.loss += (double)(error * error) / 2 / (double)report.images;
    }
    return report;
}

int main(void)
{
    static const struct ringside_tensor tensors[] = {{"slope", 1}, {"intercept", 1}};
    struct ringside *ringside;
    struct ringside_job job;
    check(ringside_join(NULL, &ringside));
    check(ringside_job(ringside, &job));
    check(ringside_describe(ringside, tensors, 2));
    float *params = ringside_params(ringside), *grads = ringside_grads(ringside);
    check(ringside_start(ringside));
    enum ringside_status status;
    while ((status = ringside_begin_step(ringside)) == RINGSIDE_OK) {
        check(ringside_await(ringside, RINGSIDE_ALL));
        check(ringside_begin_gradients(ringside));
        const struct ringside_report report = compute(params, grads, job);
        check(ringside_report(ringside, &report));
        check(ringside_ready(ringside, RINGSIDE_ALL));
        check(ringside_end_step(ringside));
    }
    check(status == RINGSIDE_END ? RINGSIDE_OK : status);
    printf("y = %.3f x + %.3f\n", (double)params[0], (double)params[1]);
    check(ringside_leave(ringside));
    return 0;
}
