/* Lists a few layers, or the first and the last of many. */
#include "worker/model/bucket_layers.h"

#include "worker/model/layer.h"

#include <stdio.h>

#define LISTED_MAX 3

void bucket_layers_write(const struct op *ops, uint32_t first, uint32_t end, char *ret_text,
                         size_t text_size)
{
    uint32_t before = 0, count = 0, place = 0;
    for (uint32_t i = 0; i < end; i++) {
        bool is_layer = layer_weight_count(&ops[i]) > 0;
        before += is_layer && i < first;
        count += is_layer && i >= first;
    }
    size_t used = 0;
    ret_text[0] = '\0';
    for (uint32_t i = end; i > first && used < text_size; i--) {
        const struct op *op = &ops[i - 1];
        if (layer_weight_count(op) == 0) {
            continue;
        }
        uint32_t number = before + count - place;
        bool is_end = place == 0 || place + 1 == count;
        if (is_end || count <= LISTED_MAX) {
            used += (size_t)snprintf(ret_text + used, text_size - used, "%s%s %u",
                                     place == 0            ? ""
                                     : count <= LISTED_MAX ? ", "
                                                           : " to ",
                                     op_kind_name(op->kind), number);
        }
        place++;
    }
}

void bucket_layers_name(const struct op *ops, uint32_t op_count, uint32_t op, char *ret_text,
                        size_t text_size)
{
    uint32_t number = 0, found = 0;
    for (uint32_t i = 0; i < op_count && (i <= op || number == 0); i++) {
        if (layer_weight_count(&ops[i]) > 0) {
            number++;
            found = i;
        }
    }
    ret_text[0] = '\0';
    if (number > 0) {
        snprintf(ret_text, text_size, "%s %u", op_kind_name(ops[found].kind), number);
    }
}
