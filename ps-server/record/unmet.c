/* Compares what options ask for with what a program of one's own has done. */
#include "ps-server/record/unmet.h"

#include "common/job/faults.h"
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
    snprintf(ret_sentence, UNMET_BYTES, "--fault %s never came: %s made %llu steps", text, who,
             (count)made);
    return fault->step > made;
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
    snprintf(ret_sentence, UNMET_BYTES, "--timeline-steps %s has %s: the job made %llu steps",
             steps, window.first >= most ? "recorded nothing" : "not recorded all of them",
             (count)most);
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
    if (!job_is_open(job) || coordinator->verdict != STATUS_OK) {
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
