/* Writes the parts that all pages have: head, texts, data, scripts. */
#include "deploy/page/html.h"

#include "common/base/printable.h"
#include "deploy/page/assets.h"

#include <sodium.h>

#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  8192
#define IMAGE_BYTES (8U << 20)

bool html_has_charts(void)
{
    return page_charts[0] != '\0';
}

void html_escape(FILE *stream, const char *text)
{
    char *clean = strdup(text);
    if (clean == NULL) {
        return;
    }
    printable_make_utf8(clean);
    for (const char *at = clean; *at != '\0'; at++) {
        const char *entity = *at == '&'   ? "&amp;"
                             : *at == '<' ? "&lt;"
                             : *at == '>' ? "&gt;"
                             : *at == '"' ? "&quot;"
                                          : NULL;
        if (entity != NULL) {
            fputs(entity, stream);
        } else {
            fputc(*at, stream);
        }
    }
    free(clean);
}

/* "'sha256-...'", by which a policy knows a script or a style. */
static void write_hash(FILE *page, const char *text)
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    char code[sodium_base64_ENCODED_LEN(sizeof(digest), sodium_base64_VARIANT_ORIGINAL)];
    crypto_hash_sha256(digest, (const unsigned char *)text, strlen(text));
    sodium_bin2base64(code, sizeof(code), digest, sizeof(digest), sodium_base64_VARIANT_ORIGINAL);
    fprintf(page, " 'sha256-%s'", code);
}

void html_begin(FILE *page, const char *title)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
        "style-src",
        page);
    write_hash(page, page_style);
    fputs("; script-src", page);
    if (html_has_charts()) {
        write_hash(page, page_charts);
        write_hash(page, page_script);
    } else {
        fputs(" 'none'", page);
    }
    fputs("\">\n<title>", page);
    html_escape(page, title);
    fprintf(page, "</title>\n<style>%s</style></head><body>\n", page_style);
}

void html_note(FILE *page, const char *subject, const char *text)
{
    fputs("<p class=\"note\">", page);
    html_escape(page, subject);
    fputs(": ", page);
    html_escape(page, text);
    fputs(".</p>\n", page);
}

/* In JSON, '<' stands in strings only, so no text can end the element that holds it. */
static void write_data(FILE *page, const json_t *figures)
{
    char *text = json_dumps(figures, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputs("<script type=\"application/json\" id=\"figures\">", page);
    for (const char *at = text != NULL ? text : "[]"; *at != '\0'; at++) {
        if (*at == '<') {
            fputs("\\u003c", page);
        } else {
            fputc(*at, page);
        }
    }
    fputs("</script>\n", page);
    free(text);
}

void html_end(FILE *page, const json_t *figures)
{
    if (json_array_size(figures) > 0 && html_has_charts()) {
        write_data(page, figures);
        fprintf(page, "<script>%s</script>\n<script>%s</script>\n", page_charts, page_script);
    }
    fputs("</body></html>\n", page);
}

void html_image(FILE *page, const char *folder, const char *name, const char *caption)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.4000s/%s.svg", folder, name);
    FILE *file = fopen(path, "re");
    unsigned char *bytes = file != NULL ? malloc(IMAGE_BYTES) : NULL;
    size_t size = bytes != NULL ? fread(bytes, 1, IMAGE_BYTES, file) : 0;
    size_t code_size = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
    char *code = size > 0 && size < IMAGE_BYTES ? malloc(code_size) : NULL;
    if (code != NULL) {
        sodium_bin2base64(code, code_size, bytes, size, sodium_base64_VARIANT_ORIGINAL);
        fprintf(page, "<figure><img alt=\"");
        html_escape(page, caption);
        fprintf(page, "\" src=\"data:image/svg+xml;base64,%s\">\n<figcaption>", code);
        html_escape(page, caption);
        fprintf(page, "</figcaption></figure>\n");
    }
    free(code);
    free(bytes);
    if (file != NULL) {
        fclose(file);
    }
}
