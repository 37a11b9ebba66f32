/* Reads --fault, checks it against the job, and says which fault strikes whom when. */
#include "common/job/faults.h"

#include "common/base/number.h"
#include "common/job/job_modes.h"
#include "common/transport/endpoints.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_MAX  1000000
#define STEP_MAX    UINT64_C(1000000000000000)
#define SHOWN_CHARS 60 // of a fault, in an error
#define WHY_BYTES   256
#define STOP        "stop="
#define PARTITION   "partition="

/* ==========================================================================================
 * Text
 * ========================================================================================== */

/* A piece of a text, which no terminator ends. */
struct piece {
    const char *text;
    size_t size;
};

/* Cuts off what comes before the next separator, or the rest. */
static struct piece take_piece(struct piece *rest, char separator)
{
    const char *end = memchr(rest->text, separator, rest->size);
    size_t size = end != NULL ? (size_t)(end - rest->text) : rest->size;
    struct piece piece = {rest->text, size};
    rest->text += size + (end != NULL);
    rest->size -= size + (end != NULL);
    return piece;
}

static bool is_word(struct piece piece, const char *word)
{
    return piece.size == strlen(word) && memcmp(piece.text, word, piece.size) == 0;
}

/* "name=number" */
static bool parse_number(struct piece piece, const char *name, uint64_t max, uint64_t *ret_number)
{
    size_t size = strlen(name);
    return piece.size > size + 1 && memcmp(piece.text, name, size) == 0 &&
           piece.text[size] == '=' &&
           number_whole(piece.text + size + 1, piece.size - size - 1, max, ret_number);
}

static const char *parse_place(struct piece piece, struct fault *fault)
{
    uint64_t number;
    if (parse_number(piece, "rank", NUMBER_MAX, &number)) {
        fault->place = FAULT_AT_RANK;
    } else if (parse_number(piece, "shard", NUMBER_MAX, &number)) {
        fault->place = FAULT_AT_SHARD;
    } else {
        return "strikes nobody: it must begin with rank=R or shard=K, both from 0";
    }
    fault->number = (uint32_t)number;
    return NULL;
}

/* "5s" behind the word of a kind; what is wrong with it, or NULL. */
static const char *parse_seconds(struct piece piece, size_t skip, struct fault *fault)
{
    char digits[32];
    size_t size = piece.size - skip;
    if (size >= sizeof(digits)) {
        return "lasts for more digits than that needs: write stop=5s or partition=0.5s";
    }
    memcpy(digits, piece.text + skip, size);
    digits[size] = '\0';
    size_t used = number_decimal(digits, &fault->seconds);
    if (used == 0 || strcmp(digits + used, "s") != 0) {
        return "does not say how long it lasts: write stop=5s or partition=0.5s";
    }
    if (fault->seconds < 0.001 || fault->seconds > FAULTS_SECONDS_MAX) {
        return "lasts for too short or too long: 0.001 to 3600 s";
    }
    return NULL;
}

static bool begins_with(struct piece piece, const char *word)
{
    return piece.size >= strlen(word) && memcmp(piece.text, word, strlen(word)) == 0;
}

static const char *parse_action(struct piece piece, struct fault *fault)
{
    if (is_word(piece, "kill")) {
        fault->kind = FAULT_KILL;
        return NULL;
    }
    if (begins_with(piece, STOP)) {
        fault->kind = FAULT_STOP;
        return parse_seconds(piece, strlen(STOP), fault);
    }
    if (begins_with(piece, PARTITION)) {
        fault->kind = FAULT_PARTITION;
        return parse_seconds(piece, strlen(PARTITION), fault);
    }
    return piece.size == 0
               ? "does nothing there: it must end with kill, stop=5s or partition=5s"
               : "does what is not known: it must end with kill, stop=5s or partition=5s";
}

/* One fault; or what is wrong with it. */
static const char *parse_fault(struct piece piece, struct fault *fault)
{
    struct piece rest = piece;
    const char *why = parse_place(take_piece(&rest, ','), fault);
    if (why != NULL) {
        return why;
    }
    if (!parse_number(take_piece(&rest, ','), "step", STEP_MAX, &fault->step) || fault->step == 0) {
        return "names no step: behind rank or shard must stand step=S, and steps count from 1";
    }
    return parse_action(rest, fault);
}

static bool has_place_of(const struct faults *faults, const struct fault *fault)
{
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *other = &faults->list[i];
        if (other->place == fault->place && other->number == fault->number &&
            other->step == fault->step) {
            return true;
        }
    }
    return false;
}

/* Adds a fault to those before it; or what is wrong with it. */
static const char *add_fault(struct piece piece, struct faults *faults)
{
    struct fault fault = {0};
    const char *why = parse_fault(piece, &fault);
    if (why != NULL) {
        return why;
    }
    if (has_place_of(faults, &fault)) {
        return "is where another fault is already: one at each step of a rank or shard";
    }
    if (faults->count == FAULTS_MAX) {
        return "is one too many: at most 16 faults";
    }
    faults->list[faults->count++] = fault;
    return NULL;
}

enum status faults_parse(const char *text, struct faults *ret_faults, char *ret_why,
                         size_t why_size)
{
    struct faults faults = {.count = 0};
    struct piece rest = {text, strlen(text)};
    bool is_last = strcmp(text, "none") == 0;
    while (!is_last) {
        is_last = memchr(rest.text, ';', rest.size) == NULL;
        struct piece piece = take_piece(&rest, ';');
        const char *why = add_fault(piece, &faults);
        if (why != NULL) {
            int shown = (int)(piece.size < SHOWN_CHARS ? piece.size : SHOWN_CHARS);
            snprintf(ret_why, why_size, "'%.*s' %s (such as rank=2,step=100,kill)", shown,
                     piece.text, why);
            return STATUS_INVALID;
        }
    }
    *ret_faults = faults;
    return STATUS_OK;
}

struct faults faults_of(const struct job *job)
{
    char why[WHY_BYTES];
    struct faults faults;
    enum status status = faults_parse(job->faults, &faults, why, sizeof(why));
    assert(status == STATUS_OK); // the option was checked
    (void)status;
    return faults;
}

void fault_format(const struct fault *fault, char ret_text[FAULT_TEXT_BYTES])
{
    const char *place = fault->place == FAULT_AT_RANK ? "rank" : "shard";
    int used = snprintf(ret_text, FAULT_TEXT_BYTES, "%s=%" PRIu32 ",step=%" PRIu64 ",", place,
                        fault->number, fault->step);
    size_t left = FAULT_TEXT_BYTES - (size_t)used;
    if (fault->kind == FAULT_KILL) {
        snprintf(ret_text + used, left, "kill");
    } else {
        snprintf(ret_text + used, left, "%s%gs", fault->kind == FAULT_STOP ? STOP : PARTITION,
                 fault->seconds);
    }
}

/* ==========================================================================================
 * The processes that they strike
 * ========================================================================================== */

/* Whether a job comes to the first one before the second, which are of the same list. */
static bool comes_before(const struct fault *first, const struct fault *second)
{
    if (first->step != second->step) {
        return first->step < second->step;
    }
    if (first->place != second->place) {
        return first->place < second->place;
    }
    return first < second;
}

const struct fault *faults_next_kill(const struct faults *faults)
{
    const struct fault *earliest = NULL;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        if (fault->kind == FAULT_KILL && (earliest == NULL || comes_before(fault, earliest))) {
            earliest = fault;
        }
    }
    return earliest;
}

/* Writes the list as it is given. It is no longer than it was. */
static void write_list(const struct faults *faults, struct job *job)
{
    size_t used = 0;
    for (uint32_t i = 0; i < faults->count; i++) {
        char text[FAULT_TEXT_BYTES];
        fault_format(&faults->list[i], text);
        int length = snprintf(job->faults + used, sizeof(job->faults) - used, "%s%s",
                              i > 0 ? ";" : "", text);
        assert(length > 0 && (size_t)length < sizeof(job->faults) - used);
        used += (size_t)length;
    }
    if (faults->count == 0) {
        snprintf(job->faults, sizeof(job->faults), "none");
    }
}

void faults_forget_kill(struct job *job)
{
    const struct faults faults = faults_of(job);
    const struct fault *kill = faults_next_kill(&faults);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; kill != NULL && i < faults.count; i++) {
        if (comes_before(kill, &faults.list[i])) {
            kept.list[kept.count++] = faults.list[i];
        }
    }
    if (kill != NULL) {
        write_list(&kept, job);
    }
}

void faults_forget_ranks(struct job *job, struct rank_block ranks, uint64_t step)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        bool has_struck = fault->place == FAULT_AT_RANK && fault->kind != FAULT_KILL &&
                          rank_block_has(ranks, fault->number) && fault->step <= step;
        if (!has_struck) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kept.count < faults.count) {
        write_list(&kept, job);
    }
}

void faults_forget_steps(struct job *job, uint64_t steps)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        if (faults.list[i].step > steps) {
            kept.list[kept.count++] = faults.list[i];
        }
    }
    if (kept.count < faults.count) {
        write_list(&kept, job);
    }
}

void faults_forget_shards(struct job *job)
{
    const struct faults faults = faults_of(job);
    struct faults kept = {.count = 0};
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        if (fault->place != FAULT_AT_SHARD || fault->number < job_shard_count(job)) {
            kept.list[kept.count++] = *fault;
        }
    }
    if (kept.count < faults.count) {
        write_list(&kept, job);
    }
}

const struct fault *faults_next(const struct faults *faults, const struct fault_seat *seat,
                                uint64_t step)
{
    const struct fault *next = NULL, *kill = faults_next_kill(faults);
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        bool is_of_seat = fault->place == seat->place && fault->number == seat->number &&
                          (kill == NULL || !comes_before(kill, fault));
        if (is_of_seat && fault->step > step && (next == NULL || fault->step < next->step)) {
            next = fault;
        }
    }
    return next;
}

/* ==========================================================================================
 * Checks
 * ========================================================================================== */

static enum status check_number(const struct fault *fault, uint32_t count, char *ret_error,
                                size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->number < count) {
        return STATUS_OK;
    }
    const char *what = fault->place == FAULT_AT_RANK ? "rank" : "shard";
    fault_format(fault, text);
    if (count == 1) {
        snprintf(ret_error, error_size, "--fault %s: the job has one %s, which is number 0", text,
                 what);
    } else {
        snprintf(ret_error, error_size,
                 "--fault %s: the job has %" PRIu32 " %ss, which are 0 to %" PRIu32, text, count,
                 what, count - 1);
    }
    return STATUS_INVALID;
}

static enum status check_step(const struct fault *fault, uint64_t steps, char *ret_error,
                              size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->step <= steps) {
        return STATUS_OK;
    }
    fault_format(fault, text);
    snprintf(ret_error, error_size, "--fault %s never comes: the job has %" PRIu64 " steps", text,
             steps);
    return STATUS_INVALID;
}

/* Shared memory is no network: it cannot be cut. */
static enum status check_network(const struct job *job, const struct fault *fault, char *ret_error,
                                 size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    if (fault->kind != FAULT_PARTITION || job->mode.kind == MODE_LOCAL ||
        !endpoints_may_share(job->transport)) {
        return STATUS_OK;
    }
    fault_format(fault, text);
    snprintf(ret_error, error_size,
             "--fault %s: processes of one host share memory, which is no network; add "
             "--transport tcp or --transport ipc",
             text);
    return STATUS_INVALID;
}

enum status faults_check(const struct job *job, char *ret_error, size_t error_size)
{
    const struct faults faults = faults_of(job);
    for (uint32_t i = 0; i < faults.count; i++) {
        const struct fault *fault = &faults.list[i];
        bool is_rank = fault->place == FAULT_AT_RANK;
        bool is_for_others = is_rank ? job->mode.kind == MODE_LOCAL : !job_has_servers(job);
        enum status status = STATUS_OK;
        if (!is_for_others) {
            status = check_number(fault, is_rank ? job->workers : job_shard_count(job), ret_error,
                                  error_size);
        }
        if (status == STATUS_OK && job->steps > 0) {
            status = check_step(fault, job->steps, ret_error, error_size);
        }
        if (status == STATUS_OK) {
            status = check_network(job, fault, ret_error, error_size);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* The mode in which a step that counts from 1 is made. */
static enum mode_kind mode_of_step(const struct phases *phases, uint64_t step)
{
    uint32_t index = 0;
    while (index + 1 < phases->count && step > phases->list[index].marks.end) {
        index++;
    }
    return phases->list[index].mode.kind;
}

static bool has_servers_in(const struct phases *phases)
{
    bool has = false;
    for (uint32_t i = 0; i < phases->count; i++) {
        has = has || mode_has_servers(phases->list[i].mode.kind);
    }
    return has;
}

enum status faults_check_phases(const struct faults *faults, const struct phases *phases,
                                char *ret_error, size_t error_size)
{
    char text[FAULT_TEXT_BYTES];
    uint64_t steps = phases->list[phases->count - 1].marks.end;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        enum status status = check_step(fault, steps, ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
        bool is_idle = fault->place == FAULT_AT_SHARD && has_servers_in(phases) &&
                       !mode_has_servers(mode_of_step(phases, fault->step));
        if (is_idle) {
            fault_format(fault, text);
            snprintf(ret_error, error_size,
                     "--fault %s never comes: that step is made in mode ring, in which shards have "
                     "no updates",
                     text);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}
