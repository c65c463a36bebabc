// A program that changes its mappings in every way that a program can, and detects each page with
// wrong content: for resumes with missing pages.
//
//   churn THREADS REGIONS PAGES [CALLS]   prints `ready PID`; CALLS `drops`: no thread forks or
//   moves memory
//
// One command a line on stdin, one line on stdout for each:
//   churn SEED   churned N errors M    every thread at once: fork, munmap, mremap, madvise, writes,
//                                      system calls into its pages; all contents verified
//   verify       verified N errors M   reads everything
//   quit
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mix.h"
#include "page.h"

enum { PAGE = PAGE_BYTES, MAX_PAGES = 1024, OPERATIONS = 12 };

// What each page must hold: a seed, or 0 for zeros.
struct region {
  unsigned char *at;
  int pages;
  uint64_t expected[MAX_PAGES];
};

struct worker {
  pthread_t thread;
  int number;
  struct region *regions;
  uint64_t random;
};

static int thread_count, region_count, page_count, drops_only;
static struct worker *workers;
static pthread_barrier_t start, end;
static uint64_t order;  // the seed; 0: verify; ~0: quit
static atomic_long errors, operations;

static void complain(const char *what, const void *at, uint64_t is, uint64_t expected) {
  errors++;
  fprintf(stderr, "churn: %s at %p: %llx instead of %llx\n", what, at, (unsigned long long)is,
          (unsigned long long)expected);
}

static uint64_t word(uint64_t seed, int i) { return seed ? mix(seed + (uint64_t)i) : 0; }

static void fill(unsigned char *page, uint64_t seed) {
  for (int i = 0; i < PAGE / 8; i++) ((uint64_t *)page)[i] = word(seed, i);
}

static int check(const unsigned char *page, uint64_t seed, const char *what) {
  for (int i = 0; i < PAGE / 8; i++) {
    uint64_t is = ((const uint64_t *)page)[i];
    if (is != word(seed, i)) {
      complain(what, page + i * 8, is, word(seed, i));
      return 1;
    }
  }
  return 0;
}

static int check_region(struct region *r, const char *what) {
  int bad = 0;
  for (int p = 0; p < r->pages; p++) bad += check(r->at + (size_t)p * PAGE, r->expected[p], what);
  return bad;
}

static void *map(void *at, int pages, int flags) {
  void *got = mmap(at, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (got == MAP_FAILED) { perror("churn: mmap"); exit(2); }
  return got;
}

static uint64_t next(struct worker *w) { return w->random = mix(w->random); }

static void write_page(struct worker *w, struct region *r, int page) {
  r->expected[page] = next(w) | 1;
  fill(r->at + (size_t)page * PAGE, r->expected[page]);
}

// Restores the full size, with different content in every page.
static void restore(struct worker *w, struct region *r) {
  if (r->pages != page_count) {
    if (r->at) munmap(r->at, (size_t)r->pages * PAGE);
    r->at = map(NULL, page_count, 0);
    r->pages = page_count;
    for (int p = 0; p < r->pages; p++) write_page(w, r, p);
  }
  for (int p = 0; p < r->pages; p++) if (!r->expected[p]) write_page(w, r, p);
}

static void drop_some(struct worker *w, struct region *r) {
  int from = (int)(next(w) % (uint64_t)r->pages);
  int count = 1 + (int)(next(w) % (uint64_t)(r->pages - from));
  if (madvise(r->at + (size_t)from * PAGE, (size_t)count * PAGE, MADV_DONTNEED)) errors++;
  for (int p = from; p < from + count; p++) r->expected[p] = 0;
}

static void move(struct worker *w, struct region *r) {
  if (drops_only) return;
  int pages = r->pages < MAX_PAGES / 2 ? r->pages + (int)(next(w) % 32) : r->pages;
  void *to = NULL;
  int flags = MREMAP_MAYMOVE;
  if (next(w) % 2) {
    to = map(NULL, pages, 0);
    flags |= MREMAP_FIXED;
  }
  void *at = mremap(r->at, (size_t)r->pages * PAGE, (size_t)pages * PAGE, flags, to);
  if (at == MAP_FAILED) { complain("mremap", r->at, (uint64_t)errno, 0); return; }
  for (int p = r->pages; p < pages; p++) r->expected[p] = 0;
  r->at = at;
  r->pages = pages;
}

static void cut(struct region *r) {
  if (r->pages < 4) return;
  int keep = r->pages / 2;
  if (munmap(r->at + (size_t)keep * PAGE, (size_t)(r->pages - keep) * PAGE)) errors++;
  r->pages = keep;
}

static void replace(struct worker *w, struct region *r) {
  munmap(r->at, (size_t)r->pages * PAGE);
  r->at = map(r->at, r->pages, 0);
  for (int p = 0; p < r->pages; p++) r->expected[p] = 0;
  write_page(w, r, r->pages / 2);
}

static void fork_one(struct worker *w) {
  if (drops_only) return;
  pid_t child = fork();
  if (child < 0) { complain("fork", NULL, (uint64_t)errno, 0); return; }
  if (child == 0) {
    int bad = 0;
    for (int i = 0; i < region_count; i++) {
      bad += check_region(&w->regions[i], "in a child");
      memset(w->regions[i].at, 0x5a, PAGE);  // its own copy
    }
    _exit(bad ? 1 : 0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (status) complain("a child's verdict", NULL, (uint64_t)status, 0);
}

// The kernel itself reads one page and writes another, which no instruction of the program does.
static void copy_by_kernel(struct worker *w, struct region *from, struct region *to) {
  int ends[2];
  if (pipe(ends)) { errors++; return; }
  int source = (int)(next(w) % (uint64_t)from->pages);
  int target = (int)(next(w) % (uint64_t)to->pages);
  ssize_t out = write(ends[1], from->at + (size_t)source * PAGE, PAGE);
  ssize_t in = read(ends[0], to->at + (size_t)target * PAGE, PAGE);
  if (out != PAGE || in != PAGE) complain("a pipe", NULL, (uint64_t)in, PAGE);
  to->expected[target] = from->expected[source];
  close(ends[0]);
  close(ends[1]);
}

static void grow_heap(struct worker *w) {
  if (w->number != 0) return;
  unsigned char *at = sbrk(16 * PAGE);
  unsigned char *page = (unsigned char *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
  check(page, 0, "a new heap page");
  fill(page, 77);
  check(page, 77, "a heap page");
  sbrk(-16 * PAGE);
}

static void operate(struct worker *w) {
  struct region *r = &w->regions[next(w) % (uint64_t)region_count];
  struct region *other = &w->regions[next(w) % (uint64_t)region_count];
  operations++;
  switch (next(w) % 10) {
    case 0: check_region(r, "a page"); break;
    case 1: drop_some(w, r); break;
    case 2: move(w, r); break;
    case 3: cut(r); break;
    case 4: replace(w, r); break;
    case 5: if (next(w) % 4 == 0) fork_one(w); break;
    case 6: write_page(w, r, (int)(next(w) % (uint64_t)r->pages)); break;
    case 7: copy_by_kernel(w, r, other); break;
    case 8: grow_heap(w); break;
    case 9: check(r->at, r->expected[0], "a first page"); break;
  }
}

static void *run(void *argument) {
  struct worker *w = argument;
  for (;;) {
    pthread_barrier_wait(&start);
    if (order == ~0ull) return NULL;
    w->random = mix(order * 1000 + (uint64_t)w->number);
    // Nothing else must have brought the pages back before a fork or a move of missing ones.
    if (order && order % 3 == 0) fork_one(w);
    if (order % 3 == 1) move(w, &w->regions[0]);
    if (order) for (int i = 0; i < OPERATIONS; i++) operate(w);
    for (int i = 0; i < region_count; i++) check_region(&w->regions[i], "a page at the end");
    if (order) for (int i = 0; i < region_count; i++) restore(w, &w->regions[i]);
    pthread_barrier_wait(&end);
  }
}

static void all(uint64_t what) {
  order = what;
  pthread_barrier_wait(&start);
  if (what != ~0ull) pthread_barrier_wait(&end);
}

int main(int count, char **arguments) {
  if (count < 4) return 2;
  thread_count = atoi(arguments[1]);
  region_count = atoi(arguments[2]);
  page_count = atoi(arguments[3]);
  if (page_count > MAX_PAGES / 2) return 2;
  drops_only = count > 4 && !strcmp(arguments[4], "drops");
  pthread_barrier_init(&start, NULL, (unsigned)thread_count + 1);
  pthread_barrier_init(&end, NULL, (unsigned)thread_count + 1);
  workers = calloc((size_t)thread_count, sizeof *workers);
  for (int t = 0; t < thread_count; t++) {
    struct worker *w = &workers[t];
    w->number = t;
    w->random = mix((uint64_t)t);
    w->regions = calloc((size_t)region_count, sizeof *w->regions);
    for (int i = 0; i < region_count; i++) restore(w, &w->regions[i]);
    if (pthread_create(&w->thread, NULL, run, w)) return 2;
  }
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    unsigned long long seed;
    if (sscanf(line, "churn %llu", &seed) == 1) {
      all(seed + 1);
      printf("churned %ld errors %ld\n", atomic_load(&operations), atomic_load(&errors));
    } else if (!strncmp(line, "verify", 6)) {
      all(0);
      printf("verified %d errors %ld\n", thread_count * region_count, atomic_load(&errors));
    } else if (!strncmp(line, "quit", 4)) {
      break;
    }
    fflush(stdout);
  }
  all(~0ull);
  return 0;
}
