/* Checks tokens, hosts and addresses. */
#include "common/live/live_request.h"

#include "common/base/number.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LOOPBACK "127.0.0.1"

bool live_token_is(const char *token, const char *given)
{
    size_t size = strlen(token);
    unsigned char difference = 0;
    if (given == NULL || strlen(given) != size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        difference |= (unsigned char)(token[i] ^ given[i]);
    }
    return difference == 0;
}

const char *live_token_of_header(const char *authorization)
{
    const char scheme[] = "Bearer ";
    bool is_bearer =
        authorization != NULL && strncasecmp(authorization, scheme, sizeof(scheme) - 1) == 0;
    return is_bearer ? authorization + sizeof(scheme) - 1 : NULL;
}

/* The number of characters of the host, without its port; 0 if there is something else behind. */
static size_t host_size(const char *host)
{
    size_t size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    uint64_t port;
    if (size > strlen(host)) {
        return 0;
    }
    const char *rest = host + size;
    bool has_port = rest[0] == ':' && number_whole(rest + 1, strlen(rest + 1), 65535, &port);
    return rest[0] == '\0' || has_port ? size : 0;
}

/* Names have letters; what looks like an address is none. */
static bool is_address(const char *host, size_t size)
{
    if (host[0] == '[') {
        return size > 2 && strspn(host + 1, "0123456789abcdefABCDEF:.%") == size - 2;
    }
    return size > 0 && strspn(host, "0123456789.") >= size;
}

static bool is_name(const char *host, size_t size, const char *name)
{
    return strlen(name) == size && size > 0 && strncasecmp(host, name, size) == 0;
}

bool live_host_is_ours(const char *host, const char *own_name)
{
    size_t size = host != NULL ? host_size(host) : 0;
    return size > 0 && (is_address(host, size) || is_name(host, size, "localhost") ||
                        is_name(host, size, own_name));
}

unsigned live_admit(const struct live_asker *asker, const char *own_name, const char *token,
                    const char **ret_refusal)
{
    const char *given =
        asker->token != NULL ? asker->token : live_token_of_header(asker->authorization);
    if (!live_host_is_ours(asker->host, own_name)) {
        *ret_refusal = "this host has another name: ask by its address or as localhost\n";
        return 421;
    }
    if (!live_token_is(token, given)) {
        *ret_refusal = "the address is not whole: it ends with ?token= and what the job printed\n";
        return 403;
    }
    return 200;
}

bool live_read_address(const char *text, char ret_address[LIVE_ADDRESS_BYTES], uint32_t *ret_port,
                       char *ret_why, size_t why_size)
{
    const char *colon = strrchr(text, ':');
    const char *port_text = colon != NULL ? colon + 1 : text;
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;
    bool is_bracketed = size >= 2 && text[0] == '[' && text[size - 1] == ']';
    uint64_t port;
    snprintf(ret_why, why_size,
             "give a port from 0 to 65535, where 0 picks a free one, or ADDRESS:PORT");
    if (!number_whole(port_text, strlen(port_text), 65535, &port) || size >= LIVE_ADDRESS_BYTES ||
        (colon != NULL && size == 0)) {
        return false;
    }
    if (is_bracketed) {
        text++;
        size -= 2;
    }
    // That it is an address of this host is found out when it is listened on.
    if (colon != NULL &&
        (strspn(text, is_bracketed ? "0123456789abcdefABCDEF:." : "0123456789.") < size)) {
        return false;
    }
    snprintf(ret_address, LIVE_ADDRESS_BYTES, "%.*s",
             colon != NULL ? (int)size : (int)strlen(LOOPBACK), colon != NULL ? text : LOOPBACK);
    *ret_port = (uint32_t)port;
    return true;
}

bool live_address_is_valid(const char *text, char *ret_why, size_t why_size)
{
    char address[LIVE_ADDRESS_BYTES];
    uint32_t port;
    return live_read_address(text, address, &port, ret_why, why_size);
}
