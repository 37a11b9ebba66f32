/* Under what costs or a network were measured: the field `conditions` of their files. A prediction
 * is of the same model, transport and hosts, or of others than were measured. */
#ifndef DEPLOY_PREDICT_BASIS_CONDITIONS_H
#define DEPLOY_PREDICT_BASIS_CONDITIONS_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "deploy/predict/basis/fields.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

#define CONDITIONS_TEXT_BYTES 256
#define CONDITIONS_NO_KEYS    "none" // as security

/* "": the file does not say. */
struct conditions {
    char model[CONDITIONS_TEXT_BYTES];     // of costs
    char transport[CONDITIONS_TEXT_BYTES]; // of values: "tcp", "ipc", "shm"
    char security[CONDITIONS_TEXT_BYTES];  // of tcp: as --security has it, "none" without keys
    char hosts[CONDITIONS_TEXT_BYTES];     // "node1, node2"
};

/* Whether a file may have it: one of a job's, but auto. */
bool conditions_know_transport(const char *text);

/* Likewise: one of a job's, or "none". */
bool conditions_know_security(const char *text);

/* "--security curve", or "no keys". */
const char *conditions_security_text(const char *security);

/* Reads the field of a file, if it is there. Logs what is wrong. */
enum status conditions_read(const struct fields *file, struct conditions *ret_conditions);

/* An object for the field; NULL: nothing is known, or there is no memory. The caller owns it. */
json_t *conditions_json(const struct conditions *conditions);

/* Adds a host, unless it is there. */
void conditions_add_host(struct conditions *conditions, const char *host);

/* What of a job decides what its values travel over. */
struct conditions_job {
    enum transport_kind transport;
    bool is_one_host;     // all its places are on one
    bool is_coded;        // --compress
    const char *security; // as conditions have it; NULL: not known
};

/* Whether costs and network cannot be of one measurement, or not of such jobs. Writes why. */
bool conditions_clash(const struct conditions *costs, const struct conditions *network,
                      const struct conditions_job *job, char *ret_why, size_t why_size);

/* "cnn, tcp, node1": what is known of them. Whether something is. */
bool conditions_format(const struct conditions *conditions, char *ret_text, size_t text_size);

#endif
