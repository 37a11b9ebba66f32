/* Tests of files of tensors, read back as their formats say. */
#include "deploy/export/tensor_files.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>
#include <zlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 8192

static float matrix[6] = {1, 2, 3, 4, 5, 6}, vector[1] = {-0.5F};
static struct tensor list[] = {
    {.name = "fc1.weight", .rank = 2, .shape = {2, 3}, .count = 6, .floats = matrix},
    {.name = "fc1.bias", .rank = 1, .shape = {1}, .count = 1, .floats = vector},
    {.name = "bn1.num_batches_tracked", .rank = 0, .count = 1, .whole = 938},
};
static const struct tensors tensors = {.list = list, .count = 3};

static size_t save(const char *folder, enum tensor_format format, unsigned char *ret_bytes)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/model", folder);
    const struct tensor_file file = {&tensors, format, "lenet5", 938};
    assert_int_equal(tensor_file_save(&file, path), STATUS_OK);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t size = fread(ret_bytes, 1, FILE_BYTES, stream);
    fclose(stream);
    assert_in_range(size, 1, FILE_BYTES - 1);
    return size;
}

static uint32_t get(const unsigned char *at, uint32_t bytes)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint32_t)at[i] << (8 * i);
    }
    return value;
}

/* An entry as the directory has it, and its own header and data. */
static void check_entry(const unsigned char *bytes, const unsigned char *central,
                        const struct tensor *tensor, const char *header)
{
    char name[TENSOR_NAME_BYTES + 4];
    snprintf(name, sizeof(name), "%.*s.npy", TENSOR_NAME_BYTES - 1, tensor->name);
    const unsigned char *local = bytes + get(central + 42, 4);
    assert_memory_equal(central, "PK\x01\x02", 4);
    assert_memory_equal(local, "PK\x03\x04", 4);
    assert_memory_equal(local + 4, central + 6, 26); // they agree
    assert_int_equal(get(local + 8, 2), 0);          // stored
    assert_int_equal(get(local + 26, 2), strlen(name));
    assert_memory_equal(local + 30, name, strlen(name));
    assert_memory_equal(central + 46, name, strlen(name));
    const unsigned char *data = local + 30 + strlen(name);
    uint32_t size = get(local + 22, 4), header_size = 10 + get(data + 8, 2);
    assert_int_equal(get(local + 18, 4), size);
    assert_int_equal(get(local + 14, 4), crc32(0, data, size));
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    assert_int_equal(header_size % 64, 0);
    assert_memory_equal(data + 10, header, strlen(header));
    assert_int_equal(data[header_size - 1], '\n');
    size_t value_size = tensor->floats != NULL ? tensor->count * 4 : 8;
    assert_int_equal(size - header_size, value_size);
    assert_memory_equal(data + header_size,
                        tensor->floats != NULL ? (const void *)tensor->floats : &tensor->whole,
                        value_size);
}

static void npz_is_a_zip_file_of_arrays(void **state)
{
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (), }",
    };
    unsigned char bytes[FILE_BYTES];
    size_t size = save(*state, TENSOR_FORMAT_NPZ, bytes);
    const unsigned char *end = bytes + size - 22;
    assert_memory_equal(end, "PK\x05\x06", 4);
    assert_int_equal(get(end + 8, 2), 3);
    assert_int_equal(get(end + 10, 2), 3);
    const unsigned char *central = bytes + get(end + 16, 4);
    assert_ptr_equal(central + get(end + 12, 4), end);
    for (uint32_t i = 0; i < 3; i++) {
        check_entry(bytes, central, &list[i], headers[i]);
        central += 46 + get(central + 28, 2);
    }
    assert_ptr_equal(central, end);
}

static void safetensors_has_a_header_and_all_bytes(void **state)
{
    unsigned char bytes[FILE_BYTES];
    size_t size = save(*state, TENSOR_FORMAT_SAFETENSORS, bytes);
    uint32_t header_size = get(bytes, 4);
    assert_int_equal(get(bytes + 4, 4), 0);
    assert_int_equal(header_size % 8, 0);
    json_t *header = json_loadb((const char *)bytes + 8, header_size, 0, NULL);
    json_t *expected = json_loads(
        "{\"__metadata__\": {\"format\": \"pt\", \"model\": \"lenet5\", \"step\": \"938\"},"
        " \"fc1.weight\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]},"
        " \"fc1.bias\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [24, 28]},"
        " \"bn1.num_batches_tracked\":"
        " {\"dtype\": \"I64\", \"shape\": [], \"data_offsets\": [28, 36]}}",
        0, NULL);
    assert_non_null(header);
    assert_int_equal(json_object_del(json_object_get(header, "__metadata__"), "ringside"), 0);
    assert_true(json_equal(header, expected));
    assert_int_equal(size, 8 + header_size + 36);
    assert_memory_equal(bytes + 8 + header_size, matrix, 24);
    assert_memory_equal(bytes + 8 + header_size + 24, vector, 4);
    assert_memory_equal(bytes + 8 + header_size + 28, &list[2].whole, 8);
    json_decref(expected);
    json_decref(header);
}

static void the_same_tensors_make_the_same_file(void **state)
{
    for (int format = 0; format < 2; format++) {
        unsigned char first[FILE_BYTES] = {0}, second[FILE_BYTES] = {0};
        size_t size = save(*state, (enum tensor_format)format, first);
        assert_int_equal(save(*state, (enum tensor_format)format, second), size);
        assert_memory_equal(first, second, size);
    }
}

static void what_cannot_be_written_in_full_leaves_what_was_there(void **state)
{
    unsigned char bytes[FILE_BYTES];
    char path[512], draft[512];
    struct stat facts;
    snprintf(path, sizeof(path), "%s/model", (const char *)*state);
    snprintf(draft, sizeof(draft), "%s/model.part", (const char *)*state);
    for (int format = 0; format < 2; format++) {
        size_t size = save(*state, (enum tensor_format)format, bytes);
        const struct tensor_file file = {&tensors, (enum tensor_format)format, "lenet5", 939};
        captured_log_begin();
        file_limit_begin(size - 1);
        enum status status = tensor_file_save(&file, path);
        file_limit_end();
        assert_non_null(strstr(captured_log_end(), path));
        assert_int_equal(status, STATUS_IO);
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_size, size);
        assert_int_equal(stat(draft, &facts), -1);
    }
}

static void npz_ends_at_4_gib(void **state)
{
    // Nobody reads the floats before the size is looked at.
    static struct tensor huge[] = {{.name = "a", .rank = 1, .floats = matrix},
                                   {.name = "b", .rank = 1, .floats = matrix}};
    const struct tensors both = {.list = huge, .count = 2};
    const struct tensor_file file = {&both, TENSOR_FORMAT_NPZ, "vgg16", 1};
    char path[512];
    huge[0].count = huge[1].count = UINT64_C(1) << 29;
    snprintf(path, sizeof(path), "%s/model", (const char *)*state);
    captured_log_begin();
    enum status status = tensor_file_save(&file, path);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "--format safetensors"));
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(npz_is_a_zip_file_of_arrays),
        IN_FOLDER(safetensors_has_a_header_and_all_bytes),
        IN_FOLDER(the_same_tensors_make_the_same_file),
        IN_FOLDER(what_cannot_be_written_in_full_leaves_what_was_there),
        IN_FOLDER(npz_ends_at_4_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
