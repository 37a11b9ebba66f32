/* Stands for the export of OTF2 archives in builds without OTF2. */
#include "common/base/log.h"
#include "deploy/trace/otf2_archive.h"

bool otf2_archive_is_built(void)
{
    return false;
}

enum status otf2_archive_write(const char *folder, const struct timeline *timeline,
                               const struct timeline_flow *flows, size_t flow_count)
{
    (void)folder;
    (void)timeline;
    (void)flows;
    (void)flow_count;
    log_error("this build has no OTF2: install it (Debian: libopen-trace-format2-dev; "
              "deploy/install-dependencies --viewers does), and build again");
    return STATUS_UNSUPPORTED;
}
