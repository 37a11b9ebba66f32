/* Writes the sentences at the top of a report, by a rule for each. */
#include "deploy/page/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 1024
#define NAMED_MAX      4 // settings that a sentence names

// By how much the means of single runs must differ before it is said.
#define RATE_LEAST_RATIO     1.1
#define ACCURACY_LEAST_RATIO 1.02

// A part of a step that explains more than so much of the difference between two.
#define SHARE_LEAST 0.5

/* The text so far; a sentence that does not fit is left out. */
struct text {
    char *at;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    char sentence[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= sizeof(sentence) ||
        text->used + (size_t)size + 2 > ANSWER_BYTES) {
        return;
    }
    text->used += (size_t)snprintf(text->at + text->used, ANSWER_BYTES - text->used, "%s%s",
                                   text->used > 0 ? "\n" : "", sentence);
}

/* "a", "a and b", "a, b and c", "a, b, c and 7 more" */
struct names {
    char text[SENTENCE_BYTES / 2];
    size_t count;
    char last[SENTENCE_BYTES / 4];
};

static void add_name(struct names *names, const char *name)
{
    size_t used = strlen(names->text);
    if (names->count > 0 && names->count < NAMED_MAX) {
        snprintf(names->text + used, sizeof(names->text) - used, "%s%s", used > 0 ? "; " : "",
                 names->last);
    }
    if (names->count < NAMED_MAX) {
        snprintf(names->last, sizeof(names->last), "%s", name);
    }
    names->count++;
}

static const char *end_names(struct names *names)
{
    size_t used = strlen(names->text);
    const char *between = used > 0 ? " and " : "";
    if (names->count > NAMED_MAX) {
        snprintf(names->text + used, sizeof(names->text) - used, "%s%s and %zu more",
                 used > 0 ? "; " : "", names->last, names->count - NAMED_MAX);
    } else {
        snprintf(names->text + used, sizeof(names->text) - used, "%s%s", between, names->last);
    }
    return names->text;
}

bool answer_differs(const struct statistics *a, const struct statistics *b, double least_ratio)
{
    if (a->count == 0 || b->count == 0 || a->mean <= 0 || b->mean <= 0) {
        return false;
    }
    if (a->count > 1 && b->count > 1) {
        return fabs(a->mean - b->mean) > a->half_width + b->half_width;
    }
    return fmax(a->mean, b->mean) / fmin(a->mean, b->mean) >= least_ratio;
}

/* ==========================================================================================
 * Ends, bits
 * ========================================================================================== */

static void say_ends(const struct answer_input *input, struct text *text)
{
    struct names diverged = {.count = 0}, failed = {.count = 0}, missing = {.count = 0};
    size_t completed = 0;
    for (size_t i = 0; i < input->count; i++) {
        const struct answer_setting *setting = &input->settings[i];
        completed += setting->completed;
        if (setting->diverged > 0) {
            add_name(&diverged, setting->label);
        }
        if (setting->failed > 0) {
            add_name(&failed, setting->label);
        }
        if (setting->completed + setting->diverged + setting->failed < setting->planned) {
            add_name(&missing, setting->label);
        }
    }
    if (completed == 0) {
        say(text, "No run was completed.");
    }
    if (diverged.count > 0) {
        say(text, "Training diverged with %s.", end_names(&diverged));
    }
    if (failed.count > 0) {
        say(text, "%s failed, for reasons given below.", end_names(&failed));
    }
    if (missing.count > 0) {
        say(text, "Not all runs of %s have been made.", end_names(&missing));
    }
}

/* The settings of a family, for the first of them. */
struct family {
    struct names names;
    bool is_first, is_same;
};

static struct family family_of(const struct answer_input *input, size_t first)
{
    struct family family = {.is_first = true, .is_same = true};
    const struct answer_setting *setting = &input->settings[first];
    for (size_t i = 0; i < input->count; i++) {
        const struct answer_setting *other = &input->settings[i];
        if (other->digest[0] == '\0' || other->family != setting->family) {
            continue;
        }
        family.is_first = family.is_first && i >= first;
        family.is_same = family.is_same && strcmp(setting->digest, other->digest) == 0;
        add_name(&family.names, other->label);
    }
    family.is_first = family.is_first && setting->digest[0] != '\0' && family.names.count > 1;
    return family;
}

/* Names the designs where there is one family; of several, those that break the rule. */
static void say_bits(const struct answer_input *input, struct text *text)
{
    struct family one = {.is_first = false};
    size_t same = 0;
    for (size_t i = 0; i < input->count; i++) {
        struct family family = family_of(input, i);
        if (family.is_first && !family.is_same) {
            say(text, "%s end with different bits, which they should not.",
                end_names(&family.names));
        } else if (family.is_first) {
            same++;
            one = family;
        }
    }
    if (same == 1) {
        say(text, "%s end with the same bits.", end_names(&one.names));
    } else if (same > 1) {
        say(text, "Settings that must end with the same bits do so, in each of %zu comparisons.",
            same);
    }
}

/* ==========================================================================================
 * Speed
 * ========================================================================================== */

/* The settings with the largest and the smallest mean of a measure, among those with so many
 * workers (0: any). False unless there are two. */
static bool find_extremes(const struct answer_input *input, size_t offset, unsigned workers,
                          const struct answer_setting **ret_most,
                          const struct answer_setting **ret_least, size_t *ret_count)
{
    const struct answer_setting *most = NULL, *least = NULL;
    double largest = 0, smallest = 0;
    size_t count = 0;
    for (size_t i = 0; i < input->count; i++) {
        const struct answer_setting *setting = &input->settings[i];
        const struct statistics *value =
            (const struct statistics *)(const void *)((const char *)setting + offset);
        bool counts = workers == 0 || workers == setting->workers;
        if (!counts || value->count == 0 || value->mean <= 0) {
            continue;
        }
        count++;
        if (most == NULL || value->mean > largest) {
            most = setting;
            largest = value->mean;
        }
        if (least == NULL || value->mean < smallest) {
            least = setting;
            smallest = value->mean;
        }
    }
    *ret_most = most;
    *ret_least = least;
    *ret_count = count;
    return count > 1 && most != least;
}

/* The part of a step that most of the slower setting's time went to; NULL if none explains it, or
 * the two do not divide a step alike. */
static const char *find_loss(const struct answer_setting *fast, const struct answer_setting *slow,
                             double *ret_ms)
{
    const struct {
        const char *name;
        const struct statistics *fast, *slow;
    } parts[] = {
        {"computing", &fast->compute_ms, &slow->compute_ms},
        {"exchange wait", &fast->exchange_ms, &slow->exchange_ms},
        {"input wait", &fast->input_ms, &slow->input_ms},
    };
    double total = 0, largest = 0;
    size_t which = 0;
    if (fast->workers != slow->workers || fast->compute_ms.count == 0 ||
        slow->compute_ms.count == 0) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        double more = parts[i].slow->mean - parts[i].fast->mean;
        total += more;
        which = more > largest ? i : which;
        largest = more > largest ? more : largest;
    }
    bool is_sure = answer_differs(parts[which].slow, parts[which].fast, RATE_LEAST_RATIO);
    *ret_ms = largest;
    return total > 0 && largest > SHARE_LEAST * total && is_sure ? parts[which].name : NULL;
}

static unsigned most_workers(const struct answer_input *input)
{
    unsigned most = 0;
    for (size_t i = 0; i < input->count; i++) {
        bool counts = input->settings[i].rate.count > 0;
        most = counts && input->settings[i].workers > most ? input->settings[i].workers : most;
    }
    return most;
}

static void say_speed(const struct answer_input *input, struct text *text)
{
    const struct answer_setting *fast, *slow;
    size_t count;
    double more_ms;
    // With different numbers of workers, scaling is what there is to say, as far as it is known.
    size_t offset = offsetof(struct answer_setting, rate);
    if (!find_extremes(input, offset, most_workers(input), &fast, &slow, &count) &&
        (input->design_count > 0 || !find_extremes(input, offset, 0, &fast, &slow, &count))) {
        return;
    }
    bool is_repeated = fast->rate.count > 1 && slow->rate.count > 1;
    if (!answer_differs(&fast->rate, &slow->rate, RATE_LEAST_RATIO)) {
        say(text, "%s show no difference in speed between %s and %s%s.",
            is_repeated ? "These runs" : "Single runs this close", fast->label, slow->label,
            count > 2 ? ", the fastest and the slowest" : "");
        return;
    }
    const char *loss = find_loss(fast, slow, &more_ms);
    double ratio = fast->rate.mean / slow->rate.mean;
    char tail[SENTENCE_BYTES / 4] = "";
    if (loss != NULL) {
        snprintf(tail, sizeof(tail), "; what %.120s loses is %s (%.3g ms more in a step)",
                 slow->label, loss, more_ms);
    }
    say(text, "%s is %.*f times as fast as %s%s%s%s.", fast->label, ratio < 10 ? 2 : 0, ratio,
        slow->label, count > 2 ? ", the slowest" : "", is_repeated ? "" : ", each run once", tail);
}

/* ==========================================================================================
 * Accuracy, scaling
 * ========================================================================================== */

static void say_accuracy(const struct answer_input *input, struct text *text)
{
    const struct answer_setting *best, *worst;
    size_t count;
    if (!find_extremes(input, offsetof(struct answer_setting, accuracy), 0, &best, &worst,
                       &count)) {
        return;
    }
    bool is_repeated = best->accuracy.count > 1 && worst->accuracy.count > 1;
    if (!answer_differs(&best->accuracy, &worst->accuracy, ACCURACY_LEAST_RATIO)) {
        say(text, is_repeated ? "These runs show no difference in accuracy."
                              : "Accuracies are too close for a difference that single runs show.");
        return;
    }
    if (is_repeated) {
        say(text,
            "%s ends with the best accuracy, %.2f ± %.2f %%; %s with the worst, %.2f ± %.2f %%.",
            best->label, best->accuracy.mean, best->accuracy.half_width, worst->label,
            worst->accuracy.mean, worst->accuracy.half_width);
    } else {
        say(text, "%s ended with the best accuracy, %.2f %%; %s with the worst, %.2f %%.",
            best->label, best->accuracy.mean, worst->label, worst->accuracy.mean);
    }
}

static void say_scaling(const struct answer_input *input, struct text *text)
{
    for (size_t i = 0; i < input->design_count && i < NAMED_MAX; i++) {
        const struct scaling_design *design = &input->designs[i];
        const struct scaling_point *last = &design->points[design->count - 1];
        char interval[48] = "", base[64];
        if (last->speed_up.count > 1 && last->speed_up.mean - last->speed_up.half_width <= 1) {
            say(text, "These runs show no speed-up of %s with %u workers.", design->name,
                last->workers);
            continue;
        }
        if (last->speed_up.count > 1) {
            snprintf(interval, sizeof(interval), " ± %.2f", last->speed_up.half_width);
        }
        snprintf(base, sizeof(base), design->base_workers == 1 ? "%u worker%s" : "%u workers%s",
                 design->base_workers, design->is_base_local ? " without a network" : "");
        say(text,
            "%s reaches a speed-up of %.2f%s with %u workers, %.0f %% of the ideal, counted from "
            "%s%s.",
            design->name, last->speed_up.mean, interval, last->workers, 100 * last->efficiency.mean,
            base, last->speed_up.count > 1 ? "" : " in single runs");
    }
}

/* "81.25 %", or "81.25 ± 0.31 %" of several runs. */
static void format_mean(const struct statistics *value, int digits, const char *unit,
                        char ret_text[64])
{
    if (value->count > 1) {
        snprintf(ret_text, 64, "%.*f ± %.*f%s", digits, value->mean, digits, value->half_width,
                 unit);
    } else {
        snprintf(ret_text, 64, "%.*f%s", digits, value->mean, unit);
    }
}

/* Of one setting there is nothing to compare: how it ended, how fast it was, where its time went.
 */
static void say_alone(const struct answer_setting *setting, struct text *text)
{
    char accuracy[64] = "", rate[64] = "";
    if (setting->rate.count == 0 || setting->rate.mean <= 0) {
        say(text, "%s was completed.", setting->label);
        return;
    }
    format_mean(&setting->rate, 0, "", rate);
    if (setting->accuracy.count > 0) {
        format_mean(&setting->accuracy, 2, " %", accuracy);
    }
    say(text, "%s was completed%s%s, at %s images per second.", setting->label,
        accuracy[0] != '\0' ? " with a test accuracy of " : "", accuracy, rate);
    double compute = setting->compute_ms.mean, exchange = setting->exchange_ms.mean,
           input = setting->input_ms.mean, whole = compute + exchange + input;
    if (setting->compute_ms.count > 0 && whole > 0) {
        say(text,
            "Of the %.3g ms of a step, %.0f %% went into computing, %.0f %% into exchange wait and "
            "%.0f %% into input wait.",
            whole, 100 * compute / whole, 100 * exchange / whole, 100 * input / whole);
    }
}

void answer_write(const struct answer_input *input, char ret_text[ANSWER_BYTES])
{
    struct text text = {.at = ret_text};
    ret_text[0] = '\0';
    say_bits(input, &text);
    say_speed(input, &text);
    say_accuracy(input, &text);
    say_scaling(input, &text);
    say_ends(input, &text);
    if (text.used == 0 && input->count == 1) {
        say_alone(&input->settings[0], &text);
    } else if (text.used == 0) {
        say(&text, "These runs carry nothing that could be compared.");
    }
}
