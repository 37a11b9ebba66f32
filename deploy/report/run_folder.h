/* A run folder as the reports read it. */
#ifndef DEPLOY_REPORT_RUN_FOLDER_H
#define DEPLOY_REPORT_RUN_FOLDER_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

#define RUN_FOLDER_PATH_MAX 4096

struct run_folder {
    char path[RUN_FOLDER_PATH_MAX];
    char label[128];    // "ring, N = 4": what the plots call it
    json_t *summary;    // owned
    json_t *details;    // owned; NULL if there is no details.json
    json_t *job;        // owned; NULL if there is no job.json
    json_t *prediction; // owned; NULL if there is no prediction.json (compare --predict)
};

/* Whether there is a summary.json; nothing is read. */
bool run_folder_has_summary(const char *path);

/* Logs what is missing or cannot be read. */
enum status run_folder_open(const char *path, struct run_folder *ret_run);
void run_folder_close(struct run_folder *run);

bool run_folder_is_completed(const struct run_folder *run);

/* Whether a loss was not finite, which is a result too, and at which step (from 1). */
bool run_folder_has_diverged(const struct run_folder *run, unsigned long long *ret_step);

/* The sentence on one of the run's faults that did not strike; NULL: there are not so many. It
 * lives as long as the run. */
const char *run_folder_unmet_fault(const struct run_folder *run, size_t index);

/* "completed", "completed, not all faults struck", "failed", "diverged at step 57". */
void run_folder_outcome(const struct run_folder *run, char *ret_text, size_t text_size);

/* The evaluations with their steps, as far as these are known: of the details, or the epochs of the
 * summary. Borrowed; NULL if there is neither. */
const json_t *run_folder_epochs(const struct run_folder *run);

/* A key of the summary, of the details, or of the prediction ("prediction.why"), as text, of any
 * length: nested keys with dots ("ms_per_step.compute"); test_accuracy, test_loss and train_loss
 * are those of the last epoch that has them. "" if there is no such value, NULL if there is no
 * memory. The caller frees it. */
char *run_folder_text(const struct run_folder *run, const char *key);

/* The same, cut at text_size. */
void run_folder_value(const struct run_folder *run, const char *key, char *ret_text,
                      size_t text_size);

/* Decimals with which a rate is shown: slow models have few images per second. */
int run_folder_rate_digits(double images_per_second);

#define RUN_FOLDER_FORMAT_BYTES 96 // of what run_folder_format makes of a number, at most

/* The same for people: accuracies in percent, and with how many images they are of if these are
 * fewer than the test set has; rates with their decimals; "-" for none. */
void run_folder_format(const struct run_folder *run, const char *key, char *ret_text,
                       size_t text_size);

/* How many of its test set's images an accuracy is of ("test_accuracy", "best_accuracy"). False if
 * it is of all of them, or if nobody knows, as of a program of one's own. */
bool run_folder_tests_part(const struct run_folder *run, const char *key,
                           unsigned long long *ret_images, unsigned long long *ret_all);

#define RUN_FOLDER_PART_BYTES 128

/* Of runs whose mean accuracy is shown: that `part` of them, 1 or more, are of fewer images. */
void run_folder_say_part(size_t part, size_t completed, char ret_text[RUN_FOLDER_PART_BYTES]);

/* The share of its steps' time that a worker waited for its next batch, in percent. False if that
 * was not measured, as of a program of one's own. */
bool run_folder_input_wait(const struct run_folder *run, double *ret_percent);

/* How many threads of a worker process read its images at the end of the run: of the process with
 * the fewest, and of the one with the most. False if nobody knows, as of a program of one's own. */
bool run_folder_loaders(const struct run_folder *run, unsigned *ret_fewest, unsigned *ret_most);

/* The number behind a key; 0 if there is none. */
double run_folder_number(const struct run_folder *run, const char *key);

#endif
