/* The tables of weights and of their gradients, which nodes fill while they are created. */
#include "worker/device/cuda/weights.h"

#include <assert.h>
#include <stdlib.h>

#define GRADIENT_BYTES ((size_t)64 << 20)

/* Appends a row; there is room for all of a program. */
static uint32_t append(struct cuda_weight_table *table, const struct cuda_weight_row *row)
{
    uint32_t index = table->count++;
    struct cuda_weight_row *kept = &table->rows[index];
    *kept = *row;
    kept->begin = index > 0 ? kept[-1].begin + kept[-1].count : 0;
    return index;
}

static size_t bytes_of(const struct node_context *context, const struct cuda_weight_row *row)
{
    return cuda_aligned(row->count * (row->is_float ? sizeof(float) : cuda_element_bytes(context)));
}

size_t cuda_reserve_weights(struct node_context *context, const struct cuda_weight_row *row)
{
    struct cuda_weight_row placed = *row;
    placed.place = context->weight_bytes;
    append(&context->weight_table, &placed);
    context->weight_bytes += bytes_of(context, &placed);
    return placed.place;
}

uint32_t cuda_reserve_gradient(struct node_context *context, const struct cuda_weight_row *row)
{
    return append(&context->gradient_table, row);
}

void weights_place(struct node_context *context)
{
    struct cuda_weight_table *table = &context->gradient_table;
    size_t most = GRADIENT_BYTES, place = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        size_t bytes = bytes_of(context, &table->rows[i]);
        most = most < bytes ? bytes : most;
    }
    for (uint32_t i = table->count; i-- > 0;) {
        size_t bytes = bytes_of(context, &table->rows[i]);
        place = bytes > most - place ? 0 : place;
        table->rows[i].place = place;
        place += bytes;
        context->dweight_bytes = context->dweight_bytes < place ? place : context->dweight_bytes;
    }
}

static int bind(struct cuda_weight_table *table, cudaStream_t stream)
{
    size_t bytes = table->count * sizeof(*table->rows);
    if (bytes == 0) {
        return 0;
    }
    int result = (int)cudaMalloc((void **)&table->on_gpu, bytes);
    return result == 0 ? (int)cudaMemcpyAsync(table->on_gpu, table->rows, bytes,
                                              cudaMemcpyHostToDevice, stream)
                       : result;
}

enum status weights_bind(struct node_context *context)
{
    int result = bind(&context->weight_table, context->stream);
    if (result == 0) {
        result = bind(&context->gradient_table, context->stream);
    }
    return cuda_check(result, "lay out weights");
}

static void finish(struct cuda_weight_table *table)
{
    cudaFree(table->on_gpu);
    free(table->rows);
    *table = (struct cuda_weight_table){0};
}

void weights_finish(struct node_context *context)
{
    finish(&context->weight_table);
    finish(&context->gradient_table);
}

/* Elements of rows `first` to `end`, of which there are some. */
static size_t count_of(const struct cuda_weight_table *table, uint32_t first, uint32_t end)
{
    const struct cuda_weight_row *last = &table->rows[end - 1];
    return last->begin + last->count - table->rows[first].begin;
}

enum status weights_take(const struct node_context *context, size_t begin, size_t end)
{
    const struct cuda_weight_table *table = &context->weight_table;
    uint32_t first = 0, last = table->count;
    while (first < last && table->rows[first].flat < begin) {
        first++;
    }
    while (last > first && table->rows[last - 1].flat >= end) {
        last--;
    }
    if (first == last) {
        return STATUS_OK;
    }
    const struct cuda_weight_copy copy = {
        .rows = table->on_gpu + first,
        .row_count = last - first,
        .flat = context->params,
        .library = context->weights,
    };
    return cuda_check(
        kernel_weights_in(context->type, &copy, count_of(table, first, last), context->stream),
        "copy weights");
}

enum status weights_return(struct node_context *context)
{
    const struct cuda_weight_table *table = &context->gradient_table;
    uint32_t first = context->gradient_first, end = first + context->gradient_count;
    if (context->gradient_count == 0) {
        return STATUS_OK;
    }
    const struct cuda_weight_copy copy = {
        .rows = table->on_gpu + first,
        .row_count = end - first,
        .flat = context->grads,
        .library = context->dweights,
    };
    context->gradient_count = 0;
    return cuda_check(
        kernel_weights_out(context->type, &copy, count_of(table, first, end), context->stream),
        "copy weight gradients");
}

enum status cuda_begin_gradient(struct node_context *context, uint32_t index, void **ret_to)
{
    const struct cuda_weight_row *row = &context->gradient_table.rows[index];
    enum status status = STATUS_OK;
    if (row->place == 0) { // where others may lie
        status = weights_return(context);
    }
    assert(status != STATUS_OK || context->gradient_count == 0 ||
           index + 1 == context->gradient_first);
    context->gradient_first = index;
    context->gradient_count++;
    *ret_to = (char *)context->dweights + row->place;
    return status;
}
