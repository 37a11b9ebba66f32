/* Writes folders of images. */
#include "tests/support/data/image_folder.h"

#include "tests/support/common/temp_folder.h"
#include "tests/support/data/jpeg_maker.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PATH_BYTES 4096

void image_folder_put(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[PATH_BYTES];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof(path), "%s/%.*s", folder, (int)(slash - name), name);
        mkdir(path, 0700);
    }
    temp_folder_write(folder, name, bytes, size);
}

void image_folder_put_grey(const char *folder, const char *name, uint8_t value)
{
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){value, value, value}, 40, 30, &size);
    image_folder_put(folder, name, jpeg, size);
    free(jpeg);
}

void image_folder_age(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 3600;
    times[1] = times[0];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}
