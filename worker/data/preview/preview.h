/* Draws the images that a job trains on, as a model sees them, to a PNG file.
 *
 * They come from the batcher of training: in the order of an epoch, scaled, augmented and
 * normalised as there, by the same draws. So that they can be looked at, normalisation is undone:
 * a pixel becomes the byte that it would be made of. Datasets that are drawn may have no bytes; of
 * theirs, PREVIEW_REACH deviations below and above the mean are black and white. */
#ifndef WORKER_DATA_PREVIEW_PREVIEW_H
#define WORKER_DATA_PREVIEW_PREVIEW_H

#include "common/base/status.h"
#include "common/plan/augmentation.h"
#include "worker/data/dataset.h"
#include "worker/data/draft.h"
#include "worker/data/preview/sheet.h"

#include <stdatomic.h>
#include <stdint.h>

#define PREVIEW_REACH 3.0f

struct preview_order {
    uint64_t seed;
    struct augmentation augmentation;
    uint64_t sample_count;      // the first so many of the dataset; 0: all
    uint64_t epoch, sheet;      // from 0; which SHEET_TILES images of the epoch
    uint32_t zoom;              // see sheet_init
    const atomic_int *is_ended; // not 0: it is to end
};

/* What the sheet has. */
struct preview_account {
    uint64_t first; // image of the epoch, from 0
    uint32_t count; // images on the sheet
    uint32_t labels[SHEET_TILES];
    bool is_mixed; // with mixup
    struct mixed_label mixed[SHEET_TILES];
    double lowest, highest, mean, deviation; // of the pixels that the model sees
};

/* Opens the draft of the file, if this build can write PNG. draft_finish follows. Logs. */
enum status preview_open(struct draft *draft, const char *path);

/* Writes the sheet to the draft. Training images, normalised and scaled. Logs. */
enum status preview_write(const struct preview_order *order, const struct dataset *dataset,
                          const struct draft *draft, struct preview_account *ret_account);

#endif
