/* Files of plans.
 *
 *     ringside plan 1
 *     KEY
 *     CHECKSUM          BLAKE2b of key and text, 128 bits in hexadecimal
 *     TEXT
 *
 * A file is written beside its place and moved there, so that workers that start together may write
 * the same one. */
#include "worker/device/cuda/host/plan_cache.h"

#include "common/base/cache_folder.h"
#include "common/base/new_file.h"
#include "worker/device/cuda/host/report.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADING        "ringside plan 1\n"
#define PATH_BYTES     CACHE_FOLDER_BYTES
#define TEXT_BYTES_MAX ((size_t)16 << 20)
#define SUM_BYTES      16
#define SUM_TEXT_BYTES (2 * SUM_BYTES + 1)

/* Of what one file holds. */
static bool add_up(const char *key, const char *text, char ret_sum[SUM_TEXT_BYTES])
{
    crypto_generichash_state state;
    unsigned char sum[SUM_BYTES];
    if (sodium_init() < 0) {
        return false;
    }
    crypto_generichash_init(&state, NULL, 0, sizeof(sum));
    crypto_generichash_update(&state, (const unsigned char *)key, strlen(key) + 1);
    crypto_generichash_update(&state, (const unsigned char *)text, strlen(text));
    crypto_generichash_final(&state, sum, sizeof(sum));
    sodium_bin2hex(ret_sum, SUM_TEXT_BYTES, sum, sizeof(sum));
    return true;
}

/* The file of a key: its name is the key's checksum. */
static bool find_file(const char *folder, const char *key, char ret_path[PATH_BYTES])
{
    char name[SUM_TEXT_BYTES];
    return add_up(key, "", name) &&
           snprintf(ret_path, PATH_BYTES, "%.*s/%s", PATH_BYTES - 64, folder, name) < PATH_BYTES;
}

/* A whole file of text. */
static char *read_file(const char *path)
{
    size_t size;
    char *bytes = cache_folder_read(path, TEXT_BYTES_MAX, &size);
    if (bytes != NULL && memchr(bytes, '\0', size) != NULL) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

/* Whether `at` begins with a line of this text; then *at is behind it. */
static bool take_line(char **at, const char *text)
{
    size_t size = strlen(text);
    if (strncmp(*at, text, size) != 0 || (*at)[size] != '\n') {
        return false;
    }
    *at += size + 1;
    return true;
}

char *plan_cache_read(const char *key)
{
    char folder[PATH_BYTES], path[PATH_BYTES], found[SUM_TEXT_BYTES], sum[SUM_TEXT_BYTES];
    if (!cache_folder_find("plans", folder) || !cache_folder_is_safe(folder) ||
        !find_file(folder, key, path)) {
        return NULL;
    }
    char *bytes = read_file(path), *at = bytes;
    if (bytes == NULL) {
        return NULL;
    }
    bool is_sound = strncmp(at, HEADING, strlen(HEADING)) == 0;
    at += is_sound ? strlen(HEADING) : 0;
    is_sound = is_sound && take_line(&at, key) && strlen(at) > SUM_TEXT_BYTES;
    if (is_sound) {
        memcpy(found, at, SUM_TEXT_BYTES - 1);
        found[SUM_TEXT_BYTES - 1] = '\0';
        is_sound = take_line(&at, found) && add_up(key, at, sum) && strcmp(sum, found) == 0;
    }
    if (!is_sound) {
        report_warn("what was kept in %.300s is broken, and is made anew", path);
        free(bytes);
        return NULL;
    }
    memmove(bytes, at, strlen(at) + 1);
    return bytes;
}

bool plan_cache_keeps(void)
{
    char folder[PATH_BYTES];
    return cache_folder_find("plans", folder) && cache_folder_make(folder);
}

void plan_cache_write(const char *key, const char *text)
{
    char folder[PATH_BYTES], path[PATH_BYTES], draft[PATH_BYTES + 32], sum[SUM_TEXT_BYTES];
    if (!plan_cache_keeps() || !cache_folder_find("plans", folder) ||
        !find_file(folder, key, path) || !add_up(key, text, sum)) {
        return;
    }
    snprintf(draft, sizeof(draft), "%s.%ld.part", path, (long)getpid());
    FILE *file = new_file_stream(draft, true);
    if (file == NULL) {
        return;
    }
    bool is_written = fprintf(file, HEADING "%s\n%s\n%s", key, sum, text) > 0 && ferror(file) == 0;
    if (fclose(file) != 0 || !is_written || rename(draft, path) != 0) {
        unlink(draft);
    }
}
