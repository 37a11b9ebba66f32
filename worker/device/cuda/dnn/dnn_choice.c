/* Which engine is taken for a convolution: see dnn_choices.h. */
#include "common/base/clock.h"
#include "worker/device/cuda/dnn/dnn_choices.h"
#include "worker/device/cuda/dnn/dnn_key.h"
#include "worker/device/cuda/dnn/dnn_timing.h"
#include "worker/device/cuda/host/plan_cache.h"
#include "worker/device/cuda/host/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TELL_MS 5000 // between lines about timing

/* A convolution whose engine is wanted. */
struct question {
    const struct dnn_target *target;
    const struct dnn_conv *conv;
    enum dnn_pass pass;
    char text[DNN_QUESTION_BYTES];
};

/* What was found. */
struct answer {
    struct dnn_engine engine;
    struct dnn_plan plan;
};

static bool plan(const struct question *question, const struct dnn_engine *engine,
                 struct answer *ret_answer, char failure[DNN_FAILURE_BYTES])
{
    ret_answer->engine = *engine;
    return dnn_plan_engine(question->target, question->conv, question->pass, engine,
                           &ret_answer->plan, failure);
}

/* ==========================================================================================
 * Choices that were made before
 * ========================================================================================== */

/* That the engine which was given (NULL: none was) is not taken. One line for who does not look
 * closer. */
static void say_missed(struct dnn_choices *choices, const struct question *question,
                       const char *engine, const char *failure)
{
    void (*say)(const char *format, ...) = choices->missed_count++ == 0 ? report_warn : report_info;
    say("this GPU chooses by itself for the convolution '%s', because the job's engine for it "
        "%s%s%s%s%s",
        question->text, engine != NULL ? "cannot be taken here: " : "is not known",
        engine != NULL ? engine : "", failure[0] != '\0' ? ", " : "", failure,
        choices->missed_count == 1 ? " (--log-level info names others)" : "");
}

/* Looks among the device's choices, and those that it was given. False: there is none that can be
 * planned. *ret_is_none: it was chosen that there is none. */
static bool follow(const struct question *question, struct answer *ret_answer, bool *ret_is_none)
{
    struct dnn_choices *choices = question->target->choices;
    char failure[DNN_FAILURE_BYTES] = "";
    struct dnn_engine engine;
    uint32_t turn = 0;
    *ret_is_none = false;
    while (choices != NULL && dnn_choices_find(choices, question->text, turn, &engine)) {
        if (engine.text[0] == '\0') {
            *ret_is_none = true;
            return false;
        }
        if (plan(question, &engine, ret_answer, failure)) {
            return true;
        }
        turn++;
    }
    if (choices != NULL && choices->given != NULL && choices->given[0] != '\0') {
        say_missed(choices, question, turn > 0 ? engine.text : NULL, failure);
    }
    return false;
}

static bool write_choice_key(const struct question *question, char ret_key[DNN_KEY_BYTES])
{
    const struct dnn_choices *choices = question->target->choices;
    bool is_timed = choices != NULL && choices->timing_ms_max > 0;
    return dnn_write_key(question->target, question->conv, question->pass,
                         is_timed ? "the engine, timed" : "the engine", ret_key);
}

/* The choice of an earlier job. */
static bool remember(const struct question *question, struct answer *ret_answer)
{
    char key[DNN_KEY_BYTES], failure[DNN_FAILURE_BYTES] = "";
    char *text = write_choice_key(question, key) ? plan_cache_read(key) : NULL;
    struct dnn_engine engine;
    bool is_found = text != NULL && snprintf(engine.text, sizeof(engine.text), "%s", text) <
                                        (int)sizeof(engine.text);
    free(text);
    return is_found && plan(question, &engine, ret_answer, failure);
}

static void keep(const struct question *question, const struct answer *answer)
{
    char key[DNN_KEY_BYTES];
    if (write_choice_key(question, key)) {
        plan_cache_write(key, answer->engine.text);
    }
}

/* ==========================================================================================
 * New choices
 * ========================================================================================== */

/* Whether there is a mind to time, and time left for it. Says what is not done, once. */
static bool may_time(const struct question *question)
{
    struct dnn_choices *choices = question->target->choices;
    if (choices == NULL || choices->timing_ms_max == 0 || question->target->handle == NULL) {
        return false;
    }
    if (question->target->gpu == NULL || !plan_cache_keeps()) {
        report_warn("engines are not timed, but taken as cuDNN proposes them: there is no folder "
                    "to keep the choice in (RINGSIDE_CACHE), and the next job might choose "
                    "others");
        choices->timing_ms_max = 0;
        return false;
    }
    if (choices->spent_ms >= choices->timing_ms_max) {
        return false;
    }
    if (choices->timed_count == 0) {
        report_warn("cuDNN's engines are timed for each convolution, once on this GPU: this takes "
                    "up to %llu s",
                    (unsigned long long)(choices->timing_ms_max / 1000));
    }
    return true;
}

/* Counts the time, and says how it goes. */
static void note_timing(struct dnn_choices *choices, uint64_t begin_ms)
{
    choices->spent_ms += clock_now_ms() - begin_ms;
    choices->timed_count++;
    bool is_over = choices->spent_ms >= choices->timing_ms_max;
    if (is_over) {
        report_warn("the time for timing engines is up after %u convolutions: the others take what "
                    "cuDNN proposes, in later jobs as well",
                    choices->timed_count);
    } else if (choices->spent_ms - choices->told_ms >= TELL_MS) {
        report_warn("engines of %u convolutions are timed, in %.0f s", choices->timed_count,
                    (double)choices->spent_ms / 1000);
        choices->told_ms = choices->spent_ms;
    }
}

/* Plans of the engines that the library puts first. */
static void enter(const struct question *question, struct dnn_proposals *proposals,
                  struct dnn_contest *ret_contest)
{
    const struct dnn_choices *choices = question->target->choices;
    uint64_t left_ms = choices->timing_ms_max - choices->spent_ms, begin_ms = clock_now_ms();
    ret_contest->count = 0;
    for (uint32_t i = 0; i < proposals->count && ret_contest->count < DNN_TIMED_MAX; i++) {
        struct answer answer;
        if ((ret_contest->count > 0 && clock_now_ms() - begin_ms >= left_ms) ||
            !plan(question, &proposals->list[i], &answer, proposals->failure)) {
            continue;
        }
        if (answer.plan.workspace_bytes > DNN_TIMED_WORKSPACE_MAX) {
            dnn_plan_destroy(&answer.plan);
            continue;
        }
        ret_contest->engines[ret_contest->count] = answer.engine;
        ret_contest->plans[ret_contest->count++] = answer.plan;
    }
}

static bool choose_fastest(const struct question *question, struct dnn_proposals *proposals,
                           struct answer *ret_answer)
{
    struct dnn_contest contest;
    uint64_t begin_ms = clock_now_ms();
    dnn_propose(question->target, question->conv, question->pass, DNN_LISTS_BEST, proposals);
    enter(question, proposals, &contest);
    uint32_t best = dnn_contest_run(question->target, question->conv, question->pass, &contest);
    for (uint32_t i = 0; i < contest.count; i++) {
        if (i != best) {
            dnn_plan_destroy(&contest.plans[i]);
        }
    }
    note_timing(question->target->choices, begin_ms);
    if (best == contest.count) {
        return false;
    }
    *ret_answer = (struct answer){contest.engines[best], contest.plans[best]};
    return true;
}

static bool choose_first(const struct question *question, struct dnn_proposals *proposals,
                         struct answer *ret_answer)
{
    static const enum dnn_lists lists[] = {DNN_LIST_BEST, DNN_LIST_FALLBACKS};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        dnn_propose(question->target, question->conv, question->pass, lists[i], proposals);
        for (uint32_t k = 0; k < proposals->count; k++) {
            if (plan(question, &proposals->list[k], ret_answer, proposals->failure)) {
                return true;
            }
        }
    }
    return false;
}

/* Why nothing was found. */
static void explain(const struct dnn_target *target, const struct dnn_proposals *proposals,
                    char *ret_why, size_t why_size)
{
    const char *failure = proposals->failure;
    if (proposals->proposed == 0) {
        snprintf(ret_why, why_size, "it proposes no engine%s%s", failure[0] != '\0' ? ": " : "",
                 failure);
        return;
    }
    snprintf(ret_why, why_size, "of %lld engines that it proposes, %lld %s%s%s",
             (long long)proposals->proposed, (long long)proposals->refused,
             target->allows_nondeterministic
                 ? "round more than --precision allows"
                 : "round more than --precision allows or do not repeat their bits "
                   "(--allow-nondeterministic admits these)",
             failure[0] != '\0' ? ", others cannot be planned: " : "", failure);
}

static enum status choose(const struct question *question, struct answer *ret_answer, char *ret_why,
                          size_t why_size)
{
    struct dnn_proposals *proposals = calloc(1, sizeof(*proposals));
    if (proposals == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool is_found = may_time(question) && choose_fastest(question, proposals, ret_answer);
    is_found = is_found || choose_first(question, proposals, ret_answer);
    if (!is_found) {
        explain(question->target, proposals, ret_why, why_size);
    }
    free(proposals);
    return is_found ? STATUS_OK : STATUS_UNSUPPORTED;
}

/* ==========================================================================================
 * Interface
 * ========================================================================================== */

static enum status find(const struct question *question, struct answer *ret_answer, char *ret_why,
                        size_t why_size)
{
    bool is_none = false;
    if (follow(question, ret_answer, &is_none) || (!is_none && remember(question, ret_answer))) {
        return STATUS_OK;
    }
    if (is_none) {
        snprintf(ret_why, why_size, "none was found for it before, in this job");
        return STATUS_UNSUPPORTED;
    }
    enum status status = choose(question, ret_answer, ret_why, why_size);
    if (status == STATUS_OK) {
        keep(question, ret_answer);
    }
    return status;
}

enum status dnn_plan_conv(const struct dnn_target *target, const struct dnn_conv *conv,
                          enum dnn_pass pass, struct dnn_plan *ret_plan, char *ret_why,
                          size_t why_size)
{
    struct question question = {.target = target, .conv = conv, .pass = pass};
    struct answer answer;
    *ret_plan = (struct dnn_plan){0};
    dnn_write_question(target, conv, pass, question.text);
    enum status status = find(&question, &answer, ret_why, why_size);
    if (status == STATUS_OK) {
        dnn_keep_plan(target, conv, pass, &answer.engine, &answer.plan);
        *ret_plan = answer.plan;
    }
    if (target->choices != NULL && (status == STATUS_OK || status == STATUS_UNSUPPORTED)) {
        dnn_choices_note(target->choices, question.text,
                         status == STATUS_OK ? &answer.engine : NULL);
    }
    return status;
}
