/* In the place of what writes packs, where there was no libturbojpeg: images cannot be decoded. */
#include "common/base/log.h"
#include "worker/data/pack/pack_write.h"

enum status pack_write(const struct pack_order *order, struct pack_account *ret_account)
{
    (void)ret_account;
    log_error("%s cannot be packed: this build cannot read JPEG files: install libturbojpeg "
              "(libturbojpeg0-dev; deploy/install-dependencies does) and build again",
              order->data);
    return STATUS_UNSUPPORTED;
}
