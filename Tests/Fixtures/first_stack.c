// Releases the unused stack of the first thread. Memory is mapped below the stack at the worst
// moment: after glibc has found the lowest address that the stack may have.
//
//   cc -I Sources/CLinux/include first_stack.c
//
// Prints `released` or `kept` (the stack), and `intact` or `freed` (the memory below it).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { LENGTH = 64 * 1024, BELOW = 256 * 1024 };

static unsigned char *neighbour;

static int get_attributes(pthread_t thread, pthread_attr_t *attributes) {
  void *lowest = NULL;
  size_t size = 0;
  int error = pthread_getattr_np(thread, attributes);
  if (error || pthread_attr_getstack(attributes, &lowest, &size)) return error;
  // The kernel puts a mapping there if it chooses addresses from the bottom up.
  neighbour = mmap((char *)lowest + BELOW, LENGTH, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (neighbour == MAP_FAILED) return 1;
  for (int i = 0; i < LENGTH; i++) neighbour[i] = 1;
  return 0;
}

#define pthread_getattr_np get_attributes
#include "../../Sources/CLinux/threads.c"

// Returns the page of an address that was used and isn't any more.
static __attribute__((noinline)) uintptr_t use_stack(void) {
  volatile unsigned char local[200 * 1024];
  for (size_t i = 0; i < sizeof local; i += 256) local[i] = 1;
  return (uintptr_t)&local[1024] & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

int main(void) {
  uintptr_t page = use_stack();
  clinux_release_unused_stack();
  if (!neighbour || neighbour == MAP_FAILED) return 3;
  unsigned char resident = 1;
  mincore((void *)page, 1, &resident);
  int is_intact = 1;
  for (int i = 0; i < LENGTH; i++) is_intact &= neighbour[i];
  printf("%s %s\n", resident & 1 ? "kept" : "released", is_intact ? "intact" : "freed");
  return 0;
}
