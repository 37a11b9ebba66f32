/* Dataset `shapes`: ten kinds of figures, drawn when they are read.
 *
 * Sample i of a split is a function of (seed, split, i). Its kind is i modulo 10; position, size,
 * rotation, line width, colours and noise are random. A figure is a signed distance to its edge in
 * pixels, negative inside, at points that are moved and turned with it. What tells kinds apart is
 * form alone: colours are drawn alike for all, and a figure is as often darker than what is behind
 * it as brighter, so a linear model, which can only weigh pixels, learns next to nothing.
 *
 * The arithmetic is additions, multiplications, divisions, square roots and conversions, which IEEE
 * 754 rounds alike everywhere, so every machine draws the same bits. No libm: its last bits differ.
 * Loops run over rows of independent pixels, which compilers vectorise. */
#include "common/base/random.h"
#include "worker/data/dataset_rows.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define SIDE_PIXELS    32
#define CHANNELS       3
#define CHANNEL_PIXELS (SIDE_PIXELS * SIDE_PIXELS)
#define TRAIN_SAMPLES  8192
#define TEST_SAMPLES   2048

#define SIZE_MIN    7.0f // half the extent of a figure, in pixels
#define SIZE_RANGE  5.0f
#define TANGENT_MAX 0.12f // of half the angle by which upright figures are turned: 14 degrees

// Colours are in [0, 1], about; what is written has zero mean and unit scale, about.
#define COLOR_MEAN     0.5f
#define COLOR_SCALE    4.0f
#define CONTRAST_MIN   0.20f
#define CONTRAST_RANGE 0.40f
#define SLOPE_MAX      0.008f // of the light over the image, per pixel
#define NOISE_MIN      0.05f
#define NOISE_RANGE    0.15f

struct figure {
    float center_x, center_y; // in pixels
    float cosine, sine;       // of its rotation
    float size;               // half its extent, in pixels
    float width;              // half the width of its lines, in pixels
    float period, phase;      // of stripes and checkers: in pixels, in periods
    float background[CHANNELS], contrast[CHANNELS];
    float slope_x, slope_y;
    float noise;
    uint64_t noise_key;
};

static inline float smaller(float a, float b)
{
    return a < b ? a : b;
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

static inline float magnitude(float a)
{
    return a < 0 ? -a : a;
}

/* ---- distances to the edge, at (u, v) from the middle of the figure ---- */

static inline float box_distance(float u, float v, float half_u, float half_v)
{
    return larger(magnitude(u) - half_u, magnitude(v) - half_v);
}

static inline float line_distance(float distance, float width)
{
    return magnitude(distance) - width;
}

static inline float square_distance(const struct figure *figure, float u, float v)
{
    return box_distance(u, v, 0.85f * figure->size, 0.85f * figure->size);
}

static inline float frame_distance(const struct figure *figure, float u, float v)
{
    return line_distance(square_distance(figure, u, v), figure->width);
}

static inline float disc_distance(const struct figure *figure, float u, float v)
{
    return sqrtf(u * u + v * v) - figure->size;
}

static inline float ring_distance(const struct figure *figure, float u, float v)
{
    return line_distance(disc_distance(figure, u, v), figure->width);
}

// Equilateral: the largest of the distances to its three sides.
static inline float triangle_distance(const struct figure *figure, float u, float v)
{
    float slanted = 0.8660254f * magnitude(u) - 0.5f * v;
    return larger(v, slanted) - 0.6f * figure->size;
}

static inline float cross_distance(const struct figure *figure, float u, float v)
{
    return smaller(box_distance(u, v, figure->size, figure->width),
                   box_distance(u, v, figure->width, figure->size));
}

// Bands as wide as the gaps between them. Truncation rounds down, as no figure is 64 periods wide.
static inline float band_distance(const struct figure *figure, float u)
{
    float turn = u / figure->period + figure->phase + 64.0f;
    float fraction = turn - (float)(int32_t)turn;
    return (magnitude(fraction - 0.5f) - 0.25f) * figure->period;
}

static inline float stripes_distance(const struct figure *figure, float u, float v)
{
    return larger(band_distance(figure, v), square_distance(figure, u, v));
}

static inline float checker_distance(const struct figure *figure, float u, float v)
{
    float a = band_distance(figure, u);
    float b = band_distance(figure, v);
    float in_one = larger(smaller(a, b), -larger(a, b));
    return larger(in_one, square_distance(figure, u, v));
}

/* ---- the ten kinds ---- */

enum turn {
    TURN_ANY,      // all the way round
    TURN_UPRIGHT,  // by a few degrees
    TURN_DIAGONAL, // by 45 degrees to either side, and a few
};

// X(identifier, distance, rotation): the row is the label.
#define SHAPES_MAP(X)                    \
    X(disc, disc, TURN_ANY)              \
    X(ring, ring, TURN_ANY)              \
    X(square, square, TURN_ANY)          \
    X(frame, frame, TURN_ANY)            \
    X(triangle, triangle, TURN_ANY)      \
    X(cross, cross, TURN_UPRIGHT)        \
    X(saltire, cross, TURN_DIAGONAL)     \
    X(stripes, stripes, TURN_UPRIGHT)    \
    X(diagonals, stripes, TURN_DIAGONAL) \
    X(checker, checker, TURN_UPRIGHT)

struct shape_kind {
    enum turn turn;

    /* Writes how much of each pixel of row `y` the figure covers, in [0, 1]. */
    void (*cover_row)(const struct figure *figure, float y, float *ret_coverage);
};

#define X(identifier, distance, turn)                                                         \
    static void cover_##identifier(const struct figure *figure, float y, float *ret_coverage) \
    {                                                                                         \
        float dy = y + 0.5f - figure->center_y;                                               \
        for (int32_t x = 0; x < SIDE_PIXELS; x++) {                                           \
            float dx = (float)x + 0.5f - figure->center_x;                                    \
            float u = figure->cosine * dx + figure->sine * dy;                                \
            float v = figure->cosine * dy - figure->sine * dx;                                \
            float inside = 0.5f - distance##_distance(figure, u, v);                          \
            ret_coverage[x] = smaller(larger(inside, 0), 1);                                  \
        }                                                                                     \
    }
SHAPES_MAP(X)
#undef X

static const struct shape_kind kinds[] = {
#define X(identifier, distance, turn) {turn, cover_##identifier},
    SHAPES_MAP(X)
#undef X
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* ---- one sample ---- */

static float draw(struct random_sequence *sequence, float min, float range)
{
    return min + range * random_unit_float((uint32_t)(random_next(sequence) >> 32));
}

static float draw_sign(struct random_sequence *sequence)
{
    return random_next(sequence) >> 63 != 0 ? -1.0f : 1.0f;
}

// Cosine and sine from the tangent of half the angle, which needs no libm.
static void draw_rotation(struct random_sequence *sequence, enum turn turn, struct figure *figure)
{
    float reach = turn == TURN_ANY ? 1.0f : TANGENT_MAX;
    float tangent = draw(sequence, -reach, 2 * reach);
    float side = draw_sign(sequence);
    float cosine = (1 - tangent * tangent) / (1 + tangent * tangent);
    float sine = 2 * tangent / (1 + tangent * tangent);
    if (turn == TURN_ANY) {
        cosine *= side;
        sine *= side;
    } else if (turn == TURN_DIAGONAL) {
        float upright = cosine;
        cosine = 0.70710678f * (upright - side * sine);
        sine = 0.70710678f * (sine + side * upright);
    }
    figure->cosine = cosine;
    figure->sine = sine;
}

static void draw_figure(uint64_t key, enum turn turn, struct figure *ret_figure)
{
    struct random_sequence sequence = {key};
    struct figure figure = {.noise_key = random_next(&sequence)};
    draw_rotation(&sequence, turn, &figure);
    figure.size = draw(&sequence, SIZE_MIN, SIZE_RANGE);
    float reach = 0.5f * SIDE_PIXELS - figure.size;
    figure.center_x = draw(&sequence, figure.size, 2 * reach);
    figure.center_y = draw(&sequence, figure.size, 2 * reach);
    figure.width = figure.size * draw(&sequence, 0.15f, 0.15f);
    figure.period = draw(&sequence, 5, 3);
    figure.phase = draw(&sequence, 0, 1);
    figure.noise = draw(&sequence, NOISE_MIN, NOISE_RANGE);
    figure.slope_x = draw(&sequence, -SLOPE_MAX, 2 * SLOPE_MAX);
    figure.slope_y = draw(&sequence, -SLOPE_MAX, 2 * SLOPE_MAX);
    float sign = draw_sign(&sequence);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        figure.contrast[c] = sign * draw(&sequence, CONTRAST_MIN, CONTRAST_RANGE);
        // The mean of figure and background says nothing of the sign.
        figure.background[c] = draw(&sequence, 0.3f, 0.4f) - 0.5f * figure.contrast[c];
    }
    *ret_figure = figure;
}

/* Noise of a triangular distribution in (-1, 1): the sum of two halves of 32 random bits. */
static inline float noise_of(uint32_t bits)
{
    int32_t sum = (int32_t)(bits & 0xFFFF) + (int32_t)(bits >> 16);
    return (float)(sum - 0xFFFF) * 0x1p-16f;
}

static void paint_row(const struct figure *figure, uint32_t y, const float *coverage,
                      float *ret_pixels)
{
    for (uint32_t c = 0; c < CHANNELS; c++) {
        uint32_t element = c * CHANNEL_PIXELS + y * SIDE_PIXELS;
        float *row = ret_pixels + element;
        float light = figure->background[c] - COLOR_MEAN + figure->slope_y * ((float)y - 15.5f);
        for (uint32_t x = 0; x < SIDE_PIXELS; x++) {
            float noise = noise_of(random_element(figure->noise_key, element + x));
            float color = light + figure->slope_x * ((float)(int32_t)x - 15.5f) +
                          figure->contrast[c] * coverage[x] + figure->noise * noise;
            row[x] = color * COLOR_SCALE;
        }
    }
}

/* ---- the dataset ---- */

struct shapes {
    struct dataset dataset;
    uint64_t key; // of (seed, split)
};

static enum status shapes_read(const struct dataset *dataset, uint64_t index, float *ret_pixels,
                               uint32_t *ret_label)
{
    const struct shapes *shapes = (const struct shapes *)dataset;
    uint32_t label = (uint32_t)(index % KIND_COUNT);
    struct figure figure;
    draw_figure(random_mix(shapes->key + index), kinds[label].turn, &figure);
    for (uint32_t y = 0; y < SIDE_PIXELS; y++) {
        float coverage[SIDE_PIXELS];
        kinds[label].cover_row(&figure, (float)y, coverage);
        paint_row(&figure, y, coverage, ret_pixels);
    }
    *ret_label = label;
    return STATUS_OK;
}

static void shapes_close(struct dataset *dataset)
{
    free((struct shapes *)dataset);
}

static enum status shapes_open(const char *path, const struct dataset_options *options,
                               struct dataset **ret_dataset)
{
    assert(path[0] == '\0');
    struct shapes *shapes = calloc(1, sizeof(*shapes));
    if (shapes == NULL) {
        return STATUS_NO_MEMORY;
    }
    shapes->dataset = (struct dataset){
        .ops = &dataset_shapes_ops,
        .sample = {.channels = CHANNELS, .rows = SIDE_PIXELS, .columns = SIDE_PIXELS},
        .sample_count = options->split == DATASET_TRAIN ? TRAIN_SAMPLES : TEST_SAMPLES,
        .class_count = KIND_COUNT,
    };
    shapes->key = random_key(options->seed, RANDOM_SHAPES, (uint64_t)options->split, 0);
    *ret_dataset = &shapes->dataset;
    return STATUS_OK;
}

const struct dataset_ops dataset_shapes_ops = {
    .open = shapes_open,
    .read = shapes_read,
    .close = shapes_close,
};
