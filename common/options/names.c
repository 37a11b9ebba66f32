/* Expands the maps of models, datasets and optimizers into lists for option rows. */
#include "common/options/names.h"

#include <string.h>

const struct option_choice names_models[] = {
#define X(identifier, name, summary) {name, summary},
    MODEL_MAP(X)
#undef X
        {NULL, NULL},
};

const struct option_choice names_model[] = {
#define X(identifier, name, summary) {name, summary},
    MODEL_MAP(X)
#undef X
        {"external:NAME", "a program of your own, which joins by libringside"},
    {NULL, NULL},
};

const struct option_choice names_datasets[] = {
#define X(identifier, name, path, summary) {name, summary},
    DATASET_MAP(X)
#undef X
        {NULL, NULL},
};

const struct option_choice names_data[] = {
#define X(identifier, name, path, summary) {name path, summary},
    DATASET_MAP(X)
#undef X
        {NULL, NULL},
};

const struct option_choice names_optimizers[] = {
#define X(identifier, kind, name, rate, summary) {name, summary},
    OPTIMIZER_MAP(X)
#undef X
        {"auto", "momentum; of a program of one's own, the one that it says"},
    {NULL, NULL},
};

bool names_is_synthetic(const char *data)
{
    return strcmp(data, "synthetic") == 0 || names_behind_synthetic(data) != data;
}

const char *names_behind_synthetic(const char *data)
{
    size_t size = strlen(NAMES_SYNTHETIC_PREFIX);
    return strncmp(data, NAMES_SYNTHETIC_PREFIX, size) == 0 ? data + size : data;
}
