/* Reads the header, a Python dict with three keys, by descent. */
#include "worker/data/npz/npy.h"

#include "common/base/printable.h"

#include <stdio.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define TEXT_AT_1   10 // of version 1, whose length has 16 bits
#define TEXT_AT_2   12

/* What is left of a text. */
struct scan {
    const char *at, *end;
};

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n')) {
        scan->at++;
    }
}

/* Takes a character, behind blanks. False: there is another one. */
static bool take(struct scan *scan, char wanted)
{
    skip_blanks(scan);
    bool is_there = scan->at < scan->end && *scan->at == wanted;
    scan->at += is_there;
    return is_there;
}

static bool take_word(struct scan *scan, const char *word)
{
    size_t size = strlen(word);
    skip_blanks(scan);
    bool is_there = (size_t)(scan->end - scan->at) >= size && memcmp(scan->at, word, size) == 0;
    scan->at += is_there ? size : 0;
    return is_there;
}

/* 'text', without what would need an escape. */
static bool take_text(struct scan *scan, char *ret_text, size_t text_size)
{
    size_t size = 0;
    if (!take(scan, '\'')) {
        return false;
    }
    while (scan->at < scan->end && *scan->at != '\'' && *scan->at != '\\' && size + 1 < text_size) {
        ret_text[size++] = *scan->at++;
    }
    ret_text[size] = '\0';
    return take(scan, '\'');
}

static bool take_number(struct scan *scan, uint64_t *ret_number)
{
    uint64_t number = 0;
    skip_blanks(scan);
    const char *begin = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*scan->at - '0'), &number)) {
            return false;
        }
        scan->at++;
    }
    *ret_number = number;
    return scan->at > begin;
}

/* (60000, 28, 28), (60000,) or () */
static bool take_shape(struct scan *scan, struct npy *npy)
{
    npy->dim_count = 0;
    if (!take(scan, '(')) {
        return false;
    }
    while (!take(scan, ')')) {
        if (npy->dim_count == NPY_DIMS_MAX || !take_number(scan, &npy->dims[npy->dim_count++])) {
            return false;
        }
        if (!take(scan, ',')) {
            return npy->dim_count > 1 && take(scan, ')');
        }
    }
    return true;
}

/* Which of the three keys a dict has begun with. */
enum key { KEY_TYPE, KEY_ORDER, KEY_SHAPE, KEY_COUNT };

static bool take_value(struct scan *scan, enum key key, struct npy *npy)
{
    switch (key) {
    case KEY_TYPE:
        return take_text(scan, npy->type, sizeof(npy->type));
    case KEY_ORDER:
        npy->is_fortran = take_word(scan, "True");
        return npy->is_fortran || take_word(scan, "False");
    case KEY_SHAPE:
        return take_shape(scan, npy);
    case KEY_COUNT:
        break;
    }
    return false;
}

static bool take_key(struct scan *scan, enum key *ret_key)
{
    static const char *const names[KEY_COUNT] = {"descr", "fortran_order", "shape"};
    char name[16];
    if (!take_text(scan, name, sizeof(name))) {
        return false;
    }
    for (*ret_key = 0; *ret_key < KEY_COUNT; ++*ret_key) {
        if (strcmp(name, names[*ret_key]) == 0) {
            return take(scan, ':');
        }
    }
    return false;
}

static bool take_dict(struct scan *scan, struct npy *npy)
{
    bool has[KEY_COUNT] = {false};
    if (!take(scan, '{')) {
        return false;
    }
    while (!take(scan, '}')) {
        enum key key;
        if (!take_key(scan, &key) || has[key] || !take_value(scan, key, npy)) {
            return false;
        }
        has[key] = true;
        if (!take(scan, ',')) {
            if (!take(scan, '}')) {
                return false;
            }
            break;
        }
    }
    skip_blanks(scan);
    return has[KEY_TYPE] && has[KEY_ORDER] && has[KEY_SHAPE] && scan->at == scan->end;
}

/* "<f4": order, kind, bytes. */
static bool split_type(struct npy *npy)
{
    struct scan scan = {npy->type + 2, npy->type + strlen(npy->type)};
    uint64_t bytes;
    if (strlen(npy->type) < 3 || strchr("|<>=", npy->type[0]) == NULL ||
        strchr("biufc", npy->type[1]) == NULL || !take_number(&scan, &bytes) ||
        scan.at != scan.end || bytes == 0 || bytes > 32) {
        return false;
    }
    npy->order = npy->type[0];
    npy->kind = npy->type[1];
    npy->item_bytes = (uint32_t)bytes;
    return true;
}

/* Whether the items of this shape are what is left of the array. */
static bool fills(struct npy *npy, uint64_t size)
{
    uint64_t bytes;
    npy->count = 1;
    for (uint32_t i = 0; i < npy->dim_count; i++) {
        if (__builtin_mul_overflow(npy->count, npy->dims[i], &npy->count)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(npy->count, npy->item_bytes, &bytes) && bytes == size - npy->at;
}

/* Where the text of the header lies. */
static bool find_text(const uint8_t *bytes, uint64_t size, struct scan *ret_scan)
{
    if (size < TEXT_AT_2 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0 || bytes[6] < 1 ||
        bytes[6] > 3) {
        return false;
    }
    uint64_t at = bytes[6] == 1 ? TEXT_AT_1 : TEXT_AT_2;
    uint64_t text_bytes = bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        text_bytes |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    }
    if (text_bytes > size - at) {
        return false;
    }
    *ret_scan = (struct scan){(const char *)bytes + at, (const char *)bytes + at + text_bytes};
    return true;
}

enum status npy_parse(const uint8_t *bytes, uint64_t size, struct npy *ret_npy, char *ret_why,
                      size_t why_size)
{
    struct npy npy = {.dim_count = 0};
    struct scan scan;
    if (!find_text(bytes, size, &scan)) {
        snprintf(ret_why, why_size, "it does not begin as NumPy's arrays do, of version 1 to 3");
        return STATUS_MALFORMED;
    }
    npy.at = (uint64_t)((const uint8_t *)scan.end - bytes);
    if (!take_dict(&scan, &npy)) {
        snprintf(ret_why, why_size, "its header is damaged, or it is no array of plain numbers");
        return STATUS_UNSUPPORTED;
    }
    if (!split_type(&npy)) {
        printable_make(npy.type, strlen(npy.type));
        snprintf(ret_why, why_size, "its type is %s: only numbers can be read", npy.type);
        return STATUS_UNSUPPORTED;
    }
    if (!fills(&npy, size)) {
        char shape[128];
        npy_shape_text(&npy, shape, sizeof(shape));
        snprintf(ret_why, why_size, "its header claims %s of %s, but %llu bytes follow it", shape,
                 npy.type, (unsigned long long)(size - npy.at));
        return STATUS_MALFORMED;
    }
    *ret_npy = npy;
    return STATUS_OK;
}

void npy_shape_text(const struct npy *npy, char *ret_text, size_t text_size)
{
    size_t used = (size_t)snprintf(ret_text, text_size, "(");
    for (uint32_t i = 0; i < npy->dim_count && used < text_size; i++) {
        used += (size_t)snprintf(ret_text + used, text_size - used, "%s%llu", i > 0 ? ", " : "",
                                 (unsigned long long)npy->dims[i]);
    }
    if (used < text_size) {
        snprintf(ret_text + used, text_size - used, "%s)", npy->dim_count == 1 ? "," : "");
    }
}
