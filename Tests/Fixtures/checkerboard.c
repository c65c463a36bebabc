// A program whose every second page is empty, so that each page that is filled is a run of its own.
//
//   checkerboard PAGES    prints `ready PID`
//
// One command a line on stdin, one line on stdout for each:
//   move PAGE   moved: waits until that page is in RAM, then moves all memory at once (mremap)
//   verify      whole, or wrong and the number of pages
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES };

static size_t pages;

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

int main(int count, char **arguments) {
  if (count < 2) return 2;
  pages = (size_t)atoi(arguments[1]);
  unsigned char *at = map();
  for (size_t page = 0; page < pages; page += 2) {
    for (size_t i = 0; i < PAGE / 8; i++) ((uint64_t *)(at + page * PAGE))[i] = word(page);
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
    } else if (!strncmp(line, "verify", 6)) {
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
    fflush(stdout);
  }
  return 0;
}
