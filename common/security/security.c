/* Holds the options of security, and decides where a connection needs keys. */
#include "common/security/security.h"

#include "common/base/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Names at which the transport checks which user is at the other end: these, and private paths.
#define IPC_PREFIX  "ipc://@" SECURITY_NAME_PREFIX
#define PATH_PREFIX "ipc://"

static const char *const verbs[] = {
    [SECURITY_LISTEN] = "listen at",
    [SECURITY_CONNECT] = "connect to",
};

#define FIELD(kind, field) OPTION_FIELD(kind, security_options, field)

static const struct option rows[] = {
    {.name = "keys",
     FIELD(TEXT, keys),
     .fallback = "",
     .metavar = "FILE",
     .help = "the job's key file, as `ringside keygen` makes it; - reads it from standard input"},
    {.name = "insecure",
     FIELD(FLAG, insecure),
     .fallback = "false",
     .help = "use tcp without keys: anybody who reaches a port can read and change the job; on the "
             "loopback interface that is every user of this host"},
};

struct option_set security_option_set(struct security_options *options)
{
    return (struct option_set){.title = "Security",
                               .rows = rows,
                               .count = sizeof(rows) / sizeof(rows[0]),
                               .values = options};
}

enum status security_check_options(const struct security_options *options)
{
    if (options->keys[0] != '\0' && options->insecure) {
        log_error("--keys and --insecure contradict each other: connections have keys or none");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

void security_forbid_core_dumps(void)
{
    // 1 is less than any file takes, and the one limit that the kernel heeds where core dumps go to
    // a program (core(5)).
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max > 0) {
        limit.rlim_cur = 1;
        setrlimit(RLIMIT_CORE, &limit); // lowering it cannot fail
        return;
    }
    // There may be none, so a program would get one: without memory in it.
    int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (filter < 0 || write(filter, "0", 1) != 1) {
        log_debug("what core dumps have in them cannot be changed: %m");
    }
    if (filter >= 0) {
        close(filter);
    }
}

enum status security_open(const struct security_options *options, struct security *ret_security)
{
    *ret_security = (struct security){.is_insecure = options->insecure};
    if (options->insecure) {
        log_warn("--insecure: connections are neither encrypted nor authenticated; whoever reaches "
                 "a port of this job can read and change it");
    }
    if (options->keys[0] == '\0') {
        return STATUS_OK;
    }
    security_forbid_core_dumps();
    return keys_read(options->keys, &ret_security->keys);
}

void security_close(struct security *security)
{
    keys_destroy(security->keys);
    *security = (struct security){0};
}

static bool is_loopback_number(const char *host)
{
    struct in_addr ipv4;
    struct in6_addr ipv6;
    if (inet_pton(AF_INET, host, &ipv4) == 1) {
        return ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return inet_pton(AF_INET6, host, &ipv6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&ipv6) ||
            (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == IN_LOOPBACKNET));
}

bool security_is_local_address(const char *address)
{
    return strcmp(address, "localhost") == 0 || is_loopback_number(address);
}

bool security_is_local(const char *endpoint)
{
    const char *prefix = "tcp://";
    char host[128];
    if (strncmp(endpoint, prefix, strlen(prefix)) != 0) {
        return true;
    }
    const char *start = endpoint + strlen(prefix), *colon = strrchr(start, ':');
    size_t size = colon != NULL ? (size_t)(colon - start) : strlen(start);
    if (size >= 2 && start[0] == '[' && start[size - 1] == ']') {
        start++;
        size -= 2;
    }
    if (size >= sizeof(host)) {
        return false;
    }
    memcpy(host, start, size);
    host[size] = '\0';
    return security_is_local_address(host);
}

const char *security_told_loopback(const char *coordinator, const char *address)
{
    bool is_reached_so =
        strncmp(coordinator, "tcp://", strlen("tcp://")) == 0 && security_is_local(coordinator);
    return security_is_local_address(address) && !is_reached_so ? address : "";
}

/* NULL, or what the keys lack. */
static const char *find_lack(const struct keys *keys, enum security_role role)
{
    if (role == SECURITY_LISTEN && !keys->server.has_secret) {
        return "server-secret, which a process that listens needs";
    }
    if (role == SECURITY_LISTEN && !keys->client.has_public && keys->allowed_count == 0) {
        return "client-public and no allow: nobody could connect";
    }
    if (role == SECURITY_CONNECT && !keys->client.has_secret) {
        return "client-secret, which a process that connects needs";
    }
    return NULL;
}

/* Steps over `text`, or over digits where it is NULL. NULL if it is not there. */
static const char *skip(const char *at, const char *text)
{
    size_t size = text != NULL ? strlen(text) : strspn(at, "0123456789");
    bool is_there = size > 0 && (text == NULL || strncmp(at, text, size) == 0);
    return is_there ? at + size : NULL;
}

bool security_is_private_path(const char *path)
{
    const char *const parts[] = {"/proc/", NULL, "/fd/", NULL};
    const char *at = path;
    for (size_t i = 0; at != NULL && i < sizeof(parts) / sizeof(parts[0]); i++) {
        at = skip(at, parts[i]);
    }
    return at != NULL && *at == '\0';
}

bool security_allows_tcp(const struct security *security)
{
    return security != NULL && (security->keys != NULL || security->is_insecure);
}

/* Says what there is to do instead. */
static void log_keyless(enum security_role role, const char *endpoint)
{
    const char *const keys = "make a key file with `ringside keygen FILE` and give it to all "
                             "processes of the job with --keys FILE";
    if (!security_is_local(endpoint)) {
        log_error("cannot %s %s without keys: it is not on the loopback interface; %s, or say "
                  "--insecure if everybody on that network may take part",
                  verbs[role], endpoint, keys);
    } else if (role == SECURITY_LISTEN) {
        log_error("cannot listen at %s without keys: every user of this host could connect; leave "
                  "out --bind and --port and use the ipc endpoint that `ps` prints then, or %s, or "
                  "say --insecure if every user may take part",
                  endpoint, keys);
    } else {
        log_error(
            "cannot connect to %s without keys: every user of this host could listen there; "
            "start `ps` without --bind and --port and use the ipc endpoint that it prints, or "
            "%s, or say --insecure if every user may take part",
            endpoint, keys);
    }
}

enum status security_check(const struct security *security, enum security_role role,
                           const char *endpoint)
{
    bool is_ipc = strncmp(endpoint, IPC_PREFIX, strlen(IPC_PREFIX)) == 0 ||
                  (strncmp(endpoint, PATH_PREFIX, strlen(PATH_PREFIX)) == 0 &&
                   security_is_private_path(endpoint + strlen(PATH_PREFIX)));
    bool is_tcp = strncmp(endpoint, "tcp://", strlen("tcp://")) == 0;
    if (!is_tcp && !is_ipc) {
        log_error("cannot %s %s: an endpoint is tcp://HOST:PORT, " SECURITY_LOCAL_ENDPOINT
                  " or " IPC_PREFIX "NAME, as `ps` prints it",
                  verbs[role], endpoint);
        return STATUS_INVALID;
    }
    if (security != NULL && security->keys != NULL) {
        const char *lack = is_tcp ? find_lack(security->keys, role) : NULL;
        if (lack != NULL) {
            log_error("cannot %s %s: the key file has no %s", verbs[role], endpoint, lack);
            return STATUS_INVALID;
        }
        return STATUS_OK;
    }
    if (!is_tcp || security_allows_tcp(security)) {
        return STATUS_OK;
    }
    log_keyless(role, endpoint);
    return STATUS_INVALID;
}
