/* The table of networks. */
#include "worker/model/models.h"

#include <string.h>

static const struct network *const networks[] = {
#define X(identifier, name, summary) &model_##identifier,
    MODEL_MAP(X)
#undef X
};

const struct network *models_find(const char *name)
{
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        if (strcmp(networks[i]->name, name) == 0) {
            return networks[i];
        }
    }
    return NULL;
}
