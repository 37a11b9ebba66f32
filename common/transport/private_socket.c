/* Binds a Unix socket in a folder that is gone a moment later, and names it through /proc. */
#include "common/transport/private_socket.h"

#include "common/base/log.h"
#include "common/security/security.h"
#include "common/transport/door.h"

#include <sodium.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FILE_NAME  "s"
#define PREFIX     "ipc://"
#define PATH_BYTES 64
#define NAME_BYTES 16 // of an abstract name, drawn

// Where a folder can be made: first where nothing goes to a disk or over a network.
static const char *const places[] = {"/dev/shm", "/tmp", "/var/tmp", NULL};

/* A fresh folder of this user alone; its descriptor, or -1. */
static int make_folder(char *path, size_t size)
{
    const char *own = getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *place = places[i] != NULL ? places[i] : own;
        if (place == NULL ||
            snprintf(path, size, "%s/ringside-socket-XXXXXX", place) >= (int)size ||
            mkdtemp(path) == NULL) {
            continue;
        }
        int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0) {
            return folder;
        }
        rmdir(path);
    }
    return -1;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

/* Binds to a file in the folder, and opens it. */
static bool bind_in(int folder, struct private_socket *made)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/proc/self/fd/%d/" FILE_NAME, folder); // never too long
    struct sockaddr_un address = address_of(path);
    made->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made->listener < 0 ||
        bind(made->listener, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        return false;
    }
    made->file = openat(folder, FILE_NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    unlinkat(folder, FILE_NAME, 0);
    return made->file >= 0;
}

/* Whether a connection gets there by that name: some systems that look like Linux know none. */
static bool is_found(const struct private_socket *made)
{
    struct sockaddr_un address = address_of(made->endpoint + strlen(PREFIX));
    int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected =
        own >= 0 && connect(own, (const struct sockaddr *)&address, sizeof(address)) == 0;
    int taken = is_connected ? accept4(made->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    if (taken >= 0) {
        char text[DOOR_ADDRESS_BYTES];
        (void)door_leave(taken, text); // nobody else tells its end
        close(taken);
    }
    if (own >= 0) {
        close(own);
    }
    return taken >= 0;
}

static void close_both(const struct private_socket *made)
{
    if (made->listener >= 0) {
        close(made->listener);
    }
    if (made->file >= 0) {
        close(made->file);
    }
}

/* NULL, or why there is none. */
static const char *open_private(struct private_socket *made)
{
    char path[256];
    if (prctl(PR_GET_DUMPABLE) != 1) { // as of a program that its user may not read
        return "the system hides this process from others of its user";
    }
    int folder = make_folder(path, sizeof(path));
    if (folder < 0) {
        return "no folder can be made in /dev/shm, /tmp, /var/tmp or TMPDIR";
    }
    bool is_bound = bind_in(folder, made);
    close(folder);
    rmdir(path);
    snprintf(made->endpoint, sizeof(made->endpoint), PREFIX "/proc/%ld/fd/%d", (long)getpid(),
             made->file);
    return is_bound && listen(made->listener, PRIVATE_SOCKET_BACKLOG) == 0 && is_found(made)
               ? NULL
               : "sockets cannot be found through /proc here";
}

/* Any user of the host may take an abstract name, so it is drawn: nobody can be there first. */
static void draw_name(char endpoint[PRIVATE_SOCKET_ENDPOINT_BYTES])
{
    unsigned char bits[NAME_BYTES];
    char text[2 * NAME_BYTES + 1];
    randombytes_buf(bits, sizeof(bits));
    snprintf(endpoint, PRIVATE_SOCKET_ENDPOINT_BYTES, PREFIX "@" SECURITY_NAME_PREFIX "%s",
             sodium_bin2hex(text, sizeof(text), bits, sizeof(bits)));
}

void private_socket_open(struct private_socket *ret_socket)
{
    struct private_socket made = {.listener = -1, .file = -1};
    const char *why = open_private(&made);
    if (why != NULL) {
        close_both(&made);
        made.listener = made.file = -1;
        draw_name(made.endpoint);
        log_warn("other users of this host can crowd the Unix socket of this process, though none "
                 "of them gets in: it has no private name, because %s",
                 why);
    }
    *ret_socket = made;
}
