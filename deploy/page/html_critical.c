/* Draws a bar of links for each run. */
#include "deploy/page/html_critical.h"

#include "deploy/page/html.h"

#include <jansson.h>

#include <string.h>

#define LEAST_SHARE 0.005 // that is drawn

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found != NULL ? found : "";
}

/* A colour for what is done, the same in all rows. */
static const char *colour_of(const char *what)
{
    static const struct {
        const char *what, *colour;
    } colours[] = {
        {"forward", "#56B4E9"},
        {"backward", "#0072B2"},
        {"optimizer", "#009E73"},
        {"delay (--straggler)", "#D55E00"},
        {"exchange", "#E69F00"},
        {"input", "#F0E442"},
        {"handling of messages", "#CC79A7"},
        {"sum and update", "#7F5FA8"},
        {"copying", "#8C6D31"},
        {"link", "#D62728"},
    };
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
        if (strcmp(colours[i].what, what) == 0) {
            return colours[i].colour;
        }
    }
    return "#888888";
}

/* At `start`, as a share of all; a picture of its own, so that a name that is too long is cut. The
 * page's policy has no room for styles. */
static void write_link(FILE *page, const json_t *share, double start)
{
    double part = number(share, "share");
    if (!(part >= LEAST_SHARE)) {
        return;
    }
    fprintf(page, "<svg x=\"%.2f%%\" width=\"%.2f%%\" height=\"28\"><title>", 100 * start,
            100 * part);
    html_escape(page, text(share, "name"));
    fprintf(page,
            ": %.3f ms a step, %.1f %%</title><rect width=\"100%%\" height=\"28\" "
            "fill=\"%s\"/><text x=\"4\" y=\"19\" font-size=\"13\" fill=\"#000\">",
            number(share, "ms_per_step"), 100 * part, colour_of(text(share, "what")));
    html_escape(page, text(share, "name"));
    fprintf(page, "</text></svg>\n");
}

static void write_run(FILE *page, const struct run_folder *run, const json_t *path)
{
    size_t i;
    json_t *share, *change;
    double start = 0;
    fprintf(page, "<p><strong>");
    html_escape(page, run->label);
    fprintf(page, "</strong>: ");
    html_escape(page, text(path, "limiter"));
    fprintf(page, ".</p>\n<svg width=\"100%%\" height=\"28\" role=\"img\">\n");
    json_array_foreach(json_object_get(path, "shares"), i, share)
    {
        write_link(page, share, start);
        start += number(share, "share");
    }
    fprintf(page, "</svg>\n<p>%.3f ms a step.", number(path, "ms_per_step"));
    json_array_foreach(json_object_get(path, "what_if"), i, change)
    {
        fprintf(page, " With ");
        html_escape(page, text(change, "change"));
        fprintf(page, ": %+.0f %%.", number(change, "percent"));
    }
    fprintf(page, "</p>\n");
}

bool html_critical(FILE *page, const struct run_folder *run, const char *before)
{
    char path[RUN_FOLDER_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/critical_path.json", run->path);
    json_t *found = json_load_file(path, 0, NULL);
    bool is_there = json_is_object(found);
    if (is_there) {
        fprintf(page, "%s", before);
        write_run(page, run, found);
    }
    json_decref(found);
    return is_there;
}
