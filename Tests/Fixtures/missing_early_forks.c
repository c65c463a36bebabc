// Forks while memory that isn't in RAM is unmapped and grows: the pager may know of the fork first.
// missing.h describes the conversation.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "missing.h"

static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2;

static atomic_int gap;  // the page before those to unmap; 0: none
static void *unmap_gaps(void *unused) {
  for (int page; (page = gap) >= 0;)
    if (page && !munmap(at(page + 1), FEW * PAGE)) gap = 0;
  return unused;
}
static int growing;
static int child_has_new_memory(void) {
  for (int i = 1; i <= FEW; i++) if (!has(at(growing + i), 0)) return 0;
  return 1;
}
// Memory grows into the place of other memory before the pager knows that this was unmapped.
static const char *fork_while_growing(void) {
  enum { STEP = 2 * FEW, TRIES = PAGES / STEP - 1 };
  MISSING(one);
  pthread_t thread;
  unsigned char state[FEW];
  const char *wrong = NULL;
  CHECK(!pthread_create(&thread, NULL, unmap_gaps, NULL));
  for (int i = 1; i <= TRIES && !wrong; i++) {
    growing = i * STEP;
    if (!is_missing(growing + 1) || !is_missing(growing + FEW)) continue;
    gap = growing;
    while (!mincore(at(growing + 1), FEW * PAGE, state)) {}
    if (mremap(at(growing), PAGE, (1 + FEW) * PAGE, 0) == MAP_FAILED) wrong = "it can't grow";
    else if (!child_is_right(child_has_new_memory)) wrong = "a child has memory from before";
    while (gap) {}
    expect_zeros(growing + 1, FEW);
  }
  gap = -1;
  pthread_join(thread, NULL);
  return wrong;
}

// Forks while the pager fills no page: what the last fault needs is filled by then, and the call
// touches nothing of the C library.
static pid_t fork_alone(void) {
  usleep(50000);
  return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

// The parent unmaps memory just after a fork, and grows into its place before the pager knows.
static const char *fork_then_grow(void) {
  MISSING(one);
  pthread_t thread;
  unsigned char state[FEW];
  CHECK(!pthread_create(&thread, NULL, unmap_gaps, NULL));
  // Nothing of the C library is missing later, when no page is filled until "grown" is written.
  CHECK(mincore(at(two), FEW * PAGE, state) == 0 && write(1, "", 0) == 0);
  CHECK(mremap(at(two), PAGE, PAGE, 0) == at(two));
  growing = one;
  if (fork_alone() == 0) {
    const char *wrong = check_region();
    dprintf(1, "child: %s\n", wrong ? wrong : "whole");
    _exit(0);
  }
  gap = one;
  while (!mincore(at(one + 1), FEW * PAGE, state)) {}
  int grew = mremap(at(one), PAGE, (1 + FEW) * PAGE, 0) == at(one);
  CHECK(write(1, "grown\n", 6) == 6 && grew);
  while (gap) {}
  expect_zeros(one + 1, FEW);
  gap = -1;
  pthread_join(thread, NULL);
  return NULL;
}

// The child unmaps memory at once, and says what else it has.
static const char *fork_and_unmap(void) {
  MISSING(one);
  if (fork_alone() == 0) {
    munmap(at(one), FEW * PAGE);
    map_pages(at(one), FEW * PAGE, MAP_FIXED);
    expect_zeros(one, FEW);
    const char *wrong = check_region();
    dprintf(1, "child: %s\n", wrong ? wrong : "whole");
    _exit(0);
  }
  return NULL;
}

static const struct test tests[] = {
  {"fork_while_growing", NULL, fork_while_growing},
  {"fork_then_grow", NULL, fork_then_grow},
  {"fork_and_unmap", NULL, fork_and_unmap},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
