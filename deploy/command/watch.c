/* ringside watch: a job that runs or has run, in a terminal or on a page; all runs of a sweep. */
#include "common/base/clock.h"
#include "common/base/folder_lock.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/live/live_board.h"
#include "common/live/live_page.h"
#include "common/live/live_request.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/watch/page_client.h"
#include "deploy/watch/run_reader.h"
#include "deploy/watch/screen.h"
#include "deploy/watch/series.h"
#include "deploy/watch/series_page.h"
#include "deploy/watch/series_screen.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LOOK_MS  500
#define PLAIN_MS 2000 // between two lines

static const struct option own_rows[] = {
    {.name = "dashboard",
     .type = OPTION_TEXT,
     .metavar = "[ADDRESS:]PORT",
     .help = "serve a page of the folder to browsers, and print its address; without a "
             "value at a free port of the loopback interface"},
};

static const struct option_program program = {
    .name = "ringside watch",
    .usage = "ringside watch FOLDER|URL [--dashboard[=[ADDRESS:]PORT]]",
    .summary =
        "Shows how a job goes: from its run folder, while it is written or later, or from the "
        "address of its live\npage. Of the folder of a sweep or a comparison it shows all runs, "
        "and when they will have ended. On a\nterminal the screen is renewed; elsewhere there "
        "are lines. Ends with the job, or with the last of the runs.",
    .example = "  ringside watch runs/a\n"
               "  ringside watch runs/sweep-1\n"
               "  ringside watch runs/a --dashboard\n"
               "  ringside watch 'http://127.0.0.1:8080/?token=...'\n",
    .taken_before = {.title = "Options",
                     .rows = own_rows,
                     .count = sizeof(own_rows) / sizeof(own_rows[0])},
};

/* How a job is shown. */
struct view {
    bool is_terminal;
    uint64_t shown_ms;        // the last line
    struct live_board *board; // of the page
    struct live_page *page;   // NULL: in the terminal
};

static void show(struct view *view, const struct live_state *state)
{
    struct winsize window = {.ws_col = 80};
    if (view->page != NULL) {
        live_board_publish(view->board, state);
        live_page_wake(view->page);
    } else if (view->is_terminal) {
        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &window); // then it stays 80
        fputs("\033[H\033[J", stdout);
        screen_write(state, window.ws_col, stdout);
    } else if (live_is_over(state) || view->shown_ms == 0 ||
               clock_now_ms() - view->shown_ms >= PLAIN_MS) {
        view->shown_ms = clock_now_ms();
        screen_write_line(state, stdout);
    }
    fflush(stdout);
}

static enum exit_code verdict(const struct live_state *state)
{
    return strcmp(state->outcome, "completed") == 0 ? EXIT_COMPLETED : EXIT_FAILED;
}

/* Opens the page once the job is known. */
static enum status open_page(struct view *view, const char *where, uint32_t workers)
{
    char address[LIVE_ADDRESS_BYTES], why[128], url[LIVE_URL_BYTES];
    uint32_t port;
    if (!live_read_address(where, address, &port, why, sizeof(why))) {
        return STATUS_INVALID; // it was checked before
    }
    enum status status = live_board_create(workers, &view->board);
    if (status != STATUS_OK) {
        return status;
    }
    const struct live_page_options options = {
        .address = address, .port = port, .board = view->board, .workers = workers};
    status = live_page_create(&options, &view->page);
    if (status != STATUS_OK) {
        return status;
    }
    live_page_url(view->page, url);
    printf("live page: %s\nCtrl-C ends it.\n", url);
    return STATUS_OK;
}

/* Whether a command writes to the run's folder, or to the one around it, which is that of a sweep.
 */
static bool is_written(const char *folder)
{
    char around[PATH_MAX];
    snprintf(around, sizeof(around), "%.4000s/..", folder);
    return folder_lock_is_held(folder) || folder_lock_is_held(around);
}

static enum exit_code follow_folder(struct run_reader *reader, const char *where, struct view *view)
{
    while (*signals_flag() == 0) {
        bool is_new, was_written = is_written(reader->folder);
        const struct live_state *state = &reader->state;
        enum status status = run_reader_update(reader, &is_new);
        if (status == STATUS_OK && where != NULL && state->ranks != NULL && view->page == NULL) {
            status = open_page(view, where, state->workers);
        }
        if (status != STATUS_OK) {
            return EXIT_FAILED;
        }
        if (is_new) {
            show(view, state);
        }
        if (is_new && where == NULL && live_is_over(state)) {
            return verdict(state);
        }
        if (where == NULL && !was_written) {
            log_error(
                "%s has no whole summary.json, and no ringside writes to it any more: the job "
                "was killed, or its folder is damaged",
                reader->folder);
            return EXIT_FAILED;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return where != NULL ? EXIT_COMPLETED : EXIT_INTERRUPTED;
}

static enum exit_code watch_folder(const char *folder, const char *where, struct view *view)
{
    struct run_reader reader;
    if (run_reader_open(folder, &reader) != STATUS_OK) {
        return EXIT_FAILED;
    }
    enum exit_code code = follow_folder(&reader, where, view);
    live_page_destroy(view->page);
    live_board_destroy(view->board);
    run_reader_close(&reader);
    return code;
}

static void show_series(struct view *view, const struct series *series)
{
    struct winsize window;
    if (view->is_terminal) {
        bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
        fputs("\033[H\033[J", stdout);
        series_screen_write(series, is_known ? window.ws_row : 24, is_known ? window.ws_col : 80,
                            stdout);
    } else if (!series->is_running || view->shown_ms == 0 ||
               clock_now_ms() - view->shown_ms >= PLAIN_MS) {
        view->shown_ms = clock_now_ms();
        series_screen_write_line(series, stdout);
    }
    fflush(stdout);
}

static enum exit_code follow_series(struct series *series, struct view *view)
{
    while (*signals_flag() == 0) {
        bool is_new;
        if (series_update(series, &is_new) != STATUS_OK) {
            return EXIT_FAILED;
        }
        if (is_new || view->shown_ms == 0) {
            show_series(view, series);
        }
        if (!series->is_running) {
            size_t results =
                series_count(series, SERIES_COMPLETED) + series_count(series, SERIES_DIVERGED);
            return results == series->count ? EXIT_COMPLETED : EXIT_FAILED;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return EXIT_INTERRUPTED;
}

static enum exit_code watch_series(const char *folder, struct view *view)
{
    struct series series;
    if (series_open(folder, &series) != STATUS_OK) {
        return EXIT_FAILED;
    }
    enum exit_code code = follow_series(&series, view);
    series_close(&series);
    return code;
}

/* Serves the page of a folder's runs until somebody ends it. */
static enum exit_code serve_series(const char *folder, const char *where)
{
    struct series_page *page;
    char url[SERIES_URL_BYTES];
    if (series_page_create(folder, where, &page) != STATUS_OK) {
        return EXIT_FAILED;
    }
    series_page_url(page, url);
    printf("page of all runs: %s\nCtrl-C ends it.\n", url);
    fflush(stdout);
    while (*signals_flag() == 0) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    series_page_destroy(page);
    return EXIT_COMPLETED;
}

static enum exit_code follow_page(struct page_client *client, struct view *view)
{
    while (*signals_flag() == 0) {
        struct live_state state;
        enum status status = page_client_next(client, LOOK_MS, &state);
        if (status == STATUS_TIMED_OUT) {
            continue;
        }
        if (status == STATUS_END_OF_DATA) {
            log_error("the page has ended without saying how the job did: see its run folder");
        }
        if (status != STATUS_OK) {
            return EXIT_FAILED;
        }
        show(view, &state);
        bool is_last = live_is_over(&state);
        enum exit_code code = verdict(&state);
        live_state_finish(&state);
        if (is_last) {
            return code;
        }
    }
    return EXIT_INTERRUPTED;
}

static enum exit_code watch_page(const char *url, struct view *view)
{
    struct page_client *client = NULL;
    if (page_client_open(url, &client) != STATUS_OK) {
        return EXIT_FAILED;
    }
    enum exit_code code = follow_page(client, view);
    page_client_close(client);
    return code;
}

/* Reads the arguments; *ret_where is NULL without --dashboard. Logs. */
static enum status parse(int argc, char **argv, const char **ret_what, const char **ret_where)
{
    char why[128];
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--dashboard=", 12) == 0) {
            *ret_where = argv[i] + 12;
        } else if (strcmp(argv[i], "--dashboard") == 0) {
            bool has_value = i + 1 < argc && live_address_is_valid(argv[i + 1], why, sizeof(why));
            *ret_where = has_value ? argv[++i] : "0";
        } else if (argv[i][0] == '-') {
            log_error("unknown option '%.60s'; there is --dashboard", argv[i]);
            return STATUS_INVALID;
        } else if (*ret_what != NULL) {
            log_error("one job at a time: '%.60s' is another one", argv[i]);
            return STATUS_INVALID;
        } else {
            *ret_what = argv[i];
        }
    }
    if (*ret_where != NULL && !live_address_is_valid(*ret_where, why, sizeof(why))) {
        log_error("--dashboard is '%.60s': %s", *ret_where, why);
        return STATUS_INVALID;
    }
    if (*ret_what != NULL && *ret_where != NULL && page_client_is_url(*ret_what)) {
        log_error("--dashboard is for run folders: that address is a page already");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum exit_code command_watch(int argc, char **argv)
{
    const char *what = NULL, *where = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_print_help(&program, stdout);
            return EXIT_COMPLETED;
        }
        if (strcmp(argv[i], "--describe-options") == 0) {
            options_describe(&program, stdout);
            return EXIT_COMPLETED;
        }
    }
    if (parse(argc, argv, &what, &where) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (what == NULL) {
        options_print_help(&program, stderr);
        return EXIT_USAGE;
    }
    struct view view = {.is_terminal = isatty(STDOUT_FILENO) != 0};
    signals_install();
    if (page_client_is_url(what)) {
        return watch_page(what, &view);
    }
    if (!series_is_there(what)) {
        return watch_folder(what, where, &view);
    }
    return where != NULL ? serve_series(what, where) : watch_series(what, &view);
}
