/* ringside timeline: what the timeline of a run holds; in other formats for other viewers. */
#include "deploy/trace/timeline.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/system/folder.h"
#include "deploy/trace/chrome_json.h"
#include "deploy/trace/otf2_archive.h"
#include "deploy/trace/timeline_merge.h"
#include "deploy/trace/timeline_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct timeline_options {
    char json[1024], otf2[1024];
};

static const struct option rows[] = {
    {.name = "json",
     OPTION_FIELD(TEXT, timeline_options, json),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "FILE",
     .help = "write the timeline as JSON of Chrome's trace format as well, to a new file"},
    {.name = "otf2",
     OPTION_FIELD(TEXT, timeline_options, otf2),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "FOLDER",
     .help = "write the timeline as an OTF2 archive as well, for Vampir and Score-P's tools, to a "
             "new folder"},
};

static enum status write_json(const char *path, const struct timeline *timeline,
                              const struct timeline_flow *flows, size_t flow_count)
{
    FILE *file = new_file_stream(path, false);
    if (file == NULL) {
        log_error("cannot write %s: %m%s", path,
                  errno == EEXIST ? "; name a file that is not there yet" : "");
        return STATUS_IO;
    }
    chrome_json_write(file, timeline, flows, flow_count);
    bool is_written = ferror(file) == 0;
    if (fclose(file) != 0 || !is_written) {
        log_error("cannot write %s: %m", path);
        (void)unlink(path); // a part of it would look like a timeline
        return STATUS_IO;
    }
    printf("%s: for chrome://tracing and other viewers of its format\n", path);
    return STATUS_OK;
}

static enum status write_otf2(const char *folder, const struct timeline *timeline,
                              const struct timeline_flow *flows, size_t flow_count)
{
    // Before anything is made, so that a build without OTF2 leaves nothing.
    if (otf2_archive_is_built() && mkdir(folder, 0777) != 0) {
        log_error("cannot make the folder %s: %m%s", folder,
                  errno == EEXIST ? "; name one that is not there yet" : "");
        return STATUS_IO;
    }
    enum status status = otf2_archive_write(folder, timeline, flows, flow_count);
    if (status == STATUS_OK) {
        printf("%s/" OTF2_ARCHIVE_NAME ".otf2: for Vampir and otf2-print\n", folder);
    } else if (otf2_archive_is_built()) {
        folder_remove(folder); // a part of it would look like an archive
    }
    return status;
}

/* What the options ask for. */
static enum status write_others(const struct timeline_options *options,
                                const struct timeline *timeline, const struct timeline_flow *flows,
                                size_t flow_count)
{
    if (options->json[0] != '\0') {
        enum status status = write_json(options->json, timeline, flows, flow_count);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return options->otf2[0] != '\0' ? write_otf2(options->otf2, timeline, flows, flow_count)
                                    : STATUS_OK;
}

static enum status show(const char *run, const struct timeline_options *options)
{
    char path[TIMELINE_PATH_BYTES];
    struct timeline timeline = {0};
    struct timeline_flow *flows = NULL;
    size_t flow_count = 0;
    enum status status = timeline_find(run, path);
    if (status != STATUS_OK) {
        return status;
    }
    status = timeline_read(path, &timeline);
    if (status != STATUS_OK) {
        return status;
    }
    if (timeline.process_count == 0) {
        log_error("%s has no process in it: it is empty, or not a timeline of Ringside's", path);
        timeline_finish(&timeline);
        return STATUS_INVALID;
    }
    status = timeline_list_flows(&timeline, &flows, &flow_count);
    if (status == STATUS_OK) {
        timeline_report_print(stdout, run, &timeline, flows, flow_count);
        status = write_others(options, &timeline, flows, flow_count);
    }
    free(flows);
    timeline_finish(&timeline);
    return status;
}

enum exit_code command_timeline(int argc, char **argv)
{
    struct timeline_options options;
    struct option_program program = {
        .name = "ringside timeline",
        .usage = "ringside timeline RUN|FILE [--json FILE] [--otf2 FOLDER]",
        .summary = "Prints what the timeline of a run folder holds (a job with --timeline), or of "
                   "a file that was copied\nfrom one. The file, timeline.pftrace, is for "
                   "https://ui.perfetto.dev.",
        .example = "  ringside run -n 2 --mode ring --timeline --out runs/a\n"
                   "  ringside timeline runs/a --json a.json\n"
                   "  ringside timeline runs/a --otf2 a-otf2\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &options}},
        .set_count = 1,
        .takes_arguments_alone = true,
    };
    const char *run = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    bool is_done = false;
    if (run != NULL) {
        argv[1] = argv[0]; // the options are those behind it
    }
    if (options_parse(&program, run != NULL ? argc - 1 : argc, run != NULL ? argv + 1 : argv,
                      &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (run == NULL) {
        log_error("name the run folder, or its timeline.pftrace, first: ringside timeline RUN");
        return EXIT_USAGE;
    }
    return exit_code(show(run, &options));
}
