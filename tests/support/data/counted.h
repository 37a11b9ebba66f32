/* Images that count how often they are decoded, and what is kept of them. */
#ifndef TESTS_SUPPORT_DATA_COUNTED_H
#define TESTS_SUPPORT_DATA_COUNTED_H

#include "worker/data/cached.h"

#include <stdbool.h>
#include <stdint.h>

#define COUNTED_SAMPLES 20
#define COUNTED_FIRST   4 // that every process decodes, for the key, and keeps

struct counted;

/* A folder for what is kept, and the counts. */
struct counted_bench {
    char *folder; // owned
    uint32_t reads[COUNTED_SAMPLES];
};

int counted_set_up(void **state); // to a struct counted_bench
int counted_tear_down(void **state);

/* Images of so many rows and columns; others with another salt. Borrows the bench. */
struct dataset *counted_make(struct counted_bench *bench, uint32_t side, uint8_t salt);

/* Keeps them in the folder of the bench, whose counts begin anew after that. Takes the images. */
struct dataset *counted_open(struct counted_bench *bench, struct cached_options options,
                             struct dataset *images);

/* Returns whether each is as it is when it is decoded. */
bool counted_read_right(const struct dataset *dataset, uint8_t salt);

/* How often images were decoded. */
uint32_t counted_total(const struct counted_bench *bench);

/* The file that is kept; "" if there is none. */
void counted_find_file(const struct counted_bench *bench, char ret_path[512]);

#endif
