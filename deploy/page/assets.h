/* Texts of every page, which the build makes of files: see deploy/page/embed. */
#ifndef DEPLOY_PAGE_ASSETS_H
#define DEPLOY_PAGE_ASSETS_H

extern const char page_style[];  // page.css
extern const char page_script[]; // page.js; "" without a library of charts
extern const char page_charts[]; // Chart.js with its licence; "" where it was not installed

#endif
