/* A program that trains a model of its own by libringside: logistic regression on made-up data.
 * Each process has every size-th sample. Prints the parameters that the job ends with. */
#include <math.h>
#include <ringside.h>
#include <stdio.h>
#include <stdlib.h>

#define FEATURES 6
#define SAMPLES  120

static float features[SAMPLES][FEATURES], labels[SAMPLES];

static void make_data(void)
{
    uint32_t state = 1;
    for (int i = 0; i < SAMPLES; i++) {
        float sum = 0;
        for (int k = 0; k < FEATURES; k++) {
            state = state * 1664525 + 1013904223;
            features[i][k] = (float)(state >> 8) / 8388608.0F - 1;
            sum += features[i][k] * (float)(k - 2);
        }
        labels[i] = sum > 0 ? 1 : 0;
    }
}

/* The mean gradient over a process's samples, (FEATURES + 1), and what there is to report. */
static struct ringside_report compute(const float *w, float *sums, const struct ringside_job *job)
{
    struct ringside_report report = {0};
    for (uint32_t i = job->rank; i < SAMPLES; i += job->size, report.images++) {
        float z = w[FEATURES];
        for (int k = 0; k < FEATURES; k++) {
            z += w[k] * features[i][k];
        }
        float error = 1 / (1 + expf(-z)) - labels[i];
        for (int k = 0; k < FEATURES; k++) {
            sums[k] += error * features[i][k];
        }
        sums[FEATURES] += error;
        report.loss -= log(1 - fabs((double)error));
        report.test_correct += fabsf(error) < 0.5F;
    }
    report.test_images = report.images;
    report.loss = report.test_loss = report.loss / (double)report.images;
    return report;
}

static void check(enum ringside_status status)
{
    if (status != RINGSIDE_OK) {
        fprintf(stderr, "status %d: %s\n", (int)status, ringside_error(NULL));
        exit(3);
    }
}

int main(void)
{
    static const struct ringside_tensor tensors[] = {{"weights", FEATURES}, {"bias", 1}};
    struct ringside *ringside;
    struct ringside_job job;
    struct ringside_counters counters;
    enum ringside_status status;
    make_data();
    check(ringside_join(NULL, &ringside));
    check(ringside_job(ringside, &job));
    check(ringside_describe(ringside, tensors, 2));
    float *w = ringside_params(ringside), *g = ringside_grads(ringside);
    check(ringside_start(ringside));
    while ((status = ringside_begin_step(ringside)) == RINGSIDE_OK) {
        float sums[FEATURES + 1] = {0};
        check(ringside_await(ringside, RINGSIDE_ALL));
        const struct ringside_report report = compute(w, sums, &job);
        check(ringside_begin_gradients(ringside));
        for (int k = 0; k <= FEATURES; k++) {
            g[k] = sums[k] / (float)report.images;
        }
        check(ringside_ready(ringside, 1));
        check(ringside_ready(ringside, 0));
        check(ringside_report(ringside, &report));
        check(ringside_end_step(ringside));
    }
    check(status == RINGSIDE_END ? RINGSIDE_OK : status);
    check(ringside_counters(ringside, &counters));
    printf("rank %u of %u, %s, staleness %.2f:", job.rank, job.size, job.mode,
           counters.staleness_mean);
    for (int k = 0; k <= FEATURES; k++) {
        printf(" %.9g", (double)w[k]);
    }
    printf("\n");
    check(ringside_leave(ringside));
    return 0;
}
