/* Finds out by itself which checkpoints are whole, resumes the job, and judges where it went on. */
#include "tests/sim/aftermath.h"

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/step_folders.h"
#include "tests/sim/disk.h"
#include "tests/sim/judge.h"
#include "tests/sim/sim_gradients.h"
#include "tests/sim/story.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHECKPOINTS_PATH DISK_ROOT "/checkpoint"
#define PARAMS_FILE      "params"
#define STATE_FILE       "state-1"

// To give up starting (30 s), or to train and to close.
#define RESUMED_END_NS (UINT64_C(120) * 1000000000)

/* Whether a vector's file has what the job had written, and that is what it must be. */
static bool is_vector(struct disk_node *folder, const char *name, const float *expected,
                      size_t bytes)
{
    struct disk_node *file = disk_find(folder, name);
    return file != NULL && disk_is_intact(file) && disk_size(file) == bytes &&
           memcmp(disk_bytes(file), expected, bytes) == 0;
}

/* A folder has what the job had written when the checkpoint was whole, and the parameters of its
 * step; of a job with momentum, also the state. The jobs have no other vectors. */
static bool is_whole(const struct cluster *cluster, struct disk_node *folder, uint64_t step)
{
    float expected[SIM_VALUES_MAX];
    uint32_t count = cluster->shape.value_count;
    size_t bytes = count * sizeof(float);
    struct disk_node *manifest = disk_find(folder, MANIFEST_FILE);
    if (manifest == NULL || disk_size(manifest) == 0 || !disk_is_intact(manifest) ||
        ((const char *)disk_bytes(manifest))[disk_size(manifest) - 1] != '\n') {
        return false;
    }
    sim_expected(&cluster->job, count, step, expected);
    if (!is_vector(folder, PARAMS_FILE, expected, bytes)) {
        return false;
    }
    if (!cluster->shape.has_momentum) {
        return true;
    }
    sim_expected_state(&cluster->job, count, step, expected);
    return is_vector(folder, STATE_FILE, expected, bytes);
}

/* The newest one that is whole and not newer than a step; 0: there is none. */
static uint64_t newest_whole(const struct cluster *cluster, uint64_t most,
                             struct disk_node **ret_folder)
{
    struct disk_node *all = disk_look_up(CHECKPOINTS_PATH);
    struct step_folder found;
    uint64_t newest = 0;
    const char *name;
    for (uint32_t i = 0; all != NULL && (name = disk_name(all, i)) != NULL; i++) {
        struct disk_node *folder = disk_find(all, name);
        if (step_folder_parse(name, &found) && found.kind != STEP_FOLDER_NEW &&
            found.step > newest && found.step <= most && is_whole(cluster, folder, found.step)) {
            newest = found.step;
            *ret_folder = folder;
        }
    }
    return newest;
}

/* ============================================================================================
 * What the job has left
 * ========================================================================================== */

/* Steps of the checkpoints that the job counts on, the newest first; returns their number. */
static uint32_t counted_on(const struct cluster *cluster, uint64_t ret_steps[CLUSTER_WRITTEN_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cluster->written_count; i++) {
        uint64_t step = cluster->written[i];
        uint32_t later = 0; // of a past that the job has gone back behind, and this step itself
        while (later < count && ret_steps[later] >= step) {
            later++;
        }
        memmove(ret_steps + 1, ret_steps + later, (count - later) * sizeof(*ret_steps));
        ret_steps[0] = step;
        count = count - later + 1;
        count = count < cluster->shape.keep ? count : cluster->shape.keep;
    }
    return count;
}

static const char *judge_what_is_left(const struct cluster *cluster)
{
    uint64_t steps[CLUSTER_WRITTEN_MAX];
    struct disk_node *folder;
    uint32_t count = counted_on(cluster, steps), at = 0;
    uint64_t newest = newest_whole(cluster, UINT64_MAX, &folder);
    if (newest != (count > 0 ? steps[0] : 0)) {
        // One that became whole before it could be counted on may have taken the place of others.
        return count > 0 && newest == 0 ? "no checkpoint is left of a job that counts on one"
               : newest < (count > 0 ? steps[0] : 0) && !cluster->shape.redeals
                   ? "the last good checkpoint is not whole"
                   : NULL;
    }
    // So may an older one that was whole, and of which the disk has said that it is not there.
    uint64_t step = newest;
    for (uint32_t kept = 0; kept < count; kept++) {
        if (step < steps[at]) {
            return "an older checkpoint that is to be kept is not whole";
        }
        at += step == steps[at];
        step = step > 0 ? newest_whole(cluster, step - 1, &folder) : 0;
    }
    return NULL;
}

/* ============================================================================================
 * The job that goes on
 * ========================================================================================== */

static bool is_said(const char *story, const char *name, const char *what)
{
    char text[96];
    snprintf(text, sizeof(text), "%s%s", name, what);
    return strstr(story, text) != NULL;
}

// Names of folders that a job has to pass over.
struct passed_over {
    char names[CLUSTER_WRITTEN_MAX][STEP_FOLDER_BYTES];
    uint32_t count;
};

/* Those that are newer than the step that it goes on from. */
static void list_passed_over(uint64_t step, struct passed_over *ret_passed)
{
    struct disk_node *all = disk_look_up(CHECKPOINTS_PATH);
    struct step_folder found;
    const char *name;
    ret_passed->count = 0;
    for (uint32_t i = 0; all != NULL && (name = disk_name(all, i)) != NULL; i++) {
        if (step_folder_parse(name, &found) && found.kind != STEP_FOLDER_NEW && found.step > step &&
            ret_passed->count < CLUSTER_WRITTEN_MAX) {
            step_folder_name(found, ret_passed->names[ret_passed->count++]);
        }
    }
}

static const char *judge_passed_over(const struct passed_over *passed, const char *story)
{
    for (uint32_t i = 0; i < passed->count; i++) {
        if (!is_said(story, passed->names[i], " is passed over: ")) {
            return "a checkpoint that is not whole is passed over without a word";
        }
    }
    return NULL;
}

/* There is nothing to go on from, or nothing is left to do. */
static const char *judge_refused(const struct cluster *resumed, const char *story)
{
    if (resumed->has_verdict) {
        return "a job goes on from nothing";
    }
    return resumed->servers[0]->exit_status == 0 || !is_said(story, "", "cannot resume")
               ? "a job that cannot go on does not say so"
               : NULL;
}

static const char *judge_completed(const struct cluster *resumed)
{
    for (uint32_t rank = 0; rank < resumed->shape.workers; rank++) {
        const struct sim_worker *training = &resumed->trainings[rank];
        if (training->status != STATUS_OK || !judge_values(resumed, training)) {
            return "the job that has gone on ends with other parameters or states";
        }
    }
    return NULL;
}

static const char *judge_resumed(const struct cluster *resumed, uint64_t from, const char *story)
{
    if (from == 0 || from == resumed->shape.steps) {
        return judge_refused(resumed, story);
    }
    if (!resumed->has_verdict || resumed->begin_step != from) {
        return "the job does not go on from the newest checkpoint that is whole";
    }
    if (resumed->verdict != STATUS_OK) {
        return resumed->cannot_write && is_said(resumed->reason, "", "checkpoint")
                   ? NULL
                   : "the job that goes on fails";
    }
    const char *broken = judge_completed(resumed);
    bool is_written = resumed->written_count > 0 &&
                      resumed->written[resumed->written_count - 1] == resumed->shape.steps;
    if (broken == NULL && !disk_health()->is_read_only && !is_written) {
        return "the job that has gone on has no last checkpoint";
    }
    return broken == NULL && disk_health()->is_read_only && !is_said(story, "", "read-only")
               ? "that no checkpoint can be written is not said"
               : broken;
}

/* In a world of its own. */
static const char *resume(const struct scenario *scenario, uint64_t from)
{
    static struct cluster resumed;
    struct passed_over passed;
    struct cluster_shape shape = scenario->shape;
    size_t before = strlen(story_text());
    const char *broken = NULL;
    shape.resumes = true;
    list_passed_over(from, &passed);
    cluster_begin(&resumed, &shape, scenario->seed + 1, &scenario->costs);
    story_say("the job is resumed; its newest whole checkpoint is of step %" PRIu64, from);
    if (!cluster_run(&resumed, RESUMED_END_NS)) {
        broken = "a process of the job that goes on has not ended";
    }
    const char *story = story_text() + before;
    if (broken == NULL) {
        broken = judge_passed_over(&passed, story);
    }
    if (broken == NULL) {
        broken = judge_resumed(&resumed, from, story);
    }
    disk_close_all();
    return broken;
}

/* ============================================================================================
 * All of it
 * ========================================================================================== */

/* What the job has said, and left undone, of its own checkpoints. */
static const char *judge_job(const struct scenario *scenario, const struct cluster *cluster)
{
    bool is_completed = cluster->has_verdict && cluster->verdict == STATUS_OK;
    bool is_last_written = cluster->written_count > 0 &&
                           cluster->written[cluster->written_count - 1] == cluster->shape.steps;
    if (cluster->failed_count > 0 && strstr(story_text(), "no checkpoint at step") == NULL) {
        return "that a checkpoint could not be written is not said";
    }
    // Where servers are lost for good, nobody has what they had.
    bool is_excused = !scenario->shape.redeals &&
                      is_said(story_text(), "", "ends without its last checkpoint: a part");
    if (is_completed && scenario->disk.fault_count == 0 && !is_last_written && !is_excused) {
        return "a completed job has no last checkpoint";
    }
    return NULL;
}

static void lose_and_damage(const struct disk_plan *plan, const struct cluster *cluster)
{
    static const char *const damages[] = {"cut short", "wrong in a bit", "gone"};
    struct disk_node *folder;
    uint64_t step = newest_whole(cluster, UINT64_MAX, &folder);
    const char *name = plan->damages_manifest ? MANIFEST_FILE : PARAMS_FILE;
    if (plan->is_damaged && step > 0) {
        story_say("%s of step %" PRIu64 " is %s", name, step, damages[plan->damage]);
        disk_damage(folder, name, plan->damage);
    }
}

const char *aftermath_judge(const struct scenario *scenario, const struct cluster *cluster)
{
    const struct disk_plan *plan = &scenario->disk;
    struct disk_node *folder;
    const char *broken = judge_job(scenario, cluster);
    for (uint32_t i = 0; cluster_process(cluster, i) != NULL; i++) {
        world_kill(cluster_process(cluster, i)); // those that are stopped for good
    }
    disk_close_all();
    *disk_health() = (struct disk_health){.room = DISK_UNLIMITED, .write_ns = plan->write_ns};
    if (plan->loses_power) {
        story_say("the power is lost");
        disk_lose_power();
    }
    if (broken == NULL) {
        broken = judge_what_is_left(cluster);
    }
    if (broken != NULL) {
        return broken;
    }
    lose_and_damage(plan, cluster);
    uint64_t from = newest_whole(cluster, UINT64_MAX, &folder);
    if (plan->comes_back_read_only) {
        disk_health()->is_read_only = true;
        broken = resume(scenario, from);
        disk_health()->is_read_only = false;
    }
    return broken == NULL ? resume(scenario, from) : broken;
}
