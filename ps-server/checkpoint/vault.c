/* Keeps the vectors of checkpoints in memory: one that is whole, one that is being collected, and
 * one that somebody else still reads. */
#include "ps-server/checkpoint/vault.h"

#include "common/base/memory.h"
#include "common/channel/piece_name.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept_vector {
    char name[PIECE_NAME_BYTES];
    uint64_t total;
    float *values; // (total), owned
    bool is_used;  // by this checkpoint; otherwise room that one before has left
};

struct kept {
    uint64_t step;
    struct kept_vector *vectors; // (count), owned
    uint32_t count, capacity;
    json_t *job_part; // owned; NULL: it is not whole
};

#define KEPT_MAX 3

struct vault {
    struct kept kept[KEPT_MAX];
    uint32_t whole;   // index of the one that is whole, if it has a job_part
    uint32_t open;    // index of the one that is being collected
    uint32_t held;    // index of the one that is held; KEPT_MAX: none is
    bool is_open;     // one is being collected
    bool lacks_piece; // of that one
};

static void finish(struct kept *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        memory_destroy_large(kept->vectors[i].values, kept->vectors[i].total * sizeof(float));
    }
    free(kept->vectors);
    json_decref(kept->job_part);
    *kept = (struct kept){0};
}

static struct kept *open_one(struct vault *vault)
{
    return &vault->kept[vault->open];
}

/* One that nobody needs. */
static uint32_t find_free(const struct vault *vault)
{
    uint32_t index = 0;
    while (index == vault->whole || index == vault->held) {
        index++;
    }
    return index;
}

static const struct kept *whole_one(const struct vault *vault)
{
    return &vault->kept[vault->whole];
}

enum status vault_create(struct vault **ret_vault)
{
    struct vault *vault = calloc(1, sizeof(*vault));
    if (vault == NULL) {
        return STATUS_NO_MEMORY;
    }
    vault->held = KEPT_MAX;
    *ret_vault = vault;
    return STATUS_OK;
}

void vault_destroy(struct vault *vault)
{
    if (vault == NULL) {
        return;
    }
    for (uint32_t i = 0; i < KEPT_MAX; i++) {
        finish(&vault->kept[i]);
    }
    free(vault);
}

void vault_begin(struct vault *vault, uint64_t step)
{
    vault->open = find_free(vault);
    struct kept *kept = open_one(vault);
    json_decref(kept->job_part);
    kept->job_part = NULL;
    kept->step = step;
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->vectors[i].is_used = false;
    }
    vault->is_open = true;
    vault->lacks_piece = false;
}

static struct kept_vector *find(const struct kept *kept, const char *name, uint64_t total)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        struct kept_vector *vector = &kept->vectors[i];
        if (vector->total == total && strcmp(vector->name, name) == 0) {
            return vector;
        }
    }
    return NULL;
}

/* NULL: there is no memory. */
static struct kept_vector *append(struct kept *kept, const char *name, uint64_t total)
{
    if (kept->count == kept->capacity) {
        uint32_t capacity = kept->capacity > 0 ? 2 * kept->capacity : 8;
        struct kept_vector *more = reallocarray(kept->vectors, capacity, sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        kept->vectors = more;
        kept->capacity = capacity;
    }
    struct kept_vector *vector = &kept->vectors[kept->count];
    *vector =
        (struct kept_vector){.total = total, .values = memory_create_large(total * sizeof(float))};
    snprintf(vector->name, sizeof(vector->name), "%s", name);
    kept->count += vector->values != NULL;
    return vector->values != NULL ? vector : NULL;
}

enum status vault_store(struct vault *vault, const struct message *piece)
{
    struct kept *kept = open_one(vault);
    const char *name = piece->piece->vector;
    uint64_t total = piece->piece->total;
    assert(piece->span.offset <= total && piece->span.count <= total - piece->span.offset);
    if (!vault->is_open) {
        return STATUS_OK; // it was given up
    }
    struct kept_vector *vector = find(kept, name, total);
    if (vector == NULL) {
        vector = append(kept, name, total);
    }
    if (vector == NULL) {
        vault->lacks_piece = true;
        return STATUS_NO_MEMORY;
    }
    vector->is_used = true;
    memcpy(vector->values + piece->span.offset, piece->values, piece->span.count * sizeof(float));
    return STATUS_OK;
}

enum status vault_commit(struct vault *vault, json_t *job_part)
{
    if (!vault->is_open || vault->lacks_piece || job_part == NULL) {
        json_decref(job_part);
        vault_abandon(vault);
        return STATUS_NO_MEMORY;
    }
    open_one(vault)->job_part = job_part;
    vault->whole = vault->open;
    vault->is_open = false;
    return STATUS_OK;
}

void vault_abandon(struct vault *vault)
{
    vault->is_open = false;
}

uint64_t vault_step(const struct vault *vault)
{
    const struct kept *kept = whole_one(vault);
    return kept->job_part != NULL ? kept->step : 0;
}

const json_t *vault_job_part(const struct vault *vault)
{
    return whole_one(vault)->job_part;
}

json_t *vault_copy_job_part(const struct vault *vault)
{
    return json_deep_copy(whole_one(vault)->job_part);
}

void vault_hold(struct vault *vault)
{
    vault->held = vault->whole;
}

void vault_let_go(struct vault *vault)
{
    vault->held = KEPT_MAX;
}

struct vault_vector vault_vector(const struct vault *vault, uint32_t index)
{
    const struct kept *kept = whole_one(vault);
    uint32_t at = 0;
    for (uint32_t i = 0; kept->job_part != NULL && i < kept->count; i++) {
        const struct kept_vector *vector = &kept->vectors[i];
        if (vector->is_used && at++ == index) {
            return (struct vault_vector){vector->name, vector->values, vector->total};
        }
    }
    return (struct vault_vector){.name = NULL};
}

const float *vault_find(const struct vault *vault, const char *name, uint64_t *ret_total)
{
    const struct kept *kept = whole_one(vault);
    for (uint32_t i = 0; kept->job_part != NULL && i < kept->count; i++) {
        const struct kept_vector *vector = &kept->vectors[i];
        if (vector->is_used && strcmp(vector->name, name) == 0) {
            *ret_total = vector->total;
            return vector->values;
        }
    }
    return NULL;
}
