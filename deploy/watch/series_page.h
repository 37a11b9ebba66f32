/* A page of all runs of a sweep or a comparison, for browsers.
 *
 * It is made anew from the runs' folders whenever it is asked for, and asks for itself again every
 * two seconds, without a script. Who may see it is decided as for a job's live page. */
#ifndef DEPLOY_WATCH_SERIES_PAGE_H
#define DEPLOY_WATCH_SERIES_PAGE_H

#include "common/base/status.h"

#define SERIES_URL_BYTES 160

struct series_page;

/* Listens at "[ADDRESS:]PORT" (0: any free port), with a token that nobody can guess. `folder` is
 * borrowed. Logs why not. */
enum status series_page_create(const char *folder, const char *where,
                               struct series_page **ret_page);
void series_page_destroy(struct series_page *page); // NULL is fine

/* The address for a browser, with the token. */
void series_page_url(const struct series_page *page, char ret_url[SERIES_URL_BYTES]);

#endif
