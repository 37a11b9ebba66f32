/* Temporary folders, below $TMPDIR or /tmp. */
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_BYTES 4096
#define DEPTH_MAX  8 // folders open at once while deleting

char *temp_folder_create(void)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment.
    const char *parent = getenv("TMPDIR");
    char *folder = malloc(PATH_BYTES);
    assert_non_null(folder);
    snprintf(folder, PATH_BYTES, "%s/ringside-test-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int delete_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void temp_folder_destroy(char *folder)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): it is unsafe only where it changes the working folder.
    assert_int_equal(nftw(folder, delete_entry, DEPTH_MAX, FTW_DEPTH | FTW_PHYS), 0);
    free(folder);
}

void temp_folder_write(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    const char *slash = strchr(name, '/');
    if (slash != NULL) {
        snprintf(path, sizeof(path), "%s/%.*s", folder, (int)(slash - name), name);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}
