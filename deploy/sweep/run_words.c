/* Has a row of words for each option that has better ones than its name. */
#include "deploy/sweep/run_words.h"

#include "deploy/sweep/rule_words.h"

#include <stdio.h>
#include <string.h>

/* A value of an option, or all of them (NULL); `words` has one %s for the rest of the value. */
struct phrase {
    const char *name;
    const char *value; // whole; with a colon at its end: what the value begins with
    const char *words;
};

// The first row that matches counts.
static const struct phrase phrases[] = {
    {"mode", "ps-ssp:", "ps-ssp with slack %s"},
    {"mode", NULL, "%s"},
    {"model", NULL, "%s"},
    {"optimizer", NULL, "%s"},
    {"workers", "1", "%s worker"},
    {"workers", NULL, "%s workers"},
    {"servers", "1", "%s server"},
    {"servers", NULL, "%s servers"},
    {"processes", "0", "a process for each worker"},
    {"processes", "1", "%s process"},
    {"processes", NULL, "%s processes"},
    {"server-optimizer", "job", "updates by servers"},
    {"server-optimizer", "none", "servers that hand back the mean"},
    {"server-threads", "1", "%s thread of each server"},
    {"server-threads", NULL, "%s threads of each server"},
    {"epochs", "1", "%s epoch"},
    {"epochs", NULL, "%s epochs"},
    {"steps", "0", "whole epochs"},
    {"steps", "1", "%s step"},
    {"steps", NULL, "%s steps"},
    {"limit-train", "0", "all training images"},
    {"limit-train", NULL, "%s training images"},
    {"limit-test", "0", "all test images"},
    {"limit-test", NULL, "%s test images"},
    {"image-size", "0", "images as they are"},
    {"image-size", NULL, "images of %s pixels"},
    {"eval-size", "0", "test images as training images"},
    {"eval-size", NULL, "test images of %s pixels"},
    {"classes", "0", "as many outputs as classes"},
    {"classes", NULL, "%s outputs"},
    {"augment", "none", "images unchanged"},
    {"augment", NULL, "images changed by %s"},
    {"normalize", "usual", "pixels as usual"},
    {"normalize", "dataset", "pixels normalised by their own figures"},
    {"normalize", "none", "pixels from 0 to 1"},
    {"normalize", NULL, "pixels normalised by %s"},
    {"shard", "global", "samples dealt anew"},
    {"shard", "local", "samples kept by their workers"},
    {"eval", "epoch", "evaluated every epoch"},
    {"eval", "end", "evaluated at the end"},
    {"eval", "none", "not evaluated"},
    {"eval-every", "0", "evaluated as usual"},
    {"eval-every", NULL, "evaluated every %s steps"},
    {"target-accuracy", "0", "no target"},
    {"target-accuracy", NULL, "target accuracy %s"},
    {"batch", NULL, "batch %s per worker"},
    {"global-batch", NULL, "global batch %s"},
    {"lr", NULL, "rate %s"},
    {"lr-scale", "none", "rate as given"},
    {"lr-scale", "linear", "rate times workers"},
    {"lr-schedule", NULL, "%s schedule"},
    {"momentum", NULL, "momentum %s"},
    {"seed", NULL, "seed %s"},
    {"order", "free", "updates race"},
    {"order", "seeded:round-robin", "workers take turns"},
    {"order", "seeded:constant:", "staleness %s"},
    {"order", "seeded:uniform:", "staleness %s"},
    {"order", "seeded:geometric:", "geometric staleness with %s"},
    {"delay-model", "server", "staleness of the server"},
    {"delay-model", "per-worker", "staleness of each worker"},
    {"remedy", "none", "no remedy"},
    {"remedy", "staleness-lr", "rate divided by staleness"},
    {"remedy", "dc", "delay compensation"},
    {"remedy", "dc-adaptive", "adaptive delay compensation"},
    {"remedy", "momentum", "momentum lowered for staleness"},
    {"compress", "none", "gradients as they are"},
    {"compress", NULL, "gradients as %s"},
    {"backup", "0", "no backup worker"},
    {"backup", "1", "%s backup worker"},
    {"backup", NULL, "%s backup workers"},
    {"sync-every", "1", "an exchange every step"},
    {"sync-every", NULL, "an exchange every %s steps"},
    {"gradients-per-update", "1", "%s gradient per update"},
    {"gradients-per-update", NULL, "%s gradients per update"},
    {"transport", "auto", "transport as found"},
    {"transport", NULL, "over %s"},
    {"all-reduce", NULL, "all-reduce %s"},
    {"straggler", "none", "no straggler"},
    {"switch", "none", "one mode throughout"},
    {"switch", NULL, "changing the mode (%s)"},
    {"fault", "none", "no faults"},
    {"fault", NULL, "faults (%s)"},
    {"warmup-epochs", "0", "no warm-up"},
    {"warmup-epochs", NULL, "warm-up of %s epochs"},
    {"precision", NULL, "computed in %s"},
    {"conv", NULL, "convolutions %s"},
    {"security", NULL, "security %s"},
    {"sync-bn", "no", "batch norm of each worker"},
    {"sync-bn", "yes", "batch norm of all workers"},
    {"device", NULL, "device %s"},
    {"bucket-mb", NULL, "buckets of %s MiB"},
    {"connections", "1", "%s connection"},
    {"connections", NULL, "%s connections"},
    {"cache", "none", "images decoded each time"},
    {"cache", "ram", "decoded images kept in memory"},
    {"cache", "disk", "decoded images kept on disk"},
    {"cache-mb", "0", "half of what is free for decoded images"},
    {"cache-mb", NULL, "%s MiB for decoded images"},
    {"loader-threads", "auto", "threads for images as needed"},
    {"loader-threads", "1", "%s thread for images"},
    {"loader-threads", NULL, "%s threads for images"},
    {"threads", "1", "%s thread"},
    {"threads", NULL, "%s threads"},
};

/* The rest of the value that the words of a row speak of; NULL if the row does not match. */
static const char *match(const struct phrase *phrase, const char *name, const char *value)
{
    if (strcmp(phrase->name, name) != 0) {
        return NULL;
    }
    size_t size = phrase->value != NULL ? strlen(phrase->value) : 0;
    if (size > 0 && phrase->value[size - 1] == ':') {
        return strncmp(phrase->value, value, size) == 0 ? value + size : NULL;
    }
    return size == 0 || strcmp(phrase->value, value) == 0 ? value : NULL;
}

void run_words_cut(char *text, size_t size)
{
    if (strlen(text) + 1 < size) {
        return;
    }
    size_t end = size - sizeof("...");
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) {
        end--;
    }
    memcpy(text + end, "...", sizeof("..."));
}

/* As snprintf, but a text that does not fit shows that it was cut. */
static void write_words(const char *before, const char *value, const char *after,
                        char ret_words[RUN_WORDS_BYTES])
{
    char words[2 * RUN_WORDS_BYTES];
    snprintf(words, sizeof(words), "%s%.300s%s", before, value, after);
    run_words_cut(words, RUN_WORDS_BYTES);
    memcpy(ret_words, words, RUN_WORDS_BYTES);
}

void run_words_of_option(const char *name, const char *value, char ret_words[RUN_WORDS_BYTES])
{
    char before[64];
    if (rule_words_write(name, value, ret_words)) {
        return;
    }
    if (strcmp(name, "data") == 0) { // without its folder
        snprintf(before, sizeof(before), "%.*s", (int)strcspn(value, ":"), value);
        write_words(before, "", "", ret_words);
        return;
    }
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
        const char *rest = match(&phrases[i], name, value);
        const char *place = strstr(phrases[i].words, "%s");
        if (rest != NULL && place == NULL) {
            write_words(phrases[i].words, "", "", ret_words);
            return;
        }
        if (rest != NULL) {
            snprintf(before, sizeof(before), "%.*s", (int)(place - phrases[i].words),
                     phrases[i].words);
            write_words(before, rest, place + 2, ret_words);
            return;
        }
    }
    snprintf(before, sizeof(before), "%.60s ", name);
    for (char *at = before; *at != '\0'; at++) {
        if (*at == '-') {
            *at = ' ';
        }
    }
    write_words(before, value, "", ret_words);
}

void run_words_append(char list[RUN_WORDS_BYTES], const char *more)
{
    char joined[2 * RUN_WORDS_BYTES + 2];
    snprintf(joined, sizeof(joined), "%s%s%s", list, list[0] != '\0' && more[0] != '\0' ? ", " : "",
             more);
    run_words_cut(joined, RUN_WORDS_BYTES);
    memcpy(list, joined, RUN_WORDS_BYTES);
}

void run_words_of_label(const char *label, const char *but, char ret_words[RUN_WORDS_BYTES])
{
    char name[64], value[RUN_WORDS_BYTES], words[RUN_WORDS_BYTES];
    ret_words[0] = '\0';
    while (*label != '\0') {
        size_t size = strcspn(label, " "), name_size = strcspn(label, "= ");
        const char *text = name_size < size ? label + name_size + 1 : label;
        snprintf(name, sizeof(name), "%.*s", (int)name_size, label);
        snprintf(value, sizeof(value), "%.*s", (int)(label + size - text), text);
        run_words_of_option(name, value, words);
        if (strcmp(name, "mode") == 0) {
            run_words_append(words, ret_words);
            memcpy(ret_words, words, RUN_WORDS_BYTES);
        } else if (but == NULL || strcmp(name, but) != 0) {
            run_words_append(ret_words, words);
        }
        label += size + (label[size] == ' ');
    }
}
