/* Says in which jobs each option has an effect. */
#include "common/job/job_effects.h"

#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/options/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct effect {
    const char *name;
    const char *off; // values that ask for nothing, joined by bars
    bool (*is_in)(const struct job *job);
    const char *needs;
};

/* A word is one of several that are joined by bars. */
static bool is_one_of(const char *word, const char *words)
{
    size_t size = strlen(word);
    for (const char *at = words; *at != '\0';) {
        size_t length = strcspn(at, "|");
        if (length == size && strncmp(at, word, size) == 0) {
            return true;
        }
        at += length + (at[length] == '|');
    }
    return false;
}

static bool has_momentum(const struct job *job)
{
    return (optimizer_uses_of(job->optimizer) & OPTIMIZER_USES_MOMENTUM) != 0;
}

static bool has_moments(const struct job *job)
{
    return (optimizer_uses_of(job->optimizer) & OPTIMIZER_USES_BETAS) != 0;
}

static bool has_decay(const struct job *job)
{
    return (optimizer_uses_of(job->optimizer) & OPTIMIZER_USES_DECAY) != 0;
}

static bool has_denominators(const struct job *job)
{
    return (optimizer_uses_of(job->optimizer) & OPTIMIZER_USES_EPSILON) != 0;
}

/* Where the program says the optimizer, it says the settings, too. */
static bool has_optimizer(const struct job *job)
{
    return job->optimizer != OPTIMIZER_AUTO;
}

static bool is_scaled(const struct job *job)
{
    return job->lr_scale == LR_SCALE_LINEAR;
}

static bool has_steps(const struct job *job)
{
    return job->lr_schedule == SCHEDULE_STEP;
}

static bool may_use_cuda(const struct job *job)
{
    return strcmp(job->device, "auto") == 0 || strncmp(job->device, "cuda", 4) == 0;
}

static bool may_use_cpu(const struct job *job)
{
    return is_one_of(job->device, "auto|cpu");
}

static bool has_several(const struct job *job)
{
    return job->workers > 1;
}

static bool is_no_baseline(const struct job *job)
{
    return job->mode.kind != MODE_LOCAL;
}

/* Whether anything is exchanged. */
static bool exchanges(const struct job *job)
{
    return is_no_baseline(job) && (job->workers > 1 || job_has_servers(job));
}

static bool may_use_network(const struct job *job)
{
    return exchanges(job) && (job->transport == TRANSPORT_AUTO || job->transport == TRANSPORT_TCP);
}

static bool has_all_reduce(const struct job *job)
{
    return job_has_mode(job, MODE_RING) && has_several(job);
}

static bool has_compensation(const struct job *job)
{
    return job->remedy == REMEDY_DC || job->remedy == REMEDY_DC_ADAPTIVE;
}

static bool has_checkpoints(const struct job *job)
{
    return job->checkpoint_every.kind != CHECKPOINT_NEVER;
}

static bool may_lose_workers(const struct job *job)
{
    return is_no_baseline(job) && job_carriers(job).processes > 1;
}

/* Whether it has whom each of its faults strikes; faults_check has looked at the rest. */
static bool has_faults(const struct job *job)
{
    const struct faults faults = faults_of(job);
    uint32_t places = 0;
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        places += fault->place == FAULT_AT_RANK  ? fault->number < job->workers
                  : fault->place == FAULT_AT_JOB ? job->workers > 1
                                                 : job_has_servers(job);
    }
    return faults.count > 0 && places == faults.count;
}

static bool evaluates(const struct job *job)
{
    return job->eval != EVALUATION_NONE;
}

static bool has_folders(const struct job *job)
{
    const char *data = names_behind_synthetic(job->data);
    return strncmp(data, "images:", strlen("images:")) == 0;
}

static bool has_cache(const struct job *job)
{
    return job->cache != JOB_CACHE_NONE;
}

#define SERVERS "a mode with servers: ps-sync, ps-ssp:S or ps-async"
#define EXCHANGES \
    "workers that exchange something: another mode than local, and more than one worker"

static const struct effect effects[] = {
    {"servers", "0|1", job_has_servers, SERVERS},
    {"processes", "0", is_no_baseline, "another mode than local"},
    {"server-device", "host", job_has_servers, SERVERS},
    {"server-threads", "1", job_has_servers, SERVERS},
    {"server-optimizer", "job", job_has_servers, SERVERS},
    {"coordinator-role", "shard", job_has_servers, SERVERS},
    {"momentum", "0", has_momentum, "--optimizer momentum or nesterov"},
    {"beta1", "", has_moments, "--optimizer adam or adamw"},
    {"beta2", "", has_moments, "--optimizer adam or adamw"},
    {"decay", "0", has_decay, "--optimizer rmsprop or adadelta"},
    {"epsilon", "0", has_denominators, "--optimizer adam, adamw, adagrad, adadelta or rmsprop"},
    {"weight-decay", "0", has_optimizer,
     "--optimizer; without it the program says its weight decay"},
    {"lr-scale", "none", has_optimizer,
     "--optimizer; without it the program's rate is taken as it is"},
    {"lr-workers", "0", is_scaled, "--lr-scale linear"},
    {"lr-step-epochs", "", has_steps, "--lr-schedule step"},
    {"lr-gamma", "", has_steps, "--lr-schedule step"},
    {"conv", "auto", may_use_cpu, "--device cpu"},
    {"allow-nondeterministic", "false", may_use_cuda, "--device cuda"},
    {"cuda-engines", "heuristic", may_use_cuda, "--device cuda"},
    {"cuda-graphs", "true", may_use_cuda, "--device cuda"},
    {"cuda-peers", "true", may_use_cuda, "--device cuda"},
    {"cuda-sync-check", "false", may_use_cuda, "--device cuda"},
    {"sync-every", "1", is_no_baseline, "another mode than local"},
    {"all-reduce", "auto", has_all_reduce, "mode ring, and more than one worker"},
    {"compress", "none", exchanges, EXCHANGES},
    {"transport", "auto", exchanges, EXCHANGES},
    {"connections", "1", may_use_network, "--transport tcp or auto, and workers that exchange"},
    {"bad-images", "fail", has_folders, "--data images:DIR"},
    {"cache", "none", has_folders, "--data images:DIR"},
    {"cache-mb", "0", has_cache, "--cache ram or disk"},
    {"eval-size", "0", evaluates, "--eval epoch or end"},
    {"fault", "none", has_faults,
     "the ranks that it names (mode local has rank 0 alone), and for a shard " SERVERS},
    {"keep", "", has_checkpoints, "--checkpoint-every"},
    {"on-loss", "fail|auto", may_lose_workers, "another mode than local, and more than one worker"},
    {"min-workers", "1", job_may_go_on,
     "--on-loss redeal, shrink or commit, and more than one worker"},
    {"outlast", "0|60", job_outlasts_coordinator,
     "another mode than local, servers on hosts, and where a program of its own has some, "
     "--coordinator-role alone or --on-loss commit"},
    {"without-ranks", "none", has_several, "another mode than local, and more than one worker"},
    {"remedy-lambda", "0", has_compensation, "--remedy dc or dc-adaptive"},
};

/* What is about models, data and devices of ours. A program of its own brings its own. */
static const char ours[] =
    "data|image-size|eval-size|classes|augment|normalize|shard|eval|limit-train|limit-test|device|"
    "conv|precision|loader-threads|cache|cache-mb|allow-nondeterministic|cuda-engines|cuda-graphs|"
    "cuda-peers|"
    "cuda-sync-check";

static const struct effect *find(const char *name)
{
    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        if (strcmp(effects[i].name, name) == 0) {
            return &effects[i];
        }
    }
    return NULL;
}

const struct job *job_list_at(const struct job_list *jobs, size_t index)
{
    const void *at = (const char *)jobs->first + index * jobs->stride;
    return at;
}

/* The first job, if all are of programs of their own, which have no use for the option. */
static const struct job *find_useless(const char *name, const struct job_list *jobs)
{
    bool is_ours = is_one_of(name, ours);
    for (size_t i = 0; i < jobs->count && is_ours; i++) {
        is_ours = job_is_external(job_list_at(jobs, i));
    }
    return is_ours ? job_list_at(jobs, 0) : NULL;
}

enum status job_check_effect(const char *name, const struct job_list *jobs, char *ret_error,
                             size_t error_size)
{
    const struct effect *effect = find(name);
    const struct job *external = find_useless(name, jobs);
    bool acts = effect == NULL;
    if (external != NULL) {
        snprintf(ret_error, error_size,
                 "--%s would do nothing here: it is about what is ours, and %s is a program of its "
                 "own",
                 name, external->model);
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < jobs->count && !acts; i++) {
        acts = effect->is_in(job_list_at(jobs, i));
    }
    if (acts) {
        return STATUS_OK;
    }
    snprintf(ret_error, error_size, "--%s would do nothing here: it needs %s", name, effect->needs);
    return STATUS_INVALID;
}

enum status job_check_effects(const struct option_program *program, const struct job *asked,
                              const struct job_list *jobs, char *ret_error, size_t error_size)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < job_option_count && status == STATUS_OK; i++) {
        const struct option *row = &job_options[i];
        const struct effect *effect = find(row->name);
        char value[OPTION_VALUE_BYTES];
        bool may_be_useless = effect != NULL || is_one_of(row->name, ours);
        if (!may_be_useless || !options_was_given(program, row->name)) {
            continue;
        }
        option_format(row, asked, value, sizeof(value));
        if (!is_one_of(value, effect != NULL ? effect->off : row->fallback)) {
            status = job_check_effect(row->name, jobs, ret_error, error_size);
        }
    }
    return status;
}
