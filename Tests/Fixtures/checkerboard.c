// A program whose every second page is empty, so that each page that is filled is a run of its own.
//
//   checkerboard PAGES [DROPPERS]    prints `ready PID`
//
// One command a line on stdin, one line on stdout for each:
//   move PAGE   moved: waits until that page is in RAM, then moves all memory at once (mremap)
//   verify      whole, or wrong and the number of pages
//   storm       the same, while all droppers drop a page of theirs again and again (madvise)
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, IDLE = 60 };

static size_t pages;
static atomic_int storms;

static unsigned char *map(void) {
  void *got = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) exit(3);
  madvise(got, pages * PAGE, MADV_NOHUGEPAGE);
  return got;
}

static uint64_t word(size_t page) { return (page + 1) * 0x9e3779b97f4a7c15u; }

// Whether the page is in RAM. This doesn't use the page.
static int is_present(const unsigned char *page) {
  uint64_t entry = 0;
  int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) exit(4);
  ssize_t got = pread(file, &entry, sizeof entry, (off_t)((uintptr_t)page / PAGE * 8));
  close(file);
  return got == sizeof entry && entry >> 63;
}

static void *drop(void *page) {
  for (;;) {
    while (!storms) usleep(1000);
    madvise(page, PAGE, MADV_DONTNEED);
  }
  return page;
}

// A program with many threads takes longer to be examined.
static void *idle(void *nothing) {
  for (;;) pause();
  return nothing;
}

static void start(void *(*run)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, argument)) exit(5);
}

static void verify(const unsigned char *at) {
  long wrong = 0;
  for (size_t page = 0; page < pages; page++) {
    uint64_t expected = page % 2 ? 0 : word(page);
    const uint64_t *words = (const uint64_t *)(at + page * PAGE);
    for (size_t i = 0; i < PAGE / 8; i++) {
      if (words[i] != expected) { wrong++; break; }
    }
  }
  if (wrong) printf("wrong %ld\n", wrong);
  else printf("whole\n");
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  pages = (size_t)atoi(arguments[1]);
  unsigned char *at = map();
  for (size_t page = 0; page < pages; page += 2) {
    for (size_t i = 0; i < PAGE / 8; i++) ((uint64_t *)(at + page * PAGE))[i] = word(page);
  }
  if (count > 2) {
    unsigned char *dropped = map();
    for (int i = 0; i < atoi(arguments[2]); i++) {
      memset(dropped + 2 * i * PAGE, 1, PAGE);
      start(drop, dropped + 2 * i * PAGE);
    }
    for (int i = 0; i < IDLE; i++) start(idle, NULL);
  }
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    size_t first;
    if (sscanf(line, "move %zu", &first) == 1) {
      while (!is_present(at + first * PAGE)) {}
      void *to = map();
      at = mremap(at, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
      if (at == MAP_FAILED) return 4;
      printf("moved\n");
    } else if (!strncmp(line, "storm", 5)) {
      storms = 1;
      verify(at);
      storms = 0;
    } else {
      verify(at);
    }
    fflush(stdout);
  }
  return 0;
}
