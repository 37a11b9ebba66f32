/* Decides who may see the live page. Pure.
 *
 * The page says what a job does, and any user of a host can connect to its ports. So each request
 * has to have the token, which the page's address ends with and nobody else knows. And the page is
 * reached by a name or address of this host: a foreign web site could otherwise let its own name
 * point here, and have the visitor's browser ask (DNS rebinding). */
#ifndef COMMON_LIVE_LIVE_REQUEST_H
#define COMMON_LIVE_LIVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_TOKEN_BYTES   33 // hexadecimal digits and a terminator
#define LIVE_ADDRESS_BYTES 64

/* Whether two tokens are the same. How long it takes says nothing of where they differ. */
bool live_token_is(const char *token, const char *given);

/* The token of "Bearer TOKEN", which Prometheus can send; NULL for another header. */
const char *live_token_of_header(const char *authorization);

/* Whether a request's Host names this one: an address (with or without a port), localhost, or its
 * own name. */
bool live_host_is_ours(const char *host, const char *own_name);

/* What a request says of the one who asks; NULL: nothing. */
struct live_asker {
    const char *host, *token, *authorization; // as struct web_request has them
};

/* Whether the one who asks may see a page that has a token, on a host of this name: 200, or another
 * code of HTTP and a sentence, which is static. */
unsigned live_admit(const struct live_asker *asker, const char *own_name, const char *token,
                    const char **ret_refusal);

/* Reads "PORT" or "ADDRESS:PORT" ("[ADDRESS]:PORT" for IPv6); without an address it is the loopback
 * interface's. False, with a sentence, for anything else. */
bool live_read_address(const char *text, char ret_address[LIVE_ADDRESS_BYTES], uint32_t *ret_port,
                       char *ret_why, size_t why_size);

/* The same, for a row of an option table. */
bool live_address_is_valid(const char *text, char *ret_why, size_t why_size);

#endif
