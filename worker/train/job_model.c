/* Turns a job's choices into those of models. */
#include "worker/train/job_model.h"

#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/phases.h"
#include "common/transport/endpoints.h"

static enum conv_algorithm conv_of(enum job_conv conv)
{
    switch (conv) {
    case JOB_CONV_AUTO:
        return CONV_AUTO;
    case JOB_CONV_DIRECT:
        return CONV_DIRECT;
    case JOB_CONV_WINOGRAD:
        return CONV_WINOGRAD;
    }
    return CONV_AUTO;
}

static enum precision precision_of(enum job_precision precision)
{
    switch (precision) {
    case JOB_PRECISION_FP32:
        return PRECISION_FP32;
    case JOB_PRECISION_TF32:
        return PRECISION_TF32;
    case JOB_PRECISION_BF16:
        return PRECISION_BF16;
    }
    return PRECISION_FP32;
}

uint32_t job_class_count(const struct job *job, const struct dataset *dataset)
{
    return job->classes > 0 ? job->classes : dataset->class_count;
}

struct model_options job_model_options(const struct job *job, uint32_t batch_size,
                                       const struct device *device, const struct dataset *dataset,
                                       struct pixels_source *source)
{
    bool has_peers = job->servers > 0 || job_carriers(job).processes > 1;
    bool takes_bytes = device->ops->takes_bytes && dataset_describe(dataset, source);
    return (struct model_options){
        .name = job->model,
        .input = dataset->sample,
        .class_count = job_class_count(job, dataset),
        .batch_size = batch_size,
        .seed = job->seed,
        .bucket_bytes = phases_bucket_bytes(job),
        .conv = conv_of(job->conv),
        .precision = precision_of(job->precision),
        .source = takes_bytes ? source : NULL,
        .has_region = has_peers && endpoints_may_share(job->transport),
    };
}

enum status job_create_sized_model(const struct job *job, const struct dataset *train,
                                   const struct model *trained, struct device *device,
                                   const struct dataset *test, struct job_sized_model *ret_sized)
{
    struct model *model = NULL;
    const struct shape *from = &train->sample, *to = &test->sample;
    ret_sized->model = NULL;
    if (from->rows == to->rows && from->columns == to->columns) {
        return STATUS_OK;
    }
    struct model_options options =
        job_model_options(job, job_batch_max(job), device, test, &ret_sized->source);
    options.has_region = false; // it has no gradients
    enum status status = model_create(&options, device, &model);
    if (status != STATUS_OK) {
        return status;
    }
    if (model_layout(model)->value_count != model_layout(trained)->value_count) {
        log_error("--eval-size %u: model %s, which trains on images of %ux%u, has another number "
                  "of parameters for %ux%u, since its last layers fix the size: leave out "
                  "--eval-size, or choose a model that ends with global pooling, such as resnet20 "
                  "or resnet50v2",
                  job->eval_size, job->model, from->rows, from->columns, to->rows, to->columns);
        model_destroy(model);
        return STATUS_INVALID;
    }
    ret_sized->model = model;
    return STATUS_OK;
}
