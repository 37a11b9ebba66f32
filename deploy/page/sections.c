/* Writes the sections of a page; one without content has no heading. */
#include "deploy/page/sections.h"

#include "deploy/page/answer.h"
#include "deploy/page/figures.h"
#include "deploy/page/html.h"
#include "deploy/page/html_critical.h"
#include "deploy/page/html_faults.h"
#include "deploy/page/html_input.h"
#include "deploy/page/run_command.h"
#include "deploy/report/group_scaling.h"
#include "deploy/report/run_classes.h"
#include "deploy/report/straggler_find.h"
#include "deploy/report/table.h"
#include "deploy/system/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CELL_BYTES 512
#define ROWS_OPEN  12  // a longer table is folded
#define ENDS_MAX   200 // runs whose end is explained

#define COMMANDS_MAX 40 // runs whose command is shown

/* What is written into a page, and the figures so far. */
struct writing {
    const struct report_page *page;
    json_t *figures; // owned
};

/* ==========================================================================================
 * Result
 * ========================================================================================== */

static bool is_comparable(const struct run_group *a, const struct run_group *b)
{
    return a->count > 0 && b->count > 0 && table_is_comparable(a->runs[0], b->runs[0]);
}

static void fill_setting(const struct run_groups *groups, size_t index,
                         struct answer_setting *settings, char (*digests)[80])
{
    const struct run_group *group = &groups->list[index];
    size_t family = 0;
    while (family < index && !is_comparable(&groups->list[family], group)) {
        family++;
    }
    digests[index][0] = '\0';
    if (is_comparable(group, group)) {
        run_folder_value(group->runs[0], "params_digest", digests[index], sizeof(digests[index]));
    }
    settings[index] = (struct answer_setting){.label = group->label,
                                              .planned = group->planned,
                                              .completed = group->completed,
                                              .diverged = group->diverged,
                                              .failed = group->failed,
                                              .workers = group->workers,
                                              .digest = digests[index],
                                              .family = family,
                                              .rate = group->rate,
                                              .accuracy = group->accuracy,
                                              .compute_ms = group->compute_ms,
                                              .exchange_ms = group->exchange_ms,
                                              .input_ms = group->input_ms};
}

static void write_lines(FILE *file, char *text)
{
    for (char *line = strtok_r(text, "\n", &text); line != NULL;
         line = strtok_r(NULL, "\n", &text)) {
        fprintf(file, "<p>");
        html_escape(file, line);
        fprintf(file, "</p>\n");
    }
}

static void write_answer(FILE *file, const struct run_groups *groups)
{
    char text[ANSWER_BYTES];
    struct answer_setting *settings = calloc(groups->count + 1, sizeof(*settings));
    char(*digests)[80] = calloc(groups->count + 1, sizeof(*digests));
    struct group_scaling scaling = {NULL};
    if (settings != NULL && digests != NULL && group_scaling_of(groups, &scaling) == STATUS_OK) {
        for (size_t i = 0; i < groups->count; i++) {
            fill_setting(groups, i, settings, digests);
        }
        const struct answer_input input = {.settings = settings,
                                           .count = groups->count,
                                           .designs = scaling.designs,
                                           .design_count = scaling.count};
        answer_write(&input, text);
        fprintf(file, "<div class=\"answer\">\n");
        write_lines(file, text);
        fprintf(file, "</div>\n");
    }
    free(settings);
    free(digests);
    group_scaling_finish(&scaling);
}

/* How runs that were not completed have ended, and why. */
static void write_ends(FILE *file, const struct run_groups *groups)
{
    size_t written = 0;
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        for (size_t k = 0; k < group->count && written < ENDS_MAX; k++) {
            char outcome[CELL_BYTES], reason[CELL_BYTES];
            if (run_folder_is_completed(group->runs[k])) {
                continue;
            }
            written++;
            run_folder_outcome(group->runs[k], outcome, sizeof(outcome));
            run_folder_value(group->runs[k], "reason", reason, sizeof(reason));
            fprintf(file, "<p><strong>");
            html_escape(file, group->label);
            fprintf(file, "</strong>, seed %.0f: ", run_folder_number(group->runs[k], "seed"));
            html_escape(file, outcome);
            fprintf(file, "%s", reason[0] != '\0' ? ", because " : "");
            html_escape(file, reason);
            fprintf(file, "</p>\n");
        }
    }
}

static void write_result(FILE *file, struct writing *writing)
{
    const struct report_page *page = writing->page;
    write_answer(file, page->groups);
    page->write_table(file, page->context);
    write_ends(file, page->groups);
    page->write_details(file, page->context);
}

/* ==========================================================================================
 * Figures
 * ========================================================================================== */

static void write_figures(FILE *file, struct writing *writing, figure_maker *const *makers,
                          size_t count)
{
    char sentence[FIGURE_TEXT_BYTES];
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        json_t *figure;
        makers[i](writing->page->groups, &figure, sentence);
        if (sentence[0] != '\0') {
            fprintf(file, "%s<p>", written > 0 ? "</div>\n" : "");
            written = 0;
            html_escape(file, sentence);
            fprintf(file, "</p>\n");
        }
        if (figure == NULL) {
            continue;
        }
        if (html_has_charts()) {
            const char *note = json_string_value(json_object_get(figure, "note"));
            fprintf(file, "%s<figure id=\"%s\"><h3>%s</h3>\n%s%s%s</figure>\n",
                    written++ == 0 ? "<div class=\"plots\">\n" : "",
                    json_string_value(json_object_get(figure, "id")),
                    json_string_value(json_object_get(figure, "title")),
                    note[0] != '\0' ? "<figcaption>" : "", note,
                    note[0] != '\0' ? "</figcaption>" : "");
            json_array_append(writing->figures, figure);
        }
        json_decref(figure);
    }
    fprintf(file, "%s", written > 0 ? "</div>\n" : "");
}

#define WRITE_FIGURES(file, writing, ...)                                         \
    do {                                                                          \
        figure_maker *const makers[] = {__VA_ARGS__};                             \
        write_figures(file, writing, makers, sizeof(makers) / sizeof(makers[0])); \
    } while (0)

static void write_convergence(FILE *file, struct writing *writing)
{
    WRITE_FIGURES(file, writing, figure_loss_steps, figure_loss_seconds, figure_accuracy_steps,
                  figure_accuracy_seconds);
}

static void write_throughput(FILE *file, struct writing *writing)
{
    WRITE_FIGURES(file, writing, figure_rates, figure_speed_up, figure_efficiency);
}

static void write_times(FILE *file, struct writing *writing)
{
    const struct run_groups *groups = writing->page->groups;
    WRITE_FIGURES(file, writing, figure_times);
    for (size_t i = 0; i < groups->count; i++) {
        struct straggler_found found;
        if (groups->list[i].count > 0 && straggler_find(groups->list[i].runs[0], &found)) {
            fprintf(file, "<p>");
            html_escape(file, groups->list[i].label);
            fprintf(file, ": worker %u is the straggler, %.1f times as slow as the other%s.</p>\n",
                    found.rank, found.ratio, groups->list[i].workers == 2 ? "" : "s");
        }
    }
}

static void write_staleness(FILE *file, struct writing *writing)
{
    WRITE_FIGURES(file, writing, figure_staleness);
}

static void write_critical(FILE *file, struct writing *writing)
{
    html_critical(file, writing->page->groups);
}

static void write_input(FILE *file, struct writing *writing)
{
    struct input_gaps gaps;
    size_t count;
    struct run_folder *runs = run_groups_copy_runs(writing->page->groups, &count);
    if (runs != NULL && input_gaps_of(runs, count, &gaps) == STATUS_OK) {
        html_input_gaps(file, &gaps);
        input_gaps_finish(&gaps);
    }
    free(runs);
}

static void write_faults(FILE *file, struct writing *writing)
{
    size_t count;
    struct run_folder *runs = run_groups_copy_runs(writing->page->groups, &count);
    html_faults(file, runs, count);
    free(runs);
    WRITE_FIGURES(file, writing, figure_faults);
}

/* Where the build has no charts: gnuplot's. */
static void write_images(FILE *file, struct writing *writing)
{
    const struct report_page *page = writing->page;
    for (const struct plot *plot = page->plots; plot->name != NULL && !html_has_charts(); plot++) {
        html_image(file, page->folder, plot->name, plot->caption);
    }
}

/* ==========================================================================================
 * Shards, environment
 * ========================================================================================== */

static double number(const json_t *shard, const char *key)
{
    return json_number_value(json_object_get(shard, key));
}

static size_t write_shards_of(FILE *file, const struct run_group *group, size_t index)
{
    const json_t *shards = json_object_get(group->runs[index]->details, "shards"), *shard;
    size_t k;
    json_array_foreach(shards, k, shard)
    {
        double seconds = number(shard, "seconds");
        fprintf(file, "<tr><td>");
        html_escape(file, group->label);
        fprintf(file,
                "</td><td>%.0f</td><td>%.0f</td><td>%.1f</td><td>%.1f</td><td>%.1f %%</td>"
                "<td>%.0f</td></tr>\n",
                run_folder_number(group->runs[index], "seed"), number(shard, "shard"),
                number(shard, "bytes_received") / (1 << 20),
                number(shard, "bytes_sent") / (1 << 20),
                seconds > 0 ? 100 * number(shard, "busy_seconds") / seconds : 0,
                number(shard, "backlog"));
    }
    return json_array_size(shards);
}

static void write_shards(FILE *file, struct writing *writing)
{
    const struct run_groups *groups = writing->page->groups;
    char *rows = NULL;
    size_t size = 0, count = 0;
    FILE *memory = open_memstream(&rows, &size);
    for (size_t i = 0; memory != NULL && i < groups->count; i++) {
        for (size_t k = 0; k < groups->list[i].count; k++) {
            count += write_shards_of(memory, &groups->list[i], k);
        }
    }
    if (memory != NULL && fclose(memory) == 0 && count > 0) {
        fprintf(
            file,
            "<details%s><summary>%zu shard%s</summary>\n<p class=\"note\">Busy: handling "
            "messages, of the time from its start to its end. Backlog: most messages that were "
            "waiting for it, one after the other.</p>\n<div class=\"scroll full\"><table><thead>"
            "<tr><th>setting</th><th>seed</th><th>shard</th><th>received MiB</th><th>sent "
            "MiB</th><th>busy</th><th>backlog</th></tr></thead><tbody>\n%s</tbody></table>"
            "</div></details>\n",
            count <= ROWS_OPEN ? " open" : "", count, count == 1 ? "" : "s", rows);
    }
    free(rows);
}

/* The hosts, devices and versions of all runs, each once. */
static void write_hosts(FILE *file, const struct run_groups *groups)
{
    json_t *seen = json_object();
    const char *key;
    json_t *value;
    for (size_t i = 0; i < groups->count; i++) {
        for (size_t k = 0; k < groups->list[i].count; k++) {
            const json_t *members = json_object_get(groups->list[i].runs[k]->job, "members");
            const json_t *member;
            char version[64], text[CELL_BYTES];
            size_t m;
            run_folder_value(groups->list[i].runs[k], "version", version, sizeof(version));
            json_array_foreach(members, m, member)
            {
                const char *host = json_string_value(json_object_get(member, "host"));
                const char *device = json_string_value(json_object_get(member, "device"));
                snprintf(text, sizeof(text), "%.200s (%.100s), ringside %.40s",
                         host != NULL ? host : "unknown host",
                         device != NULL && device[0] != '\0' ? device : "server", version);
                json_object_set_new(seen, text, json_true());
            }
        }
    }
    if (json_object_size(seen) > 0) {
        fprintf(file, "<p>Where the runs were made: ");
    }
    size_t written = 0;
    json_object_foreach(seen, key, value)
    {
        fprintf(file, "%s", written++ > 0 ? "; " : "");
        html_escape(file, key);
    }
    fprintf(file, "%s", written > 0 ? ".</p>\n" : "");
    json_decref(seen);
}

static void write_machine(FILE *file)
{
    char line[512], model[256] = "unknown processor";
    struct utsname name;
    FILE *info = fopen("/proc/cpuinfo", "re");
    while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (info != NULL) {
        fclose(info);
    }
    uname(&name);
    fprintf(file, "<p>This page was written by ringside %s on ", RINGSIDE_VERSION);
    html_escape(file, model);
    fprintf(file, ", %ld cores, %s %s.</p>\n", sysconf(_SC_NPROCESSORS_ONLN), name.sysname,
            name.release);
}

/* A report of run folders does not repeat the runs; their own commands do. */
static void write_run_commands(FILE *file, const struct run_groups *groups)
{
    char command[COMMAND_TEXT_BYTES];
    size_t written = 0;
    for (size_t i = 0; i < groups->count && written < COMMANDS_MAX; i++) {
        for (size_t k = 0; k < groups->list[i].count && written < COMMANDS_MAX; k++) {
            if (run_command_of(groups->list[i].runs[k], command)) {
                fprintf(
                    file, "%s",
                    written++ == 0
                        ? "<details open><summary>These commands repeat the runs</summary>\n<pre>"
                        : "\n");
                html_escape(file, command);
            }
        }
    }
    fprintf(file, "%s", written > 0 ? "</pre></details>\n" : "");
}

static void write_environment(FILE *file, struct writing *writing)
{
    const char *command = writing->page->command;
    bool is_report = strncmp(command, "ringside report", strlen("ringside report")) == 0;
    if (is_report) {
        write_run_commands(file, writing->page->groups);
    }
    if (command[0] != '\0') {
        fprintf(file, "<p>This command %s:</p>\n<pre>",
                is_report ? "wrote this page" : "repeats it");
        html_escape(file, command);
        fprintf(file, "</pre>\n");
    }
    write_hosts(file, writing->page->groups);
    write_machine(file);
    fprintf(file, "<p class=\"note\">%s</p>\n",
            html_has_charts()
                ? "Drag across a plot to zoom, click a legend entry to hide it; with the keyboard, "
                  "arrows show values, and +, - and 0 zoom. For papers there are the same data as "
                  "tables, and plots as SVG and PNG, beside this page, where gnuplot was installed."
                : "This build has no charts: it was made without Chart.js (libjs-chart.js).");
}

static const struct {
    const char *title;
    void (*write)(FILE *file, struct writing *writing);
} sections[] = {
    {"Result", write_result},
    {"Convergence", write_convergence},
    {"Throughput and scaling", write_throughput},
    {"Where the time went", write_times},
    {"Input gap", write_input},
    {"Critical path", write_critical},
    {"Staleness", write_staleness},
    {"Faults", write_faults},
    {"Plots", write_images},
    {"Load of the shards", write_shards},
    {"Environment", write_environment},
};

static void write_section(FILE *file, struct writing *writing, size_t index)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return;
    }
    sections[index].write(memory, writing);
    if (fclose(memory) == 0 && size > 0) {
        fprintf(file, "<h2>%s</h2>\n%s", sections[index].title, text);
    }
    free(text);
}

/* A paragraph for each list of classes that settings have. */
static void write_classes(FILE *file, const struct run_groups *groups)
{
    const struct run_folder *written = NULL;
    char text[RUN_CLASSES_BYTES];
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_folder *run = groups->list[i].runs[0];
        if (groups->list[i].count == 0 || (written != NULL && run_classes_are_same(written, run))) {
            continue;
        }
        written = run;
        run_classes_describe(run, text);
        if (text[0] != '\0') {
            fprintf(file, "<p class=\"note\">");
            html_escape(file, text);
            fprintf(file, "</p>\n");
        }
    }
}

static void write_page(FILE *file, const void *context)
{
    const struct report_page *page = context;
    struct writing writing = {.page = page, .figures = json_array()};
    html_begin(file, page->title);
    fprintf(file, "<h1>%s</h1>\n<p class=\"lead\">", page->title);
    html_escape(file, page->lead);
    fprintf(file, "</p>\n");
    write_classes(file, page->groups);
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        write_section(file, &writing, i);
    }
    html_end(file, writing.figures);
    json_decref(writing.figures);
}

enum status sections_write(const struct report_page *page)
{
    return folder_write(page->folder, "report.html", write_page, page);
}
