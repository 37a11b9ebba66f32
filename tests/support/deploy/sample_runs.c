/* Writing run folders for tests. */
#include "tests/support/deploy/sample_runs.h"

#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST "1111111111111111111111111111111111111111111111111111111111111111"

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static json_t *whole_summary(const struct sample_run *sample)
{
    json_t *summary = json_pack(
        "{s:s, s:s, s:i, s:i, s:s, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:f, s:f, s:i, s:f, "
        "s:f}",
        "version", "0.1.0", "mode", text_or(sample->mode, "ring"), "workers",
        sample->workers > 0 ? sample->workers : 2, "servers", sample->servers, "model", "lenet5",
        "parameters", 83126, "dataset", "shapes", "device", "cpu", "transport", "shm", "seed", 1,
        "batch_per_worker", 8, "global_batch", 16, "optimizer", "momentum", "lr", 0.5,
        "lr_effective", 1.0, "steps", 4, "seconds", 1.25, "images_per_second",
        sample->images_per_second > 0 ? sample->images_per_second : 100.0);
    json_t *epochs = json_pack("[{s:i, s:f, s:n, s:n, s:f}, {s:i, s:f, s:f, s:f, s:f}]", "epoch", 1,
                               "train_loss", 2.5, "test_loss", "test_accuracy", "seconds", 0.5,
                               "epoch", 2, "train_loss", 0.5, "test_loss", 0.75, "test_accuracy",
                               sample->accuracy > 0 ? sample->accuracy : 0.8125, "seconds", 0.75);
    json_t *rest = json_pack(
        "{s:o, s:{s:f, s:f, s:f, s:f}, s:{s:f, s:f, s:f, s:f}, s:{s:f, s:i, s:[i,i]}, s:s, s:s, "
        "s:i, s:i, s:s, s:s}",
        "epochs", epochs, "ms_per_step", "compute", 6.5, "exchange_wait", 0.25, "input_wait", 0.125,
        "total", 6.875, "bytes_per_step", "worker_sent", 1024.0, "worker_received", 2048.0,
        "server_sent", 0.0, "server_received", 0.0, "staleness", "mean", sample->staleness, "max",
        1, "histogram", 3, 1, "params_digest", text_or(sample->digest, DIGEST), "bits_of",
        text_or(sample->bits_of, "ringside"), "workers_lost", 0, "restarts", 0, "outcome",
        text_or(sample->outcome, "completed"), "reason", text_or(sample->reason, ""));
    assert_non_null(summary);
    assert_non_null(rest);
    assert_int_equal(json_object_update(summary, rest), 0);
    double at_end = sample->accuracy > 0 ? sample->accuracy : 0.8125;
    json_object_set_new(summary, "best_accuracy",
                        json_real(sample->best > 0 ? sample->best : at_end));
    json_object_set_new(summary, "best_epoch", json_integer(sample->best > 0 ? 1 : 2));
    json_decref(rest);
    return summary;
}

/* The epochs with their steps (2 and 4), and the target. */
static json_t *whole_details(const struct sample_run *sample, const json_t *summary)
{
    json_t *evaluations = json_deep_copy(json_object_get(summary, "epochs")), *evaluation;
    size_t i;
    json_array_foreach(evaluations, i, evaluation)
    {
        json_object_set_new(evaluation, "step", json_integer(2 * (json_int_t)(i + 1)));
    }
    json_t *target = sample->target_steps > 0
                         ? json_pack("{s:f, s:i, s:f}", "accuracy", 0.8, "steps",
                                     sample->target_steps, "seconds", sample->target_steps * 0.5)
                         : json_null();
    json_t *shards = json_array();
    for (int shard = 0; shard < sample->servers; shard++) {
        json_array_append_new(shards, json_pack("{s:i, s:i, s:i, s:f, s:f, s:i}", "shard", shard,
                                                "bytes_received", 2 << 20, "bytes_sent", 3 << 20,
                                                "busy_seconds", 0.5, "seconds", 2.0, "backlog", 7));
    }
    json_t *diverged =
        sample->diverged_step > 0 ? json_integer(sample->diverged_step) : json_null();
    return json_pack("{s:o, s:o, s:i, s:f, s:o, s:{s:f, s:f}, s:o, s:[i,i]}", "evaluations",
                     evaluations, "target", target, "late_gradients", 0, "images_dropped", 0.0,
                     "shards", shards, "ms_per_step", "copy", 0.75, "wire", 1.5, "diverged_step",
                     diverged, "loader_threads", 1, 2);
}

static void write_tree(const char *folder, const char *run, const char *name, const json_t *tree)
{
    char path[RUN_FOLDER_PATH_MAX];
    char *text = json_dumps(tree, 0);
    assert_non_null(text);
    snprintf(path, sizeof(path), "%s/%s", run, name);
    temp_folder_write(folder, path, text, strlen(text));
    free(text);
}

void sample_runs_open(const char *folder, const char *name, const struct sample_run *sample,
                      struct run_folder *ret_run)
{
    char path[RUN_FOLDER_PATH_MAX];
    json_t *summary = whole_summary(sample);
    json_t *details = whole_details(sample, summary);
    write_tree(folder, name, "summary.json", summary);
    write_tree(folder, name, "details.json", details);
    json_decref(details);
    json_decref(summary);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(run_folder_open(path, ret_run), STATUS_OK);
}

char *sample_runs_read(const char *folder, const char *name)
{
    char path[RUN_FOLDER_PATH_MAX], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
        return NULL;
    }
    assert_true(getdelim(&text, &size, '\0', file) > 0);
    fclose(file);
    return text;
}
