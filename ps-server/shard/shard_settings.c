/* Keeps the settings that pushes say until their update, and compares those of several workers. */
#include "ps-server/shard/shard_settings.h"

#include "common/optimizer/groups.h"

#include <stdlib.h>
#include <string.h>

// By which the same setting may differ, as a share: workers compute it on different machines.
#define TOLERANCE 1e-6

static bool is_together(const struct shard *shard)
{
    return !shard_is_unsynchronised(shard);
}

static struct told *told_of(const struct shard *shard, uint32_t unit, uint32_t rank)
{
    return &shard->told[is_together(shard) ? unit : rank];
}

static enum status set_groups(struct shard *shard)
{
    uint32_t count = shard->config.layout.bucket_count;
    struct span *spans = calloc(count, sizeof(*spans));
    if (spans == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = shard->parts[i].span;
    }
    enum status status = optimizer_set_groups(shard->optimizer, shard->config.groups, spans, count);
    free(spans);
    return status;
}

enum status shard_settings_create(struct shard *shard)
{
    uint32_t places = is_together(shard) ? shard->unit_count : shard->config.workers;
    enum status status = shard->config.groups != NULL ? set_groups(shard) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t count = optimizer_group_count(shard->optimizer);
    shard->groups = calloc(count, sizeof(*shard->groups));
    shard->told = calloc(places, sizeof(*shard->told));
    shard->told_groups = calloc((size_t)places * count, sizeof(*shard->told_groups));
    if (shard->groups == NULL || shard->told == NULL || shard->told_groups == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(shard->groups, optimizer_group_rows(shard->optimizer), count * sizeof(*shard->groups));
    for (uint32_t i = 0; i < places; i++) {
        shard->told[i].groups = shard->told_groups + (size_t)i * count;
    }
    return STATUS_OK;
}

void shard_settings_destroy(struct shard *shard)
{
    free(shard->groups);
    free(shard->told);
    free(shard->told_groups);
}

/* Whether a push can have such settings. */
static bool can_have(const struct shard *shard, const struct optimizer_groups *groups)
{
    if (groups->group_count != optimizer_group_count(shard->optimizer) || groups->run_count > 0) {
        return false;
    }
    for (uint32_t i = 0; i < groups->group_count; i++) {
        if (!optimizer_group_is_valid(&groups->groups[i], shard->config.optimizer)) {
            return false;
        }
    }
    return true;
}

/* Without settings a push has those of the config. */
static struct optimizer_groups said_by(const struct shard *shard, const struct message *push)
{
    if (push->groups != NULL) {
        return *push->groups;
    }
    return (struct optimizer_groups){.groups = shard->groups,
                                     .group_count = optimizer_group_count(shard->optimizer),
                                     .is_relative = true};
}

static void note(struct told *told, const struct optimizer_groups *said, const struct message *push)
{
    told->rank = push->rank;
    told->has_settings = push->groups != NULL;
    told->is_relative = said->is_relative;
    memcpy(told->groups, said->groups, said->group_count * sizeof(*told->groups));
}

/* Rates of a schedule that are constant are numbers like any other. */
static void make_absolute(const struct shard *shard, struct told *told)
{
    const struct schedule *schedule = &shard->config.schedule;
    if (!told->has_settings || !told->is_relative || !schedule_is_constant(schedule)) {
        return;
    }
    for (uint32_t i = 0; i < optimizer_group_count(shard->optimizer); i++) {
        told->groups[i].rate *= schedule_rate(schedule, 0);
    }
    told->is_relative = false;
}

/* Whether a worker has said something else for this step than those before it. */
static bool disputes(struct shard *shard, const struct told *told,
                     const struct optimizer_groups *said, const struct message *push)
{
    struct shard_dispute *dispute = &shard->dispute;
    const struct optimizer_groups before = {
        .groups = told->groups, .group_count = said->group_count, .is_relative = told->is_relative};
    double rate = schedule_rate(&shard->config.schedule, shard->config.marks.first + push->step);
    if (!optimizer_groups_differ((struct optimizer_side){said, said->is_relative ? rate : 1},
                                 (struct optimizer_side){&before, before.is_relative ? rate : 1},
                                 shard->config.optimizer, TOLERANCE, &dispute->differs)) {
        return false;
    }
    dispute->rank = push->rank;
    dispute->other = told->rank;
    dispute->step = shard->config.marks.first + push->step;
    shard->has_dispute = true;
    shard->fault = STATUS_MISMATCH;
    return true;
}

enum status shard_settings_hear(struct shard *shard, const struct part *part,
                                const struct message *push)
{
    struct told *told = told_of(shard, part->unit, push->rank);
    if (push->groups != NULL && !can_have(shard, push->groups)) {
        return STATUS_MALFORMED;
    }
    const struct optimizer_groups said = said_by(shard, push);
    if (is_together(shard) && told->heard > 0) {
        if (disputes(shard, told, &said, push)) {
            return STATUS_MALFORMED;
        }
        if (push->rank > told->rank) { // the lowest rank's settings hold, whoever comes first
            told->heard++;
            return STATUS_OK;
        }
    }
    note(told, &said, push);
    told->heard++;
    return STATUS_OK;
}

double shard_settings_use(struct shard *shard, const struct unit *unit, uint32_t rank)
{
    const struct schedule *schedule = &shard->config.schedule;
    struct told *told = told_of(shard, (uint32_t)(unit - shard->units), rank);
    if (told->has_settings || shard->has_told) {
        make_absolute(shard, told);
        optimizer_change_groups(shard->optimizer,
                                told->has_settings ? told->groups : shard->groups);
        shard->has_told = told->has_settings;
    }
    return told->has_settings && !told->is_relative
               ? 1
               : schedule_rate(schedule, shard_rate_step(shard, unit));
}

double shard_settings_rate(const struct shard *shard, double learning_rate)
{
    return learning_rate * optimizer_group_rows(shard->optimizer)[0].rate;
}

void shard_settings_end(struct shard *shard, const struct unit *unit)
{
    if (is_together(shard)) {
        shard->told[unit - shard->units].heard = 0;
    }
}

const struct shard_dispute *shard_dispute(const struct shard *shard)
{
    return shard->has_dispute ? &shard->dispute : NULL;
}
