// Changes its mappings while memory isn't in RAM. missing.h describes the conversation.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "missing.h"

enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2;

static const char *drop(void) {
  MISSING(one);
  MISSING(two);
  CHECK(!madvise(at(one), FEW * PAGE, MADV_DONTNEED));
  expect_zeros(one, FEW);
  CHECK(are_intact(one - 1, FEW + 1));
  // A page is used, dropped and used again.
  CHECK(is_intact(two));
  CHECK(!madvise(at(two), PAGE, MADV_DONTNEED));
  expect_zeros(two, 1);
  CHECK(are_intact(two - 1, 3));
  rewrite(two);
  CHECK(are_intact(two - 1, 3));
  return NULL;
}

static void drop_early(void) {
  madvise(at(one), FEW * PAGE, MADV_DONTNEED);
  expect_zeros(one, FEW);
  memset(at(two), 0, FEW * PAGE);
  expect_zeros(two, FEW);
}

static const char *dropped_early(void) {
  CHECK(are_intact(one - 1, FEW + 2) && are_intact(two - 1, FEW + 2));
  rewrite_all(one, FEW);
  return NULL;
}

static const char *free_lazily(void) {
  MISSING(one);
  CHECK(!madvise(at(one), FEW * PAGE, MADV_FREE));
  for (int page = one; page < one + FEW; page++) {
    CHECK(is_intact(page) || has(at(page), 0));
    rewrite(page);
  }
  return NULL;
}

static const char *unmap(void) {
  MISSING(one);
  MISSING(two);
  CHECK(!munmap(at(one), FEW * PAGE));
  CHECK(is_unreadable(at(one)));
  CHECK(is_intact(one - 1));
  map_pages(at(one), FEW * PAGE, MAP_FIXED);
  expect_zeros(one, FEW);
  CHECK(are_intact(one - 2, FEW + 2));
  map_pages(at(two), FEW * PAGE, MAP_FIXED);
  expect_zeros(two, FEW);
  CHECK(are_intact(two - 2, FEW + 2));
  return NULL;
}

static const char *protect(void) {
  MISSING(one);
  MISSING(two);
  CHECK(!mprotect(at(one), FEW * PAGE, PROT_NONE));
  CHECK(!mprotect(at(two), FEW * PAGE, PROT_READ));
  CHECK(is_unreadable(at(one)));
  CHECK(is_intact(one - 1) && is_intact(two + FEW));  // brings its neighbours with it
  CHECK(is_unreadable(at(one)));
  CHECK(are_intact(two, FEW));
  int zero = open("/dev/zero", O_RDONLY);
  CHECK(read(zero, at(two), 8) < 0 && errno == EFAULT);
  close(zero);
  CHECK(!mprotect(at(one), FEW * PAGE, PROT_READ | PROT_WRITE));
  CHECK(!mprotect(at(two), FEW * PAGE, PROT_READ | PROT_WRITE));
  CHECK(are_intact(one, FEW) && are_intact(two, FEW));
  rewrite(two);
  return NULL;
}

static int has_guards;

static void guard_early(void) { has_guards = !madvise(at(one), FEW * PAGE, GUARD_INSTALL); }

static const char *guarded_early(void) {
  MISSING(two);
  if (!has_guards) return NULL;  // an older kernel
  CHECK(is_unreadable(at(one)) && is_intact(one - 1) && is_unreadable(at(one)));
  CHECK(!madvise(at(one), FEW * PAGE, GUARD_REMOVE));
  expect_zeros(one, FEW);
  return NULL;
}

static const char *guard(void) {
  MISSING(one);
  if (madvise(at(one), FEW * PAGE, GUARD_INSTALL)) return NULL;  // an older kernel
  CHECK(is_unreadable(at(one)));
  CHECK(is_intact(one - 1) && is_intact(one + FEW));  // brings its neighbours with it
  for (int i = 0; i < FEW; i++) CHECK(is_unreadable(at(one + i)));
  rewrite_all(one - 1, 1);
  CHECK(!madvise(at(one), FEW * PAGE, GUARD_REMOVE));
  expect_zeros(one, FEW);
  CHECK(are_intact(one - 1, FEW + 2));
  return NULL;
}

static atomic_int is_dropping = 1;
static void *drop_all_the_time(void *page) {
  while (is_dropping) {
    for (int i = 0; i < 50; i++) madvise(page, PAGE, MADV_DONTNEED);
    usleep(100);
  }
  return NULL;
}

// Messages about another thread's changes are under way while pages beside guard pages come back.
static const char *guard_amid_drops(void) {
  enum { STEP = 8, TRIES = (SLOTS - 1) * SLOT_PAGES / STEP };
  MISSING(one);
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, drop_all_the_time, at(middle(0))));
  expect_zeros(middle(0), 1);
  const char *wrong = NULL;
  int tries = 0, seen = 0;
  // Pages that are used in order would come back earlier.
  for (int i = 0; i < TRIES && !wrong; i++) {
    int page = SLOT_PAGES + i * 37 % TRIES * STEP;
    if (!is_missing(page - 1) || !is_missing(page) || !is_missing(page + 1)) continue;
    if (madvise(at(page), PAGE, GUARD_INSTALL)) break;  // an older kernel
    // One of its neighbours comes back together with it.
    if (!is_intact(page - 1) || !is_intact(page + 1)) wrong = "a page beside a guard page is wrong";
    if (!is_unreadable(at(page))) wrong = "a guard page was replaced";
    madvise(at(page), PAGE, GUARD_REMOVE);
    // The pager may not have seen it (guard_briefly).
    tries++;
    seen += has(at(page), 0);
    if (has(at(page), 0)) expect_zeros(page, 1);
    else if (!is_intact(page)) wrong = "a page after a guard page is wrong";
    printf("at %d\n", i);
  }
  if (tries && !seen) wrong = "the pager has seen no guard page";
  is_dropping = 0;
  pthread_join(thread, NULL);
  return wrong;
}

// The kernel sends no message about a guard region. The pages are empty only if the pager has seen
// it while it existed.
static const char *guard_briefly(void) {
  MISSING(one);
  if (madvise(at(one), FEW * PAGE, GUARD_INSTALL)) return NULL;  // an older kernel
  CHECK(!madvise(at(one), FEW * PAGE, GUARD_REMOVE));
  for (int page = one; page < one + FEW; page++) {
    CHECK(is_intact(page) || has(at(page), 0));
    rewrite(page);
  }
  CHECK(are_intact(one - 1, FEW + 2));
  return NULL;
}

static const char *drop_one_often(void) {
  MISSING(one);
  for (int i = 0; i < rounds; i++) {
    CHECK(!madvise(at(one), PAGE, MADV_DONTNEED));
    if (i % 100 == 7) CHECK(has(at(one), 0));
    if (i % 1000 == 0) printf("at %d\n", i);
  }
  expect_zeros(one, 1);
  return NULL;
}

static const char *drop_many_often(void) {
  MISSING(one);
  for (int i = 0; i < rounds; i++) {
    int page = one + i * 7 % (3 * SLOT_PAGES), count = 1 + i % FEW;
    CHECK(!madvise(at(page), (size_t)count * PAGE, MADV_DONTNEED));
    expect_zeros(page, count);
    if (i % 50 == 9) rewrite(page);
    if (i % 1000 == 0) printf("at %d\n", i);
  }
  return NULL;
}

static unsigned char *heap;

static void use_heap(void) {
  sbrk(PAGE - (intptr_t)((uintptr_t)sbrk(0) % PAGE));
  heap = sbrk(64 * PAGE);
  memset(heap, 5, 64 * PAGE);
}

static const char *shrink_heap(void) {
  unsigned char *end = sbrk(0), *cut = end - 32 * PAGE;
  CHECK(end == heap + 64 * PAGE);
  CHECK(heap[PAGE] == 5);
  CHECK(sbrk(-32 * PAGE) == end && sbrk(32 * PAGE) == cut);
  for (unsigned char *byte = heap; byte < end; byte++) CHECK(*byte == (byte < cut ? 5 : 0));
  return NULL;
}

static atomic_int bad;
static void *churn(void *argument) {
  int first = (int)(intptr_t)argument * SLOT_PAGES + SLOT_PAGES / 2;
  for (int i = 0; i < 200; i++) {
    int page = first + i % FEW;
    if (!is_intact(page)) bad++;
    if (i % 3 == 0) rewrite(page);
    if (i % 3 == 1 && !madvise(at(page), PAGE, MADV_DONTNEED)) seeds[page] = 0;
    if (i % 50 == 2 && !is_intact(first - i / 50 - 1)) bad++;
  }
  return NULL;
}

static const char *churn_in_threads(void) {
  MISSING(one);
  pthread_t threads[SLOTS - 2];
  for (intptr_t i = 0; i < SLOTS - 2; i++) {
    CHECK(!pthread_create(&threads[i], NULL, churn, (void *)i));
  }
  for (int i = 0; i < SLOTS - 2; i++) pthread_join(threads[i], NULL);
  CHECK(!bad);
  return NULL;
}

// A thread waits for a page while another one puts new memory there. The test stops the process
// that serves the pages, so that both wait at the same time.

static atomic_int reader;
static void *read_page(void *page) {
  reader = (int)syscall(SYS_gettid);
  return (void *)(uintptr_t)*(volatile unsigned char *)page;
}

static int waits(int thread) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  const char *end = got > 0 ? strrchr(text, ')') : NULL;
  return !end || end[2] != 'R';
}

static const char *replace_while_waiting(void) {
  int page = is_missing(one) ? one : two;
  MISSING(page);
  pthread_t thread;
  reader = 0;
  CHECK(!pthread_create(&thread, NULL, read_page, at(page)));
  for (int seen = 0; seen < 20; usleep(1000)) seen = reader && waits(reader) ? seen + 1 : 0;
  map_pages(at(page), FEW * PAGE, MAP_FIXED);
  expect_zeros(page, FEW);
  void *byte;
  CHECK(!pthread_join(thread, &byte));
  CHECK(are_intact(page - 1, FEW + 2));
  return NULL;
}

static const struct test tests[] = {
  {"drop", NULL, drop},
  {"dropped_early", drop_early, dropped_early},
  {"free_lazily", NULL, free_lazily},
  {"unmap", NULL, unmap},
  {"protect", NULL, protect},
  {"guarded_early", guard_early, guarded_early},
  {"guard", NULL, guard},
  {"guard_amid_drops", NULL, guard_amid_drops},
  {"guard_briefly", NULL, guard_briefly},
  {"drop_one_often", NULL, drop_one_often},
  {"drop_many_often", NULL, drop_many_often},
  {"shrink_heap", use_heap, shrink_heap},
  {"churn_in_threads", NULL, churn_in_threads},
  {"replace_while_waiting", NULL, replace_while_waiting},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
