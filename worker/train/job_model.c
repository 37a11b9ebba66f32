/* Turns a job's choices into those of models. */
#include "worker/train/job_model.h"

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

struct model_options job_model_options(const struct job *job, uint32_t batch_size,
                                       const struct device *device, const struct dataset *dataset,
                                       struct pixels_source *source)
{
    bool has_peers = job->servers > 0 || job_carriers(job).processes > 1;
    bool takes_bytes = device->ops->takes_bytes && dataset_describe(dataset, source);
    return (struct model_options){
        .name = job->model,
        .input = dataset->sample,
        .class_count = dataset->class_count,
        .batch_size = batch_size,
        .seed = job->seed,
        .bucket_bytes = phases_bucket_bytes(job),
        .conv = conv_of(job->conv),
        .precision = precision_of(job->precision),
        .source = takes_bytes ? source : NULL,
        .has_region = has_peers && endpoints_may_share(job->transport),
    };
}
