/* Adds up counts, times, bytes and losses. */
#include "common/channel/report_sum.h"

void report_sum_add(struct wire_report *sum, const struct wire_report *report)
{
    sum->steps += report->steps;
    sum->images += report->images;
    sum->images_dropped += report->images_dropped;
    sum->loss_sum += report->loss_sum;
    sum->compute_ns += report->compute_ns;
    sum->exchange_wait_ns += report->exchange_wait_ns;
    sum->input_wait_ns += report->input_wait_ns;
    sum->total_ns += report->total_ns;
    sum->copy_ns += report->copy_ns;
    sum->wire_ns += report->wire_ns;
    sum->bytes_sent += report->bytes_sent;
    sum->bytes_received += report->bytes_received;
    sum->staleness_sum += report->staleness_sum;
    sum->rate = report->rate; // in force at the last step
    sum->loader_threads = report->loader_threads;
}
