/* Keeps and compares how long jobs took to start. */
#include "deploy/calibrate/calibration_launch.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/predict/basis/fields.h"
#include "deploy/system/folder.h"

#include <jansson.h>

#include <stdio.h>
#include <sys/stat.h>

/* When the folder's job made its first step, by the clock of files; 0: not known. The summary is
 * written when a job ends, and says how long it trained. */
static double find_begin_s(const char *folder)
{
    struct run_folder run;
    struct stat found;
    char path[FOLDER_PATH_MAX + 32];
    double begin_s = 0;
    snprintf(path, sizeof(path), "%s/summary.json", folder);
    if (stat(path, &found) == 0 && run_folder_open(folder, &run) == STATUS_OK) {
        double trained_s = run_folder_number(&run, "seconds");
        begin_s = (double)found.st_mtim.tv_sec + 1e-9 * (double)found.st_mtim.tv_nsec - trained_s;
        run_folder_close(&run);
    }
    return begin_s;
}

static void write_json(FILE *file, const void *context)
{
    json_dumpf(context, file, JSON_INDENT(2));
    fprintf(file, "\n");
}

enum status calibration_launch_write(const char *folder, double launched_s, double agents_s)
{
    double start_s = find_begin_s(folder) - launched_s;
    if (!(start_s > 0)) {
        return STATUS_OK; // also of clocks that were set meanwhile
    }
    json_t *object = json_pack("{s:f, s:f}", "agents_seconds", agents_s, "start_seconds", start_s);
    enum status status = object != NULL
                             ? folder_write(folder, CALIBRATION_LAUNCH_NAME, write_json, object)
                             : STATUS_NO_MEMORY;
    json_decref(object);
    return status;
}

void calibration_launch_read(struct calibration_run *run)
{
    char path[FOLDER_PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/%s", run->folder.path, CALIBRATION_LAUNCH_NAME);
    json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    run->start_s = json_number_value(json_object_get(object, "start_seconds"));
    run->agents_s = json_number_value(json_object_get(object, "agents_seconds"));
    json_decref(object);
}

/* The quickest start of several jobs: the others waited for something else as well. */
struct quickest {
    double least_s, count;
    double workers, cores; // of the quickest
};

static void add(struct quickest *quickest, const struct calibration_run *run)
{
    if (quickest->count == 0 || run->start_s < quickest->least_s) {
        quickest->least_s = run->start_s;
        quickest->workers = run->workers;
        quickest->cores = run->hosts[0].cores;
    }
    quickest->count++;
}

static double positive(double value)
{
    return value > 0 ? value : 0;
}

/* From the starts of one worker, of several, and of several on fewer cores. */
static void fill(const struct quickest *one, const struct quickest *several,
                 const struct quickest *crowded, struct launch_costs *launch)
{
    double one_s = one->least_s, workers = several->count > 0 ? several->workers : 1;
    double several_s = several->count > 0 ? several->least_s : one_s;
    launch->join_s = workers > 1 ? positive((several_s - one_s) / (workers - 1)) : 0;
    // One worker joins as well, so its start is no shorter.
    launch->join_s = launch->join_s < one_s ? launch->join_s : one_s;
    // Where nothing shows what of it is a process's own, all of it may be.
    launch->process_s = positive(one_s - launch->join_s);
    double turns = crowded->count > 0 ? crowded->workers / crowded->cores : 0;
    if (turns > 1) {
        double own_s = positive((crowded->least_s - several_s) / (turns - 1));
        launch->process_s = own_s < launch->process_s ? own_s : launch->process_s;
    }
    launch->job_s = positive(one_s - launch->join_s - launch->process_s);
    launch->is_given = true;
}

void calibration_take_launch(struct calibration_run *const *runs, size_t run_count,
                             struct calibration *calibration)
{
    struct quickest one = {0}, several = {0}, crowded = {0};
    struct launch_costs *launch = &calibration->costs.launch;
    char agents[QUANTITY_BYTES], job[QUANTITY_BYTES], process[QUANTITY_BYTES], join[QUANTITY_BYTES];
    for (size_t i = 0; i < run_count; i++) {
        const struct calibration_run *run = runs[i];
        if (run->start_s <= 0 || run->hosts[0].cores == 0) {
            continue;
        }
        launch->agents_s = run->agents_s;
        if (run->workers > 1 && calibration_is_crowded(run)) {
            add(&crowded, run);
        } else {
            add(run->workers > 1 ? &several : &one, run);
        }
    }
    if (one.count <= 0) {
        calibration_add_note(&calibration->cost_notes, "launch", true,
                             "no time: only jobs that calibrate runs itself show how long they "
                             "take to start");
        return;
    }
    fill(&one, &several, &crowded, launch);
    quantity_format(launch->agents_s, QUANTITY_TIME, agents);
    quantity_format(launch->job_s, QUANTITY_TIME, job);
    quantity_format(launch->process_s, QUANTITY_TIME, process);
    quantity_format(launch->join_s, QUANTITY_TIME, join);
    calibration_add_note(&calibration->cost_notes, "launch", false,
                         "agents %s, job %s, process %s%s, join %s: %.0f jobs until their first "
                         "step",
                         agents, job, process,
                         crowded.count > 0 ? "" : " (assumed: all that one worker needs)", join,
                         one.count + several.count + crowded.count);
}
