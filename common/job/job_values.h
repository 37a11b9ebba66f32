/* What single options of a job take, as rows of job_options.c name it: see struct option. */
#ifndef COMMON_JOB_JOB_VALUES_H
#define COMMON_JOB_JOB_VALUES_H

#include "common/options/options.h"

#include <stdbool.h>
#include <stddef.h>

bool job_compress_parse(const char *text, void *ret_field, char *ret_why, size_t why_size);
void job_compress_format(const void *field, char *ret_text, size_t text_size);

/* RINGSIDE_CACHE is --cache, or the folder of caches (common/base/cache_folder.h): a path, or
 * empty. */
bool job_cache_is_folder(const char *text);

/* RINGSIDE_DATA is a dataset, or the folder in which datasets lie, a folder for each: what has a
 * slash before any colon. Then "cifar10" stands for "cifar10:FOLDER/cifar10". */
bool job_data_is_folder(const char *text);
void job_data_complete(const char *text, char ret_text[OPTION_VALUE_BYTES]);

/* --checkpoint-every: "none", "100", "5m" or "epoch". */
bool job_checkpoints_parse(const char *text, void *ret_field, char *ret_why, size_t why_size);
void job_checkpoints_format(const void *field, char *ret_text, size_t text_size);

/* --timeline-steps: "all", or "100..120". */
bool job_timeline_steps_parse(const char *text, void *ret_field, char *ret_why, size_t why_size);
void job_timeline_steps_format(const void *field, char *ret_text, size_t text_size);

bool job_model_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_data_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_augment_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_normalize_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_device_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_server_device_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_mode_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_switch_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_straggler_is_valid(const char *text, char *ret_why, size_t why_size);
bool job_ranks_parse(const char *text, void *ret_field, char *ret_why, size_t why_size);
void job_ranks_format(const void *field, char *ret_text, size_t text_size);
bool job_faults_are_valid(const char *text, char *ret_why, size_t why_size);
bool job_order_is_valid(const char *text, char *ret_why, size_t why_size);

#endif
