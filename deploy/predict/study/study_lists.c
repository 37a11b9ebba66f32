/* Reads lists of modes, servers, workers and changes. */
#include "deploy/predict/study/study_lists.h"

#include "common/base/log.h"
#include "common/base/number.h"

#include <stdio.h>
#include <string.h>

/* The next item of a list, of which at[0] is behind it afterwards. False at the end. */
static bool next_item(const char **at, char separator, char *ret_item, size_t item_size)
{
    const char separators[] = {separator, '\0'};
    size_t size = strcspn(*at, separators);
    bool is_there = **at != '\0';
    snprintf(ret_item, item_size, "%.*s", (int)size, *at);
    *at += size + ((*at)[size] == separator && (*at)[size + 1] != '\0');
    return is_there;
}

static enum status take_mode(const char *text, struct mode *ret_mode)
{
    if (mode_parse(text, ret_mode) != STATUS_OK) {
        log_error("--mode: there is no mode '%.60s'; choose ps-sync, ps-ssp:S, ps-async or ring",
                  text);
        return STATUS_INVALID;
    }
    if (ret_mode->kind == MODE_LOCAL) {
        log_error("--mode: local is not in the model; ask for ring with one worker");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status take_number(const char *option, const char *text, uint32_t least, uint32_t most,
                               uint32_t *ret_number)
{
    uint64_t number = 0;
    if (!number_whole(text, strlen(text), most, &number) || number < least) {
        log_error("--%s: '%.60s' has to be a whole number from %u to %u", option, text, least,
                  most);
        return STATUS_INVALID;
    }
    *ret_number = (uint32_t)number;
    return STATUS_OK;
}

static enum status refuse_count(void)
{
    log_error("--workers, --mode and --servers make more than %d points; ask for fewer at once",
              STUDY_POINTS_MAX);
    return STATUS_INVALID;
}

static enum status add_design(const char *mode_text, struct study_design design,
                              struct study *study)
{
    if (mode_has_servers(design.mode.kind) && design.servers == 0) {
        log_error("--servers 0: %s needs servers; give at least 1", mode_text);
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < study->design_count; i++) {
        const struct study_design *other = &study->designs[i];
        if (other->mode.kind == design.mode.kind && other->servers == design.servers &&
            other->mode.slack_steps == design.mode.slack_steps) {
            return STATUS_OK; // given twice
        }
    }
    if (study->design_count == STUDY_POINTS_MAX) {
        return refuse_count();
    }
    study->designs[study->design_count++] = design;
    return STATUS_OK;
}

/* A design for each number of servers, if the mode has any. */
static enum status add_designs(const char *mode_text, const char *servers, struct study *study)
{
    char text[STUDY_LIST_BYTES];
    struct study_design design = {.servers = 0};
    enum status status = take_mode(mode_text, &design.mode);
    if (status != STATUS_OK || !mode_has_servers(design.mode.kind)) {
        return status == STATUS_OK ? add_design(mode_text, design, study) : status;
    }
    while (status == STATUS_OK && next_item(&servers, ',', text, sizeof(text))) {
        status = take_number("servers", text, 0, JOB_SERVERS_MAX, &design.servers);
        if (status == STATUS_OK) {
            status = add_design(mode_text, design, study);
        }
    }
    return status;
}

/* Keeps numbers in order, and each once. */
static enum status add_workers(uint32_t workers, struct study *study)
{
    size_t place = study->worker_count;
    while (place > 0 && study->workers[place - 1] > workers) {
        place--;
    }
    if (place > 0 && study->workers[place - 1] == workers) {
        return STATUS_OK;
    }
    if (study->worker_count == STUDY_POINTS_MAX) {
        return refuse_count();
    }
    memmove(&study->workers[place + 1], &study->workers[place],
            (study->worker_count - place) * sizeof(study->workers[0]));
    study->workers[place] = workers;
    study->worker_count++;
    return STATUS_OK;
}

enum status study_take_lists(const char *modes, const char *servers, const char *workers,
                             struct study *study)
{
    char text[STUDY_LIST_BYTES];
    enum status status = STATUS_OK;
    while (status == STATUS_OK && next_item(&workers, ',', text, sizeof(text))) {
        uint32_t number = 0;
        status = take_number("workers", text, 1, STUDY_WORKERS_MAX, &number);
        if (status == STATUS_OK) {
            status = add_workers(number, study);
        }
    }
    while (status == STATUS_OK && next_item(&modes, ',', text, sizeof(text))) {
        status = add_designs(text, servers, study);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (study->worker_count == 0 || study->design_count == 0) {
        log_error("--mode, --workers and --servers need at least one entry each");
        return STATUS_INVALID;
    }
    if (study->worker_count * study->design_count > STUDY_POINTS_MAX) {
        return refuse_count();
    }
    study_cross(study);
    return STATUS_OK;
}

bool study_what_ifs_are_valid(const char *text, char *ret_why, size_t why_size)
{
    char item[2 * WHAT_IF_TEXT_BYTES];
    struct what_if what_if;
    size_t count = 0;
    while (next_item(&text, ';', item, sizeof(item))) {
        if (!what_if_parse(item, &what_if, ret_why, why_size)) {
            return false;
        }
        if (++count > WHAT_IFS_MAX) {
            snprintf(ret_why, why_size, "is given more than %d times", WHAT_IFS_MAX);
            return false;
        }
    }
    return true;
}

enum status study_take_what_ifs(const char *what_ifs, struct study *study)
{
    char text[2 * WHAT_IF_TEXT_BYTES], why[256];
    while (study->what_if_count < WHAT_IFS_MAX && next_item(&what_ifs, ';', text, sizeof(text))) {
        struct what_if *what_if = &study->what_ifs[study->what_if_count];
        if (!what_if_parse(text, what_if, why, sizeof(why))) {
            log_error("--what-if: %s", why);
            return STATUS_INVALID;
        }
        study->what_if_count++;
    }
    return STATUS_OK;
}
