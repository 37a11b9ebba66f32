/* Finds the largest rate that training survives, from runs that differ in the rate alone. */
#include "deploy/report/sweep_rates.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "lr=0.1 order=free" -> "order=free". Whether there was a rate. */
static bool without_rate(const char *label, char ret_label[256])
{
    bool has_rate = false;
    ret_label[0] = '\0';
    while (*label != '\0') {
        size_t size = strcspn(label, " "), used = strlen(ret_label);
        if (strncmp(label, "lr=", 3) == 0) {
            has_rate = true;
        } else {
            snprintf(ret_label + used, 256 - used, "%s%.*s", used > 0 ? " " : "", (int)size, label);
        }
        label += size + (label[size] == ' ');
    }
    return has_rate;
}

static double best_accuracy(const struct sweep_results *results)
{
    double best = 0;
    for (size_t i = 0; i < results->plan->count; i++) {
        const struct run_folder *run = results->summaries[i];
        double accuracy = run != NULL ? run_folder_number(run, "test_accuracy") : 0;
        best = run != NULL && run_folder_is_completed(run) && accuracy > best ? accuracy : best;
    }
    return best;
}

/* What the runs of one label have survived. */
struct survivors {
    uint64_t seeds[SWEEP_REPEAT_MAX];
    double rates[SWEEP_REPEAT_MAX]; // the largest of each seed; 0: none
    size_t count;
    double staleness_sum;
    size_t staleness_count;
};

static void add_run(struct survivors *survivors, const struct job *job,
                    const struct run_folder *run, double least_accuracy)
{
    size_t i = 0;
    while (i < survivors->count && survivors->seeds[i] != job->seed) {
        i++;
    }
    if (i == SWEEP_REPEAT_MAX) {
        return;
    }
    if (i == survivors->count) {
        survivors->seeds[survivors->count++] = job->seed;
    }
    if (run == NULL || !run_folder_is_completed(run)) {
        return;
    }
    survivors->staleness_sum += run_folder_number(run, "staleness.mean");
    survivors->staleness_count++;
    if (run_folder_number(run, "test_accuracy") >= least_accuracy &&
        job->lr > survivors->rates[i]) {
        survivors->rates[i] = job->lr;
    }
}

static struct sweep_rate rate_of(const struct sweep_results *results, const char *label,
                                 double least_accuracy)
{
    struct survivors survivors = {0};
    char other[256];
    for (size_t i = 0; i < results->plan->count; i++) {
        const struct sweep_run *run = &results->plan->runs[i];
        if (without_rate(run->label, other) && strcmp(label, other) == 0) {
            add_run(&survivors, &run->job, results->summaries[i], least_accuracy);
        }
    }
    struct sweep_rate rate = {.rate = statistics_of(survivors.rates, survivors.count)};
    if (survivors.staleness_count > 0) {
        rate.staleness = survivors.staleness_sum / (double)survivors.staleness_count;
    }
    snprintf(rate.label, sizeof(rate.label), "%s", label);
    return rate;
}

static int compare_rates(const void *a, const void *b)
{
    const struct sweep_rate *left = a, *right = b;
    return (left->staleness > right->staleness) - (left->staleness < right->staleness);
}

static double limit_at(double staleness)
{
    return sin(acos(-1.0) / (4 * staleness + 2));
}

size_t sweep_rates_of(const struct sweep_results *results,
                      struct sweep_rate ret_rates[SWEEP_RATES_MAX])
{
    double least_accuracy = best_accuracy(results) / 2;
    size_t count = 0;
    char label[256];
    for (size_t i = 0; i < results->plan->count && least_accuracy > 0; i++) {
        bool is_new = without_rate(results->plan->runs[i].label, label);
        for (size_t k = 0; k < count && is_new; k++) {
            is_new = strcmp(ret_rates[k].label, label) != 0;
        }
        if (is_new && count < SWEEP_RATES_MAX) {
            ret_rates[count++] = rate_of(results, label, least_accuracy);
        }
    }
    qsort(ret_rates, count, sizeof(*ret_rates), compare_rates);
    for (size_t i = 0; i < count; i++) {
        ret_rates[i].relative =
            ret_rates[0].rate.mean > 0 ? ret_rates[i].rate.mean / ret_rates[0].rate.mean : 0;
        ret_rates[i].theory = limit_at(ret_rates[i].staleness) / limit_at(ret_rates[0].staleness);
    }
    return count;
}
