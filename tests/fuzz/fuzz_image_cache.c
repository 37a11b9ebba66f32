/* Fuzzes what is kept about image files: no bytes make a file count as checked whose size or time
 * they do not name, and what was taken over can be kept and taken over again. */
#include "common/base/crc32c.h"
#include "worker/data/images/image_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FILES 4

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct sample {
    char *classes[2];
    char names[16];
    struct image_file files[FILES];
    struct image_list list;
};

static void init(struct sample *sample)
{
    static char first[] = "a", second[] = "b";
    *sample = (struct sample){.classes = {first, second}, .names = "1\0002\0001\0x y"};
    for (uint32_t i = 0; i < FILES; i++) {
        sample->files[i] = (struct image_file){
            .name_at = (size_t)2 * i, .class = i / 2, .size = 1 + i, .changed_ns = 16 + i};
    }
    sample->list = (struct image_list){.classes = sample->classes,
                                       .class_count = 2,
                                       .files = sample->files,
                                       .count = FILES,
                                       .names = sample->names};
}

/* Whether eight bytes for the size and eight for the time of a file lie somewhere. */
static int are_named(const struct image_file *file, const uint8_t *bytes, size_t size)
{
    uint8_t facts[16];
    memcpy(facts, &file->size, 8);
    memcpy(facts + 8, &file->changed_ns, 8);
    return memmem(bytes, size, facts, sizeof(facts)) != NULL;
}

static void check_again(const struct sample *sample)
{
    struct sample again;
    uint8_t *bytes;
    size_t size;
    init(&again);
    if (image_cache_encode(&sample->list, INT64_MAX, &bytes, &size) != STATUS_OK) {
        return;
    }
    enum status status = image_cache_decode(bytes, size, &again.list);
    assert(status == STATUS_OK);
    for (uint32_t i = 0; i < FILES; i++) {
        const struct image_file *before = &sample->files[i], *after = &again.files[i];
        assert(before->is_checked == after->is_checked);
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct sample sample;
    uint8_t *sound = malloc(size + 4); // the same with the checksum that belongs to it
    if (sound == NULL) {
        return 0;
    }
    uint32_t sum = crc32c(bytes, size);
    memcpy(sound, bytes, size);
    memcpy(sound + size, &sum, sizeof(sum));
    init(&sample);
    enum status status = image_cache_decode(sound, size + 4, &sample.list);
    for (uint32_t i = 0; i < FILES; i++) {
        assert(!sample.files[i].is_checked || are_named(&sample.files[i], bytes, size));
    }
    if (status == STATUS_OK) {
        check_again(&sample);
    }
    free(sound);
    return 0;
}
