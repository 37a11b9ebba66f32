/* Reads and writes the ways of messages that are paced. */
#include "deploy/predict/basis/network_pacing.h"

#include <string.h>

const char *const network_way_names[NETWORK_WAY_COUNT] = {
    [NETWORK_WAY_RING] = "ring",
    [NETWORK_WAY_PUSHES] = "pushes",
    [NETWORK_WAY_ANSWERS] = "answers",
};

static bool take_name(const char *name, struct network_pacing *pacing)
{
    for (int way = 0; way < NETWORK_WAY_COUNT && name != NULL; way++) {
        if (strcmp(name, network_way_names[way]) == 0) {
            pacing->is_paced[way] = true;
            return true;
        }
    }
    return false;
}

enum status network_pacing_read(const struct fields *fields, struct network_pacing *ret_pacing)
{
    const json_t *value = json_object_get(fields->object, "paced");
    struct network_pacing pacing = {{false}};
    if (value == NULL) {
        return STATUS_OK;
    }
    bool is_right = json_is_boolean(value) || json_is_array(value);
    if (json_is_true(value)) {
        pacing.is_paced[NETWORK_WAY_RING] = pacing.is_paced[NETWORK_WAY_PUSHES] = true;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        is_right = is_right && take_name(json_string_value(json_array_get(value, i)), &pacing);
    }
    if (!is_right) {
        return fields_refuse(fields, "paced",
                             "has to be true or false, or a list of what is paced: \"ring\", "
                             "\"pushes\", \"answers\"");
    }
    *ret_pacing = pacing;
    return STATUS_OK;
}

bool network_pacing_is_any(const struct network_pacing *pacing)
{
    bool is_any = false;
    for (int way = 0; way < NETWORK_WAY_COUNT; way++) {
        is_any = is_any || pacing->is_paced[way];
    }
    return is_any;
}

json_t *network_pacing_json(const struct network_pacing *pacing)
{
    json_t *list = json_array();
    for (int way = 0; way < NETWORK_WAY_COUNT && list != NULL; way++) {
        if (pacing->is_paced[way] &&
            json_array_append_new(list, json_string(network_way_names[way])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
