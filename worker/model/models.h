/* The networks that can be trained, each in a file of its own: a row of MODEL_MAP each. */
#ifndef WORKER_MODEL_MODELS_H
#define WORKER_MODEL_MODELS_H

#include "common/options/names.h"
#include "worker/model/network.h"

#define X(identifier, name, summary) extern const struct network model_##identifier;
MODEL_MAP(X)
#undef X

/* NULL if there is none of that name. */
const struct network *models_find(const char *name);

#endif
