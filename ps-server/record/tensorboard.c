/* Writes the files of a run that TensorBoard reads. */
#include "ps-server/record/tensorboard.h"

#include "common/base/clock.h"
#include "common/job/job_options.h"
#include "ps-server/record/event_file.h"
#include "ps-server/record/tensorboard_event.h"
#include "ps-server/record/tensorboard_hparams.h"
#include "ps-server/results/results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Values of a line, in this order.
static const char *const tags[] = {
    "train/loss",       "train/learning_rate",    "train/images_per_second", "train/staleness",
    "train/compute_ms", "train/exchange_wait_ms", "train/input_wait_ms",
};
#define VALUE_COUNT (sizeof(tags) / sizeof(tags[0]))
enum { LOSS = 0, IMAGES_PER_SECOND = 2 }; // the mean run has the sum of images per second

// Files for the plugin of hyper-parameters, which takes the first of what it finds: one that is
// read before all others, and replaced when the job goes on; and one that is removed then.
#define START_NUMBER 0
#define START_ENDING "-start"
#define END_ENDING   "-end"

struct tensorboard {
    char folder[TENSORBOARD_PATH_BYTES - 64];
    char path[TENSORBOARD_PATH_BYTES]; // that was opened or written last
    const struct job *job;             // borrowed
    char *job_text;                    // owned
    uint32_t workers;
    uint64_t session; // number of files: the time at which they were opened, or more
    int mean_fd;      // of all ranks; -1: not open
    int *rank_fds;    // (workers), of which the first TENSORBOARD_RANKS_MAX open; owned

    // Of the next mean.
    bool *has_line; // (workers), owned
    bool *has_loss; // (workers), owned: whether the last line has one
    uint32_t line_count;
    double (*last)[VALUE_COUNT]; // (workers), owned
    uint64_t *last_step;         // (workers), owned
};

static double wall_time(void)
{
    return (double)clock_day_ns() / 1e9;
}

/* The job's options, as a table in Markdown. */
static char *describe_job(const struct job *job)
{
    char *text = NULL, value[OPTION_VALUE_BYTES];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fputs("| option | value |\n|---|---|\n", out);
    for (size_t i = 0; i < job_option_count; i++) {
        option_format(&job_options[i], job, value, sizeof(value));
        fprintf(out, "| %s | `%s` |\n", job_options[i].name, value);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static enum status write_event(int fd, const struct tensorboard_event *event)
{
    size_t size;
    struct tensorboard_event stamped = *event;
    stamped.wall_time = wall_time();
    uint8_t *bytes = tensorboard_event_pack(&stamped, &size);
    if (bytes == NULL) {
        errno = ENOMEM;
        return STATUS_NO_MEMORY;
    }
    enum status status = event_file_append(fd, bytes, size);
    int error = errno;
    free(bytes);
    errno = error;
    return status;
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* Opens the file of a run, unless it is open. */
static enum status open_stream(struct tensorboard *tensorboard, const char *run, int *fd)
{
    if (*fd >= 0) {
        return STATUS_OK;
    }
    char folder[TENSORBOARD_PATH_BYTES];
    snprintf(folder, sizeof(folder), "%s/%s", tensorboard->folder, run);
    if (!make_folder(folder)) {
        memcpy(tensorboard->path, folder, sizeof(folder));
        return STATUS_IO;
    }
    *fd = event_file_open(folder, tensorboard->session, "", tensorboard->path,
                          sizeof(tensorboard->path));
    if (*fd < 0) {
        return STATUS_IO;
    }
    return write_event(*fd, &(struct tensorboard_event){.version = "brain.Event:2"});
}

static enum status open_rank(struct tensorboard *tensorboard, uint32_t rank)
{
    char run[32];
    snprintf(run, sizeof(run), "rank-%u", rank);
    return open_stream(tensorboard, run, &tensorboard->rank_fds[rank]);
}

static void close_stream(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static uint32_t rank_files(const struct tensorboard *tensorboard)
{
    return tensorboard->workers < TENSORBOARD_RANKS_MAX ? tensorboard->workers
                                                        : TENSORBOARD_RANKS_MAX;
}

static void close_all(struct tensorboard *tensorboard)
{
    close_stream(&tensorboard->mean_fd);
    for (uint32_t i = 0; tensorboard->rank_fds != NULL && i < rank_files(tensorboard); i++) {
        close_stream(&tensorboard->rank_fds[i]);
    }
}

static void mean_folder(const struct tensorboard *tensorboard,
                        char ret_folder[TENSORBOARD_PATH_BYTES])
{
    snprintf(ret_folder, TENSORBOARD_PATH_BYTES, "%s/mean", tensorboard->folder);
}

/* The time, but more than any file of the run has: a job that goes on within a second, or on a host
 * whose clock is late, must not write over what was there. */
static uint64_t next_session(uint64_t newest)
{
    uint64_t now = (uint64_t)wall_time();
    return now > newest ? now : newest + 1;
}

/* Writes a message of the plugin, and frees it. */
static enum status write_hparams(int fd, const char *tag, uint8_t *bytes, size_t size)
{
    const struct tensorboard_event event = {
        .hparams_tag = tag, .hparams = bytes, .hparams_size = size};
    if (bytes == NULL) {
        errno = ENOMEM;
        return STATUS_NO_MEMORY;
    }
    enum status status = write_event(fd, &event);
    int error = errno;
    free(bytes);
    errno = error;
    return status;
}

/* Opens a file beside that of the mean. */
static enum status open_beside(struct tensorboard *tensorboard, uint64_t number, const char *ending,
                               int *ret_fd)
{
    char folder[TENSORBOARD_PATH_BYTES];
    mean_folder(tensorboard, folder);
    int fd = event_file_open(folder, number, ending, tensorboard->path, sizeof(tensorboard->path));
    if (fd < 0) {
        return STATUS_IO;
    }
    *ret_fd = fd;
    return write_event(fd, &(struct tensorboard_event){.version = "brain.Event:2"});
}

static enum status write_start(struct tensorboard *tensorboard)
{
    int fd = -1;
    size_t size = 0;
    enum status status = open_beside(tensorboard, START_NUMBER, START_ENDING, &fd);
    if (status == STATUS_OK) {
        uint8_t *bytes = tensorboard_hparams_experiment(tensorboard->job, &size);
        status = write_hparams(fd, TENSORBOARD_HPARAMS_EXPERIMENT, bytes, size);
    }
    if (status == STATUS_OK) {
        uint8_t *bytes = tensorboard_hparams_start(tensorboard->job, wall_time(), &size);
        status = write_hparams(fd, TENSORBOARD_HPARAMS_START, bytes, size);
    }
    close_stream(&fd);
    return status;
}

static enum status open_mean(struct tensorboard *tensorboard)
{
    char folder[TENSORBOARD_PATH_BYTES];
    mean_folder(tensorboard, folder);
    uint64_t newest = event_file_newest(folder);
    if (!event_file_remove(folder, newest, END_ENDING, tensorboard->path,
                           sizeof(tensorboard->path))) {
        return STATUS_IO;
    }
    tensorboard->session = next_session(newest);
    enum status status = open_stream(tensorboard, "mean", &tensorboard->mean_fd);
    if (status != STATUS_OK) {
        return status;
    }
    const struct tensorboard_event job = {.text_tag = "job/text_summary",
                                          .text = tensorboard->job_text};
    status = write_event(tensorboard->mean_fd, &job);
    return status == STATUS_OK ? write_start(tensorboard) : status;
}

static bool allocate(struct tensorboard *tensorboard, const struct job *job)
{
    size_t workers = job->workers;
    tensorboard->job = job;
    tensorboard->workers = job->workers;
    tensorboard->job_text = describe_job(job);
    tensorboard->rank_fds = calloc(workers, sizeof(*tensorboard->rank_fds));
    tensorboard->has_line = calloc(workers, sizeof(*tensorboard->has_line));
    tensorboard->has_loss = calloc(workers, sizeof(*tensorboard->has_loss));
    tensorboard->last = calloc(workers, sizeof(*tensorboard->last));
    tensorboard->last_step = calloc(workers, sizeof(*tensorboard->last_step));
    tensorboard->mean_fd = -1;
    for (size_t i = 0; tensorboard->rank_fds != NULL && i < workers; i++) {
        tensorboard->rank_fds[i] = -1;
    }
    return tensorboard->job_text != NULL && tensorboard->rank_fds != NULL &&
           tensorboard->has_line != NULL && tensorboard->has_loss != NULL &&
           tensorboard->last != NULL && tensorboard->last_step != NULL;
}

enum status tensorboard_create(const char *run_folder, const struct job *job,
                               struct tensorboard **ret_tensorboard)
{
    struct tensorboard *tensorboard = calloc(1, sizeof(*tensorboard));
    if (tensorboard == NULL || !allocate(tensorboard, job)) {
        tensorboard_destroy(tensorboard);
        errno = ENOMEM;
        return STATUS_NO_MEMORY;
    }
    snprintf(tensorboard->folder, sizeof(tensorboard->folder), "%.4000s/tensorboard", run_folder);
    *ret_tensorboard = tensorboard;
    return STATUS_OK;
}

enum status tensorboard_begin(struct tensorboard *tensorboard)
{
    memcpy(tensorboard->path, tensorboard->folder, sizeof(tensorboard->folder));
    return make_folder(tensorboard->folder) ? open_mean(tensorboard) : STATUS_IO;
}

void tensorboard_destroy(struct tensorboard *tensorboard)
{
    if (tensorboard == NULL) {
        return;
    }
    close_all(tensorboard);
    free(tensorboard->job_text);
    free(tensorboard->rank_fds);
    free(tensorboard->has_line);
    free(tensorboard->has_loss);
    free(tensorboard->last);
    free(tensorboard->last_step);
    free(tensorboard);
}

const char *tensorboard_path(const struct tensorboard *tensorboard)
{
    return tensorboard->path;
}

enum status tensorboard_go_on(struct tensorboard *tensorboard, uint64_t step)
{
    const struct tensorboard_event start = {.step = step + 1, .is_start = true};
    close_all(tensorboard);
    memset(tensorboard->has_line, 0, tensorboard->workers * sizeof(*tensorboard->has_line));
    tensorboard->line_count = 0;
    enum status status = open_mean(tensorboard);
    if (status != STATUS_OK) {
        return status;
    }
    status = write_event(tensorboard->mean_fd, &start);
    for (uint32_t i = 0; i < rank_files(tensorboard) && status == STATUS_OK; i++) {
        status = open_rank(tensorboard, i);
        status = status == STATUS_OK ? write_event(tensorboard->rank_fds[i], &start) : status;
    }
    return status;
}

static void find_values(const struct wire_report *report, double ret_values[VALUE_COUNT])
{
    double steps = report->steps > 0 ? (double)report->steps : 1;
    const double values[] = {
        report->images > 0 ? report->loss_sum / (double)report->images : 0,
        report->rate,
        report->total_ns > 0 ? results_images_used(report) * 1e9 / (double)report->total_ns : 0,
        report->staleness_sum / steps,
        (double)report->compute_ns / 1e6 / steps,
        (double)report->exchange_wait_ns / 1e6 / steps,
        (double)report->input_wait_ns / 1e6 / steps,
    };
    memcpy(ret_values, values, sizeof(values));
}

/* Without a loss where no image was computed, as of a rank that is left out, and without what is
 * not known. */
static enum status write_values(int fd, uint64_t step, const double values[VALUE_COUNT],
                                bool has_loss)
{
    struct tensorboard_scalar scalars[VALUE_COUNT];
    uint32_t count = 0;
    for (uint32_t i = has_loss ? LOSS : LOSS + 1; i < VALUE_COUNT; i++) {
        if (!isnan(values[i]) || i == LOSS) {
            scalars[count++] = (struct tensorboard_scalar){.tag = tags[i], .value = values[i]};
        }
    }
    const struct tensorboard_event event = {
        .step = step, .scalars = scalars, .scalar_count = count};
    return write_event(fd, &event);
}

/* Every rank has a new line: writes their mean. */
static enum status write_mean(struct tensorboard *tensorboard)
{
    double means[VALUE_COUNT] = {0};
    double step = 0, workers = (double)tensorboard->workers, losses = 0;
    for (uint32_t rank = 0; rank < tensorboard->workers; rank++) {
        step += (double)tensorboard->last_step[rank] / workers;
        losses += tensorboard->has_loss[rank];
        for (uint32_t i = 0; i < VALUE_COUNT; i++) {
            means[i] += tensorboard->last[rank][i] / (i == IMAGES_PER_SECOND ? 1 : workers);
        }
    }
    means[LOSS] *= losses > 0 ? workers / losses : 0;
    memset(tensorboard->has_line, 0, tensorboard->workers * sizeof(*tensorboard->has_line));
    tensorboard->line_count = 0;
    return write_values(tensorboard->mean_fd, (uint64_t)(step + 0.5), means, losses > 0);
}

enum status tensorboard_add(struct tensorboard *tensorboard, uint32_t rank,
                            const struct metrics_line *line)
{
    find_values(&line->report, tensorboard->last[rank]);
    tensorboard->last_step[rank] = line->step;
    tensorboard->line_count += !tensorboard->has_line[rank];
    tensorboard->has_line[rank] = true;
    tensorboard->has_loss[rank] = line->report.images > 0;
    if (rank < rank_files(tensorboard)) {
        enum status status = open_rank(tensorboard, rank);
        if (status != STATUS_OK) {
            return status;
        }
        status = write_values(tensorboard->rank_fds[rank], line->step, tensorboard->last[rank],
                              tensorboard->has_loss[rank]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return tensorboard->line_count == tensorboard->workers ? write_mean(tensorboard) : STATUS_OK;
}

enum status tensorboard_add_test(struct tensorboard *tensorboard, uint64_t step, double accuracy,
                                 double loss)
{
    const struct tensorboard_scalar scalars[] = {{"test/accuracy", accuracy}, {"test/loss", loss}};
    const struct tensorboard_event event = {
        .step = step, .scalars = scalars, .scalar_count = isnan(loss) ? 1 : 2};
    return write_event(tensorboard->mean_fd, &event);
}

enum status tensorboard_end(struct tensorboard *tensorboard, bool is_completed)
{
    int fd = -1;
    size_t size = 0;
    enum status status = open_beside(tensorboard, tensorboard->session, END_ENDING, &fd);
    if (status == STATUS_OK) {
        uint8_t *bytes = tensorboard_hparams_end(is_completed, wall_time(), &size);
        status = write_hparams(fd, TENSORBOARD_HPARAMS_END, bytes, size);
    }
    close_stream(&fd);
    return status;
}
