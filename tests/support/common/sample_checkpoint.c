/* Writes and recognises small checkpoints. */
#include "tests/support/common/sample_checkpoint.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

const struct checkpoint_vector sample_vectors[SAMPLE_VECTORS] = {
    {"params", SAMPLE_VECTOR_BYTES},
    {"state-1", 2048},
    {"rank-3/statistics", 17},
    {"shard-0/residual", 0},
};

#define PIECE_BYTES 1024

void sample_bytes(uint64_t step, uint32_t vector, unsigned char ret_bytes[SAMPLE_VECTOR_BYTES])
{
    uint64_t value = step * 31 + vector + 1;
    for (uint64_t i = 0; i < sample_vectors[vector].size; i++) {
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ret_bytes[i] = (unsigned char)(value >> 56);
    }
}

static enum status write_vector(struct checkpoint_writer *writer, uint64_t step, uint32_t vector)
{
    unsigned char bytes[SAMPLE_VECTOR_BYTES];
    uint64_t size = sample_vectors[vector].size,
             piece_count = (size + PIECE_BYTES - 1) / PIECE_BYTES;
    sample_bytes(step, vector, bytes);
    for (uint64_t i = 0; i < piece_count; i++) {
        // The first one last.
        uint64_t begin = (i + 1) % piece_count * PIECE_BYTES;
        uint64_t part = size - begin < PIECE_BYTES ? size - begin : PIECE_BYTES;
        enum status status =
            checkpoint_write(writer, sample_vectors[vector].name, begin, bytes + begin, part);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

enum status sample_write_pieces(struct checkpoint_writer *writer, uint64_t step)
{
    enum status status = checkpoint_begin(writer, step);
    for (uint32_t i = 0; i < SAMPLE_VECTORS && status == STATUS_OK; i++) {
        status = write_vector(writer, step, i);
    }
    return status;
}

enum status sample_write(struct checkpoint_writer *writer, uint64_t step)
{
    enum status status = sample_write_pieces(writer, step);
    if (status != STATUS_OK) {
        return status;
    }
    json_t *job = json_pack("{s:s, s:I}", "job", "model = lenet5\n", "phase", (json_int_t)step);
    status = checkpoint_commit(writer, sample_vectors, SAMPLE_VECTORS, job);
    json_decref(job);
    return status;
}

void sample_write_steps(const char *folder, uint32_t keep, const uint64_t *steps, size_t count)
{
    struct checkpoint_writer *writer;
    assert_int_equal(checkpoint_writer_open(folder, keep, &writer), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sample_write(writer, steps[i]), STATUS_OK);
    }
    checkpoint_writer_close(writer);
}

bool sample_is_whole(struct checkpoint_reader *reader)
{
    const json_t *phase = json_object_get(checkpoint_job_part(reader), "phase");
    uint64_t step = checkpoint_step(reader);
    bool is_whole = json_integer_value(phase) == (json_int_t)step;
    for (uint32_t i = 0; i < SAMPLE_VECTORS && is_whole; i++) {
        unsigned char expected[SAMPLE_VECTOR_BYTES], bytes[SAMPLE_VECTOR_BYTES];
        const struct checkpoint_vector *vector = &sample_vectors[i];
        uint64_t size;
        sample_bytes(step, i, expected);
        is_whole = checkpoint_has(reader, vector->name, &size) && size == vector->size &&
                   checkpoint_read(reader, vector->name, 0, bytes, size) == STATUS_OK &&
                   memcmp(bytes, expected, size) == 0;
    }
    return is_whole;
}

int64_t sample_newest(const char *folder)
{
    struct checkpoint_reader *reader;
    char error[4096], notes[4096];
    if (checkpoint_open(folder, &reader, error, sizeof(error), notes, sizeof(notes)) != STATUS_OK) {
        return -1;
    }
    assert_true(sample_is_whole(reader));
    int64_t step = (int64_t)checkpoint_step(reader);
    checkpoint_reader_close(reader);
    return step;
}
