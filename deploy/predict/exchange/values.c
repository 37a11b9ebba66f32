/* Asks the codec for sizes, and the costs for times. */
#include "deploy/predict/exchange/values.h"

#include "common/codec/codec.h"

static double seconds(double floats, double bandwidth)
{
    return bandwidth > 0 ? 4 * floats / bandwidth : 0;
}

static bool is_encoded(const struct course *course)
{
    return course->job->compress.kind != CODEC_NONE;
}

double values_bytes(uint64_t floats)
{
    return 4.0 * (double)floats;
}

double values_encoded_bytes(const struct course *course, uint64_t floats)
{
    return (double)codec_bytes(&course->job->compress, floats);
}

double values_sum_s(const struct course *course, double floats)
{
    return seconds(floats, course->costs->sum_bandwidth);
}

double values_encode_s(const struct course *course, double floats)
{
    return is_encoded(course) ? seconds(floats, course->costs->encode_bandwidth) : 0;
}

double values_decode_s(const struct course *course, double floats)
{
    return is_encoded(course) ? seconds(floats, course->costs->decode_bandwidth) : 0;
}

double values_add_s(const struct course *course, double floats)
{
    return is_encoded(course) ? values_decode_s(course, floats) : values_sum_s(course, floats);
}
