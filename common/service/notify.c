/* Sends datagrams to the service manager. */
#include "common/service/notify.h"

#include "common/base/log.h"
#include "common/base/number.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_BYTES 384

struct notify {
    int file;              // -1: none
    struct health *health; // owned; NULL: none
    struct sockaddr_un address;
    socklen_t address_size;
    uint64_t interval_ms;     // between signs of life; 0: nobody waits for them
    uint64_t alive_ms;        // of the last one
    char pending[TEXT_BYTES]; // could not be sent yet; "": nothing
};

/* "/run/socket", or "@name" for a name that is in no folder. */
static bool set_address(struct notify *notify, const char *name)
{
    size_t size = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || size < 2 ||
        size >= sizeof(notify->address.sun_path)) {
        return false;
    }
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, size);
    bool is_abstract = name[0] == '@';
    if (is_abstract) {
        notify->address.sun_path[0] = '\0';
    }
    notify->address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (is_abstract ? 0 : 1));
    return true;
}

/* A whole number of the environment; false if there is none. */
static bool read_whole(char *(*get)(const char *name), const char *name, uint64_t *ret_value)
{
    const char *text = get(name);
    return text != NULL && number_whole(text, strlen(text), UINT64_MAX, ret_value);
}

/* Opens what NOTIFY_SOCKET names, if it is there and good. */
static void open_socket(struct notify *notify, char *(*get)(const char *name))
{
    const char *name = get("NOTIFY_SOCKET");
    if (name == NULL || name[0] == '\0') {
        return;
    }
    if (!set_address(notify, name)) {
        log_warn("NOTIFY_SOCKET is '%.60s', which is not a socket of this host; it is ignored",
                 name);
        return;
    }
    notify->file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->file < 0) {
        log_warn("no socket to tell NOTIFY_SOCKET anything: %m");
        return;
    }
    uint64_t watchdog_us, process;
    bool is_ours = !read_whole(get, "WATCHDOG_PID", &process) || process == (uint64_t)getpid();
    if (is_ours && read_whole(get, "WATCHDOG_USEC", &watchdog_us) && watchdog_us > 0) {
        notify->interval_ms = watchdog_us / 2000 + (watchdog_us < 2000);
    }
}

struct notify *notify_create(char *(*get)(const char *name), struct health *health)
{
    struct notify *notify = calloc(1, sizeof(*notify));
    if (notify == NULL) {
        health_destroy(health);
        return NULL;
    }
    notify->file = -1;
    notify->health = health;
    open_socket(notify, get);
    if (notify->file < 0 && health == NULL) {
        free(notify);
        return NULL;
    }
    return notify;
}

void notify_destroy(struct notify *notify)
{
    if (notify == NULL) {
        return;
    }
    if (notify->file >= 0) {
        close(notify->file);
    }
    health_destroy(notify->health);
    free(notify);
}

/* Does not wait: a manager that is busy gets it later, and a loop must not hang on it. */
static bool send_text(const struct notify *notify, const char *text)
{
    ssize_t sent = sendto(notify->file, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                          (const struct sockaddr *)&notify->address, notify->address_size);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS) {
        log_debug("NOTIFY_SOCKET does not take anything: %m");
    }
    return sent >= 0;
}

void notify_ready(struct notify *notify, const char *status)
{
    if (notify == NULL) {
        return;
    }
    health_ready(notify->health);
    if (notify->file < 0) {
        return;
    }
    snprintf(notify->pending, sizeof(notify->pending), "READY=1\nSTATUS=%s\n", status);
    if (send_text(notify, notify->pending)) {
        notify->pending[0] = '\0';
    }
}

void notify_alive(struct notify *notify, uint64_t now_ms)
{
    if (notify == NULL) {
        return;
    }
    health_alive(notify->health, now_ms);
    if (notify->file < 0) {
        return;
    }
    if (notify->pending[0] != '\0' && send_text(notify, notify->pending)) {
        notify->pending[0] = '\0';
    }
    bool is_due = notify->interval_ms > 0 && now_ms - notify->alive_ms >= notify->interval_ms;
    if (is_due && send_text(notify, "WATCHDOG=1\n")) {
        notify->alive_ms = now_ms;
    }
}

void notify_stopping(struct notify *notify)
{
    if (notify != NULL && notify->file >= 0) {
        (void)send_text(notify, "STOPPING=1\n");
    }
}
