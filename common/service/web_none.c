/* The web server of a build without libmicrohttpd: there is none. */
#include "common/base/log.h"
#include "common/service/web.h"

enum status web_create(const struct web_options *options, struct web **ret_web)
{
    (void)ret_web;
    log_error("this build has no server for %s (%s): it was built without libmicrohttpd",
              options->what, options->option);
    return STATUS_UNSUPPORTED;
}

void web_destroy(struct web *web)
{
    (void)web;
}

void web_address(const struct web *web, char ret_text[WEB_ADDRESS_BYTES])
{
    (void)web;
    ret_text[0] = '\0';
}

void web_wake(struct web *web)
{
    (void)web;
}

uint32_t web_stream_count(struct web *web)
{
    (void)web;
    return 0;
}
