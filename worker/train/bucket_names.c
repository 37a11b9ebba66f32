/* Keeps the names of buckets with the trace. */
#include "worker/train/bucket_names.h"

#define NAME_BYTES 64 // as a timeline's texts have

void bucket_names_cut(struct bucket_names *names, struct trace *trace, struct model *model,
                      uint64_t bucket_bytes)
{
    char text[NAME_BYTES];
    model_merge_buckets(model, bucket_bytes);
    const struct layout *layout = model_layout(model);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        model_name_bucket(model, i, text, sizeof(text));
        names->layers[i] = text[0] != '\0' ? trace_keep(trace, text) : NULL;
    }
}
