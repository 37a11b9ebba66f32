/* The names of the classes that a run's images are of, as reports say them. */
#ifndef DEPLOY_REPORT_RUN_CLASSES_H
#define DEPLOY_REPORT_RUN_CLASSES_H

#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define RUN_CLASSES_BYTES 1024

/* "images:/data: 3 classes: cat, cow, dog"; of many the first ten, and how many more there are;
 * long names are cut. "" where job.json has no names. */
void run_classes_describe(const struct run_folder *run, char ret_text[RUN_CLASSES_BYTES]);

/* Whether both have the same data and classes, or none. */
bool run_classes_are_same(const struct run_folder *a, const struct run_folder *b);

/* A line for each list of classes that runs have. */
void run_classes_print(FILE *stream, const struct run_folder *runs, size_t count);

#endif
