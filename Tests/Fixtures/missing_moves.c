// Moves memory while it isn't in RAM. missing.h describes the conversation.
#define _GNU_SOURCE
#include <pthread.h>

#include "missing.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static const int one = SLOT_PAGES + SLOT_PAGES / 2, two = 3 * SLOT_PAGES + SLOT_PAGES / 2;

static const char *move(void) {
  MISSING(one);
  unsigned char *moved = mremap(at(one), FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                                map_pages(NULL, FEW * PAGE, 0));
  CHECK(moved != MAP_FAILED && moved != at(one));
  CHECK(is_unreadable(at(one)));
  for (int i = 0; i < FEW; i++) CHECK(has(moved + (size_t)i * PAGE, seeds[one + i]));
  CHECK(mremap(moved, FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(one)) == at(one));
  CHECK(are_intact(one - 1, FEW + 2));
  return NULL;
}

// As an allocator does in realloc.
static const char *grow(void) {
  MISSING(one);
  size_t pages = FEW;
  unsigned char *block = at(one);
  for (int round = 0; round < 50; round++) {
    block = mremap(block, pages * PAGE, (pages + 2) * PAGE, MREMAP_MAYMOVE);
    CHECK(block != MAP_FAILED);
    pages += 2;
    CHECK(has(block + (pages - 1) * PAGE, 0));
    block[(pages - 1) * PAGE] = (unsigned char)round;
    if (round == 20) CHECK(has(block + PAGE, seeds[one + 1]));
  }
  for (size_t i = 0; i < pages; i++) {
    CHECK(i < FEW ? has(block + i * PAGE, seeds[one + i]) : has_but(block + i * PAGE, 0, 0, 1));
  }
  CHECK(mremap(block, pages * PAGE, FEW * PAGE, 0) == block);
  CHECK(mremap(block, FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(one)) == at(one));
  return NULL;
}

static const char *move_over(void) {
  MISSING(one);
  MISSING(two);
  CHECK(mremap(at(one), FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(two)) == at(two));
  for (int i = 0; i < FEW; i++) seeds[two + i] = seeds[one + i];
  CHECK(are_intact(two - 1, FEW + 2));
  map_pages(at(one), FEW * PAGE, MAP_FIXED);
  expect_zeros(one, FEW);
  return NULL;
}

static const char *move_keeping(void) {
  MISSING(one);
  unsigned char *moved =
      mremap(at(one), FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
  if (moved == MAP_FAILED && errno == EINVAL) return NULL;  // an older kernel
  CHECK(moved != MAP_FAILED);
  for (int i = 0; i < FEW; i++) CHECK(has(moved + (size_t)i * PAGE, seeds[one + i]));
  expect_zeros(one, FEW);
  CHECK(are_intact(one - 1, FEW + 2));
  CHECK(!munmap(moved, FEW * PAGE));
  return NULL;
}

static unsigned char *block;
enum { BLOCK = 1 << 20 };
static void use_block(void) {
  block = malloc(BLOCK);
  for (size_t i = 0; block && i < BLOCK; i++) block[i] = (unsigned char)(i * 31 >> 5);
}
static const char *resize_block(void) {
  for (size_t length = BLOCK; length < 4 * BLOCK; length += BLOCK / 4) {
    block = realloc(block, length);
    CHECK(block);
    block[length - 1] = 1;
  }
  for (size_t i = 0; i < BLOCK - 1; i++) CHECK(block[i] == (unsigned char)(i * 31 >> 5));
  free(block);
  return NULL;
}

static const char *move_shortened(void) {
  MISSING(one);
  MISSING(two);
  int kept = FEW / 2;
  CHECK(mremap(at(one), FEW * PAGE, kept * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(two)) ==
        at(two));
  for (int i = 0; i < kept; i++) seeds[two + i] = seeds[one + i];
  CHECK(are_intact(two, FEW * 2));
  CHECK(is_unreadable(at(one)) && is_unreadable(at(one + kept)));
  map_pages(at(one), FEW * PAGE, MAP_FIXED);
  expect_zeros(one, FEW);
  CHECK(are_intact(one - 1, FEW + 2));
  return NULL;
}

// Two mappings side by side that the kernel doesn't merge, because each has got memory elsewhere.

static unsigned char *pair;

static void use_pair(void) {
  pair = map_pages(NULL, 2 * SLOT, 0);
  munmap(pair + SLOT, SLOT);
  unsigned char *other = map_pages(NULL, SLOT, 0);
  for (size_t i = 0; i < SLOT; i++) pair[i] = other[i] = (unsigned char)(i / PAGE + 1);
  if (mremap(other, SLOT, SLOT, MREMAP_MAYMOVE | MREMAP_FIXED, pair + SLOT) != pair + SLOT) exit(3);
}

static const char *use_border(void) {
  CHECK(pair[SLOT - 1] == (unsigned char)SLOT_PAGES && pair[SLOT] == 1);
  return NULL;
}

// The kernel puts the new pages of locked memory in place at once.
static const char *grow_locked(void) {
  MISSING(one);
  CHECK(!mlock(at(one), FEW * PAGE));
  MISSING(two);
  size_t length = 64 * PAGE;
  // The kernel rounds both lengths up.
  unsigned char *block = mremap(at(one), FEW * PAGE - 1, length - 1, MREMAP_MAYMOVE);
  CHECK(block != MAP_FAILED && block != at(one));
  for (int i = 0; i < FEW; i++) CHECK(has(block + (size_t)i * PAGE, seeds[one + i]));
  for (size_t i = FEW; i < length / PAGE; i++) CHECK(has(block + i * PAGE, 0));
  CHECK(!munlock(block, length));
  CHECK(mremap(block, length, FEW * PAGE, 0) == block);
  CHECK(mremap(block, FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(one)) == at(one));
  return NULL;
}

static unsigned char *away;
static void *move_away(void *unused) {
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (mremap(at(one), FEW * PAGE, FEW * PAGE, flags, away) != away) away = NULL;
  return unused;
}
// Another thread's memory is moved to where memory was that is moved away. The first run brings
// the former into RAM, and the second one waits in both calls if there is no daemon.
static const char *exchange(void) {
  static int has_run;
  unsigned char *old = at(one), seen;
  if (!has_run++) {
    MISSING(one);
    MISSING(two);
    CHECK(are_intact(two, FEW));
    return NULL;
  }
  away = map_pages(NULL, FEW * PAGE, 0);
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, move_away, NULL));
  while (!mincore(old, PAGE, &seen)) {}  // until nothing is mapped there
  CHECK(mremap(at(two), FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, old) == old);
  CHECK(!pthread_join(thread, NULL) && away);
  for (int i = 0; i < FEW; i++) {
    CHECK(has(away + (size_t)i * PAGE, seeds[one + i]) && has(at(one + i), seeds[two + i]));
  }
  CHECK(mremap(old, FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(two)) == at(two));
  CHECK(mremap(away, FEW * PAGE, FEW * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, old) == old);
  return NULL;
}

static const struct test tests[] = {
  {"move", NULL, move},
  {"grow", NULL, grow},
  {"grow_locked", NULL, grow_locked},
  {"move_over", NULL, move_over},
  {"move_keeping", NULL, move_keeping},
  {"move_shortened", NULL, move_shortened},
  {"resize_block", use_block, resize_block},
  {"use_border", use_pair, use_border},
  {"exchange", NULL, exchange},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
