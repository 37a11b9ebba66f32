/* Prints back what a study read from its files. */
#include "deploy/predict/study/study_basis.h"

#include "deploy/predict/basis/fields.h"

#define LINKS_MAX 12 // that are printed of a network

/* A line that grows entry by entry. */
struct quantity_line {
    FILE *stream;
    size_t count, max;
};

static void line_add(struct quantity_line *line, const char *name, double bandwidth)
{
    if (bandwidth <= 0) {
        return;
    }
    if (line->count < line->max) {
        char text[QUANTITY_BYTES];
        quantity_format(bandwidth, QUANTITY_BANDWIDTH, text);
        fprintf(line->stream, "%s%s %s", line->count == 0 ? "  " : ", ", name, text);
    } else if (line->count == line->max) {
        fprintf(line->stream, ", ...");
    }
    line->count++;
}

static void line_end(const struct quantity_line *line)
{
    if (line->count > 0) {
        fprintf(line->stream, "\n");
    }
}

static void print_costs(const struct costs *costs, FILE *stream)
{
    struct quantity_line line = {stream, 0, SIZE_MAX};
    line_add(&line, "message-bandwidth", costs->message_bandwidth);
    line_add(&line, "sum", costs->sum_bandwidth);
    line_add(&line, "encode", costs->encode_bandwidth);
    line_add(&line, "decode", costs->decode_bandwidth);
    line_add(&line, "carriage", costs->carriage_bandwidth);
    line_end(&line);
}

/* A link that is like the last one of its kind is left out. */
static void add_link(struct quantity_line *line, const struct network *network, uint32_t link,
                     double *last)
{
    if (link == NETWORK_NONE) {
        return;
    }
    double bandwidth = network->links[link].bandwidth;
    if (bandwidth != *last) {
        line_add(line, network->links[link].name, bandwidth);
    }
    *last = bandwidth;
}

static void print_links(const struct network *network, FILE *stream)
{
    struct quantity_line line = {stream, 0, LINKS_MAX};
    double nic = network->links[network->hosts[0].up].bandwidth, memory = 0, up = 0;
    line_add(&line, "flow", network->flow_bandwidth);
    for (uint32_t i = 0; i < network->host_count; i++) {
        add_link(&line, network, network->hosts[i].up, &nic);
        add_link(&line, network, network->hosts[i].memory, &memory);
    }
    for (uint32_t i = 0; i < network->switch_count; i++) {
        add_link(&line, network, network->switches[i].up, &up);
    }
    line_end(&line);
}

void study_print_basis(const struct study *study, FILE *stream)
{
    char message[QUANTITY_BYTES], compute[QUANTITY_BYTES], nic[QUANTITY_BYTES];
    const struct network *network = study->network;
    quantity_format(study->costs->message_s, QUANTITY_TIME, message);
    quantity_format(costs_compute_s(study->costs), QUANTITY_TIME, compute);
    quantity_format(network->links[network->hosts[0].up].bandwidth, QUANTITY_BANDWIDTH, nic);
    fprintf(stream, "%s: %u images a step, computed in %s; %s a message at each end\n",
            study->costs_file, study->costs->batch, compute, message);
    print_costs(study->costs, stream);
    fprintf(stream, "%s: %u host%s, the first with %s\n", study->network_file, network->host_count,
            network->host_count == 1 ? "" : "s", nic);
    print_links(network, stream);
    fprintf(stream, "\n");
}
