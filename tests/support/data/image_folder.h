/* Folders of images for tests, in a temporary folder that is gone with them. */
#ifndef TESTS_SUPPORT_DATA_IMAGE_FOLDER_H
#define TESTS_SUPPORT_DATA_IMAGE_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/* Makes folder/NAME of these bytes, with the folders that NAME has before its slashes. */
void image_folder_put(const char *folder, const char *name, const void *bytes, size_t size);

/* Makes folder/NAME a JPEG of 40 x 30 pixels, all of the grey `value`. */
void image_folder_put_grey(const char *folder, const char *name, uint8_t value);

/* Makes a file look as if it had been written an hour ago, so that findings about it are kept. */
void image_folder_age(const char *folder, const char *name);

#endif
