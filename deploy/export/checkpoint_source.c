/* The vectors of a checkpoint as floats. */
#include "deploy/export/checkpoint_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What is wrong, for the caller to say. */
struct text {
    char *bytes; // borrowed
    size_t size;
};

static bool has_statistics(const struct checkpoint_reader *checkpoint, uint32_t rank,
                           char ret_name[64], uint64_t *ret_count)
{
    uint64_t size;
    snprintf(ret_name, 64, "rank-%u/statistics", (unsigned)rank);
    if (!checkpoint_has(checkpoint, ret_name, &size)) {
        return false;
    }
    *ret_count = size / sizeof(float);
    return true;
}

/* A vector of floats, which the caller frees; NULL with an error. */
static float *read_vector(struct checkpoint_reader *checkpoint, const char *name,
                          uint64_t *ret_count, struct text error)
{
    uint64_t size = 0;
    const char *path = checkpoint_path(checkpoint);
    if (!checkpoint_has(checkpoint, name, &size) || size == 0 || size % sizeof(float) != 0) {
        snprintf(error.bytes, error.size, "%s cannot be exported: it has no vector %s of floats",
                 path, name);
        return NULL;
    }
    float *values = malloc(size);
    if (values == NULL) {
        snprintf(error.bytes, error.size, "no memory for %s of %s, which has %" PRIu64 " MiB", name,
                 path, size >> 20);
        return NULL;
    }
    if (checkpoint_read(checkpoint, name, 0, values, size) != STATUS_OK) {
        snprintf(error.bytes, error.size, "cannot read %s of %s: %m", name, path);
        free(values);
        return NULL;
    }
    *ret_count = size / sizeof(float);
    return values;
}

static enum status add_rank(struct checkpoint_reader *checkpoint, const char *name, double *sums,
                            uint64_t expected_count, struct text error)
{
    uint64_t count;
    float *values = read_vector(checkpoint, name, &count, error);
    if (values == NULL) {
        return STATUS_MALFORMED;
    }
    if (count != expected_count) {
        snprintf(error.bytes, error.size,
                 "%s cannot be exported: %s has %" PRIu64 " values, and that of the first rank "
                 "%" PRIu64,
                 checkpoint_path(checkpoint), name, count, expected_count);
        free(values);
        return STATUS_MALFORMED;
    }
    for (uint64_t i = 0; i < count; i++) {
        sums[i] += (double)values[i];
    }
    free(values);
    return STATUS_OK;
}

/* The first rank from `rank` on that takes part. */
static uint32_t next_present(const struct rank_list *left_out, uint32_t rank)
{
    while (rank_list_has(left_out, rank)) {
        rank++;
    }
    return rank;
}

/* The mean over ranks that take part; NULL with *ret_count 0 where there are no statistics. */
static enum status read_statistics(struct checkpoint_reader *checkpoint,
                                   const struct rank_list *left_out, float **ret_values,
                                   uint64_t *ret_count, struct text error)
{
    char name[64];
    uint64_t count, other;
    uint32_t rank = next_present(left_out, 0), rank_count = 0;
    *ret_values = NULL;
    *ret_count = 0;
    if (!has_statistics(checkpoint, rank, name, &count) || count == 0) {
        return STATUS_OK;
    }
    double *sums = calloc(count, sizeof(*sums));
    float *values = calloc(count, sizeof(*values));
    enum status status = sums != NULL && values != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    while (status == STATUS_OK && has_statistics(checkpoint, rank, name, &other)) {
        status = add_rank(checkpoint, name, sums, count, error);
        rank_count++;
        rank = next_present(left_out, rank + 1);
    }
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        values[i] = (float)(sums[i] / rank_count);
    }
    free(sums);
    if (status != STATUS_OK) {
        free(values);
        return status;
    }
    *ret_values = values;
    *ret_count = count;
    return STATUS_OK;
}

enum status checkpoint_source_read(struct checkpoint_reader *checkpoint,
                                   const struct rank_list *left_out,
                                   struct tensor_source *ret_source, char *ret_error,
                                   size_t error_size)
{
    const struct text error = {ret_error, error_size};
    uint64_t value_count, statistic_count;
    snprintf(ret_error, error_size, "no memory for what %s has", checkpoint_path(checkpoint));
    float *statistics, *values = read_vector(checkpoint, "params", &value_count, error);
    if (values == NULL) {
        return STATUS_MALFORMED;
    }
    enum status status =
        read_statistics(checkpoint, left_out, &statistics, &statistic_count, error);
    if (status != STATUS_OK) {
        free(values);
        return status;
    }
    *ret_source = (struct tensor_source){
        .values = values,
        .statistics = statistics,
        .value_count = value_count,
        .statistic_count = statistic_count,
        .step = checkpoint_step(checkpoint),
    };
    return STATUS_OK;
}

void checkpoint_source_finish(struct tensor_source *source)
{
    free(source->values);
    free(source->statistics);
    *source = (struct tensor_source){0};
}
