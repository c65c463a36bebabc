// Uses memory of special kinds that isn't in RAM: code, a deep stack, huge pages. missing.h
// describes the conversation.
#define _GNU_SOURCE
#include "missing.h"

static const int one = SLOT_PAGES + SLOT_PAGES / 2;

// A compiler that writes programs while it runs (JIT) makes such pages.
static void write_code(void) {
#ifdef __x86_64__
  unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};  // mov $42, %eax; ret
#else
  unsigned char code[] = {0x40, 0x05, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};  // mov w0, #42; ret
#endif
  memcpy(at(one), code, sizeof code);
  __builtin___clear_cache((char *)at(one), (char *)at(one) + sizeof code);
  if (mprotect(at(one), PAGE, PROT_READ | PROT_EXEC)) exit(3);
}

static const char *execute(void) {
  MISSING(one);
  int (*function)(void) = (int (*)(void))(uintptr_t)at(one);
  CHECK(function() == 42);
  CHECK(!mprotect(at(one), PAGE, PROT_READ | PROT_WRITE));
  rewrite(one);
  return NULL;
}

// Returns the sum of 1 to `depth`; each level needs 4 KB of the stack.
static long __attribute__((noinline)) sum(int depth) {
  volatile unsigned char frame[4096];
  for (size_t i = 0; i < sizeof frame; i += 256) frame[i] = (unsigned char)depth;
  long below = depth ? sum(depth - 1) : 0;
  for (size_t i = 0; i < sizeof frame; i += 256) if (frame[i] != (unsigned char)depth) return -1;
  return below + depth;
}

static void deepen_early(void) { if (sum(200) != 200 * 201 / 2) exit(3); }

// It uses what the stack had before, and more.
static const char *deepen(void) {
  CHECK(sum(600) == 600L * 601 / 2);
  return NULL;
}

enum { HUGE_BYTES = 8 << 20 };
static uint64_t *huge;

static void use_huge(void) {
  huge = map_pages(NULL, HUGE_BYTES, 0);
  madvise(huge, HUGE_BYTES, MADV_HUGEPAGE);
  for (size_t i = 0; i < HUGE_BYTES / 8; i++) huge[i] = word(1, i);
}

static const char *check_huge(void) {
  for (size_t i = 0; i < HUGE_BYTES / 8; i++) CHECK(huge[i] == word(1, i));
  CHECK(!madvise((char *)huge + HUGE_BYTES / 2, PAGE, MADV_DONTNEED));
  for (size_t i = 0; i < HUGE_BYTES / 8; i++) {
    size_t dropped = i - HUGE_BYTES / 16;
    CHECK(huge[i] == (dropped < PAGE / 8 ? 0 : word(1, i)));
  }
  return NULL;
}

static const char *drop_huge(void) {
  CHECK(!madvise(huge, HUGE_BYTES / 2, MADV_DONTNEED));
  for (size_t i = 0; i < HUGE_BYTES / 8; i++) {
    CHECK(huge[i] == (i < HUGE_BYTES / 16 ? 0 : word(1, i)));
  }
  return NULL;
}

static const struct test tests[] = {
  {"execute", write_code, execute},
  {"deepen", deepen_early, deepen},
  {"check_huge", use_huge, check_huge},
  {"drop_huge", use_huge, drop_huge},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
