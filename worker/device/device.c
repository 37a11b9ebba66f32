/* The table of backends, and the checked way into them. */
#include "worker/device/device.h"

#include "common/base/log.h"
#include "worker/device/backends.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 16
#define WHY_BYTES  256

/* What device_open knows of a backend, whether it is in this build or not. */
struct backend_row {
    const char *name;
    bool is_numbered;
    const char *needs; // at build time
};

static const struct backend_row rows[] = {
#define X(identifier, is_numbered, needs) {#identifier, is_numbered, needs},
    DEVICE_BACKEND_MAP(X)
#undef X
};
static const size_t row_count = sizeof(rows) / sizeof(rows[0]);

static const struct backend_row *find_row(const char *name)
{
    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static const struct device_ops *find_backend(const char *name)
{
    for (const struct device_ops *const *ops = device_backend_table; *ops != NULL; ops++) {
        if (strcmp((*ops)->name, name) == 0) {
            return *ops;
        }
    }
    return NULL;
}

/* "cuda:1" -> "cuda", 1. False unless it has the form of a device's name. */
static bool split_name(const char *text, char ret_name[NAME_BYTES], bool *ret_has_index,
                       uint32_t *ret_index)
{
    size_t length = strcspn(text, ":");
    if (length == 0 || length >= NAME_BYTES) {
        return false;
    }
    memcpy(ret_name, text, length);
    ret_name[length] = '\0';
    *ret_has_index = text[length] == ':';
    *ret_index = 0;
    if (!*ret_has_index) {
        return true;
    }

    const char *digits = text + length + 1;
    size_t digit_count = strspn(digits, "0123456789");
    if (digit_count == 0 || digit_count > 4 || digits[digit_count] != '\0') {
        return false;
    }
    *ret_index = (uint32_t)strtoul(digits, NULL, 10);
    return true;
}

/* "auto, cpu, ref": what may be asked for in this build. */
static void list_names(char *ret_text, size_t text_size)
{
    size_t used = (size_t)snprintf(ret_text, text_size, "auto");
    for (const struct device_ops *const *ops = device_backend_table; *ops != NULL; ops++) {
        if (used < text_size) {
            used += (size_t)snprintf(ret_text + used, text_size - used, ", %s", (*ops)->name);
        }
    }
}

static enum status pick_fastest(const struct device_ops **ret_ops)
{
    char why[WHY_BYTES];
    for (const struct device_ops *const *ops = device_backend_table; *ops != NULL; ops++) {
        if ((*ops)->is_available(why, sizeof(why))) {
            *ret_ops = *ops;
            return STATUS_OK;
        }
        log_info("device %s is passed over: %s", (*ops)->name, why);
    }
    log_error("no device backend of this build runs on this machine");
    return STATUS_UNSUPPORTED;
}

/* The backend that `text` names, if this machine can run it. */
static enum status pick_named(const char *text, const struct device_ops **ret_ops,
                              struct device_options *ret_options)
{
    char names[WHY_BYTES];
    list_names(names, sizeof(names));

    char name[NAME_BYTES];
    bool *has_index = &ret_options->has_index;
    const struct backend_row *row = NULL;
    if (split_name(text, name, has_index, &ret_options->index)) {
        row = find_row(name);
    }
    if (row == NULL) {
        log_error("unknown device '%s'; this build has: %s", text, names);
        return STATUS_INVALID;
    }
    if (*has_index && !row->is_numbered) {
        log_error("device '%s': %s has no numbered devices; say --device %s", text, name, name);
        return STATUS_INVALID;
    }

    const struct device_ops *ops = find_backend(name);
    if (ops == NULL) {
        log_error("device '%s' is not in this build, which has: %s; to add it, build with %s", text,
                  names, row->needs);
        return STATUS_UNSUPPORTED;
    }
    char why[WHY_BYTES];
    if (!ops->is_available(why, sizeof(why))) {
        log_error("device '%s' cannot be used on this machine: %s", text, why);
        return STATUS_UNSUPPORTED;
    }
    *ret_ops = ops;
    return STATUS_OK;
}

enum status device_open(const char *name, const struct device_options *options,
                        struct device **ret_device)
{
    assert(options->threads >= 1);

    struct device_options completed = *options;
    const struct device_ops *ops = NULL;
    enum status status;
    if (strcmp(name, "auto") == 0) {
        status = pick_fastest(&ops);
    } else {
        status = pick_named(name, &ops, &completed);
    }
    if (status != STATUS_OK) {
        return status;
    }
    return ops->open(&completed, ret_device);
}

void device_close(struct device *device)
{
    if (device != NULL) {
        device->ops->close(device);
    }
}

const char *device_choices(const struct device *device)
{
    return device->ops->list_choices != NULL ? device->ops->list_choices(device) : NULL;
}

enum status device_take_choices(struct device *device, const char *text)
{
    assert(device->ops->take_choices != NULL);
    return device->ops->take_choices(device, text);
}

bool device_lock_memory(struct device *device, void *memory, size_t bytes)
{
    return device->ops->lock_memory != NULL && device->ops->lock_memory(device, memory, bytes);
}

void device_unlock_memory(struct device *device, void *memory)
{
    device->ops->unlock_memory(device, memory);
}

const struct device_ops *const *device_backends(void)
{
    return device_backend_table;
}

static bool shapes_are_equal(struct shape a, struct shape b)
{
    return a.channels == b.channels && a.rows == b.rows && a.columns == b.columns;
}

static uint32_t size_after_window(uint32_t size, const struct op *op)
{
    uint64_t padded = size + 2 * (uint64_t)op->padding;
    assert(op->window >= 1 && op->stride >= 1 && padded >= op->window);
    return (uint32_t)((padded - op->window) / op->stride + 1);
}

static void check_shapes(const struct op *op)
{
    switch (op->kind) {
    case OP_CONV2D:
        assert(op->padding < op->window);
        assert(op->y.rows == size_after_window(op->x.rows, op));
        assert(op->y.columns == size_after_window(op->x.columns, op));
        break;
    case OP_LINEAR:
        assert(op->y.rows == 1 && op->y.columns == 1);
        break;
    case OP_MAX_POOL:
        assert(op->padding == 0 && op->y.channels == op->x.channels);
        assert(op->y.rows == size_after_window(op->x.rows, op));
        assert(op->y.columns == size_after_window(op->x.columns, op));
        break;
    case OP_DROPOUT:
        assert(op->rate >= 0 && op->rate < 1 && shapes_are_equal(op->x, op->y));
        break;
    case OP_BATCH_NORM:
        assert(op->has_bias && op->epsilon > 0 && shapes_are_equal(op->x, op->y));
        break;
    case OP_RELU:
    case OP_ADD:
        assert(shapes_are_equal(op->x, op->y));
        break;
    case OP_SUBSAMPLE:
        assert(op->window == 1 && op->padding == 0 && op->y.channels >= op->x.channels);
        assert(op->y.rows == size_after_window(op->x.rows, op));
        assert(op->y.columns == size_after_window(op->x.columns, op));
        break;
    case OP_PAD:
        assert(op->y.channels == op->x.channels);
        assert(op->y.rows == op->x.rows + 2 * op->padding);
        assert(op->y.columns == op->x.columns + 2 * op->padding);
        break;
    case OP_GLOBAL_POOL:
        assert(op->y.channels == op->x.channels && op->y.rows == 1 && op->y.columns == 1);
        break;
    case OP_SOFTMAX_LOSS:
        assert(op->x.rows == 1 && op->x.columns == 1 && shapes_are_equal(op->x, op->y));
        break;
    }
}

/* Operation i reads the result of operation `input`, or the pixels. */
static void check_input(const struct program_options *options, uint32_t i, uint32_t input,
                        bool *is_read)
{
    const struct op *op = &options->ops[i];
    if (input == DEVICE_INPUT_PIXELS) {
        return;
    }
    assert(input < i && shapes_are_equal(options->ops[input].y, op->x));
    is_read[input] = true;
}

/* Operations come in an order in which they can run, and all of them lead to the loss. */
static void check_program(const struct program_options *options)
{
    bool is_read[DEVICE_OPS_MAX] = {false};
    assert(options->op_count >= 1 && options->op_count <= DEVICE_OPS_MAX);
    assert(options->batch_size >= 1);
    assert(options->ops[options->op_count - 1].kind == OP_SOFTMAX_LOSS);
    for (uint32_t i = 0; i < options->op_count; i++) {
        const struct op *op = &options->ops[i];
        assert(op->x.channels >= 1 && op->x.rows >= 1 && op->x.columns >= 1);
        assert(op->y.channels >= 1);
        assert(i > 0 || op->input == DEVICE_INPUT_PIXELS);
        assert(op->kind != OP_SOFTMAX_LOSS || i == options->op_count - 1);
        assert(op->kind != OP_BATCH_NORM || options->statistics != NULL);
        check_input(options, i, op->input, is_read);
        if (op->kind == OP_ADD) {
            assert(op->input != DEVICE_INPUT_PIXELS && op->other != DEVICE_INPUT_PIXELS);
            assert(op->input != op->other);
            check_input(options, i, op->other, is_read);
        }
        check_shapes(op);
    }
    for (uint32_t i = 0; i + 1 < options->op_count; i++) {
        assert(is_read[i]);
    }
    (void)is_read;
}

enum status device_open_vectors(const char *name, const struct device_options *options,
                                struct vector_device **ret_vectors)
{
    const struct device_ops *ops;
    struct device_options chosen = *options;
    enum status status = pick_named(name, &ops, &chosen);
    if (status != STATUS_OK) {
        return status;
    }
    if (ops->open_vectors == NULL) {
        log_error("device %s keeps no parameters of servers: use cuda, or host", ops->name);
        return STATUS_UNSUPPORTED;
    }
    return ops->open_vectors(&chosen, ret_vectors);
}

enum status device_introduce(struct device *device, bool is_first,
                             struct device_introduction *ret_introduction)
{
    if (device->ops->introduce == NULL) {
        log_error("device %s: --all-reduce nccl is for GPUs: use --device cuda", device->ops->name);
        return STATUS_UNSUPPORTED;
    }
    return device->ops->introduce(device, is_first, ret_introduction);
}

enum status device_compile(struct device *device, const struct program_options *options,
                           struct program **ret_program)
{
    check_program(options);
    enum precision precision = options->precision;
    bool (*has_precision)(enum precision) = device->ops->has_precision;
    if (precision != PRECISION_FP32 && (has_precision == NULL || !has_precision(precision))) {
        log_error("device %s does not compute in %s: use --precision fp32", device->ops->name,
                  precision == PRECISION_TF32 ? "tf32" : "bf16");
        return STATUS_UNSUPPORTED;
    }
    if (options->conv != CONV_AUTO && !device->ops->has_conv_choice) {
        log_error("device %s chooses the algorithms of convolutions itself: use --conv auto, or "
                  "--device cpu",
                  device->ops->name);
        return STATUS_UNSUPPORTED;
    }
    assert(options->source == NULL || device->ops->takes_bytes);
    return device->ops->compile(device, options, ret_program);
}

void device_describe(const struct device *device, const struct program *program, char *ret_text,
                     size_t text_size)
{
    assert(text_size > 0);
    device->ops->describe(program, ret_text, text_size);
}

/* Checks the input, and waits for parameters that a backend does not wait for itself. */
static enum status prepare_forward(const struct program *program, const struct program_input *input)
{
    assert((input->pixels != NULL) != (input->bytes != NULL) && input->labels != NULL);
    assert(!input->is_training || input->sample_keys != NULL);
    return input->await_params != NULL && !program->ops->awaits_params
               ? input->await_params(input->context, 0, UINT64_MAX)
               : STATUS_OK;
}

enum status program_forward(struct program *program, const struct program_input *input,
                            struct program_result *ret_result)
{
    enum status status = prepare_forward(program, input);
    return status == STATUS_OK ? program->ops->forward(program, input, ret_result) : status;
}

enum status program_begin_forward(struct program *program, const struct program_input *input)
{
    enum status status = prepare_forward(program, input);
    if (status != STATUS_OK) {
        return status;
    }
    return program->ops->begin_forward != NULL
               ? program->ops->begin_forward(program, input)
               : program->ops->forward(program, input, &program->result);
}

enum status program_await_result(struct program *program, struct program_result *ret_result)
{
    if (program->ops->begin_forward != NULL) {
        return program->ops->await_result(program, ret_result);
    }
    *ret_result = program->result;
    return STATUS_OK;
}

enum status program_await_params(const struct program_input *input, const struct op *op)
{
    uint64_t weight_count = op_weight_count(op);
    if (input->await_params == NULL || weight_count == 0) {
        return STATUS_OK;
    }
    enum status status = input->await_params(input->context, op->weight, weight_count);
    return status == STATUS_OK && op->has_bias
               ? input->await_params(input->context, op->bias, op->y.channels)
               : status;
}

enum status program_backward(struct program *program, uint32_t last_op, uint32_t first_op)
{
    assert(first_op <= last_op);
    return program->ops->backward(program, last_op, first_op);
}

enum status program_await(struct program *program, uint32_t first_op)
{
    return program->ops->await != NULL ? program->ops->await(program, first_op) : STATUS_OK;
}

bool program_runs_ahead(const struct program *program)
{
    return program->ops->await != NULL;
}

bool program_may_update(const struct program *program)
{
    return program->ops->apply != NULL;
}

enum status program_hold(struct program *program, float *const *states, uint32_t state_count)
{
    assert(program_may_update(program));
    return program->ops->hold(program, states, state_count);
}

enum status program_apply(struct program *program, const struct optimizer_update *update,
                          uint64_t offset, uint64_t count)
{
    assert(program_may_update(program));
    return program->ops->apply(program, update, offset, count);
}

enum status program_fetch(struct program *program)
{
    return program_may_update(program) ? program->ops->fetch(program) : STATUS_OK;
}

enum status program_fetch_statistics(struct program *program)
{
    return program->ops->fetch_statistics != NULL ? program->ops->fetch_statistics(program)
                                                  : STATUS_OK;
}

uint64_t program_take_copy_ns(struct program *program)
{
    uint64_t copy_ns = program->copy_ns;
    program->copy_ns = 0;
    return copy_ns;
}

bool program_may_share(const struct program *program)
{
    return program->ops->share != NULL;
}

enum status program_share(struct program *program, unsigned char ret_share[PROGRAM_SHARE_BYTES])
{
    assert(program_may_share(program));
    return program->ops->share(program, ret_share);
}

enum status program_meet(struct program *program, const struct program_peers *peers)
{
    assert(peers->rank < peers->world);
    return program->ops->meet(program, peers);
}

enum status program_join(struct program *program, const struct program_joining *joining)
{
    assert(joining->rank < joining->world);
    return program->ops->join != NULL ? program->ops->join(program, joining) : STATUS_UNSUPPORTED;
}

enum status program_sum(struct program *program, const struct program_sum *sum)
{
    return program->ops->sum(program, sum);
}

void program_stop(struct program *program)
{
    if (program->ops->stop != NULL) {
        program->ops->stop(program);
    }
}

enum status program_expose(struct program *program, struct program_exposed *ret_exposed)
{
    return program->ops->expose != NULL ? program->ops->expose(program, ret_exposed)
                                        : STATUS_UNSUPPORTED;
}

void program_part(struct program *program)
{
    if (program_may_share(program)) {
        program->ops->part(program);
    }
}

enum status program_read_times(struct program *program, struct op_time *ret_times)
{
    return program->ops->read_times != NULL ? program->ops->read_times(program, ret_times)
                                            : STATUS_UNSUPPORTED;
}

void program_destroy(struct program *program)
{
    if (program != NULL) {
        program->ops->destroy(program);
    }
}
