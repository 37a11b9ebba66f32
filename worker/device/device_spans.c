/* Asks a program's device what its streams did. */
#include "worker/device/device_spans.h"

#include "worker/device/device.h"

#include <assert.h>

bool program_has_spans(const struct program *program)
{
    return program->ops->read_spans != NULL;
}

enum status program_read_spans(struct program *program, struct device_span *ret_spans,
                               size_t span_max, size_t *ret_count, uint64_t *ret_dropped)
{
    assert(program_has_spans(program));
    return program->ops->read_spans(program, ret_spans, span_max, ret_count, ret_dropped);
}
