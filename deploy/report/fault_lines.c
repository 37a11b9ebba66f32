/* Reads how fast a run was, and draws it. */
#include "deploy/report/fault_lines.h"

#include "deploy/report/html.h"

#include <stdlib.h>

#define LINES_MAX 20000
#define WIDTH     720.0
#define HEIGHT    240.0
#define MARGIN    48.0

bool fault_lines_read(const struct run_folder *run, struct fault_lines *ret_lines)
{
    char path[RUN_FOLDER_PATH_MAX + 32], text[4096];
    json_int_t rank = -1;
    struct fault_lines lines = {calloc(LINES_MAX, sizeof(*lines.list)), 0};
    snprintf(path, sizeof(path), "%s/metrics.jsonl", run->path);
    FILE *file = lines.list != NULL ? fopen(path, "re") : NULL;
    while (file != NULL && lines.count < LINES_MAX && fgets(text, sizeof(text), file) != NULL) {
        json_t *entry = json_loads(text, 0, NULL);
        const json_t *of = json_object_get(entry, "rank");
        rank = rank < 0 && json_is_integer(of) ? json_integer_value(of) : rank;
        if (json_is_integer(of) && json_integer_value(of) == rank) {
            lines.list[lines.count++] = (struct fault_line){
                (uint64_t)json_integer_value(json_object_get(entry, "step")),
                json_number_value(json_object_get(entry, "seconds")),
            };
        }
        json_decref(entry);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (lines.count == 0) {
        free(lines.list);
        return false;
    }
    *ret_lines = lines;
    return true;
}

void fault_lines_free(struct fault_lines *lines)
{
    free(lines->list);
    *lines = (struct fault_lines){0};
}

static double rate_between(const struct fault_line *from, const struct fault_line *to)
{
    double seconds = to->seconds - from->seconds;
    return to->step > from->step && seconds > 0 ? (double)(to->step - from->step) / seconds : 0;
}

struct fault_rates fault_lines_rates(const struct fault_lines *lines, struct fault_window window)
{
    const struct fault_line *list = lines->list, none = {0, 0};
    size_t before = 0, after = lines->count; // lines before the window; the first one behind it
    while (before < lines->count && list[before].step < window.first) {
        before++;
    }
    while (after > 0 && list[after - 1].step >= window.last) {
        after--;
    }
    struct fault_rates rates = {0, 0, 0};
    const struct fault_line *start = before > 0 ? &list[before - 1] : &none;
    if (before > 1) {
        rates.before = rate_between(&list[0], start);
    }
    if (after < lines->count) {
        rates.during = rate_between(start, &list[after]);
        rates.after = rate_between(&list[after], &list[lines->count - 1]);
    }
    return rates;
}

/* Of a picture: the largest values on its axes. */
struct scale {
    double seconds, rate;
};

static double rate_at(const struct fault_lines *lines, size_t index, double batch)
{
    const struct fault_line none = {0, 0};
    return batch * rate_between(index > 0 ? &lines->list[index - 1] : &none, &lines->list[index]);
}

static void widen(const struct run_folder *run, struct scale *scale)
{
    struct fault_lines lines;
    if (!fault_lines_read(run, &lines)) {
        return;
    }
    for (size_t i = 0; i < lines.count; i++) {
        double rate = rate_at(&lines, i, run_folder_number(run, "global_batch"));
        scale->rate = rate > scale->rate ? rate : scale->rate;
        scale->seconds =
            lines.list[i].seconds > scale->seconds ? lines.list[i].seconds : scale->seconds;
    }
    fault_lines_free(&lines);
}

static void draw_run(FILE *page, const struct run_folder *run, const struct scale *scale,
                     size_t index)
{
    static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"};
    const char *colour = colours[index % (sizeof(colours) / sizeof(colours[0]))];
    struct fault_lines lines;
    if (!fault_lines_read(run, &lines)) {
        return;
    }
    fprintf(page, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
    for (size_t i = 0; i < lines.count; i++) {
        double rate = rate_at(&lines, i, run_folder_number(run, "global_batch"));
        fprintf(page, "%.1f,%.1f ", MARGIN + WIDTH * lines.list[i].seconds / scale->seconds,
                MARGIN + HEIGHT * (1 - rate / scale->rate));
    }
    fprintf(page, "\"/>\n<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">", MARGIN + WIDTH + 8,
            MARGIN + 16 * (double)index, colour);
    html_escape(page, run->label);
    fprintf(page, "</text>\n");
    fault_lines_free(&lines);
}

void fault_lines_draw(FILE *page, const struct run_folder *runs, size_t count)
{
    struct scale scale = {0, 0};
    for (size_t i = 0; i < count; i++) {
        widen(&runs[i], &scale);
    }
    if (scale.seconds <= 0 || scale.rate <= 0) {
        return;
    }
    fprintf(page,
            "<figure>\n<svg viewBox=\"0 0 %.0f %.0f\" font-size=\"13\">\n"
            "<text x=\"0\" y=\"%.0f\">%.0f</text>\n<text x=\"0\" y=\"%.0f\">0</text>\n"
            "<text x=\"%.0f\" y=\"%.0f\">%.1f s</text>\n",
            WIDTH + 2 * MARGIN + 200, HEIGHT + 2 * MARGIN, MARGIN, scale.rate, MARGIN + HEIGHT,
            MARGIN + WIDTH - 40, MARGIN + HEIGHT + 20, scale.seconds);
    for (size_t i = 0; i < count; i++) {
        draw_run(page, &runs[i], &scale, i);
    }
    fprintf(page, "</svg>\n<figcaption>Images a second over the time of each run. After a loss the "
                  "steps are made again that no copy has.</figcaption>\n</figure>\n");
}
