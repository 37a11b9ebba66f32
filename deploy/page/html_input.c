/* Writes how far real input falls behind synthetic. */
#include "deploy/page/html_input.h"

#include "deploy/page/html.h"

void html_input_gaps(FILE *page, const struct input_gaps *gaps)
{
    char cells[INPUT_GAP_COLUMNS][INPUT_GAP_CELL_BYTES];
    if (gaps->count == 0) {
        return;
    }
    fprintf(page, "<p class=\"note\">Input gap: the share of the images per second on synthetic "
                  "data that the same job does not reach on real data. Synthetic data are noise in "
                  "memory, of the same shape and classes. A round is a run on real data and the "
                  "next one on synthetic; the gap is the mean over the rounds ± half of its 95 %% "
                  "interval (Student's t).</p>\n<div class=\"scroll\"><table><thead><tr>");
    for (size_t k = 0; k < INPUT_GAP_COLUMNS; k++) {
        fprintf(page, "<th>%s</th>", input_gap_headings[k]);
    }
    fprintf(page, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < gaps->count; i++) {
        input_gap_format(&gaps->list[i], cells);
        fprintf(page, "<tr><td>");
        html_escape(page, gaps->list[i].pairs[0].real->label); // whole
        fprintf(page, "</td>");
        for (size_t k = 1; k < INPUT_GAP_COLUMNS; k++) {
            fprintf(page, "<td>%s</td>", cells[k]);
        }
        fprintf(page, "</tr>\n");
    }
    fprintf(page, "</tbody></table></div>\n");
}
