/* A network ready to train: layers turned into a device's program, and the two flat vectors.
 *
 * Models are rows of names.h's MODEL_MAP, each a file that names its layers; layers know shapes and
 * parameter counts, no arithmetic. */
#ifndef WORKER_MODEL_MODEL_H
#define WORKER_MODEL_MODEL_H

#include "common/base/region.h"
#include "common/vector/layout.h"
#include "worker/device/device.h"

struct model;
struct optimizer;

struct model_options {
    const char *name; // of MODEL_MAP
    struct shape input;
    uint32_t class_count;
    uint32_t batch_size;   // of a training step, and of evaluation
    uint64_t seed;         // for the first parameters
    uint64_t bucket_bytes; // as small as buckets will ever be: see model_merge_buckets
    enum conv_algorithm conv;
    enum precision precision;
    const struct pixels_source *source; // inputs are bytes, borrowed; NULL: pixels
    uint32_t gradient_count;            // vectors of gradients, see model_keep_gradients; 0: 1
    uint32_t kept_count; // of the device's memory, for who exposes it: struct program_exposed
    bool has_region;     // the gradients lie where other processes of this host can read them
};

/* Borrows device. Allocates everything that a step needs: no call below allocates. Logs what does
 * not fit (an input too small for the layers). */
enum status model_create(const struct model_options *options, struct device *device,
                         struct model **ret_model);
void model_destroy(struct model *model); // NULL is fine

/* As it was last cut. */
const struct layout *model_layout(const struct model *model);

/* As it was cut at create; stays as it is. */
const struct layout *model_fine_layout(const struct model *model);

/* Joins the buckets of the fine layout (see layout_merge; 0: none). Between two steps, when no
 * bucket is on its way; what exchanges gradients has to be told. Parameters, gradients and what was
 * compiled stay as they are. */
void model_merge_buckets(struct model *model, uint64_t bucket_bytes);

/* What the layers of a bucket are called: see bucket_layers.h. */
void model_name_bucket(const struct model *model, uint32_t bucket, char *ret_text,
                       size_t text_size);

/* The operations of the network's plan, and the layer that each belongs to: see bucket_layers.h. */
uint32_t model_op_count(const struct model *model);
void model_name_layer(const struct model *model, uint32_t op, char *ret_text, size_t text_size);

float *model_params(struct model *model); // (value_count)
float *model_grads(struct model *model);  // (value_count)

/* All vectors of gradients (gradient_count): the last is model_grads, which backward writes; the
 * others are there to keep what it has written in the passes before, in their order. */
float *const *model_gradients(const struct model *model);
void model_keep_gradients(struct model *model, uint32_t index); // all buckets are there

/* What batch normalisation has learned of the data: not exchanged with the gradients. A device may
 * keep it: model_fetch_statistics comes before it is read or changed, after a training forward. */
float *model_statistics(struct model *model); // (statistic_count)
enum status model_fetch_statistics(struct model *model);
uint64_t model_statistic_count(const struct model *model);

/* Parameters as the authors of the network count them. */
uint64_t model_published_count(const struct model *model);

/* Where the gradients lie, vector after vector (layout_stride); NULL without has_region. */
const struct region *model_region(const struct model *model);

enum status model_forward(struct model *model, const struct program_input *input,
                          struct program_result *ret_result);

/* The same in two halves: see program_begin_forward. */
enum status model_begin_forward(struct model *model, const struct program_input *input);
enum status model_await_result(struct model *model, struct program_result *ret_result);

/* Runs backward through the layers of one bucket. Buckets go in order, 0 first, after a
 * model_forward with is_training. */
enum status model_backward(struct model *model, uint32_t bucket);

/* The end of the buckets whose gradients are complete as soon as this one's are: of it, and of
 * those behind it that are parts of the same layers. */
uint32_t model_end_of_ready(const struct model *model, uint32_t bucket);

/* Waits until the bucket's gradients are in grads; each bucket, in order, before the next forward.
 */
enum status model_await_gradients(struct model *model, uint32_t bucket);

/* Whether the device computes while the host goes on: model_backward only queues, and is best
 * called for all buckets before the first is waited for. */
bool model_runs_ahead(const struct model *model);

/* Whether the device makes an optimizer's updates itself. Then model_hold comes before the first of
 * them, and borrows the optimizer's states until model_destroy. */
bool model_may_update(const struct model *model);
enum status model_hold(struct model *model, struct optimizer *optimizer);

/* One update of a bucket, from the gradients in grads, or from those of this step's backward if its
 * input said keeps_gradients. From here params and the optimizer's states are old, until a fetch;
 * the model's own forward takes the new ones. */
enum status model_apply(struct model *model, uint32_t bucket,
                        const struct optimizer_update *update);

/* Brings params and states up to date, where they are not. */
enum status model_fetch(struct model *model);

/* Sums of gradients among the devices of a host: see program_share. Buckets are those of
 * model_layout, which stays as it is from a meeting on. */
bool model_may_share(const struct model *model);
enum status model_share(struct model *model, unsigned char ret_share[PROGRAM_SHARE_BYTES]);
enum status model_meet(struct model *model, const struct program_peers *peers); // but their sums
void model_part(struct model *model);

/* The same by a library that connects the devices of all workers: see program_join. The layout may
 * change between phases, with another join. */
enum status model_join(struct model *model, const struct program_joining *joining);
enum status model_sum(struct model *model, uint32_t bucket);
void model_stop(struct model *model);

/* As program_expose. */
enum status model_expose(struct model *model, struct program_exposed *ret_exposed);

/* How long the device's copies of parameters and gradients took that have ended since the last
 * call, those for evaluations not counted; 0 on devices that need none. Does not wait: what a
 * step's last copies took comes with the next step. */
uint64_t model_take_copy_ns(struct model *model);

/* As program_read_times: an element for each operation of the network's plan. */
enum status model_read_times(struct model *model, struct op_time *ret_times);

/* What the device's streams do: see device_spans.h. Buckets are the model's to fill in. */
bool model_has_spans(const struct model *model);
void model_record_spans(struct model *model, bool is_on, uint64_t step);
enum status model_read_spans(struct model *model, struct device_span *ret_spans, size_t span_max,
                             size_t *ret_count, uint64_t *ret_dropped);

/* Whom the device tells of its operations from here on: see op_watch.h. Borrowed; NULL: nobody. */
void model_watch(struct model *model, const struct op_watch *watch);

/* What was compiled, in one line. */
void model_describe(const struct model *model, char *ret_text, size_t text_size);

uint64_t model_device_memory(const struct model *model); // see device_ops; 0: there is none

#endif
