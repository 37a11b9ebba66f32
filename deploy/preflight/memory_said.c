/* Adds up what processes take, and puts it into words. */
#include "deploy/preflight/memory_said.h"

#include "common/base/number.h"
#include "common/job/carriers.h"
#include "common/job/job_modes.h"
#include "deploy/hosts/launcher_options.h"

#include <jansson.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_FOLDER "/dev/shm/"
#define HOSTS_NAMED   8 // of more of them, the one with the most is said

struct range {
    uint64_t least, most;
};

static uint64_t bytes_of(const json_t *tried, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(tried, name));
    return value > 0 ? (uint64_t)value : 0;
}

void memory_said_take(const char *line, struct memory_found *found)
{
    json_error_t error;
    json_t *tried = json_loads(line, 0, &error);
    if (bytes_of(tried, "memory_bytes") > 0 && bytes_of(tried, "value_bytes") > 0) {
        *found = (struct memory_found){.worker = bytes_of(tried, "memory_bytes"),
                                       .device = bytes_of(tried, "device_bytes"),
                                       .values = bytes_of(tried, "value_bytes")};
    }
    json_decref(tried);
}

enum job_memory_mirror memory_said_mirror(const char *asked)
{
    if (asked[0] == '\0') {
        return JOB_MEMORY_NO_MIRROR;
    }
    bool is_in_memory = launcher_mirror_is_memory(asked) ||
                        strncmp(asked, MEMORY_FOLDER, strlen(MEMORY_FOLDER)) == 0;
    return is_in_memory ? JOB_MEMORY_MIRROR_IN_MEMORY : JOB_MEMORY_MIRROR;
}

/* The host was tried with the most ranks that a process carries; others need fewer gradients. */
static uint64_t worker_bytes(const struct memory_scene *scene, uint32_t process)
{
    const struct memory_found *found = &scene->found[scene->placement->host_of_worker[process]];
    const struct carriers carriers = job_carriers(scene->job);
    uint32_t ranks = carriers_block(carriers, process).count;
    uint64_t fewer = carriers_gradient_count(scene->job, carriers_most(carriers)) -
                     carriers_gradient_count(scene->job, ranks);
    return found->worker > fewer * found->values ? found->worker - fewer * found->values
                                                 : found->worker;
}

/* Of the processes whose hosts were tried. All zero: none was. */
static struct range range_of_workers(const struct memory_scene *scene)
{
    struct range range = {0};
    for (uint32_t i = 0; i < scene->placement->worker_count; i++) {
        uint64_t bytes = worker_bytes(scene, i);
        if (bytes > 0 && (range.least == 0 || bytes < range.least)) {
            range.least = bytes;
        }
        range.most = bytes > range.most ? bytes : range.most;
    }
    return range;
}

static uint64_t most_of_devices(const struct memory_scene *scene)
{
    uint64_t most = 0;
    for (size_t i = 0; i < scene->hosts->count; i++) {
        most = scene->found[i].device > most ? scene->found[i].device : most;
    }
    return most;
}

static uint64_t values_of(const struct memory_scene *scene)
{
    uint64_t values = 0;
    for (size_t i = 0; i < scene->hosts->count; i++) {
        values = scene->found[i].values > 0 ? scene->found[i].values : values;
    }
    return values;
}

/* Of all processes of a host. */
static uint64_t host_bytes(const struct memory_scene *scene, size_t host)
{
    const struct placement *placement = scene->placement;
    uint64_t bytes = 0, values = values_of(scene);
    for (uint32_t i = 0; i < placement->worker_count; i++) {
        bytes += placement->host_of_worker[i] == host ? worker_bytes(scene, i) : 0;
    }
    for (uint32_t i = 0; i < placement->server_count; i++) {
        if (placement->host_of_server[i] == host) {
            bytes += i == 0 ? job_memory_of_coordinator(scene->job, scene->mirror, values)
                            : job_memory_of_server(scene->job, values);
        }
    }
    return bytes;
}

__attribute__((format(printf, 2, 3))) static void append(char text[MEMORY_SAID_BYTES],
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + used, MEMORY_SAID_BYTES - used, format, values);
    va_end(values);
}

static void append_workers(const struct memory_scene *scene, struct range range, char *text)
{
    char least[NUMBER_SIZE_BYTES], most[NUMBER_SIZE_BYTES], device[NUMBER_SIZE_BYTES];
    uint64_t device_bytes = most_of_devices(scene);
    number_describe_size(range.least, least);
    number_describe_size(range.most, most);
    bool is_one = strcmp(least, most) == 0;
    append(text, "memory: about %s%s%s of its own for each worker process", is_one ? "" : least,
           is_one ? "" : " to ", most);
    if (device_bytes > 0) {
        number_describe_size(device_bytes, device);
        append(text, " (and %s of its GPU, besides what CUDA takes there, which is not known)",
               device);
    }
}

static void append_servers(const struct job *job, uint64_t values, bool is_last, char *text)
{
    char bytes[NUMBER_SIZE_BYTES];
    if (job_has_servers(job) && !job_has_gpu_servers(job)) {
        number_describe_size(job_memory_of_server(job, values), bytes);
        append(text, ", %sup to %s for each server process", is_last ? "and " : "", bytes);
    }
}

/* What each host's processes take. */
static void append_hosts(const struct memory_scene *scene, char *text)
{
    char bytes[NUMBER_SIZE_BYTES];
    size_t largest = 0, used = 0;
    for (size_t i = 0; i < scene->hosts->count; i++) {
        used += placement_uses(scene->placement, i);
        largest = host_bytes(scene, i) > host_bytes(scene, largest) ? i : largest;
    }
    if (used < 2) {
        return;
    }
    bool names_all = used <= HOSTS_NAMED;
    const char *before = names_all ? "memory of each host: " : "memory of a host: ";
    for (size_t i = 0; i < scene->hosts->count; i++) {
        if (names_all ? placement_uses(scene->placement, i) : i == largest) {
            number_describe_size(host_bytes(scene, i), bytes);
            append(text, "%s%s %s %s", before, scene->hosts->list[i].name,
                   names_all ? "about" : "has the most, about", bytes);
            before = ", ";
        }
    }
    append(text, "\n");
}

void memory_said_write(const struct memory_scene *scene, char ret_text[MEMORY_SAID_BYTES])
{
    const struct job *job = scene->job;
    const struct range workers = range_of_workers(scene);
    uint64_t values = values_of(scene);
    uint32_t copy_count = job_memory_copies(job, scene->mirror);
    ret_text[0] = '\0';
    if (workers.least == 0 || job_is_external(job)) {
        return;
    }
    append_workers(scene, workers, ret_text);
    append_servers(job, values, copy_count == 0, ret_text);
    if (copy_count > 0) {
        char copies[NUMBER_SIZE_BYTES];
        number_describe_size(copy_count * job_memory_of_copy(job, values), copies);
        append(ret_text,
               ", and up to %s in the coordinator%s, for copies to go on from after a loss", copies,
               scene->mirror == JOB_MEMORY_MIRROR_IN_MEMORY ? " and its mirror in memory" : "");
    }
    if (job_has_gpu_servers(job)) {
        append(ret_text, "; what servers take on GPUs is not known\n");
        return;
    }
    append(ret_text, "\n");
    append_hosts(scene, ret_text);
}
