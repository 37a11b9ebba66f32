/* Packs options, metrics and ends for TensorBoard. */
#include "ps-server/record/tensorboard_hparams.h"

#include "common/job/job_options.h"
#include "ps-server/record/lent_text.h"
#include "tensorboard_hparams.pb-c.h"

#include <stdlib.h>
#include <string.h>

enum { TYPE_TEXT = 1, TYPE_BOOL = 2, TYPE_NUMBER = 3 };
enum { END_SUCCESS = 1, END_FAILURE = 2 };
enum { OF_TRAINING = 1, OF_VALIDATION = 2 };

static const struct {
    const char *tag, *name;
    int dataset;
} metrics[] = {
    {"test/accuracy", "test accuracy", OF_VALIDATION},
    {"test/loss", "test loss", OF_VALIDATION},
    {"train/loss", "training loss", OF_TRAINING},
    {"train/images_per_second", "images per second", OF_TRAINING},
    {"train/staleness", "staleness", OF_TRAINING},
};
#define METRIC_COUNT (sizeof(metrics) / sizeof(metrics[0]))

// What runs are usually compared by.
static const char *const always_shown[] = {"mode", "workers", "servers", "model", "lr", "seed"};

static uint8_t *pack(const Tensorboard__Hparams__HParamsPluginData *data, size_t *ret_size)
{
    size_t size = tensorboard__hparams__hparams_plugin_data__get_packed_size(data);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (bytes != NULL) {
        *ret_size = tensorboard__hparams__hparams_plugin_data__pack(data, bytes);
    }
    return bytes;
}

static int type_of(const struct option *option)
{
    switch (option->type) {
    case OPTION_FLAG:
        return TYPE_BOOL;
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_REAL:
        return TYPE_NUMBER;
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_CHOICE:
    case OPTION_PARSED:
    case OPTION_LIST:
        break;
    }
    return TYPE_TEXT;
}

static bool is_shown(const struct option *option, const struct job *job)
{
    char value[OPTION_VALUE_BYTES];
    for (size_t i = 0; i < sizeof(always_shown) / sizeof(always_shown[0]); i++) {
        if (strcmp(option->name, always_shown[i]) == 0) {
            return true;
        }
    }
    option_format(option, job, value, sizeof(value));
    const char *usual = job_option_default(option, job_is_external(job));
    return usual != NULL && strcmp(usual, value) != 0;
}

static uint8_t *pack_experiment(Tensorboard__Hparams__HParamInfo **options, size_t count,
                                size_t *ret_size)
{
    Tensorboard__Hparams__HParamsPluginData data = TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__Hparams__Experiment experiment = TENSORBOARD__HPARAMS__EXPERIMENT__INIT;
    Tensorboard__Hparams__MetricInfo infos[METRIC_COUNT], *info_list[METRIC_COUNT];
    Tensorboard__Hparams__MetricName names[METRIC_COUNT];
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        tensorboard__hparams__metric_info__init(&infos[i]);
        tensorboard__hparams__metric_name__init(&names[i]);
        names[i].tag = lent_text(metrics[i].tag);
        infos[i].name = &names[i];
        infos[i].display_name = lent_text(metrics[i].name);
        infos[i].dataset_type = metrics[i].dataset;
        info_list[i] = &infos[i];
    }
    experiment.hparam_infos = options;
    experiment.n_hparam_infos = count;
    experiment.metric_infos = info_list;
    experiment.n_metric_infos = METRIC_COUNT;
    data.data_case = TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    return pack(&data, ret_size);
}

uint8_t *tensorboard_hparams_experiment(const struct job *job, size_t *ret_size)
{
    uint8_t *bytes = NULL;
    Tensorboard__Hparams__HParamInfo *infos = calloc(job_option_count, sizeof(*infos));
    Tensorboard__Hparams__HParamInfo **list =
        (Tensorboard__Hparams__HParamInfo **)calloc(job_option_count, sizeof(void *));
    if (infos != NULL && list != NULL) {
        for (size_t i = 0; i < job_option_count; i++) {
            tensorboard__hparams__hparam_info__init(&infos[i]);
            infos[i].name = lent_text(job_options[i].name);
            infos[i].description = lent_text(job_options[i].help);
            infos[i].type = type_of(&job_options[i]);
            infos[i].differs = is_shown(&job_options[i], job);
            list[i] = &infos[i];
        }
        bytes = pack_experiment(list, job_option_count, ret_size);
    }
    free(infos);
    free(list);
    return bytes;
}

/* A value, and what it points to. */
struct entry {
    Tensorboard__Hparams__SessionStartInfo__HparamsEntry entry;
    Tensorboard__Hparams__Value value;
    char text[OPTION_VALUE_BYTES];
};

static void fill_entry(const struct option *option, const struct job *job, struct entry *entry)
{
    tensorboard__hparams__session_start_info__hparams_entry__init(&entry->entry);
    tensorboard__hparams__value__init(&entry->value);
    entry->entry.key = lent_text(option->name);
    entry->entry.value = &entry->value;
    option_format(option, job, entry->text, sizeof(entry->text));
    if (type_of(option) == TYPE_BOOL) {
        entry->value.kind_case = TENSORBOARD__HPARAMS__VALUE__KIND_BOOL_VALUE;
        entry->value.bool_value = strcmp(entry->text, "true") == 0;
    } else if (type_of(option) == TYPE_NUMBER) {
        entry->value.kind_case = TENSORBOARD__HPARAMS__VALUE__KIND_NUMBER_VALUE;
        entry->value.number_value = strtod(entry->text, NULL); // a word stands for 0
    } else {
        entry->value.kind_case = TENSORBOARD__HPARAMS__VALUE__KIND_STRING_VALUE;
        entry->value.string_value = entry->text;
    }
}

uint8_t *tensorboard_hparams_start(const struct job *job, double seconds, size_t *ret_size)
{
    uint8_t *bytes = NULL;
    struct entry *entries = calloc(job_option_count, sizeof(*entries));
    Tensorboard__Hparams__SessionStartInfo__HparamsEntry **list =
        (Tensorboard__Hparams__SessionStartInfo__HparamsEntry **)calloc(job_option_count,
                                                                        sizeof(void *));
    if (entries != NULL && list != NULL) {
        Tensorboard__Hparams__HParamsPluginData data =
            TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__INIT;
        Tensorboard__Hparams__SessionStartInfo start =
            TENSORBOARD__HPARAMS__SESSION_START_INFO__INIT;
        for (size_t i = 0; i < job_option_count; i++) {
            fill_entry(&job_options[i], job, &entries[i]);
            list[i] = &entries[i].entry;
        }
        start.hparams = list;
        start.n_hparams = job_option_count;
        start.start_time_secs = seconds;
        data.data_case = TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
        data.session_start_info = &start;
        bytes = pack(&data, ret_size);
    }
    free(entries);
    free(list);
    return bytes;
}

uint8_t *tensorboard_hparams_end(bool is_completed, double seconds, size_t *ret_size)
{
    Tensorboard__Hparams__HParamsPluginData data = TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__INIT;
    Tensorboard__Hparams__SessionEndInfo end = TENSORBOARD__HPARAMS__SESSION_END_INFO__INIT;
    end.status = is_completed ? END_SUCCESS : END_FAILURE;
    end.end_time_secs = seconds;
    data.data_case = TENSORBOARD__HPARAMS__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    return pack(&data, ret_size);
}
