/* A small checkpoint whose every byte follows from its step: some vectors, sent in pieces. */
#ifndef TESTS_SUPPORT_COMMON_SAMPLE_CHECKPOINT_H
#define TESTS_SUPPORT_COMMON_SAMPLE_CHECKPOINT_H

#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_VECTORS      4
#define SAMPLE_VECTOR_BYTES 3000 // at most

extern const struct checkpoint_vector sample_vectors[SAMPLE_VECTORS];

/* The bytes of a vector in the checkpoint of a step. */
void sample_bytes(uint64_t step, uint32_t vector, unsigned char ret_bytes[SAMPLE_VECTOR_BYTES]);

/* Begins a checkpoint and writes its pieces, some of them from behind; stops at the first failure.
 */
enum status sample_write_pieces(struct checkpoint_writer *writer, uint64_t step);

/* The whole of it. */
enum status sample_write(struct checkpoint_writer *writer, uint64_t step);

/* A new writer for the folder, one checkpoint for each step, and the writer's end. Asserts. */
void sample_write_steps(const char *folder, uint32_t keep, const uint64_t *steps, size_t count);

/* Whether every byte of an open checkpoint is that of its step. */
bool sample_is_whole(struct checkpoint_reader *reader);

/* The step of the newest checkpoint, which must be whole; -1 if there is none. */
int64_t sample_newest(const char *folder);

#endif
