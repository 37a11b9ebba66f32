/* Reading ranges of ports. */
#include "common/port_range.h"

#include "common/number.h"

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

bool port_range_of_endpoint(const char *endpoint, struct port_range *ret_range)
{
    const char *colon = strrchr(endpoint, ':');
    return colon != NULL && port_range_parse(colon + 1, ret_range);
}

const char *port_range_advice(const char *endpoint)
{
    struct port_range range;
    return port_range_of_endpoint(endpoint, &range)
               ? ": every port of the range is; widen it with --port-range"
               : "; choose another with --port, or leave it out for a free one";
}

bool port_range_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct port_range range;
    if (text[0] == '\0' || port_range_parse(text, &range)) {
        return true;
    }
    snprintf(ret_why, why_size, "wanted is FIRST-LAST, from 1 to 65535, such as 40000-40100");
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
