/* Reads images one by one, as batches of one, puts them on a sheet, and writes that. */
#include "worker/data/preview/preview.h"

#include "common/base/log.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/images/encode_png.h"

#include <math.h>
#include <stdlib.h>

/* Sums over pixels as the model sees them. */
struct sums {
    double sum, squares, lowest, highest;
    uint64_t count;
};

static void add_to_sums(struct sums *sums, const float *pixels, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        double pixel = (double)pixels[i];
        sums->sum += pixel;
        sums->squares += pixel * pixel;
        sums->lowest = fmin(sums->lowest, pixel);
        sums->highest = fmax(sums->highest, pixel);
    }
    sums->count += count;
}

static void account_for(const struct sums *sums, struct preview_account *account)
{
    double count = (double)sums->count;
    account->lowest = sums->lowest;
    account->highest = sums->highest;
    account->mean = sums->sum / count;
    account->deviation = sqrt(fmax(0, sums->squares / count - account->mean * account->mean));
}

/* How the bytes of the sheet follow from pixels. */
static struct sheet_tones tones_of(const struct dataset *dataset)
{
    struct pixels_source source;
    struct sheet_tones tones;
    bool has_bytes = dataset_describe(dataset, &source);
    for (uint32_t c = 0; c < PIXELS_CHANNELS_MAX; c++) {
        tones.scale[c] = has_bytes ? source.scale[c] : 2 * PREVIEW_REACH / 255;
        tones.shift[c] = has_bytes ? source.shift[c] : -PREVIEW_REACH;
    }
    return tones;
}

/* A global batch of one image: its step is its place in the epoch, whatever the batches of a job
 * are. */
static enum status open_batches(const struct preview_order *order, const struct dataset *dataset,
                                struct batcher **ret_batcher)
{
    const struct batcher_options options = {
        .batch_size = 1,
        .global_batch = 1,
        .world = 1,
        .seed = order->seed,
        .sample_count = order->sample_count,
        .is_training = true,
        .augmentation = order->augmentation,
    };
    struct batcher *batcher;
    enum status status = batcher_create(&options, dataset, &batcher);
    if (status != STATUS_OK) {
        return status;
    }
    status = batcher_seek(batcher, order->epoch, order->sheet * SHEET_TILES);
    if (status != STATUS_OK) {
        batcher_destroy(batcher);
        return status;
    }
    *ret_batcher = batcher;
    return STATUS_OK;
}

/* Which images are on the sheet. */
static enum status choose_images(const struct preview_order *order, const struct dataset *dataset,
                                 struct preview_account *account)
{
    uint64_t count = order->sample_count > 0 ? order->sample_count : dataset->sample_count;
    uint64_t sheets = (count + SHEET_TILES - 1) / SHEET_TILES;
    if (order->sheet >= sheets) {
        log_error("there is no sheet %llu: an epoch of %llu images has %llu",
                  (unsigned long long)order->sheet + 1, (unsigned long long)count,
                  (unsigned long long)sheets);
        return STATUS_INVALID;
    }
    account->first = order->sheet * SHEET_TILES;
    uint64_t rest = count - account->first;
    account->count = rest < SHEET_TILES ? (uint32_t)rest : SHEET_TILES;
    return STATUS_OK;
}

static enum status fill(const struct preview_order *order, const struct dataset *dataset,
                        struct batcher *batcher, struct sheet *sheet,
                        struct preview_account *account)
{
    const struct sheet_tones tones = tones_of(dataset);
    struct sums sums = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};
    for (uint32_t i = 0; i < account->count; i++) {
        struct batch batch;
        enum status status =
            *order->is_ended != 0 ? STATUS_INTERRUPTED : batcher_next(batcher, &batch);
        if (status != STATUS_OK) {
            return status;
        }
        account->labels[i] = batch.labels[0];
        account->is_mixed = batch.mixed != NULL;
        account->mixed[i] = batch.mixed != NULL ? batch.mixed[0] : (struct mixed_label){0};
        add_to_sums(&sums, batch.pixels, (uint64_t)sheet->channels * sheet->rows * sheet->columns);
        sheet_put(sheet, i, batch.pixels, &tones);
    }
    account_for(&sums, account);
    return STATUS_OK;
}

static enum status write_sheet(const struct sheet *sheet, const struct draft *draft)
{
    const struct encode_png_image image = {.pixels = sheet->pixels,
                                           .width = sheet->width,
                                           .height = sheet->height,
                                           .channels = sheet->channels};
    char why[ENCODE_PNG_WHY_BYTES];
    uint8_t *bytes;
    size_t size;
    enum status status = encode_png(&image, &bytes, &size, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("a sheet of %u x %u pixels cannot be made: %s", sheet->width, sheet->height, why);
        return status;
    }
    status = draft_write(draft, bytes, size, 0);
    free(bytes);
    return status;
}

static enum status create_sheet(const struct preview_order *order, const struct dataset *dataset,
                                struct sheet *sheet)
{
    const struct shape *sample = &dataset->sample;
    enum status status =
        sheet_init(sheet, sample->channels, sample->rows, sample->columns, order->zoom);
    if (status == STATUS_INVALID) {
        log_error("images of %u x %u, %u times as large, would make a sheet of %u x %u pixels; %u "
                  "are the limit: choose a smaller --zoom or --image-size",
                  sample->rows, sample->columns, sheet->zoom, sheet->width, sheet->height,
                  SHEET_SIDE_MAX);
    } else if (status != STATUS_OK) {
        log_error("not enough memory for a sheet of %u x %u pixels", sheet->width, sheet->height);
    }
    return status;
}

enum status preview_open(struct draft *draft, const char *path)
{
    char why[ENCODE_PNG_WHY_BYTES];
    *draft = (struct draft){.descriptor = -1};
    enum status status = encode_png_is_there(why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("%s cannot be drawn: %s", path, why);
        return status;
    }
    return draft_open(draft, path);
}

enum status preview_write(const struct preview_order *order, const struct dataset *dataset,
                          const struct draft *draft, struct preview_account *ret_account)
{
    struct preview_account account = {0};
    struct sheet sheet = {0};
    struct batcher *batcher = NULL;
    enum status status = choose_images(order, dataset, &account);
    if (status == STATUS_OK) {
        status = create_sheet(order, dataset, &sheet);
    }
    if (status == STATUS_OK) {
        status = open_batches(order, dataset, &batcher);
    }
    if (status == STATUS_OK) {
        status = fill(order, dataset, batcher, &sheet, &account);
    }
    if (status == STATUS_OK) {
        status = write_sheet(&sheet, draft);
    }
    if (status == STATUS_OK && *order->is_ended != 0) {
        status = STATUS_INTERRUPTED;
    }
    if (status == STATUS_OK) {
        *ret_account = account;
    }
    batcher_destroy(batcher);
    sheet_finish(&sheet);
    return status;
}
