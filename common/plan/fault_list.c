/* Reads and writes --fault, and says which fault comes when. */
#include "common/plan/fault_list.h"

#include "common/base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_MAX  1000000
#define STEP_MAX    UINT64_C(1000000000000000)
#define SHOWN_CHARS 60 // of a fault, in an error
#define STOP        "stop="
#define PARTITION   "partition="
#define AFTER       "after="
#define AFTER_STEP  AFTER "step:"
#define JOIN        "join"

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

static bool begins_with(struct piece piece, const char *word)
{
    return piece.size >= strlen(word) && memcmp(piece.text, word, strlen(word)) == 0;
}

/* A number behind a name such as "rank=". */
static bool parse_number(struct piece piece, const char *name, uint64_t max, uint64_t *ret_number)
{
    size_t size = strlen(name);
    return piece.size > size && begins_with(piece, name) &&
           number_whole(piece.text + size, piece.size - size, max, ret_number);
}

static const char *parse_place(struct piece piece, struct fault *fault)
{
    uint64_t number;
    if (parse_number(piece, "rank=", NUMBER_MAX, &number)) {
        fault->place = FAULT_AT_RANK;
    } else if (parse_number(piece, "shard=", NUMBER_MAX, &number)) {
        fault->place = FAULT_AT_SHARD;
    } else {
        return "strikes nobody: it must begin with rank=R or shard=K, both from 0, or with "
               "after=step:S";
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

/* "after=step:150", of which the first word is known. */
static const char *parse_join(struct piece piece, struct fault *fault)
{
    struct piece rest = piece;
    if (!parse_number(take_piece(&rest, ','), AFTER_STEP, STEP_MAX, &fault->step) ||
        fault->step == 0) {
        return "names no step: behind after= must stand step:S, and steps count from 1";
    }
    if (!is_word(rest, JOIN)) {
        return "does what is not known there: behind after=step:S must stand join";
    }
    fault->place = FAULT_AT_JOB;
    fault->kind = FAULT_JOIN;
    return NULL;
}

/* One fault; or what is wrong with it. */
static const char *parse_fault(struct piece piece, struct fault *fault)
{
    struct piece rest = piece;
    if (piece.size == 0) {
        return "is no fault: one must stand before and behind each semicolon";
    }
    if (begins_with(piece, AFTER)) {
        return parse_join(piece, fault);
    }
    const char *why = parse_place(take_piece(&rest, ','), fault);
    if (why != NULL) {
        return why;
    }
    if (!parse_number(take_piece(&rest, ','), "step=", STEP_MAX, &fault->step) ||
        fault->step == 0) {
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

void fault_format(const struct fault *fault, char ret_text[FAULT_TEXT_BYTES])
{
    const char *place = fault->place == FAULT_AT_RANK ? "rank" : "shard";
    if (fault->kind == FAULT_JOIN) {
        snprintf(ret_text, FAULT_TEXT_BYTES, AFTER_STEP "%" PRIu64 "," JOIN, fault->step);
        return;
    }
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

void faults_format(const struct faults *faults, char *ret_text, size_t text_size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < faults->count; i++) {
        char text[FAULT_TEXT_BYTES];
        fault_format(&faults->list[i], text);
        int length = snprintf(ret_text + used, text_size - used, "%s%s", i > 0 ? ";" : "", text);
        assert(length > 0 && (size_t)length < text_size - used);
        used += (size_t)length;
    }
    if (faults->count == 0) {
        snprintf(ret_text, text_size, "none");
    }
}

/* ==========================================================================================
 * Order
 * ========================================================================================== */

bool fault_comes_before(const struct fault *first, const struct fault *second)
{
    if (first->step != second->step) {
        return first->step < second->step;
    }
    if (first->place != second->place) {
        return first->place < second->place;
    }
    return first < second;
}

static const struct fault *earliest_of(const struct faults *faults, enum fault_kind kind)
{
    const struct fault *earliest = NULL;
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        if (fault->kind == kind && (earliest == NULL || fault_comes_before(fault, earliest))) {
            earliest = fault;
        }
    }
    return earliest;
}

const struct fault *faults_next_kill(const struct faults *faults)
{
    return earliest_of(faults, FAULT_KILL);
}

const struct fault *faults_next_join(const struct faults *faults)
{
    return earliest_of(faults, FAULT_JOIN);
}

uint32_t faults_count_joins(const struct faults *faults, uint64_t steps)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < faults->count; i++) {
        count += faults->list[i].kind == FAULT_JOIN && faults->list[i].step <= steps;
    }
    return count;
}

const struct fault *faults_next(const struct faults *faults, const struct fault_seat *seat,
                                uint64_t step)
{
    const struct fault *next = NULL, *kill = faults_next_kill(faults);
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        bool is_of_seat = fault->place == seat->place && fault->number == seat->number &&
                          (kill == NULL || !fault_comes_before(kill, fault));
        if (is_of_seat && fault->step > step && (next == NULL || fault->step < next->step)) {
            next = fault;
        }
    }
    return next;
}
