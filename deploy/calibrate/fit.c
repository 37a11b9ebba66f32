/* Fits by closed forms. */
#include "deploy/calibrate/fit.h"

#include <math.h>

#define BLOCKS     ((size_t)8)
#define VALUES     2    // of fit_share
#define NOTICEABLE 1e-3 // of the mean: less is no spread

double fit_mean_error(const double *times_s, size_t count)
{
    double all = 0, squares = 0;
    for (size_t b = 0; b < BLOCKS && count >= 2 * BLOCKS; b++) {
        size_t first = b * count / BLOCKS, end = (b + 1) * count / BLOCKS;
        double mean = 0;
        for (size_t i = first; i < end; i++) {
            mean += times_s[i] / (double)(end - first);
        }
        all += mean;
        squares += mean * mean;
    }
    const double blocks = BLOCKS;
    double mean = all / blocks, variance = (squares - blocks * mean * mean) / (blocks - 1);
    return mean > 0 && variance > 0 ? sqrt(variance / blocks) / mean : 0;
}

struct fit_spread fit_spread(const double *times_s, size_t count)
{
    double least = times_s[0], most = times_s[0], mean = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        least = times_s[i] < least ? times_s[i] : least;
        most = times_s[i] > most ? times_s[i] : most;
        mean += times_s[i] / n;
    }
    struct fit_spread fit = {.least_s = mean};
    double above = mean - least, width = most - least;
    if (count < 2 || above <= NOTICEABLE * mean) {
        return fit;
    }
    // The likelihood of n times is (e above)^-n under the one, and width^-n under the other.
    if (exp(1) * above < width) {
        fit.spread.kind = SPREAD_EXPONENTIAL;
        fit.spread.mean_s = above * n / (n - 1);
    } else {
        fit.spread.kind = SPREAD_UNIFORM;
        fit.spread.most_s = width * (n + 1) / (n - 1);
    }
    // Of few times that lie far apart, the least is below 0 by this, and nothing takes no time.
    double added = spread_mean_s(&fit.spread), most_added = mean - least / 2;
    if (added > most_added) {
        spread_scale(&fit.spread, most_added / added);
        added = most_added;
    }
    fit.least_s = mean - added;
    return fit;
}

/* Through the mean of the points. */
static double slope_of(const struct fit_point *points, size_t count, struct fit_point mean)
{
    double above = 0, both = 0;
    for (size_t i = 0; i < count; i++) {
        double bytes = points[i].bytes - mean.bytes;
        above += bytes * bytes;
        both += bytes * (points[i].seconds - mean.seconds);
    }
    return above > 0 ? both / above : 0;
}

struct fit_line fit_line(const struct fit_point *points, size_t count)
{
    const struct fit_point origin = {0, 0};
    struct fit_point mean = origin;
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        mean.bytes += points[i].bytes / (double)count;
        mean.seconds += points[i].seconds / (double)count;
        differ = differ || points[i].bytes != points[0].bytes;
    }
    struct fit_line line = {.knows_latency = differ || mean.bytes <= 0};
    double slope = differ ? slope_of(points, count, mean) : 0;
    if (slope <= 0 && line.knows_latency) {
        line.latency_s = mean.seconds;
        return line;
    }
    line.latency_s = mean.seconds - slope * mean.bytes;
    if (line.latency_s < 0 || !line.knows_latency) {
        line.latency_s = 0;
        slope = slope_of(points, count, origin);
    }
    line.bandwidth = slope > 0 ? 1 / slope : 0;
    return line;
}

struct fit_share fit_share(const struct fit_load *loads, size_t count)
{
    double pp = 0, bb = 0, pb = 0, ps = 0, bs = 0;
    for (size_t i = 0; i < count; i++) {
        pp += loads[i].parts * loads[i].parts;
        bb += loads[i].bytes * loads[i].bytes;
        pb += loads[i].parts * loads[i].bytes;
        ps += loads[i].parts * loads[i].seconds;
        bs += loads[i].bytes * loads[i].seconds;
    }
    // Where all have as many bytes to a part, rounding is left of the difference.
    double rest = pp * bb - pb * pb;
    bool differ = rest > 1e-9 * pp * bb;
    struct fit_share share = {.error = 0,
                              .part_s = differ ? (ps * bb - bs * pb) / rest : -1,
                              .byte_s = differ ? (bs * pp - ps * pb) / rest : 0};
    if (share.part_s < 0 && bb > 0) {
        share.part_s = 0;
        share.byte_s = bs > 0 ? bs / bb : 0;
    } else if (share.byte_s < 0 || bb <= 0) {
        share.part_s = pp > 0 && ps > 0 ? ps / pp : 0;
        share.byte_s = 0;
    }
    double left = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        double off =
            loads[i].seconds - loads[i].parts * share.part_s - loads[i].bytes * share.byte_s;
        left += off * off;
        all += loads[i].seconds * loads[i].seconds;
    }
    if (count > VALUES && all > 0) {
        // Of the loads' mean; each load has an error of its own.
        share.error = sqrt(left / (double)(count - VALUES) / (all / (double)count));
    }
    return share;
}
