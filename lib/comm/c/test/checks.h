/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the tests in C, and the parts of the test. */
#ifndef HALOCLINE_TEST_CHECKS_H
#define HALOCLINE_TEST_CHECKS_H

#include <halocline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int rank, ranks, mistakes;

void expect(int holds, const char* what, int line);
#define EXPECT(condition) expect((condition), #condition, __LINE__)
/* Expects a wrong argument, and a text in the reason. */
#define EXPECT_WRONG(call, text)                                                             \
  EXPECT((call) == HALOCLINE_ERR_ARGUMENT && strstr(halocline_last_error(), text) != NULL && \
         strstr(halocline_last_error(), ": ") != NULL)

void test_halos(void);
void test_messages(void);
void test_gathers(void);

#endif
