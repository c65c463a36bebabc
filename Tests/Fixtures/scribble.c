// A program whose threads write to pages all the time, also while it is put to sleep and while its
// pages are filled. Each page is compared with a number in shared memory, which no hibernation
// moves.
//
//   scribble THREADS MEGABYTES [forks | grows]   prints `ready PID`. `forks`: a thread forks
//   children that check all pages.
//                                                `grows`: a thread enlarges a mapping at its
//                                                address, and writes to the new pages.
//
// One command a line on stdin, one line on stdout for each:
//   exec     ready PID           replaces itself
//   verify   writes N errors M   all pages are read; N counts since the last answer, M from the
//   start
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, WORDS = PAGE / 8, MOST_THREADS = 16 };

static int threads;
static size_t each;                        // pages of one thread
static uint64_t *pages;                    // private
// shared with children, and moved by no hibernation
static _Atomic uint64_t *numbers, *writes, *errors;
static pthread_mutex_t locks[MOST_THREADS];

static void *map(size_t length, int flags) {
  void *got = mmap(NULL, length, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) { perror("scribble: mmap"); exit(2); }
  return got;
}

// The first, the last and one more word of a page: its number, and where it is.
static void check(size_t page) {
  uint64_t *at = pages + page * WORDS, number = numbers[page];
  uint64_t other = 1 + page % (WORDS - 2);
  if (at[0] != number || at[WORDS - 1] != ~number || at[other] != number * 31 + page) {
    if ((*errors)++ == 0)
      dprintf(2, "scribble %d: page %zu has %llu, not %llu\n", getpid(), page,
              (unsigned long long)at[0], (unsigned long long)number);
  }
}

static void put(size_t page, uint64_t number) {
  uint64_t *at = pages + page * WORDS;
  at[0] = number;
  at[WORDS - 1] = ~number;
  at[1 + page % (WORDS - 2)] = number * 31 + page;
  numbers[page] = number;
}

static void *scribble(void *argument) {
  size_t self = (size_t)argument;
  unsigned seed = (unsigned)self * 7919 + 1;
  for (;;) {
    pthread_mutex_lock(&locks[self]);
    for (int i = 0; i < 8; i++) {
      // Most writes go to a quarter of the pages.
      size_t page = self * each + (size_t)rand_r(&seed) % (rand_r(&seed) % 8 ? each / 4 : each);
      check(page);
      put(page, numbers[page] + 1);
      (*writes)++;
    }
    pthread_mutex_unlock(&locks[self]);
    usleep(300);
  }
  return NULL;
}

// A child's page must fit together; the parent's threads have raised its number meanwhile.
static void check_copy(size_t page) {
  uint64_t *at = pages + page * WORDS, number = at[0];
  if (number == 0 || number > numbers[page] || at[WORDS - 1] != ~number ||
      at[1 + page % (WORDS - 2)] != number * 31 + page)
    (*errors)++;
}

static void *fork_often(void *unused) {
  (void)unused;
  for (;;) {
    for (int i = 0; i < threads; i++) pthread_mutex_lock(&locks[i]);
    pid_t child = fork();
    if (child == 0) {
      for (size_t page = 0; page < each * (size_t)threads; page++) check_copy(page);
      _exit(0);
    }
    for (int i = 0; i < threads; i++) pthread_mutex_unlock(&locks[i]);
    if (child > 0) waitpid(child, NULL, 0);
    usleep(4000);
  }
  return NULL;
}

static void *grow(void *unused) {
  (void)unused;
  size_t most = (size_t)256 << 20, length = 4 * PAGE;
  char *at = map(most, MAP_PRIVATE);
  munmap(at + length, most - length);
  memset(at, 1, length);
  while (length < most) {
    if (mremap(at, length, length + PAGE, 0) == at) {
      at[length] = 1;
      length += PAGE;
      (*writes)++;
    }
    usleep(500);
  }
  return NULL;
}

int main(int count, char **words) {
  if (count < 3) return 64;
  threads = atoi(words[1]);
  if (threads < 1 || threads > MOST_THREADS) return 64;
  each = (size_t)atoi(words[2]) * 256 / (size_t)threads;
  size_t all = each * (size_t)threads;
  pages = map(all * PAGE, MAP_PRIVATE);
  numbers = map(all * 8, MAP_SHARED);
  writes = map(PAGE, MAP_SHARED);
  errors = writes + 1;
  for (size_t page = 0; page < all; page++) {
    uint64_t *at = pages + page * WORDS;
    for (int i = 0; i < WORDS; i++) at[i] = (uint64_t)page * 2654435761u * (unsigned)(i / 3);
    put(page, 1);
  }
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    pthread_mutex_init(&locks[i], NULL);
    if (pthread_create(&thread, NULL, scribble, (void *)i)) return 2;
  }
  pthread_t other;
  int grows = count > 3 && strcmp(words[3], "grows") == 0;
  if (count > 3 && pthread_create(&other, NULL, grows ? grow : fork_often, NULL)) return 2;
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    if (strcmp(line, "exec\n") == 0) execv("/proc/self/exe", words);
    for (int i = 0; i < threads; i++) pthread_mutex_lock(&locks[i]);
    for (size_t page = 0; page < all; page++) check(page);
    printf("writes %llu errors %llu\n", (unsigned long long)atomic_exchange(writes, 0),
           (unsigned long long)*errors);
    fflush(stdout);
    for (int i = 0; i < threads; i++) pthread_mutex_unlock(&locks[i]);
  }
}
