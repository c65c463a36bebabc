// A program that changes some of its memory in every way that a program can, and compares all of it
// with a copy in shared memory, which no hibernation moves: for images that have only changed
// pages.
//
//   layers PAGES                 prints `ready PID`; four regions of PAGES pages each: anonymous,
//                                huge pages, a private mapping of a file, the heap
//
// One command a line on stdin, one line on stdout for each:
//   change SEED COUNT   changed COUNT
//   grow PAGES          grown       writes PAGES new pages
//   rewrite             rewritten   writes to each page what is there
//   droppable           mapped | unsupported   maps and writes a page that the kernel may drop
//   verify              same | differs at REGION PAGE
//   exec                ready PID   replaces itself
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, REGIONS = 4 };
enum { ANONYMOUS, HUGE_PAGES, OF_FILE, HEAP };

static int pages, file, zero, memory;
static unsigned char *region[REGIONS], *shadow[REGIONS];
static uint64_t state;

static uint64_t next(void) {
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void *map(void *at, size_t length, int flags, int fd, off_t offset) {
  void *got = mmap(at, length, PROT_READ | PROT_WRITE, flags, fd, offset);
  if (got == MAP_FAILED) { perror("layers: mmap"); exit(2); }
  return got;
}

static void fill(unsigned char *page) {
  for (int i = 0; i < PAGE / 8; i++) ((uint64_t *)page)[i] = i % 8 ? 0x1234 : next();
}

static void set_up(void) {
  size_t length = (size_t)pages * PAGE;
  region[ANONYMOUS] = map(NULL, length, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  size_t huge = 2 << 20;
  unsigned char *wide = map(NULL, length + huge, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  region[HUGE_PAGES] = (unsigned char *)(((uintptr_t)wide + huge - 1) & ~(uintptr_t)(huge - 1));
  madvise(region[HUGE_PAGES], length, MADV_HUGEPAGE);
  char name[] = "/tmp/dormouse-layers-XXXXXX";
  file = mkstemp(name);
  unlink(name);
  for (int p = 0; p < pages; p++) {
    unsigned char page[PAGE];
    fill(page);
    if (pwrite(file, page, PAGE, (off_t)p * PAGE) != PAGE) exit(2);
  }
  region[OF_FILE] = map(NULL, length, MAP_PRIVATE, file, 0);
  region[HEAP] = aligned_alloc(PAGE, 64 * PAGE);  // small enough for the heap itself
  for (int r = 0; r < REGIONS; r++) {
    int count = r == HEAP ? 64 : pages;
    shadow[r] = map(NULL, (size_t)count * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int p = 0; p < count; p++) {
      if (r != OF_FILE || p % 2) fill(region[r] + (size_t)p * PAGE);
      memcpy(shadow[r] + (size_t)p * PAGE, region[r] + (size_t)p * PAGE, PAGE);
    }
  }
}

static void keep(int r, int p) {
  memcpy(shadow[r] + (size_t)p * PAGE, region[r] + (size_t)p * PAGE, PAGE);
}

// The content of a page of the region that was never written to.
static void forget(int r, int p) {
  if (r == OF_FILE) {
    if (pread(file, shadow[r] + (size_t)p * PAGE, PAGE, (off_t)p * PAGE) != PAGE) exit(2);
  } else {
    memset(shadow[r] + (size_t)p * PAGE, 0, PAGE);
  }
}

static void fork_one(unsigned char *page) {
  pid_t child = fork();
  if (child == 0) { memset(page, 0x5a, PAGE); _exit(0); }
  waitpid(child, NULL, 0);
}

static void change_one(void) {
  int r = (int)(next() % REGIONS);
  int p = (int)(next() % (uint64_t)(r == HEAP ? 64 : pages));
  unsigned char *page = region[r] + (size_t)p * PAGE;
  int mappable = r == ANONYMOUS || r == OF_FILE;
  switch (next() % 12) {
    case 0: page[next() % PAGE] ^= 0x55; keep(r, p); break;
    case 1: page[7] = page[7]; break;  // written, and the same
    case 2: fill(page); keep(r, p); break;
    case 3: memset(page, 0, PAGE); keep(r, p); break;
    case 4: if (madvise(page, PAGE, MADV_DONTNEED)) exit(2); forget(r, p); break;
    case 5:
      if (madvise(page, PAGE, MADV_DONTNEED)) exit(2);
      forget(r, p);
      page[99] = 1;
      shadow[r][(size_t)p * PAGE + 99] = 1;
      break;
    case 6: fork_one(page); page[1]++; keep(r, p); break;
    case 7: fork_one(page); break;
    case 8:
      mprotect(page, PAGE, PROT_READ);
      // EIO: this kernel permits that to tracers only.
      if (pwrite(memory, "m", 1, (off_t)(uintptr_t)(page + 8)) != 1 && errno != EIO) exit(2);
      mprotect(page, PAGE, PROT_READ | PROT_WRITE);
      keep(r, p);
      break;
    case 9: if (read(zero, page + 100, 2000) != 2000) exit(2); keep(r, p); break;
    case 10:
      if (!mappable) break;
      munmap(page, PAGE);
      if (r == OF_FILE) map(page, PAGE, MAP_PRIVATE | MAP_FIXED, file, (off_t)p * PAGE);
      else map(page, PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      forget(r, p);
      if (next() % 2) { fill(page); keep(r, p); }
      break;
    case 11: {
      // Two pages change places.
      int q = (int)(next() % (uint64_t)pages);
      if (r != ANONYMOUS || q == p) break;
      unsigned char *other = region[r] + (size_t)q * PAGE;
      unsigned char *aside = map(NULL, PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, aside);
      mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page);
      mremap(aside, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
      keep(r, p);
      keep(r, q);
      break;
    }
  }
}

static const char *map_droppable(void) {
  enum { DROPPABLE = 8 };  // MAP_DROPPABLE (Linux 6.11), in place of MAP_PRIVATE
  char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, DROPPABLE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return "unsupported";
  page[0] = 1;
  return "mapped";
}

static void verify(void) {
  for (int r = 0; r < REGIONS; r++) {
    int count = r == HEAP ? 64 : pages;
    for (int p = 0; p < count; p++) {
      if (memcmp(region[r] + (size_t)p * PAGE, shadow[r] + (size_t)p * PAGE, PAGE)) {
        printf("differs at %d %d\n", r, p);
        return;
      }
    }
  }
  printf("same\n");
}

int main(int count, char **words) {
  if (count < 2) return 64;
  setvbuf(stdout, NULL, _IOLBF, 0);
  pages = atoi(words[1]);
  state = 42;
  zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  set_up();
  printf("ready %d\n", getpid());
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    unsigned long long seed;
    int number;
    if (sscanf(line, "change %llu %d", &seed, &number) == 2) {
      state = seed;
      for (int i = 0; i < number; i++) change_one();
      printf("changed %d\n", number);
    } else if (sscanf(line, "grow %d", &number) == 1) {
      unsigned char *more = map(NULL, (size_t)number * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      for (int p = 0; p < number; p++) fill(more + (size_t)p * PAGE);
      printf("grown\n");
    } else if (!strcmp(line, "rewrite\n")) {
      for (int r = 0; r < REGIONS; r++)
        for (int p = 0; p < (r == HEAP ? 64 : pages); p++) {
          volatile unsigned char *byte = region[r] + (size_t)p * PAGE;
          *byte = *byte;
        }
      printf("rewritten\n");
    } else if (!strcmp(line, "droppable\n")) {
      printf("%s\n", map_droppable());
    } else if (!strcmp(line, "verify\n")) {
      verify();
    } else if (!strcmp(line, "exec\n")) {
      execv("/proc/self/exe", words);
    }
  }
  return 0;
}
