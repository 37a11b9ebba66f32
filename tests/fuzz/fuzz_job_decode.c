/* Fuzzes the text of a job, as a peer sends it. What is taken is resolved, comes back from its own
 * text as the same bytes, and its numbers are safe to train with; what is refused has a reason. */
#include "common/job/job.h"
#include "common/job/job_text.h"
#include "common/job/phases.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_text(const struct job *job)
{
    static char text[JOB_TEXT_BYTES], again[JOB_TEXT_BYTES];
    char error[OPTION_ERROR_BYTES];
    struct job back;
    enum status status = job_encode(job, text, sizeof(text));
    assert(status == STATUS_OK);
    status = job_decode(text, &back, error, sizeof(error));
    assert(status == STATUS_OK);
    assert(memcmp(job, &back, sizeof(back)) == 0);
    status = job_encode(&back, again, sizeof(again));
    assert(status == STATUS_OK && strcmp(text, again) == 0);
}

static void check_numbers(const struct job *job)
{
    uint64_t images = 0;
    for (uint32_t rank = 0; rank < job->workers; rank++) {
        uint32_t share = job_batch_of(job, rank);
        assert(share > 0 && share <= job->batch);
        images += share;
    }
    assert(images == job->global_batch);
    static const uint64_t counts[] = {0, 1, 60000, UINT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct schedule schedule = job_schedule(job, counts[i]);
        bool has_rate = schedule.base_rate > 0 || job->optimizer == OPTIMIZER_AUTO;
        assert(has_rate && schedule.start_rate >= 0 && schedule.period_steps > 0);
        assert(schedule.total_steps == job_total_steps(job, counts[i]));
    }
}

/* Phases follow on each other from the first step to the last. */
static void check_phases(const struct job *job)
{
    static const uint64_t counts[] = {0, 60000, UINT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct phases phases;
        char error[OPTION_ERROR_BYTES];
        if (phases_of(job, counts[i], &phases, error, sizeof(error)) != STATUS_OK) {
            continue;
        }
        uint64_t step = 0;
        for (uint32_t k = 0; k < phases.count; k++) {
            const struct marks *marks = &phases.list[k].marks;
            assert(marks->first == step && marks->end > step);
            step = marks->end;
            assert(marks_step(marks, marks_count(marks)) == step);
        }
        assert(step == job_total_steps(job, counts[i]));
    }
}

static void check_optimizer(const struct job *job)
{
    struct optimizer *optimizer;
    enum status status = optimizer_create(job->optimizer, &job->settings, 1, &optimizer);
    if (job->optimizer == OPTIMIZER_AUTO) { // of a program of its own, which says more
        assert(job_is_external(job) && status == STATUS_INVALID);
        return;
    }
    assert(status == STATUS_OK);
    optimizer_destroy(optimizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, bytes, size);
    text[size] = '\0';
    struct job job;
    char error[OPTION_ERROR_BYTES] = "";
    if (job_decode(text, &job, error, sizeof(error)) == STATUS_OK) {
        check_text(&job);
        check_numbers(&job);
        check_phases(&job);
        check_optimizer(&job);
    } else {
        assert(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
    }
    free(text);
    return 0;
}
