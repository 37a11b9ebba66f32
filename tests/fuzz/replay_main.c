/* Runs every file of a corpus through a fuzz target, under any compiler.
 *
 * usage: fuzz_NAME_replay FOLDER ...
 *
 * What a fuzzer found once stays found: its input is added to the corpus and replayed with every
 * build. Each input is followed by its own prefixes (of every length up to 4 KiB, then of some),
 * because what is cut short is what readers most often get wrong. An empty corpus is an error, as
 * it would test nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define PATH_BYTES      4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

// A copy of its own for each input, so that a sanitizer sees a read beyond its end.
static bool run_prefix(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        fprintf(stderr, "out of memory for an input of %zu bytes\n", size);
        return false;
    }
    memcpy(copy, bytes, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return true;
}

static bool run_input(const uint8_t *bytes, size_t size)
{
    size_t step = size / 4096 + 1;
    for (size_t length = 0; length < size; length += step) {
        if (!run_prefix(bytes, length)) {
            return false;
        }
    }
    return run_prefix(bytes, size);
}

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(INPUT_BYTES_MAX);
    bool is_good = false;
    if (file == NULL || bytes == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerrordesc_np(errno));
    } else {
        size_t size = fread(bytes, 1, INPUT_BYTES_MAX, file);
        if (ferror(file) || size == INPUT_BYTES_MAX) {
            fprintf(stderr, "%s: cannot be read, or is 16 MiB or longer\n", path);
        } else {
            is_good = run_input(bytes, size);
        }
    }
    free(bytes);
    if (file != NULL) {
        fclose(file);
    }
    return is_good;
}

// Adds the number of inputs that ran to *file_count.
static bool run_folder(const char *folder, uint32_t *file_count)
{
    struct dirent **entries;
    int entry_count = scandir(folder, &entries, NULL, alphasort);
    if (entry_count < 0) {
        fprintf(stderr, "%s: %s\n", folder, strerrordesc_np(errno));
        return false;
    }
    bool is_good = true;
    for (int i = 0; i < entry_count; i++) {
        char path[PATH_BYTES];
        int length = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (is_good && entries[i]->d_name[0] != '.') {
            is_good = length > 0 && (size_t)length < sizeof(path) && run_file(path);
            *file_count += 1;
        }
        free(entries[i]);
    }
    free(entries);
    return is_good;
}

int main(int argc, char **argv)
{
    uint32_t file_count = 0;
    for (int i = 1; i < argc; i++) {
        if (!run_folder(argv[i], &file_count)) {
            return EXIT_FAILURE;
        }
    }
    if (file_count == 0) {
        fprintf(stderr, "no inputs: give the folder of a corpus\n");
        return EXIT_FAILURE;
    }
    printf("%u inputs and their prefixes\n", file_count);
    return EXIT_SUCCESS;
}
