/* Reading of byte images: find the file, then one multiplication and addition per pixel. */
#include "worker/data/byte_images.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct part {
    struct byte_records records;
    struct data_file *file; // owned
};

struct byte_images {
    struct dataset dataset;
    struct part parts[BYTE_IMAGES_FILES_MAX];
    uint32_t part_count;
    uint8_t *labels;  // (sample_count)
    char *class_text; // owned; NULL: none
    float scale[BYTE_IMAGES_CHANNELS_MAX], shift[BYTE_IMAGES_CHANNELS_MAX];
};

enum status byte_images_create(const struct byte_format *format, struct byte_images **ret_images)
{
    assert(format->sample.channels <= BYTE_IMAGES_CHANNELS_MAX);
    struct byte_images *images = calloc(1, sizeof(*images));
    if (images == NULL) {
        return STATUS_NO_MEMORY;
    }
    images->dataset = (struct dataset){
        .ops = format->ops,
        .sample = format->sample,
        .class_count = format->class_count,
    };
    for (uint32_t c = 0; c < format->sample.channels; c++) {
        images->scale[c] = 1 / (255 * format->deviation[c]);
        images->shift[c] = -format->mean[c] / format->deviation[c];
    }
    *ret_images = images;
    return STATUS_OK;
}

void byte_images_destroy(struct byte_images *images)
{
    if (images == NULL) {
        return;
    }
    for (uint32_t i = 0; i < images->part_count; i++) {
        data_file_close(images->parts[i].file);
    }
    free(images->labels);
    free(images->class_text);
    free(images);
}

enum status byte_images_add(struct byte_images *images, const struct byte_records *records,
                            struct data_file *file, char *ret_why, size_t why_size)
{
    assert(images->part_count < BYTE_IMAGES_FILES_MAX);
    uint64_t count = images->dataset.sample_count;
    uint8_t *labels = realloc(images->labels, count + records->count);
    if (labels == NULL) {
        return STATUS_NO_MEMORY;
    }
    images->labels = labels;
    for (uint64_t i = 0; i < records->count; i++) {
        uint8_t label = records->labels[i * records->label_stride];
        if (label >= images->dataset.class_count) {
            snprintf(ret_why, why_size, "record %llu (from 0) has label %u; labels are below %u",
                     (unsigned long long)i, label, images->dataset.class_count);
            return STATUS_MALFORMED;
        }
        labels[count + i] = label;
    }
    images->dataset.sample_count = count + records->count;
    images->parts[images->part_count++] = (struct part){.records = *records, .file = file};
    return STATUS_OK;
}

void byte_images_take_class_text(struct byte_images *images, char *text)
{
    assert(images->class_text == NULL);
    images->class_text = text;
    images->dataset.class_text = text;
}

struct dataset *byte_images_dataset(struct byte_images *images)
{
    return &images->dataset;
}

static const uint8_t *find_pixels(const struct byte_images *images, uint64_t index)
{
    const struct part *part = images->parts;
    while (index >= part->records.count) {
        index -= part->records.count;
        part++;
    }
    return part->records.pixels + index * part->records.pixel_stride;
}

void byte_images_convert(const struct dataset *dataset, const uint8_t *bytes, float *ret_pixels)
{
    struct pixels_source source;
    byte_images_describe(dataset, &source);
    dataset_scale_bytes(&source, bytes, ret_pixels);
}

enum status byte_images_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                             uint32_t *ret_label)
{
    const struct byte_images *images = (const struct byte_images *)dataset;
    byte_images_convert(dataset, find_pixels(images, index), ret_pixels);
    *ret_label = images->labels[index];
    return STATUS_OK;
}

void byte_images_describe(const struct dataset *dataset, struct pixels_source *ret_source)
{
    const struct byte_images *images = (const struct byte_images *)dataset;
    *ret_source = (struct pixels_source){
        .channels = dataset->sample.channels,
        .rows = dataset->sample.rows,
        .columns = dataset->sample.columns,
    };
    memcpy(ret_source->scale, images->scale, sizeof(images->scale));
    memcpy(ret_source->shift, images->shift, sizeof(images->shift));
}

enum status byte_images_read_bytes(const struct dataset *dataset, uint64_t index,
                                   uint8_t *ret_bytes, uint32_t *ret_label)
{
    const struct byte_images *images = (const struct byte_images *)dataset;
    const struct shape *sample = &dataset->sample;
    memcpy(ret_bytes, find_pixels(images, index),
           (size_t)sample->channels * sample->rows * sample->columns);
    *ret_label = images->labels[index];
    return STATUS_OK;
}

void byte_images_close(struct dataset *dataset)
{
    byte_images_destroy((struct byte_images *)dataset);
}
