/* Predictions by name, so that each is made once, whoever asks for it and from which thread. */
#ifndef DEPLOY_PREDICT_ADVISE_MEMO_H
#define DEPLOY_PREDICT_ADVISE_MEMO_H

#include "common/base/status.h"
#include "deploy/predict/prediction.h"

#define MEMO_KEY_BYTES 256

struct memo;

/* NULL: no memory. */
struct memo *memo_create(void);
void memo_destroy(struct memo *memo); // NULL is fine

/* The prediction of a key: by a call of `make`, or the one that such a call has made before. If
 * another thread is making it, waits for that. Where `make` fails, its status is that of all calls
 * with the key. */
enum status memo_predict(struct memo *memo, const char *key,
                         enum status (*make)(const void *context, struct prediction *ret_made),
                         const void *context, struct prediction *ret_made);

#endif
