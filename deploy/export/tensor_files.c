/* Writes NPZ and safetensors.
 *
 * NPZ is a ZIP file with an entry NAME.npy for each tensor. Ours are stored, not compressed: floats
 * of trained models do not get smaller. An entry is a header with its checksum and size, the name,
 * and the bytes; a directory of all entries follows, and a record that says where it begins.
 *
 * safetensors is a JSON object of names, types, shapes and places, with its length before it, and
 * the bytes of all tensors behind it. */
#include "deploy/export/tensor_files.h"

#include "common/base/log.h"
#include "common/base/new_file.h"

#include <zlib.h>

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NPY_HEADER_BYTES  192 // a multiple of 64, so that data lie aligned
#define NPY_PREFIX_BYTES  10  // of them, before the text
#define ZIP_LOCAL_BYTES   30
#define ZIP_CENTRAL_BYTES 46
#define ZIP_END_BYTES     22
#define ZIP_ENTRIES_MAX   65534
#define ZIP_VERSION       20
#define DOS_DATE          0x21 // 1980-01-01: files of the same tensors are the same

/* The tensor as it lies in files; little-endian. *ret_size bytes, valid while the tensor is, and
 * until the next call. */
static const void *bytes_of(const struct tensor *tensor, uint64_t *whole, size_t *ret_size)
{
    if (tensor->floats == NULL) {
        *whole = htole64((uint64_t)tensor->whole);
        *ret_size = sizeof(*whole);
        return whole;
    }
    _Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "floats are written as they lie in memory");
    *ret_size = tensor->count * sizeof(float);
    return tensor->floats;
}

static size_t size_of(const struct tensor *tensor)
{
    uint64_t whole;
    size_t size;
    (void)bytes_of(tensor, &whole, &size);
    return size;
}

static void put16(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
}

static void put32(unsigned char *at, uint32_t value)
{
    put16(at, value & 0xffff);
    put16(at + 2, value >> 16);
}

/* "(6, 1, 5, 5)", "(6,)", "()" */
static void format_shape(const struct tensor *tensor, char *ret_text, size_t size)
{
    size_t at = (size_t)snprintf(ret_text, size, "(");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        at += (size_t)snprintf(ret_text + at, size - at, "%s%u", i > 0 ? ", " : "",
                               (unsigned)tensor->shape[i]);
    }
    snprintf(ret_text + at, size - at, "%s)", tensor->rank == 1 ? "," : "");
}

static void make_npy_header(const struct tensor *tensor, unsigned char ret_header[NPY_HEADER_BYTES])
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char shape[64], text[NPY_HEADER_BYTES];
    format_shape(tensor, shape, sizeof(shape));
    int size =
        snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 tensor->floats != NULL ? "<f4" : "<i8", shape);
    assert(size > 0 && size < NPY_HEADER_BYTES - NPY_PREFIX_BYTES);
    memset(ret_header, ' ', NPY_HEADER_BYTES);
    memcpy(ret_header, magic, sizeof(magic));
    put16(ret_header + sizeof(magic), NPY_HEADER_BYTES - NPY_PREFIX_BYTES);
    memcpy(ret_header + NPY_PREFIX_BYTES, text, (size_t)size);
    ret_header[NPY_HEADER_BYTES - 1] = '\n';
}

struct entry {
    char name[TENSOR_NAME_BYTES + 4];
    uint32_t name_size, crc, size, offset;
    unsigned char header[NPY_HEADER_BYTES];
};

static void make_entry(const struct tensor *tensor, uint32_t offset, struct entry *ret_entry)
{
    uint64_t whole;
    size_t size;
    const void *bytes = bytes_of(tensor, &whole, &size);
    struct entry *entry = ret_entry;
    make_npy_header(tensor, entry->header);
    uLong crc = crc32_z(0, entry->header, NPY_HEADER_BYTES);
    entry->crc = (uint32_t)crc32_z(crc, bytes, size);
    entry->size = (uint32_t)(NPY_HEADER_BYTES + size);
    entry->offset = offset;
    entry->name_size = (uint32_t)snprintf(entry->name, sizeof(entry->name), "%s.npy", tensor->name);
}

/* What an entry's own header and that in the directory have in common; 26 bytes. */
static void put_entry(unsigned char *at, const struct entry *entry)
{
    memset(at, 0, 26);
    put16(at, ZIP_VERSION);
    put16(at + 8, DOS_DATE);
    put32(at + 10, entry->crc);
    put32(at + 14, entry->size); // compressed
    put32(at + 18, entry->size);
    put16(at + 22, entry->name_size);
}

static uint64_t npz_entry_size(const struct tensor *tensor)
{
    return ZIP_LOCAL_BYTES + strlen(tensor->name) + 4 + NPY_HEADER_BYTES + size_of(tensor);
}

static void write_entry(FILE *stream, const struct tensor *tensor, const struct entry *entry)
{
    unsigned char local[ZIP_LOCAL_BYTES] = {'P', 'K', 3, 4};
    uint64_t whole;
    size_t size;
    const void *bytes = bytes_of(tensor, &whole, &size);
    put_entry(local + 4, entry);
    (void)fwrite(local, sizeof(local), 1, stream);
    (void)fwrite(entry->name, entry->name_size, 1, stream);
    (void)fwrite(entry->header, NPY_HEADER_BYTES, 1, stream);
    (void)fwrite(bytes, size, 1, stream);
}

static void write_directory(FILE *stream, const struct entry *entries, uint32_t count,
                            uint32_t offset)
{
    uint32_t directory_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char central[ZIP_CENTRAL_BYTES] = {'P', 'K', 1, 2};
        put16(central + 4, ZIP_VERSION);
        put_entry(central + 6, &entries[i]);
        put32(central + 42, entries[i].offset);
        (void)fwrite(central, sizeof(central), 1, stream);
        (void)fwrite(entries[i].name, entries[i].name_size, 1, stream);
        directory_size += ZIP_CENTRAL_BYTES + entries[i].name_size;
    }
    unsigned char end[ZIP_END_BYTES] = {'P', 'K', 5, 6};
    put16(end + 8, count);
    put16(end + 10, count);
    put32(end + 12, directory_size);
    put32(end + 16, offset);
    (void)fwrite(end, sizeof(end), 1, stream);
}

static enum status write_npz(FILE *stream, const struct tensors *tensors)
{
    struct entry *entries = calloc(tensors->count, sizeof(*entries));
    uint64_t offset = 0;
    if (entries == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < tensors->count; i++) {
        make_entry(&tensors->list[i], (uint32_t)offset, &entries[i]);
        write_entry(stream, &tensors->list[i], &entries[i]);
        offset += npz_entry_size(&tensors->list[i]);
    }
    write_directory(stream, entries, tensors->count, (uint32_t)offset);
    free(entries);
    return STATUS_OK;
}

/* Whether offsets and sizes fit into the 32 bits that they have in a ZIP file. */
static bool fits_npz(const struct tensors *tensors)
{
    uint64_t size = ZIP_END_BYTES;
    for (uint32_t i = 0; i < tensors->count; i++) {
        size += npz_entry_size(&tensors->list[i]) + ZIP_CENTRAL_BYTES + TENSOR_NAME_BYTES + 4;
    }
    return size <= UINT32_MAX && tensors->count <= ZIP_ENTRIES_MAX;
}

static json_t *describe_tensor(const struct tensor *tensor, uint64_t offset)
{
    uint64_t end = offset + size_of(tensor);
    json_t *shape = json_array();
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor->floats != NULL ? "F32" : "I64",
                     "shape", shape, "data_offsets", (json_int_t)offset, (json_int_t)end);
}

/* The object that a safetensors file begins with; NULL: there is no memory. */
static char *describe_tensors(const struct tensor_file *file)
{
    char step[24];
    uint64_t offset = 0;
    snprintf(step, sizeof(step), "%llu", (unsigned long long)file->step);
    json_t *header = json_pack("{s:{s:s, s:s, s:s, s:s}}", "__metadata__", "format", "pt", "model",
                               file->model, "step", step, "ringside", RINGSIDE_VERSION);
    for (uint32_t i = 0; i < file->tensors->count && header != NULL; i++) {
        const struct tensor *tensor = &file->tensors->list[i];
        if (json_object_set_new(header, tensor->name, describe_tensor(tensor, offset)) != 0) {
            json_decref(header);
            header = NULL;
        }
        offset += size_of(tensor);
    }
    char *text = header != NULL ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

static enum status write_safetensors(FILE *stream, const struct tensor_file *file)
{
    char *text = describe_tensors(file);
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    // Spaces behind it, so that the tensors lie aligned.
    size_t size = strlen(text), padded = (size + 7) / 8 * 8;
    uint64_t length = htole64(padded);
    (void)fwrite(&length, sizeof(length), 1, stream);
    (void)fwrite(text, size, 1, stream);
    (void)fwrite("       ", padded - size, 1, stream);
    free(text);
    for (uint32_t i = 0; i < file->tensors->count; i++) {
        uint64_t whole;
        const void *bytes = bytes_of(&file->tensors->list[i], &whole, &size);
        (void)fwrite(bytes, size, 1, stream);
    }
    return STATUS_OK;
}

static enum status write_file(FILE *stream, const struct tensor_file *file)
{
    enum status status = file->format == TENSOR_FORMAT_NPZ ? write_npz(stream, file->tensors)
                                                           : write_safetensors(stream, file);
    if (status != STATUS_OK) {
        errno = ENOMEM;
        return status;
    }
    return fflush(stream) == 0 && ferror(stream) == 0 && fsync(fileno(stream)) == 0 ? STATUS_OK
                                                                                    : STATUS_IO;
}

enum status tensor_file_save(const struct tensor_file *file, const char *path)
{
    char *draft;
    if (file->format == TENSOR_FORMAT_NPZ && !fits_npz(file->tensors)) {
        log_error("a model of 4 GiB or more does not fit into %s: use --format safetensors", path);
        return STATUS_INVALID;
    }
    if (asprintf(&draft, "%s.part", path) < 0) {
        return STATUS_NO_MEMORY;
    }
    FILE *stream = new_file_stream(draft, true);
    enum status status = stream != NULL ? write_file(stream, file) : STATUS_IO;
    int error = errno;
    if (stream != NULL && fclose(stream) != 0 && status == STATUS_OK) {
        status = STATUS_IO;
        error = errno;
    }
    if (status == STATUS_OK && rename(draft, path) != 0) {
        status = STATUS_IO;
        error = errno;
    }
    if (status != STATUS_OK) {
        errno = error;
        log_error("cannot write %s: %m", path);
        unlink(draft);
    }
    free(draft);
    return status;
}
