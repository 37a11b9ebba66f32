/* Writes the table of shards. */
#include "deploy/report/html_shards.h"

#include "deploy/report/html.h"

static double number(const json_t *shard, const char *key)
{
    return json_number_value(json_object_get(shard, key));
}

static void write_row(FILE *page, const struct run_folder *run, const json_t *shard)
{
    double seconds = number(shard, "seconds");
    fprintf(page, "<tr><td>");
    html_escape(page, run->label);
    fprintf(
        page, "</td><td>%.0f</td><td>%.1f</td><td>%.1f</td><td>%.1f %%</td><td>%.0f</td></tr>\n",
        number(shard, "shard"), number(shard, "bytes_received") / (1 << 20),
        number(shard, "bytes_sent") / (1 << 20),
        seconds > 0 ? 100 * number(shard, "busy_seconds") / seconds : 0, number(shard, "backlog"));
}

void html_shards(FILE *page, const struct run_folder *runs, size_t count)
{
    bool has_head = false;
    for (size_t i = 0; i < count; i++) {
        const json_t *shards = json_object_get(runs[i].details, "shards"), *shard;
        size_t k;
        json_array_foreach(shards, k, shard)
        {
            if (!has_head) {
                fprintf(
                    page,
                    "<h2>Load of the shards</h2>\n<p>Busy: handling messages, of the time from "
                    "its start to its end. Backlog: most messages that were waiting for it, one "
                    "after the other.</p>\n<div class=\"scroll\"><table><thead><tr><th>run</th>"
                    "<th>shard</th><th>received MiB</th><th>sent MiB</th><th>busy</th>"
                    "<th>backlog</th></tr></thead><tbody>\n");
                has_head = true;
            }
            write_row(page, &runs[i], shard);
        }
    }
    if (has_head) {
        fprintf(page, "</tbody></table></div>\n");
    }
}
