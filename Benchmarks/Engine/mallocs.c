// Preloaded into the benchmark of the engine: counts allocations, and passes them on.
//   cc -O2 -shared -fPIC -o mallocs.so Benchmarks/Engine/mallocs.c
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uint64_t calls;

uint64_t malloc_calls(void) { return calls; }
void *malloc(size_t size) { return calls++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return calls++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return calls++, __libc_realloc(old, size); }
int posix_memalign(void **place, size_t alignment, size_t size) {
  calls++;
  *place = __libc_memalign(alignment, size);
  return *place ? 0 : 12;
}
