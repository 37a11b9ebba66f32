/* Makes, parses and compares keys. */
#include "common/security/keys.h"

#include "common/security/z85.h"

#include <sodium.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(KEY_BYTES == crypto_box_PUBLICKEYBYTES, "public keys are of Curve25519");
static_assert(KEY_BYTES == crypto_box_SECRETKEYBYTES, "and so are secret ones");
static_assert(KEY_TEXT_BYTES == Z85_TEXT_BYTES(KEY_BYTES), "text of a key");

#define BLANKS " \t\r"

/* What a line may be about. */
struct line_kind {
    const char *name;
    size_t pair; // offset in struct keys
    bool is_secret;
};

static const struct line_kind kinds[] = {
    {"server-public", offsetof(struct keys, server), false},
    {"server-secret", offsetof(struct keys, server), true},
    {"client-public", offsetof(struct keys, client), false},
    {"client-secret", offsetof(struct keys, client), true},
};

/* A piece of a text. */
struct piece {
    const char *at;
    size_t size;
};

static struct piece trim(struct piece piece)
{
    while (piece.size > 0 && strchr(BLANKS, piece.at[0]) != NULL && piece.at[0] != '\0') {
        piece.at++;
        piece.size--;
    }
    while (piece.size > 0 && strchr(BLANKS, piece.at[piece.size - 1]) != NULL &&
           piece.at[piece.size - 1] != '\0') {
        piece.size--;
    }
    return piece;
}

static bool is_named(struct piece piece, const char *name)
{
    return piece.size == strlen(name) && memcmp(piece.at, name, piece.size) == 0;
}

/* NULL, or what is wrong with the value. */
static const char *take_key(struct piece value, unsigned char ret_key[KEY_BYTES])
{
    if (value.size != KEY_TEXT_BYTES - 1) {
        return "a key has 40 characters";
    }
    return z85_decode(value.at, value.size, ret_key) ? NULL : "this is not a key in Z85";
}

/* One line with a name: NULL, or what is wrong with it. */
static const char *take_line(struct piece name, struct piece value, struct keys *keys)
{
    if (is_named(name, "allow")) {
        if (keys->allowed_count == KEYS_ALLOWED_MAX) {
            return "more keys are allowed than there is room for";
        }
        return take_key(value, keys->allowed[keys->allowed_count++]);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!is_named(name, kinds[i].name)) {
            continue;
        }
        struct key_pair *pair = (struct key_pair *)(void *)((char *)keys + kinds[i].pair);
        bool *has = kinds[i].is_secret ? &pair->has_secret : &pair->has_public;
        if (*has) {
            return "its name was given before";
        }
        *has = true;
        return take_key(value, kinds[i].is_secret ? pair->secret_key : pair->public_key);
    }
    return "names are server-public, server-secret, client-public, client-secret and allow";
}

/* Whether the public key is the secret one's; fills it in if it was left out. */
static bool complete_pair(struct key_pair *pair)
{
    unsigned char public_key[KEY_BYTES];
    if (!pair->has_secret) {
        return true;
    }
    crypto_scalarmult_base(public_key, pair->secret_key);
    if (pair->has_public) {
        return sodium_memcmp(public_key, pair->public_key, KEY_BYTES) == 0;
    }
    memcpy(pair->public_key, public_key, KEY_BYTES);
    pair->has_public = true;
    return true;
}

enum status keys_parse(const char *text, size_t size, struct keys *keys, char *ret_error,
                       size_t error_size)
{
    unsigned number = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t line_size = end != NULL ? (size_t)(end - text) - at : size - at;
        struct piece line = trim((struct piece){text + at, line_size});
        at += line_size + 1;
        number++;
        if (line.size == 0 || line.at[0] == '#') {
            continue;
        }
        const char *equals = memchr(line.at, '=', line.size);
        if (equals == NULL) {
            snprintf(ret_error, error_size, "line %u: a line is NAME = KEY", number);
            return STATUS_MALFORMED;
        }
        size_t name_size = (size_t)(equals - line.at);
        struct piece name = trim((struct piece){line.at, name_size});
        struct piece value = trim((struct piece){equals + 1, line.size - name_size - 1});
        const char *why = take_line(name, value, keys);
        if (why != NULL) {
            snprintf(ret_error, error_size, "line %u: %s", number, why);
            return STATUS_MALFORMED;
        }
    }
    if (!complete_pair(&keys->server) || !complete_pair(&keys->client)) {
        snprintf(ret_error, error_size, "a public key does not belong to the secret one beside it");
        return STATUS_MALFORMED;
    }
    if (!keys->server.has_public) {
        snprintf(ret_error, error_size, "it has no server-public, which every process needs");
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

enum status keys_generate(struct keys **ret_keys)
{
    if (sodium_init() < 0) {
        return STATUS_IO;
    }
    struct keys *keys = sodium_malloc(sizeof(*keys));
    if (keys == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(keys, 0, sizeof(*keys));
    struct key_pair *pairs[] = {&keys->server, &keys->client};
    for (size_t i = 0; i < 2; i++) {
        crypto_box_keypair(pairs[i]->public_key, pairs[i]->secret_key);
        pairs[i]->has_public = pairs[i]->has_secret = true;
    }
    *ret_keys = keys;
    return STATUS_OK;
}

void keys_destroy(struct keys *keys)
{
    sodium_free(keys);
}

bool keys_allow(const struct keys *keys, const unsigned char public_key[KEY_BYTES])
{
    unsigned is_allowed = keys->client.has_public &&
                          sodium_memcmp(keys->client.public_key, public_key, KEY_BYTES) == 0;
    for (uint32_t i = 0; i < keys->allowed_count; i++) {
        is_allowed |= sodium_memcmp(keys->allowed[i], public_key, KEY_BYTES) == 0;
    }
    return is_allowed != 0;
}

static void add_line(const char *name, const unsigned char *key, char *text)
{
    char key_text[KEY_TEXT_BYTES];
    size_t used = strlen(text);
    z85_encode(key, KEY_BYTES, key_text);
    int wrote = snprintf(text + used, KEYS_TEXT_MAX - used, "%s = %s\n", name, key_text);
    assert(wrote > 0 && (size_t)wrote < KEYS_TEXT_MAX - used);
    sodium_memzero(key_text, sizeof(key_text));
}

void keys_format(const struct keys *keys, char ret_text[KEYS_TEXT_MAX])
{
    snprintf(
        ret_text, KEYS_TEXT_MAX,
        "# Keys of a Ringside job, for all of its processes. Whoever can read the secret ones\n"
        "# can take part. A line allow = PUBLIC lets in a client with a key of its own.\n");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct key_pair *pair =
            (const struct key_pair *)(const void *)((const char *)keys + kinds[i].pair);
        if (kinds[i].is_secret ? pair->has_secret : pair->has_public) {
            add_line(kinds[i].name, kinds[i].is_secret ? pair->secret_key : pair->public_key,
                     ret_text);
        }
    }
    for (uint32_t i = 0; i < keys->allowed_count; i++) {
        add_line("allow", keys->allowed[i], ret_text);
    }
}
