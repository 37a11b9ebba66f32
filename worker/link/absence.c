/* Adds up what was reported, and keeps what could not be said. */
#include "worker/link/absence.h"

#include "common/channel/report_sum.h"

#include <stdlib.h>
#include <string.h>

enum status absence_begin(struct absence *absence, uint32_t first, uint32_t count)
{
    absence_finish(absence);
    absence->totals = calloc(count, sizeof(*absence->totals));
    if (absence->totals == NULL) {
        return STATUS_NO_MEMORY;
    }
    absence->is_on = true;
    absence->first = first;
    absence->rank_count = count;
    for (uint32_t i = 0; i < count; i++) {
        absence->totals[i].rank = first + i;
    }
    return STATUS_OK;
}

void absence_finish(struct absence *absence)
{
    free(absence->totals);
    free(absence->periods);
    for (uint32_t i = 0; i < absence->held_count; i++) {
        free(absence->held[i]);
    }
    free(absence->held);
    free(absence->sum);
    *absence = (struct absence){0};
}

/* Makes room for one more. False, and noted: there is none. */
static bool grow(struct absence *absence, void **list, uint32_t count, uint32_t *capacity,
                 size_t size)
{
    if (count < *capacity) {
        return true;
    }
    uint32_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
    void *larger = realloc(*list, wanted * size);
    if (larger == NULL) {
        absence->is_short = true;
        return false;
    }
    *list = larger;
    *capacity = wanted;
    return true;
}

static void note_report(struct absence *absence, const struct message *message)
{
    const struct wire_report *report = message->report;
    if (message->rank - absence->first >= absence->rank_count) {
        return; // which no trainer of ours reports
    }
    if (!report->closes_period) {
        struct absence_report *total = &absence->totals[message->rank - absence->first];
        report_sum_add(&total->report, report);
        total->report.epoch = report->epoch;
        total->report.transports = report->transports;
        total->step = message->step;
        return;
    }
    void *list = absence->periods;
    if (grow(absence, &list, absence->period_count, &absence->period_capacity,
             sizeof(*absence->periods))) {
        absence->periods = list;
        absence->periods[absence->period_count++] =
            (struct absence_report){message->rank, message->step, *report};
    }
}

static void keep_unanswered(struct absence *absence, const struct outbox_entry *entry)
{
    outbox_entry_copy(&absence->unanswered, entry);
    absence->has_unanswered = true;
}

static void note_commit(struct absence *absence, uint64_t step)
{
    absence->is_committing = true;
    absence->next_commit_step = step;
}

void absence_note_told(struct absence *absence, const struct outbox_entry *entry)
{
    enum message_kind kind = entry->message.kind;
    if (!absence->is_on) {
        return;
    }
    if (kind == MESSAGE_COMMIT) {
        note_commit(absence, entry->message.step);
    } else if (kind == MESSAGE_REPORT) {
        note_report(absence, &entry->message);
    } else if (kind == MESSAGE_SNAPSHOT) {
        absence->snapshot_step = entry->message.step;
    } else if (kind == MESSAGE_PASSED || kind == MESSAGE_DONE) {
        keep_unanswered(absence, entry);
    }
}

void absence_hold(struct absence *absence, const struct outbox_entry *entry)
{
    enum message_kind kind = entry->message.kind;
    if (kind == MESSAGE_PASSED || kind == MESSAGE_DONE) {
        keep_unanswered(absence, entry);
    } else if (kind == MESSAGE_COMMIT) {
        note_commit(absence, entry->message.step);
    }
    if (kind != MESSAGE_REPORT && kind != MESSAGE_SNAPSHOT) {
        return;
    }
    void *list = absence->held;
    if (!grow(absence, &list, absence->held_count, &absence->held_capacity,
              sizeof(struct outbox_entry *))) {
        return;
    }
    absence->held = list;
    struct outbox_entry *kept = malloc(sizeof(*kept));
    if (kept == NULL) {
        absence->is_short = true;
        return;
    }
    outbox_entry_copy(kept, entry);
    absence->held[absence->held_count++] = kept;
}

void absence_note_phase(struct absence *absence)
{
    absence->has_unanswered = false;
}

void absence_note_sum(struct absence *absence, const struct wire_sum *sum)
{
    if (!absence->is_on) {
        return;
    }
    if (absence->is_committing) {
        absence->is_committing = false;
        absence->has_commit = true;
        absence->commit_step = absence->next_commit_step;
    }
    double *values = realloc(absence->sum, sum->count * sizeof(*values));
    if (values == NULL) {
        absence->is_short = true;
        return;
    }
    memcpy(values, sum->values, sum->count * sizeof(*values));
    absence->sum = values;
    absence->sum_count = sum->count;
}

static void tell_repeated(const struct absence_report *of,
                          void (*tell)(void *context, const struct message *message), void *context)
{
    struct wire_report report = of->report;
    report.is_repeated = true;
    const struct message message = {
        .kind = MESSAGE_REPORT, .rank = of->rank, .step = of->step, .report = &report, .text = ""};
    tell(context, &message);
}

void absence_tell(struct absence *absence,
                  void (*tell)(void *context, const struct message *message), void *context)
{
    for (uint32_t i = 0; i < absence->rank_count; i++) {
        if (absence->totals[i].report.steps > 0) {
            tell_repeated(&absence->totals[i], tell, context);
        }
    }
    for (uint32_t i = 0; i < absence->period_count; i++) {
        tell_repeated(&absence->periods[i], tell, context);
    }
    for (uint32_t i = 0; i < absence->held_count; i++) {
        tell(context, &absence->held[i]->message);
        absence_note_told(absence, absence->held[i]);
        free(absence->held[i]);
    }
    absence->held_count = 0;
    if (absence->is_committing) {
        const struct message commit = {.kind = MESSAGE_COMMIT,
                                       .rank = absence->first,
                                       .step = absence->next_commit_step,
                                       .text = ""};
        tell(context, &commit);
    }
}

const struct message *absence_unanswered(const struct absence *absence)
{
    return absence->has_unanswered ? &absence->unanswered.message : NULL;
}
