/* How long a test waits for what must come, before it takes a wait for a hang.
 *
 * A limit proves nothing about speed, so it may be generous. RINGSIDE_TEST_PATIENCE, a whole number
 * from 1 to 100, makes every such limit so many times as long: for sanitizers, and busy machines.
 */
#ifndef TESTS_SUPPORT_COMMON_PATIENCE_H
#define TESTS_SUPPORT_COMMON_PATIENCE_H

/* The limit to wait for in the place of `limit_ms`. Fails the test if the variable is no such
 * number. */
int patience_ms(int limit_ms);

#endif
