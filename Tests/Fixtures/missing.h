// What the programs missing_*.c have in common: a region whose contents are known, and
// the conversation with the test. A program tries one thing with memory that isn't in RAM.
//
//   PROGRAM CASE DIRECTORY [ROUNDS]    prints `ready PID ADDRESS`, the region's address
//
// One command a line on stdin, one line on stdout for each:
//   run      right, present (the memory is in RAM: nothing was tried), or wrong and the reason
//   check    whole, or wrong and the reason: reads the whole region
// With `present` nothing has changed. A case that takes long also prints lines `at N`.
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

// A page of one slot is never brought back together with a page of another slot, because Dormouse
// reads at most 256 KB at a time.
enum {
  PAGE = PAGE_BYTES,
  SLOT = 512 * 1024,
  SLOTS = 8,
  SLOT_PAGES = SLOT / PAGE,
  PAGES = SLOTS * SLOT_PAGES,
  FEW = 4  // on every machine, these pages follow the middle of a slot
};

static unsigned char *region;
static uint64_t seeds[PAGES];  // what each page has; 0: zeros
static uint64_t last_seed;
static const char *directory;  // for files
static int rounds;  // of cases that repeat one thing
static char complaint[256];

struct test {
  const char *name;
  void (*prepare)(void);  // called before the memory leaves RAM; may be NULL
  const char *(*run)(void);  // returns NULL, `present`, or what is wrong
};

#define CHECK(condition) \
  do { if (!(condition)) return failed(#condition, __LINE__); } while (0)
#define MISSING(page) \
  do { if (!is_missing(page)) return "present"; } while (0)

static inline const char *failed(const char *condition, int line) {
  snprintf(complaint, sizeof complaint, "line %d: %s isn't true, errno %d", line, condition, errno);
  return complaint;
}

static inline unsigned char *at(int page) { return region + (size_t)page * PAGE; }
static inline int middle(int slot) { return slot * SLOT_PAGES + SLOT_PAGES / 2; }

static inline uint64_t word(uint64_t seed, size_t i) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + i * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return seed ? x ^ (x >> 29) : 0;
}

// Gives a page new contents.
static inline void rewrite(int page) {
  seeds[page] = ++last_seed;
  for (size_t i = 0; i < PAGE / 8; i++) ((uint64_t *)at(page))[i] = word(seeds[page], i);
}

static inline void rewrite_all(int page, int count) {
  for (int i = 0; i < count; i++) rewrite(page + i);
}

static inline void expect_zeros(int page, int count) {
  for (int i = 0; i < count; i++) seeds[page + i] = 0;
}

// True if memory has a page's contents, but for `length` bytes from `from` on.
static inline int has_but(const void *memory, uint64_t seed, size_t from, size_t length) {
  const unsigned char *bytes = memory;
  for (size_t i = 0; i < PAGE / 8; i++) {
    uint64_t is, expected = word(seed, i);
    memcpy(&is, bytes + i * 8, 8);
    if (is == expected) continue;
    for (size_t b = 0; b < 8; b++) {
      if (i * 8 + b >= from && i * 8 + b < from + length) continue;
      if (((unsigned char *)&is)[b] != ((unsigned char *)&expected)[b]) return 0;
    }
  }
  return 1;
}

static inline int has(const void *memory, uint64_t seed) { return has_but(memory, seed, 0, 0); }
static inline int is_intact(int page) { return has(at(page), seeds[page]); }

static inline int are_intact(int page, int count) {
  for (int i = 0; i < count; i++) if (!is_intact(page + i)) return 0;
  return 1;
}

static inline const char *check_region(void) {
  for (int page = 0; page < PAGES; page++) {
    if (is_intact(page)) continue;
    uint64_t is;
    memcpy(&is, at(page), sizeof is);
    snprintf(complaint, sizeof complaint, "page %d begins with %llx instead of %llx", page,
             (unsigned long long)is, (unsigned long long)word(seeds[page], 0));
    return complaint;
  }
  return NULL;
}

// True if a page is neither in RAM nor in swap. A mark that stands for nothing counts as missing.
static inline int is_missing(int page) {
  uint64_t entry = 0;
  int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t got = pread(file, &entry, sizeof entry, (off_t)((uintptr_t)at(page) / PAGE * 8));
  close(file);
  if (got != sizeof entry) return 0;
  return !(entry >> 63) && (!(entry >> 62 & 1) || (entry >> 57 & 1));
}

// True if the kernel can't read a byte there for this process.
static inline int is_unreadable(const void *memory) {
  int ends[2];
  if (pipe(ends)) return 0;
  ssize_t put = write(ends[1], memory, 1);
  int code = errno;
  close(ends[0]);
  close(ends[1]);
  return put < 0 && code == EFAULT;
}

static inline void *map_pages(void *where, size_t length, int flags) {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS;
  void *got = mmap(where, length, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (got == MAP_FAILED) exit(3);
  return got;
}

static inline void answer(const char *good, const char *bad) {
  if (!bad) printf("%s\n", good);
  else if (!strcmp(bad, "present")) printf("present\n");
  else printf("wrong: %s\n", bad);
}

// Returns true if a child says that `body` is right.
static inline int child_is_right(int (*body)(void)) {
  pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return child > 0 && status == 0;
}

static inline int converse(int count, char **arguments, const struct test *tests, size_t number) {
  static char input[BUFSIZ], output[BUFSIZ];  // so that nothing is allocated for them later
  setvbuf(stdin, input, _IOFBF, sizeof input);
  setvbuf(stdout, output, _IOLBF, sizeof output);
  const struct test *test = NULL;
  for (size_t i = 0; i < number && count > 2; i++) {
    if (!strcmp(tests[i].name, arguments[1])) test = &tests[i];
  }
  if (!test) return 2;
  directory = arguments[2];
  rounds = count > 3 ? atoi(arguments[3]) : 0;
  // Huge pages would stay.
  unsigned char *area = map_pages(NULL, (size_t)PAGES * PAGE + 2 * SLOT, 0);
  region = area + SLOT;
  madvise(area, (size_t)PAGES * PAGE + 2 * SLOT, MADV_NOHUGEPAGE);
  munmap(area, SLOT);
  munmap(region + (size_t)PAGES * PAGE, SLOT);
  rewrite_all(0, PAGES);
  if (test->prepare) test->prepare();
  printf("ready %d %p\n", (int)getpid(), (void *)region);
  char line[128];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "run", 3)) answer("right", test->run());
    else answer("whole", check_region());
  }
  return 0;
}
