/* Reads what files say of their measurement, and compares it. */
#include "deploy/predict/basis/conditions.h"

#include "common/job/job_choices.h"

#include <stdio.h>
#include <string.h>

static enum status read_text(const struct fields *fields, const char *name,
                             char ret_text[CONDITIONS_TEXT_BYTES])
{
    const char *text = NULL;
    enum status status = fields_text(fields, name, false, &text);
    if (status == STATUS_OK && text != NULL && strlen(text) >= CONDITIONS_TEXT_BYTES) {
        return fields_refuse(fields, name, "is longer than 255 characters");
    }
    if (status == STATUS_OK) {
        snprintf(ret_text, CONDITIONS_TEXT_BYTES, "%s", text != NULL ? text : "");
    }
    return status;
}

bool conditions_know_transport(const char *text)
{
    for (int i = TRANSPORT_AUTO + 1; transport_choices[i].name != NULL; i++) {
        if (strcmp(transport_choices[i].name, text) == 0) {
            return true;
        }
    }
    return false;
}

bool conditions_know_security(const char *text)
{
    for (int i = 0; security_choices[i].name != NULL; i++) {
        if (strcmp(security_choices[i].name, text) == 0) {
            return true;
        }
    }
    return strcmp(text, CONDITIONS_NO_KEYS) == 0;
}

enum status conditions_read(const struct fields *file, struct conditions *ret_conditions)
{
    static const char *const names[] = {"model", "transport", "security", "hosts", NULL};
    const struct fields fields = {file->file, "conditions",
                                  json_object_get(file->object, "conditions")};
    memset(ret_conditions, 0, sizeof(*ret_conditions));
    if (fields.object == NULL) {
        return STATUS_OK;
    }
    enum status status = fields_check_names(&fields, names);
    if (status == STATUS_OK) {
        status = read_text(&fields, "model", ret_conditions->model);
    }
    if (status == STATUS_OK) {
        status = read_text(&fields, "transport", ret_conditions->transport);
    }
    bool is_said = ret_conditions->transport[0] != '\0';
    if (status == STATUS_OK && is_said && !conditions_know_transport(ret_conditions->transport)) {
        return fields_refuse(&fields, "transport", "has to be tcp, ipc or shm");
    }
    if (status == STATUS_OK) {
        status = read_text(&fields, "security", ret_conditions->security);
    }
    is_said = ret_conditions->security[0] != '\0';
    if (status == STATUS_OK && is_said && !conditions_know_security(ret_conditions->security)) {
        return fields_refuse(&fields, "security", "has to be curve, auth-only or none");
    }
    return status == STATUS_OK ? read_text(&fields, "hosts", ret_conditions->hosts) : status;
}

json_t *conditions_json(const struct conditions *conditions)
{
    const struct {
        const char *name, *text;
    } list[] = {{"model", conditions->model},
                {"transport", conditions->transport},
                {"security", conditions->security},
                {"hosts", conditions->hosts}};
    json_t *object = NULL;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        if (list[i].text[0] != '\0') {
            object = object != NULL ? object : json_object();
            json_object_set_new(object, list[i].name, json_string(list[i].text));
        }
    }
    return object;
}

void conditions_add_host(struct conditions *conditions, const char *host)
{
    size_t size = strlen(conditions->hosts), own = strlen(host);
    for (const char *at = conditions->hosts; *at != '\0';) {
        size_t item = strcspn(at, ",");
        if (item == own && strncmp(at, host, own) == 0) {
            return;
        }
        at += item;
        at += strspn(at, ", ");
    }
    if (size + own + 3 <= sizeof(conditions->hosts)) {
        snprintf(conditions->hosts + size, sizeof(conditions->hosts) - size, "%s%s",
                 size > 0 ? ", " : "", host);
    }
}

static bool differ(const char *a, const char *b)
{
    return a[0] != '\0' && b[0] != '\0' && strcmp(a, b) != 0;
}

/* What values travel over; AUTO: it depends on where they go. */
static enum transport_kind transport_of(const struct conditions_job *job)
{
    bool may_share =
        job->transport == TRANSPORT_SHM || (job->transport == TRANSPORT_AUTO && job->is_one_host);
    if (!may_share) {
        return job->transport;
    }
    return job->is_coded ? TRANSPORT_IPC : TRANSPORT_SHM; // no memory holds codes
}

const char *conditions_security_text(const char *security)
{
    return strcmp(security, CONDITIONS_NO_KEYS) == 0                      ? "no keys"
           : strcmp(security, security_choices[SECURITY_CURVE].name) == 0 ? "--security curve"
                                                                          : "--security auth-only";
}

bool conditions_clash(const struct conditions *costs, const struct conditions *network,
                      const struct conditions_job *job, char *ret_why, size_t why_size)
{
    const char *measured = costs->transport[0] != '\0' ? costs->transport : network->transport;
    const char *security = costs->security[0] != '\0' ? costs->security : network->security;
    enum transport_kind own = transport_of(job);
    if (differ(costs->transport, network->transport)) {
        snprintf(ret_why, why_size, "the costs were measured over %s, and the network over %s",
                 costs->transport, network->transport);
    } else if (differ(costs->hosts, network->hosts)) {
        snprintf(ret_why, why_size, "the costs were measured on %.80s, and the network on %.80s",
                 costs->hosts, network->hosts);
    } else if (own != TRANSPORT_AUTO && differ(measured, transport_choices[own].name)) {
        bool is_asked = own == job->transport;
        snprintf(ret_why, why_size, "the files were measured over %s, and --transport %s%s%s%s",
                 measured, transport_choices[job->transport].name,
                 is_asked ? " is another" : " is ", is_asked ? "" : transport_choices[own].name,
                 is_asked        ? ""
                 : job->is_coded ? " with --compress"
                                 : " on one host");
    } else if (differ(costs->security, network->security)) {
        snprintf(ret_why, why_size, "connections of the costs had %s, and those of the network %s",
                 conditions_security_text(costs->security),
                 conditions_security_text(network->security));
    } else if ((own == TRANSPORT_TCP || own == TRANSPORT_AUTO) && job->security != NULL &&
               differ(security, job->security)) {
        snprintf(ret_why, why_size,
                 "connections were measured with %s, and those of the job have %s",
                 conditions_security_text(security), conditions_security_text(job->security));
    } else {
        return false;
    }
    return true;
}

bool conditions_format(const struct conditions *conditions, char *ret_text, size_t text_size)
{
    bool is_guarded = conditions->security[0] != '\0';
    const char *const parts[] = {conditions->model, conditions->transport,
                                 is_guarded ? conditions_security_text(conditions->security) : "",
                                 conditions->hosts};
    size_t size = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && size < text_size; i++) {
        if (parts[i][0] != '\0') {
            size += (size_t)snprintf(ret_text + size, text_size - size, "%s%s",
                                     size > 0 ? ", " : "", parts[i]);
        }
    }
    return size > 0;
}
