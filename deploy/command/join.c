/* ringside join: a worker that joins a job which is under way. */
#include "common/base/log.h"
#include "common/base/number.h"
#include "common/options/options.h"
#include "common/service/launch_number.h"
#include "common/transport/transport.h"
#include "deploy/command/commands.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535

static const struct option_program program = {
    .name = "ringside join",
    .usage = "ringside join SERVER [OPTION ...]",
    .summary =
        "Starts a worker on this host that joins a running job, and takes ranks from the workers "
        "that carry\nseveral: after a loss, or where the job has fewer --processes than --workers. "
        "SERVER is what `ps`\nprints, or HOST:PORT. All options of `ringside worker` may follow "
        "but those of its place: --server,\n--rank, --launcher.",
    .example = "  ringside join tcp://10.0.0.7:41397 --keys job.keys --bind 0.0.0.0\n"
               "  ringside join ipc:///proc/4711/fd/13\n",
};

/* What follows SERVER: NULL, or the option that is not for it. */
static const char *find_foreign(char **options, int count)
{
    static const char *const foreign[] = {"--server", "--rank", "--launcher"};
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof(foreign) / sizeof(foreign[0]); k++) {
            size_t size = strlen(foreign[k]);
            if (strncmp(options[i], foreign[k], size) == 0 &&
                (options[i][size] == '\0' || options[i][size] == '=')) {
                return foreign[k];
            }
        }
    }
    return NULL;
}

/* The endpoint of SERVER, which may leave out that it is reached by tcp. */
static bool write_endpoint(const char *server, char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    const char *scheme = strstr(server, "://") != NULL ? "" : "tcp://";
    int length = snprintf(ret_endpoint, TRANSPORT_ENDPOINT_BYTES, "%s%s", scheme, server);
    return length > 0 && length < TRANSPORT_ENDPOINT_BYTES;
}

/* Whether it ends with a port, if it is reached by tcp. */
static bool has_port(const char *endpoint)
{
    static const char prefix[] = "tcp://";
    uint64_t port = 0;
    if (strncmp(endpoint, prefix, strlen(prefix)) != 0) {
        return true;
    }
    const char *text = strrchr(endpoint, ':') + 1;
    return number_whole(text, strlen(text), PORT_MAX, &port) && port > 0;
}

/* Whether the host of the endpoint has an address, if it is reached by tcp. Says so if it has
 * none. */
static bool has_host(const char *endpoint)
{
    static const char prefix[] = "tcp://";
    char host[TRANSPORT_ENDPOINT_BYTES];
    struct addrinfo *addresses = NULL;
    if (strncmp(endpoint, prefix, strlen(prefix)) != 0 || strpbrk(endpoint, "[;") != NULL) {
        return true; // the socket looks at these
    }
    const char *begin = endpoint + strlen(prefix);
    snprintf(host, sizeof(host), "%.*s", (int)(strrchr(begin, ':') - begin), begin);
    int error = getaddrinfo(host, NULL, NULL, &addresses);
    if (error != 0) {
        log_error("there is no way to the host of SERVER, '%s': %s; is that its name?", host,
                  gai_strerror(error));
        return false;
    }
    freeaddrinfo(addresses);
    return true;
}

/* What this shell has from a process of a launcher that it is below: that one's place. */
static void drop_place(void)
{
    unsetenv(LAUNCH_NUMBER_VARIABLE);
    unsetenv("RINGSIDE_RANK");
}

/* A worker takes the coordinator's choice of a rank, whatever launcher this shell is below. Unless
 * somebody asks for less, it says how it gets on: nobody else does where it runs. */
static enum exit_code join(char *endpoint, char **options, int count)
{
    char server[] = "--server", launcher[] = "--launcher", none[] = "none", name[] = "worker";
    char **argv = calloc((size_t)count + 6, sizeof(*argv));
    if (argv == NULL) {
        log_error("cannot start a worker: %s", status_text(STATUS_NO_MEMORY));
        return EXIT_FAILED;
    }
    char *const before[] = {name, server, endpoint, launcher, none};
    drop_place();
    setenv("RINGSIDE_LOG_LEVEL", "info", false);
    memcpy(argv, before, sizeof(before));
    memcpy(argv + 5, options, (size_t)count * sizeof(*options));
    enum exit_code code = command_worker(count + 5, argv); // returns only if it cannot be started
    free(argv);
    return code;
}

enum exit_code command_join(int argc, char **argv)
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        options_print_help(&program, stdout);
        return EXIT_COMPLETED;
    }
    if (strcmp(first, "--describe-options") == 0) {
        options_describe(&program, stdout);
        return EXIT_COMPLETED;
    }
    if (first[0] == '\0' || first[0] == '-') {
        log_error("SERVER comes first: where the coordinator of the job listens, such as "
                  "tcp://10.0.0.7:41397");
        return EXIT_USAGE;
    }
    const char *foreign = find_foreign(argv + 2, argc - 2);
    if (foreign != NULL) {
        log_error("%s is not for `ringside join`: the coordinator gives the worker its place",
                  foreign);
        return EXIT_USAGE;
    }
    if (!write_endpoint(first, endpoint)) {
        log_error("'%.60s...' is too long for an endpoint", first);
        return EXIT_USAGE;
    }
    if (!has_port(endpoint)) {
        log_error("SERVER is '%.200s', which does not end with a port: it is HOST:PORT with a port "
                  "from 1 to %d, such as 10.0.0.7:41397",
                  first, PORT_MAX);
        return EXIT_USAGE;
    }
    return has_host(endpoint) ? join(endpoint, argv + 2, argc - 2) : EXIT_FAILED;
}
