/* In the place of dataset `images`, where there was no libturbojpeg: refuses it by name. */
#include "common/base/log.h"
#include "worker/data/dataset_rows.h"

static enum status images_open(const char *path, const struct dataset_options *options,
                               struct dataset **ret_dataset)
{
    (void)options, (void)ret_dataset;
    log_error("--data images:%s: this build cannot read JPEG files: install libturbojpeg "
              "(libturbojpeg0-dev; deploy/install-dependencies does) and build again",
              path);
    return STATUS_UNSUPPORTED;
}

const struct dataset_ops dataset_images_ops = {.open = images_open};
