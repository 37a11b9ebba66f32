/* The keys of a job, and the file that they lie in.
 *
 * One file serves all processes of a job. The side that listens shows the server pair. The side
 * that connects knows the server's public key, shows the client pair, and is let in if its public
 * key is allowed: that of the file's own client pair is, and those of its `allow` lines are.
 *
 *     # comment
 *     server-public = KEY
 *     server-secret = KEY
 *     client-public = KEY
 *     client-secret = KEY
 *     allow = KEY             public, of one more client; as many lines as one likes
 *
 * Keys are of Curve25519, as CurveZMQ has them (RFC 26), and text is Z85. A file without
 * `server-secret` is for processes that listen nowhere, one without `client-secret` for those that
 * connect to nobody. Secrets lie in memory that is locked, kept out of core dumps, and wiped when
 * it is given back; no message has any of a file's values. */
#ifndef COMMON_SECURITY_KEYS_H
#define COMMON_SECURITY_KEYS_H

#include "common/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_BYTES        32
#define KEY_TEXT_BYTES   41 // terminator included
#define KEYS_ALLOWED_MAX 1024
#define KEYS_ERROR_BYTES 256

// A file with as many keys as there may be, and room for comments; fits into a pipe.
#define KEYS_TEXT_MAX ((size_t)64 * 1024)

struct key_pair {
    bool has_public, has_secret; // a secret never comes without its public key
    unsigned char public_key[KEY_BYTES], secret_key[KEY_BYTES];
};

struct keys {
    struct key_pair server, client;
    uint32_t allowed_count;
    unsigned char allowed[KEYS_ALLOWED_MAX][KEY_BYTES]; // beside client.public_key
};

/* Fresh pairs; allows nobody else. The caller owns them, as with keys_read. */
enum status keys_generate(struct keys **ret_keys);

/* Reads a file; "-" is standard input, which has to end within half a minute. Refuses a file that
 * is not a regular one, that belongs to another user (but root), or that others may read. Logs. */
enum status keys_read(const char *path, struct keys **ret_keys);

/* The file's path from any folder, for a command that somebody pastes; "FILE" if it has none: its
 * keys came by standard input, or it is gone. */
void keys_path(const char *file, char ret_path[PATH_MAX]);

/* Wipes them. NULL is fine. */
void keys_destroy(struct keys *keys);

/* Whether a client that shows this key may connect. Takes as long for every key. */
bool keys_allow(const struct keys *keys, const unsigned char public_key[KEY_BYTES]);

/* STATUS_MALFORMED: ret_error says in which line, and what is wrong, without its value. `keys` must
 * be zeroed, and may have been written to. */
enum status keys_parse(const char *text, size_t size, struct keys *keys, char *ret_error,
                       size_t error_size);

/* The text of a file with these keys; the caller wipes it. */
void keys_format(const struct keys *keys, char ret_text[KEYS_TEXT_MAX]);

/* Writes that text to a pipe or a file. STATUS_IO if not all of it. */
enum status keys_write(const struct keys *keys, int fd);

/* Makes a file with these keys that only its owner may read. STATUS_INVALID if there is one, unless
 * it may be replaced: then it is whole, the old or the new one, at any time. Logs. */
enum status keys_create_file(const struct keys *keys, const char *path, bool may_replace);

#endif
