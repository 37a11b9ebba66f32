/* Writes gnuplot commands that plot a study of predictions. */
#include "deploy/plot/prediction_plots.h"

#include "deploy/predict/basis/fields.h"

#include <string.h>

#define WIDE         8 // times as many workers at the end of an axis as at its beginning
#define WORDS_MAX    7 // numbers of workers whose cells have room for words
#define LABEL_BYTES  128
#define COLUMN_VALUE 2 // of a design's data block; the band is behind it

const struct plot prediction_plots[] = {
    {"efficiency",
     "Predicted efficiency over the number of workers: speed-up for each worker, against one that "
     "exchanges nothing."},
    {"to-target", "Predicted time to the target: steps of the sweep at such staleness, times "
                  "seconds of a step. Numbers of workers without a row have no point."},
    {"winners", "Which design is the fastest, by the number of workers and the bandwidth of the "
                "first host's link; all links change by the same factor. The share is the lead "
                "before the next design."},
    {NULL, NULL},
};

struct drawn {
    const struct study *study;
    const struct winners *winners;
    struct run_stroke strokes[STUDY_POINTS_MAX];
};

void prediction_plots_strokes(const struct study *study,
                              struct run_stroke ret_strokes[STUDY_POINTS_MAX])
{
    size_t ranks[STUDY_POINTS_MAX];
    for (size_t i = 0; i < study->design_count; i++) {
        ranks[i] = (size_t)study->designs[i].mode.kind;
    }
    run_strokes_choose(ranks, study->design_count, ret_strokes);
}

bool prediction_plots_band(const struct study_point *point, double *ret_low, double *ret_high)
{
    bool has_band = point->has_interval && point->made.images_per_s > 0;
    *ret_low = has_band ? point->images_per_s_low / point->made.images_per_s : 1;
    *ret_high = has_band ? point->images_per_s_high / point->made.images_per_s : 1;
    return has_band;
}

bool prediction_plots_is_wide(const struct study *study)
{
    return study->workers[study->worker_count - 1] > WIDE * study->workers[0];
}

static const struct study_point *point_of(const struct study *study, size_t workers, size_t design)
{
    return &study->points[workers * study->design_count + design];
}

/* ==========================================================================================
 * Data
 * ========================================================================================== */

static void write_efficiency(FILE *script, const struct study *study, size_t design)
{
    fprintf(script, "$efficiency%zu << END\n", design);
    for (size_t w = 0; w < study->worker_count; w++) {
        const struct study_point *point = point_of(study, w, design);
        double low, high, percent = 100 * point->efficiency;
        prediction_plots_band(point, &low, &high);
        if (point->is_too_large) {
            fprintf(script, "\n"); // the line ends here
            continue;
        }
        fprintf(script, "%u %.6g %.6g %.6g\n", point->workers, percent, low * percent,
                high * percent);
    }
    fprintf(script, "END\n");
}

static size_t count_targets(const struct study *study, size_t design)
{
    size_t count = 0;
    for (size_t w = 0; w < study->worker_count; w++) {
        count += point_of(study, w, design)->target.seconds > 0;
    }
    return count;
}

bool prediction_plots_has(const struct plot *plot, const struct study *study)
{
    size_t most = 0;
    if (strcmp(plot->name, "efficiency") == 0) {
        return study->worker_count > 1;
    }
    for (size_t i = 0; i < study->design_count; i++) {
        size_t count = count_targets(study, i);
        most = count > most ? count : most;
    }
    return most > 1;
}

/* Of a design whose time is known somewhere; gnuplot refuses empty blocks. */
static void write_targets(FILE *script, const struct study *study, size_t design)
{
    if (count_targets(study, design) == 0) {
        return;
    }
    fprintf(script, "$target%zu << END\n", design);
    for (size_t w = 0; w < study->worker_count; w++) {
        const struct study_point *point = point_of(study, w, design);
        double low, high, seconds = point->target.seconds;
        prediction_plots_band(point, &low, &high);
        if (seconds > 0) {
            fprintf(script, "%u %.6g %.6g %.6g\n", point->workers, seconds, seconds / high,
                    seconds / low);
        } else {
            fprintf(script, "\n"); // the line ends here
        }
    }
    fprintf(script, "END\n");
}

static bool has_winner(const struct drawn *drawn, size_t design)
{
    for (size_t w = 0; w < drawn->study->worker_count; w++) {
        for (size_t f = 0; f < WINNERS_FACTORS; f++) {
            if (drawn->winners->cells[w][f].design == design ||
                (design == WINNERS_NONE && drawn->winners->cells[w][f].design != design)) {
                return true;
            }
        }
    }
    return false;
}

/* Of a cell: the colour of the mode, or, where two winners would have the same, one of its own. */
static size_t colour_of(const struct drawn *drawn, size_t design)
{
    for (size_t a = 0; a < drawn->study->design_count; a++) {
        for (size_t b = 0; b < a; b++) {
            if (drawn->strokes[a].colour == drawn->strokes[b].colour && has_winner(drawn, a) &&
                has_winner(drawn, b)) {
                return design % RUN_COLOURS + 1;
            }
        }
    }
    return drawn->strokes[design].colour + 1;
}

/* A cell: its place, its colour, its words. */
static void write_cells(FILE *script, const struct drawn *drawn)
{
    const struct study *study = drawn->study;
    fprintf(script, "$cells << END\n");
    for (size_t w = 0; w < study->worker_count; w++) {
        for (size_t f = 0; f < WINNERS_FACTORS; f++) {
            const struct winner *winner = &drawn->winners->cells[w][f];
            if (winner->design != WINNERS_NONE) {
                fprintf(script, "%zu %zu %zu.5 %zu.5 %zu.5 %zu.5 %zu \"%+.0f %%\"\n", w + 1, f + 1,
                        w, w + 1, f, f + 1, colour_of(drawn, winner->design), 100 * winner->lead);
            }
        }
    }
    fprintf(script, "END\n");
}

static void write_data(FILE *script, const void *context)
{
    const struct drawn *drawn = context;
    const struct study *study = drawn->study;
    fprintf(script, "$ideal << END\n%u 100\n%u 100\nEND\n", study->workers[0],
            study->workers[study->worker_count - 1]);
    for (size_t i = 0; i < study->design_count; i++) {
        write_efficiency(script, study, i);
        write_targets(script, study, i);
    }
    write_cells(script, drawn);
}

/* ==========================================================================================
 * Plots
 * ========================================================================================== */

static void write_workers_axis(FILE *script, const struct study *study)
{
    double first = study->workers[0], last = study->workers[study->worker_count - 1];
    if (prediction_plots_is_wide(study)) {
        fprintf(script, "set logscale x 2\nset xrange [%.6g:%.6g]\n", first / 1.1, 1.1 * last);
    } else {
        double margin = 0.03 * (last - first);
        fprintf(script, "set xrange [%.6g:%.6g]\n", first - margin, last + margin);
    }
    fprintf(script, "set xlabel 'workers'\nset xtics (");
    for (size_t w = 0; w < study->worker_count; w++) {
        fprintf(script, "%s%u", w > 0 ? ", " : "", study->workers[w]);
    }
    fprintf(script, ")\n");
}

static void write_line(FILE *script, const struct drawn *drawn, const char *block, size_t design)
{
    char label[LABEL_BYTES];
    double low, high;
    const struct run_stroke *stroke = &drawn->strokes[design];
    gnuplot_label(study_design_text(drawn->study->designs[design]).text, label, sizeof(label));
    if (prediction_plots_band(point_of(drawn->study, 0, design), &low, &high)) {
        fprintf(script,
                "$%s%zu using 1:%d:%d with filledcurves lt %zu fs transparent solid 0.2 noborder "
                "notitle, \\\n  ",
                block, design, COLUMN_VALUE + 1, COLUMN_VALUE + 2, stroke->colour + 1);
    }
    fprintf(script, "$%s%zu using 1:%d with linespoints pt 7 ps 0.9 lt %zu dt %zu title \"%s\"",
            block, design, COLUMN_VALUE, stroke->colour + 1, stroke->dash + 1, label);
}

static void write_efficiency_plot(FILE *script, const struct drawn *drawn)
{
    write_workers_axis(script, drawn->study);
    fprintf(script,
            "set ylabel 'efficiency (%%)'\nset yrange [0:*]\n"
            "plot $ideal using 1:2 with lines lt %d lw 2 dt %d title 'ideal'",
            RUN_COLOURS, RUN_DASHES + 1);
    for (size_t i = 0; i < drawn->study->design_count; i++) {
        fprintf(script, ", \\\n  ");
        write_line(script, drawn, "efficiency", i);
    }
}

static void write_target_plot(FILE *script, const struct drawn *drawn)
{
    size_t count = 0;
    write_workers_axis(script, drawn->study);
    fprintf(script, "set ylabel 'time to target (s)'\nset logscale y\nset format y '%%g'\nplot ");
    for (size_t i = 0; i < drawn->study->design_count; i++) {
        if (count_targets(drawn->study, i) > 0) {
            fprintf(script, "%s", count++ > 0 ? ", \\\n  " : "");
            write_line(script, drawn, "target", i);
        }
    }
    fprintf(script, "\nunset logscale y\nset format y");
}

static void write_winners_plot(FILE *script, const struct drawn *drawn)
{
    const struct study *study = drawn->study;
    char text[QUANTITY_BYTES], label[LABEL_BYTES];
    fprintf(script,
            "set xlabel 'workers'\nset ylabel 'bandwidth of the first host'\n"
            "set xrange [0.5:%zu.5]\nset yrange [0.5:%d.5]\nunset grid\nset xtics (",
            study->worker_count, WINNERS_FACTORS);
    for (size_t w = 0; w < study->worker_count; w++) {
        fprintf(script, "%s'%u' %zu", w > 0 ? ", " : "", study->workers[w], w + 1);
    }
    fprintf(script, ")\nset ytics (");
    for (size_t f = 0; f < WINNERS_FACTORS; f++) {
        quantity_format(winners_bandwidth(study, f), QUANTITY_BANDWIDTH, text);
        text[strcspn(text, "(")] = '\0'; // the bracket with the other unit
        fprintf(script, "%s'%s' %zu", f > 0 ? ", " : "", text, f + 1);
    }
    fprintf(script, ")\nplot $cells using 1:2:3:4:5:6:7 with boxxyerror lc variable notitle");
    if (study->worker_count <= WORDS_MAX) {
        fprintf(script, ", \\\n  $cells using 1:2:8 with labels tc rgb 'white' notitle");
    }
    for (size_t i = 0; i < study->design_count; i++) {
        if (has_winner(drawn, i)) {
            gnuplot_label(study_design_text(study->designs[i]).text, label, sizeof(label));
            fprintf(script, ", \\\n  NaN with boxes lt %zu title \"%s\"", colour_of(drawn, i),
                    label);
        }
    }
    fprintf(script, "\nset grid\nset ytics autofreq");
}

static void write_plot(FILE *script, const struct plot *plot, const void *context)
{
    const struct drawn *drawn = context;
    if (strcmp(plot->name, "efficiency") == 0) {
        write_efficiency_plot(script, drawn);
    } else if (strcmp(plot->name, "to-target") == 0) {
        write_target_plot(script, drawn);
    } else {
        write_winners_plot(script, drawn);
    }
    fprintf(script, "\nunset logscale x\nset xrange [*:*]\nset yrange [*:*]\nset xtics autofreq\n");
}

static double height(const struct plot *plot, const void *context)
{
    const struct drawn *drawn = context;
    if (strcmp(plot->name, "winners") == 0) {
        return drawn->study->design_count > 1 && has_winner(drawn, WINNERS_NONE) ? 1 : 0;
    }
    return prediction_plots_has(plot, drawn->study) ? 1 : 0;
}

enum status prediction_plots_write(const char *folder, const struct study *study,
                                   const struct winners *winners)
{
    struct drawn drawn = {.study = study, .winners = winners};
    prediction_plots_strokes(study, drawn.strokes);
    const struct gnuplot_script script = {
        .plots = prediction_plots,
        .context = &drawn,
        .write_data = write_data,
        .write_plot = write_plot,
        .height = height,
    };
    return gnuplot_write(folder, &script);
}
