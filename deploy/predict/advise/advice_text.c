/* Advice as tables, sentences and JSON. */
#include "deploy/predict/advise/advice.h"
#include "deploy/predict/advise/advice_command.h"
#include "deploy/predict/study/study_target.h"

#include <math.h>
#include <string.h>

#define DESIGN_BYTES 192

static const char *describe(const struct advice_design *design, enum advice_axis_kind axis,
                            size_t pick, char word[ADVICE_WORD_BYTES])
{
    advice_axes[axis].describe(design->values[axis].list[pick], word);
    return word;
}

/* "ps-sync, 4 servers, servers beside workers, 4 MiB": with what was found, or the defaults. */
static void write_design(const struct advice_design *design, const struct advice_picks *picks,
                         char ret_text[DESIGN_BYTES])
{
    char word[ADVICE_WORD_BYTES];
    size_t used = (size_t)snprintf(ret_text, DESIGN_BYTES, "%s", mode_text(design->mode).text);
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        if (advice_axis_is_of((enum advice_axis_kind)axis, design->mode.kind)) {
            used += (size_t)snprintf(
                ret_text + used, DESIGN_BYTES - used, ", %s",
                describe(design, (enum advice_axis_kind)axis, picks->of[axis], word));
        }
    }
}

/* "bandwidth (link s0 in, 98 % busy)" */
static void write_limiter(const struct study *study, const struct study_point *point,
                          char ret_text[DESIGN_BYTES])
{
    const struct prediction *made = &point->made;
    bool is_link = strcmp(point->limiter, "bandwidth") == 0 && made->busiest_link != NETWORK_NONE;
    if (is_link) {
        snprintf(ret_text, DESIGN_BYTES, "%s (link %s, %.0f %% busy)", point->limiter,
                 study->network->links[made->busiest_link].name, 100 * made->busiest_use);
    } else if (made->server_busy > 0.5) {
        snprintf(ret_text, DESIGN_BYTES, "%s (the servers' threads are %.0f %% busy)",
                 point->limiter, 100 * made->server_busy);
    } else {
        snprintf(ret_text, DESIGN_BYTES, "%s", point->limiter);
    }
}

static const char *measure_of(const struct advice_design *design)
{
    return design->is_of_target ? "speed to the target" : "images/s";
}

static double gain_percent(const struct advice_design *design)
{
    return design->speed_before > 0 ? 100 * (design->speed_after / design->speed_before - 1) : 0;
}

/* ==========================================================================================
 * Text
 * ========================================================================================== */

static void print_row(const struct study *study, const struct advice_design *design, int width,
                      FILE *stream)
{
    char text[DESIGN_BYTES], limiter[DESIGN_BYTES], target[STUDY_TARGET_BYTES], gain[32] = "-";
    if (!design->is_before_too_large) {
        snprintf(gain, sizeof(gain), "%+.1f %%", gain_percent(design));
    }
    const struct study_point *point = &design->after;
    write_design(design, &design->found.picks, text);
    write_limiter(study, point, limiter);
    study_target_cell(study, point, target);
    fprintf(stream, "%-*s %10.1f %10s %8.2f %6.1f %9.3f %9.3f%s  %s\n", width, text,
            point->made.images_per_s, gain, point->speed_up, 100 * point->efficiency,
            1e3 * point->made.step_s, staleness_mean(&point->made.staleness), target, limiter);
}

static int width_of(const struct advice *advice)
{
    char text[DESIGN_BYTES];
    size_t width = strlen("design");
    for (size_t i = 0; i < advice->known; i++) {
        write_design(&advice->designs[i], &advice->designs[i].found.picks, text);
        width = strlen(text) > width ? strlen(text) : width;
    }
    return (int)width;
}

static void print_apart(const struct study *study, FILE *stream)
{
    if (study->convergence != NULL) {
        fprintf(stream, "Not ranked, as their time to the target is not known:\n");
        return;
    }
    fprintf(stream, "Not ranked with those above, as each gradient is an update there, and "
                    "training converges in another\nway (--convergence ranks all by time to "
                    "target):\n");
}

static void print_table(const struct study *study, const struct advice *advice, FILE *stream)
{
    int width = width_of(advice);
    fprintf(stream, "%-*s %10s %10s %8s %6s %9s %9s%s  %s\n", width, "design", "images/s",
            "by choice", "speed-up", "eff. %", "step ms", "staleness", study_target_heading(study),
            "limiter");
    for (size_t i = 0; i < advice->known; i++) {
        bool begins_apart =
            advice->designs[i].is_apart && (i == 0 || !advice->designs[i - 1].is_apart);
        if (begins_apart) {
            print_apart(study, stream);
        }
        print_row(study, &advice->designs[i], width, stream);
    }
}

static void print_gain(double gain, const char *of, FILE *stream)
{
    if (isnan(gain)) {
        fprintf(stream, " not possible%s", of);
    } else {
        fprintf(stream, " %+.1f %%%s", 100 * gain, of);
    }
}

static void print_gains(const struct advice_design *design, FILE *stream)
{
    for (size_t i = 0; i < design->gain_count; i++) {
        const struct advice_gain *gain = &design->gains[i];
        char to[ADVICE_WORD_BYTES], from[ADVICE_WORD_BYTES];
        describe(design, gain->axis, design->found.picks.of[gain->axis], to);
        describe(design, gain->axis, 0, from);
        fprintf(stream, "  %s: %s instead of %s:", advice_axes[gain->axis].name, to, from);
        print_gain(gain->alone, " alone,", stream);
        print_gain(gain->taken_back, " if taken back\n", stream);
    }
}

/* What those choices bring that change a default. */
static void print_changes(const struct study *study, const struct advice_design *design,
                          const char *defaults, FILE *stream)
{
    char before[DESIGN_BYTES], after[DESIGN_BYTES];
    write_limiter(study, &design->after, after);
    if (design->is_before_too_large) {
        fprintf(stream, "- %s: the default (%s) " STUDY_TOO_LARGE "\n",
                mode_text(design->mode).text, defaults);
        print_gains(design, stream);
        fprintf(stream, "  the limiter is %s\n", after);
        return;
    }
    write_limiter(study, &design->before, before);
    fprintf(stream, "- %s: %+.1f %% %s over the default (%s)\n", mode_text(design->mode).text,
            gain_percent(design), measure_of(design), defaults);
    print_gains(design, stream);
    fprintf(stream, "  the limiter was %s, and is %s\n", before, after);
}

/* What a mode's choices bring, and why. */
static void print_choices(const struct study *study, const struct advice_design *design,
                          FILE *stream)
{
    char text[DESIGN_BYTES], limiter[DESIGN_BYTES];
    const struct advice_picks none = {{0}};
    write_design(design, &none, text);
    if (design->gain_count == 0) {
        write_limiter(study, &design->before, limiter);
        fprintf(stream, "- %s: no choice brings more than %.1f %%; the limiter is %s\n", text,
                100 * ADVICE_LEVEL, limiter);
    } else {
        print_changes(study, design, text, stream);
    }
    if (design->before.made.is_reduced || design->after.made.is_reduced) {
        fprintf(stream, "  made in small: steps may be off by %.0f %%\n",
                100 *
                    fmax(design->before.made.reduction_error, design->after.made.reduction_error));
    }
    if (design->has_left_out) {
        fprintf(stream, "  combinations that take too long to simulate, or too much memory, were "
                        "left out\n");
    }
}

/* The best of those that can be compared, against the mode that the product begins with. */
static void print_best(const struct advice *advice, const struct advice_design *best, FILE *stream)
{
    const struct advice_design *start = &advice->designs[advice->start];
    char text[DESIGN_BYTES];
    write_design(best, &best->found.picks, text);
    fprintf(stream, "Best: %s", text);
    if (start != best && start->is_apart == best->is_apart && start->speed_before > 0) {
        fprintf(stream, "; %+.1f %% %s over %s with the defaults",
                100 * (best->speed_after / start->speed_before - 1), measure_of(best),
                mode_text(start->mode).text);
        if (!best->is_before_too_large) {
            fprintf(stream, ", of which the mode alone %+.1f %%",
                    100 * (best->speed_before / start->speed_before - 1));
        }
    }
    fprintf(stream, "\n");
}

static void print_command(const struct study *study, const struct advice *advice,
                          const struct advice_design *design, FILE *stream)
{
    char command[ADVICE_COMMAND_BYTES] = "";
    struct basis *basis = advice_basis(study, advice, design);
    if (basis != NULL) {
        advice_command_write(basis, command);
    }
    basis_destroy(basis);
    if (command[0] != '\0') {
        fprintf(stream, "  %s\n", command);
    } else {
        fprintf(stream, "  (a job of %u workers is more than `ringside run` takes)\n",
                advice->workers);
    }
}

static void print_too_large(const struct advice *advice, FILE *stream)
{
    for (size_t i = advice->known; i < advice->count; i++) {
        fprintf(stream, "- %s: " STUDY_TOO_LARGE ", with each choice that was tried\n",
                mode_text(advice->designs[i].mode).text);
    }
}

static void print_one(const struct study *study, const struct advice *advice, FILE *stream)
{
    fprintf(stream, "Advice for %u workers%s%s, by %s:\n\n", advice->workers,
            advice->what_if != NULL ? ", if " : "",
            advice->what_if != NULL ? advice->what_if->text : "",
            advice->designs[0].is_of_target ? "time to target" : "images/s");
    if (advice->known == 0) {
        print_too_large(advice, stream);
        fprintf(stream, "\n");
        return;
    }
    print_table(study, advice, stream);
    fprintf(stream, "\n");
    print_best(advice, &advice->designs[0], stream);
    print_command(study, advice, &advice->designs[0], stream);
    for (size_t i = 1; i < advice->known; i++) {
        if (advice->designs[i].is_apart && !advice->designs[i - 1].is_apart) {
            fprintf(stream, "Of those that are not ranked with it:\n");
            print_command(study, advice, &advice->designs[i], stream);
        }
    }
    fprintf(stream, "\nWhat the choices bring:\n");
    for (size_t i = 0; i < advice->known; i++) {
        print_choices(study, &advice->designs[i], stream);
    }
    print_too_large(advice, stream);
    fprintf(stream, "\n");
}

void advice_print(const struct study *study, const struct advice_list *list, FILE *stream)
{
    for (size_t i = 0; i < list->count; i++) {
        print_one(study, &list->list[i], stream);
    }
}

/* ==========================================================================================
 * JSON
 * ========================================================================================== */

static json_t *choices_json(const struct advice_design *design, const struct advice_picks *picks)
{
    json_t *choices = json_object();
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        char word[ADVICE_WORD_BYTES];
        if (advice_axis_is_of((enum advice_axis_kind)axis, design->mode.kind)) {
            json_object_set_new(
                choices, advice_axes[axis].name,
                json_string(describe(design, (enum advice_axis_kind)axis, picks->of[axis], word)));
        }
    }
    return choices;
}

static json_t *gain_json(double gain)
{
    return isnan(gain) ? json_null() : json_real(100 * gain);
}

static json_t *gains_json(const struct advice_design *design)
{
    json_t *gains = json_array();
    for (size_t i = 0; i < design->gain_count; i++) {
        const struct advice_gain *gain = &design->gains[i];
        char to[ADVICE_WORD_BYTES], from[ADVICE_WORD_BYTES];
        json_array_append_new(
            gains, json_pack("{s:s, s:s, s:s, s:o, s:o}", "choice", advice_axes[gain->axis].name,
                             "from", describe(design, gain->axis, 0, from), "to",
                             describe(design, gain->axis, design->found.picks.of[gain->axis], to),
                             "alone_percent", gain_json(gain->alone), "taken_back_percent",
                             gain_json(gain->taken_back)));
    }
    return gains;
}

static json_t *state_json(const struct study *study, const struct advice_design *design,
                          const struct advice_picks *picks, const struct study_point *point)
{
    char limiter[DESIGN_BYTES];
    if (point->limiter == NULL) {
        return json_pack("{s:o, s:s}", "choices", choices_json(design, picks), "error",
                         STUDY_TOO_LARGE);
    }
    write_limiter(study, point, limiter);
    json_t *state = json_pack(
        "{s:o, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:f}", "choices", choices_json(design, picks),
        "images_per_s", point->made.images_per_s, "speed_up", point->speed_up, "efficiency_percent",
        100 * point->efficiency, "step_ms", 1e3 * point->made.step_s, "staleness_mean",
        staleness_mean(&point->made.staleness), "limiter", limiter, "limiter_gain_percent",
        100 * point->limiter_gain, "reduction_error_percent", 100 * point->made.reduction_error);
    study_target_add_json(study, point, state);
    return state;
}

static json_t *design_json(const struct study *study, const struct advice *advice,
                           const struct advice_design *design)
{
    const struct advice_picks none = {{0}};
    char command[ADVICE_COMMAND_BYTES] = "";
    struct basis *basis = advice_basis(study, advice, design);
    if (basis != NULL) {
        advice_command_write(basis, command);
    }
    basis_destroy(basis);
    return json_pack(
        "{s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:b, s:b, s:s}", "mode", mode_text(design->mode).text,
        "is_ranked", !design->is_apart && !design->is_too_large, "by",
        design->is_of_target ? "to_target" : "images_per_s", "best",
        state_json(study, design, &design->found.picks, &design->after), "default",
        state_json(study, design, &none, &design->before), "gain_percent",
        gain_json(design->speed_before > 0 && design->speed_after > 0 ? gain_percent(design) / 100
                                                                      : (double)NAN),
        "gains", gains_json(design), "is_exhaustive", design->found.is_exhaustive, "has_left_out",
        design->has_left_out, "command", command);
}

json_t *advice_json(const struct study *study, const struct advice_list *list)
{
    json_t *made = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct advice *advice = &list->list[i];
        json_t *designs = json_array();
        for (size_t k = 0; k < advice->count; k++) {
            json_array_append_new(designs, design_json(study, advice, &advice->designs[k]));
        }
        json_array_append_new(
            made,
            json_pack("{s:I, s:s?, s:o}", "workers", (json_int_t)advice->workers, "what_if",
                      advice->what_if != NULL ? advice->what_if->text : NULL, "designs", designs));
    }
    return made;
}
