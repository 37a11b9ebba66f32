/* Reads changes, and makes them. */
#include "deploy/predict/basis/what_if.h"

#include "common/base/log.h"
#include "common/base/number.h"
#include "common/options/options.h"
#include "deploy/predict/basis/fields.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FACTOR_MAX 1e6

enum word_kind {
    WORD_SEVERAL, // of several values, which a factor alone can change
    WORD_TIME,
    WORD_BANDWIDTH,
    WORD_COUNT,
    WORD_NUMBER,
};

/* False where there is nothing to multiply: a value of 0 stands for none. */
static bool change_value(const struct what_if_change *change, double *value)
{
    if (change->is_factor && *value <= 0) {
        return false;
    }
    *value = change->is_factor ? *value * change->value : change->value;
    return true;
}

static bool change_forward(const struct what_if_change *change, struct basis *basis)
{
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        basis->costs.layers[i].forward_s *= change->value;
    }
    return true;
}

static bool change_backward(const struct what_if_change *change, struct basis *basis)
{
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        basis->costs.layers[i].backward_s *= change->value;
    }
    return true;
}

static bool change_compute(const struct what_if_change *change, struct basis *basis)
{
    return change_forward(change, basis) && change_backward(change, basis);
}

/* A factor is of all that messages take, whoever does it: twice the time is half the bandwidth, and
 * no time is none. A value is of `message` alone. */
static bool change_message(const struct what_if_change *change, struct basis *basis)
{
    struct costs *costs = &basis->costs;
    bool has_changed = change_value(change, &costs->message_s);
    if (change->is_factor) {
        double inverse = change->value > 0 ? 1 / change->value : 0;
        has_changed |= change_value(change, &costs->carriage_message_s);
        has_changed |= costs->message_bandwidth > 0 || costs->carriage_bandwidth > 0;
        costs->message_bandwidth *= inverse;
        costs->carriage_bandwidth *= inverse;
    }
    return has_changed;
}

/* Where the file has none, that of workers is changed for servers alone. */
static bool change_server_optimizer(const struct what_if_change *change, struct basis *basis)
{
    struct costs *costs = &basis->costs;
    costs->server_optimizer_s = costs_server_optimizer_s(costs);
    costs->has_server_optimizer = true;
    return change_value(change, &costs->server_optimizer_s);
}

static bool change_spread(const struct what_if_change *change, struct basis *basis)
{
    spread_scale(&basis->costs.spread, change->value);
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        spread_scale(&basis->costs.layers[i].forward_spread, change->value);
        spread_scale(&basis->costs.layers[i].backward_spread, change->value);
    }
    return basis->costs.spread.kind != SPREAD_NONE;
}

static bool change_nic(const struct what_if_change *change, struct basis *basis)
{
    struct network *network = &basis->network;
    bool has_changed = false;
    for (uint32_t i = 0; i < network->host_count; i++) {
        has_changed |= change_value(change, &network->links[network->hosts[i].up].bandwidth);
        change_value(change, &network->links[network->hosts[i].down].bandwidth);
        network->links[network->hosts[i].up].may_saturate =
            network->links[network->hosts[i].down].may_saturate =
                network->links[network->hosts[i].up].bandwidth > 0;
    }
    return has_changed;
}

static bool change_switch(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < basis->network.switch_count; i++) {
        struct network_switch *own = &basis->network.switches[i];
        own->bandwidth *= change->value;
        // What is given as a share of the links below: more bandwidth is less of that.
        own->oversubscription /= change->value;
        has_changed |= own->bandwidth > 0 || own->oversubscription > 0;
    }
    return has_changed;
}

/* What is given as a share of the links below grows with them. */
static bool change_link(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = change_nic(change, basis);
    for (uint32_t i = 0; i < basis->network.switch_count; i++) {
        basis->network.switches[i].bandwidth *= change->value;
        has_changed |= basis->network.switches[i].bandwidth > 0;
    }
    return has_changed;
}

static bool change_background(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        basis->network.links[i].background *= change->value;
        has_changed |= basis->network.links[i].background > 0;
    }
    return has_changed;
}

static bool change_loss(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        struct network_link *link = &basis->network.links[i];
        has_changed |= link->loss > 0;
        link->loss = fmin(link->loss * change->value, 0.5); // the most that files may have
    }
    return has_changed;
}

static bool change_flow(const struct what_if_change *change, struct basis *basis)
{
    return change_value(change, &basis->network.flow_bandwidth);
}

static bool change_memory(const struct what_if_change *change, struct basis *basis)
{
    struct network *network = &basis->network;
    bool has_changed = false;
    for (uint32_t i = 0; i < network->host_count; i++) {
        struct network_link *memory = &network->links[network->hosts[i].memory];
        has_changed |= change_value(change, &memory->bandwidth);
        memory->may_saturate = memory->bandwidth > 0;
    }
    return has_changed;
}

static bool change_latency(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < basis->network.host_count; i++) {
        has_changed |= change_value(change, &basis->network.hosts[i].latency_s);
    }
    for (uint32_t i = 0; i < basis->network.switch_count && change->is_factor; i++) {
        has_changed |= change_value(change, &basis->network.switches[i].latency_s);
    }
    return has_changed;
}

static bool change_memory_latency(const struct what_if_change *change, struct basis *basis)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < basis->network.host_count; i++) {
        has_changed |= change_value(change, &basis->network.hosts[i].memory_latency_s);
    }
    return has_changed;
}

/* Jobs without servers stay as they are. */
static bool change_servers(const struct what_if_change *change, struct basis *basis)
{
    double servers = basis->job.servers;
    if (servers > 0) {
        change_value(change, &servers);
        servers = servers < 1 ? 1 : floor(servers);
        basis->job.servers = servers < JOB_SERVERS_MAX ? (uint32_t)servers : JOB_SERVERS_MAX;
    }
    return true;
}

static bool change_bucket(const struct what_if_change *change, struct basis *basis)
{
    return change_value(change, &basis->job.bucket_mb);
}

#define COST(field) offsetof(struct costs, field)

static const struct {
    const char *name;
    enum word_kind kind;
    bool (*change)(const struct what_if_change *change, struct basis *basis); // NULL: of one cost
    size_t cost;                                                              // where that is
} words[] = {
    {"compute", WORD_SEVERAL, change_compute, 0},
    {"forward", WORD_SEVERAL, change_forward, 0},
    {"backward", WORD_SEVERAL, change_backward, 0},
    {"optimizer", WORD_TIME, NULL, COST(optimizer_s)},
    {"server-optimizer", WORD_TIME, change_server_optimizer, 0},
    {"message", WORD_TIME, change_message, 0},
    {"message-bandwidth", WORD_BANDWIDTH, NULL, COST(message_bandwidth)},
    {"carriage-message", WORD_TIME, NULL, COST(carriage_message_s)},
    {"carriage", WORD_BANDWIDTH, NULL, COST(carriage_bandwidth)},
    {"input", WORD_TIME, NULL, COST(input_s)},
    {"sum", WORD_BANDWIDTH, NULL, COST(sum_bandwidth)},
    {"encode", WORD_BANDWIDTH, NULL, COST(encode_bandwidth)},
    {"decode", WORD_BANDWIDTH, NULL, COST(decode_bandwidth)},
    {"spread", WORD_SEVERAL, change_spread, 0},
    {"link", WORD_SEVERAL, change_link, 0},
    {"nic", WORD_BANDWIDTH, change_nic, 0},
    {"switch", WORD_SEVERAL, change_switch, 0},
    {"background", WORD_SEVERAL, change_background, 0},
    {"loss", WORD_SEVERAL, change_loss, 0},
    {"flow", WORD_BANDWIDTH, change_flow, 0},
    {"latency", WORD_TIME, change_latency, 0},
    {"memory", WORD_BANDWIDTH, change_memory, 0},
    {"memory-latency", WORD_TIME, change_memory_latency, 0},
    {"servers", WORD_COUNT, change_servers, 0},
    {"bucket-mb", WORD_NUMBER, change_bucket, 0},
};
#define WORD_TOTAL (sizeof(words) / sizeof(words[0]))

static bool is_word(size_t word, const char *name)
{
    return strcmp(words[word].name, name) == 0;
}

static bool find_word(const char *name, size_t *ret_word, char *ret_why, size_t why_size)
{
    const char *names[WORD_TOTAL];
    for (size_t i = 0; i < WORD_TOTAL; i++) {
        names[i] = words[i].name;
        if (is_word(i, name)) {
            *ret_word = i;
            return true;
        }
    }
    const char *nearest = options_nearest(name, names, WORD_TOTAL);
    if (nearest != NULL) {
        snprintf(ret_why, why_size, "'%.40s' cannot be changed; did you mean %s?", name, nearest);
        return false;
    }
    int size = snprintf(ret_why, why_size, "'%.20s' is none of:", name);
    for (size_t i = 0; i < WORD_TOTAL && (size_t)size < why_size; i++) {
        size += snprintf(ret_why + size, why_size - (size_t)size, " %s", names[i]);
    }
    return false;
}

static bool read_value(const char *text, struct what_if_change *change)
{
    enum word_kind kind = words[change->word].kind;
    bool is_bandwidth =
        kind == WORD_BANDWIDTH || is_word(change->word, "link") || is_word(change->word, "switch");
    size_t digits = number_decimal(text, &change->value);
    change->is_factor = digits > 0 && strcmp(text + digits, "x") == 0;
    if (change->is_factor) {
        // A bandwidth, a count and a size of 0 would be another thing, or none.
        bool is_above =
            change->value > 0 || (!is_bandwidth && kind != WORD_COUNT && kind != WORD_NUMBER);
        return is_above && change->value <= FACTOR_MAX;
    }
    switch (kind) {
    case WORD_SEVERAL:
        return false;
    case WORD_TIME:
        return quantity_parse(text, QUANTITY_TIME, &change->value);
    case WORD_BANDWIDTH:
        return quantity_parse(text, QUANTITY_BANDWIDTH, &change->value) && change->value > 0;
    case WORD_COUNT:
        return digits > 0 && text[digits] == '\0' && floor(change->value) == change->value &&
               change->value >= 1 && change->value <= JOB_SERVERS_MAX;
    case WORD_NUMBER:
        return digits > 0 && text[digits] == '\0' && change->value >= 0.001 &&
               change->value <= 65536;
    }
    return false;
}

static bool parse_change(const char *text, struct what_if_change *change, char *ret_why,
                         size_t why_size)
{
    static const char *const wanted[] = {
        [WORD_SEVERAL] = "a factor, as 2x or 0.5x",
        [WORD_TIME] = "a factor, as 2x, or a time with its unit, as 30us",
        [WORD_BANDWIDTH] = "a factor, as 2x, or a bandwidth with its unit, as 25Gbit/s or 3GB/s",
        [WORD_COUNT] = "a factor, as 2x, or a whole number from 1",
        [WORD_NUMBER] = "a factor, as 2x, or a number from 0.001 to 65536",
    };
    char name[WHAT_IF_TEXT_BYTES];
    size_t size = strcspn(text, "=");
    snprintf(name, sizeof(name), "%.*s", (int)size, text);
    if (!find_word(name, &change->word, ret_why, why_size)) {
        return false;
    }
    if (text[size] == '\0' || !read_value(text + size + 1, change)) {
        snprintf(ret_why, why_size, "%s needs %s, not '%.40s'", name,
                 wanted[words[change->word].kind], text[size] == '\0' ? "" : text + size + 1);
        return false;
    }
    return true;
}

bool what_if_parse(const char *text, struct what_if *ret_what_if, char *ret_why, size_t why_size)
{
    struct what_if made = {.count = 0};
    if (strlen(text) >= sizeof(made.text)) {
        snprintf(ret_why, why_size, "is longer than %zu characters", sizeof(made.text) - 1);
        return false;
    }
    snprintf(made.text, sizeof(made.text), "%s", text);
    for (const char *at = text; at != NULL;) {
        char item[WHAT_IF_TEXT_BYTES];
        size_t size = strcspn(at, ",");
        snprintf(item, sizeof(item), "%.*s", (int)size, at);
        at = at[size] == ',' ? at + size + 1 : NULL;
        if (made.count == WHAT_IF_CHANGES_MAX) {
            snprintf(ret_why, why_size, "has more than %d changes", WHAT_IF_CHANGES_MAX);
            return false;
        }
        struct what_if_change *change = &made.changes[made.count++];
        if (!parse_change(item, change, ret_why, why_size)) {
            return false;
        }
        for (uint32_t i = 0; i + 1 < made.count; i++) {
            if (made.changes[i].word == change->word) {
                snprintf(ret_why, why_size, "changes %s twice", words[change->word].name);
                return false;
            }
        }
    }
    *ret_what_if = made;
    return true;
}

bool what_if_has_servers(const struct what_if *what_if)
{
    for (uint32_t i = 0; i < what_if->count; i++) {
        if (words[what_if->changes[i].word].kind == WORD_COUNT) {
            return true;
        }
    }
    return false;
}

void what_if_print_bandwidths(const struct what_if *what_if, FILE *stream)
{
    const char *before = ": ";
    for (uint32_t i = 0; i < what_if->count; i++) {
        const struct what_if_change *change = &what_if->changes[i];
        char text[QUANTITY_BYTES];
        if (words[change->word].kind == WORD_BANDWIDTH && !change->is_factor) {
            quantity_format(change->value, QUANTITY_BANDWIDTH, text);
            fprintf(stream, "%s%s%s %s", before[0] == ':' ? what_if->text : "", before,
                    words[change->word].name, text);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        fputc('\n', stream);
    }
}

static bool make_change(const struct what_if_change *change, struct basis *basis)
{
    if (words[change->word].change != NULL) {
        return words[change->word].change(change, basis);
    }
    char *costs = (char *)&basis->costs;
    return change_value(change, (double *)(void *)(costs + words[change->word].cost));
}

enum status what_if_apply(const struct what_if *what_if, struct basis *basis)
{
    if (what_if == NULL) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < what_if->count; i++) {
        const struct what_if_change *change = &what_if->changes[i];
        if (!make_change(change, basis)) {
            log_error("--what-if %s: the files give no %s that a factor could change%s",
                      what_if->text, words[change->word].name,
                      words[change->word].kind == WORD_SEVERAL ? "" : "; give a value with a unit");
            return STATUS_INVALID;
        }
    }
    return network_relink(&basis->network);
}
