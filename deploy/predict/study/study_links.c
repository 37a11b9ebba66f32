/* Groups links, and tells what goes over them. */
#include "deploy/predict/study/study_links.h"

#include "deploy/predict/study/study_groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum side { SIDE_UP, SIDE_DOWN, SIDE_MEMORY, SIDE_COUNT };

/* What goes over the links of a group. */
struct group_side {
    double least, most, sum; // bytes of a step
    uint32_t known;
};

struct groups {
    const struct network *network;
    uint32_t *workers, *servers; // (host_count) owned: that run there
    struct study_group *list;    // (count) owned: hosts, then switches
    struct group_side *sides;    // (count, SIDE_COUNT) owned
    uint32_t *of_host;           // (host_count) owned; NETWORK_NONE: nobody runs there
    uint32_t count, hosts;
};

static void groups_finish(struct groups *groups)
{
    free(groups->workers);
    free(groups->servers);
    free(groups->list);
    free(groups->sides);
    free(groups->of_host);
}

static struct group_side *sides_of(const struct groups *groups, uint32_t index)
{
    return &groups->sides[(size_t)index * SIDE_COUNT];
}

static void add_bytes(struct group_side *side, double bytes)
{
    if (isnan(bytes)) {
        return;
    }
    side->least = side->known == 0 || bytes < side->least ? bytes : side->least;
    side->most = bytes > side->most ? bytes : side->most;
    side->sum += bytes;
    side->known++;
}

static void group_hosts(struct groups *groups, const double *bytes)
{
    const struct network *network = groups->network;
    for (uint32_t i = 0; i < network->host_count; i++) {
        const struct network_host *host = &network->hosts[i];
        const struct study_group like = {.name = host->name,
                                         .link = &network->links[host->up],
                                         .workers = groups->workers[i],
                                         .servers = groups->servers[i]};
        groups->of_host[i] = NETWORK_NONE;
        if (like.workers + like.servers > 0) {
            groups->of_host[i] = study_group_join(groups->list, 0, &groups->count, &like);
            struct group_side *sides = sides_of(groups, groups->of_host[i]);
            add_bytes(&sides[SIDE_UP], bytes[host->up]);
            add_bytes(&sides[SIDE_DOWN], bytes[host->down]);
            add_bytes(&sides[SIDE_MEMORY], bytes[host->memory]);
        }
    }
    groups->hosts = groups->count;
}

static void group_switches(struct groups *groups, const double *bytes)
{
    const struct network *network = groups->network;
    for (uint32_t i = 0; i < network->switch_count; i++) {
        const struct network_switch *own = &network->switches[i];
        if (own->above == NETWORK_NONE) {
            continue;
        }
        const struct study_group like = {.name = own->name,
                                         .link = &network->links[own->up],
                                         .above = own->above,
                                         .is_idle = bytes[own->up] == 0 && bytes[own->down] == 0};
        struct group_side *sides =
            sides_of(groups, study_group_join(groups->list, groups->hosts, &groups->count, &like));
        add_bytes(&sides[SIDE_UP], bytes[own->up]);
        add_bytes(&sides[SIDE_DOWN], bytes[own->down]);
    }
}

static enum status place(const struct basis *basis, struct groups *groups)
{
    uint32_t workers = basis->job.workers;
    uint32_t servers = mode_has_servers(basis->job.mode.kind) ? basis->job.servers : 0;
    uint32_t *hosts = calloc(workers + servers, sizeof(*hosts));
    enum status status =
        hosts != NULL ? network_place(groups->network, workers, servers, hosts) : STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < workers + servers && status == STATUS_OK; i++) {
        (*(i < workers ? &groups->workers : &groups->servers))[hosts[i]]++;
    }
    free(hosts);
    return status;
}

/* groups_finish frees them, also if this fails. */
static enum status groups_make(const struct basis *basis, const double *bytes,
                               struct groups *groups)
{
    const struct network *network = groups->network = &basis->network;
    groups->workers = calloc(network->host_count, sizeof(*groups->workers));
    groups->servers = calloc(network->host_count, sizeof(*groups->servers));
    groups->of_host = calloc(network->host_count, sizeof(*groups->of_host));
    size_t most = (size_t)network->host_count + network->switch_count;
    groups->list = calloc(most, sizeof(*groups->list));
    groups->sides = calloc(most * SIDE_COUNT, sizeof(*groups->sides));
    if (groups->workers == NULL || groups->servers == NULL || groups->of_host == NULL ||
        groups->list == NULL || groups->sides == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = place(basis, groups);
    if (status == STATUS_OK) {
        group_hosts(groups, bytes);
        group_switches(groups, bytes);
    }
    return status;
}

/* The mean of a group's side; NAN: none is known. */
static double side_mean(const struct group_side *side)
{
    return side->known > 0 ? side->sum / side->known : (double)NAN;
}

/* Unless bytes are known, they are what is known of their own side, or else of the other one. */
static void fill(double *bytes, double own, double other)
{
    *bytes = !isnan(*bytes) ? *bytes : !isnan(own) ? own : other;
}

enum status study_links_complete(const struct basis *basis, double *link_bytes)
{
    struct groups groups = {.count = 0};
    bool is_ring = basis->job.mode.kind == MODE_RING;
    enum status status = groups_make(basis, link_bytes, &groups);
    for (uint32_t i = 0; i < basis->network.host_count && status == STATUS_OK; i++) {
        const struct network_host *host = &basis->network.hosts[i];
        if (groups.of_host[i] == NETWORK_NONE) {
            link_bytes[host->up] = link_bytes[host->down] = link_bytes[host->memory] = 0;
            continue;
        }
        const struct group_side *sides = sides_of(&groups, groups.of_host[i]);
        double up = side_mean(&sides[SIDE_UP]), down = side_mean(&sides[SIDE_DOWN]);
        fill(&link_bytes[host->up], up, is_ring ? down : (double)NAN);
        fill(&link_bytes[host->down], down, is_ring ? up : (double)NAN);
        fill(&link_bytes[host->memory], side_mean(&sides[SIDE_MEMORY]), (double)NAN);
    }
    groups_finish(&groups);
    return status;
}

/* How much of a link's bandwidth is used, in percent; 0: it has no limit. */
static double busy_percent(const struct network_link *link, double bytes,
                           const struct prediction *made)
{
    double bandwidth = network_free(link);
    return bandwidth > 0 && made->step_s > 0 ? 100 * bytes / bandwidth / made->step_s : 0;
}

json_t *study_links_json(const struct study *study, const struct study_point *point)
{
    struct basis *basis = NULL;
    if (point->link_bytes == NULL || study_make_basis(study, point, &basis) != STATUS_OK) {
        return NULL;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        const struct network_link *link = &basis->network.links[i];
        double bytes = point->link_bytes[i];
        if (bytes == 0) {
            continue;
        }
        json_t *object = json_pack("{s:s, s:o}", "link", link->name, "bytes_per_step",
                                   isnan(bytes) ? json_null() : json_real(bytes));
        if (!isnan(bytes) && link->bandwidth > 0) {
            json_object_set_new(object, "busy_percent",
                                json_real(busy_percent(link, bytes, &point->made)));
        }
        json_array_append_new(list, object);
    }
    basis_destroy(basis);
    return list;
}

/* "out 12.300 (98 %)", or, where they differ, "out 12.100 to 12.300 (98 %)". */
static void print_side(const struct group_side *side, const char *name,
                       const struct network_link *link, const struct prediction *made, FILE *stream)
{
    fprintf(stream, " %s ", name);
    if (side->known == 0) {
        fprintf(stream, "?");
        return;
    }
    fprintf(stream, "%.3f", side->least / 1e6);
    if (side->most > side->least * 1.0005 + 500) { // which the digits show
        fprintf(stream, " to %.3f", side->most / 1e6);
    }
    if (network_free(link) > 0) {
        fprintf(stream, " (%.0f %%)", busy_percent(link, side->most, made));
    }
}

static void print_group(const struct groups *groups, uint32_t index, const struct prediction *made,
                        FILE *stream)
{
    const struct study_group *group = &groups->list[index];
    const struct group_side *sides = sides_of(groups, index);
    bool is_switch = index >= groups->hosts;
    fprintf(stream, "\n  %s", group->name);
    if (group->size > 1) {
        fprintf(stream, " and %u more", group->size - 1);
    }
    if (group->workers > 0) {
        fprintf(stream, ", %u worker%s", group->workers, group->workers == 1 ? "" : "s");
    }
    if (group->servers > 0) {
        fprintf(stream, ", %u server%s", group->servers, group->servers == 1 ? "" : "s");
    }
    fprintf(stream, ":");
    print_side(&sides[SIDE_UP], is_switch ? "up" : "out", group->link, made, stream);
    fprintf(stream, ",");
    print_side(&sides[SIDE_DOWN], is_switch ? "down" : "in", group->link, made, stream);
    if (!is_switch && sides[SIDE_MEMORY].most > 0) {
        fprintf(stream, ", memory %.3f", sides[SIDE_MEMORY].most / 1e6);
    }
}

static void print_point(const struct study *study, const struct study_point *point, FILE *stream)
{
    struct groups groups = {.count = 0};
    struct basis *basis = NULL;
    if (study_make_basis(study, point, &basis) == STATUS_OK &&
        groups_make(basis, point->link_bytes, &groups) == STATUS_OK) {
        fprintf(stream, "\n%s among %u:", study_design_text(point->design).text, point->workers);
        for (uint32_t i = 0; i < groups.count; i++) {
            print_group(&groups, i, &point->made, stream);
        }
    }
    groups_finish(&groups);
    basis_destroy(basis);
}

void study_links_print(const struct study *study, FILE *stream)
{
    fprintf(stream, "\nMB that each link carries in a step, and how busy it is:");
    for (size_t i = 0; i < study->point_count; i++) {
        if (study->points[i].link_bytes != NULL) {
            print_point(study, &study->points[i], stream);
        }
    }
    fprintf(stream, "\n");
}
