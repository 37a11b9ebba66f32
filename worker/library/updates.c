/* Which optimizer makes the updates: what the job's options leave to the program. */
#include "common/base/log.h"
#include "worker/library/groups.h"
#include "worker/library/handle.h"

#include <stdio.h>
#include <string.h>

enum status handle_choose_optimizer(struct ringside *ringside)
{
    struct job job = ringside->job;
    char why[OPTION_ERROR_BYTES];
    if (ringside->makes_updates) {
        snprintf(ringside->told, sizeof(ringside->told), "%s", JOB_OPTIMIZER_OWN);
        return STATUS_OK;
    }
    if (job.optimizer != OPTIMIZER_AUTO) {
        return STATUS_OK;
    }
    job.optimizer = OPTIMIZER_MOMENTUM; // as for models of ours
    job.lr = job.lr > 0 ? job.lr : optimizer_default_rate(job.optimizer);
    job_encode_optimizer(&job, ringside->told);
    enum status status = job_take_optimizer(&ringside->job, ringside->told, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s", why);
        link_leave(ringside->link, status, why);
    }
    return status;
}

static bool find_kind(const char *name, enum optimizer_kind *ret_kind)
{
    for (unsigned i = 0; i < OPTIMIZER_KIND_COUNT; i++) {
        if (strcmp(names_optimizers[i].name, name) == 0) {
            *ret_kind = (enum optimizer_kind)i;
            return true;
        }
    }
    return false;
}

/* Whether what an optimizer has not been asked for is 0. */
static bool has_only_its_own(enum optimizer_kind kind, const struct ringside_optimizer *of)
{
    unsigned uses = optimizer_uses_of(kind);
    return ((uses & OPTIMIZER_USES_MOMENTUM) != 0 || of->momentum == 0) &&
           ((uses & OPTIMIZER_USES_BETAS) != 0 || (of->beta1 == 0 && of->beta2 == 0)) &&
           ((uses & OPTIMIZER_USES_DECAY) != 0 || of->decay == 0) &&
           ((uses & OPTIMIZER_USES_EPSILON) != 0 || of->epsilon == 0);
}

/* Gives a job the optimizer that the program wants. NULL, or what is wrong with it. */
static const char *fill_job(const struct ringside_optimizer *of, const struct job *from,
                            struct job *ret_job)
{
    enum optimizer_kind kind;
    if (of == NULL || of->name == NULL || !find_kind(of->name, &kind)) {
        return "there is no such optimizer: ringside.h has their names";
    }
    if (!(of->rate > 0 && of->rate <= 1e6)) {
        return "a rate is above 0, to 1e6";
    }
    if (!has_only_its_own(kind, of)) {
        return "a setting that the optimizer does not use is not 0";
    }
    struct job job = *from;
    const struct schedule schedule = job_schedule(&job, job.steps * job.global_batch);
    job.optimizer = kind;
    job.lr = schedule_is_constant(&schedule) || job.lr <= 0 ? of->rate : job.lr;
    job.settings.weight_decay = of->weight_decay;
    if ((optimizer_uses_of(kind) & OPTIMIZER_USES_MOMENTUM) != 0) {
        job.settings.momentum = of->momentum;
    }
    if ((optimizer_uses_of(kind) & OPTIMIZER_USES_BETAS) != 0) {
        job.settings.beta1 = of->beta1;
        job.settings.beta2 = of->beta2;
    }
    job.settings.decay = of->decay;
    job.settings.epsilon = of->epsilon;
    *ret_job = job;
    return NULL;
}

enum ringside_status ringside_set_optimizer(struct ringside *ringside,
                                            const struct ringside_optimizer *optimizer)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_JOINED | HANDLE_DESCRIBED, "ringside_set_optimizer");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    char why[OPTION_ERROR_BYTES], text[JOB_OPTIMIZER_TEXT_BYTES];
    struct job wanted, told = ringside->asked;
    if (ringside->makes_updates) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_set_optimizer: the program makes the updates itself");
    }
    if (told.optimizer != OPTIMIZER_AUTO) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_set_optimizer: the job has the optimizer %s already",
                             names_optimizers[told.optimizer].name);
    }
    const char *fault = fill_job(optimizer, &told, &wanted);
    if (fault != NULL) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_set_optimizer: %s", fault);
    }
    // What the others read, with the same checks.
    job_encode_optimizer(&wanted, text);
    if (job_take_optimizer(&told, text, why, sizeof(why)) != STATUS_OK) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_set_optimizer: %s", why);
    }
    ringside->job = told;
    handle_groups_destroy(ringside->groups); // of what was said before
    ringside->groups = NULL;
    memcpy(ringside->told, text, sizeof(text));
    ringside->said_rate = optimizer->rate;
    return handle_exit(ringside, STATUS_OK);
}
