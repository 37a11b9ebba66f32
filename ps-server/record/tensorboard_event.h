/* Events for TensorBoard, as the bytes of its protobuf messages (proto/tensorboard.proto). */
#ifndef PS_SERVER_RECORD_TENSORBOARD_EVENT_H
#define PS_SERVER_RECORD_TENSORBOARD_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENSORBOARD_SCALARS_MAX 16

struct tensorboard_scalar {
    const char *tag; // "train/loss"
    double value;
};

/* An event: zero or more scalars; or else one of the texts, or content for a plugin. */
struct tensorboard_event {
    double wall_time; // seconds since 1970
    uint64_t step;
    const struct tensorboard_scalar *scalars; // (scalar_count) up to TENSORBOARD_SCALARS_MAX
    uint32_t scalar_count;
    const char *version;  // of the file; of its first event
    const char *text_tag; // of a text in Markdown
    const char *text;
    const char *hparams_tag; // of a message of tensorboard_hparams.h
    const uint8_t *hparams;  // (hparams_size) borrowed
    size_t hparams_size;
    bool is_start; // what follows replaces what was written of this step and later ones
};

/* Packs an event into memory of malloc, which the caller frees. NULL if there is none. */
uint8_t *tensorboard_event_pack(const struct tensorboard_event *of, size_t *ret_size);

#endif
