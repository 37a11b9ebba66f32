/* Reads the files of a run folder. */
#include "deploy/report/run_folder.h"

#include "common/base/log.h"
#include "common/job/job.h"
#include "common/options/names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool run_folder_has_summary(const char *path)
{
    char file[RUN_FOLDER_PATH_MAX + 32];
    snprintf(file, sizeof(file), "%.*s/summary.json", RUN_FOLDER_PATH_MAX, path);
    return access(file, F_OK) == 0;
}

/* A job that has lost servers is still one of as many as it was started with: the summary has those
 * that were left. */
static void restore_servers(struct run_folder *run)
{
    json_t *began = json_object_get(json_object_get(run->job, "options"), "servers");
    json_int_t left = json_integer_value(json_object_get(run->summary, "servers"));
    if (left > 0 && json_integer_value(began) > left) {
        json_object_set(run->summary, "servers", began);
    }
}

enum status run_folder_open(const char *path, struct run_folder *ret_run)
{
    struct run_folder run = {0};
    char file[RUN_FOLDER_PATH_MAX + 32];
    json_error_t error;
    if (snprintf(run.path, sizeof(run.path), "%s", path) >= (int)sizeof(run.path)) {
        log_error("the path of a run folder is too long");
        return STATUS_INVALID;
    }
    snprintf(file, sizeof(file), "%s/summary.json", path);
    run.summary = json_load_file(file, 0, &error);
    if (!json_is_object(run.summary)) {
        log_error("%s is not a run folder: summary.json: %s", path,
                  run.summary == NULL ? error.text : "it is no JSON object");
        json_decref(run.summary);
        return STATUS_MALFORMED;
    }
    snprintf(file, sizeof(file), "%s/details.json", path);
    run.details = json_load_file(file, 0, &error);
    snprintf(file, sizeof(file), "%s/job.json", path);
    run.job = json_load_file(file, 0, &error);
    restore_servers(&run);
    snprintf(file, sizeof(file), "%s/prediction.json", path);
    run.prediction = json_load_file(file, 0, &error);
    const char *mode = json_string_value(json_object_get(run.summary, "mode"));
    json_int_t workers = json_integer_value(json_object_get(run.summary, "workers"));
    json_int_t servers = json_integer_value(json_object_get(run.summary, "servers"));
    // What was asked for: runs by themselves say what was taken.
    const json_t *options = json_object_get(run.job, "options");
    const char *transport = json_string_value(json_object_get(options, "transport"));
    int used = snprintf(run.label, sizeof(run.label), "%.40s, N = %lld", mode != NULL ? mode : "?",
                        (long long)workers);
    if (servers > 0) {
        used += snprintf(run.label + used, sizeof(run.label) - (size_t)used, ", K = %lld",
                         (long long)servers);
    }
    if (transport != NULL && strcmp(transport, "auto") != 0) {
        used += snprintf(run.label + used, sizeof(run.label) - (size_t)used, ", %.16s", transport);
    }
    const char *faults =
        json_string_value(json_object_get(json_object_get(run.job, "options"), "fault"));
    if (faults != NULL && strcmp(faults, "none") != 0) {
        used += snprintf(run.label + used, sizeof(run.label) - (size_t)used, ", faults");
    }
    const char *data = json_string_value(json_object_get(run.summary, "dataset"));
    bool stands_for_other = data != NULL && names_behind_synthetic(data) != data;
    if (stands_for_other) {
        snprintf(run.label + used, sizeof(run.label) - (size_t)used, ", synthetic");
    }
    *ret_run = run;
    return STATUS_OK;
}

void run_folder_close(struct run_folder *run)
{
    json_decref(run->summary);
    json_decref(run->details);
    json_decref(run->job);
    json_decref(run->prediction);
    *run = (struct run_folder){0};
}

bool run_folder_is_completed(const struct run_folder *run)
{
    const char *outcome = json_string_value(json_object_get(run->summary, "outcome"));
    return outcome != NULL && strcmp(outcome, "completed") == 0;
}

bool run_folder_has_diverged(const struct run_folder *run, unsigned long long *ret_step)
{
    const json_t *step = json_object_get(run->details, "diverged_step");
    if (!json_is_integer(step)) {
        return false;
    }
    *ret_step = (unsigned long long)json_integer_value(step);
    return true;
}

const char *run_folder_unmet_fault(const struct run_folder *run, size_t index)
{
    static const char option[] = "--fault ";
    const json_t *unmet = json_object_get(run->details, "unmet"), *sentence;
    size_t i, count = 0;
    json_array_foreach(unmet, i, sentence)
    {
        const char *text = json_string_value(sentence);
        bool is_fault = text != NULL && strncmp(text, option, strlen(option)) == 0;
        if (is_fault && count++ == index) {
            return text;
        }
    }
    return NULL;
}

void run_folder_outcome(const struct run_folder *run, char *ret_text, size_t text_size)
{
    unsigned long long step;
    if (run_folder_has_diverged(run, &step)) {
        snprintf(ret_text, text_size, "diverged at step %llu", step);
    } else {
        run_folder_value(run, "outcome", ret_text, text_size);
        size_t size = strlen(ret_text);
        if (run_folder_is_completed(run) && run_folder_unmet_fault(run, 0) != NULL) {
            snprintf(ret_text + size, text_size - size, ", not all faults struck");
        }
    }
}

const json_t *run_folder_epochs(const struct run_folder *run)
{
    const json_t *evaluations = json_object_get(run->details, "evaluations");
    return evaluations != NULL ? evaluations : json_object_get(run->summary, "epochs");
}

/* The last epoch that has a value; what is left of an epoch at the end of a job is not evaluated.
 */
static const json_t *last_epoch_with(const struct run_folder *run, const char *key)
{
    const json_t *epochs = json_object_get(run->summary, "epochs");
    for (size_t i = json_array_size(epochs); i-- > 0;) {
        const json_t *epoch = json_array_get(epochs, i);
        if (json_is_number(json_object_get(epoch, key))) {
            return epoch;
        }
    }
    return NULL;
}

/* Follows the dots of a key. NULL if there is nothing. */
static const json_t *find(const struct run_folder *run, const char *key)
{
    static const char *const of_epoch[] = {"test_accuracy", "test_loss", "train_loss"};
    static const char *const of_details[] = {
        "target",        "late_gradients",   "images_dropped", "ms_per_step.copy",
        "diverged_step", "ms_per_step.wire", "loader_threads"};
    static const char of_prediction[] = "prediction.";
    const json_t *at = run->summary;
    if (strncmp(key, of_prediction, sizeof(of_prediction) - 1) == 0) {
        at = run->prediction;
        key += sizeof(of_prediction) - 1;
    }
    for (size_t i = 0; i < sizeof(of_details) / sizeof(of_details[0]); i++) {
        size_t size = strlen(of_details[i]);
        if (strncmp(key, of_details[i], size) == 0 && (key[size] == '.' || key[size] == '\0')) {
            at = run->details;
        }
    }
    for (size_t i = 0; i < sizeof(of_epoch) / sizeof(of_epoch[0]); i++) {
        if (strcmp(key, of_epoch[i]) == 0) {
            at = last_epoch_with(run, key);
        }
    }
    while (at != NULL && *key != '\0') {
        char part[64];
        size_t size = strcspn(key, ".");
        snprintf(part, sizeof(part), "%.*s", (int)size, key);
        at = json_object_get(at, part);
        key += size + (key[size] == '.');
    }
    return at;
}

char *run_folder_text(const struct run_folder *run, const char *key)
{
    const json_t *value = find(run, key);
    char text[64] = "";
    if (json_is_string(value)) {
        return strdup(json_string_value(value));
    }
    if (json_is_array(value) || json_is_object(value)) {
        return json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    }
    if (json_is_integer(value)) {
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(text, sizeof(text), "%.9g", json_real_value(value));
    }
    return strdup(text);
}

void run_folder_value(const struct run_folder *run, const char *key, char *ret_text,
                      size_t text_size)
{
    char *text = run_folder_text(run, key);
    snprintf(ret_text, text_size, "%s", text != NULL ? text : "");
    free(text);
}

double run_folder_number(const struct run_folder *run, const char *key)
{
    const json_t *value = find(run, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

int run_folder_rate_digits(double images_per_second)
{
    return images_per_second < 100 ? 1 : 0;
}

/* Whether the run trained a model of a program of one's own. */
static bool is_external(const struct run_folder *run)
{
    const char *model = json_string_value(json_object_get(run->summary, "model"));
    return model != NULL && strncmp(model, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0;
}

static json_int_t test_images_of(const json_t *epoch)
{
    return json_integer_value(json_object_get(epoch, "test_images"));
}

/* The most images of the evaluations that have the best accuracy. */
static json_int_t best_images(const struct run_folder *run)
{
    const json_t *epochs = json_object_get(run->summary, "epochs"), *epoch;
    const double best = run_folder_number(run, "best_accuracy");
    json_int_t most = 0;
    size_t i;
    json_array_foreach(epochs, i, epoch)
    {
        const json_t *accuracy = json_object_get(epoch, "test_accuracy");
        if (json_is_number(accuracy) && json_number_value(accuracy) == best &&
            test_images_of(epoch) > most) {
            most = test_images_of(epoch);
        }
    }
    return most;
}

bool run_folder_tests_part(const struct run_folder *run, const char *key,
                           unsigned long long *ret_images, unsigned long long *ret_all)
{
    json_int_t all = json_integer_value(json_object_get(run->job, "test_samples"));
    json_int_t images = strcmp(key, "best_accuracy") == 0
                            ? best_images(run)
                            : test_images_of(last_epoch_with(run, key));
    if (images <= 0 || images >= all || is_external(run)) {
        return false;
    }
    *ret_images = (unsigned long long)images;
    *ret_all = (unsigned long long)all;
    return true;
}

void run_folder_say_part(size_t part, size_t completed, char ret_text[RUN_FOLDER_PART_BYTES])
{
    if (completed == 1) {
        snprintf(ret_text, RUN_FOLDER_PART_BYTES,
                 "the test accuracy leaves out images of a worker that was lost");
    } else {
        snprintf(ret_text, RUN_FOLDER_PART_BYTES,
                 "the test accuracy of %zu of %zu runs leaves out images of a worker that was lost",
                 part, completed);
    }
}

static void format_accuracy(const struct run_folder *run, const char *key, char *ret_text,
                            size_t text_size)
{
    unsigned long long images, all;
    int used = snprintf(ret_text, text_size, "%.2f %%", 100 * run_folder_number(run, key));
    if ((size_t)used < text_size && run_folder_tests_part(run, key, &images, &all)) {
        snprintf(ret_text + used, text_size - (size_t)used, " (%llu of %llu images)", images, all);
    }
}

void run_folder_format(const struct run_folder *run, const char *key, char *ret_text,
                       size_t text_size)
{
    const json_t *value = find(run, key);
    if (!json_is_number(value)) {
        run_folder_value(run, key, ret_text, text_size);
        if (ret_text[0] == '\0') {
            snprintf(ret_text, text_size, "-");
        }
    } else if (strcmp(key, "test_accuracy") == 0 || strcmp(key, "best_accuracy") == 0) {
        format_accuracy(run, key, ret_text, text_size);
    } else if (strcmp(key, "images_per_second") == 0 ||
               strcmp(key, "prediction.images_per_second") == 0) {
        double rate = json_number_value(value);
        snprintf(ret_text, text_size, "%.*f", run_folder_rate_digits(rate), rate);
    } else if (strcmp(key, "prediction.error_percent") == 0) {
        snprintf(ret_text, text_size, "%+.1f %%", json_number_value(value));
    } else if (json_is_real(value)) {
        snprintf(ret_text, text_size, "%.2f", json_real_value(value));
    } else {
        snprintf(ret_text, text_size, "%lld", (long long)json_integer_value(value));
    }
}

bool run_folder_input_wait(const struct run_folder *run, double *ret_percent)
{
    const json_t *waited = find(run, "ms_per_step.input_wait");
    double total = run_folder_number(run, "ms_per_step.total");
    if (is_external(run) || !json_is_number(waited) || total <= 0) {
        return false;
    }
    *ret_percent = 100 * json_number_value(waited) / total;
    return true;
}

bool run_folder_loaders(const struct run_folder *run, unsigned *ret_fewest, unsigned *ret_most)
{
    const json_t *threads = find(run, "loader_threads"), *count;
    json_int_t fewest = UINT32_MAX, most = 0;
    size_t i;
    json_array_foreach(threads, i, count)
    {
        json_int_t value = json_integer_value(count);
        bool is_known = value > 0 && value < UINT32_MAX;
        fewest = is_known && value < fewest ? value : fewest;
        most = is_known && value > most ? value : most;
    }
    if (most == 0) {
        return false;
    }
    *ret_fewest = (unsigned)fewest;
    *ret_most = (unsigned)most;
    return true;
}
