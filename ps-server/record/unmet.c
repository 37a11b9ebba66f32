/* Compares what options ask for with what a job has done. */
#include "ps-server/record/unmet.h"

#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "common/job/job_values.h"

#include <stdio.h>

typedef unsigned long long count;

/* False: it has struck, or may have. */
static bool describe_fault(const struct results *results, const struct fault *fault,
                           char ret_sentence[UNMET_BYTES])
{
    char text[FAULT_TEXT_BYTES], who[32] = "the job";
    uint64_t made = results_steps_made(results);
    if (fault->place == FAULT_AT_RANK && fault->number < results->worker_count) {
        made = results->ranks[fault->number].made;
        snprintf(who, sizeof(who), "worker %u", fault->number);
    }
    fault_format(fault, text);
    snprintf(ret_sentence, UNMET_BYTES, "--fault %s never came: %s made %llu step%s", text, who,
             (count)made, made == 1 ? "" : "s");
    return fault->step > made;
}

/* Whether the job has whom the fault strikes. */
static bool has_place(const struct job *job, const struct fault *fault)
{
    return fault->place == FAULT_AT_SHARD ? job_has_servers(job) : job->mode.kind != MODE_LOCAL;
}

/* In a race a worker may be behind the step when the others end the phase or the job. Kills that
 * have struck are off the list, and what comes behind a kill waits for it. */
static void tell_missed(const struct job *job, void (*tell)(void *context, const char *sentence),
                        void *context)
{
    const struct faults faults = faults_of(job);
    const struct fault *kill = faults_next_kill(&faults);
    char text[FAULT_TEXT_BYTES], sentence[UNMET_BYTES];
    if (kill == NULL || !has_place(job, kill)) {
        return;
    }
    fault_format(kill, text);
    snprintf(sentence, sizeof(sentence),
             "--fault %s did not strike: %s %u had not come to that step when its phase or the job "
             "ended",
             text, kill->place == FAULT_AT_SHARD ? "shard" : "rank", kill->number);
    tell(context, sentence);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault != kill && has_place(job, fault) && fault_comes_before(kill, fault)) {
            fault_format(fault, text);
            snprintf(sentence, sizeof(sentence),
                     "--fault %s did not strike: a kill that comes before it did not", text);
            tell(context, sentence);
        }
    }
}

/* Joins of workers that were taken in are off the list. One that waits for a kill was told with
 * it. */
static void tell_missed_joins(const struct job *job,
                              void (*tell)(void *context, const char *sentence), void *context)
{
    const struct faults faults = faults_of(job);
    const struct fault *kill = faults_next_kill(&faults);
    char text[FAULT_TEXT_BYTES], sentence[UNMET_BYTES];
    bool has_kill = kill != NULL && has_place(job, kill);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *join = &faults.list[i];
        if (join->kind == FAULT_JOIN && has_place(job, join) &&
            !(has_kill && fault_comes_before(kill, join))) {
            fault_format(join, text);
            snprintf(sentence, sizeof(sentence),
                     "--fault %s did not strike: no worker had come and been taken in when the job "
                     "ended",
                     text);
            tell(context, sentence);
        }
    }
}

/* False: all of its steps were made. */
static bool describe_timeline(const struct results *results, const struct job *job,
                              char ret_sentence[UNMET_BYTES])
{
    const struct trace_window window = job_timeline(job);
    char steps[64];
    uint64_t most = 0;
    for (uint32_t i = 0; i < results->worker_count; i++) {
        most = results->ranks[i].made > most ? results->ranks[i].made : most;
    }
    job_timeline_steps_format(&window, steps, sizeof(steps));
    snprintf(ret_sentence, UNMET_BYTES, "--timeline-steps %s has %s: the job made %llu step%s",
             steps, window.first >= most ? "recorded nothing" : "not recorded all of them",
             (count)most, most == 1 ? "" : "s");
    return job->timeline && window.end != UINT64_MAX && window.end > most;
}

void unmet_tell_optimizer(const struct coordinator *coordinator, const struct job *asked,
                          void (*tell)(void *context, const char *sentence), void *context)
{
    char option[64], sentence[UNMET_BYTES];
    if (coordinator->job->optimizer != OPTIMIZER_AUTO) {
        return; // the job makes them
    }
    if (asked->optimizer != OPTIMIZER_AUTO) {
        snprintf(option, sizeof(option), "--optimizer %s", job_optimizer_text(asked));
    } else if (asked->lr > 0) {
        snprintf(option, sizeof(option), "--lr %g", asked->lr);
    } else {
        return;
    }
    snprintf(
        sentence, sizeof(sentence),
        "%s does nothing here: the program makes the updates, by an optimizer of its own; leave "
        "it out, or let the job make them (updates=\"job\" of DistributedOptimizer)",
        option);
    tell(context, sentence);
}

void unmet_tell(const struct coordinator *coordinator,
                void (*tell)(void *context, const char *sentence), void *context)
{
    const struct job *job = coordinator->job;
    const struct faults faults = faults_of(job);
    char sentence[UNMET_BYTES];
    if (coordinator->verdict != STATUS_OK) {
        return;
    }
    if (!job_is_open(job)) {
        tell_missed(job, tell, context);
        tell_missed_joins(job, tell, context);
        return;
    }
    for (uint32_t i = 0; i < faults.count; i++) {
        if (describe_fault(&coordinator->results, &faults.list[i], sentence)) {
            tell(context, sentence);
        }
    }
    if (describe_timeline(&coordinator->results, job, sentence)) {
        tell(context, sentence);
    }
}

static void add_sentence(void *context, const char *sentence)
{
    json_array_append_new(context, json_string(sentence));
}

json_t *unmet_json(const struct coordinator *coordinator)
{
    json_t *list = json_array();
    unmet_tell(coordinator, add_sentence, list);
    return list;
}
