/* Reads the list in job.json. */
#include "deploy/report/run_classes.h"

#include "common/base/printable.h"

#include <string.h>

#define NAMES_MAX  10 // that are shown
#define NAME_BYTES 32
#define DATA_BYTES 256 // of a dataset that is shown

static const json_t *classes_of(const struct run_folder *run)
{
    const json_t *classes = json_object_get(run->job, "classes");
    return json_array_size(classes) > 0 ? classes : NULL;
}

/* Copies what fits of a text, up to the end of a character, without what a terminal would obey. */
static void shorten(const char *text, char *ret_text, size_t size)
{
    size_t length = strlen(text), end = length;
    if (length >= size) {
        end = size - sizeof("…");
        while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) {
            end--;
        }
    }
    snprintf(ret_text, size, "%.*s%s", (int)end, text, end < length ? "…" : "");
    printable_make_utf8(ret_text);
}

void run_classes_describe(const struct run_folder *run, char ret_text[RUN_CLASSES_BYTES])
{
    const json_t *classes = classes_of(run);
    const char *dataset = json_string_value(json_object_get(run->summary, "dataset"));
    size_t count = json_array_size(classes);
    char data[DATA_BYTES], name[NAME_BYTES];
    ret_text[0] = '\0';
    if (classes == NULL) {
        return;
    }
    shorten(dataset != NULL ? dataset : "data", data, sizeof(data));
    int used = snprintf(ret_text, RUN_CLASSES_BYTES, "%s: %zu classes: ", data, count);
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        const char *text = json_string_value(json_array_get(classes, i));
        shorten(text != NULL ? text : "?", name, sizeof(name));
        used += snprintf(ret_text + used, RUN_CLASSES_BYTES - (size_t)used, "%s%s",
                         i > 0 ? ", " : "", name);
    }
    if (count > NAMES_MAX) {
        snprintf(ret_text + used, RUN_CLASSES_BYTES - (size_t)used, " and %zu more",
                 count - NAMES_MAX);
    }
}

bool run_classes_are_same(const struct run_folder *a, const struct run_folder *b)
{
    const json_t *of_a = classes_of(a), *of_b = classes_of(b);
    if (of_a == NULL || of_b == NULL) {
        return of_a == of_b;
    }
    return json_equal(of_a, of_b) && json_equal(json_object_get(a->summary, "dataset"),
                                                json_object_get(b->summary, "dataset"));
}

void run_classes_print(FILE *stream, const struct run_folder *runs, size_t count)
{
    char text[RUN_CLASSES_BYTES];
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (!run_classes_are_same(&runs[first], &runs[i])) {
            first++;
        }
        run_classes_describe(&runs[i], text);
        if (first == i && text[0] != '\0') {
            fprintf(stream, "%s\n", text);
        }
    }
}
