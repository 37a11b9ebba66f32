/* Reads a list of augmentations. */
#include "common/plan/augmentation.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN \
    "flip, crop:P, rotate:D, colour:S, cutout:N, resized-crop:A..B, mixup:A, cifar, imagenet"

struct row {
    const char *name, *letter; // letter: of its number; NULL: it takes none
    bool is_whole;             // the number
    double least, most;
};

static const struct row rows[AUGMENT_KIND_COUNT] = {
#define X(kind, name, letter, is_whole, least, most) {name, letter, is_whole, least, most},
    AUGMENT_MAP(X)
#undef X
};

struct preset {
    const char *name, *text;
};

static const struct preset presets[] = {
    {"cifar", "flip,crop:4"},
    {"imagenet", "resized-crop:0.08..1,flip,colour:0.4"},
};

/* A part of a text between commas. */
struct word {
    const char *text;
    size_t size;
};

static struct word next_word(const char **rest)
{
    struct word word = {*rest, strcspn(*rest, ",")};
    *rest += word.size + ((*rest)[word.size] == ',');
    return word;
}

static bool is_word(struct word word, const char *text)
{
    return strlen(text) == word.size && memcmp(word.text, text, word.size) == 0;
}

static const struct row *find_row(struct word name)
{
    for (size_t i = 0; i < AUGMENT_KIND_COUNT; i++) {
        if (is_word(name, rows[i].name)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* A number that is the whole word. */
static bool read_amount(struct word word, double *ret_amount)
{
    char text[32], *end;
    if (word.size == 0 || word.size >= sizeof(text) ||
        strspn(word.text, "0123456789.") < word.size) {
        return false;
    }
    memcpy(text, word.text, word.size);
    text[word.size] = '\0';
    double amount = strtod(text, &end);
    if (*end != '\0') {
        return false;
    }
    *ret_amount = amount;
    return true;
}

/* Two numbers with two points between them, in their order. */
static bool read_range(struct word word, double *ret_least, double *ret_most)
{
    const char *points = memmem(word.text, word.size, "..", 2);
    if (points == NULL) {
        return false;
    }
    size_t first = (size_t)(points - word.text);
    struct word second = {points + 2, word.size - first - 2};
    return read_amount((struct word){word.text, first}, ret_least) &&
           read_amount(second, ret_most) && *ret_least <= *ret_most;
}

static bool is_range(const struct row *row)
{
    return row == &rows[AUGMENT_RESIZED_CROP];
}

static enum status refuse_amount(const struct row *row, char *ret_why, size_t why_size)
{
    if (row->letter == NULL) {
        snprintf(ret_why, why_size, "%s takes no number", row->name);
    } else if (is_range(row)) {
        snprintf(ret_why, why_size, "%s needs two numbers from %g to %g, in order: %s:%s",
                 row->name, row->least, row->most, row->name, row->letter);
    } else {
        snprintf(ret_why, why_size, "%s needs a number from %g to %g: %s:%s", row->name, row->least,
                 row->most, row->name, row->letter);
    }
    return STATUS_INVALID;
}

static bool is_fit(const struct row *row, double amount)
{
    return amount >= row->least && amount <= row->most &&
           (!row->is_whole || amount == (double)(uint32_t)amount);
}

static enum status read_word(struct word word, struct augmentation *augmentation, char *ret_why,
                             size_t why_size)
{
    const char *colon = memchr(word.text, ':', word.size);
    size_t name_size = colon != NULL ? (size_t)(colon - word.text) : word.size;
    const struct row *row = find_row((struct word){word.text, name_size});
    if (row == NULL) {
        snprintf(ret_why, why_size, "there is no '%.*s'; there are " KNOWN, (int)word.size,
                 word.text);
        return STATUS_INVALID;
    }
    double *amount = &augmentation->amounts[row - rows], given = 1, most = row->most;
    if (*amount != 0) {
        snprintf(ret_why, why_size, "%s is there twice", row->name);
        return STATUS_INVALID;
    }
    bool is_read = colon == NULL;
    if (colon != NULL) {
        struct word number = {colon + 1, word.size - name_size - 1};
        is_read = is_range(row) ? read_range(number, &given, &most) : read_amount(number, &given);
    }
    if ((colon != NULL) != (row->letter != NULL) || !is_read || !is_fit(row, given) ||
        !is_fit(row, most)) {
        return refuse_amount(row, ret_why, why_size);
    }
    *amount = given;
    if (is_range(row)) {
        augmentation->amounts[AUGMENT_CROP_MOST] = most;
    }
    return STATUS_OK;
}

static const char *find_preset(struct word word)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (is_word(word, presets[i].name)) {
            return presets[i].text;
        }
    }
    return NULL;
}

/* A word, or those of the preset that it names. */
static enum status read_part(struct word word, struct augmentation *augmentation, char *ret_why,
                             size_t why_size)
{
    const char *preset = find_preset(word);
    if (preset == NULL) {
        return read_word(word, augmentation, ret_why, why_size);
    }
    enum status status = STATUS_OK;
    while (status == STATUS_OK && *preset != '\0') {
        status = read_word(next_word(&preset), augmentation, ret_why, why_size);
    }
    return status;
}

enum status augmentation_parse(const char *text, struct augmentation *ret_augmentation,
                               char *ret_why, size_t why_size)
{
    struct augmentation augmentation = {{0}};
    size_t size = strlen(text);
    if (strcmp(text, "none") == 0) {
        *ret_augmentation = augmentation;
        return STATUS_OK;
    }
    if (size > 0 && text[size - 1] == ',') {
        snprintf(ret_why, why_size, "it ends with a comma");
        return STATUS_INVALID;
    }
    do {
        enum status status = read_part(next_word(&text), &augmentation, ret_why, why_size);
        if (status != STATUS_OK) {
            return status;
        }
    } while (*text != '\0');
    *ret_augmentation = augmentation;
    return STATUS_OK;
}

bool augmentation_is_on(const struct augmentation *augmentation)
{
    for (size_t i = 0; i < AUGMENT_KIND_COUNT; i++) {
        if (augmentation->amounts[i] != 0) {
            return true;
        }
    }
    return false;
}
