/* Calls this program again, with the command `calibrate`. */
#include "deploy/command/compare_calibration.h"

#include "common/base/log.h"
#include "common/job/job_choices.h"
#include "common/security/security.h"
#include "deploy/calibrate/calibration_run.h"
#include "deploy/hosts/host_options.h"
#include "deploy/system/process_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_PROGRAM  "/proc/self/exe"
#define OWN_WORDS    6
#define OUTPUT_BYTES ((size_t)64 << 10)
#define WORD_BYTES   4200 // the longest value, and its name

/* Of a job, what its steps and messages cost depends on; batch and transport are those of a run. */
static const char *const job_words[] = {
    "model",    "data",        "image-size", "classes",       "bad-images",
    "augment",  "normalize",   "optimizer",  "limit-train",   "limit-test",
    "device",   "threads",     "conv",       "server-device", "loader-threads",
    "cache",    "cache-mb",    "precision",  "bucket-mb",     "allow-nondeterministic",
    "compress", "connections", "security"};
#define JOB_WORD_COUNT (sizeof(job_words) / sizeof(job_words[0]))

static bool is_wanted(const struct option_set *set, const struct option *row, const char *value)
{
    struct host_options hosts;
    struct security_options security;
    for (size_t i = 0; i < JOB_WORD_COUNT && set->rows == job_options; i++) {
        if (strcmp(job_words[i], row->name) == 0) {
            return !calibration_refuses(row->name, value);
        }
    }
    return value[0] != '\0' && (set->rows == host_option_set(&hosts).rows ||
                                set->rows == security_option_set(&security).rows);
}

enum status compare_words_take(const struct option_program *program, struct compare_words *words)
{
    char value[OPTION_VALUE_BYTES], word[WORD_BYTES];
    for (size_t i = 0; i < program->set_count; i++) {
        const struct option_set *set = &program->sets[i];
        for (size_t k = 0; k < set->count; k++) {
            if (!options_was_given(program, set->rows[k].name)) {
                continue;
            }
            option_format(&set->rows[k], set->values, value, sizeof(value));
            if (!is_wanted(set, &set->rows[k], value)) {
                continue;
            }
            int size = snprintf(word, sizeof(word), "--%s=%s", set->rows[k].name, value);
            char *copy = size < (int)sizeof(word) ? strdup(word) : NULL;
            if (copy == NULL || words->count == COMPARE_WORDS_MAX) {
                free(copy);
                return STATUS_NO_MEMORY;
            }
            words->list[words->count++] = copy;
        }
    }
    return STATUS_OK;
}

void compare_words_finish(struct compare_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    words->count = 0;
}

enum status compare_calibration_run(const struct compare_words *words, uint32_t batch,
                                    enum transport_kind transport, const char *costs,
                                    const char *network)
{
    const char *argv[OWN_WORDS + COMPARE_WORDS_MAX + 1] = {OWN_PROGRAM, "calibrate"};
    char own[4][JOB_PATH_BYTES + 16];
    size_t count = 2;
    int code = 0;
    snprintf(own[0], sizeof(own[0]), "--batch=%u", batch);
    snprintf(own[1], sizeof(own[1]), "--transport=%s", transport_choices[transport].name);
    snprintf(own[2], sizeof(own[2]), "--costs=%s", costs);
    snprintf(own[3], sizeof(own[3]), "--network=%s", network);
    for (size_t i = 0; i < 4; i++) {
        argv[count++] = own[i];
    }
    for (size_t i = 0; i < words->count; i++) {
        argv[count++] = words->list[i];
    }
    char *output = calloc(1, OUTPUT_BYTES);
    if (output == NULL) {
        return STATUS_NO_MEMORY;
    }
    printf("\ncalibrating with %u images a step, --transport %s\n", batch,
           transport_choices[transport].name);
    fflush(stdout);
    const struct process_run_options options = {.argv = argv, .input = ""};
    enum status status = process_run(&options, output, OUTPUT_BYTES, &code);
    printf("%s", output);
    fflush(stdout);
    free(output);
    if (status == STATUS_OK && code != 0) {
        log_error(
            "ringside calibrate has failed, so there are no costs for predictions: name files "
            "with --costs and --network, or leave out --predict");
        status = STATUS_INVALID;
    }
    return status;
}
