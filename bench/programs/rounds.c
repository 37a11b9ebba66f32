/* Computes quantiles of round times, and reads CPU time with getrusage. */
#include "bench/programs/rounds.h"

#include <stdlib.h>
#include <sys/resource.h>

int rounds_init(struct rounds *rounds, size_t capacity)
{
    *rounds = (struct rounds){.capacity = capacity};
    rounds->times_ns = calloc(capacity, sizeof(*rounds->times_ns));
    return rounds->times_ns != NULL ? 0 : -1;
}

void rounds_finish(struct rounds *rounds)
{
    free(rounds->times_ns);
    *rounds = (struct rounds){0};
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void rounds_begin(struct rounds *rounds)
{
    rounds->cpu_begin = cpu_seconds();
}

void rounds_add(struct rounds *rounds, uint64_t ns)
{
    if (rounds->count < rounds->capacity) {
        rounds->times_ns[rounds->count++] = ns;
    }
}

void rounds_end(struct rounds *rounds)
{
    rounds->cpu_seconds = cpu_seconds() - rounds->cpu_begin;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Interpolated; 0 without any. */
static double quantile_us(const struct rounds *rounds, double share)
{
    if (rounds->count == 0) {
        return 0;
    }
    double at = share * (double)(rounds->count - 1);
    size_t low = (size_t)at, high = low + 1 < rounds->count ? low + 1 : low;
    double rest = at - (double)low;
    double ns = (1 - rest) * (double)rounds->times_ns[low] + rest * (double)rounds->times_ns[high];
    return ns / 1e3;
}

void rounds_print(struct rounds *rounds, FILE *stream)
{
    double total_ns = 0;
    for (size_t i = 0; i < rounds->count; i++) {
        total_ns += (double)rounds->times_ns[i];
    }
    qsort(rounds->times_ns, rounds->count, sizeof(*rounds->times_ns), compare);
    fprintf(stream,
            "\"rounds\":%zu,\"us_median\":%.3f,\"us_p10\":%.3f,\"us_p90\":%.3f,"
            "\"seconds\":%.6f,\"cpu_seconds\":%.6f",
            rounds->count, quantile_us(rounds, 0.5), quantile_us(rounds, 0.1),
            quantile_us(rounds, 0.9), total_ns / 1e9, rounds->cpu_seconds);
}
