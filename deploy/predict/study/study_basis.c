/* Prints back what a study read from its files. */
#include "deploy/predict/study/study_basis.h"

#include "deploy/predict/basis/fields.h"
#include "deploy/predict/study/study_batches.h"
#include "deploy/predict/study/study_groups.h"

#include <stdlib.h>

/* A line that grows entry by entry. */
struct quantity_line {
    FILE *stream;
    const char *title;
    size_t count;
};

static void line_begin_entry(struct quantity_line *line)
{
    fprintf(line->stream, "%s%s", line->count == 0 ? "  " : ", ",
            line->count == 0 ? line->title : "");
    line->count++;
}

static void line_add(struct quantity_line *line, const char *name, double bandwidth)
{
    char text[QUANTITY_BYTES];
    if (bandwidth > 0) {
        quantity_format(bandwidth, QUANTITY_BANDWIDTH, text);
        line_begin_entry(line);
        fprintf(line->stream, "%s %s", name, text);
    }
}

static void line_end(const struct quantity_line *line)
{
    if (line->count > 0) {
        fprintf(line->stream, "\n");
    }
}

static void print_costs(const struct costs *costs, FILE *stream)
{
    struct quantity_line line = {stream, "", 0};
    line_add(&line, "message-bandwidth", costs->message_bandwidth);
    line_add(&line, "sum", costs->sum_bandwidth);
    line_add(&line, "encode", costs->encode_bandwidth);
    line_add(&line, "decode", costs->decode_bandwidth);
    line_add(&line, "carriage", costs->carriage_bandwidth);
    line_end(&line);
}

/* Links of one kind: those from hosts up, in their memory, or from switches up. */
struct link_kind {
    const char *title;
    uint32_t count;
    uint32_t (*link_of)(const struct network *network, uint32_t index); // may be NETWORK_NONE
};

static uint32_t nic_of(const struct network *network, uint32_t host)
{
    return network->hosts[host].up;
}

static uint32_t memory_of(const struct network *network, uint32_t host)
{
    return network->hosts[host].memory;
}

static uint32_t uplink_of(const struct network *network, uint32_t own)
{
    return network->switches[own].up;
}

/* NULL: there is none. */
static const struct network_link *link_at(const struct network *network,
                                          const struct link_kind *kind, uint32_t index)
{
    uint32_t link = kind->link_of(network, index);
    return link != NETWORK_NONE ? &network->links[link] : NULL;
}

/* Links that are alike. */
static void line_add_group(struct quantity_line *line, const struct study_group *group)
{
    const struct network_link *link = group->link;
    char bandwidth[QUANTITY_BYTES], background[QUANTITY_BYTES];
    quantity_format(link->bandwidth, QUANTITY_BANDWIDTH, bandwidth);
    line_begin_entry(line);
    fprintf(line->stream, "%s", link->name);
    if (group->size > 1) {
        fprintf(line->stream, " and %u more", group->size - 1);
    }
    fprintf(line->stream, " %s", bandwidth);
    if (link->background > 0) {
        quantity_format(link->background, QUANTITY_BANDWIDTH, background);
        fprintf(line->stream, " with a background of %s", background);
    }
}

static void print_links(const struct network *network, const struct link_kind *kind, FILE *stream)
{
    struct quantity_line line = {stream, kind->title, 0};
    struct study_group *groups = calloc((size_t)kind->count + 1, sizeof(*groups));
    uint32_t count = 0;
    for (uint32_t i = 0; groups != NULL && i < kind->count; i++) {
        const struct network_link *link = link_at(network, kind, i);
        if (link != NULL && link->bandwidth > 0) {
            study_group_join(groups, 0, &count, &(struct study_group){.link = link});
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        line_add_group(&line, &groups[i]);
    }
    line_end(&line);
    free(groups);
}

static void print_network(const struct network *network, FILE *stream)
{
    const struct link_kind kinds[] = {{"hosts: ", network->host_count, nic_of},
                                      {"memory: ", network->host_count, memory_of},
                                      {"switches: ", network->switch_count, uplink_of}};
    struct quantity_line line = {stream, "", 0};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        print_links(network, &kinds[i], stream);
    }
    line_add(&line, "flow", network->flow_bandwidth);
    line_end(&line);
}

void study_print_basis(const struct study *study, FILE *stream)
{
    char message[QUANTITY_BYTES], compute[QUANTITY_BYTES];
    const struct network *network = study->network;
    quantity_format(study->costs->message_s, QUANTITY_TIME, message);
    quantity_format(costs_compute_s(study->costs), QUANTITY_TIME, compute);
    fprintf(stream, "%s: %u images a step, computed in %s; %s a message at each end\n",
            study->costs_file, study->costs->batch, compute, message);
    if (!study_is_strong(study) && study->costs->line_from > 0) {
        fprintf(stream, "  times are %s from those of %u and %u images\n",
                costs_are_extrapolated(study->costs) ? "extrapolated" : "interpolated",
                study->costs->line_from, study->costs->line_to);
    }
    print_costs(study->costs, stream);
    study_print_batches(study, stream);
    fprintf(stream, "%s: %u host%s\n", study->network_file, network->host_count,
            network->host_count == 1 ? "" : "s");
    print_network(network, stream);
    fprintf(stream, "\n");
}
