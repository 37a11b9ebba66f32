/* Reads ranges of ports. */
#include "common/transport/port_range.h"

#include "common/base/number.h"

#include <stdio.h>
#include <string.h>

bool port_range_parse(const char *text, struct port_range *ret_range)
{
    uint64_t first, last;
    size_t size = strcspn(text, "-");
    if (text[size] != '-' || !number_whole(text, size, UINT16_MAX, &first) ||
        !number_whole(text + size + 1, strlen(text + size + 1), UINT16_MAX, &last) || first < 1 ||
        first > last) {
        return false;
    }
    *ret_range = (struct port_range){(uint16_t)first, (uint16_t)last};
    return true;
}

/* Reads the range at the end of an endpoint. Returns false if it ends in something else. */
static bool find_range(const char *endpoint, struct port_range *ret_range)
{
    const char *colon = strrchr(endpoint, ':');
    return colon != NULL && port_range_parse(colon + 1, ret_range);
}

bool port_range_pick(const char *endpoint, uint32_t index, char *ret_endpoint, size_t size)
{
    struct port_range range;
    if (!find_range(endpoint, &range)) {
        snprintf(ret_endpoint, size, "%s", endpoint);
        return index == 0;
    }
    snprintf(ret_endpoint, size, "%.*s:%u", (int)(strrchr(endpoint, ':') - endpoint), endpoint,
             range.first + index);
    return index <= (uint32_t)(range.last - range.first);
}

const char *port_range_advice(const char *endpoint)
{
    struct port_range range;
    return find_range(endpoint, &range)
               ? ": every port of the range is; widen it with --port-range"
               : "; choose another with --port, or leave it out for a free one";
}

bool port_range_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct port_range range;
    if (text[0] == '\0' || port_range_parse(text, &range)) {
        return true;
    }
    snprintf(ret_why, why_size, "expected FIRST-LAST, from 1 to 65535, such as 40000-40100");
    return false;
}

void port_range_choose(uint32_t port, const char *range, char ret_ports[PORT_RANGE_BYTES])
{
    if (port != 0) {
        snprintf(ret_ports, PORT_RANGE_BYTES, "%u", port);
    } else {
        snprintf(ret_ports, PORT_RANGE_BYTES, "%s", range[0] != '\0' ? range : "*");
    }
}
