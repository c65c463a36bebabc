// Forks while memory isn't in RAM: parent and children must see the same. missing.h describes the
// conversation.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "missing.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2;

static int child_sees_all(void) {
  if (check_region()) return 0;
  memset(at(one), 7, FEW * PAGE);  // its own copy
  return is_intact(two);
}

static const char *fork_one(void) {
  MISSING(one);
  CHECK(child_is_right(child_sees_all));
  CHECK(are_intact(one, FEW));
  return NULL;
}

static int child_forks(void) { return child_is_right(child_sees_all) && !check_region(); }
static const char *fork_twice(void) {
  MISSING(one);
  CHECK(child_is_right(child_forks));
  return NULL;
}

static int child_sees_one(void) { return is_intact(one) && is_intact(two); }
static const char *fork_often(void) {
  MISSING(one);
  for (int i = 0; i < 30; i++) {
    CHECK(child_is_right(child_sees_one));
    if (i % 10 == 5) rewrite(two);
  }
  return NULL;
}

static uint64_t checksum(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < (size_t)PAGES * PAGE / 8; i++) {
    sum = (sum ^ ((uint64_t *)region)[i]) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 31;
  }
  return sum;
}

// Each child sums everything up, and the parent does so only at the end.
static const char *fork_100_times(void) {
  MISSING(one);
  uint64_t sums[100];
  for (int i = 0; i < 100; i++) {
    int ends[2];
    CHECK(!pipe(ends));
    pid_t child = fork();
    if (child == 0) {
      uint64_t sum = checksum();
      _exit(write(ends[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
    }
    int status = 1;
    CHECK(read(ends[0], &sums[i], sizeof sums[i]) == sizeof sums[i]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
  }
  uint64_t sum = checksum();
  for (int i = 0; i < 100; i++) CHECK(sums[i] == sum);
  return NULL;
}

static void *fork_some(void *right) {
  for (int i = 0; i < 10; i++) if (!child_is_right(child_sees_all)) *(int *)right = 0;
  return NULL;
}
// Several forks are under way at once.
static const char *fork_in_threads(void) {
  MISSING(one);
  pthread_t threads[3];
  int right[3] = {1, 1, 1};
  for (int i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, fork_some, &right[i]));
  for (int i = 0; i < 3; i++) CHECK(!pthread_join(threads[i], NULL));
  CHECK(right[0] && right[1] && right[2]);
  return NULL;
}

static atomic_int has_read;
static void *read_all_slots(void *right) {
  static unsigned char page[PAGE];
  for (int slot = 0; slot < SLOTS; slot++) {
    struct iovec to = {page, PAGE}, from = {at(middle(slot)), PAGE};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != PAGE || !has(page, seeds[middle(slot)]))
      *(int *)right = 0;
  }
  has_read = 1;
  return NULL;
}
// A thread waits for pages, and a freeze doesn't interrupt that.
static const char *fork_while_waiting(void) {
  MISSING(one);
  pthread_t reader;
  int right = 1;
  CHECK(!pthread_create(&reader, NULL, read_all_slots, &right));
  while (!has_read) CHECK(child_is_right(child_sees_one));
  CHECK(!pthread_join(reader, NULL) && right);
  return NULL;
}

static atomic_int unmaps;
static void *unmap_every_other(void *unused) {
  for (int page = 1; page < PAGES; page += 2) munmap(at(page), PAGE);
  unmaps = 0;
  return unused;
}
// What a child has of the region has its contents, whichever pages its parent unmaps meanwhile.
static int child_has_rest(void) {
  static unsigned char page[PAGE];
  for (int i = 0; i < PAGES; i++) {
    struct iovec to = {page, PAGE}, from = {at(i), PAGE};
    ssize_t got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
    if (got == PAGE ? !has(page, seeds[i]) : i % 2 == 0) return 0;
  }
  return 1;
}
static const char *fork_while_unmapping(void) {
  MISSING(one);
  unmaps = 1;
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, unmap_every_other, NULL));
  while (unmaps) CHECK(child_is_right(child_has_rest));
  CHECK(!pthread_join(thread, NULL));
  for (int i = 1; i < PAGES; i += 2) map_pages(at(i), PAGE, MAP_FIXED);
  for (int i = 1; i < PAGES; i += 2) expect_zeros(i, 1);
  return NULL;
}

static int pipe_ends[2];
static int child_waits(void) {
  char byte;
  return read(pipe_ends[0], &byte, 1) == 1 && !check_region();
}

// The parent changes everything before the child looks.
static const char *fork_and_change(void) {
  MISSING(one);
  CHECK(!pipe(pipe_ends));
  pid_t child = fork();
  if (child == 0) _exit(child_waits() ? 0 : 1);
  rewrite_all(one, FEW);
  CHECK(!madvise(at(two), FEW * PAGE, MADV_DONTNEED));
  for (int i = 0; i < FEW; i++) seeds[two + i] = 0;
  CHECK(write(pipe_ends[1], "x", 1) == 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return NULL;
}

static void wipe_early(void) {
  madvise(at(one), FEW * PAGE, MADV_WIPEONFORK);
  madvise(at(two), FEW * PAGE, MADV_DONTFORK);
}
static int child_is_wiped(void) {
  for (int i = 0; i < FEW; i++) if (!has(at(one + i), 0)) return 0;
  return is_unreadable(at(two)) && is_intact(one - 1) && is_intact(two - 1);
}
static const char *fork_wiped(void) {
  MISSING(one);
  CHECK(child_is_right(child_is_wiped));
  return NULL;
}

static int orders[2];
// A child with memory of its own forks when it gets an order. It may be killed meanwhile.
static void start_forker(void) {
  int done[2];
  char byte;
  if (pipe(orders) || pipe(done)) exit(3);
  if (fork() == 0) {
    rewrite_all(0, PAGES);
    madvise(at(one), FEW * PAGE, MADV_WIPEONFORK);
    if (write(done[1], "x", 1) != 1 || read(orders[0], &byte, 1) != 1) _exit(1);
    if (fork() == 0) {
      expect_zeros(one, FEW);
      const char *wrong = check_region();
      dprintf(1, "grandchild: %s\n", wrong ? wrong : "whole");
      _exit(0);
    }
    pause();
    _exit(0);
  }
  if (read(done[0], &byte, 1) != 1) exit(3);
}
static const char *fork_in_child(void) {
  CHECK(write(orders[1], "x", 1) == 1);
  return NULL;
}

static const struct test tests[] = {
  {"fork", NULL, fork_one},
  {"fork_twice", NULL, fork_twice},
  {"fork_often", NULL, fork_often},
  {"fork_100_times", NULL, fork_100_times},
  {"fork_in_threads", NULL, fork_in_threads},
  {"fork_while_waiting", NULL, fork_while_waiting},
  {"fork_while_unmapping", NULL, fork_while_unmapping},
  {"fork_and_change", NULL, fork_and_change},
  {"fork_wiped", wipe_early, fork_wiped},
  {"fork_in_child", start_forker, fork_in_child},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
