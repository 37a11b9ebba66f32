/* Serves the page of a sweep or a comparison. */
#include "deploy/watch/series_page.h"

#include "common/base/log.h"
#include "common/live/live_request.h"
#include "common/service/web.h"
#include "deploy/watch/series.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct series_page {
    const char *folder; // borrowed
    struct web *web;
    char token[LIVE_TOKEN_BYTES];
    char host[256];       // name of this host
    struct series series; // of the web server's thread
    bool is_open;         // it is
};

static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                             "form-action 'none'; frame-ancestors 'none'";
static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n%s"
    "<title>Ringside: runs</title>\n<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font: 16px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 70rem; "
    "padding: 0 1rem; }\n"
    "progress { width: 100%%; height: 1rem; }\n"
    "table { border-collapse: collapse; width: 100%%; }\n"
    "th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #8884; }\n"
    "td + td + td, th + th + th { text-align: right; font-variant-numeric: tabular-nums; }\n"
    "td + td + td { white-space: nowrap; } td:nth-child(2) { min-width: 7rem; }\n"
    ".scroll { overflow-x: auto; }\n"
    "@media (max-width: 40rem) { body { padding: 0 .5rem; } th, td { padding: .2rem .3rem; }\n"
    "td:nth-child(5), th:nth-child(5) { display: none; } }\n"
    ".waiting { opacity: .6; } .running { font-weight: 600; }\n"
    ".diverged td:first-child { color: #b36b00; } .failed td:first-child { color: #c3302b; }\n"
    "</style></head><body>\n<h1>Runs</h1>\n";

static void write_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

static void write_summary(FILE *file, const struct series *series)
{
    size_t ended =
        series->count - series_count(series, SERIES_WAITING) - series_count(series, SERIES_RUNNING);
    double eta = series_eta(series);
    fprintf(file, "<p>%zu of %zu%s have ended: ", ended, series->count,
            series->has_plan || !series->is_running ? " runs" : " runs so far");
    for (unsigned state = SERIES_COMPLETED; state < SERIES_STATE_COUNT; state++) {
        fprintf(file, "%s%zu %s", state > SERIES_COMPLETED ? ", " : "",
                series_count(series, (enum series_state)state), series_states[state]);
    }
    if (!series->is_running) {
        fputs(". Nothing runs", file);
    } else if (series->has_plan && eta >= 0) {
        fprintf(file, ". About %.0f s to go", eta);
    }
    fprintf(file, ".</p>\n<progress max=\"%zu\" value=\"%zu\"></progress>\n",
            series->count > 0 ? series->count : 1, ended);
}

static void write_run(FILE *file, const struct series_run *run)
{
    fprintf(file, "<tr class=\"%s\"><td>%s</td><td>", series_states[run->state],
            series_states[run->state]);
    write_text(file, run->label);
    fputs("</td><td>", file);
    if (run->state == SERIES_RUNNING) {
        char step[LIVE_STEP_BYTES];
        live_step_text(run->step, run->total_steps, " of ", step);
        fputs(step, file);
    } else if (run->step > 0) {
        fprintf(file, "%llu", (unsigned long long)run->step);
    }
    fputs("</td><td>", file);
    if (run->has_accuracy) {
        fprintf(file, "%.2f %%", 100 * run->accuracy);
    }
    fputs("</td><td>", file);
    if (run->state != SERIES_WAITING) {
        fprintf(file, "%.1f", run->seconds);
    }
    fputs("</td><td>", file);
    if (run->images_per_second > 0) {
        fprintf(file, "%.0f", run->images_per_second);
    }
    fputs("</td></tr>\n", file);
}

/* The page as it is now; NULL if there is no memory. */
static char *make_page(const struct series *series)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL) {
        return NULL;
    }
    fprintf(file, head, series->is_running ? "<meta http-equiv=\"refresh\" content=\"2\">\n" : "");
    write_summary(file, series);
    fputs("<div class=\"scroll\"><table><thead><tr><th>state</th><th>run</th><th>step</th><th>test "
          "accuracy</th>"
          "<th>seconds</th><th>images/s</th></tr></thead><tbody>\n",
          file);
    for (size_t i = 0; i < series->count; i++) {
        write_run(file, &series->runs[i]);
    }
    fputs("</tbody></table></div>\n</body></html>\n", file);
    return fclose(file) == 0 ? text : NULL;
}

static void answer_page(struct series_page *page, struct web_answer *ret_answer)
{
    bool is_new;
    if (!page->is_open) {
        page->is_open = series_open(page->folder, &page->series) == STATUS_OK;
    }
    if (!page->is_open || series_update(&page->series, &is_new) != STATUS_OK) {
        ret_answer->code = 503;
        ret_answer->text = "the folder of the runs cannot be read: see the log\n";
        return;
    }
    ret_answer->made_text = make_page(&page->series);
    ret_answer->code = ret_answer->made_text != NULL ? 200 : 503;
    ret_answer->text = "out of memory\n";
    ret_answer->type = "text/html; charset=utf-8";
    ret_answer->policy = policy;
}

static void answer(void *context, const struct web_request *request, struct web_answer *ret_answer)
{
    struct series_page *page = context;
    const struct live_asker asker = {request->host, request->token, request->authorization};
    ret_answer->code = live_admit(&asker, page->host, page->token, &ret_answer->text);
    if (ret_answer->code != 200) {
        return;
    }
    ret_answer->is_trusted = true;
    if (strcmp(request->path, "/") == 0) {
        answer_page(page, ret_answer);
    } else {
        ret_answer->code = 404;
        ret_answer->text = "there is / alone\n";
    }
}

enum status series_page_create(const char *folder, const char *where, struct series_page **ret_page)
{
    char address[LIVE_ADDRESS_BYTES], why[128];
    uint32_t port;
    unsigned char secret[(LIVE_TOKEN_BYTES - 1) / 2];
    if (!live_read_address(where, address, &port, why, sizeof(why))) {
        log_error("--dashboard is '%.60s': %s", where, why);
        return STATUS_INVALID;
    }
    struct series_page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return STATUS_NO_MEMORY;
    }
    page->folder = folder;
    randombytes_buf(secret, sizeof(secret));
    sodium_bin2hex(page->token, sizeof(page->token), secret, sizeof(secret));
    if (gethostname(page->host, sizeof(page->host) - 1) != 0) {
        page->host[0] = '\0'; // then it is asked by its address
    }
    const struct web_options web = {
        .address = address,
        .port = port,
        .what = "the page of the runs",
        .option = "--dashboard",
        .answer = answer,
        .context = page,
    };
    enum status status = web_create(&web, &page->web);
    if (status != STATUS_OK) {
        free(page);
        return status;
    }
    *ret_page = page;
    return STATUS_OK;
}

void series_page_destroy(struct series_page *page)
{
    if (page == NULL) {
        return;
    }
    web_destroy(page->web);
    if (page->is_open) {
        series_close(&page->series);
    }
    free(page);
}

void series_page_url(const struct series_page *page, char ret_url[SERIES_URL_BYTES])
{
    char address[WEB_ADDRESS_BYTES];
    web_address(page->web, address);
    snprintf(ret_url, SERIES_URL_BYTES, "http://%s/?token=%s", address, page->token);
}
