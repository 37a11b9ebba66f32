/* Looks after the members of a cluster every few virtual milliseconds. */
#include "tests/sim/sim_launcher.h"

#include "common/job/carriers.h"
#include "tests/sim/story.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

// As in deploy/launch/restart.c and launch.c.
#define PAUSE_NS (500 * MS_NS)
#define CLOSE_NS (1500 * MS_NS)

static void make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        abort();
    }
    *ret_read = ends[0];
    *ret_write = ends[1];
}

/* "worker 3" */
static void name_of(const struct sim_launcher *launcher, uint32_t member, char *ret_name,
                    size_t size)
{
    uint32_t servers = job_ps_count(&launcher->cluster->job);
    snprintf(ret_name, size, "%s %u", member < servers ? "server" : "worker",
             member < servers ? member : member - servers);
}

static bool is_over(const struct sim_launcher *launcher, uint32_t member)
{
    return cluster_process(launcher->cluster, member)->state == PROCESS_ENDED;
}

static uint32_t count_running(const struct sim_launcher *launcher)
{
    uint32_t count = 0, servers = job_ps_count(&launcher->cluster->job);
    for (uint32_t i = servers; cluster_process(launcher->cluster, i) != NULL; i++) {
        count += !is_over(launcher, i);
    }
    return count;
}

static uint32_t count_planned(const struct sim_launcher *launcher)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SIM_LAUNCHER_MEMBERS_MAX; i++) {
        count += launcher->restart_ns[i] != 0;
    }
    return count;
}

/* For which another one is planned, or kept until the coordinator has answered. */
static bool has_room(const struct sim_launcher *launcher, uint32_t member)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < SIM_LAUNCHER_MEMBERS_MAX; i++) {
        taken += i != member && (launcher->restart_ns[i] != 0 || launcher->is_offered[i]);
    }
    return taken < launcher->restarts;
}

/* A line arrives. */
static void deliver(void *data)
{
    const struct sim_line *line = data;
    ssize_t size = (ssize_t)strlen(line->text);
    if (line->pipe == line->launcher->pipe_count &&
        write(line->launcher->told, line->text, (size_t)size) != size) {
        abort();
    }
}

static void tell(struct sim_launcher *launcher, const char *kind, uint32_t member, const char *how)
{
    char name[32];
    struct sim_line *line = &launcher->lines[launcher->line_count++ % SIM_LAUNCHER_LINES_MAX];
    name_of(launcher, member, name, sizeof(name));
    line->launcher = launcher;
    line->pipe = launcher->pipe_count;
    snprintf(line->text, sizeof(line->text), "%s %s launch %u %s %s\n", kind, name,
             cluster_launch(launcher->cluster, member), name, how);
    launcher->told_count++;
    story_say("the launcher tells: %s %s", kind, name);
    if (launcher->late_ns == 0) {
        deliver(line);
    } else {
        world_at(world_now_ns() + launcher->late_ns, deliver, line);
    }
}

/* Tells how a member ended, and may plan to start it again. */
static void note_end(struct sim_launcher *launcher, uint32_t member)
{
    const struct sim_process *process = cluster_process(launcher->cluster, member);
    const struct job *job = &launcher->cluster->job;
    bool is_worker = member >= job_ps_count(job);
    bool may_start = !launcher->is_ending && has_room(launcher, member);
    launcher->is_noted[member] = true;
    if (launcher->is_settled[member]) {
        tell(launcher, "over", member, "was lost before");
        return;
    }
    if (!process->is_killed) {
        if (process->exit_status != 0) {
            bool is_lost = launcher->is_returning && job_may_go_on(job);
            tell(launcher, is_lost ? "lost" : "ended", member, "ended by itself");
        }
        return;
    }
    launcher->workers_killed += is_worker && !launcher->is_counted[member];
    launcher->is_counted[member] = true;
    launcher->is_offered[member] = may_start && (!launcher->has_begun || launcher->is_returning);
    const char *kind = may_start ? "again" : launcher->is_returning ? "lost" : "killed";
    tell(launcher, kind, member, "was killed");
    if (may_start && is_worker && job_may_go_on(job) &&
        count_running(launcher) >= job->min_workers) {
        launcher->restart_ns[member] = world_now_ns() + PAUSE_NS;
    }
}

/* The coordinator will not answer any more. */
static void end_offers(struct sim_launcher *launcher)
{
    memset(launcher->is_offered, 0, sizeof(launcher->is_offered));
}

/* The job goes on without those of whose ends the coordinator had heard. */
static void settle(struct sim_launcher *launcher, unsigned long heard)
{
    for (uint32_t i = 1; cluster_process(launcher->cluster, i) != NULL; i++) {
        bool is_heard = launcher->is_noted[i] && launcher->told_by[i] <= heard;
        launcher->is_settled[i] = launcher->is_settled[i] || is_heard;
    }
    end_offers(launcher);
}

/* The coordinator waits for the member. It hears again of all others that have ended. */
static void start_awaited(struct sim_launcher *launcher, uint32_t member)
{
    if (!is_over(launcher, member) || !has_room(launcher, member)) {
        return;
    }
    launcher->is_offered[member] = false;
    if (launcher->restart_ns[member] == 0) {
        launcher->restart_ns[member] = world_now_ns() + count_planned(launcher) * PAUSE_NS + 1;
    }
    for (uint32_t i = 1; cluster_process(launcher->cluster, i) != NULL; i++) {
        launcher->is_noted[i] = is_over(launcher, i) && launcher->restart_ns[i] != 0;
    }
}

static void take_line(struct sim_launcher *launcher, const char *line)
{
    char name[32], expected[48];
    if (strcmp(line, "ending") == 0) {
        launcher->is_ending = true;
        memset(launcher->restart_ns, 0, sizeof(launcher->restart_ns));
    }
    if (strcmp(line, "training") == 0) {
        launcher->has_begun = true;
        launcher->is_returning = false;
        end_offers(launcher);
    }
    if (strncmp(line, "renewed ", strlen("renewed ")) == 0) {
        settle(launcher, strtoul(line + strlen("renewed "), NULL, 10));
    }
    for (uint32_t i = 1; cluster_process(launcher->cluster, i) != NULL; i++) {
        name_of(launcher, i, name, sizeof(name));
        snprintf(expected, sizeof(expected), "await %s", name);
        if (strcmp(line, expected) == 0) {
            story_say("the coordinator says: %s (%u restarts are left)", line, launcher->restarts);
            start_awaited(launcher, i);
        }
    }
}

static void take_lines(struct sim_launcher *launcher)
{
    char bytes[4096];
    ssize_t got = read(launcher->heard, bytes, sizeof(bytes) - 1);
    bytes[got > 0 ? got : 0] = '\0'; // lines are written whole
    char *rest = bytes;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        take_line(launcher, line);
    }
}

static void start_due(struct sim_launcher *launcher)
{
    uint32_t servers = job_ps_count(&launcher->cluster->job);
    char name[32];
    for (uint32_t i = 1; i < SIM_LAUNCHER_MEMBERS_MAX; i++) {
        if (launcher->restart_ns[i] == 0 || world_now_ns() < launcher->restart_ns[i]) {
            continue;
        }
        name_of(launcher, i, name, sizeof(name));
        story_say("%s is started again", name);
        launcher->restart_ns[i] = 0;
        launcher->is_noted[i] = launcher->is_settled[i] = launcher->is_offered[i] = false;
        launcher->is_counted[i] = false;
        launcher->restarts--;
        if (i < servers) {
            cluster_start_server(launcher->cluster, i);
        } else {
            cluster_start_worker(launcher->cluster, i - servers);
        }
    }
}

/* The job is over: nobody is started again, and who is left is killed before long. */
static void close_job(struct sim_launcher *launcher)
{
    memset(launcher->restart_ns, 0, sizeof(launcher->restart_ns));
    if (launcher->over_ns == 0) {
        launcher->over_ns = world_now_ns();
    }
    bool is_late = world_now_ns() >= launcher->over_ns + CLOSE_NS;
    for (uint32_t i = 1; is_late && cluster_process(launcher->cluster, i) != NULL; i++) {
        launcher->late_count += !is_over(launcher, i);
        world_kill(cluster_process(launcher->cluster, i));
    }
}

static void open_pipes(struct sim_launcher *launcher)
{
    launcher->pipe_count++;
    make_pipe(&launcher->cluster->launcher_fd, &launcher->told);
    make_pipe(&launcher->heard, &launcher->cluster->announce_fd);
}

static void close_pipes(struct sim_launcher *launcher)
{
    close(launcher->told);
    close(launcher->heard);
    close(launcher->cluster->launcher_fd); // a coordinator that has ended has closed the other one
}

/* The coordinator was killed, and others wait for the next one. */
static void return_coordinator(struct sim_launcher *launcher)
{
    if (launcher->return_ns == 0) {
        launcher->return_ns = world_now_ns() + launcher->return_after_ns;
    }
    if (world_now_ns() < launcher->return_ns) {
        return;
    }
    story_say("the coordinator is started again");
    launcher->return_ns = 0;
    launcher->returns--;
    launcher->is_returning = launcher->has_begun;
    launcher->is_ending = false;
    launcher->told_count = 0;
    end_offers(launcher);
    for (uint32_t i = 1; i < SIM_LAUNCHER_MEMBERS_MAX; i++) {
        launcher->is_noted[i] = !launcher->has_begun && launcher->restart_ns[i] != 0;
    }
    close(launcher->cluster->announce_fd);
    close_pipes(launcher);
    open_pipes(launcher);
    cluster_return_coordinator(launcher->cluster);
}

static void look(void *data)
{
    struct sim_launcher *launcher = data;
    take_lines(launcher);
    if (is_over(launcher, 0) && cluster_process(launcher->cluster, 0)->is_killed &&
        launcher->returns > 0) {
        return_coordinator(launcher);
    } else if (is_over(launcher, 0)) {
        close_job(launcher);
    } else {
        for (uint32_t i = 1; cluster_process(launcher->cluster, i) != NULL; i++) {
            if (is_over(launcher, i) && !launcher->is_noted[i]) {
                note_end(launcher, i);
                launcher->told_by[i] = launcher->told_count;
            }
        }
        start_due(launcher);
    }
    if (!sim_launcher_is_over(launcher)) {
        world_at(world_now_ns() + launcher->look_ns, look, launcher);
    }
}

void sim_launcher_begin(struct sim_launcher *launcher, struct cluster *cluster, uint64_t look_ns,
                        uint32_t restarts)
{
    *launcher = (struct sim_launcher){.cluster = cluster, .look_ns = look_ns, .restarts = restarts};
    open_pipes(launcher);
    world_at(look_ns, look, launcher);
}

void sim_launcher_end(struct sim_launcher *launcher)
{
    close_pipes(launcher);
}

bool sim_launcher_is_over(void *data)
{
    const struct sim_launcher *launcher = data;
    const struct sim_process *process = cluster_process(launcher->cluster, 0);
    for (uint32_t i = 0; process != NULL; process = cluster_process(launcher->cluster, ++i)) {
        if (process->state != PROCESS_ENDED) {
            return false;
        }
    }
    return true;
}
