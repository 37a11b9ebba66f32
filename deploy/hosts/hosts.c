/* Reads lists of hosts. */
#include "deploy/hosts/hosts.h"

#include "common/base/number.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024

static const char blanks[] = " \t\r\n";

/* Names go into ssh's command line, where a leading dash would begin an option. */
static bool is_name(const char *text, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@";
    return size > 0 && size < HOST_NAME_BYTES && text[0] != '-' && strspn(text, allowed) >= size;
}

static enum status add(struct hosts *hosts, const char *name, size_t name_size, uint32_t slots,
                       char ret_error[OPTION_ERROR_BYTES])
{
    struct host host = {.slots = slots};
    if (!is_name(name, name_size)) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "'%.*s' is not the name of a host",
                 (int)(name_size < 60 ? name_size : 60), name);
        return STATUS_INVALID;
    }
    memcpy(host.name, name, name_size);
    if (hosts_find(hosts, host.name) < hosts->count) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "the host %s is listed twice; list it once, with all its slots", host.name);
        return STATUS_INVALID;
    }
    if (hosts->count == HOSTS_MAX) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "there are more than %d hosts", HOSTS_MAX);
        return STATUS_INVALID;
    }
    hosts->list[hosts->count++] = host;
    return STATUS_OK;
}

static enum status read_slots(const char *text, size_t size, uint32_t *ret_slots,
                              char ret_error[OPTION_ERROR_BYTES])
{
    uint64_t slots;
    if (!number_whole(text, size, HOSTS_SLOTS_MAX, &slots) || slots < 1) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "'%.*s' is not a number of slots from 1 to %d",
                 (int)(size < 60 ? size : 60), text, HOSTS_SLOTS_MAX);
        return STATUS_INVALID;
    }
    *ret_slots = (uint32_t)slots;
    return STATUS_OK;
}

/* "host" or "host:2". */
static enum status add_item(struct hosts *hosts, const char *item, size_t size,
                            char ret_error[OPTION_ERROR_BYTES])
{
    const char *colon = memchr(item, ':', size);
    size_t name_size = colon != NULL ? (size_t)(colon - item) : size;
    uint32_t slots = 1;
    if (colon != NULL) {
        enum status status = read_slots(colon + 1, size - name_size - 1, &slots, ret_error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return add(hosts, item, name_size, slots, ret_error);
}

enum status hosts_parse(struct hosts *hosts, const char *text, char ret_error[OPTION_ERROR_BYTES])
{
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ",");
        enum status status = add_item(hosts, at, size, ret_error);
        if (status != STATUS_OK || at[size] == '\0') {
            return status;
        }
        at += size;
    }
}

/* Cuts a line's comment off. */
static enum status add_line(struct hosts *hosts, const char *line,
                            char ret_error[OPTION_ERROR_BYTES])
{
    static const char slots_prefix[] = "slots=";
    const char *name = line + strspn(line, blanks);
    size_t name_size = strcspn(name, blanks);
    if (name_size == 0) {
        return STATUS_OK;
    }
    const char *word = name + name_size + strspn(name + name_size, blanks);
    size_t word_size = strcspn(word, blanks);
    if (word_size == 0) {
        return add_item(hosts, name, name_size, ret_error);
    }
    const char *rest = word + word_size + strspn(word + word_size, blanks);
    size_t prefix = strlen(slots_prefix);
    if (strncmp(word, slots_prefix, prefix) != 0 || *rest != '\0') {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "expected HOST, HOST:SLOTS or HOST slots=SLOTS, found '%.60s'", word);
        return STATUS_INVALID;
    }
    uint32_t slots;
    enum status status = read_slots(word + prefix, word_size - prefix, &slots, ret_error);
    return status == STATUS_OK ? add(hosts, name, name_size, slots, ret_error) : status;
}

static enum status read_lines(struct hosts *hosts, FILE *file, const char *path,
                              char ret_error[OPTION_ERROR_BYTES])
{
    char line[LINE_BYTES], why[OPTION_ERROR_BYTES];
    enum status status = STATUS_OK;
    for (unsigned number = 1; status == STATUS_OK && fgets(line, sizeof(line), file) != NULL;
         number++) {
        if (strchr(line, '\n') == NULL && strlen(line) + 1 == sizeof(line)) {
            snprintf(why, sizeof(why), "the line is too long");
            status = STATUS_INVALID;
        } else {
            line[strcspn(line, "#\r\n")] = '\0';
            status = add_line(hosts, line, why);
        }
        if (status != STATUS_OK) {
            snprintf(ret_error, OPTION_ERROR_BYTES, "%.200s:%u: %.250s", path, number, why);
        }
    }
    return status;
}

enum status hosts_read(struct hosts *hosts, const char *path, char ret_error[OPTION_ERROR_BYTES])
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "cannot read the host file %.300s: %m", path);
        return STATUS_INVALID;
    }
    size_t before = hosts->count;
    enum status status = read_lines(hosts, file, path, ret_error);
    if (status == STATUS_OK && ferror(file) != 0) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "cannot read the host file %.300s: %m", path);
        status = STATUS_INVALID;
    } else if (status == STATUS_OK && hosts->count == before) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "the host file %.300s has no hosts", path);
        status = STATUS_INVALID;
    }
    fclose(file);
    return status;
}

size_t hosts_find(const struct hosts *hosts, const char *name)
{
    size_t at = 0;
    while (at < hosts->count && strcmp(hosts->list[at].name, name) != 0) {
        at++;
    }
    return at;
}

enum status hosts_add_idle(struct hosts *hosts, const char *name,
                           char ret_error[OPTION_ERROR_BYTES])
{
    return hosts_find(hosts, name) < hosts->count ? STATUS_OK
                                                  : add(hosts, name, strlen(name), 0, ret_error);
}

uint32_t hosts_slots(const struct hosts *hosts)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        sum += hosts->list[i].is_away ? 0 : hosts->list[i].slots;
    }
    return sum;
}
