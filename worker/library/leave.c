/* What a program tells of its training, and how it leaves. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/vector/digest.h"
#include "worker/library/groups.h"
#include "worker/library/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_BYTES 256

#define RUNNING (HANDLE_BETWEEN | HANDLE_FORWARD | HANDLE_GRADIENTS | HANDLE_ENDED)

enum ringside_status ringside_counters(struct ringside *ringside,
                                       struct ringside_counters *ret_counters)
{
    enum ringside_status entered = handle_enter(ringside, RUNNING, "ringside_counters");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    *ret_counters = (struct ringside_counters){
        .steps = ringside->step,
        .wait_seconds = (double)ringside->wait_ns / 1e9,
        .wire_seconds = (double)ringside->wire_ns / 1e9,
        .staleness = ringside->staleness,
        .staleness_mean = ringside->step > 0 ? ringside->staleness_sum / (double)ringside->step : 0,
    };
    link_traffic(ringside->link, &ret_counters->bytes_sent, &ret_counters->bytes_received);
    return handle_exit(ringside, STATUS_OK);
}

enum ringside_status ringside_report(struct ringside *ringside,
                                     const struct ringside_report *report)
{
    enum ringside_status entered = handle_enter(ringside, RUNNING, "ringside_report");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    bool has_gradients = ringside->step > 0 || ringside->state == HANDLE_GRADIENTS;
    if (report->images > 0 && !has_gradients) {
        return handle_refuse(ringside, RINGSIDE_MISUSE,
                             "ringside_report: images are of a step whose gradients are begun, and "
                             "there is none yet");
    }
    if (report->test_correct > report->test_images) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_report: test_correct is more than test_images");
    }
    ringside->interval.images += report->images;
    if (report->images > 0) {
        ringside->interval.loss_sum += report->loss * (double)report->images;
    }
    if (report->test_images > 0) { // which goes when the next step shows that no more comes
        ringside->period.test_images = report->test_images;
        ringside->period.test_correct = report->test_correct;
        ringside->period.test_loss_sum = report->test_loss * (double)report->test_images;
        if (ringside->state == HANDLE_FORWARD) {
            ringside->step_began_ns = clock_now_ns();
        }
    }
    return handle_exit(ringside, STATUS_OK);
}

static void add_to_period(const struct wire_report *interval, struct wire_report *period)
{
    period->steps += interval->steps;
    period->images += interval->images;
    period->loss_sum += interval->loss_sum;
    period->staleness_sum += interval->staleness_sum;
    period->total_ns += interval->total_ns;
    period->compute_ns += interval->compute_ns;
    period->exchange_wait_ns += interval->exchange_wait_ns;
    period->wire_ns += interval->wire_ns;
    period->rate = interval->rate;
}

/* Sends what was counted of the steps since the last time. */
static void report_interval(struct ringside *ringside)
{
    struct wire_report *interval = &ringside->interval;
    uint64_t sent, received;
    if (interval->steps == 0) {
        return;
    }
    link_traffic(ringside->link, &sent, &received);
    interval->bytes_sent = sent - ringside->sent_before;
    interval->bytes_received = received - ringside->received_before;
    ringside->sent_before = sent;
    ringside->received_before = received;
    if (interval->images > 0) {
        timeline_count(&ringside->timeline, TRACE_IMAGES_PER_SECOND, ringside->step,
                       (double)interval->images * 1e9 / (double)(interval->total_ns + 1));
    }
    add_to_period(interval, &ringside->period);
    link_report(ringside->link, ringside->rank, ringside->step, interval);
    *interval = (struct wire_report){0};
}

/* Ends what led to an evaluation, or to the job's end. */
static void close_period(struct ringside *ringside)
{
    struct wire_report *period = &ringside->period;
    report_interval(ringside);
    if (period->images > 0 || period->test_images > 0) {
        period->closes_period = true;
        link_report(ringside->link, ringside->rank, ringside->step, period);
    }
    ringside->images += period->images;
    ringside->total_ns += period->total_ns;
    *period = (struct wire_report){0};
}

void handle_report_step(struct ringside *ringside)
{
    if (ringside->period.test_images > 0) {
        close_period(ringside);
    } else if (ringside->step % ringside->job.report_every == 0) {
        report_interval(ringside);
    }
}

void handle_report_commit(struct ringside *ringside)
{
    if (ringside->exchange == NULL) {
        return; // it has not started
    }
    if (ringside->period.test_images > 0) {
        close_period(ringside);
    } else {
        report_interval(ringside);
    }
}

/* All processes have had their steps: the reports, then the end of the job. */
static enum status finish(struct ringside *ringside)
{
    char digest[DIGEST_TEXT_BYTES];
    close_period(ringside);
    digest_floats(ringside->vectors.params, ringside->layout.value_count, digest);
    const struct wire_report done = {
        .steps = ringside->step,
        .warm_images = ringside->images,
        .warm_ns = ringside->total_ns,
    };
    link_done(ringside->link, ringside->step, &done, digest);
    return link_verdict(ringside->link);
}

/* A job whose length nobody knew ends when all processes have come here. */
static enum status end_open(struct ringside *ringside)
{
    double nothing = 0;
    enum status status = handle_settle(ringside);
    if (status == STATUS_OK && ringside->exchange->options.is_unsynchronised) {
        status = link_sum(ringside->link, &nothing, 1); // no update comes behind it
        status = status == STATUS_OK ? exchange_pull(ringside->exchange, 0) : status;
    }
    return status == STATUS_OK ? finish(ringside) : status;
}

static void close_handle(struct ringside *ringside)
{
    team_destroy(ringside->team);
    free(ringside->all_ranks);
    link_destroy(ringside->link);
    timeline_close(&ringside->timeline);
    security_close(&ringside->security);
    if (!ringside->keeps_vectors) {
        flat_vectors_finish(&ringside->vectors);
    }
    optimizer_destroy(ringside->optimizer);
    for (uint32_t i = 0; i < OPTIMIZER_STATES_MAX; i++) {
        free(ringside->kept[i]);
        free(ringside->drawn[i]);
    }
    handle_groups_destroy(ringside->groups);
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        free(ringside->tensors[i].name);
    }
    free(ringside->tensors);
    free(ringside->spans);
    pthread_mutex_destroy(&ringside->turn);
    free(ringside);
    log_divert(NULL);
    handle_unclaim();
}

enum ringside_status ringside_leave(struct ringside *ringside)
{
    if (ringside == NULL) {
        return RINGSIDE_OK;
    }
    pthread_mutex_lock(&ringside->turn);
    enum ringside_status is = RINGSIDE_OK;
    bool is_open = job_is_open(&ringside->job) &&
                   (ringside->state == HANDLE_BETWEEN || ringside->state == HANDLE_FORWARD);
    if (ringside->state == HANDLE_ENDED || is_open) {
        together_say(ringside, TEAM_LEFT);
        enum status status = is_open ? end_open(ringside) : finish(ringside);
        // The others go on from their commit, without this one, which has made its steps.
        status = status == STATUS_AGAIN ? STATUS_OK : status;
        is = status == STATUS_OK ? RINGSIDE_OK : handle_fail(ringside->link, status);
    } else if (ringside->state == HANDLE_BROKEN) {
        is = ringside->broken;
    } else {
        link_leave(ringside->link, STATUS_UNREACHABLE,
                   "its program left the job before the job's end");
    }
    pthread_mutex_unlock(&ringside->turn);
    close_handle(ringside);
    return is;
}

void ringside_fail(struct ringside *ringside, const char *why)
{
    char text[WHY_BYTES];
    if (ringside == NULL) {
        return;
    }
    pthread_mutex_lock(&ringside->turn);
    if (ringside->state != HANDLE_BROKEN) {
        snprintf(text, sizeof(text), "its program failed: %.200s", why);
        printable_make(text, strlen(text));
        link_leave(ringside->link, STATUS_UNREACHABLE, text);
    }
    pthread_mutex_unlock(&ringside->turn);
    close_handle(ringside);
}
