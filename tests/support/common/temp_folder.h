/* A folder for the files of one test, gone with it. */
#ifndef TESTS_SUPPORT_COMMON_TEMP_FOLDER_H
#define TESTS_SUPPORT_COMMON_TEMP_FOLDER_H

#include <stddef.h>

/* Makes a new folder; returns its path. The test fails if there is none to be had. The caller owns
 * it and gives it to temp_folder_destroy. */
char *temp_folder_create(void);

/* Deletes the folder with all that is in it. */
void temp_folder_destroy(char *folder);

/* Writes a file below the folder, making the folder that `name` may have before its slash. */
void temp_folder_write(const char *folder, const char *name, const void *bytes, size_t size);

#endif
