/* Keeps count of connections that have not said anything yet, and checks whose they are. */
#include "common/transport/door.h"

#include "common/base/clock.h"
#include "common/transport/local_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Names at which others were found that are kept; more than any attack has, if it is to pay.
#define STRANGERS_MAX 64

#define TURNED_AWAY_MAX 256 // in a row, before whoever listens goes on with other things
#define DESCRIPTORS_MAX (UINT64_C(1) << 20)     // some systems allow a thousand times as many
#define VISITORS_MAX    (3 * DOOR_VISITORS_MAX) // our user's, others', and those about to go

/* Another user's process that listens at a name of ours. */
struct stranger {
    char name[LOCAL_PEER_NAME_BYTES]; // without the zero in front
    char address[DOOR_ADDRESS_BYTES];
};

struct visitor {
    int fd;
    uint32_t listener_id; // to which it has come
    enum local_peer whose;
    bool has_key;      // has shown an allowed one
    bool was_late;     // has been found so
    bool gives_way;    // where there is no room, the next one takes its place
    bool is_sent_away; // to make room: it has none any more, and is about to go
    struct local_peer_address from;
    uint64_t since_ms;
};

/* The process's, like its descriptors: accept(2) has no argument that could say whose it is. */
static struct {
    pthread_mutex_t mutex;
    struct visitor visitors[VISITORS_MAX]; // (count), the oldest first
    _Atomic uint32_t count;
    uint32_t admitted_end; // behind the highest descriptor that ever had one
    struct door_turned_away turned_away;
    struct stranger strangers[STRANGERS_MAX]; // the oldest makes room
    uint32_t stranger_count;                  // that there were
    uint64_t others_since_ms;                 // when the second began of which others_count is
    uint32_t others_count;           // visitors of other users of this host, in that second
    int spare_fd;                    // given up for a moment where there is no other; -1: none
    int peer_fd;                     // to ask whose a connection is; -1: none
    int exempt_fds[DOOR_EXEMPT_MAX]; // whose connections are no visitors; -1: none
} door = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .spare_fd = -1, .peer_fd = -1, .exempt_fds = {-1, -1}};

// By descriptor: the listener of a connection that was admitted there and has not left; 0: none.
static uint32_t admitted[DESCRIPTORS_MAX]; // under the mutex

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void door_open(void)
{
    struct rlimit limit;
    pthread_mutex_lock(&door.mutex);
    if (door.spare_fd < 0) {
        door.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        door.peer_fd = local_peer_open();
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS_MAX) {
        limit.rlim_cur = smaller(limit.rlim_max, DESCRIPTORS_MAX);
        setrlimit(RLIMIT_NOFILE, &limit); // if it fails, there are as many as before
    }
    pthread_mutex_unlock(&door.mutex);
}

uint32_t door_listener_id(int listener)
{
    struct stat about;
    return fstat(listener, &about) == 0 ? (uint32_t)about.st_ino : 0;
}

/* Puts one exempt socket in the place of another; -1: none. */
static void replace_exempt(int before, int after)
{
    pthread_mutex_lock(&door.mutex);
    int *place = &door.exempt_fds[door.exempt_fds[0] == before ? 0 : 1];
    *place = *place == before ? after : *place;
    pthread_mutex_unlock(&door.mutex);
}

void door_exempt(int listener)
{
    replace_exempt(-1, listener);
}

void door_exempt_no_more(int listener)
{
    replace_exempt(listener, -1);
}

static bool is_exempt(int listener)
{
    return door.exempt_fds[0] == listener || door.exempt_fds[1] == listener;
}

static uint64_t descriptor_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

/* Notes to which listener this one was admitted, 0: it has left. Returns whether one was before. */
static bool set_admitted(int fd, uint32_t listener_id)
{
    uint32_t at = (uint32_t)fd, before = 0;
    if (at < DESCRIPTORS_MAX) {
        before = admitted[at];
        admitted[at] = listener_id;
        door.admitted_end = at < door.admitted_end ? door.admitted_end : at + 1;
    }
    return before != 0;
}

static void remove_visitor(uint32_t index)
{
    uint32_t count = door.count;
    memmove(&door.visitors[index], &door.visitors[index + 1],
            (count - index - 1) * sizeof(door.visitors[0]));
    door.count = count - 1;
}

/* The oldest one at this descriptor: if it was used again, the first of them has gone. */
static bool find_visitor(int fd, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < door.count; i++) {
        if (door.visitors[i].fd == fd) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static void forget_old_visitors(uint64_t now_ms)
{
    uint32_t old = 0;
    while (old < door.count && now_ms - door.visitors[old].since_ms >= DOOR_FORGET_MS) {
        old++;
    }
    memmove(&door.visitors[0], &door.visitors[old], (door.count - old) * sizeof(door.visitors[0]));
    door.count -= old;
}

/* Whether the visitor's descriptor is its connection still: it may have been closed, which is told
 * later, and used again. */
static bool is_there(const struct visitor *visitor)
{
    struct sockaddr_storage storage = {0};
    socklen_t size = sizeof(storage);
    struct local_peer_address from;
    return getpeername(visitor->fd, (struct sockaddr *)&storage, &size) == 0 &&
           local_peer_read_address(&storage, &from) && from.port == visitor->from.port &&
           memcmp(&from.host, &visitor->from.host, sizeof(from.host)) == 0;
}

/* Whether both share a limit. */
typedef bool (*sharing)(const struct visitor *one, const struct visitor *other);

static bool share_kind(const struct visitor *one, const struct visitor *other)
{
    return (one->whose == LOCAL_PEER_OWN) == (other->whose == LOCAL_PEER_OWN);
}

static bool share_address(const struct visitor *one, const struct visitor *other)
{
    return share_kind(one, other) &&
           memcmp(&one->from.host, &other->from.host, sizeof(one->from.host)) == 0;
}

static bool share_host(const struct visitor *one, const struct visitor *other)
{
    return one->whose == LOCAL_PEER_OTHER && other->whose == LOCAL_PEER_OTHER;
}

/* Whether there is a place for one more among those that share a limit. The oldest one that gives
 * way makes room. */
static bool has_place(const struct visitor *visitor, sharing shares, uint64_t visitors_max)
{
    struct visitor *oldest = NULL;
    uint64_t count = 0;
    for (uint32_t i = 0; i < door.count; i++) {
        struct visitor *other = &door.visitors[i];
        if (!other->is_sent_away && shares(visitor, other)) {
            count++;
            oldest = oldest == NULL && other->gives_way && is_there(other) ? other : oldest;
        }
    }
    if (count >= visitors_max && oldest != NULL) {
        oldest->is_sent_away = true;
        shutdown(oldest->fd, SHUT_RDWR); // its owner closes it
        count--;
    }
    return count < visitors_max;
}

/* Whether there is a place for one more of another user of this host. */
static bool has_place_for_other(const struct visitor *visitor, uint64_t visitors_max)
{
    visitors_max = smaller(DOOR_OTHERS_MAX, visitors_max / 4);
    if (visitor->since_ms - door.others_since_ms >= 1000) {
        door.others_since_ms = visitor->since_ms;
        door.others_count = 0;
    }
    bool is_in = door.others_count < visitors_max && has_place(visitor, share_host, visitors_max);
    door.others_count += is_in;
    return is_in;
}

/* NULL, or why there is no place for one more from its address. */
static const char *find_no_place(const struct visitor *visitor, uint64_t limit)
{
    uint64_t visitors_max = smaller(DOOR_VISITORS_MAX, limit / 2);
    if ((uint64_t)visitor->fd >= limit - smaller(DOOR_RESERVE, limit / 4)) {
        return "too few file descriptors are left (ulimit -n)";
    }
    if (visitor->whose == LOCAL_PEER_GONE) {
        return "it has hung up without a word";
    }
    if (visitor->whose == LOCAL_PEER_OTHER && !has_place_for_other(visitor, visitors_max)) {
        return "it belongs to another user of this host, and too many of those come";
    }
    bool has_room =
        (visitor->whose == LOCAL_PEER_OWN || has_place(visitor, share_address, visitors_max / 2)) &&
        has_place(visitor, share_kind, visitors_max) && door.count < VISITORS_MAX;
    return has_room ? NULL : "too many that have said nothing so far are open";
}

static void note_turned_away(const char *address, const char *why)
{
    door.turned_away.count++;
    door.turned_away.why = why;
    snprintf(door.turned_away.address, sizeof(door.turned_away.address), "%s", address);
}

/* Whether the connection may stay. */
static bool receive_visitor(int fd, uint32_t listener_id, const struct sockaddr_storage *storage)
{
    struct visitor visitor = {.fd = fd, .since_ms = clock_now_ms(), .listener_id = listener_id};
    char address[DOOR_ADDRESS_BYTES];
    const char *why = NULL;
    if (local_peer_read_address(storage, &visitor.from)) {
        uid_t user;
        visitor.whose = local_peer_find(door.peer_fd, fd, &user);
        forget_old_visitors(visitor.since_ms);
        why = find_no_place(&visitor, descriptor_limit());
        local_peer_format_address(&visitor.from, address, sizeof(address));
        if (why == NULL) {
            door.visitors[door.count++] = visitor;
        }
    } else if (storage->ss_family == AF_UNIX) {
        why = local_peer_find_no_right(fd, address, sizeof(address));
    }
    if (why != NULL) {
        note_turned_away(address, why);
    } else if (storage->ss_family == AF_UNIX) {
        set_admitted(fd, visitor.listener_id);
    }
    return why == NULL;
}

/* There is no descriptor left: takes the connection by the spare one, and closes it. Otherwise
 * whoever listens would be told of it again and again. */
static void turn_away_next(int fd)
{
    struct sockaddr_storage storage = {0};
    socklen_t size = sizeof(storage);
    struct local_peer_address from;
    char address[DOOR_ADDRESS_BYTES] = "a local process";
    close(door.spare_fd);
    int taken = (int)syscall(SYS_accept4, fd, &storage, &size, SOCK_CLOEXEC);
    if (taken >= 0) {
        if (local_peer_read_address(&storage, &from)) {
            local_peer_format_address(&from, address, sizeof(address));
        }
        note_turned_away(address, "no file descriptor is left (ulimit -n)");
        close(taken);
    }
    door.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* What its callers can take: libzmq ends the process on errors that it does not expect. */
static int error_of_accept(int error)
{
    bool is_shortage =
        error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EPERM;
    return is_shortage ? ECONNABORTED : error;
}

/* One that may stay, or -1 and an error. *ret_is_turned_away: there was one that may not. */
static int take_one(int fd, struct sockaddr_storage *storage, socklen_t *size, int flags,
                    bool *ret_is_turned_away)
{
    int taken = (int)syscall(SYS_accept4, fd, storage, size, flags);
    int error = errno;
    *ret_is_turned_away = false;
    pthread_mutex_lock(&door.mutex);
    if (taken >= 0) {
        *ret_is_turned_away =
            !is_exempt(fd) && !receive_visitor(taken, door_listener_id(fd), storage);
    } else if ((error == EMFILE || error == ENFILE) && door.spare_fd >= 0) {
        turn_away_next(fd);
    }
    pthread_mutex_unlock(&door.mutex);
    if (*ret_is_turned_away) {
        close(taken);
        errno = ECONNABORTED;
        return -1;
    }
    errno = error_of_accept(error);
    return taken;
}

static bool has_more(int listener)
{
    struct pollfd item = {.fd = listener, .events = POLLIN};
    return poll(&item, 1, 0) == 1;
}

int door_take(int fd, struct sockaddr *address, socklen_t *address_size, int flags)
{
    struct sockaddr_storage storage;
    socklen_t size;
    bool is_turned_away;
    int taken, turns = 0;
    do { // a crowd is turned away faster than it comes
        memset(&storage, 0, sizeof(storage));
        size = sizeof(storage);
        taken = take_one(fd, &storage, &size, flags, &is_turned_away);
    } while (is_turned_away && ++turns < TURNED_AWAY_MAX && has_more(fd));
    if (taken < 0) {
        errno = is_turned_away ? ECONNABORTED : errno;
        return -1;
    }
    if (address != NULL && address_size != NULL) {
        memcpy(address, &storage, smaller(size, *address_size));
        *address_size = size;
    }
    return taken;
}

/* NULL if there was none at that name. */
static struct stranger *find_stranger(const char *name)
{
    for (uint32_t i = 0; i < door.stranger_count && i < STRANGERS_MAX; i++) {
        if (strcmp(door.strangers[i].name, name) == 0) {
            return &door.strangers[i];
        }
    }
    return NULL;
}

static void note_stranger(const char *name, const char *address)
{
    struct stranger *stranger = find_stranger(name);
    if (stranger == NULL) {
        stranger = &door.strangers[door.stranger_count++ % STRANGERS_MAX];
    }
    snprintf(stranger->name, sizeof(stranger->name), "%s", name);
    snprintf(stranger->address, sizeof(stranger->address), "%s", address);
}

int door_reach(int fd, const struct sockaddr *address, socklen_t size)
{
    char name[LOCAL_PEER_NAME_BYTES], peer[DOOR_ADDRESS_BYTES];
    int result = (int)syscall(SYS_connect, fd, address, size);
    if (result != 0 || !local_peer_read_name(address, size, name) ||
        local_peer_find_no_right(fd, peer, sizeof(peer)) == NULL) {
        return result;
    }
    shutdown(fd, SHUT_RDWR);
    pthread_mutex_lock(&door.mutex);
    note_stranger(name, peer);
    note_turned_away(peer, "it listens where a member of this job should, and belongs to another "
                           "user");
    pthread_mutex_unlock(&door.mutex);
    errno = ECONNREFUSED;
    return -1;
}

bool door_find_stranger(const char *name, char ret_address[DOOR_ADDRESS_BYTES])
{
    pthread_mutex_lock(&door.mutex);
    const struct stranger *stranger = find_stranger(name);
    if (stranger != NULL) {
        snprintf(ret_address, DOOR_ADDRESS_BYTES, "%s", stranger->address);
    }
    pthread_mutex_unlock(&door.mutex);
    return stranger != NULL;
}

uint32_t door_visitor_count(void)
{
    return door.count;
}

void door_admit(int fd)
{
    uint32_t index;
    pthread_mutex_lock(&door.mutex);
    if (find_visitor(fd, &index)) {
        set_admitted(fd, door.visitors[index].listener_id);
        remove_visitor(index);
    }
    pthread_mutex_unlock(&door.mutex);
}

void door_note_key(const char *host)
{
    struct in6_addr from;
    bool is_address = local_peer_parse_host(host, &from);
    pthread_mutex_lock(&door.mutex);
    for (uint32_t i = is_address ? door.count : 0; i-- > 0;) {
        struct visitor *visitor = &door.visitors[i];
        if (!visitor->has_key && memcmp(&visitor->from.host, &from, sizeof(from)) == 0) {
            visitor->has_key = true;
            break;
        }
    }
    pthread_mutex_unlock(&door.mutex);
}

enum door_visit door_leave(int fd, char ret_address[DOOR_ADDRESS_BYTES])
{
    enum door_visit visit = DOOR_NO_VISIT;
    uint32_t index;
    pthread_mutex_lock(&door.mutex);
    forget_old_visitors(clock_now_ms());
    if (!set_admitted(fd, 0) && find_visitor(fd, &index)) {
        visit = door.visitors[index].has_key ? DOOR_KEY : DOOR_VISIT;
        local_peer_format_address(&door.visitors[index].from, ret_address, DOOR_ADDRESS_BYTES);
        remove_visitor(index);
    }
    pthread_mutex_unlock(&door.mutex);
    return visit;
}

void door_end_visits(uint32_t listener_id, uint64_t now_ms)
{
    pthread_mutex_lock(&door.mutex);
    for (uint32_t i = 0; i < door.count; i++) {
        struct visitor *visitor = &door.visitors[i];
        if (visitor->since_ms + DOOR_SETTLE_MS > now_ms) {
            break; // those behind it came later
        }
        if (visitor->listener_id != listener_id) {
            continue;
        }
        visitor->gives_way = true;
        if (visitor->since_ms + DOOR_VISIT_MS > now_ms) {
            continue;
        }
        if (visitor->was_late && is_there(visitor)) {
            shutdown(visitor->fd, SHUT_RDWR); // its owner closes it
        }
        visitor->was_late = true;
    }
    pthread_mutex_unlock(&door.mutex);
}

void door_forget(uint32_t listener_id)
{
    pthread_mutex_lock(&door.mutex);
    for (uint32_t fd = 0; fd < door.admitted_end; fd++) {
        admitted[fd] = admitted[fd] == listener_id ? 0 : admitted[fd];
    }
    for (uint32_t i = door.count; i-- > 0;) {
        if (door.visitors[i].listener_id == listener_id) {
            remove_visitor(i);
        }
    }
    pthread_mutex_unlock(&door.mutex);
}

struct door_turned_away door_take_turned_away(void)
{
    pthread_mutex_lock(&door.mutex);
    struct door_turned_away taken = door.turned_away;
    door.turned_away = (struct door_turned_away){0};
    pthread_mutex_unlock(&door.mutex);
    return taken;
}
