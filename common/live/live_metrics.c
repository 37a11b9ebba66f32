/* Writes measurements for Prometheus. */
#include "common/live/live_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value_kind { VALUE_REAL, VALUE_U32, VALUE_U64, VALUE_NS };

/* A measurement: its name, and the field of the state, or of a rank, that it comes from. */
struct row {
    const char *name, *type, *help;
    size_t offset;
    enum value_kind kind;
};

#define OF_JOB(field, value_kind) \
    .offset = offsetof(struct live_state, field), .kind = VALUE_##value_kind
#define OF_RANK(field, value_kind) \
    .offset = offsetof(struct live_rank, field), .kind = VALUE_##value_kind

static const struct row job_rows[] = {
    {"ringside_workers", "gauge", "Ranks of the job.", OF_JOB(workers, U32)},
    {"ringside_worker_processes", "gauge", "Worker processes that carry them.",
     OF_JOB(processes, U32)},
    {"ringside_step", "gauge", "Steps of the job so far.", OF_JOB(step, U64)},
    {"ringside_steps_planned", "gauge", "Steps of the whole job.", OF_JOB(total_steps, U64)},
    {"ringside_epoch", "gauge", "Epoch that is trained, from 1.", OF_JOB(epoch, U64)},
    {"ringside_training_seconds", "gauge", "Time since training began.", OF_JOB(seconds, REAL)},
    {"ringside_loss", "gauge", "Training loss over the last reporting interval.",
     OF_JOB(loss, REAL)},
    {"ringside_learning_rate", "gauge", "Learning rate of the last step.", OF_JOB(rate, REAL)},
    {"ringside_images_per_second", "gauge",
     "Images that entered updates in a second, over the last reporting interval.",
     OF_JOB(images_per_second, REAL)},
    {"ringside_lost_workers_total", "counter", "Worker processes that were lost.",
     OF_JOB(workers_lost, U32)},
    {"ringside_restarts_total", "counter", "How often the job has gone on from a checkpoint.",
     OF_JOB(restarts, U32)},
    {"ringside_checkpoints_total", "counter", "Checkpoints that are whole.",
     OF_JOB(checkpoints, U64)},
    {"ringside_checkpoint_step", "gauge", "Step of the last whole checkpoint; 0 without one.",
     OF_JOB(checkpoint_step, U64)},
};

/* Of a job that was evaluated. */
static const struct row test_rows[] = {
    {"ringside_test_accuracy_ratio", "gauge", "Accuracy on the test set, from 0 to 1.",
     OF_JOB(accuracy, REAL)},
    {"ringside_test_loss", "gauge", "Loss on the test set.", OF_JOB(test_loss, REAL)},
};

static const struct row rank_rows[] = {
    {"ringside_rank_step", "gauge", "Steps of a rank so far.", OF_RANK(step, U64)},
    {"ringside_rank_loss", "gauge", "Training loss of a rank over its last reporting interval.",
     OF_RANK(loss, REAL)},
    {"ringside_rank_images_per_second", "gauge",
     "Images of a rank in a second, over its last reporting interval.",
     OF_RANK(images_per_second, REAL)},
    {"ringside_rank_staleness_updates", "gauge",
     "Mean staleness of a rank's gradients over its last reporting interval, in updates.",
     OF_RANK(staleness, REAL)},
    {"ringside_rank_steps_total", "counter", "Steps that a rank has made, repeated ones included.",
     OF_RANK(steps, U64)},
    {"ringside_rank_images_total", "counter", "Images that a rank has trained on.",
     OF_RANK(images, U64)},
    {"ringside_rank_compute_seconds_total", "counter", "Time that a rank has computed.",
     OF_RANK(compute_ns, NS)},
    {"ringside_rank_exchange_wait_seconds_total", "counter",
     "Time that a rank has waited for parameters or gradients.", OF_RANK(exchange_wait_ns, NS)},
    {"ringside_rank_input_wait_seconds_total", "counter", "Time that a rank has waited for images.",
     OF_RANK(input_wait_ns, NS)},
    {"ringside_rank_sent_bytes_total", "counter",
     "Bytes that a rank's process has sent; counted for its first rank.", OF_RANK(bytes_sent, U64)},
    {"ringside_rank_received_bytes_total", "counter",
     "Bytes that a rank's process has received; counted for its first rank.",
     OF_RANK(bytes_received, U64)},
};

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_real(FILE *out, double value)
{
    if (isfinite(value)) {
        fprintf(out, " %.9g\n", value);
    } else {
        fprintf(out, isnan(value) ? " NaN\n" : value > 0 ? " +Inf\n" : " -Inf\n");
    }
}

static void write_value(FILE *out, const struct row *row, const void *owner)
{
    const char *field = (const char *)owner + row->offset;
    double real;
    uint32_t narrow;
    uint64_t whole;
    switch (row->kind) {
    case VALUE_REAL:
        memcpy(&real, field, sizeof(real));
        write_real(out, real);
        return;
    case VALUE_U32:
        memcpy(&narrow, field, sizeof(narrow));
        fprintf(out, " %" PRIu32 "\n", narrow);
        return;
    case VALUE_U64:
        memcpy(&whole, field, sizeof(whole));
        fprintf(out, " %" PRIu64 "\n", whole);
        return;
    case VALUE_NS:
        memcpy(&whole, field, sizeof(whole));
        write_real(out, (double)whole / 1e9);
        return;
    }
}

static void write_job_rows(FILE *out, const struct row *rows, size_t count,
                           const struct live_state *state)
{
    for (size_t i = 0; i < count; i++) {
        write_head(out, rows[i].name, rows[i].type, rows[i].help);
        fprintf(out, "%s", rows[i].name);
        write_value(out, &rows[i], state);
    }
}

/* A label's value, in which three characters are written otherwise. */
static void write_label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            fprintf(out, "\\n");
        } else {
            fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
        }
    }
    fprintf(out, "\"");
}

static void write_info(FILE *out, const struct live_state *state)
{
    const char *const labels[][2] = {{"version", state->version},     {"mode", state->mode},
                                     {"model", state->model},         {"dataset", state->dataset},
                                     {"optimizer", state->optimizer}, {"device", state->device}};
    write_head(out, "ringside_job_info", "gauge", "The job: always 1, with what it is as labels.");
    fprintf(out, "ringside_job_info{");
    for (size_t i = 0; i < COUNT(labels); i++) {
        fprintf(out, "%s", i > 0 ? "," : "");
        write_label(out, labels[i][0], labels[i][1]);
    }
    fprintf(out, "} 1\n");
}

static void write_outcome(FILE *out, const struct live_state *state)
{
    static const char *const outcomes[] = {"waiting", "training", "completed", "failed"};
    write_head(out, "ringside_job_state", "gauge", "1 for the state that the job is in.");
    for (size_t i = 0; i < COUNT(outcomes); i++) {
        fprintf(out, "ringside_job_state{state=\"%s\"} %d\n", outcomes[i],
                strcmp(outcomes[i], state->outcome) == 0);
    }
}

static void write_ranks(FILE *out, const struct live_state *state)
{
    for (size_t i = 0; i < COUNT(rank_rows); i++) {
        write_head(out, rank_rows[i].name, rank_rows[i].type, rank_rows[i].help);
        for (uint32_t rank = 0; rank < state->workers; rank++) {
            fprintf(out, "%s{rank=\"%u\"}", rank_rows[i].name, rank);
            write_value(out, &rank_rows[i], &state->ranks[rank]);
        }
    }
}

static void write_staleness(FILE *out, const struct live_histogram *histogram)
{
    const char *name = "ringside_staleness_updates";
    uint64_t below = 0;
    write_head(out, name, "histogram",
               "Steps by the mean staleness of their reporting interval, in updates.");
    for (uint32_t i = 0; i < LIVE_BINS - 1; i++) {
        below += histogram->counts[i];
        fprintf(out, "%s_bucket{le=\"%u\"} %" PRIu64 "\n", name, live_bin_limits[i], below);
    }
    fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum", name, histogram->total, name);
    write_real(out, histogram->sum);
    fprintf(out, "%s_count %" PRIu64 "\n", name, histogram->total);
}

char *live_metrics_text(const struct live_state *state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    write_info(out, state);
    write_outcome(out, state);
    write_job_rows(out, job_rows, COUNT(job_rows), state);
    if (state->has_accuracy) {
        write_job_rows(out, test_rows, COUNT(test_rows), state);
    }
    write_ranks(out, state);
    write_staleness(out, &state->staleness);
    bool is_whole = ferror(out) == 0;
    if (fclose(out) != 0 || !is_whole) {
        free(text);
        return NULL;
    }
    return text;
}
