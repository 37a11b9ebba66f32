/* Parts of a page that needs no other file: head, texts, data, scripts. Knows nothing of runs. */
#ifndef DEPLOY_PAGE_HTML_H
#define DEPLOY_PAGE_HTML_H

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>

/* Whether this build has a library of charts, so that a page can draw its figures. */
bool html_has_charts(void);

/* The head, with a policy that lets nothing run or load but what the page itself begins with. */
void html_begin(FILE *page, const char *title);

/* The data of the figures (NULL: none), the scripts that draw them, and the end of the page. */
void html_end(FILE *page, const json_t *figures);

/* Text as HTML shows it; what is no character becomes a question mark. */
void html_escape(FILE *stream, const char *text);

/* "SUBJECT: TEXT." as a note below a table. */
void html_note(FILE *page, const char *subject, const char *text);

/* The figure of a file FOLDER/NAME.svg as an image within the page; nothing if there is none. */
void html_image(FILE *page, const char *folder, const char *name, const char *caption);

#endif
