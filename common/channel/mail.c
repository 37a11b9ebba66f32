/* Posts headers into queues that the sender owns, and takes them from the peer's. */
#include "common/channel/mail.h"

#include "common/base/log.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS    64
#define CACHE_LINE 64
#define RINGS_MAX  256 // rings that are silenced at once

struct record {
    uint64_t after; // this many messages by the socket come first
    uint32_t size;
    unsigned char bytes[MAIL_BYTES];
};

struct mail_box {
    // Written once: the owner's bell.
    uint32_t bell_descriptor; // in its process
    uint64_t bell_inode;      // shows that it is still the same pipe

    // Written when the owner takes, sleeps and wakes.
    _Atomic uint64_t read; // how many of the peer's messages it has taken
    _Atomic uint32_t naps; // odd while it sleeps

    // Written when the owner posts.
    _Alignas(CACHE_LINE) _Atomic uint64_t written;
    struct record records[RECORDS];
};

void mail_finish(struct mail *mail)
{
    if (mail->region.bytes != NULL) {
        close(mail->bell);
        close(mail->bell_end);
    }
    region_destroy(&mail->region);
    *mail = (struct mail){0};
}

void mail_forget(struct mail_peer *peer)
{
    if (peer->in != NULL) {
        close(peer->bell);
    }
    region_close(&peer->view);
}

/* Makes a pipe that does not block, and reads what distinguishes it from others. */
static enum status make_bell(struct mail *mail, uint64_t *ret_inode)
{
    int ends[2];
    struct stat facts;
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        log_error("cannot make a bell for messages in shared memory: %m");
        return STATUS_IO;
    }
    if (fstat(ends[0], &facts) != 0) {
        log_error("cannot make a bell for messages in shared memory: %m");
        close(ends[0]);
        close(ends[1]);
        return STATUS_IO;
    }
    mail->bell = ends[0];
    mail->bell_end = ends[1];
    *ret_inode = facts.st_ino;
    return STATUS_OK;
}

static enum status create_region(struct mail *mail)
{
    uint64_t inode = 0;
    enum status status = region_create(MAIL_PEERS_MAX * sizeof(struct mail_box), &mail->region);
    if (status == STATUS_OK) {
        status = make_bell(mail, &inode);
    }
    if (status != STATUS_OK) {
        region_destroy(&mail->region);
        return status;
    }
    struct mail_box *boxes = mail->region.bytes;
    for (uint32_t i = 0; i < MAIL_PEERS_MAX; i++) {
        boxes[i].bell_descriptor = (uint32_t)mail->bell;
        boxes[i].bell_inode = inode;
    }
    return STATUS_OK;
}

enum status mail_open(struct mail *mail, struct mail_peer *peer, struct mail_offer *ret_offer)
{
    enum status status = mail->region.bytes == NULL ? create_region(mail) : STATUS_OK;
    if (status != STATUS_OK) {
        return status;
    }
    if (peer->out != NULL || mail->peer_count == MAIL_PEERS_MAX) {
        return STATUS_UNSUPPORTED;
    }
    *ret_offer = (struct mail_offer){mail->region.key, mail->peer_count};
    peer->out = (struct mail_box *)mail->region.bytes + mail->peer_count;
    mail->peers[mail->peer_count++] = peer;
    return STATUS_OK;
}

void mail_offered(struct mail_peer *peer)
{
    peer->sent = 0;
}

/* Opens the write end of a peer's bell. STATUS_UNREACHABLE if there is none that this process may
 * open. */
static enum status open_bell(const struct region_key *key, const struct mail_box *box,
                             int *ret_bell)
{
    char path[64], target[64] = "", expected[64];
    struct stat facts;
    uint64_t inode = box->bell_inode;
    snprintf(path, sizeof(path), "/proc/%llu/fd/%u", (unsigned long long)key->process_id,
             box->bell_descriptor);
    snprintf(expected, sizeof(expected), "pipe:[%llu]", (unsigned long long)inode);
    // Checks what it is without opening it, because opening something else could have effects.
    if (readlink(path, target, sizeof(target) - 1) <= 0 || strcmp(target, expected) != 0) {
        return STATUS_UNREACHABLE;
    }
    // Opened for reading, too, so that it never looks closed, and a write to a process that is gone
    // raises no SIGPIPE.
    int bell = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (bell < 0) {
        return STATUS_UNREACHABLE;
    }
    if (fstat(bell, &facts) != 0 || !S_ISFIFO(facts.st_mode) || facts.st_ino != inode) {
        close(bell);
        return STATUS_UNREACHABLE;
    }
    *ret_bell = bell;
    return STATUS_OK;
}

enum status mail_map(struct mail_peer *peer, const struct mail_offer *offer)
{
    if (peer->in != NULL || offer->index >= offer->region.size / sizeof(struct mail_box)) {
        return STATUS_MALFORMED;
    }
    enum status status = region_open(&offer->region, REGION_READ, &peer->view);
    if (status != STATUS_OK) {
        return status;
    }
    struct mail_box *in = (struct mail_box *)(void *)peer->view.bytes + offer->index;
    status = open_bell(&offer->region, in, &peer->bell);
    if (status != STATUS_OK) {
        region_close(&peer->view);
        return status;
    }
    peer->in = in;
    peer->received = 0;
    return STATUS_OK;
}

void mail_begin(struct mail_peer *peer)
{
    peer->may_post = peer->out != NULL;
}

/* Wakes a sleeping peer, once for each sleep. */
static void ring(struct mail_peer *to)
{
    uint32_t naps = atomic_load(&to->in->naps);
    if (naps % 2 == 0 || naps == to->rung) {
        return;
    }
    to->rung = naps;
    // A peer that is gone needs no bell, and one with a full pipe of rings wakes up anyway.
    ssize_t wrote = write(to->bell, "", 1);
    (void)wrote;
}

bool mail_post(struct mail_peer *to, const void *header, size_t size)
{
    if (!to->may_post || to->in == NULL || size > MAIL_BYTES) {
        return false;
    }
    uint64_t written = atomic_load_explicit(&to->out->written, memory_order_relaxed);
    if (written - atomic_load_explicit(&to->in->read, memory_order_acquire) >= RECORDS) {
        return false;
    }
    struct record *record = &to->out->records[written % RECORDS];
    record->after = to->sent;
    record->size = (uint32_t)size;
    memcpy(record->bytes, header, size);
    // Before the peer is looked at, so that either the peer sees the message, or this sees the peer
    // sleep.
    atomic_store(&to->out->written, written + 1);
    ring(to);
    return true;
}

void mail_note_sent(struct mail_peer *peer)
{
    peer->sent++;
}

void mail_note_received(struct mail_peer *peer)
{
    peer->received++;
}

/* Returns how many messages the peer has posted that are not taken yet. */
static uint64_t count_posted(struct mail_peer *from)
{
    if (from->in == NULL || from->out == NULL || from->is_broken) {
        return 0;
    }
    uint64_t count = atomic_load(&from->in->written) -
                     atomic_load_explicit(&from->out->read, memory_order_relaxed);
    if (count > RECORDS) {
        log_warn("a peer's queue in shared memory is damaged, and is no longer read");
        from->is_broken = true;
        return 0;
    }
    return count;
}

/* Returns a peer's next message; NULL if there is none, or something else comes first. */
static const struct record *find_due(struct mail_peer *from)
{
    if (count_posted(from) == 0) {
        return NULL;
    }
    uint64_t read = atomic_load_explicit(&from->out->read, memory_order_relaxed);
    const struct record *record = &from->in->records[read % RECORDS];
    return record->after <= from->received ? record : NULL;
}

bool mail_take_of(struct mail *mail, struct mail_peer *from, struct mail_taken *ret_taken)
{
    const struct record *record = find_due(from);
    if (record == NULL) {
        return false;
    }
    struct record copy = *record;
    size_t size = copy.size <= MAIL_BYTES ? copy.size : 0;
    memcpy(mail->bytes, copy.bytes, size);
    uint64_t read = atomic_load_explicit(&from->out->read, memory_order_relaxed);
    atomic_store_explicit(&from->out->read, read + 1, memory_order_release);
    *ret_taken = (struct mail_taken){from->peer, mail->bytes, size};
    return true;
}

bool mail_take(struct mail *mail, struct mail_taken *ret_taken)
{
    for (uint32_t i = 0; i < mail->peer_count; i++) {
        uint32_t index = (mail->next_peer + i) % mail->peer_count;
        if (mail_take_of(mail, mail->peers[index], ret_taken)) {
            mail->next_peer = (index + 1) % mail->peer_count;
            return true;
        }
    }
    return false;
}

bool mail_is_due(struct mail *mail)
{
    for (uint32_t i = 0; i < mail->peer_count; i++) {
        if (find_due(mail->peers[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void note_nap(struct mail *mail)
{
    mail->is_asleep = !mail->is_asleep;
    for (uint32_t i = 0; i < mail->peer_count; i++) {
        atomic_fetch_add(&mail->peers[i]->out->naps, 1);
    }
}

bool mail_sleep(struct mail *mail)
{
    assert(!mail->is_asleep);
    note_nap(mail);
    if (mail_is_due(mail)) {
        note_nap(mail);
        return false;
    }
    return true;
}

void mail_wake(struct mail *mail)
{
    if (mail->is_asleep) {
        note_nap(mail);
    }
}

void mail_silence(struct mail *mail)
{
    char rings[RINGS_MAX];
    if (mail->region.bytes != NULL) {
        ssize_t got = read(mail->bell, rings, sizeof(rings));
        (void)got; // what is left, or came since, ends the next wait
    }
}
