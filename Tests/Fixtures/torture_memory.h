// The memory of torture.c: regions of every private kind, filled by a seed, and the checksums over
// them.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mix.h"
#include "page.h"

enum { PAGE = PAGE_BYTES, MAX_REGIONS = 64, MAX_BLOCKS = 1 << 20 };

static void die(const char *what) {
  fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
  exit(2);
}

static int must(int result, const char *what) {
  if (result < 0) die(what);
  return result;
}

// ---- Patterns and checksums -------------------------------------------------------------

static void fill_random(void *at, size_t bytes, uint64_t seed) {
  unsigned char *to = at;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = mix(seed + i);
    memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
}

// A quarter zeros, a quarter compressible, half random: roughly what heaps hold.
static void fill_page(void *at, size_t bytes, uint64_t seed) {
  switch (mix(seed) % 4) {
    case 0: memset(at, 0, bytes); break;
    case 1:
      for (size_t i = 0; i < bytes; i++) ((char *)at)[i] = "dormouse sleeps "[(i + seed) % 16];
      break;
    default: fill_random(at, bytes, seed);
  }
}

static uint64_t hash(uint64_t h, const void *at, size_t bytes) {
  const unsigned char *from = at;
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
    h = (h ^ word) * 0x9fb21c651e98df25u;
    h ^= h >> 32;
  }
  return h;
}

// ---- Regions ------------------------------------------------------------------------------

struct region {
  unsigned char *at;
  size_t bytes;
  int rest;  // the protection that it has while no command reads it
};
static struct region regions[MAX_REGIONS];
static int region_count;
static struct { unsigned char *at; uint32_t bytes; } blocks[MAX_BLOCKS];
static int block_count;

static void add_region(void *at, size_t bytes, int rest, uint64_t seed, size_t every) {
  if (region_count == MAX_REGIONS) die("too many regions");
  for (size_t p = 0; p < bytes / PAGE; p += every)
    fill_page((unsigned char *)at + p * PAGE, PAGE, seed + (uint64_t)region_count * 1000003 + p);
  if (mprotect(at, bytes, rest)) die("mprotect");
  regions[region_count++] = (struct region){at, bytes, rest};
}

static void *map(size_t bytes, int flags, int fd) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) die("mmap");
  return at;
}

static void *map_anonymous(size_t bytes) { return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1); }

static void add_heap(size_t bytes, uint64_t seed) {
  for (size_t done = 0; done < bytes && block_count < MAX_BLOCKS; block_count++) {
    uint32_t size = 48 + mix(seed + block_count) % 8000;
    unsigned char *at = malloc(size);
    if (!at) die("malloc");
    fill_page(at, size, seed + block_count);
    blocks[block_count].at = at;
    blocks[block_count].bytes = size;
    done += size;
  }
}

// Two stretches with an inaccessible page between them, the second with a guard page inside its
// mapping where the kernel has those (6.13).
static void add_guarded(size_t bytes, uint64_t seed) {
  size_t half = bytes / 2 / PAGE * PAGE, quarter = half / 2 / PAGE * PAGE;
  unsigned char *at = map_anonymous(half * 2 + 2 * PAGE);
  if (mprotect(at + half, PAGE, PROT_NONE)) die("mprotect");
  unsigned char *second = at + half + PAGE;
  (void)madvise(second + quarter, PAGE, 102 /* MADV_GUARD_INSTALL */);
  int rw = PROT_READ | PROT_WRITE;
  add_region(at, half, rw, seed, 1);
  add_region(second, quarter, rw, seed, 1);
  add_region(second + quarter + PAGE, half - quarter, rw, seed, 1);
}

static void add_file(int fd, size_t bytes, uint64_t seed) {
  void *at = map(bytes, MAP_PRIVATE, fd);
  add_region(at, bytes, PROT_READ | PROT_WRITE, seed, 3);
  close(fd);
}

static void add_files(uint64_t seed) {
  int self = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "open /proc/self/exe");
  add_file(self, (size_t)lseek(self, 0, SEEK_END) / PAGE * PAGE, seed);
  char name[] = "/tmp/torture-XXXXXX";
  int fd = must(mkstemp(name), "mkstemp");
  unlink(name);
  unsigned char page[PAGE];
  for (int p = 0; p < 256; p++) {
    fill_page(page, PAGE, seed + 77 + p);
    if (write(fd, page, PAGE) != PAGE) die("write to the temporary file");
  }
  add_file(fd, 256 * PAGE, seed);
}

static void add_regions(size_t megabytes, uint64_t seed) {
  size_t bytes = megabytes << 20, eighth = bytes / 8, rw = PROT_READ | PROT_WRITE;
  add_heap(bytes / 4, seed);
  add_guarded(eighth, seed);
  add_region(map_anonymous(eighth), eighth, PROT_NONE, seed, 1);
  add_region(map_anonymous(eighth), eighth, PROT_READ, seed, 1);

  size_t huge = (bytes / 4 + (2 << 20) - 1) >> 21 << 21;
  unsigned char *at = map_anonymous(huge + (2 << 20));
  at = (unsigned char *)(((uintptr_t)at + (2 << 20) - 1) >> 21 << 21);
  (void)madvise(at, huge, MADV_HUGEPAGE);
  add_region(at, huge, rw, seed, 1);

  at = map_anonymous(eighth);
  if (madvise(at, eighth, MADV_DONTFORK)) die("madvise DONTFORK");
  add_region(at, eighth, rw, seed, 1);

  size_t sparse = 8 << 20;  // one page in 64: summing it maps the zero page into the others
  at = map_anonymous(sparse);
  (void)madvise(at, sparse, MADV_NOHUGEPAGE);
  add_region(at, sparse, rw, seed, 64);

  add_region(map(64 * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), 64 * PAGE, rw, seed, 1);
  add_files(seed);
}

static uint64_t sum_regions(uint64_t h) {
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    int hidden = !(r->rest & PROT_READ);
    if (hidden && mprotect(r->at, r->bytes, PROT_READ)) die("mprotect");
    h = hash(h, r->at, r->bytes);
    if (hidden && mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = 0; i < block_count; i++) h = hash(h, blocks[i].at, blocks[i].bytes);
  return h;
}

// To find what differs from another run of the same commands.
static void detail(const char *path) {
  FILE *file = fopen(path, "we");
  if (!file) die(path);
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    int hidden = !(r->rest & PROT_READ);
    if (hidden && mprotect(r->at, r->bytes, PROT_READ)) die("mprotect");
    for (size_t p = 0; p < r->bytes / PAGE; p++) {
      unsigned char *page = r->at + p * PAGE;
      fprintf(file, "region %d page %zu: %016llx, begins %016llx @%p\n", i, p,
              (unsigned long long)hash(1, page, PAGE), *(unsigned long long *)page, (void *)page);
    }
    if (hidden && mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = 0; i < block_count; i++)
    fprintf(file, "block %d: %016llx @%p\n", i,
            (unsigned long long)hash(1, blocks[i].at, blocks[i].bytes), (void *)blocks[i].at);
  fclose(file);
}

static int touch_regions(uint64_t seed) {
  int touched = 0;
  for (int i = 0; i < region_count; i++) {
    struct region *r = &regions[i];
    if (mprotect(r->at, r->bytes, PROT_READ | PROT_WRITE)) die("mprotect");
    for (size_t p = mix(seed + i) % 7; p < r->bytes / PAGE; p += 7, touched++)
      fill_page(r->at + p * PAGE, PAGE, mix(seed) + p);
    if (mprotect(r->at, r->bytes, r->rest)) die("mprotect");
  }
  for (int i = (int)(mix(seed) % 5); i < block_count; i += 5, touched++)
    fill_page(blocks[i].at, blocks[i].bytes, mix(seed) + i);
  return touched;
}
