/* Fuzzes the reading of .npz files. The first byte says what the rest is: a zip file, of which each
 * member lies within it, and comes out with its checksum if it comes out at all; or an array, whose
 * header says no more and no less than the bytes that follow it. */
#include "worker/data/npz/npy.h"
#include "worker/data/npz/zip.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UNPACKED_MAX ((uint64_t)1 << 22)

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_array(const uint8_t *bytes, uint64_t size)
{
    struct npy npy;
    char why[256] = "", shape[256];
    enum status status = npy_parse(bytes, size, &npy, why, sizeof(why));
    assert((status == STATUS_OK) == (why[0] == '\0'));
    if (status != STATUS_OK) {
        return;
    }
    uint64_t count = 1;
    for (uint32_t i = 0; i < npy.dim_count; i++) {
        count *= npy.dims[i];
    }
    assert(npy.dim_count <= NPY_DIMS_MAX && npy.count == count);
    assert(npy.at <= size && npy.count * npy.item_bytes == size - npy.at);
    npy_shape_text(&npy, shape, sizeof(shape));
    assert(shape[0] == '(' && shape[strlen(shape) - 1] == ')');
}

static void read_member(const struct zip *zip, const struct zip_member *member)
{
    char why[256] = "";
    assert(member->packed >= zip->file &&
           member->packed_bytes <= (uint64_t)(zip->file + zip->size - member->packed));
    assert((const uint8_t *)member->name >= zip->file &&
           (const uint8_t *)member->name + member->name_size <= zip->file + zip->size);
    if (member->is_deflated && member->bytes > UNPACKED_MAX) {
        return;
    }
    uint8_t *room = member->is_deflated ? malloc(member->bytes + 1) : NULL;
    assert(room != NULL || !member->is_deflated);
    enum status status = zip_read(member, room, why, sizeof(why));
    assert((status == STATUS_OK) == (why[0] == '\0') || status == STATUS_NO_MEMORY);
    if (status == STATUS_OK) {
        read_array(room != NULL ? room : member->packed, member->bytes);
    }
    free(room);
}

static void read_zip(const uint8_t *bytes, uint64_t size)
{
    struct zip zip;
    struct zip_member member;
    char why[256] = "";
    enum status status = zip_open(bytes, size, &zip, why, sizeof(why));
    assert((status == STATUS_OK) == (why[0] == '\0'));
    uint64_t at = status == STATUS_OK ? zip.directory : 0;
    while (status == STATUS_OK) {
        uint64_t before = at;
        status = zip_next(&zip, &at, &member, why, sizeof(why));
        if (status == STATUS_OK) {
            assert(at > before && at <= zip.directory_end);
            read_member(&zip, &member);
        }
    }
    assert(status == STATUS_END_OF_DATA || why[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (bytes[0] % 2 == 0) {
        read_zip(bytes + 1, size - 1);
    } else {
        read_array(bytes + 1, size - 1);
    }
    return 0;
}
