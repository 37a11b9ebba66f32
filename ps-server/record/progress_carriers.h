/* Says which processes carry which ranks, and whether a job can do without one. */
#ifndef PS_SERVER_RECORD_PROGRESS_CARRIERS_H
#define PS_SERVER_RECORD_PROGRESS_CARRIERS_H

struct coordinator;
struct job;

/* What ranks take where processes carry several; each has a gradient of its own. */
void progress_say_carriers(const struct coordinator *coordinator);

/* A line if the job cannot go on without a lost process, whatever --on-loss says. */
void progress_say_bound(const struct job *job);

#endif
